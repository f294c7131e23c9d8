#include "rooftile/measure/schedule.hpp"

#include <algorithm>
#include <numeric>

#include "rooftile/measure/statistics.hpp"

namespace rooftile {

std::vector<std::vector<std::size_t>> block_rounds(std::span<const Role> roles, std::size_t rounds,
                                                   std::size_t other_rounds, std::uint64_t seed) {
    std::vector<std::size_t> compared, others;
    for (std::size_t i = 0; i < roles.size(); ++i) {
        if (roles[i] == Role::leader || roles[i] == Role::baseline) compared.push_back(i);
        if (roles[i] == Role::other) others.push_back(i);
    }
    std::vector<std::vector<std::size_t>> result(rounds);
    const auto orders = interleaved(compared.size(), rounds, seed);
    for (std::size_t r = 0; r < rounds; ++r) {
        for (const std::size_t i : orders[r]) result[r].push_back(compared[i]);
    }
    // The passes over the others follow each other through the rounds: of `total` blocks, block b stands in
    // round b * rounds / total.
    other_rounds = std::min(other_rounds, rounds);
    const auto passes = interleaved(others.size(), other_rounds, seed + 1);
    const std::size_t total = others.size() * other_rounds;
    for (std::size_t b = 0; b < total; ++b) {
        result[b * rounds / total].push_back(others[passes[b / others.size()][b % others.size()]]);
    }
    return result;
}

std::vector<bool> kept_baselines(std::span<const double> times, std::size_t fastest, double within) {
    std::vector<std::size_t> order(times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t i) { return times[i] <= 0; });
    std::vector<bool> kept(times.size());
    if (order.empty()) return kept;
    kept[order.front()] = true;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return times[x] < times[y]; });
    for (std::size_t i = 0; i < std::min(fastest, order.size()); ++i)
        if (times[order[i]] <= within * times[order.front()]) kept[order[i]] = true;
    return kept;
}

}  // namespace rooftile
