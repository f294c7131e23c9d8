#include "rooftile/fuse/ring_model.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {
namespace {

/// From the return of the slot that a chunk comes into until a pass wants the chunk: the last pass of a row
/// returns slots while it goes, and as much later the first pass of the next row wants what came into them.
double cycles_ahead(const ProgramWork& work, const RingLaunch& l, double passes, double reduction) {
    if (work.readings < 2) return (l.slots - 1) * passes / l.chunks;
    const double spare = std::max(0.0, l.slots - l.chunks), rows = std::floor(spare / l.chunks);
    const double chunk = passes / 2 / l.chunks;
    return rows * (passes + reduction) + (l.chunks - 1 + spare - rows * l.chunks) * chunk;
}

/// Cycles of an SM for what a CTA computes at `cost` an element of its part of a row.
double computing(const FuseHardware& hw, const OpCost& cost, const Program& p, const RingLaunch& l) {
    const double elements = double(p.columns) / l.cluster;
    // A CTA's warps are few, and each waits for its last result before it goes on.
    const double one_by_one = cost.issue * hw.arithmetic_latency / l.threads_per_row;
    const double issue = max_known(issue_cycles(hw, cost), one_by_one) * elements;
    const double mufu = max_known(cost.mufu * elements / hw.mufu_rate, 0);
    return std::max(issue, mufu);
}

}  // namespace

double ring_reduction_cycles(const FuseHardware& hw, const ProgramWork& work, const RingLaunch& l) {
    double cycles = hw.fit.reduction;
    // Words from all to all, through L2, where one CTA tells and all look again and again until the last of so many has
    // come, or from one shared memory to another.
    if (l.far) cycles += hw.fit.grid_reduction * max_known(hw.l2_latency, 0);
    else if (l.cluster > 1) cycles += max_known(hw.dsmem_latency, 0);
    return work.reductions * cycles;
}

double ring_passes_cycles(const FuseHardware& hw, const Program& p, const ProgramWork& work,
                          const RingLaunch& l) {
    return computing(hw, work.online, p, l) + work.readings * l.chunks * hw.fit.ring_chunk;
}

RingEpilogue ring_epilogue(const FuseHardware& hw, const Program& p, const ProgramWork& work,
                           const RingLaunch& l, double row_dram) {
    const bool weights = !l.kept && work.shared_loads > 0;
    if (l.epilogue_bytes == 0 && !weights) return {};
    // Who only stores has the whole row's time for it.
    const double chunk = computing(hw, l.reduction_threads > 0 ? work.online : work.result, p, l) / l.chunks
                         + hw.fit.ring_chunk;
    const double stores = row_dram / l.chunks;
    const double loads = stores / l.vectors_per_thread + max_known(hw.l2_latency, 0);
    const double draining = max_known(std::max(0.0, stores - chunk), 0);
    return {l.chunks * draining, l.chunks * max_known(std::max(0.0, loads - chunk) - draining, 0)};
}

double specialised_reduction_cycles(const FuseHardware& hw, const Program& p, const ProgramWork& work,
                                    const RingLaunch& l, double storing, double loaded) {
    RingLaunch reducers = l;
    reducers.threads_per_row = l.reduction_threads;
    const double reduction = ring_reduction_cycles(hw, work, reducers);
    // Each of their warps issues one instruction a cycle.
    const double elements = double(p.columns) / l.cluster / l.chunks / l.reduction_threads;
    const double chunk = elements * (work.online.issue - work.result.issue) + hw.fit.ring_chunk;
    // Of a row's last chunk: its slot comes back, it arrives, is reduced, and the row's values are reduced.
    const double late_share = std::max(0.0, (2 * l.chunks - l.slots) / l.chunks);
    const double loop = late_share > 0 ? late_share * storing + loaded + chunk + reduction : 0;
    return max_known(std::max(l.chunks * chunk + reduction, loop), 0);
}

