// `measure ways` and `sweep mlp` from outside: refusals, and what becomes of what the script reports. A shell script is in Python's place.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

class WaysVerb : public testing::Test {
  protected:
    /// A program that writes that report where it is asked to, and ends with that code.
    std::string python(const std::string& report, int code = 0) {
        const std::filesystem::path file = folder_.path() / "python";
        std::ofstream(file) << "#!/bin/sh\n"
                               "cp \"$2\" '" << (folder_.path() / "request.json").string() << "'\n"
                               "result=$(sed -n 's/^ *\"result\": \"\\(.*\\)\",*$/\\1/p' \"$2\")\n"
                               "cat >\"$result\" <<'END'\n" << report << "\nEND\n"
                               "exit " << code << "\n";
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
        return file.string();
    }
    nlohmann::json request() const { return nlohmann::json::parse(std::ifstream(folder_.path() / "request.json")); }
    Environment fake() const {
        Environment out = without_gpu();
        out["ROOFTILE_CUDA_PATH"] = ROOFTILE_FAKE_CUDA;
        return out;
    }

    Folder folder_;
};

constexpr const char* right =
    R"({"device": "cpu", "torch": "2.11.0", "ways": {"manual": {"error": 0.005, "largest_difference": 0.01, "right": true},
 "cuda": {"absent": "CUDA needs a GPU"}}})";

TEST_F(WaysVerb, VerifiesWithoutAGpu) {
    const Outcome got =
        run({"measure", "ways", "softmax", "--no-time", "--rows", "64", "--seed", "7", "--python", python(right), "--json"});
    ASSERT_EQ(got.code, 0) << got.err;
    const auto document = nlohmann::json::parse(got.out);
    EXPECT_EQ(JsonSchema("ways-1.json").faults(document), "");
    EXPECT_EQ(document.at("sizes").at("rows"), 64);
    EXPECT_EQ(document.at("sizes").at("columns"), 8192);
    EXPECT_EQ(document.at("ways").at(0).at("error"), 0.005);
    EXPECT_EQ(document.at("ways").at(4).at("absent"), "CUDA needs a GPU");
    EXPECT_GT(document.at("elsewhere").size(), 5u);
    const nlohmann::json asked = request();
    EXPECT_EQ(asked.at("module"), "softmax");
    EXPECT_EQ(asked.at("seed"), 7);
    EXPECT_EQ(asked.at("time"), false);
}

TEST_F(WaysVerb, AWrongResultIsAFailure) {
    const std::string wrong = R"({"device": "cpu", "ways": {"operator": {"error": 0.9, "largest_difference": 3.0, "right": false}}})";
    const Outcome got = run({"measure", "ways", "gelu", "--no-time", "--python", python(wrong)});
    EXPECT_EQ(got.code, 3);
    EXPECT_THAT(got.err, HasSubstr("gelu, framework's operator: the result is wrong"));
    EXPECT_THAT(got.out, HasSubstr("wrong"));
}

TEST_F(WaysVerb, SaysWhatIsMissing) {
    const Outcome no_torch = run({"measure", "ways", "gelu", "--python", python(R"({"device": null, "torch": null})")}, fake());
    EXPECT_EQ(no_torch.code, 4);
    EXPECT_THAT(no_torch.err, HasSubstr("has no PyTorch"));
    const Outcome no_gpu = run({"measure", "ways", "gelu", "--python", python(right)}, fake());
    EXPECT_EQ(no_gpu.code, 4);
    EXPECT_THAT(no_gpu.err, HasSubstr("--no-time"));
    const Outcome broken = run({"measure", "ways", "gelu", "--no-time", "--python", python(right, 7)});
    EXPECT_EQ(broken.code, 6);
    EXPECT_THAT(broken.err, HasSubstr("exit code 7"));
    const Outcome none = run({"measure", "ways", "gelu", "--no-time", "--python", "/nowhere/python3"});
    EXPECT_EQ(none.code, 2);
    EXPECT_THAT(none.err, HasSubstr("/nowhere/python3 did not start"));
    const Outcome no_json = run({"measure", "ways", "gelu", "--no-time", "--python", python("half a repo")});
    EXPECT_EQ(no_json.code, 6);
    EXPECT_THAT(no_json.err, HasSubstr("no JSON"));
}

TEST_F(WaysVerb, RefusesWhatItDoesNotHave) {
    const auto refused = [](std::vector<std::string> arguments, const char* says) {
        const Outcome got = run(arguments);
        EXPECT_EQ(got.code, 2) << got.err;
        EXPECT_EQ(got.error_lines(), 1) << got.err;
        EXPECT_THAT(got.err, HasSubstr(says));
    };
    refused({"measure", "ways"}, "measure ways needs an operator");
    refused({"measure", "ways", "conv"}, "there are gelu, softmax");
    refused({"measure", "ways", "gelu", "--heads", "8"}, "gelu has no --heads; its sizes are --rows, --columns");
    refused({"measure", "ways", "gelu", "--rows", "0"}, "--rows");
    refused({"measure", "ways", "gelu", "--type", "fp16"}, "bf16");
    refused({"measure", "ways", "gelu", "--machine", "nothing"}, "nothing");
    refused({"sweep", "mlp", "--batch", "64..8"}, "ends before it begins");
    refused({"sweep", "mlp", "--batch", "1..200..1", "--dim", "8,16,32"}, "are more than");
    refused({"sweep", "mlp", "--dim", "many"}, "--dim");
}

TEST_F(WaysVerb, SweepsAnMlp) {
    const std::string report =
        R"({"device": "cpu", "torch": "2.11.0", "points": [{"error": 0.004, "largest_difference": 0.1, "right": true},
 {"error": 0.004, "largest_difference": 0.1, "right": true}]})";
    const Outcome got = run({"sweep", "mlp", "--no-time", "--batch", "8,16", "--layers", "2", "--python", python(report), "--json"});
    ASSERT_EQ(got.code, 0) << got.err;
    const auto document = nlohmann::json::parse(got.out);
    EXPECT_EQ(JsonSchema("mlp-1.json").faults(document), "");
    EXPECT_EQ(request().at("points").dump(),
              R"([{"batch":8,"dim":2048,"layers":2,"steps":8},{"batch":16,"dim":2048,"layers":2,"steps":8}])");
    EXPECT_EQ(document.at("curves").at(0).at("points").size(), 2u);
    // Without a range every parameter that is not given is swept.
    ASSERT_EQ(run({"sweep", "mlp", "--no-time", "--batch", "8", "--python", python(report)}).code, 0);
    std::set<std::string> dims;
    const nlohmann::json asked = request();
    for (const auto& point : asked.at("points")) {
        EXPECT_EQ(point.at("batch"), 8);
        dims.insert(point.at("dim").dump());
    }
    EXPECT_GT(dims.size(), 4u);
}

/// Whatever Python runs later must at least be Python.
TEST(WaysScripts, AreParsed) {
    if (!std::filesystem::exists(ROOFTILE_SOURCE_DIR "/rooftile/ways")) GTEST_SKIP() << "skipped: no sources here";
    const std::string command =
        std::string(ROOFTILE_PYTHON " -c \"import ast,glob; files = glob.glob('") + ROOFTILE_SOURCE_DIR
        + "/rooftile/**/ways/*.py', recursive=True); assert len(files) > 12; [ast.parse(open(f).read(), f) for f in files]\"";
    EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace rooftile
