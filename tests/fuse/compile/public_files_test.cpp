// Files as public ones are build as they lie, for a GPU of Hopper and one before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "rooftile/measure/source_kernel.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

TEST(PublicFiles, BuildAsTheyLie) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(ROOFTILE_SOURCE_DIR "/tests/data/public"))
        if (entry.path().extension() == ".cu") files.push_back(entry.path());
    std::ranges::sort(files);
    ASSERT_GE(files.size(), 11u);
    for (const fs::path& file : drawn_few(files, 6)) {
        std::string line;
        std::ifstream in(file);
        std::getline(in, line);
        if (line.ends_with('\r')) line.pop_back();
        const std::string head = "// entry: ";
        const std::size_t at = line.find(head);
        ASSERT_NE(at, line.npos) << file;
        Given given;
        given.add("file", file.string());
        given.add("entry", line.substr(at + head.size()));
        const SourceRequest request = source_code_request(given);
        EXPECT_FALSE(request.left_out.empty()) << file;
        for (const char* arch : {"sm_90", "sm_80"}) EXPECT_NO_THROW(EXPECT_EQ(compile_source_code(request, arch).compiled.entries.front().spill_store_bytes, 0)) << file;
    }
}

}  // namespace
}  // namespace rooftile
