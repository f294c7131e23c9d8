// Suites of expressions from outside, on a driver without a GPU (tests/fake/) whose kernels compute nothing and whose
// judges find no fault unless they are told to.
#include <cstddef>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "kernels/fuse/arguments.hpp"
#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class FuseSuiteTest : public testing::Test {
  protected:
    void SetUp() override {
        folder_ =
            std::filesystem::temp_directory_path() / ("rooftile-fuse-suite-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
        std::ofstream(folder_ / "s.toml")
            << "schema = \"rooftile/suite/1\"\nname = \"nan\"\nop = \"fuse\"\ntypes = [\"bf16\"]\nshapes = "
               "[[64, 256]]\n"
               "[[group]]\nname = \"point\"\nexpression = \"y = (x - x) / (x - x)\"\n"
               "tensors = [\"x:TYPE[ROWS,COLUMNS]\"]\n"
               "[[group]]\nname = \"sum\"\nexpression = \"y = sum((x - x) / (x - x))\"\n"
               "tensors = [\"x:TYPE[ROWS,COLUMNS]\"]\n";
        environment_ = plain_environment();
        environment_["CUDA_HOME"] = ROOFTILE_TEST_CUDA;
        environment_["ROOFTILE_CACHE_DIR"] =
            (std::filesystem::temp_directory_path() / ("rooftile-suite-cache-" + std::to_string(getuid())))
                .string();
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string path(const char* name) const { return (folder_ / name).string(); }
    Outcome build(const std::vector<std::string>& more) const {
        std::vector<std::string> words = {"build", "fuse", "--machine", "h200-sxm"};
        words.insert(words.end(), more.begin(), more.end());
        return run(words, environment_);
    }
    static bool no_nvrtc(const Outcome& outcome) {
        return outcome.code == 5 && outcome.err.find("libnvrtc") != std::string::npos;
    }

    std::filesystem::path folder_;
    Environment environment_;
};

TEST_F(FuseSuiteTest, ABuildSaysHowItIsLaunched) {
    const Outcome outcome = build({"y = dropout(x + b, 0.25, seed=7)", "--tensor", "x:bf16[64,256]",
                                   "--tensor", "b:bf16[256]", "--json"});
    if (no_nvrtc(outcome)) GTEST_SKIP() << "skipped: no NVRTC";
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("build-1.json").faults(document), "");
    const json& launch = document.at("launch");
    int inputs = 0, outputs = 0, words = 0;
    for (const json& word : launch.at("tensors")) {
        inputs += word.contains("input");
        outputs += word.contains("output");
        words += word.contains("word");
    }
    EXPECT_EQ(inputs, 2);
    EXPECT_EQ(outputs, 1);
    EXPECT_EQ(words, 9);  // Philox: seven pairs of keys, the stream, the threshold
    EXPECT_EQ(launch.at("tensors").back().at("word"), "0001000140000000");  // 0.25 x 2^32
    // rows, columns and vectors of 64 bits, little-endian: 64 rows.
    const std::string sizes = launch.at("sizes").get<std::string>();
    EXPECT_EQ(sizes.substr(0, 16), "4000000000000000");
    constexpr std::size_t half_up = offsetof(fuse::FuseSizes, half_up);
    EXPECT_EQ(sizes.substr(2 * half_up, 8), "00000100");  // 2^16: with any other number every bf16 is wrong
    EXPECT_THAT(launch.at("entry").get<std::string>(), HasSubstr("dropout"));
    EXPECT_TRUE(launch.at("workspace").is_null());
    const Outcome whole = build({"y = sum_all(x)", "--tensor", "x:fp32[64,256]", "--json"});
    ASSERT_EQ(whole.code, 0) << whole.err;
    EXPECT_EQ(json::parse(whole.out).at("launch").at("workspace"), 40);
    // A counter of rows; the grid is no matter.
    const Outcome ring =
        build({"y = softmax(x)", "--tensor", "x:bf16[1024,262144]", "--row-storage", "pipelined", "--json"});
    ASSERT_EQ(ring.code, 0) << ring.err;
    const json dynamic = json::parse(ring.out).at("launch");
    EXPECT_EQ(dynamic.at("workspace"), 40);
    EXPECT_EQ(dynamic.at("workspace_bytes"), 16);
    EXPECT_EQ(dynamic.at("workspace_bytes_per_cta"), 0);
}

