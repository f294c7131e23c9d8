#include "rooftile/gemm/device/blame.hpp"

#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/measurement.hpp"

namespace rooftile {
namespace {

// A GPU that does what the model says, at a clock of its own, but for what a test adds.
class BlameAttribution : public testing::Test {
  protected:
    const Machine machine = machine_by_id("h200-sxm");
    Measurement row;
    Blame blame;

    void SetUp() override {
        const auto outcome = derive(machine, gemm_problem(4096, 4096, 4096));
        row = gemm_row(std::get<Plans>(outcome).plans.front());
        measure(LeftOut::nothing, 1, 0);
        blame = Blame{};
        for (LeftOut part : {LeftOut::loads, LeftOut::products, LeftOut::store}) {
            blame.parts.emplace_back().left_out = part;
            measure(part, 1, 0);
        }
    }

    /// Without `part` (of the whole: nothing) at `clock` times the predicted clock it takes `more` us more.
    void measure(LeftOut part, double clock, double more) {
        const double mhz = clock * predict_without(machine, gemm_plan(row), part).clock_mhz.value();
        const double us = predict_without(machine, gemm_plan(row), part, mhz).time_us.value() + more;
        if (part == LeftOut::nothing) {
            row.time_us = us, row.time_us_low = us - 0.1, row.time_us_high = us + 0.1;
            row.samples = 7;
            row.sm_clock_mhz = mhz;
            return;
        }
        PartTime& of_part = blame.parts[std::size_t(part) - 1];
        of_part.time_us = of_part.time_us_low = of_part.time_us_high = us;
        of_part.samples = 7;
        of_part.sm_clock_mhz = mhz;
    }
    const PartTime& part(LeftOut which) const { return blame.parts[std::size_t(which) - 1]; }
};

TEST_F(BlameAttribution, AsPredictedThereIsNothingToBlame) {
    attribute(blame, row, machine);
    EXPECT_EQ(blame.term, "none");
    EXPECT_NEAR(blame.miss_us.value(), 0, 1e-6);
    for (const PartTime& p : blame.parts) EXPECT_NEAR(p.blamed_us.value(), 0, 1e-6);
    EXPECT_NEAR(part(LeftOut::products).predicted_us.value(), part(LeftOut::products).time_us, 1e-6);
}

// Loads that cost 20 us beyond the model: they are gone where there are no loads.
TEST_F(BlameAttribution, APartWhoseAbsenceMendsTheMissIsNamed) {
    for (LeftOut culprit : {LeftOut::loads, LeftOut::products, LeftOut::store}) {
        SetUp();
        measure(LeftOut::nothing, 1, 20);
        for (const LeftOut other : {LeftOut::loads, LeftOut::products, LeftOut::store})
            measure(other, 1, other == culprit ? 1 : 19);
        attribute(blame, row, machine);
        EXPECT_NEAR(blame.miss_us.value(), 20, 1e-6);
        EXPECT_NEAR(part(culprit).blamed_us.value(), 19, 1e-6);
        constexpr const char* names[] = {"", "loads", "products", "store"};
        EXPECT_EQ(blame.term, names[int(culprit)]);
    }
}

TEST_F(BlameAttribution, AFasterKernelThanPredictedIsBlamedAlike) {
    measure(LeftOut::nothing, 1, -20);
    measure(LeftOut::loads, 1, -18);
    measure(LeftOut::products, 1, -20);
    attribute(blame, row, machine);
    EXPECT_EQ(blame.term, "store");
}

TEST_F(BlameAttribution, WhatNoPartMendsIsCommonToAll) {
    measure(LeftOut::nothing, 1, 20);
    for (const LeftOut other : {LeftOut::loads, LeftOut::products, LeftOut::store}) measure(other, 1, 20);
    attribute(blame, row, machine);
    EXPECT_EQ(blame.term, "common");
}

TEST_F(BlameAttribution, AnotherClockIsTheClocksFault) {
    measure(LeftOut::nothing, 0.9, 0);
    for (const LeftOut other : {LeftOut::loads, LeftOut::products, LeftOut::store}) measure(other, 0.9, 0);
    attribute(blame, row, machine);
    EXPECT_EQ(blame.term, "clock");
    EXPECT_NEAR(blame.clock_us.value(), blame.miss_us.value(), 1e-6);
    for (const PartTime& p : blame.parts) EXPECT_NEAR(p.blamed_us.value(), 0, 1e-6);
}

TEST_F(BlameAttribution, WhatIsNoResultBlamesNobody) {
    row.invalid = "above the roof";
    attribute(blame, row, machine);
    EXPECT_EQ(blame.term, "");
    EXPECT_FALSE(blame.miss_us);
    EXPECT_TRUE(part(LeftOut::loads).predicted_us);
    EXPECT_FALSE(part(LeftOut::loads).blamed_us);
}

TEST_F(BlameAttribution, APartThatWasNotTimedIsLeftOut) {
    measure(LeftOut::nothing, 1, 20);
    blame.parts[0].invalid = "does not compile";
    attribute(blame, row, machine);
    EXPECT_FALSE(part(LeftOut::loads).blamed_us);
    EXPECT_TRUE(part(LeftOut::store).blamed_us);
}

}  // namespace
}  // namespace rooftile
