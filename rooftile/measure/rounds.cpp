#include "rooftile/measure/rounds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rooftile {
namespace {

bool is_baseline(Role role) { return role == Role::baseline; }
bool is_other(Role role) { return role == Role::other; }
bool is_roof(Role role) { return role == Role::roof; }

}  // namespace

bool is_ours(Role role) { return role == Role::leader || role == Role::other; }

Rounds::Rounds(std::vector<Role> roles, const RoundOptions& options, std::uint64_t seed)
    : roles_(std::move(roles)),
      options_(options),
      random_(seed),
      times_(roles_.size()),
      out_(roles_.size()),
      dropped_(roles_.size()) {}

void Rounds::leave_out(std::size_t work) { out_[work] = true; }

void Rounds::add(std::size_t work, RoundTime time) { times_[work].push_back(time); }

bool Rounds::stands(std::size_t work) const {
    if (out_[work] || dropped_[work]) return false;
    return roles_[work] != Role::aside || (begin_ == 0 && given_ < options_.least);
}

std::vector<std::size_t> Rounds::next(double seconds) {
    drop_slow(is_ours);
    drop_slow(is_baseline);
    std::vector<std::size_t> order;
    if (over(seconds)) return order;
    for (std::size_t w = 0; w < roles_.size(); ++w)
        if (stands(w)) order.push_back(w);
    // Not std::shuffle: its order for a given seed differs between standard libraries.
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_() % i]);
    ++given_;
    return order;
}

std::vector<std::size_t> Rounds::standing(Kind kind) const {
    std::vector<std::size_t> works;
    for (std::size_t w = 0; w < roles_.size(); ++w)
        if (stands(w) && kind(roles_[w])) works.push_back(w);
    return works;
}

std::optional<std::size_t> Rounds::fastest(std::span<const std::size_t> works) const {
    std::optional<std::size_t> best;
    double least = 0;
    for (const std::size_t w : works) {
        std::vector<double> samples;
        for (const RoundTime& t : times_[w]) samples.push_back(t.us);
        if (samples.empty()) continue;
        const double us = median(std::move(samples));
        if (best && us >= least) continue;
        best = w;
        least = us;
    }
    return best;
}

void Rounds::drop_slow(Kind kind) {
    const std::vector<std::size_t> works = standing(kind);
    const auto best = fastest(works);
    if (!best) return;
    std::vector<std::optional<LogRatio>> behind(roles_.size());
    std::vector<double> scatters;  // of one pair
    for (const std::size_t w : works) {
        if (w == *best) continue;
        behind[w] = log_ratio(times_[w], times_[*best]);
        if (behind[w]) scatters.push_back(behind[w]->error * std::sqrt(double(behind[w]->pairs)));
    }
    // Few pairs may agree by chance: none counts as surer than is usual of its kind.
    const double usual = median(std::move(scatters));
    for (const std::size_t w : works) {
        if (!behind[w] || behind[w]->pairs < options_.drop_least || roles_[w] == Role::leader) continue;
        const double error = std::max(behind[w]->error, usual / std::sqrt(double(behind[w]->pairs)));
        dropped_[w] = behind[w]->mean > std::log1p(options_.drop_above)
                      && behind[w]->mean > options_.drop_errors * error;
    }
}

std::optional<double> Rounds::error_of(std::size_t leader) const {
    auto beside = fastest(standing(is_baseline));
    if (!beside) beside = fastest(standing(is_roof));
    if (beside) return ratio_error(times_[*beside], times_[leader]);
    std::vector<RoundTime> unit = times_[leader];
    for (RoundTime& t : unit) t.us = 1;
    return ratio_error(times_[leader], unit);
}

bool Rounds::over(double seconds) const {
    const std::size_t rounds = given_ - begin_;
    if (rounds >= options_.most) return true;
    if (rounds < options_.least) return false;
    return seconds >= options_.seconds || sure();
}

bool Rounds::sure() const {
    for (std::size_t w = 0; w < roles_.size(); ++w) {
        if (!stands(w) || roles_[w] != Role::leader) continue;
        const auto error = error_of(w);
        return error && *error <= options_.error;
    }
    return true;  // nothing is compared
}

void Rounds::begin_again(std::size_t keep) {
    for (const Kind kind : {Kind(is_other), Kind(is_baseline)}) {
        std::vector<std::size_t> left = standing(kind);
        for (std::size_t kept = 0; kept < keep && !left.empty(); ++kept)
            if (const auto next = fastest(left)) std::erase(left, *next);
        for (const std::size_t w : left) dropped_[w] = true;
    }
    for (std::size_t w = 0; w < roles_.size(); ++w)
        if (stands(w) && roles_[w] != Role::aside) times_[w].clear();
    begin_ = given_;
}

}  // namespace rooftile
