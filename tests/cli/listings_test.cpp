// Code as people read it: what --ptx prints is still what an assembler takes, of every operation, and makes the same kernel.
#include <filesystem>
#include <fstream>
#include <regex>

#include "rooftile/core/operation.hpp"
#include "tests/cli/program.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

std::string registers_of(const std::string& text) {
    std::smatch found;
    return std::regex_search(text, found, std::regex("registers +(\\d+) a thread")) ? found[1].str() : "none in: " + text;
}

TEST(Listings, AnnotatedPtxIsAssembledToTheSameKernel) {
    const fs::path file = fs::temp_directory_path() / fmt::format("rooftile-listing-{}.ptx", getpid());
    int assembled = 0;
    for (const Operation* operation : operations()) {
        std::vector<std::string> build{"build", std::string(operation->name())};
        for (const std::string& word : words_of(operation->example())) build.push_back(word);
        build.insert(build.end(), {"--machine", "h100-sxm"});
        const Outcome summary = run(build, without_gpu());
        ASSERT_EQ(summary.code, 0) << summary.err;
        build.insert(build.end(), {"--ptx", "-o", file.string()});
        const Outcome listed = run(build, without_gpu());
        ASSERT_EQ(listed.code, 0) << listed.err;
        std::ifstream in(file);
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        EXPECT_TRUE(text.starts_with("// %r: 32-bit registers")) << text.substr(0, 200);
        EXPECT_NE(text.find("// blockIdx"), text.npos);
        if (text.find(".version", text.find(".version") + 1) != text.npos) continue;  // of two kernels: two texts
        const Outcome ptx = run({"build", "ptx", file.string()}, without_gpu());
        if (ptx.err.find("no ptxas found") != std::string::npos) GTEST_SKIP() << "no ptxas is installed: annotated PTX was not assembled";
        EXPECT_EQ(ptx.code, 0) << ptx.err;
        EXPECT_EQ(registers_of(ptx.out), registers_of(summary.out)) << operation->name();
        ++assembled;
    }
    fs::remove(file);
    EXPECT_GE(assembled, 2);
}

TEST(Listings, WhatIsNoPtxIsRefusedInALine) {
    const fs::path file = fs::temp_directory_path() / fmt::format("rooftile-no-ptx-{}", getpid());
    for (const char* text : {"", "int main() {}\n", ".version 8.0\n.target sm_90\n"}) {
        std::ofstream(file) << text;
        const Outcome got = run({"build", "ptx", file.string()}, without_gpu());
        EXPECT_EQ(got.code, 2) << got.err;
        EXPECT_EQ(got.error_lines(), 1) << got.err;
        EXPECT_TRUE(got.out.empty());
    }
    std::ofstream(file) << ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry mine() { nonsense; }\n";
    const Outcome unnamed = run({"build", "ptx", file.string(), "--entry", "other"}, without_gpu());
    EXPECT_EQ(unnamed.code, 2);
    EXPECT_NE(unnamed.err.find("has mine"), std::string::npos) << unnamed.err;
    const Outcome refused = run({"build", "ptx", file.string()}, without_gpu());
    if (refused.err.find("no ptxas found") == std::string::npos) {
        EXPECT_EQ(refused.code, 5) << refused.err;
    }
    fs::remove(file);
}

}  // namespace
}  // namespace rooftile
