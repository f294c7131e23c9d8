// What every test on a GPU begins with.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "rooftile/runtime/doctor.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// Skips, saying why, where no kernel can run here; else holds the context of GPU 0.
class DeviceTest : public testing::Test {
  protected:
    void SetUp() override {
        if (Driver::status().kind != DriverStatus::Kind::usable)
            GTEST_SKIP() << "skipped: no device (" << Driver::status().message << ")";
        if (!gpu_usable() || Driver::instance().device(0).arch() != "sm_90")
            GTEST_SKIP() << "skipped: no device of sm_90 (GPU 0 is " << Driver::instance().device(0).name
                         << ")";
        context_ = std::make_unique<Context>(0);
    }
    void TearDown() override {
        if (!context_) return;
        // An error that a kernel left behind belongs to the test that started it.
        EXPECT_NO_THROW(synchronize());
        context_.reset();
    }

  private:
    std::unique_ptr<Context> context_;
};

}  // namespace rooftile
