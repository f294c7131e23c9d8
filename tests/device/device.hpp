// What every test on a GPU begins with.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "rooftile/runtime/doctor.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// Processes of these tests share the GPU, but for a test that is alone on it: it waits until the others' tests have
/// ended, and they wait for it. Locks of files in the temporary folder, one user's.
class GpuTurn {
  public:
    explicit GpuTurn(bool alone) {
        // Whoever waits holds the gate, so that no other begins meanwhile.
        const int gate = locked("gate", LOCK_EX);
        turn_ = locked("turn", alone ? LOCK_EX : LOCK_SH);
        if (gate >= 0) close(gate);
    }
    ~GpuTurn() {
        if (turn_ >= 0) close(turn_);
    }
    GpuTurn(const GpuTurn&) = delete;
    GpuTurn& operator=(const GpuTurn&) = delete;

  private:
    static int locked(const char* name, int how) {
        const auto path = std::filesystem::temp_directory_path()
                          / ("rooftile-gpu-" + std::to_string(geteuid()) + "." + name);
        const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0)
            std::cerr << path.string() << ": " << std::strerror(errno) << "; tests of other processes may disturb\n";
        while (file >= 0 && flock(file, how) != 0 && errno == EINTR) {}
        return file;
    }
    int turn_ = -1;
};

/// Skips, saying why, where no kernel can run here; else holds the context of GPU 0.
class DeviceTest : public testing::Test {
  protected:
    /// For what counts or times: no test of another process runs beside it.
    virtual bool is_alone() const { return false; }

    void SetUp() override {
        if (Driver::status().kind != DriverStatus::Kind::usable)
            GTEST_SKIP() << "skipped: no device (" << Driver::status().message << ")";
        if (!gpu_usable() || Driver::instance().device(0).arch() != "sm_90")
            GTEST_SKIP() << "skipped: no device of sm_90 (GPU 0 is " << Driver::instance().device(0).name
                         << ")";
        turn_ = std::make_unique<GpuTurn>(is_alone());
        context_ = std::make_unique<Context>(0);
    }
    void TearDown() override {
        if (!context_) return;
        // An error that a kernel left behind belongs to the test that started it.
        EXPECT_NO_THROW(synchronize());
        context_.reset();
        turn_.reset();
    }

  private:
    std::unique_ptr<GpuTurn> turn_;
    std::unique_ptr<Context> context_;
};

}  // namespace rooftile
