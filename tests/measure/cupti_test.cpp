// The order in which CUPTI is called, against the libcupti.so.13 of tests/fake: it records every call and answers as the
// environment says.
#include "rooftile/measure/cupti.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>

namespace rooftile {
namespace {

class FakeCupti : public testing::Test {
  protected:
    void SetUp() override {
        if (!std::filesystem::exists(library_path)) GTEST_SKIP() << "skipped: " << library_path << " is not there";
        const char* before = getenv("ROOFTILE_CUDA_PATH");
        if (before) path_before_ = before;
        setenv("ROOFTILE_CUDA_PATH", ROOFTILE_FAKE_CUDA, 1);
        std::string missing;
        cupti_ = Cupti::open(missing);
        ASSERT_TRUE(cupti_) << missing;
        library_ = dlopen(library_path, RTLD_NOW | RTLD_NOLOAD);
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
    static constexpr const char* library_path = ROOFTILE_FAKE_CUDA "/libcupti.so.13";
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
    EXPECT_EQ(count(), (std::vector<double>{8000, 8000}));
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
