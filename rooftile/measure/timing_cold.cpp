// Cold mode: single launches, each behind a kernel that overwrites L2.
#include <algorithm>

#include "rooftile/measure/timer.hpp"
#include "rooftile/units.hpp"

namespace rooftile {

/// Each launch after a kernel that overwrites L2; that kernel lasts longer than the host needs to put the
/// launch and its events behind it, so no host time is measured.
void Timer::run_cold(std::int64_t l2_bytes) {
    const std::int64_t bytes = ceil_div(2 * l2_bytes, 16) * 16;
    const DeviceBuffer lines(static_cast<std::size_t>(bytes));
    double round_us = 0;
    for (const double us : launch_us_) round_us += us + 100;  // the flush: some 200 MB at some TB/s
    const double wanted = options_.cold_seconds * 1e6 * static_cast<double>(works_.size()) / round_us;
    const int rounds = std::clamp(static_cast<int>(std::min(wanted, 1e6)), options_.cold_launches_min,
                                  options_.cold_launches_max);
    constexpr std::size_t warm_up = 3;
    const auto orders = interleaved(works_.size(), static_cast<std::size_t>(rounds) + warm_up, options_.seed);
    for (std::size_t round = 0; round < orders.size(); ++round) {
        check_interrupted();
        if (round == warm_up) sampler_.attribute(0);
        run_cold_round(orders[round], round, lines, round >= warm_up);
    }
    sampler_.attribute(-1);
}

void Timer::run_cold_round(const std::vector<std::size_t>& order, std::size_t round,
                           const DeviceBuffer& lines, bool keep) {
    const std::int64_t set = static_cast<std::int64_t>(round) % options_.sets;
    std::vector<Block> blocks;
    stamp(0);
    for (const std::size_t w : order) {
        if (!competes(w)) continue;
        Block& block = blocks.emplace_back();
        block.work = w;
        // Ahead of the flush, so that nothing of it is left in L2.
        if (works_[w].before) works_[w].before(stream_, {set, 1});
        // A kernel's reads may go last: they would outlive lines that are only overwritten.
        stream_.synchronize();
        reset_persisting_l2();
        kernels_.flush(stream_, lines.address(), static_cast<std::int64_t>(lines.bytes()));
        block.last.start.record(stream_);
        works_[w].launch(stream_, set);
        block.last.stop.record(stream_);
        if (works_[w].after) works_[w].after(stream_, {set, 1});
    }
    stamp(1);
    stream_.synchronize();
    if (!keep) return;
    const auto mhz = clock_mhz(stamp_at(0), stamp_at(1));
    for (const Block& block : blocks) {
        results_[block.work].rounds.push_back({round, elapsed_us(block.last.start, block.last.stop)});
        ++results_[block.work].launches;
        if (mhz) clocks_[block.work].push_back(*mhz);
    }
}

}  // namespace rooftile
