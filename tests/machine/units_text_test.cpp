#include "rooftile/machine/units_text.hpp"

#include <clocale>

#include <gtest/gtest.h>

namespace rooftile {
namespace {

NumberText number(std::string_view text) {
    auto parsed = parse_number(text);
    if (auto* problem = std::get_if<TextProblem>(&parsed)) {
        ADD_FAILURE() << text << ": " << problem->message;
        return {};
    }
    return std::get<NumberText>(parsed);
}

std::string problem(std::string_view text) {
    auto parsed = parse_number(text);
    auto* found = std::get_if<TextProblem>(&parsed);
    return found ? found->message : "accepted";
}

TEST(UnitsText, EveryPrefixOfBytes) {
    EXPECT_EQ(number("3 B").value, 3);
    EXPECT_EQ(number("3 kB").value, 3e3);
    EXPECT_EQ(number("3 MB").value, 3e6);
    EXPECT_EQ(number("3 GB").value, 3e9);
    EXPECT_EQ(number("3 TB").value, 3e12);
    EXPECT_EQ(number("3 PB").value, 3e15);
    EXPECT_EQ(number("3 KiB").value, 3.0 * 1024);
    EXPECT_EQ(number("3 MiB").value, 3.0 * 1048576);
    EXPECT_EQ(number("3 GiB").value, 3.0 * 1073741824);
    EXPECT_EQ(number("3 TiB").value, 3.0 * 1099511627776);
    EXPECT_EQ(number("3 PiB").value, 3.0 * 1125899906842624);
}

TEST(UnitsText, EveryPrefixOfSeconds) {
    EXPECT_DOUBLE_EQ(number("3 s").value, 3);
    EXPECT_DOUBLE_EQ(number("3 ms").value, 3e-3);
    EXPECT_DOUBLE_EQ(number("3 us").value, 3e-6);
    EXPECT_DOUBLE_EQ(number("3 \u00b5s").value, 3e-6);  // micro sign
    EXPECT_DOUBLE_EQ(number("3 \u03bcs").value, 3e-6);  // Greek mu
    EXPECT_DOUBLE_EQ(number("3 ns").value, 3e-9);
    EXPECT_DOUBLE_EQ(number("3 ps").value, 3e-12);
}

TEST(UnitsText, EveryDecimalPrefixOfEveryOtherUnit) {
    const std::pair<const char*, double> big[] = {{"", 1},    {"k", 1e3},  {"M", 1e6},
                                                  {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};
    const std::pair<const char*, double> small[] = {{"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}, {"p", 1e-12}};
    for (const char* unit : {"FLOP", "clk", "Hz", "J", "W"})
        for (auto [prefix, scale] : big)
            EXPECT_DOUBLE_EQ(number("2 " + (prefix + std::string(unit))).value, 2 * scale) << prefix << unit;
    for (const char* unit : {"J", "W"})
        for (auto [prefix, scale] : small)
            EXPECT_DOUBLE_EQ(number("2 " + (prefix + std::string(unit))).value, 2 * scale) << prefix << unit;
}

TEST(UnitsText, Dimensions) {
    EXPECT_EQ(number("1 B").unit.dimension, Bytes::dimension);
    EXPECT_EQ(number("1 FLOP").unit.dimension, Flops::dimension);
    EXPECT_EQ(number("1 clk").unit.dimension, Cycles::dimension);
    EXPECT_EQ(number("1 cycle").unit.dimension, Cycles::dimension);
    EXPECT_EQ(number("1 cycles").unit.dimension, Cycles::dimension);
    EXPECT_EQ(number("1 s").unit.dimension, Seconds::dimension);
    EXPECT_EQ(number("1 Hz").unit.dimension, Clock::dimension);
    EXPECT_EQ(number("1 clk/s").unit.dimension, Clock::dimension);
    EXPECT_EQ(number("1 J").unit.dimension, Joules::dimension);
    EXPECT_EQ(number("1 W").unit.dimension, Watts::dimension);
    EXPECT_EQ(number("1 J/s").unit.dimension, Watts::dimension);
    EXPECT_EQ(number("1 B/s").unit.dimension, Bandwidth::dimension);
    EXPECT_EQ(number("1 FLOP/s").unit.dimension, FlopRate::dimension);
    EXPECT_EQ(number("1 FLOP/B").unit.dimension, Intensity::dimension);
    EXPECT_EQ(number("1 op/clk").unit.dimension, Dimension{.cycle = -1});
    for (const char* word : {"SMs", "partitions", "warps", "threads", "registers", "CTAs", "barriers"}) {
        EXPECT_EQ(number("7 " + std::string(word)).unit.dimension, Dimension{});
        EXPECT_EQ(number("7 " + std::string(word)).unit.word, word);
    }
}

TEST(UnitsText, PerSmAndPerGpu) {
    const NumberText one = number("47.41 B/clk/SM");
    EXPECT_EQ(one.unit.per, Per::sm);
    EXPECT_EQ(one.unit.dimension, BytesPerCycle::dimension);
    EXPECT_DOUBLE_EQ(one.value, 47.41);
    EXPECT_EQ(number("1 B/SM/clk").unit.per, Per::sm);
    EXPECT_EQ(number("1 B/clk").unit.per, Per::gpu);
    EXPECT_EQ(number("1 B/clk/GPU").unit.per, Per::gpu);
    EXPECT_NE(problem("1 B/SM/SM"), "accepted");
    EXPECT_NE(problem("1 B/SM/GPU"), "accepted");
    EXPECT_NE(problem("1 SM"), "accepted");
}

TEST(UnitsText, PrefixBelowASlashDivides) {
    EXPECT_DOUBLE_EQ(number("3 B/ns").value, 3e9);   // 3 B / 1e-9 s
    EXPECT_DOUBLE_EQ(number("3 kB/us").value, 3e9);  // 3e3 B / 1e-6 s
    EXPECT_DOUBLE_EQ(number("3 FLOP/kclk").value, 3e-3);
}

TEST(UnitsText, FormsOfNumbers) {
    EXPECT_EQ(number("0").value, 0);
    EXPECT_EQ(number("132").value, 132);
    EXPECT_TRUE(number("132").unit.text.empty());
    EXPECT_DOUBLE_EQ(number("3.35 TB/s").value, 3.35e12);
    EXPECT_DOUBLE_EQ(number("3.35e3 GB/s").value, 3.35e12);
    EXPECT_DOUBLE_EQ(number("5E-1 s").value, 0.5);
    EXPECT_EQ(number("  200clk ").text, "200 clk");  // the blank may be missing; the text has one
    EXPECT_EQ(number("3.35   TB/s").text, "3.35 TB/s");
    EXPECT_EQ(number("232448 B").value, 232448);
}

TEST(UnitsText, Refusals) {
    for (const char* text :
         {"",           " ",          "x",        "B",         ".5 B",     "5. B",  "+5 B",  "-5 B",
          "-0",         "0x10 B",     "1_000 B",  "007",       "1,5 B",    "nan",   "NaN",   "inf",
          "Infinity B", "1e400 B",    "1e308 PB", "1e-400 s",  "3 B B",    "3 B;",  "3 B/",  "3 /s",
          "3 B//s",     "3 B / s",    "3 XB",     "3 b",       "3 Gb/s",   "3 kb",  "3 KB",  "3 Kib",
          "3 kib",      "3 kiB",      "3 mB",     "3 nB",      "3 uFLOP",  "3 mHz", "3 ks",  "3 Ms",
          "3 KiFLOP",   "3 Kis",      "3 GiHz",   "3 kkB",     "3 TFLOPS", "3 sm",  "3 CLK", "3 hz",
          "3 kSMs",     "3 warps/SM", "3 B/SMs",  "3 kcycles", "3 B\tx",   "3 \xff"})
        EXPECT_NE(problem(text), "accepted") << text;
    EXPECT_EQ(problem("-5 B"), "negative");
    EXPECT_NE(problem("3 KB").find("KiB"), std::string::npos);
    EXPECT_NE(problem("3 TFLOPS").find("FLOP/s"), std::string::npos);
    EXPECT_NE(problem("3 mHz").find("prefix"), std::string::npos);
    EXPECT_EQ(problem("3 XB/s"), "unknown unit \"XB\" in \"XB/s\"");
}

TEST(UnitsText, NoLocale) {
    // Where the locale exists, strtod would stop at the point of "3.35".
    const std::string before = std::setlocale(LC_ALL, nullptr);
    const bool german = std::setlocale(LC_ALL, "de_DE.UTF-8") || std::setlocale(LC_ALL, "de_DE");
    EXPECT_DOUBLE_EQ(number("3.35 TB/s").value, 3.35e12);
    EXPECT_EQ(shortest_text(0.5), "0.5");
    std::setlocale(LC_ALL, before.c_str());
    if (!german) GTEST_SKIP() << "skipped: no German locale here; only the default one was checked";
}

TEST(UnitsText, ListedUnits) {
    EXPECT_EQ(units_listed("B"), std::vector<std::string_view>{"B"});
    EXPECT_EQ(units_listed("clk or s"), (std::vector<std::string_view>{"clk", "s"}));
    EXPECT_EQ(units_listed("B/s, B/clk or B/clk/SM"),
              (std::vector<std::string_view>{"B/s", "B/clk", "B/clk/SM"}));
}

TEST(UnitsText, ShortestTextReadsBack) {
    EXPECT_EQ(shortest_text(132), "132");
    EXPECT_EQ(shortest_text(1e6), "1000000");
    EXPECT_EQ(shortest_text(1e18), "1e+18");
    for (double value : {0.1, 3.35, 1e-12, 265.5, 6.02e23})
        EXPECT_EQ(number(shortest_text(value)).value, value);
}

TEST(UnitsText, Printable) {
    EXPECT_EQ(printable("plain"), "plain");
    EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a?b?[31m?");
    EXPECT_EQ(printable("\u00b5s"), "\u00b5s");
    EXPECT_EQ(printable("\xc3("), "?(");
    EXPECT_EQ(printable("\xc2\x9b"), "?");  // C1: a terminal's control sequence
    EXPECT_EQ(printable(std::string(100, 'x'), 10), "xxxxxxx...");
}

TEST(UnitsText, Utf8) {
    EXPECT_EQ(utf8_length("a"), 1u);
    EXPECT_EQ(utf8_length("\u00b5"), 2u);
    EXPECT_EQ(utf8_length("\u20ac"), 3u);
    EXPECT_EQ(utf8_length("\U0001F600"), 4u);
    for (const char* bad :
         {"", "\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"})
        EXPECT_EQ(utf8_length(bad), 0u) << bad;
}

}  // namespace
}  // namespace rooftile
