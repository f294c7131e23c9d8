#include "rooftile/measure/verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rooftile {
namespace {

using testing::HasSubstr;

CaseOutcome right() { return {.right = true, .checked = 512, .ratio = 0.25, .bound = 0.5}; }

TEST(WithTraces, NoneLeaveARightOutcomeRight) {
    const CaseOutcome outcome = with_traces(right(), {}, "a[2,3]; random case, seed 1");
    EXPECT_TRUE(outcome.right);
    EXPECT_EQ(outcome.ratio, 0.25);
    EXPECT_EQ(outcome.failure, "");
}

TEST(WithTraces, WritingOutsideIsWrong) {
    const CaseOutcome outcome = with_traces(right(), {.touched = 3}, "here");
    EXPECT_FALSE(outcome.right);
    EXPECT_THAT(outcome.failure, HasSubstr("3 bytes outside the outputs were written (here)"));
}

TEST(WithTraces, ChangingInputsIsWrong) {
    const CaseOutcome outcome = with_traces(right(), {.inputs_changed = true}, "here");
    EXPECT_FALSE(outcome.right);
    EXPECT_THAT(outcome.failure, HasSubstr("an input was changed"));
}

TEST(WithTraces, AFailureIsToldWithItsPlace) {
    CaseOutcome wrong = right();
    wrong.right = false, wrong.failure = "1 of 512 elements";
    EXPECT_EQ(with_traces(wrong, {.touched = 3}, "here").failure, "1 of 512 elements (here)");
}

// right together, right alone, disturbs others
TEST(Faulty, IsWhoIsWrongAloneOrWithoutAReason) {
    const LaunchEvidence right{true, true, false}, wrong{false, false, false}, disturbs{false, false, true},
        only_together{false, true, false};
    EXPECT_EQ(faulty({right, wrong, right}), (std::vector<bool>{false, true, false}));
    // What fails beside one who writes elsewhere, and not alone, is its victim.
    EXPECT_EQ(faulty({only_together, disturbs, right}), (std::vector<bool>{false, true, false}));
    // None is faulty alone: a result that is wrong now and then is wrong.
    EXPECT_EQ(faulty({only_together, right, wrong}), (std::vector<bool>{true, false, true}));
    EXPECT_EQ(faulty({disturbs}), std::vector<bool>{true});
}

TEST(Verification, APlanIsWrongWhereAnotherLaunchOfItIs) {
    const Verification right{.random = true}, wrong{.random = false, .failure = "a[0,0]"};
    Verification plan = right;
    plan.blame(right, "launched otherwise");
    EXPECT_TRUE(plan.ok());
    plan.blame(wrong, "launched otherwise");
    EXPECT_TRUE(plan.wrong());
    EXPECT_EQ(plan.failure, "launched otherwise: a[0,0]");
    Verification own{.exact = false, .failure = "a[1,1]"};
    own.blame(wrong, "launched otherwise");
    EXPECT_EQ(own.failure, "a[1,1]");
}

TEST(Absorb, KeepsTheRandomCasesFiguresAndTheFirstFailure) {
    Verification v;
    absorb(v, VerifyCase::exact, {.right = true, .checked = 7, .ratio = 0.9});
    absorb(v, VerifyCase::random, {.right = true, .checked = 512, .undecided = 2, .ratio = 0.4, .bound = 2});
    EXPECT_TRUE(v.ok());
    EXPECT_EQ(v.guards, true);
    absorb(v, VerifyCase::special, {.right = false, .ratio = 8, .bound = 1e14, .failure = "special"});
    EXPECT_EQ(v.max_error, 0.4);
    EXPECT_EQ(v.bound, 2);
    EXPECT_EQ(v.checked_elements, 512);
    EXPECT_EQ(v.undecided_elements, 2);
    EXPECT_EQ(v.random, true);
    EXPECT_EQ(v.special, false);
    EXPECT_EQ(v.failure, "special");
    EXPECT_FALSE(v.ok());
}

TEST(Absorb, AGuardOnceTouchedStaysSo) {
    Verification v;
    absorb(v, VerifyCase::exact, {.right = false, .guarded = false, .failure = "outside"});
    absorb(v, VerifyCase::random, {.right = true});
    EXPECT_EQ(v.guards, false);
    EXPECT_TRUE(v.wrong());
}

TEST(Verification, WhatWasNotComparedIsNoPass) {
    const Verification v;
    EXPECT_FALSE(v.wrong());
    EXPECT_FALSE(v.ok());
}

TensorInfo matrix(std::int64_t rows, std::int64_t columns, std::int64_t pitch, bool transposed = false) {
    TensorInfo t{.name = "x", .type = "bf16", .element_bits = 16, .extents = {}, .strides = {}};
    t.extents = {Extent::of(rows), Extent::of(columns)};
    t.strides = {pitch, 1};
    if (transposed) std::swap(t.extents[0], t.extents[1]), std::swap(t.strides[0], t.strides[1]);
    return t;
}

// NaN where the whole case is of numbers, numbers where NaN may be right.
TEST(OutputPoison, IsNoResultOfItsCase) {
    for (const Type type : {Type::bf16, Type::fp16}) {
        const auto word = [](VerifyCase which) { return output_poison(which) * 0x0101u; };
        EXPECT_EQ(class_of_bits(word(VerifyCase::exact), type), NumberClass::nan);
        EXPECT_EQ(class_of_bits(word(VerifyCase::random), type), NumberClass::nan);
        EXPECT_EQ(class_of_bits(word(VerifyCase::special), type), NumberClass::finite);
        EXPECT_GT(value_of_bits(word(VerifyCase::special), type), 200);  // larger than any of the special case's ordinary ones
    }
    EXPECT_GT(output_poison(VerifyCase::special), 1);  // no flag
    // What timed launches leave is held against the random case's bits, padding included.
    EXPECT_EQ(output_poison(VerifyCase::random), poison);
}

TEST(LayoutOf, KeepsLinesApartWhereThereIsAGap) {
    for (const bool transposed : {false, true}) {
        const TensorLayout l = layout_of(matrix(5, 12, 16, transposed));
        EXPECT_EQ(l.lines, 5);
        EXPECT_EQ(l.line_bytes, 24);
        EXPECT_EQ(l.pitch_bytes, 32);
        EXPECT_EQ(l.bytes(), 4 * 32 + 24);
    }
    const TensorLayout dense = layout_of(matrix(5, 12, 12));
    EXPECT_EQ(dense.lines, 1);
    EXPECT_EQ(dense.bytes(), 120);
    EXPECT_EQ(layout_of(matrix(1, 12, 16)).bytes(), 24);
    EXPECT_EQ(layout_of(matrix(5, 1, 16)).bytes(), 4 * 32 + 2);  // a column: lines of one element
    TensorInfo bits = matrix(1, 9, 9);
    bits.element_bits = 4;
    EXPECT_EQ(layout_of(bits).bytes(), 5);
}

TEST(LayoutOf, TakesLinesOfLinesTogether) {
    TensorInfo t{.name = "x", .type = "fp32", .element_bits = 32, .extents = {}, .strides = {}};
    t.extents = {Extent::of(3), Extent::of(2), Extent::of(5)};
    t.strides = {100, 10, 1};
    EXPECT_EQ(layout_of(t).lines, 2);
    EXPECT_EQ(layout_of(t).blocks, 3);
    EXPECT_EQ(layout_of(t).block_bytes(), 4 * (10 + 5));
    EXPECT_EQ(layout_of(t).bytes(), 4 * (2 * 100 + 10 + 5));
    t.strides = {20, 10, 1};  // blocks without a gap between them but that of lines
    EXPECT_EQ(layout_of(t).lines, 6);
    EXPECT_EQ(layout_of(t).blocks, 1);
    // A fourth axis: gaps belong to the tensor.
    t.extents.insert(t.extents.begin(), Extent::of(2)), t.strides = {1000, 100, 10, 1};
    EXPECT_EQ(layout_of(t).lines, 1);
    EXPECT_EQ(layout_of(t).bytes(), 4 * (1000 + 2 * 100 + 10 + 5));
}

// 512 lines of 16 elements of 2 B are 16 KiB; a guard has 4 KiB at least, 64 MiB at most.
TEST(GuardBytes, HoldTheLargestTile) {
    EXPECT_EQ(guard_bytes(matrix(5, 12, 16)), 512 * 32);
    EXPECT_EQ(guard_bytes(matrix(5, 12, 16, true)), 512 * 32);
    EXPECT_EQ(guard_bytes(matrix(1, 1, 1)), 4096);
    EXPECT_EQ(guard_bytes(matrix(5, 1 << 20, 1 << 20)), 64 << 20);
}

TEST(TensorSets, SetBytesAreAligned) {
    // 112 elements, 224 B; 208, 416 B; 43, 86 B.
    EXPECT_EQ(TensorSets::set_bytes({matrix(5, 16, 24), matrix(7, 16, 32), matrix(5, 7, 9)}), 256 + 512 + 256);
}

}  // namespace
}  // namespace rooftile
