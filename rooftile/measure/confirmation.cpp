#include "rooftile/measure/confirmation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rooftile {
namespace {

std::vector<double> paired_ratios(std::span<const RoundTime> theirs, std::span<const RoundTime> ours) {
    std::vector<double> ratios;
    auto other = theirs.begin();
    for (const RoundTime& mine : ours) {
        while (other != theirs.end() && other->round < mine.round) ++other;
        if (other != theirs.end() && other->round == mine.round && mine.us > 0) ratios.push_back(other->us / mine.us);
    }
    return ratios;
}

}  // namespace

std::optional<MedianInterval> round_ratio(std::span<const RoundTime> theirs,
                                          std::span<const RoundTime> ours) {
    std::vector<double> ratios = paired_ratios(theirs, ours);
    if (ratios.empty()) return std::nullopt;
    return median_interval(std::move(ratios));
}

std::optional<std::size_t> ahead_of_first(std::span<const std::vector<RoundTime>> rounds, double above) {
    std::optional<std::size_t> fastest;
    double most = above;
    for (std::size_t i = 1; i < rounds.size(); ++i) {
        const auto ratio = round_ratio(rounds[0], rounds[i]);
        if (!ratio || ratio->median <= most) continue;
        most = ratio->median;
        fastest = i;
    }
    return fastest;
}

std::vector<std::size_t> confirmation_order(std::size_t first, std::size_t other, std::size_t round,
                                            std::uint64_t seed) {
    const bool swapped = (round + seed) % 2 == 1;
    return swapped ? std::vector{other, first} : std::vector{first, other};
}

std::optional<LogRatio> log_ratio(std::span<const RoundTime> theirs, std::span<const RoundTime> ours) {
    const std::vector<double> ratios = paired_ratios(theirs, ours);
    if (ratios.size() < 2) return std::nullopt;
    const auto count = static_cast<double>(ratios.size());
    double sum = 0, squares = 0;
    for (const double r : ratios) sum += std::log(r);
    for (const double r : ratios) squares += std::pow(std::log(r) - sum / count, 2);
    return LogRatio{sum / count, std::sqrt(squares / (count - 1) / count), ratios.size()};
}

std::optional<double> ratio_error(std::span<const RoundTime> theirs, std::span<const RoundTime> ours) {
    const auto ratio = log_ratio(theirs, ours);
    if (!ratio) return std::nullopt;
    return std::sqrt(std::acos(0.0)) * ratio->error;  // of normal samples the median's is sqrt(pi / 2) times the mean's
}

bool confirmation_over(std::span<const RoundTime> first, std::span<const RoundTime> other, double seconds,
                       const ConfirmationOptions& options) {
    const std::size_t pairs = std::min(first.size(), other.size());
    if (pairs >= options.rounds) return true;
    if (pairs < options.least) return false;
    const auto error = ratio_error(first, other);
    return seconds >= options.seconds || (error && *error <= options.error);
}

}  // namespace rooftile
