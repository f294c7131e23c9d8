#include "rooftile/fuse/columns_model.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"

namespace rooftile {
namespace {

/// Cycles in which `ctas` that are resident together go down their rows.
double wave_cycles(const FuseHardware& hw, const ProgramWork& work, const ColumnsLaunch& l, double ctas, double dram_cycles_a_turn) {
    if (!(ctas > 0)) return 0;
    const double sms = std::min(ctas, hw.sms), warps = ctas / sms * l.threads / warp_threads;
    // Of a warp's turn.
    const double elements = warp_threads * l.vectors_per_thread * l.vector_width;
    const double computing = std::max(max_known(issue_cycles(hw, elements * work.first), 0),
                                      max_known(elements * work.first.mufu / hw.mufu_rate, 0));
    const double into_sm = max_known(elements * work.full_bytes / hw.sm_bandwidth, 0);
    const double memory = std::max(dram_cycles_a_turn * sms, into_sm);
    const double latency = max_known(hw.dram_latency, 0) + max_known(hw.l2_latency, 0);
    return l.turns * warps / mva_throughput(warps, latency, computing, memory);
}

}  // namespace

FuseFlow columns_flow(const FuseHardware& hw, const Program& p, const ProgramWork& work, const FusedBytes& bytes,
                      const ColumnsLaunch& l) {
    FuseWork w;
    w.dram_read_bytes = double(bytes.read_bytes), w.dram_written_bytes = double(bytes.written_bytes);
    // Vectors that two threads take, for one part each, come from L2 again.
    w.l2_read_bytes = 2 * l.partial_bytes + double(bytes.read_bytes) * (1 / l.useful - 1);
    w.cost = double(p.rows) * double(p.columns) / l.useful * work.first;
    FuseFlow f;
    f.time = fuse_time(hw, w);
    f.dram_bytes = w.dram_read_bytes + w.dram_written_bytes;
    f.ctas = l.tiles * l.splits;
    f.resident = std::min(l.ctas_per_sm, std::max(1.0, f.ctas / hw.sms));
    f.waves = f.ctas / (hw.sms * l.ctas_per_sm);
    const double vector_bytes = l.threads * l.vectors_per_thread * l.vector_width * l.useful * work.full_bytes;
    f.bytes_in_flight = std::min(f.resident, f.ctas / hw.sms) * vector_bytes;
    f.round_cycles = max_known(hw.dram_latency, 0) + max_known(hw.l2_latency, 0);
    f.bytes_in_flight_needed = f.round_cycles * hw.read_bandwidth / hw.clock_hz / hw.sms;

    // All that DRAM does, over the turns of all warps.
    const double turns = std::max(1.0, f.ctas * l.turns * l.threads / warp_threads);
    const double dram = f.time.dram * hw.clock_hz / turns;
    const double slots = hw.sms * l.ctas_per_sm, full = std::floor(f.waves);
    double cycles = full > 0 ? full * wave_cycles(hw, work, l, slots, dram) : 0;
    cycles += wave_cycles(hw, work, l, f.ctas - full * slots, dram);
    const double passes = cycles / hw.clock_hz;
    if (f.time.bound == Bound::dram && passes > 2 * f.time.dram) f.time.bound = Bound::latency;
    // The first CTAs' start and loads and the last stores overlap with nothing, nor does what ends the last CTA.
    double ends = max_known(2 * hw.loaded_latency + hw.dram_latency, 0) + hw.fit.reduction;
    if (l.gather_turns > 0) {
        // What another SM has just written is as far as DRAM: what each leaves, and every turn of what the last one takes; the
        // count is in L2. All of a tile's sums go into one SM.
        const double far = max_known(hw.dram_latency, 0);
        const double into_sm = max_known(l.partial_bytes / l.tiles / hw.l2_port, 0);
        ends += far + max_known(hw.l2_latency, 0) + std::max(l.gather_turns * far, far + into_sm) + hw.fit.reduction;
    }
    f.ends = max_known(ends / hw.clock_hz, 0);
    const double working = std::max({passes, f.time.dram, max_known(f.time.l2, 0)});
    if (f.time.launch > working) f.time.bound = Bound::launch;
    f.time.seconds = working + f.time.launch + f.ends;
    return f;
}

}  // namespace rooftile
