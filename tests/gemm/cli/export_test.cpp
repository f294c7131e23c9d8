// `export` from outside: text and document, files and folders, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> export_gemm(std::vector<std::string> more) {
    std::vector<std::string> out = {"export", "gemm", "--machine", "h100-sxm"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
}

TEST(ExportVerb, TextAndDocumentAreOne) {
    const std::vector<std::string> words = {"--shape", "512x4096x1024", "--to", "triton"};
    const Outcome text = run(export_gemm(words), without_gpu());
    ASSERT_EQ(text.code, 0) << text.err;
    EXPECT_NE(text.err.find("lost: "), std::string::npos) << text.err;
    auto with_json = words;
    with_json.push_back("--json");
    const Outcome document = run(export_gemm(with_json), without_gpu());
    ASSERT_EQ(document.code, 0) << document.err;
    const auto parsed = nlohmann::json::parse(document.out);
    EXPECT_EQ(JsonSchema("export-1.json").faults(parsed), "");
    EXPECT_EQ(parsed["text"], text.out);
    EXPECT_EQ(parsed["target"], "triton");
    EXPECT_GT(parsed["predicted_time_us"], 0);
}

TEST(ExportVerb, AFolderGetsTheFileUnderItsReadersName) {
    const Folder folder;
    const std::string name = folder.path().string();
    const Outcome made =
        run(export_gemm({"--groups", "8x64", "--n", "512", "--k", "512", "--top-k", "2", "--to", "vllm-moe", "-o", name}), without_gpu());
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.out, "");
    EXPECT_TRUE(fs::exists(fs::path(name) / "E=8,N=256,device_name=NVIDIA_H100_80GB_HBM3.json"));
}

TEST(ExportVerb, RefusesInOneLine) {
    const auto refused = [](std::vector<std::string> words, const char* says, int code = 2) {
        const Outcome got = run(words, without_gpu());
        EXPECT_EQ(got.code, code) << got.err;
        EXPECT_EQ(got.out, "");
        EXPECT_EQ(got.error_lines(), 1) << got.err;
        EXPECT_NE(got.err.find(says), std::string::npos) << got.err;
    };
    refused(export_gemm({"--shape", "64x64x64"}), "--to");
    refused(export_gemm({"--shape", "64x64x64", "--to", "nobody"}), "triton");
    refused(export_gemm({"--shape", "64x64x64", "--to", "triton", "--tile", "128x144x64"}), "powers of two");
    refused(export_gemm({"--groups", "8x64", "--n", "512", "--k", "512", "--to", "vllm-moe", "--top-k", "9"}), "--top-k");
    // An operation that has none says who has.
    refused({"export", "fuse", "y = x + x", "--tensor", "x:bf16[8,8]", "--to", "triton"}, "only of gemm");
}

}  // namespace
}  // namespace rooftile