TEST_F(FuseSuiteTest, ASuiteIsBuiltWithItsOperators) {
    const auto build_suite = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"build", "suite", "--machine", "h200-sxm"});
        return run(words, environment_);
    };
    const Outcome outcome = build_suite({path("s.toml"), "--into", path("k"), "--out", path("k.json")});
    if (no_nvrtc(outcome)) GTEST_SKIP() << "skipped: no NVRTC";
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const json document = json::parse(std::ifstream(path("k.json")));
    ASSERT_EQ(document.at("problems").size(), 2u);
    const json& sum = document.at("problems")[1];
    EXPECT_EQ(sum.at("name"), "sum 64x256 bf16");
    ASSERT_EQ(sum.at("operators").size(), 4u);  // two differences, the quotient, the sum
    EXPECT_EQ(sum.at("operators")[3].at("result").at("name"), "y");
    EXPECT_EQ(sum.at("operators")[3].at("result").at("shape"), json({64, 1}));
    EXPECT_EQ(sum.at("operators")[3].at("operands").at("a"), sum.at("operators")[2].at("result").at("name"));
    for (const json& built : {sum.at("fused"), sum.at("operators")[0], document.at("roofs")})
        EXPECT_GT(std::filesystem::file_size(folder_ / "k" / built.at("cubin").get<std::string>()), 1000u);
    for (const char* kind : {"copy", "read"})
        for (const json& form : document.at("roofs").at(kind))
            EXPECT_THAT(form.at("kernel").get<std::string>(), HasSubstr(std::string(kind) + "_pieces"));
    EXPECT_GE(document.at("roofs").at("copy").size(), 4u);
    EXPECT_EQ(build_suite({path("s.toml")}).code, 2);
    EXPECT_EQ(build_suite({path("s.toml"), "--into", path("k"), "--filter", "no such"}).code, 2);
}

class FuseSuiteRun : public FuseSuiteTest {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(ROOFTILE_FAKE_CUDA "/libcuda.so.1"))
            GTEST_SKIP() << "skipped: no fake driver";
        FuseSuiteTest::SetUp();
        if (no_nvrtc(build({"y = x + x", "--tensor", "x:bf16[64,256]"}))) GTEST_SKIP() << "skipped: no NVRTC";
        environment_["ROOFTILE_CUDA_PATH"] = ROOFTILE_FAKE_CUDA;
    }
    Outcome measure(const std::vector<std::string>& more = {}, const Environment& also = {}) const {
        std::vector<std::string> words = {"measure", "fuse", "--suite", path("s.toml"),
                                          "--top",   "2",    "--out",   path("out.jsonl")};
        words.insert(words.end(), more.begin(), more.end());
        Environment environment = environment_;
        environment.insert(also.begin(), also.end());
        return run(words, environment);
    }
    std::vector<json> lines() const {
        std::vector<json> all;
        std::ifstream file(path("out.jsonl"));
        for (std::string line; std::getline(file, line);) all.push_back(json::parse(line));
        return all;
    }
};

