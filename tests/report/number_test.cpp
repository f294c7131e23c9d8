#include "rooftile/report/number.hpp"

#include <clocale>
#include <cmath>

#include <gtest/gtest.h>

namespace rooftile {
namespace {

TEST(Number, WholeNumbersInFullOthersInSignificantDigits) {
    EXPECT_EQ(number_text(245760), "245760");
    EXPECT_EQ(number_text(0), "0");
    EXPECT_EQ(number_text(-3), "-3");
    EXPECT_EQ(number_text(85.3333333), "85.33");
    EXPECT_EQ(number_text(0.97), "0.9700");
    EXPECT_EQ(number_text(1234.5678), "1235");
    EXPECT_EQ(number_text(std::nan("")), "not finite");
}

TEST(Number, ScaledByPrefix) {
    EXPECT_EQ(scaled_text(481036337152.0, "FLOP"), "481.0 GFLOP");
    EXPECT_EQ(scaled_text(4096, "B"), "4096 B");
    EXPECT_EQ(scaled_text(49152, "B"), "49.15 kB");
    EXPECT_EQ(scaled_text(999960, "B"), "1.000 MB");  // not "1000 kB"
    EXPECT_EQ(scaled_text(0.5, "B"), "0.5000 B");
}

TEST(Number, InputsAsTheyWereGiven) {
    EXPECT_EQ(input_text(3.24, "TB/s"), "3.24 TB/s");
    EXPECT_EQ(input_text(50, "TFLOP/s"), "50 TFLOP/s");
    EXPECT_EQ(input_text(8.5966848e14, "FLOP/s"), "859.668 TFLOP/s");
    EXPECT_EQ(input_text(65536, "registers"), "65536 registers");
    EXPECT_EQ(input_text(0.905797, ""), "0.905797");
    EXPECT_EQ(input_text(47.41, "B/clk"), "47.41 B/clk");
}

TEST(Number, TimesInTheUnitTheyReadBestIn) {
    EXPECT_EQ(time_text(578.9), "578.9 us");
    EXPECT_EQ(time_text(1204), "1204 us");
    EXPECT_EQ(time_text(12040), "12.04 ms");
    EXPECT_EQ(time_text(2500000), "2.500 s");
    EXPECT_EQ(percent_text(0.974), "97.4 %");
}

TEST(Number, DecimalSignIsAPointInEveryLocale) {
    const char* set = std::setlocale(LC_ALL, "de_DE.UTF-8");
    if (!set) set = std::setlocale(LC_ALL, "de_DE.utf8");
    EXPECT_EQ(number_text(85.3333333), "85.33");
    EXPECT_EQ(scaled_text(481036337152.0, "FLOP"), "481.0 GFLOP");
    std::setlocale(LC_ALL, "C");
    if (!set) GTEST_SKIP() << "skipped: locale de_DE is not installed; only the C locale was checked";
}

}  // namespace
}  // namespace rooftile
