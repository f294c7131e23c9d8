#include "rooftile/gemm/device/ablation.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/gemm/parts.hpp"

namespace rooftile {
namespace {

/// A smaller miss than this share of the time, or one within the interval of the median, has no cause to look
/// for.
constexpr double min_miss = 0.01;
/// Of the miss, that a term must take to be named.
constexpr double min_share = 1.0 / 3;

std::string largest_term(const Measurement& row, const AblationStudy& study) {
    const double miss = *study.miss_us;
    const double predicted = *row.time_us - miss;
    const bool within = row.time_us_low.value_or(predicted) <= predicted
                        && predicted <= row.time_us_high.value_or(predicted);
    if (within || std::abs(miss) < min_miss * predicted) return "none";
    std::string term = "common";
    double most = min_share;
    const auto weigh = [&](std::string_view name, const std::optional<double>& us) {
        if (us && *us / miss > most) most = *us / miss, term = name;
    };
    weigh("clock", study.clock_us);
    for (const PartTime& part : study.parts) weigh(name_of(part.ablated), part.attributed_us);
    return term;
}

}  // namespace

void attribute(AblationStudy& study, const Measurement& row, const Machine& machine) {
    const GemmPlan& plan = gemm_plan(row);
    const bool valid = why_no_result(row).empty() && row.time_us && row.samples > 0;
    const auto at_clock = [&](Ablation part, std::optional<double> clock_mhz) {
        return predict_without(machine, plan, part, clock_mhz).time_us;
    };
    const auto whole = at_clock(Ablation::nothing, row.sm_clock_mhz);
    study.whole_clock_mhz = predict_without(machine, plan, Ablation::nothing).clock_mhz;
    if (valid) study.whole_at_clock_us = whole;
    if (valid && plan.prediction.time_us) {
        study.miss_us = *row.time_us - *plan.prediction.time_us;
        if (whole) study.clock_us = *whole - *plan.prediction.time_us;
    }
    for (PartTime& part : study.parts) {
        const PartPrediction predicted = predict_without(machine, plan, part.ablated);
        part.predicted_us = predicted.time_us;
        part.predicted_clock_mhz = predicted.clock_mhz;
        if (!part.invalid.empty()) continue;
        part.predicted_at_clock_us = at_clock(part.ablated, part.sm_clock_mhz);
        if (!valid || !whole || !part.predicted_at_clock_us) continue;
        part.attributed_us = (*row.time_us - *whole) - (part.time_us - *part.predicted_at_clock_us);
    }
    if (study.miss_us) study.term = largest_term(row, study);
}

}  // namespace rooftile
