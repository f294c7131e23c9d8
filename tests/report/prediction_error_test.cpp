#include "rooftile/report/prediction_error.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rooftile {
namespace {

TEST(PredictionError, KeepsTheSignNextToTheSize) {
    EXPECT_FALSE(prediction_error({}));
    const std::vector<double> errors = {-0.10, 0.04, -0.06};  // mean -0.12 / 3, sizes 0.20 / 3
    const auto error = prediction_error(errors);
    ASSERT_TRUE(error);
    EXPECT_NEAR(error->bias, -0.04, 1e-12);
    EXPECT_NEAR(error->mean, 0.20 / 3, 1e-12);
    EXPECT_EQ(error->p95, 0.10);
    EXPECT_EQ(error->max, 0.10);
    EXPECT_EQ(prediction_error_text(*error), "-4.0 % mean, 6.7 % absolute");
    EXPECT_EQ(prediction_error_text(0.031, 0.031), "+3.1 % mean, 3.1 % absolute");
    EXPECT_EQ(prediction_error_us_text(-0.42, 0.69), "-0.42 us mean, 0.69 us absolute");
}

/// Errors of one size and both signs have no bias; of one sign the two means agree.
TEST(PredictionError, OneSignIsABias) {
    const std::vector<double> both = {0.1, -0.1}, one = {-0.1, -0.1};
    EXPECT_EQ(prediction_error(both)->bias, 0);
    EXPECT_EQ(prediction_error(one)->bias, -prediction_error(one)->mean);
}

}  // namespace
}  // namespace rooftile