TEST_F(FuseSuiteRun, ExplainShowsTheDerivationBesideTheMeasurement) {
    const std::vector<std::string> words = {"measure", "fuse",     "y = log(-1 - abs(x))", "--tensor", "x:bf16[64,256]",
                                            "--rounds", "1", "--explain"};
    const Outcome text = run(words, environment_);
    ASSERT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("moved_bytes"));
    auto as_json = words;
    as_json.push_back("--json");
    const json document = json::parse(run(as_json, environment_).out);
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(document), "");
    const json& row = document.at("rows")[0];
    EXPECT_FALSE(row.at("derivation").empty());
    // From the roof to the measured time: the costs add up to it, in the document and as a picture.
    std::int64_t sum = 0;
    for (const json& step : row.at("attainability")) sum += step.at("cost_ns").get<std::int64_t>();
    ASSERT_EQ(row.at("attainability").back().at("step"), "measured");
    EXPECT_NEAR(double(sum) / 1e3, row.at("time_us").get<double>(), 0.01);
    EXPECT_THAT(text.out, HasSubstr("From the roof to the measurement"));
    auto drawn = words;
    drawn.insert(drawn.end(), {"--svg", path("x.svg"), "--picture", "waterfall"});
    ASSERT_EQ(run(drawn, environment_).code, 0);
    std::stringstream svg;
    svg << std::ifstream(path("x.svg")).rdbuf();
    EXPECT_THAT(svg.str(), HasSubstr("from the roof to the measured time"));
}

TEST_F(FuseSuiteRun, IsCutAndGoneOnWithAndReported) {
    const Outcome first = measure({"--filter", "point", "--seed", "3"});
    ASSERT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(first.out, "");
    EXPECT_THAT(first.err, HasSubstr("1/1 point 64x256 bf16 y = "));
    const Outcome second = measure();
    ASSERT_EQ(second.code, 0) << second.err;
    EXPECT_THAT(second.err, HasSubstr("going on: 1 of 2 problems"));
    const auto all = lines();
    ASSERT_EQ(all.size(), 5u);  // the context, 2 problems x 2 plans
    EXPECT_EQ(all[0].at("suite"), "nan");
    EXPECT_EQ(all[0].at("context").at("seed"), 3);
    json document = all[0];
    for (std::size_t i = 1; i < all.size(); ++i) {
        EXPECT_GT(all[i].at("time_us"), 0) << all[i].at("invalid");
        EXPECT_GT(all[i].at("baselines").at("unfused_us"), 0);
        document["rows"].push_back(all[i]);
        document["rows"].back().erase("machine");
    }
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(document), "");
    EXPECT_EQ(all[1].at("roof"), "copy");
    EXPECT_TRUE(all[1].at("baselines").at("read_us").is_null());
    EXPECT_EQ(all[3].at("roof"), "read");
    EXPECT_GT(all[3].at("baselines").at("read_us"), 0);
    EXPECT_THAT(measure().err, HasSubstr("nothing left to do: 2 problems"));
    const Outcome other = measure({"--mode", "cold"});
    EXPECT_EQ(other.code, 2);
    EXPECT_THAT(other.err, HasSubstr("another mode"));

    const Outcome text = run({"report", "suite", path("out.jsonl"), "--suite", path("s.toml")}, environment_);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("2 problems of suite nan"));
    EXPECT_THAT(text.out, HasSubstr("sums and maxima, of read"));
    const Outcome required = run({"report", "suite", path("out.jsonl"), "--require"}, environment_);
    EXPECT_EQ(required.code, 8);  // nothing here takes the time that an H200 would
    EXPECT_THAT(required.err, HasSubstr("missed: prediction"));
}

TEST_F(FuseSuiteRun, AWrongResultIsARowAndTheExitCodeSaysSo) {
    std::ofstream(folder_ / "s.toml", std::ios::app)
        << "[[group]]\nname = \"one\"\nexpression = \"y = x + 1\"\ntensors = [\"x:TYPE[ROWS,COLUMNS]\"]\n";
    const Outcome outcome = measure({"--filter", "one"}, {{"FAKE_WRONG_EXPRESSION", "1"}});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("2 results are wrong"));
    EXPECT_TRUE(lines()[1].at("time_us").is_null());
    EXPECT_THAT(lines()[1].at("invalid").get<std::string>(), HasSubstr("the result is wrong"));
    EXPECT_EQ(measure({"y = x"}).code, 2);
    EXPECT_EQ(measure({"--json"}).code, 2);
}

}  // namespace
}  // namespace rooftile
