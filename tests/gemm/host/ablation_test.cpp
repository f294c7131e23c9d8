#include "rooftile/gemm/device/ablation.hpp"

#include <gtest/gtest.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/measurement.hpp"
#include "rooftile/gemm/parts.hpp"

namespace rooftile {
namespace {

// A GPU that does what the model says, at a clock of its own, but for what a test adds.
class AblationAttribution : public testing::Test {
  protected:
    const Machine machine = machine_by_id("h200-sxm");
    Measurement row;
    AblationStudy study;

    void SetUp() override {
        const auto outcome = derive(machine, gemm_problem(4096, 4096, 4096));
        row = gemm_row(std::get<Plans>(outcome).plans.front());
        measure(Ablation::nothing, 1, 0);
        study = AblationStudy{};
        for (Ablation part : {Ablation::loads, Ablation::products, Ablation::store}) {
            study.parts.emplace_back().ablated = part;
            measure(part, 1, 0);
        }
    }

    /// Without `part` (of the whole: nothing) at `clock` times the predicted clock it takes `more` us more.
    void measure(Ablation part, double clock, double more) {
        const double mhz = clock * predict_without(machine, gemm_plan(row), part).clock_mhz.value();
        const double us = predict_without(machine, gemm_plan(row), part, mhz).time_us.value() + more;
        if (part == Ablation::nothing) {
            row.time_us = us, row.time_us_low = us - 0.1, row.time_us_high = us + 0.1;
            row.samples = 7;
            row.sm_clock_mhz = mhz;
            return;
        }
        PartTime& of_part = study.parts[std::size_t(part) - 1];
        of_part.time_us = of_part.time_us_low = of_part.time_us_high = us;
        of_part.samples = 7;
        of_part.sm_clock_mhz = mhz;
    }
    const PartTime& part(Ablation which) const { return study.parts[std::size_t(which) - 1]; }
};

TEST_F(AblationAttribution, AsPredictedThereIsNothingToAttribute) {
    attribute(study, row, machine);
    EXPECT_EQ(study.term, "none");
    EXPECT_NEAR(study.miss_us.value(), 0, 1e-6);
    for (const PartTime& p : study.parts) EXPECT_NEAR(p.attributed_us.value(), 0, 1e-6);
    EXPECT_NEAR(part(Ablation::products).predicted_us.value(), part(Ablation::products).time_us, 1e-6);
}

// Loads that cost 20 us beyond the model: they are gone where there are no loads.
TEST_F(AblationAttribution, APartWhoseAbsenceMendsTheMissIsNamed) {
    for (Ablation culprit : {Ablation::loads, Ablation::products, Ablation::store}) {
        SetUp();
        measure(Ablation::nothing, 1, 20);
        for (const Ablation other : {Ablation::loads, Ablation::products, Ablation::store})
            measure(other, 1, other == culprit ? 1 : 19);
        attribute(study, row, machine);
        EXPECT_NEAR(study.miss_us.value(), 20, 1e-6);
        EXPECT_NEAR(part(culprit).attributed_us.value(), 19, 1e-6);
        constexpr const char* names[] = {"", "loads", "products", "store"};
        EXPECT_EQ(study.term, names[int(culprit)]);
    }
}

TEST_F(AblationAttribution, AFasterKernelThanPredictedIsAttributedAlike) {
    measure(Ablation::nothing, 1, -20);
    measure(Ablation::loads, 1, -18);
    measure(Ablation::products, 1, -20);
    attribute(study, row, machine);
    EXPECT_EQ(study.term, "store");
}

TEST_F(AblationAttribution, WhatNoPartMendsIsCommonToAll) {
    measure(Ablation::nothing, 1, 20);
    for (const Ablation other : {Ablation::loads, Ablation::products, Ablation::store}) measure(other, 1, 20);
    attribute(study, row, machine);
    EXPECT_EQ(study.term, "common");
}

TEST_F(AblationAttribution, AnotherClockIsTheClocksFault) {
    measure(Ablation::nothing, 0.9, 0);
    for (const Ablation other : {Ablation::loads, Ablation::products, Ablation::store})
        measure(other, 0.9, 0);
    attribute(study, row, machine);
    EXPECT_EQ(study.term, "clock");
    EXPECT_NEAR(study.clock_us.value(), study.miss_us.value(), 1e-6);
    for (const PartTime& p : study.parts) EXPECT_NEAR(p.attributed_us.value(), 0, 1e-6);
}

TEST_F(AblationAttribution, WhatIsNoResultIsAttributedToNothing) {
    row.invalid = "above the roof";
    attribute(study, row, machine);
    EXPECT_EQ(study.term, "");
    EXPECT_FALSE(study.miss_us);
    EXPECT_TRUE(part(Ablation::loads).predicted_us);
    EXPECT_FALSE(part(Ablation::loads).attributed_us);
}

TEST_F(AblationAttribution, APartThatWasNotTimedIsLeftOut) {
    measure(Ablation::nothing, 1, 20);
    study.parts[0].invalid = "does not compile";
    attribute(study, row, machine);
    EXPECT_FALSE(part(Ablation::loads).attributed_us);
    EXPECT_TRUE(part(Ablation::store).attributed_us);
}

}  // namespace
}  // namespace rooftile