FuseFlow ring_flow(const FuseHardware& hw, const Program& p, const ProgramWork& work, const FusedBytes& bytes,
                   const RingLaunch& l) {
    FuseFlow f;
    const double elements = double(p.rows) * double(p.columns);
    f.ctas = l.clusters * l.cluster;
    const double all_rounds = double(p.rows) / l.clusters;
    // Those of the busiest, of as many clusters as then have as many; who takes rows as they come evens many out.
    constexpr double many = 16;
    const bool evens_out = l.dynamic && all_rounds >= many;
    const double rows_each = evens_out ? all_rounds : std::max(1.0, std::ceil(all_rounds));
    const double busy = evens_out ? l.clusters : std::ceil(double(p.rows) / rows_each);
    const double uneven = rows_each * busy / std::max(1.0, double(p.rows));

    FuseWork w;
    w.dram_read_bytes = double(bytes.read_bytes);
    w.dram_written_bytes = double(bytes.written_bytes);
    if (!l.kept) w.l2_read_bytes = elements * work.shared_bytes;
    w.cost = elements * work.online;
    w.efficiency = 1 / uneven;
    f.time = fuse_time(hw, w);
    f.dram_bytes = w.dram_read_bytes + w.dram_written_bytes;

    const double row_dram = f.time.dram * hw.clock_hz / rows_each;
    const double reduction = ring_reduction_cycles(hw, work, l);
    const RingEpilogue epilogue = ring_epilogue(hw, p, work, l, row_dram);
    const bool specialised = l.reduction_threads > 0;
    // Where others reduce meanwhile, a row's reduction is no time lost.
    const double waiting = (specialised ? 0 : reduction) + epilogue.waiting;
    const double passes = ring_passes_cycles(hw, p, work, l);
    // Who only stores waits for DRAM where its stores do, and behind them for weights where those come from L2.
    double row_cycles = waiting + passes + (specialised && l.kept ? 0 : epilogue.draining);
    const double loaded = hw.loaded_latency;
    if (specialised)
        row_cycles = std::max(row_cycles, specialised_reduction_cycles(hw, p, work, l, row_cycles, loaded));
    const double ahead = cycles_ahead(work, l, row_cycles - reduction, reduction);
    const double dry = specialised ? 0 : max_known(std::max(0.0, loaded - ahead), 0);
    const double full = (row_cycles + dry) / row_dram;
    if (full > 0) {
        // What both lose by waiting for one another now and then is less the more rows wait between them.
        const double rows_between =
            specialised ? 1 : std::max(1.0, max_known(ahead - loaded, 0) / row_cycles);
        const double longer = std::max(1.0, full);
        const double together = overlapped({1, full}, hw.fit.overlap_exponent);
        f.time.seconds += f.time.dram * (longer + (together - longer) / rows_between - 1);
        if (full > 1 && f.time.bound == Bound::dram)
            f.time.bound = dry + waiting - reduction + epilogue.draining > 0 ? Bound::latency : Bound::issue;
    }

    // Bytes that come into an SM a cycle, and what is on its way while a chunk comes.
    const double rate = double(bytes.read_bytes) / (f.time.dram * hw.clock_hz * f.ctas);
    const double in_slots = l.chunk_bytes / (l.chunk_bytes + l.epilogue_bytes);
    f.bytes_in_flight =
        std::min(l.slots * l.chunk_bytes, ahead * rate * in_slots) + l.epilogue_bytes;
    f.round_cycles = loaded;
    f.bytes_in_flight_needed = loaded * rate;
    f.waves = 1;

    // The last row's reduction and result, half of what it takes, overlap with no loads.
    double ends = loaded - hw.dram_latency + (reduction + row_cycles) / 2;
    if (l.cluster > 1) ends += cluster_start_cycles(hw, l.cluster);
    f.ends = max_known(ends / hw.clock_hz, 0);
    f.time.seconds += f.ends;
    return f;
}

}  // namespace rooftile
