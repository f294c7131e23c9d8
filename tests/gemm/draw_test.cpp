// The law of drawn GEMMs: its bounds, its shares, and the first draws of a seed.
#include "rooftile/gemm/draw.hpp"

#include <gtest/gtest.h>

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr int draws = 2000;

std::string text_of(const GemmProblem& p) {
    return fmt::format("{}x{}x{} {}{} {},{},{} +{},{},{}", p.m, p.n, p.k, a_major_name(p.a_major),
                       b_major_name(p.b_major), p.lda, p.ldb, p.ldc, p.a_offset, p.b_offset, p.c_offset);
}

std::vector<std::string> first(const char* law) {
    Random random(7);
    std::vector<std::string> out;
    for (int i = 0; i < 5; ++i) out.push_back(text_of(drawn_gemm(random, {law})));
    return out;
}

TEST(GemmDraw, ASeedKeepsItsDraws) {
    EXPECT_EQ(
        first(""),
        (std::vector<std::string>{"14x12544x7168 kk 7168,7168,12544 +0,0,0", "4x16128x8064 kk 8064,8064,16128 +0,0,0",
                                  "138x4864x3456 kk 3456,3456,4864 +0,0,0", "7x11968x11840 kk 11840,11840,11968 +0,0,0",
                                  "510x8704x4608 kk 4608,4608,8704 +0,0,0"}));
    EXPECT_EQ(first("any"),
              (std::vector<std::string>{"14x12545x7172 mk 77,7172,12591 +1,3,6", "177x773x25826 mn 177,773,773 +6,3,6",
                                        "1255x6786x1154 kk 1212,1178,6824 +7,6,0", "946x342x5490 mn 980,342,377 +4,7,6",
                                        "2x5958x15875 kn 15934,5995,5963 +2,7,5"}));
}

TEST(GemmDraw, PlainOnesAreDenseAndWithinBounds) {
    Random random(1);
    int small = 0, middle = 0, on_128 = 0;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {});
        EXPECT_TRUE(p.m >= 1 && p.m <= 16384) << text_of(p);
        EXPECT_EQ(p.n % 8, 0) << text_of(p);
        EXPECT_EQ(p.k % 8, 0) << text_of(p);
        EXPECT_GE(p.flops().value, 5e7);
        EXPECT_LE(p.flops().value, 2e13);
        EXPECT_EQ(p, gemm_problem(p.m, p.n, p.k));
        small += p.m < 128;
        middle += p.m >= 128 && p.m < 2048;
        on_128 += p.n % 128 == 0 && p.k % 128 == 0;
    }
    // Half of log-uniform 1 .. 16384 lies under 128, two sevenths between 128 and 2048; fewer of the small ones have 5e7 FLOP.
    EXPECT_NEAR(small, 0.45 * draws, 0.1 * draws);
    EXPECT_NEAR(middle, 0.3 * draws, 0.06 * draws);
    EXPECT_GT(on_128, 0.25 * draws);
    EXPECT_LT(on_128, 0.75 * draws);
}

TEST(GemmDraw, AnyAlignmentIsOfAllKinds) {
    Random random(1);
    int odd = 0, padded = 0, transposed = 0, off = 0;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "any"});
        const std::int64_t more = p.lda - (p.a_major == Major::k ? p.k : p.m);
        EXPECT_TRUE(more >= 0 && more <= 64) << text_of(p);
        odd += p.n % 2 != 0 || p.k % 2 != 0;
        padded += more > 0;
        transposed += p.a_major != Major::k;
        EXPECT_TRUE(p.a_offset >= 0 && p.a_offset <= 7) << text_of(p);
        off += p.a_offset != 0;
    }
    EXPECT_NEAR(odd, 0.75 * draws, 0.1 * draws);
    EXPECT_NEAR(padded, 0.5 * draws, 0.05 * draws);
    EXPECT_NEAR(transposed, 0.5 * draws, 0.05 * draws);
    EXPECT_NEAR(off, 0.875 * draws, 0.05 * draws);
}

TEST(GemmDraw, TypesAreOfAllPairsAndResults) {
    Random random(1);
    std::map<std::string, int> pairs, results;
    int scaled = 0;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "fp8"});
        EXPECT_TRUE(p.m >= 1 && p.m <= 16384) << text_of(p);
        ++pairs[fmt::format("{} {}", name_of(p.a_type), name_of(p.b_type))];
        ++results[std::string(name_of(p.c_type))];
        scaled += p.epilogue && p.epilogue->scales == Scales::tensor;
    }
    EXPECT_EQ(pairs.size(), 4u);
    EXPECT_EQ(results.size(), 3u);
    for (const auto& [pair, count] : pairs) EXPECT_NEAR(count, draws / 4, 0.05 * draws) << pair;
    for (const auto& [result, count] : results) EXPECT_NEAR(count, draws / 3, 0.05 * draws) << result;
    EXPECT_NEAR(scaled, draws / 2, 0.05 * draws);
}

TEST(GemmDraw, EpiloguesAreOfAllForms) {
    Random random(1);
    std::map<std::string, int> forms;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "epilogue"});
        ASSERT_TRUE(p.epilogue) << text_of(p);
        ++forms[p.epilogue->expression + " " + std::string(name_of(p.pairs()))];
        if (p.pairs() == Pairs::none) continue;
        EXPECT_EQ(p.n % 16, 0);
        EXPECT_EQ(p.ldc, p.n / 2);
    }
    EXPECT_EQ(forms.size(), 11u);
    for (const auto& [form, count] : forms) EXPECT_NEAR(count, draws / 11, 0.04 * draws) << form;
}

