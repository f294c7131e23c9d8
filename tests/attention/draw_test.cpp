// What the laws of attention draw: the plain one's bounds, and that the other reaches all that a request can say.
#include "rooftile/attention/draw.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "rooftile/attention/operation.hpp"
#include "rooftile/core/sweep.hpp"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr int draws = 1000;

TEST(AttentionDraw, PrefillKeepsItsBounds) {
    Random random(1);
    for (int i = 0; i < draws; ++i) {
        const AttentionProblem p = drawn_attention(random);
        EXPECT_TRUE(p.heads >= 8 && p.heads <= 128 && p.heads % p.kv_heads == 0);
        EXPECT_TRUE(p.queries >= 64 && p.queries <= 32768 && p.queries == p.keys);
        EXPECT_LE(p.batch * p.queries, 1 << 17);
        EXPECT_LE(p.flops(), 2e13);
        EXPECT_FALSE(p.packed() || p.score || p.strides[0]);
    }
}

TEST(AttentionDraw, AnyReachesAllThatARequestSays) {
    Random random(1);
    int packed = 0, strided = 0, scored = 0, together = 0, without_rows = 0, unlike = 0, sums = 0;
    std::set<std::string> scores;
    std::set<std::int64_t> dims;
    for (int i = 0; i < draws; ++i) {
        const AttentionProblem p = drawn_attention(random, {.law = "any"});
        packed += p.packed(), strided += p.strides[0].has_value(), scored += bool(p.score), sums += p.log_sum_exp;
        together += p.packed() && p.strides[0] && p.score;
        for (const std::int64_t length : p.lengths) without_rows += length == 0;
        unlike += p.queries != p.keys;
        if (p.score) scores.insert(p.score->expression);
        dims.insert(p.dim);
        EXPECT_TRUE(p.flops() >= 1e6 && p.flops() <= 2e13);
    }
    for (const int half : {packed, strided, scored, sums}) EXPECT_NEAR(half, draws / 2, 0.08 * draws);
    EXPECT_NEAR(together, draws / 8, 0.05 * draws);
    EXPECT_GT(without_rows, draws / 10);
    EXPECT_GT(unlike, draws / 5);
    EXPECT_EQ(scores.size(), 10u);
    EXPECT_EQ(dims.size(), 32u);
}

// What a suite's file takes.
TEST(AttentionDraw, MeaningsFitTheirLine) {
    for (const char* law : {"draw", "any"}) EXPECT_LE(attention_law({.law = law}).meaning.size(), 200u) << law;
}

// A suite is text: what is drawn is read again as it was.
TEST(AttentionDraw, AnyIsReadAgainFromItsText) {
    Random random(2);
    for (int i = 0; i < 200; ++i) {
        const AttentionProblem p = drawn_attention(random, {.law = "any"});
        const Problem problem{&attention_operation(), Own::of(p)};
        const Problem again = attention_operation().problem(attention_operation().given(problem));
        EXPECT_EQ(again.own.as<AttentionProblem>(), p) << attention_operation().short_name(problem);
    }
}

TEST(AttentionDraw, AnotherLawIsRefusedWithAllNames) {
    try {
        attention_law({.law = "all"});
        FAIL() << "accepted";
    } catch (const RequestError& error) {
        EXPECT_STREQ(error.what(), "--law all: accepted is draw, any, decode");
    }
}

}  // namespace
}  // namespace rooftile
