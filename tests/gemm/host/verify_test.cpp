#include "rooftile/gemm/device/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/measure/numbers.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

GemmProblem problem() {
    GemmProblem p;
    p.m = 32, p.n = 16, p.k = 8, p.lda = 8, p.ldb = 8, p.ldc = 24;
    return p;
}

std::vector<VerifyRecord> clean() {
    std::vector<VerifyRecord> records(4);
    records[1].worst.ratio = 0.25;
    records[1].worst.bound = 0.5;
    return records;
}

TEST(JudgeCase, CleanEvidenceIsRight) {
    const CaseOutcome outcome = judge(clean(), problem(), VerifyCase::random);
    EXPECT_TRUE(outcome.right);
    EXPECT_EQ(outcome.ratio, 0.25);
    EXPECT_EQ(outcome.bound, 0.5);
    EXPECT_EQ(outcome.failure, "");
    EXPECT_EQ(outcome.checked, 512);
}

TEST(JudgeCase, WrongElementsAreCountedAndTheWorstIsNamed) {
    std::vector<VerifyRecord> records = clean();
    records[0].wrong = 2, records[0].worst = {3.0, 1.5, 0.125, 4, 5, 0x3f80, 0x3fc0};
    records[3].wrong = 1, records[3].worst = {9.0, 2.0, 0.25, 30, 7, 0x7fff, 0x4000};
    const CaseOutcome outcome = judge(records, problem(), VerifyCase::random);
    EXPECT_FALSE(outcome.right);
    EXPECT_EQ(outcome.wrong, 3);
    EXPECT_EQ(outcome.ratio, 9.0);
    EXPECT_THAT(outcome.failure, HasSubstr("3 of 512 elements"));
    EXPECT_THAT(outcome.failure, HasSubstr("C[30, 7], is NaN (0x7fff) where 2 +- 0.25 rounds to 2"));
}

TEST(JudgeCase, ATileThatErrsTooMuchIsWrongThoughNoElementIs) {
    GemmProblem p = problem();
    p.m = 100;
    std::vector<VerifyRecord> records = clean();
    records[2].wrong_tiles = 1, records[2].worst_tile = {1.25, 0.0025, 0.002, 64, 0};
    records[3].wrong_tiles = 2, records[3].worst_tile = {1.125, 0.00225, 0.002, 0, 0};
    const CaseOutcome outcome = judge(records, p, VerifyCase::random);
    EXPECT_FALSE(outcome.right);
    EXPECT_EQ(outcome.wrong, 0);
    EXPECT_EQ(outcome.wrong_tiles, 3);
    EXPECT_EQ(outcome.tile_ratio, 1.25);
    EXPECT_EQ(outcome.ratio, 0.25);
    EXPECT_THAT(outcome.failure, HasSubstr("3 tiles of C err too much"));
    EXPECT_THAT(outcome.failure, HasSubstr("C[64..99, 0..15], by 0.0025"));
    EXPECT_THAT(outcome.failure, HasSubstr("where 0.002 is allowed"));
}

// Each CTA saw 10^4 elements of w = 10^-6 that err twice as much as they should (in squares): a tile of 64 of them may,
// all 40000 may not.
TEST(JudgeCase, AllOfCTogetherIsJudgedToo) {
    GemmProblem p = problem();
    p.k = 4096;
    std::vector<VerifyRecord> records = clean();
    for (VerifyRecord& r : records) r.errors = 0.011, r.expected = {1e4, 1e-2, 1e-8, 1e-6};
    CaseOutcome outcome = judge(records, p, VerifyCase::random);
    EXPECT_TRUE(outcome.right) << outcome.failure;
    EXPECT_GT(outcome.whole_ratio, 0.9);
    for (VerifyRecord& r : records) r.errors = 0.02;
    outcome = judge(records, p, VerifyCase::random);
    EXPECT_FALSE(outcome.right);
    EXPECT_THAT(outcome.failure, HasSubstr("C errs too much: by 0.00141"));
}

TEST(OffsetOf, AgreesWithTheReferencesStrides) {
    for (const Major a_major : {Major::k, Major::mn}) {
        for (const Major b_major : {Major::k, Major::mn}) {
            GemmProblem p = problem();
            p.lda = p.ldb = 40, p.a_major = a_major, p.b_major = b_major;
            const VerifyArguments v = verify_arguments(p, nullptr, nullptr, nullptr);
            EXPECT_EQ(offset_of(p, Operand::a, 3, 5), 3 * v.a_m_stride + 5 * v.a_k_stride);
            EXPECT_EQ(offset_of(p, Operand::b, 3, 5), 3 * v.b_k_stride + 5 * v.b_n_stride);
            EXPECT_EQ(offset_of(p, Operand::c, 3, 5), 3 * v.c_m_stride + 5);
        }
    }
}

TEST(SpecialValues, LieInsideAndCoverEveryClass) {
    for (const Type type : {Type::bf16, Type::fp16}) {
        GemmProblem p = problem();
        p.a_type = p.b_type = p.c_type = type;
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
            bool nan = false, plus = false, minus = false;
            for (const InjectedValue& injected : special_values(p, seed)) {
                EXPECT_LT(injected.row, injected.operand == Operand::a ? p.m : p.k);
                EXPECT_LT(injected.column, injected.operand == Operand::a ? p.k : p.n);
                EXPECT_GE(injected.row, 0);
                EXPECT_GE(injected.column, 0);
                const NumberClass kind = class_of_bits(injected.bits, type);
                nan |= kind == NumberClass::nan;
                plus |= kind == NumberClass::infinite;
                minus |= kind == NumberClass::negative_infinite;
            }
            EXPECT_TRUE(nan && plus && minus);
        }
    }
}

// The injected product must leave the output type but stay within fp32, whose largest is (2 - 2^-23) x 2^127.
TEST(SpecialValues, TheLargeProductOverflowsTheTypeAlone) {
    for (const Type type : {Type::bf16, Type::fp16}) {
        GemmProblem p = problem();
        p.a_type = p.b_type = p.c_type = type;
        const auto injected = special_values(p, 3);
        EXPECT_EQ(injected[0].column, injected[1].row);  // the same k
        const double product = value_of_bits(injected[0].bits, type) * value_of_bits(injected[1].bits, type);
        EXPECT_GT(product, overflow_threshold(type));
        EXPECT_LT(product, std::numeric_limits<float>::max());
    }
}

}  // namespace
}  // namespace rooftile