TEST(GemmDraw, BatchesShareOperandsAndLieInAllWays) {
    Random random(1);
    int shared = 0, beside = 0, n_major = 0;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "batch"});
        EXPECT_TRUE(p.batch >= 2 && p.batch <= 512) << text_of(p);
        EXPECT_LE(p.compulsory_bytes().value, 4e10);
        shared += (p.a_stride == 0) + (p.b_stride == 0);
        beside += p.b_stride > 0 && p.b_stride < p.ldb;
        n_major += p.b_major == Major::mn;
    }
    EXPECT_NEAR(shared, 0.25 * draws, 0.05 * draws);
    EXPECT_NEAR(beside, 0.22 * draws, 0.05 * draws);
    EXPECT_NEAR(n_major, 0.5 * draws, 0.05 * draws);
}

TEST(GemmDraw, GroupsAreAlikeRoutedAndSkewed) {
    constexpr int draws = 200;  // each of up to 131072 rows that are sent somewhere
    Random random(1);
    int alike = 0, empty = 0, skewed = 0;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "group"});
        ASSERT_TRUE(p.groups);
        EXPECT_TRUE(p.groups->count() >= 2 && p.groups->count() <= 256);
        EXPECT_EQ(p.groups->total(), p.m);
        const std::int64_t least = *std::min_element(p.groups->rows().begin(), p.groups->rows().end());
        alike += p.groups->longest() - least <= 1;
        empty += least == 0;
        skewed += double(p.groups->longest()) >= 4 * p.rows_a_matrix();
    }
    EXPECT_NEAR(alike, 0.36 * draws, 0.1 * draws);
    EXPECT_GT(empty, 0.1 * draws);
    EXPECT_GT(skewed, 0.1 * draws);
}

TEST(GemmDraw, ExpertsHaveABiasEachAndHalfOfThemScales) {
    Random random(2);
    int bytes = 0;
    for (int i = 0; i < 60; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "experts"});
        ASSERT_TRUE(p.groups && p.epilogue);
        EXPECT_TRUE(p.epilogue->operands.back().by_product);
        EXPECT_EQ(p.epilogue->scales, is_fp8(p.a_type) ? Scales::row : Scales::none);
        bytes += is_fp8(p.a_type);
    }
    EXPECT_NEAR(bytes, 30, 12);
}

// m of 1 .. 64 on a logarithmic scale: a half lies below 8; fewer of those have 5e7 FLOP. A third is of any alignment.
TEST(GemmDraw, FewRowsAreFew) {
    Random random(1);
    int below_8 = 0, any = 0;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "few"});
        EXPECT_TRUE(p.m >= 1 && p.m <= 64) << text_of(p);
        EXPECT_GE(p.flops().value, 5e7);
        below_8 += p.m < 8;
        any += p != gemm_problem(p.m, p.n, p.k);
    }
    EXPECT_NEAR(below_8, 0.45 * draws, 0.1 * draws);
    EXPECT_NEAR(any, draws / 3.0, 0.05 * draws);
}

// Four lengths of groups alike often, zero points in half, K of whole multiples of 8; the law is told again from the problem.
TEST(GemmDraw, PackedWeightsAreOfEveryLayout) {
    Random random(1);
    std::map<int, int> groups;
    int with_zeros = 0;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "quantised"});
        EXPECT_TRUE(p.is_quantised() && p.m >= 1 && p.m <= 64 && p.k % 8 == 0) << text_of(p);
        EXPECT_EQ(gemm_traits(p).law, "quantised");
        ++groups[p.quantised.group];
        with_zeros += p.quantised.zeros == ZeroType::integer;
    }
    ASSERT_EQ(groups.size(), 4u);
    for (const auto& [group, count] : groups) EXPECT_NEAR(count, draws / 4.0, 0.06 * draws) << group;
    EXPECT_NEAR(with_zeros, draws / 2.0, 0.06 * draws);
    for (int i = 0; i < draws / 10; ++i) {
        const GemmProblem p = drawn_gemm(random, {.law = "quantised_many"});
        EXPECT_TRUE(p.is_quantised() && p.m >= 65 && p.m <= 4096 && p.k % 8 == 0) << text_of(p);
        EXPECT_EQ(gemm_traits(p).law, "quantised_many");
    }
}

TEST(GemmDraw, AnotherLawIsRefusedWithAllNames) {
    try {
        gemm_law({.law = "fp7"});
        FAIL() << "accepted";
    } catch (const RequestError& error) {
        EXPECT_STREQ(error.what(), "--law fp7: accepted is draw, any, fp8, fp8_blocks, epilogue, batch, group, experts, few, quantised, quantised_many");
    }
}

TEST(GemmTraits, BandsAndFeatures) {
    const auto features = [](const GemmProblem& p) {
        std::string out;
        for (const auto& [name, has] : gemm_traits(p).features) out += has ? '1' : '0';
        return out;
    };
    EXPECT_EQ(gemm_traits(gemm_problem(2048, 64, 64)).band, "M >= 2048");
    EXPECT_EQ(gemm_traits(gemm_problem(2047, 64, 64)).band, "M 128 .. 2047");
    EXPECT_EQ(gemm_traits(gemm_problem(127, 64, 64)).band, "M < 128");
    EXPECT_EQ(features(gemm_problem(4096, 4096, 4096)), "000000");
    EXPECT_EQ(features(gemm_problem(4000, 4096, 4096)), "100000");
    EXPECT_EQ(features(gemm_problem(4096, 4000, 4096)), "010100");  // C's lines of 8000 B
    EXPECT_EQ(features(gemm_problem(4096, 4096, 4072)), "001100");
    EXPECT_EQ(features(gemm_problem(128, 256, 2048)), "000011");
}

}  // namespace
}  // namespace rooftile
