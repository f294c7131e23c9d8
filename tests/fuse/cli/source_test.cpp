// `measure source` on a driver without a GPU (tests/fake/), whose kernels compute nothing: what is refused, how failures end, and
// that a suite goes on.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kernels = R"(
extern "C" __global__ void twice(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + x[i];
}
template <class T> __global__ void twice_of(const T* x, T* y) { y[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }
extern "C" __global__ void __launch_bounds__(64) few(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
)";

class MeasureSource : public testing::Test {
  protected:
    void SetUp() override {
        if (!fs::exists(ROOFTILE_FAKE_CUDA "/libcuda.so.1")) GTEST_SKIP() << "skipped: no fake driver";
        folder_ = fs::temp_directory_path() / ("rooftile-source-" + std::to_string(getpid()));
        fs::create_directories(folder_);
        write("twice.cu", kernels);
        environment_ = plain_environment();
        environment_["CUDA_HOME"] = ROOFTILE_TEST_CUDA;
        environment_["ROOFTILE_CACHE_DIR"] =
            (fs::temp_directory_path() / ("rooftile-suite-cache-" + std::to_string(getuid()))).string();
        environment_["ROOFTILE_CUDA_PATH"] = ROOFTILE_FAKE_CUDA;
    }
    void TearDown() override {
        if (!folder_.empty()) fs::remove_all(folder_);
    }

    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << text;
        return (folder_ / name).string();
    }
    /// The kernel `twice` with `more` flags.
    Outcome measured(std::vector<std::string> more, const Environment& environment = {}) const {
        std::vector<std::string> arguments = {"measure",       "source", (folder_ / "twice.cu").string(),
                                              "--entry",       "twice",  "--tensor",
                                              "x:fp32[64,64]", "--arg",  "int32:4096",
                                              "--grid",        "16",     "--reference",
                                              "y = x + x",     "--seed", "1"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        Environment all = environment_;
        for (const auto& [name, value] : environment) all[name] = value;
        return run(arguments, all);
    }

    fs::path folder_;
    Environment environment_;
};

void expect_words(const Outcome& outcome, int code, const std::vector<std::string>& words) {
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    for (const std::string& word : words)
        EXPECT_NE((outcome.out + outcome.err).find(word), std::string::npos) << word << "\n"
                                                                             << outcome.out << outcome.err;
}

TEST(SourceRequests, AreRefusedWhereTheyAreWrong) {
    const fs::path file = fs::temp_directory_path() / ("rooftile-source-" + std::to_string(getpid()) + ".cu");
    std::ofstream(file) << kernels;
    const auto refused = [&](std::vector<std::string> arguments, const std::vector<std::string>& words) {
        arguments.insert(arguments.begin(), {"measure", "source", file.string(), "--entry", "twice"});
        expect_refused(arguments, words);
    };
    const std::vector<std::string> right = {"--tensor", "x:fp32[64]",  "--grid",
                                            "1",        "--reference", "y = x + x"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), right.begin(), right.end());
        return more;
    };
    expect_refused({"measure", "source"}, {"the kernel's file"});
    expect_refused({"measure", "source", "no_such.cu", "--entry", "twice", "--tensor", "x:fp32[64]", "--grid",
                    "1", "--reference", "y = x"},
                   {"no_such.cu", "no such file"});
    refused({}, {"missing --reference"});
    refused({"--reference", "y = x"}, {"missing --tensor"});
    refused({"--reference", "y = x", "--tensor", "x:fp32[64]"}, {"missing --grid"});
    refused(with({"--tensor", "y:bf16[64]"}), {"--tensor y", "fp32[64]", "bf16[64]", "y = bf16(...)"});
    refused(with({"--tensor", "z:bf16[64]"}), {"\"z\" is not used"});
    refused(with({"--block", "32x64"}), {"--block 32x64", "1024 threads"});
    refused(with({"--block", "0"}), {"--block 0", "1 .. 1024"});
    refused(with({"--cluster", "2"}), {"--cluster 2", "a grid of 1 is not made of whole clusters"});
    refused(with({"--cluster", "4x4"}), {"--cluster 4x4", "at most 8 CTAs"});
    refused(with({"--cluster", "0"}), {"--cluster 0", "1 .. 8"});
    for (const char* other : {"x", "=3", "x=-1", "x=nan", "x=1e999", "x=3us", "x=3,", "x=3,0", "x=3,2.5", "x=3,-1"})
        refused(with({"--other", other}), {other, "accepted"});
    refused(with({"--arg", "int32"}), {"--arg int32", "no type"});
    refused(with({"--arg", "int8:1"}), {"int8:1", "no such type"});
    refused(with({"--arg", "int32:3000000000"}), {"int32:3000000000", "no such number"});
    refused(with({"--timeout", "0"}), {"--timeout 0", "above 0"});
    refused(with({"--timeout", "nan"}), {"--timeout nan", "above 0"});
    refused({"--tensor", "x:fp32[64]", "--tensor", "t:fp32[64]", "--grid", "1", "--reference",
             "t = x + x; y = t * t"},
            {"--tensor t", "reads it again"});
    refused({"--suite", "some.toml"}, {"some.toml"});
    fs::remove(file);
}

