// The order in which CUPTI is called, against a libcupti.so.13 that this test writes, compiles and names in
// ROOFTILE_CUDA_PATH: it records every call and answers as the environment says.
#include "rooftile/measure/cupti.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace rooftile {
namespace {

namespace fs = std::filesystem;

constexpr const char* fake_source = R"fake(
#include "rooftile/measure/cupti_api.hpp"
#include <cstdlib>
#include <string>
using namespace rooftile::cupti;
static std::string calls;
static std::size_t started;
static const std::uint8_t* data;  // as SetConfig was given it
static long variable(const std::string& name, long otherwise) {
    const char* value = std::getenv(name.c_str());
    return value ? std::atol(value) : otherwise;
}
template <class T>
static int called(const char* name, T* p) {
    calls += (calls.empty() ? "" : " ") + std::string(name);
    if (p->size != struct_size<T> || p->reserved) calls += "(!)";
    for (std::size_t i = 0; data && i < 8; ++i)
        if (data[i] != (i == 0 ? 100 : 0)) {
            calls += "(data gone)";
            break;
        }
    return int(variable("FAKE_" + std::string(name), 0));
}
extern "C" {
const char* fake_calls() { return calls.c_str(); }
void fake_reset() { calls.clear(), started = 0, data = nullptr; }
int cuptiProfilerInitialize(Initialize* p) { return called("Initialize", p); }
int cuptiProfilerDeInitialize(Initialize* p) { return called("Deinitialize", p); }
int cuptiProfilerDeviceSupported(DeviceSupported* p) { return called("DeviceSupported", p); }
int cuptiDeviceGetChipName(ChipName* p) { return called("ChipName", p); }
int cuptiProfilerHostInitialize(HostInitialize* p) {
    p->host = &calls;
    return called("HostInitialize", p);
}
int cuptiProfilerHostDeinitialize(HostDeinitialize* p) { return called("HostDeinitialize", p); }
int cuptiProfilerHostGetMetricProperties(MetricProperties* p) { return called("MetricProperties", p); }
int cuptiProfilerHostConfigAddMetrics(AddMetrics* p) { return called("AddMetrics", p); }
int cuptiProfilerHostGetConfigImageSize(ConfigImageSize* p) {
    p->bytes = 4;
    return called("ConfigImageSize", p);
}
int cuptiProfilerHostGetConfigImage(ConfigImage* p) {
    p->image[3] = 7;
    return called("ConfigImage", p);
}
int cuptiProfilerHostGetNumOfPasses(Passes* p) {
    p->passes = std::size_t(variable("FAKE_PASSES", 1));
    return called("Passes", p);
}
int cuptiProfilerHostEvaluateToGpuValues(Evaluate* p) {
    for (std::size_t i = 0; i < p->count; ++i) p->values[i] = double(i) + p->data[0];
    return called("Evaluate", p);
}
int cuptiRangeProfilerEnable(Enable* p) {
    p->profiler = p->context;
    return called("Enable", p);
}
int cuptiRangeProfilerDisable(OnProfiler* p) {
    const int status = called("Disable", p);
    data = nullptr;
    return status;
}
int cuptiRangeProfilerGetCounterDataSize(CounterDataSize* p) {
    p->bytes = 8;
    return called("DataSize", p);
}
int cuptiRangeProfilerCounterDataImageInitialize(CounterDataInitialize* p) {
    p->data[0] = 100;
    return called("DataInitialize", p);
}
int cuptiRangeProfilerSetConfig(SetConfig* p) {
    const bool right = p->config_bytes == 4 && p->config[3] == 7 && p->data_bytes == 8
                       && p->range == user_range && p->replay == user_replay && p->ranges_per_pass == 1
                       && p->nesting_levels == 1 && p->least_nesting_level == 1 && p->pass == 0
                       && p->target_nesting_level == 1;
    data = p->data;
    return right ? called("SetConfig", p) : 1;
}
int cuptiRangeProfilerStart(OnProfiler* p) {
    ++started;
    return called("Start", p);
}
int cuptiRangeProfilerPushRange(PushRange* p) { return called("Push", p); }
int cuptiRangeProfilerPopRange(OnProfiler* p) { return called("Pop", p); }
int cuptiRangeProfilerStop(Stop* p) {
    p->all_passes_submitted = started >= std::size_t(variable("FAKE_PASSES", 1));
    return called("Stop", p);
}
int cuptiRangeProfilerDecodeData(Decode* p) {
    p->ranges_dropped = std::size_t(variable("FAKE_DROPPED", 0));
    return called("Decode", p);
}
int cuptiGetResultString(int, const char** name) {
    *name = "CUPTI_ERROR_OF_TEST";
    return 0;
}
}
)fake";

