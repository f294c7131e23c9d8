// A user's kernel on a GPU: a right one, and each way to be wrong. What breaks the context or never ends runs in a process of its own.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "rooftile/machine/live.hpp"
#include "rooftile/measure/source_measure.hpp"
#include "tests/cli/program.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

// y = x + x on 1000 numbers: four CTAs of 256 threads, the last of which has 24 threads too many.
constexpr const char* kernels = R"(
#define I (blockIdx.x * blockDim.x + threadIdx.x)
__device__ unsigned arrived;
extern "C" __global__ void right(const float* x, float* y, int n) { if (I < n) y[I] = x[I] + x[I]; }
extern "C" __global__ void wrong(const float* x, float* y, int n) { if (I < n) y[I] = x[I] + x[I] + (I == 777 ? 1 : 0); }
extern "C" __global__ void beyond(const float* x, float* y, int n) { if (I < n + 8) y[I] = I < n ? x[I] + x[I] : 0; }
extern "C" __global__ void changes(float* x, float* y, int n) {
    if (I < n) y[I] = x[I] + x[I];
    if (I == 5) x[I] += 1;
}
extern "C" __global__ void far(const float* x, float* y, int n) { if (I < n) y[I + (I == 777 ? 1LL << 40 : 0)] = x[I] + x[I]; }
extern "C" __global__ void endless(const float*, float*, int) { while (true) *(volatile unsigned*)&arrived += 1; }
)";

class SourceOnGpu : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped()) return;
        file_ = fs::temp_directory_path() / ("rooftile-source-" + std::to_string(getpid()) + ".cu");
        std::ofstream(file_) << kernels;
    }
    void TearDown() override {
        if (!file_.empty()) fs::remove(file_);
        DeviceTest::TearDown();
    }

    Measurement verified(const std::string& entry, const std::string& grid = "4") const {
        Given given;
        given.add("file", file_.string());
        given.add("entry", entry);
        given.add("tensor", "x:fp32[1000]");
        given.add("arg", "int32:1000");
        given.add("grid", grid);
        given.add("reference", "y = x + x");
        const auto machine = std::make_shared<const Machine>(live_machine().machine);
        MeasureOptions options;
        options.time = false;
        options.seed = 1;
        return measure_source(source_request(given), machine, options).report.rows.front();
    }

    /// By the program, since nothing of this process would survive it.
    Outcome run_apart(const std::string& entry, const std::vector<std::string>& more = {}) const {
        std::vector<std::string> arguments = {
            "measure", "source",     file_.string(), "--entry", entry,         "--tensor",  "x:fp32[1000]",
            "--arg",   "int32:1000", "--grid",       "4",       "--reference", "y = x + x", "--no-time"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run(arguments, plain_environment());
    }

    fs::path file_;
};

TEST_F(SourceOnGpu, RightKernelIsRight) {
    const Measurement row = verified("right");
    EXPECT_TRUE(row.verified.ok()) << row.verified.failure;
    EXPECT_EQ(row.verified.checked_elements, 1000);
}

TEST_F(SourceOnGpu, WrongElementIsNamed) {
    const Measurement row = verified("wrong");
    EXPECT_EQ(row.verified.random, false);
    EXPECT_NE(row.verified.failure.find("y[777]"), std::string::npos) << row.verified.failure;
    EXPECT_NE(row.verified.failure.find("1 of 1000 elements wrong"), std::string::npos)
        << row.verified.failure;
}

TEST_F(SourceOnGpu, LaunchThatIsTooSmallLeavesElementsUnwritten) {
    const Measurement row = verified("right", "3");  // 768 threads
    EXPECT_EQ(row.verified.random, false);
    for (const char* word : {"y[768]", "232 of 1000 elements wrong", "reach every element"})
        EXPECT_NE(row.verified.failure.find(word), std::string::npos) << word << ": " << row.verified.failure;
}

TEST_F(SourceOnGpu, WritesBeyondTheOutputTouchItsGuard) {
    const Measurement row = verified("beyond");
    EXPECT_EQ(row.verified.guards, false);
    EXPECT_NE(row.verified.failure.find("32 bytes outside the outputs"), std::string::npos)
        << row.verified.failure;
}

TEST_F(SourceOnGpu, ChangedInputIsTold) {
    const Measurement row = verified("changes");
    EXPECT_EQ(row.verified.guards, false);
    EXPECT_NE(row.verified.failure.find("changed an input"), std::string::npos) << row.verified.failure;
}

TEST_F(SourceOnGpu, FarWriteEndsTheProgramAndNamesTheKernel) {
    const Outcome outcome = run_apart("far");
    EXPECT_EQ(outcome.code, 6) << outcome.err;
    EXPECT_NE(outcome.err.find("far (grid 4, block 256) failed on the GPU"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
}

TEST_F(SourceOnGpu, EndlessLoopEndsTheProgram) {
    const Outcome outcome = run_apart("endless", {"--timeout", "0.5"});
    EXPECT_EQ(outcome.code, 6) << outcome.err;
    EXPECT_NE(outcome.err.find("endless (grid 4, block 256) did not end within 0.5 s"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
    EXPECT_EQ(run_apart("right").code, 0);  // the GPU is as before
}

}  // namespace
}  // namespace rooftile
