#include "rooftile/measure/ratios.hpp"

namespace rooftile {

std::optional<MedianInterval> paired_ratio(const TimedResult& theirs, const TimedResult& ours) {
    return round_ratio(theirs.rounds, ours.rounds);
}

std::optional<Runoff> runoff_of(const TimedResult& first, const TimedResult& ours) {
    const auto ratio = round_ratio(first.runoff, ours.runoff);
    const auto before = round_ratio(first.rounds, ours.rounds);
    if (!ratio || !before) return std::nullopt;
    return Runoff{*ratio, before->median};
}

std::optional<double> rank1_ratio(const TimedResult& first, const TimedResult& ours) {
    if (const auto runoff = runoff_of(first, ours)) return runoff->ratio.median;
    if (const auto ratio = paired_ratio(first, ours)) return ratio->median;
    return std::nullopt;
}

}  // namespace rooftile
