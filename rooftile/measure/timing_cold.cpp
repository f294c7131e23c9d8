// Cold mode: single launches, each behind a kernel that overwrites L2.
#include <chrono>

#include "rooftile/elapsed.hpp"
#include "rooftile/measure/timer.hpp"
#include "rooftile/units.hpp"

namespace rooftile {

/// Each launch after a kernel that overwrites L2; that kernel lasts longer than the host needs to put the
/// launch and its events behind it, so no host time is measured.
void Timer::run_cold(std::int64_t l2_bytes) {
    const std::int64_t bytes = ceil_div(2 * l2_bytes, 16) * 16;
    const DeviceBuffer lines(static_cast<std::size_t>(bytes));
    constexpr std::size_t warm_up = 3;
    for (std::size_t round = 0; round < warm_up; ++round) {
        std::vector<std::size_t> all;
        for (std::size_t w = 0; w < works_.size(); ++w)
            if (runs(w)) all.push_back(w);
        run_cold_round(all, round, lines, false);
    }
    const auto start = std::chrono::steady_clock::now();
    sampler_.attribute(any_slot());
    for (auto order = rounds_.next(0); !order.empty(); order = rounds_.next(seconds_since(start))) {
        check_interrupted();
        run_cold_round(order, rounds_.round(), lines, true);
    }
    sampler_.attribute(-1);
    keep_rounds();
}

void Timer::run_cold_round(const std::vector<std::size_t>& order, std::size_t round,
                           const DeviceBuffer& lines, bool keep) {
    const std::int64_t set = static_cast<std::int64_t>(round) % options_.sets;
    std::vector<Block> blocks;
    stamp(0);
    for (const std::size_t w : order) {
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
        rounds_.add(block.work, {round, elapsed_us(block.last.start, block.last.stop)});
        ++results_[block.work].launches;
        if (mhz) clocks_[block.work].push_back(*mhz);
    }
}

}  // namespace rooftile
