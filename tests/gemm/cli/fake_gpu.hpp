// The program on a driver without a GPU (tests/fake/), whose kernels compute nothing.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"

namespace rooftile {

/// Skips where there is no such driver, or no NVRTC. Each process has a folder of its own; kernels that one test compiled are
/// there for all.
class FakeGpuTest : public testing::Test {
  protected:
    /// `name`: of the folder; `shape`: of a GEMM that is built first.
    FakeGpuTest(const char* name, const char* shape) : name_(name), shape_(shape) {}

    void SetUp() override {
        namespace fs = std::filesystem;
        if (!fs::exists(ROOFTILE_FAKE_CUDA "/libcuda.so.1")) GTEST_SKIP() << "skipped: no fake driver";
        folder_ = fs::temp_directory_path() / (std::string("rooftile-") + name_ + "-" + std::to_string(getpid()));
        fs::create_directories(folder_);
        environment_ = plain_environment();
        environment_["CUDA_HOME"] = ROOFTILE_TEST_CUDA;
        environment_["ROOFTILE_CACHE_DIR"] =
            (fs::temp_directory_path() / ("rooftile-suite-cache-" + std::to_string(getuid()))).string();
        const Outcome build = run({"build", "gemm", "--shape", shape_, "--machine", "h200-sxm"}, environment_);
        if (build.code == 5 && build.err.find("libnvrtc") != std::string::npos) GTEST_SKIP() << "skipped: no NVRTC";
        environment_["ROOFTILE_CUDA_PATH"] = ROOFTILE_FAKE_CUDA;
    }
    void TearDown() override {
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }

    std::string out() const { return (folder_ / "out.jsonl").string(); }
    /// Of out().
    std::vector<nlohmann::json> lines() const {
        std::vector<nlohmann::json> all;
        std::ifstream file(out());
        for (std::string line; std::getline(file, line);) all.push_back(nlohmann::json::parse(line));
        return all;
    }
    Environment with(const Environment& more) const {
        Environment all = environment_;
        for (const auto& [name, value] : more) all[name] = value;
        return all;
    }

    std::filesystem::path folder_;
    Environment environment_;

  private:
    const char *name_, *shape_;
};

}  // namespace rooftile
