// Every header of device code compiles by itself: what it uses it includes. A name that is missing would else be noticed by whichever
// configuration instantiates it without another header.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "rooftile/error.hpp"
#include "rooftile/core/in_parallel.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {
namespace {

TEST(KernelHeaders, EachCompilesByItself) {
    const std::filesystem::path root = ROOFTILE_SOURCE_DIR;
    std::vector<std::string> headers;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "kernels"))
        if (entry.path().extension() == ".cuh") headers.push_back(std::filesystem::relative(entry.path(), root).string());
    std::sort(headers.begin(), headers.end());
    ASSERT_GT(headers.size(), 50u);
    std::mutex mutex;
    in_parallel(headers.size(), 0, [&](std::size_t i) {
        Source source;
        source.name = "alone";
        source.text = "#include \"" + headers[i] + "\"\n__global__ void alone() {}\n";
        source.name_expressions = {"alone"};
        source.arch = "sm_90a";
        try {
            compile_source(source);
        } catch (const Error& error) {
            const std::lock_guard lock(mutex);
            ADD_FAILURE() << headers[i] << ": " << std::string(error.what()).substr(0, 400);
        }
    });
}

}  // namespace
}  // namespace rooftile
