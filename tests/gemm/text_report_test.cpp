// What a reader sees: plans, derivations, measurements and machines as text, kept in tests/golden/.
#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/report/machine_report.hpp"
#include "rooftile/report/measurement.hpp"
#include "rooftile/report/timings.hpp"
#include "rooftile/report/explanation_text.hpp"
#include "rooftile/report/plan_page.hpp"
#include "tests/golden.hpp"
#include "tests/gemm/sample.hpp"

namespace rooftile {
namespace {

std::string text_of(const Plans& plans, Depth depth, const Terminal& terminal, std::span<const Explanation> explanations = {}) {
    return plan_text(gemm_plan_set(plans), {depth, false}, explanations, terminal);
}

TEST(PlanText, Golden) {
    expect_golden("plan.txt", text_of(sample::plans(), Depth::none, {}));
    expect_golden("plan_explain.txt", text_of(sample::plans(), Depth::all, {}));
    expect_golden("plan_explain_narrow_ascii.txt",
                  text_of(sample::plans(), Depth::all, {.utf8 = false, .width = 60}));
    expect_golden("plan_color.txt", text_of(sample::plans(), Depth::all, {.color = true, .width = 100}));
}

TEST(PlanText, SaysWhatOfTheTensorPeakIsReachedWhereAnotherInstructionIsFaster) {
    Plans plans = sample::plans();
    EXPECT_EQ(text_of(plans, Depth::none, {}).find("of tensor peak"), std::string::npos);
    plans.tensor_peak = plans.plans.front().prediction.tflops.value() * 4e12;
    const std::string text = text_of(plans, Depth::none, {});
    EXPECT_NE(text.find("of tensor peak"), std::string::npos) << text;
    EXPECT_NE(text.find("25.0 %"), std::string::npos) << text;
}

TEST(PlanText, GoldenOfTheRoofAndTheEnergy) {
    const std::string text = text_of(sample::plans(), Depth::all, {}, sample::explanations());
    expect_golden("plan_roof.txt", text.substr(text.find("From the roof")));
    const Terminal narrow{.utf8 = false, .width = 60};
    expect_golden("plan_roof_narrow.txt",
                  attainability_text(sample::explanations().front().attainability, 650, narrow)
                      + energy_text(sample::partly_known_energy(), narrow));
}

TEST(PlanText, APlanThatNeverWinsIsToldSo) {
    std::vector<Explanation> explanations = sample::explanations();
    const auto text = [&] { return text_of(sample::plans(), Depth::all, {.width = 200}, explanations); };
    EXPECT_NE(text().find("wins if dram.sustained_read falls below 2.900 TB/s (here 3.24 TB/s), or "
                          "energy.exponent rises above 3.300 (here 2.2), or wgmma.turn falls"),
              std::string::npos)
        << text();
    EXPECT_EQ(text().find("sm.count"), std::string::npos);  // the nearest three
    explanations[1].wins_if = std::vector<Counterfactual>();
    EXPECT_NE(text().find("no single hardware number"), std::string::npos);
    explanations[1].wins_if.reset();
    EXPECT_EQ(text().find("wins"), std::string::npos);
}

// What has no products has no joules a TFLOP, and is measured all the same: 690 W for 650 us.
TEST(PlanText, MeasuredJoulesNeedNoProducts) {
    Measurement row = sample::explained_measurement();
    EXPECT_NE(measurement_text(sample::gpu_context(), {row}, {}).find("measured 0.4485 J, "), std::string::npos);
    row.explanation->energy->joules_per_tflop.reset();
    EXPECT_NE(measurement_text(sample::gpu_context(), {row}, {}).find("measured 0.4485 J\n"), std::string::npos);
}

TEST(PlanText, EnergyStandsWithoutTheRest) {
    std::vector<Explanation> explanations = sample::explanations();
    const std::string text = text_of(sample::plans(), Depth::none, {}, explanations);
    EXPECT_EQ(text.find("From the roof"), std::string::npos);
    EXPECT_NE(text.find("least of the 2 plans kept: plan 2"), std::string::npos);
    explanations[1].energy->total = 0.5;
    EXPECT_NE(text_of(sample::plans(), Depth::none, {}, explanations).find("the least of the 2 plans kept"),
              std::string::npos);
}

/// Microseconds of a column, as printed.
std::vector<double> column(const std::string& text, std::size_t begin, std::size_t length) {
    std::vector<double> numbers;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.size() < begin + length) line.resize(begin + length, ' ');
        std::istringstream cell(line.substr(begin, length));
        if (double number = 0; cell >> number) numbers.push_back(number);
    }
    return numbers;
}

TEST(PlanText, PrintedCostsAddUpToThePrintedTimes) {
    const std::string text = attainability_text(sample::explanations().front().attainability, 651.0004, {});
    const std::vector<double> times = column(text, 18, 13), costs = column(text, 31, 13);
    ASSERT_EQ(times.size(), 7u);  // five steps that cost or say something, prediction, measured
    ASSERT_EQ(costs.size(), 5u);
    double sum = times.front();
    for (double cost : costs) sum += cost;
    EXPECT_EQ(std::lround(sum * 1000), std::lround(times.back() * 1000));
    EXPECT_EQ(times.back(), 651.000);
    EXPECT_NE(text.find("unexplained"), std::string::npos);
}