TEST_F(MeasureSource, StandsOnOneTableWithTheDerivedKernelAndCopies) {
    const Outcome outcome = measured({});
    expect_words(
        outcome, 0,
        {"twice (", "derived: ", "operators one by one", "copying as many bytes", "grid 16, block 256",
         "1 of the outputs a thread", "1 of 4 B", "PASS", "left the same bits"});
}

TEST_F(MeasureSource, TakesClustersAndTimesFromElsewhere) {
    const Outcome outcome = measured({"--cluster", "4", "--other", "PyTorch eager=12.5", "--other", "Triton=10,77"});
    expect_words(outcome, 0, {"grid 16, block 256, cluster 4", "PyTorch eager", "12.50 us", "Triton", " 77"});
    const auto document = nlohmann::json::parse(measured({"--other", "PyTorch eager=12.5", "--json"}).out);
    for (const auto& row : document["rows"]) EXPECT_EQ(row["baselines"]["pytorch_eager_us"], 12.5);
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(document), "");
}

TEST_F(MeasureSource, DocumentHasBothKernels) {
    const Outcome outcome = measured({"--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto document = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(JsonSchema("measurement-1.json").faults(document), "");
    ASSERT_EQ(document["rows"].size(), 2u);
    const auto &own = document["rows"][0], &derived = document["rows"][1];
    EXPECT_TRUE(own["config"].is_null());
    EXPECT_EQ(own["label"], "twice");
    EXPECT_TRUE(own["predicted_time_us"].is_null());
    EXPECT_EQ(own["source"]["launch"], "grid 16, block 256");
    EXPECT_EQ(own["source"]["global_loads"], nlohmann::json({{"of_4_bytes", 1}}));
    EXPECT_GT(own["time_us"], 0);
    EXPECT_TRUE(derived["config"].is_object());
    EXPECT_TRUE(derived["source"]["file"].is_null());
    EXPECT_GT(derived["rank1_ratio"], 0);
}

TEST_F(MeasureSource, ThatIsWrongSaysWhere) {
    expect_words(measured({"--no-time"}, {{"FAKE_WRONG_EXPRESSION", "1"}}), 3,
                 {"verification failed: twice: y[0,0]: got 0, expected 1 within 0.1"});
}

TEST_F(MeasureSource, ThatDoesNotCompileIsNamedByItsLine) {
    const std::string file =
        write("broken.cu", "\n\nextern \"C\" __global__ void f(float* y) { y[0] = z; }\n");
    const Outcome outcome = run({"measure", "source", file, "--entry", "f", "--tensor", "x:fp32[64]",
                                 "--grid", "1", "--reference", "y = x"},
                                environment_);
    expect_words(outcome, 5, {file + "(3): error: identifier \"z\" is undefined"});
    EXPECT_EQ(outcome.out, "");
    expect_words(measured({"--entry", "thrice"}), 2, {"more than once"});
}

TEST_F(MeasureSource, KernelAndLaunchMustFit) {
    const std::string file = (folder_ / "twice.cu").string();
    const auto measure = [&](const std::string& entry, std::vector<std::string> more) {
        more.insert(more.begin(), {"measure", "source", file, "--entry", entry, "--tensor", "x:fp32[64]",
                                   "--reference", "y = x + x", "--no-time"});
        return run(more, environment_);
    };
    expect_words(measure("thrice", {"--grid", "1"}), 5, {"has no kernel thrice", "__global__"});
    expect_words(measure("twice", {"--grid", "1"}), 2,
                 {"twice has 3 parameters (8 B, 8 B, 4 B); given are 2 (x, y: 8 B, 8 B)"});
    expect_words(measure("twice", {"--grid", "1", "--arg", "int64:64"}), 2, {"given are 3", "int64:64"});
    expect_words(measure("twice_of<float>", {"--grid", "1", "--block", "64"}), 0,
                 {"twice_of<float>", "PASS"});
    expect_words(measure("twice_of<float>", {"--grid", "1", "--shared", "300000"}), 2,
                 {"--shared 300000", "300000 B", "232448"});
}

TEST_F(MeasureSource, ThatNeverEndsEndsTheProgram) {
    for (const std::string more : {"--timings", "--debug"}) {
        const Outcome outcome = measured({"--timeout", "0.1", more}, {{"FAKE_ENDLESS", "twice"}});
        expect_words(outcome, 6, {"twice (grid 16, block 256) did not end within 0.1 s: an endless loop"});
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(outcome.error_lines(), 1);
    }
}

TEST_F(MeasureSource, ThatBreaksOnTheGpuIsNamed) {
    const Outcome outcome = measured({}, {{"FAKE_FAULT", "twice"}});
    expect_words(outcome, 6, {"twice (grid 16, block 256) failed on the GPU"});
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.error_lines(), 1);
}

TEST_F(MeasureSource, DebugTimesNothingAndNamesThePlanThatFails) {
    expect_words(measured({"--debug"}), 0, {"PASS", "not timed"});
    // The derived kernel breaks: its plan is named, though every launch looks alike to the driver.
    const auto document = nlohmann::json::parse(measured({"--no-time", "--json"}).out);
    const std::string derived = document["rows"][1]["source"]["entry"], label = document["rows"][1]["label"];
    expect_words(measured({"--debug"}, {{"FAKE_FAULT", derived}}), 6,
                 {"plan 2, " + label, "started by", derived});
}

TEST_F(MeasureSource, SuiteGoesOnAfterFailures) {
    write("broken.cu", "extern \"C\" __global__ void f(float* y) { y[0] = z; }\n");
    const std::string suite = write("suite.toml", R"(
schema = "rooftile/suite/1"
name = "mine"
[[source]]
file = "broken.cu"
entry = "f"
tensor = ["x:fp32[64]"]
grid = 1
reference = "y = x"
[[source]]
name = "parameters"
file = "twice.cu"
entry = "twice"
tensor = ["x:fp32[64]"]
grid = 1
reference = "y = x + x"
[[source]]
name = "right"
file = "twice.cu"
entry = "twice"
tensor = ["x:fp32[64]", "y:fp32[64]"]
arg = "int32:64"
grid = 1
reference = "y = x + x"
)");
    const std::string out = (folder_ / "out.jsonl").string();
    const Outcome outcome =
        run({"measure", "source", "--suite", suite, "--no-time", "--out", out}, environment_);
    expect_words(outcome, 5,
                 {"1/3 f: ", "broken.cu(1): error", "2/3 parameters: ", "3 parameters", "3/3 right: right"});
    std::ifstream file(out);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    ASSERT_EQ(lines.size(), 5u);  // two failures, a context line, two rows
    EXPECT_EQ(lines[0]["exit_code"], 5);
    EXPECT_EQ(lines[1]["exit_code"], 2);
    EXPECT_EQ(lines[2]["suite"], "mine");
    EXPECT_EQ(lines[3]["source"]["name"], "right");
}

TEST_F(MeasureSource, SuiteFilesAreReadStrictly) {
    const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
        expect_refused({"measure", "source", "--suite", write("suite.toml", text)}, words);
    };
    const std::string head = "schema = \"rooftile/suite/1\"\nname = \"mine\"\n";
    refused("schema = \"rooftile/suite/2\"\nname = \"mine\"\n", {"schema", "accepted: \"rooftile/suite/1\""});
    refused(head, {"[[source]]"});
    refused(head + "[[source]]\nentry = \"f\"\n", {"file: missing"});
    refused(head + "[[source]]\nfile = \"f.cu\"\nentry = \"f\"\ngird = 1\n", {"source.gird", "unknown key"});
    refused(head + "[[source]]\nfile = \"f.cu\"\nentry = \"f\"\ngrid = 1.5\n",
            {"source.grid", "whole number"});
    const std::string suite = write("suite.toml", head + "[[source]]\nfile = \"f.cu\"\nentry = \"f\"\n");
    expect_refused({"measure", "source", "--suite", suite, "--grid", "1"},
                   {"--suite and --grid exclude each other"});
    expect_refused({"measure", "source", "--suite", suite, "--json"}, {"leave out --json"});
}

}  // namespace
}  // namespace rooftile
