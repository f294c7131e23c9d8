#include "rooftile/measure/ratios.hpp"

namespace rooftile {

void set_times(Measurement& row, const TimedResult& timed) {
    if (!timed.failure.empty()) {
        row.invalid = timed.failure;
        return;
    }
    row.time_us = timed.time_us.median;
    row.time_us_low = timed.time_us.low;
    row.time_us_high = timed.time_us.high;
    row.interval_coverage = timed.time_us.coverage;
    row.samples = timed.time_us.samples;
    row.sm_clock_mhz = timed.sm_clock_mhz;
    row.power_w = timed.gpu.power_w;
}

std::optional<MedianInterval> paired_ratio(const TimedResult& theirs, const TimedResult& ours) {
    return round_ratio(theirs.rounds, ours.rounds);
}

std::optional<Confirmation> confirmation_of(const TimedResult& first, const TimedResult& ours) {
    const auto ratio = round_ratio(first.confirmation, ours.confirmation);
    const auto before = round_ratio(first.rounds, ours.rounds);
    if (!ratio || !before) return std::nullopt;
    return Confirmation{*ratio, before->median};
}

std::optional<double> rank1_ratio(const TimedResult& first, const TimedResult& ours) {
    if (const auto confirmation = confirmation_of(first, ours)) return confirmation->ratio.median;
    if (const auto ratio = paired_ratio(first, ours)) return ratio->median;
    return std::nullopt;
}

}  // namespace rooftile