TEST(PlanText, NoLineIsWiderThanTheTerminal) {
    for (int width : {60, 80, 100, 120, 200}) {
        std::istringstream lines(text_of(sample::plans(), Depth::all, {.width = width}, sample::explanations()));
        for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width) << line;
    }
}

TEST(PlanText, AsciiWhereTheTerminalHasNoUtf8) {
    const std::string text = text_of(sample::plans(), Depth::all, {.utf8 = false});
    for (char c : text) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
    EXPECT_NE(text.find("4096 x 14336 x 4096"), std::string::npos);
}

TEST(PlanText, AMachineFileCannotSteerTheTerminal) {
    Plans plans = sample::plans();
    plans.machine_name = "evil \x1b]0;title\x07";
    plans.notes = {"\x1b[2J"};
    std::vector<Step> steps = plans.plans[0].derivation;
    steps[0].inputs[0].source = "\x1b[31mred";
    plans.plans[0].derivation = steps;
    EXPECT_EQ(text_of(plans, Depth::all, {}).find('\x1b'), std::string::npos);
}

TEST(PlanText, WhyBehindNamesWhatDiffers) {
    const PlanPage page = gemm_operation().page(gemm_plan_set(sample::plans()), {}, {});
    EXPECT_EQ(page.behind[1], "5.0 % slower, no kernel can be built for it yet, wave efficiency 0.900 against 0.970");
    EXPECT_EQ(page.behind[0], "nothing in the model tells it from plan 1");
}

TEST(MeasurementText, Golden) {
    expect_golden("measurement.txt", measurement_text(sample::gpu_context(), {sample::measurement()}, {}));
    expect_golden("measurement_no_result.txt",
                  measurement_text(sample::gpu_context(), {sample::above_roof(), sample::wrong()}, {}));
    expect_golden("measurement_roof.txt",
                  measurement_text(sample::gpu_context(), {sample::explained_measurement()}, {}));
    const std::string ablated = measurement_text(sample::gpu_context(), {sample::ablated_measurement()}, {});
    expect_golden("measurement_ablation.txt", ablated.substr(ablated.find("  What the miss")));
    expect_golden("timings.txt", timings_text({{"compile: kernel", 0.213}, {"first_result", 1.04}}, {}));
}

/// Its rate is FLOP a second whether or not it was timed.
TEST(MeasurementText, WhatWasNotTimedShowsItsPredictedRateInItsUnit) {
    Measurement untimed = sample::measurement();
    untimed.time_us = untimed.time_us_low = untimed.time_us_high = untimed.tflops = untimed.gbytes_per_s = std::nullopt;
    untimed.invalid = "not timed, as asked";
    const std::string text = measurement_text(sample::gpu_context(), {untimed}, {});
    EXPECT_NE(text.find("TFLOP/s\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("GB/s"), std::string::npos) << text;
}

TEST(MeasurementText, WhatIsNoResultShowsItsReasonAndNoFigure) {
    const std::string above = measurement_text(sample::gpu_context(), {sample::above_roof()}, {});
    EXPECT_EQ(above.find("measured  "), std::string::npos);
    EXPECT_NE(above.find("no result: 481036 TFLOP/s is above the roof"), std::string::npos);
    const std::string wrong = measurement_text(sample::gpu_context(), {sample::wrong()}, {});
    EXPECT_NE(wrong.find("FAIL"), std::string::npos);
    EXPECT_EQ(wrong.find("650"), std::string::npos);
}

TEST(MachineText, EveryFactHasItsSource) {
    const Machine machine = machine_by_id("h100-sxm");
    const std::string text = machine_text(machine, {});
    for (const auto& [key, fact] : machine.facts) {
        EXPECT_NE(text.find("  " + key + " "), std::string::npos) << key;
        EXPECT_FALSE(fact.source.empty()) << key;
    }
    EXPECT_EQ(machine_document(sample::context(), machine).at("facts").size(), machine.facts.size());
}

TEST(MachineText, BaseUnits) {
    Fact fact;
    fact.dimension = {.byte = 1, .second = -1};
    EXPECT_EQ(base_unit(fact), "B/s");
    fact.dimension = {.flop = 1, .cycle = -1};
    fact.per = Per::sm;
    EXPECT_EQ(base_unit(fact), "FLOP/cycle/SM");
    fact.per = Per::gpu;
    fact.dimension = {.cycle = 1};
    EXPECT_EQ(base_unit(fact), "cycles");
    fact.dimension = {.cycle = 1, .second = -1};
    EXPECT_EQ(base_unit(fact), "cycle/s");
    fact.dimension = {};
    EXPECT_EQ(base_unit(fact), "");
}

// Both launches with their predictions, and both ratios.
TEST(MeasurementText, AnotherLaunchStandsBesideThePlanned) {
    const std::string text = measurement_text(sample::gpu_context(), {sample::launched_twice()}, {});
    EXPECT_THAT(text, testing::ContainsRegex("without programmatic launch +652.0 us +647.0 us to 657.0 us.* predicted 600."));
    EXPECT_THAT(text, testing::ContainsRegex("without programmatic launch +0.9780  .0.9750 to 0.9820"));
    EXPECT_EQ(measurement_text(sample::gpu_context(), {sample::measurement()}, {}).find("programmatic"), std::string::npos);
}

}  // namespace
}  // namespace rooftile
