#include "rooftile/fuse/grid_resident_model.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/ring_model.hpp"

namespace rooftile {
namespace {


/// Of all rows together.
struct Pass {
    OpCost cost;  ///< of an element
    double dram_read = 0, dram_written = 0;
    double l2_bytes = 0;  ///< that L2 gives and takes
    double sm_bytes = 0;  ///< that it gives
    double latency = 0;   ///< cycles of the slowest of its loads
};

/// CTAs of the busiest SM, and SMs that have any.
struct Places {
    double ctas, busiest, sms;
};

Places places_of(const FuseHardware& hw, const Program& p, const GridResidentLaunch& l) {
    const double ctas = std::max(1.0, double(p.rows)) * l.cluster;
    return {ctas, whole_up(ctas / hw.sms), std::min(ctas, hw.sms)};
}

/// All SMs wait for the one with the most CTAs.
double pass_cycles(const FuseHardware& hw, const Program& p, const GridResidentLaunch& l,
                   const Places& places, const Pass& pass) {
    const double uneven = places.busiest * places.sms / places.ctas;
    double seconds = dram_seconds(hw, pass.dram_read, pass.dram_written);
    seconds = std::max(seconds, max_known(pass.l2_bytes / hw.l2_bandwidth, 0)) * uneven;
    const double share = places.busiest / places.ctas;  // of the busiest SM
    double memory = seconds * hw.clock_hz;
    memory = std::max(memory, max_known(pass.sm_bytes * share / hw.l2_port, 0));
    memory = std::max(memory, max_known(pass.dram_read * share / hw.sm_bandwidth, 0));
    const double elements = double(p.rows) * double(p.columns) * share;
    const double computing = max_known(issue_cycles(hw, pass.cost) * elements, 0);
    const double special = max_known(pass.cost.mufu * elements / hw.mufu_rate, 0);
    // A warp's iteration: its loads, what they wait for, and its share of what the SM does.
    const double warps = places.busiest * l.threads / warp_threads;
    const double iterations = warps
                              * std::max(1.0, whole_up(double(p.columns) / l.cluster / l.threads
                                                       / l.vectors_per_thread / l.vector_width));
    return iterations
           / mva_throughput(warps, pass.latency, std::max(computing, special) / iterations,
                            memory / iterations);
}

}  // namespace

FuseFlow grid_resident_flow(const FuseHardware& hw, const Program& p, const ProgramWork& work,
                            const FusedBytes& bytes, const GridResidentLaunch& l) {
    const Places places = places_of(hw, p, l);
    const double elements = double(p.rows) * double(p.columns);
    FuseFlow f;
    const double all = elements * l.again_bytes, again = all * (1 - l.held_share);  // from L2
    const double epilogue = elements * (work.full_bytes - l.again_bytes),
                 written = double(bytes.written_bytes);
    // The last pass comes back to a line when it has gone through as much of everything as lay behind the line.
    f.held = std::min(1.0, max_known(hw.l2_all_bytes / (again + epilogue + written), 0));
    const double missed = again * (1 - f.held);
    const double missed_before = std::max(0.0, max_known(again - hw.l2_all_bytes, 0));
    const double before_last = std::max(1, work.readings - 1);

    const double from_l2 = max_known(hw.l2_latency, 0), from_dram = max_known(hw.dram_latency, 0) + from_l2;
    Pass first;
    first.cost = (1 / before_last) * work.online;
    if (work.readings > 1) first.cost += (-1 / before_last) * work.result;
    first.dram_read = first.l2_bytes = first.sm_bytes = all;
    first.latency = from_dram;
    Pass next = first;
    next.dram_read = missed_before;
    next.l2_bytes = next.sm_bytes = again;
    next.latency = from_l2;
    // CTAs read all that rows share, but those of one SM where they have the same part of their rows.
    Pass last;
    const double shared = elements * work.shared_bytes / l.rows_an_sm;
    last.cost = work.result;
    last.dram_read = missed + epilogue + work.other_bytes;
    last.dram_written = written;
    last.sm_bytes = again + epilogue + shared;
    last.l2_bytes = last.sm_bytes + written;
    last.latency = epilogue > 0 ? from_dram : from_l2;

    FuseWork w;
    const double all_missed = work.readings > 1 ? missed + (before_last - 1) * missed_before : 0;
    w.dram_read_bytes = double(bytes.read_bytes) + all_missed;
    w.dram_written_bytes = written;
    w.l2_read_bytes = (work.readings - 1) * again - all_missed + shared;
    w.cost = elements * work.online;
    f.time = fuse_time(hw, w);
    f.dram_bytes = w.dram_read_bytes + written;
    f.ctas = places.ctas;
    f.resident = places.busiest;
    f.waves = 1;
    const double reductions = ring_reduction_cycles(
        hw, work, {.threads_per_row = l.threads, .cluster = l.cluster, .far = true});
    double passes = pass_cycles(hw, p, l, places, first);
    if (work.readings > 1)
        passes += (before_last - 1) * pass_cycles(hw, p, l, places, next) + pass_cycles(hw, p, l, places, last);
    f.round_cycles = hw.loaded_latency;
    f.bytes_in_flight =
        places.busiest * l.threads * l.vectors_per_thread * l.together * l.vector_width * l.again_bytes;
    f.bytes_in_flight_needed = f.round_cycles * hw.read_bandwidth / hw.clock_hz / places.sms;
    // The first CTAs' start and the last stores overlap with nothing; the first load is in the launch.
    const double ends = max_known(f.round_cycles, 0);
    f.ends = max_known(ends / hw.clock_hz, 0);
    f.time.seconds = (passes + reductions + ends) / hw.clock_hz + f.time.launch;
    return f;
}

}  // namespace rooftile