class FakeCupti : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (!fs::exists(ROOFTILE_SOURCE_DIR "/rooftile")
            || std::system("c++ --version > /dev/null 2>&1") != 0)
            return;
        std::string folder = testing::TempDir() + "rooftile-cupti-XXXXXX";
        if (!mkdtemp(folder.data())) return;
        std::ofstream(folder + "/fake.cpp") << fake_source;
        const std::string command = "c++ -std=c++20 -w -shared -fPIC -I '" ROOFTILE_SOURCE_DIR "' -o '"
                                    + folder + "/libcupti.so.13' '" + folder + "/fake.cpp'";
        ASSERT_EQ(std::system(command.c_str()), 0);
        folder_ = folder;
    }
    static void TearDownTestSuite() {
        std::error_code ignored;
        if (!folder_.empty()) fs::remove_all(folder_, ignored);
    }
    void SetUp() override {
        if (folder_.empty()) GTEST_SKIP() << "skipped: no C++ compiler or no sources here";
        const char* before = getenv("ROOFTILE_CUDA_PATH");
        if (before) path_before_ = before;
        setenv("ROOFTILE_CUDA_PATH", folder_.c_str(), 1);
        std::string missing;
        cupti_ = Cupti::open(missing);
        ASSERT_TRUE(cupti_) << missing;
        library_ = dlopen((folder_ + "/libcupti.so.13").c_str(), RTLD_NOW | RTLD_NOLOAD);
        ASSERT_TRUE(library_);
        reset();
    }
    void TearDown() override {
        for (const std::string& name : variables_) unsetenv(name.c_str());
        if (path_before_) setenv("ROOFTILE_CUDA_PATH", path_before_->c_str(), 1);
        else unsetenv("ROOFTILE_CUDA_PATH");
    }

    void answer(const std::string& name, const char* value) {
        setenv(name.c_str(), value, 1);
        variables_.push_back(name);
    }
    std::string calls() const { return reinterpret_cast<const char* (*)()>(dlsym(library_, "fake_calls"))(); }
    void reset() const { reinterpret_cast<void (*)()>(dlsym(library_, "fake_reset"))(); }
    /// Counts two metrics; what ran is in `ran_`, what was called in calls().
    std::vector<double> count(const std::function<void()>& work = [] {}) {
        const CounterSet set(cupti_, "GH100", {"x", "y"});
        reset();
        int context = 0;
        return set.count(
            &context, [this] { ran_ += 'p'; },
            [&] {
                ran_ += 'w';
                work();
            });
    }
    /// The exit code and line of the Error that counting ends in.
    std::pair<ExitCode, std::string> fault() {
        try {
            count();
        } catch (const Error& error) { return {error.code(), error.what()}; }
        return {ExitCode::done, ""};
    }

    std::shared_ptr<const Cupti> cupti_;
    std::string ran_;

  private:
    static inline std::string folder_;
    std::optional<std::string> path_before_;
    std::vector<std::string> variables_;
    void* library_ = nullptr;
};

TEST_F(FakeCupti, AsksTheChipInOrderAndLetsItGo) {
    {
        const CounterSet set(cupti_, "GH100", {"x", "y"});
        EXPECT_EQ(calls(),
                  "HostInitialize MetricProperties MetricProperties AddMetrics ConfigImageSize ConfigImage "
                  "Passes");
        reset();
    }
    EXPECT_EQ(calls(), "HostDeinitialize");
    answer("FAKE_AddMetrics", "1");
    reset();
    EXPECT_THROW(CounterSet(cupti_, "GH100", {"x"}), Error);
    EXPECT_EQ(calls(), "HostInitialize MetricProperties AddMetrics HostDeinitialize");
}

TEST_F(FakeCupti, CountsOnePass) {
    EXPECT_EQ(count(), (std::vector<double>{100, 101}));
    EXPECT_EQ(ran_, "pw");
    EXPECT_EQ(calls(),
              "Enable DataSize DataInitialize SetConfig Start Push Pop Stop Decode Evaluate Disable "
              "HostDeinitialize");
}

TEST_F(FakeCupti, PreparesAndRunsTheWorkOncePerPass) {
    answer("FAKE_PASSES", "3");
    count();
    EXPECT_EQ(ran_, "pwpwpw");
    EXPECT_EQ(calls(),
              "Enable DataSize DataInitialize SetConfig Start Push Pop Stop Start Push Pop Stop Start Push "
              "Pop Stop Decode Evaluate Disable HostDeinitialize");
}

TEST_F(FakeCupti, EndsWhereCuptiNeverDoes) {
    answer("FAKE_PASSES", "1000000");
    const auto [code, line] = fault();
    EXPECT_EQ(code, ExitCode::gpu_failed);
    EXPECT_EQ(line, "CUPTI wants more than 64 passes for 2 metrics that take 1000000");
    EXPECT_EQ(ran_.size(), 2u * 64);
}

TEST_F(FakeCupti, ALostRangeIsAFault) {
    answer("FAKE_DROPPED", "1");
    const auto [code, line] = fault();
    EXPECT_EQ(code, ExitCode::gpu_failed);
    EXPECT_EQ(line, "CUPTI dropped 1 of 1 counted ranges");
}

TEST_F(FakeCupti, ARefusalAnywhereIsCountersDeniedAndClosesWhatWasOpen) {
    struct Case {
        const char* call;
        const char* after;
    };
    for (const Case& c :
         {Case{"Enable", "Enable"}, Case{"SetConfig", "Enable DataSize DataInitialize SetConfig Disable"},
          Case{"Start", "Enable DataSize DataInitialize SetConfig Start Disable"},
          Case{"Push", "Enable DataSize DataInitialize SetConfig Start Push Stop Disable"}}) {
        setenv((std::string("FAKE_") + c.call).c_str(), "35", 1);
        const auto [code, line] = fault();
        unsetenv((std::string("FAKE_") + c.call).c_str());
        EXPECT_EQ(code, ExitCode::counters_denied) << c.call;
        EXPECT_NE(line.find("CUPTI_ERROR_OF_TEST (35)"), std::string::npos) << line;
        EXPECT_EQ(calls(), std::string(c.after) + " HostDeinitialize");
    }
}

TEST_F(FakeCupti, WorkThatFailsLeavesNothingOpen) {
    EXPECT_THROW(count([] { throw std::runtime_error("no such kernel"); }), std::runtime_error);
    EXPECT_EQ(calls(),
              "Enable DataSize DataInitialize SetConfig Start Push Pop Stop Disable HostDeinitialize");
}

}  // namespace
}  // namespace rooftile
