// The law of drawn GEMMs: its bounds, its shares, and the first draws of a seed.
#include "rooftile/gemm/draw.hpp"

#include <gtest/gtest.h>

#include <fmt/core.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr int draws = 2000;

std::string text_of(const GemmProblem& p) {
    return fmt::format("{}x{}x{} {}{} {},{},{}", p.m, p.n, p.k, a_major_name(p.a_major),
                       b_major_name(p.b_major), p.lda, p.ldb, p.ldc);
}

std::vector<std::string> first(DrawAlignment alignment) {
    Random random(7);
    std::vector<std::string> out;
    for (int i = 0; i < 5; ++i) out.push_back(text_of(drawn_gemm(random, {alignment})));
    return out;
}

TEST(GemmDraw, ASeedKeepsItsDraws) {
    EXPECT_EQ(
        first(DrawAlignment::plain),
        (std::vector<std::string>{"14x12544x7168 kk 7168,7168,12544", "4x16128x8064 kk 8064,8064,16128",
                                  "138x4864x3456 kk 3456,3456,4864", "7x11968x11840 kk 11840,11840,11968",
                                  "510x8704x4608 kk 4608,4608,8704"}));
    EXPECT_EQ(first(DrawAlignment::any_extents),
              (std::vector<std::string>{"14x12545x7172 mk 77,7172,12591", "3496x1028x519 mk 3496,572,1066",
                                        "55x2891x32198 kn 32253,2951,2891", "6x5895x3332 mn 6,5895,5895",
                                        "68x2880x961 kn 1023,2880,2880"}));
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

TEST(GemmDraw, AnyExtentsAreOfAllKinds) {
    Random random(1);
    int odd = 0, padded = 0, transposed = 0;
    for (int i = 0; i < draws; ++i) {
        const GemmProblem p = drawn_gemm(random, {DrawAlignment::any_extents});
        const std::int64_t more = p.lda - (p.a_major == Major::k ? p.k : p.m);
        EXPECT_TRUE(more >= 0 && more <= 64) << text_of(p);
        odd += p.n % 2 != 0 || p.k % 2 != 0;
        padded += more > 0;
        transposed += p.a_major != Major::k;
    }
    EXPECT_NEAR(odd, 0.75 * draws, 0.1 * draws);
    EXPECT_NEAR(padded, 0.5 * draws, 0.05 * draws);
    EXPECT_NEAR(transposed, 0.5 * draws, 0.05 * draws);
}

TEST(GemmDraw, BaseAddressesAreRefused) { EXPECT_THROW(gemm_law({DrawAlignment::any}), RequestError); }

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
