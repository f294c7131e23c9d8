#include "rooftile/model/fuse_ring.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/model/arithmetic.hpp"

namespace rooftile {
namespace {

// Five shuffles, then shared memory with a barrier of the CTA: cycles, as in fuse_launch.
constexpr double shuffles_cycles = 5 * 28, barrier_cycles = 100;
// A chunk of a walk: its barrier, the way of its first vector into registers, the place of the next.
constexpr double chunk_cycles = 60;
// L2 latencies that a chunk waits for each tensor that rows share and that is read again: layernorm on an
// H200, 2048 x 65536 and 1024 x 262144, takes 5.2 and 10.2 us a row where softmax takes 4.2 and 9.3.
constexpr double late_weights = 2;
// A word's way to another CTA through L2, and its reader's next look: L2 latencies.
constexpr double far_latencies = 4;
// Places of a whole cluster are free later than those of one CTA, as in fuse_launch: a doubling.
constexpr double cluster_growth = 0.67;
// Warps beside which one more no longer fills a waiting issue slot: half of the slots are used at so many.
constexpr double half_warps = 1;
// How sharply a row's computation and its DRAM time, which overlap, turn into the longer of the two. With 12,
// hand-written softmax kernels on an H200 (2048 x 65536 in clusters of 1, 2 and 4: 148.6, 151.5 and 159 us;
// 1024 x 262144 in clusters of 4 and 8: 291 and 279 us) fall in their measured order.
constexpr double sharpness = 12;

}  // namespace

double ring_meeting_cycles(const FuseHardware& hw, const ProgramWork& work, const RingLaunch& l) {
    double meeting = 2 * shuffles_cycles + barrier_cycles;  // of a warp, then of the warps' words
    // Words from all to all, then as long as the last of the CTAs needs.
    if (l.far) meeting += shuffles_cycles + barrier_cycles + far_latencies * most_known(hw.l2_latency, 0);
    else if (l.cluster > 1)
        meeting += shuffles_cycles + (1 + std::log2(l.cluster)) * most_known(hw.dsmem_latency, 0);
    return work.reductions * meeting;
}

double ring_row_cycles(const FuseHardware& hw, const Program& p, const ProgramWork& work,
                       const RingLaunch& l) {
    constexpr double warp = 32;
    const double warps = l.lanes / warp;
    const double issue = issue_cycles(hw, work.online) * double(p.columns) / l.cluster;
    const double mufu = most_known(work.online.mufu * double(p.columns) / l.cluster / hw.mufu_rate, 0);
    double waits = work.readings * l.chunks * chunk_cycles;
    if (!l.kept) waits += l.chunks * work.shared_loads * late_weights * most_known(hw.l2_latency, 0);
    return std::max(issue, mufu) * (1 + half_warps / warps) + waits + ring_meeting_cycles(hw, work, l);
}

FuseFlow ring_flow(const FuseHardware& hw, const Program& p, const ProgramWork& work, const FusedBytes& bytes,
                   const RingLaunch& l) {
    FuseFlow f;
    const double elements = double(p.rows) * double(p.columns);
    f.ctas = l.clusters * l.cluster;
    const double rows_each = std::ceil(double(p.rows) / l.clusters);  // of the busiest
    const double uneven = rows_each * l.clusters / std::max(1.0, double(p.rows));

    FuseWork w;
    w.dram_read_bytes = double(bytes.read_bytes);
    w.dram_written_bytes = double(bytes.written_bytes);
    if (!l.kept) w.l2_read_bytes = elements * work.shared_bytes;
    w.cost = elements * work.online;
    w.efficiency = (1 - most_known(hw.drift, 0)) / uneven;
    f.time = fuse_time(hw, w);
    f.dram_bytes = w.dram_read_bytes + w.dram_written_bytes;

    const double row_dram = f.time.dram * hw.clock_hz / rows_each;
    const double row_cycles = ring_row_cycles(hw, p, work, l), full = row_cycles / row_dram;
    if (full > 0) {
        f.time.seconds += f.time.dram * (std::pow(1 + std::pow(full, sharpness), 1 / sharpness) - 1);
        if (full > 1 && f.time.bound == Bound::dram) f.time.bound = Bound::issue;
    }

    // Bytes that come into an SM a cycle, and what is on its way while the row's values meet and until half
    // of its slots are given back: no more than what the row leaves free, unless one walk is all and gives
    // every slot back.
    const double rate = double(bytes.read_bytes) / (f.time.dram * hw.clock_hz * f.ctas);
    const double spare = l.slots - (work.readings > 1 ? std::min(l.chunks, l.slots) : 1);
    const double meeting = ring_meeting_cycles(hw, work, l);
    const double loaded = hw.loaded_latency * hw.loaded_factor;
    f.given = spare * l.chunk_bytes;
    f.round_cycles = loaded + (work.readings > 1 ? (row_cycles + meeting) / 2 : meeting);
    f.needed = f.round_cycles * rate;
    f.waves = 1;
    const double dry = std::max(0.0, f.needed - f.given) / rate;  // cycles a row
    f.time.seconds += most_known(rows_each * dry / hw.clock_hz, 0);
    if (f.given < f.needed && f.time.bound == Bound::dram) f.time.bound = Bound::latency;

    // The last row's meeting and result, half of what it takes, overlap with no loads.
    double ends = loaded - hw.dram_latency + (meeting + row_cycles) / 2 + most_known(hw.cta_start, 0);
    if (l.cluster > 1 && !l.far)
        ends += most_known(hw.cluster_start, 0) * (1 + cluster_growth * (std::log2(l.cluster) - 1));
    f.time.seconds += most_known(ends / hw.clock_hz, 0);
    return f;
}

}  // namespace rooftile
