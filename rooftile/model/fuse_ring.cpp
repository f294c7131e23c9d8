#include "rooftile/model/fuse_ring.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/model/arithmetic.hpp"

namespace rooftile {
namespace {

// Five shuffles, then shared memory with a barrier of the CTA: cycles, as in fuse_launch.
constexpr double shuffles_cycles = 5 * 28, barrier_cycles = 100;
// Accumulators of several values (mean and deviations, greatest and sum) are rescaled at each level of a
// meeting: a chain of e^ or 1/x with the products around it.
constexpr double rescale_cycles = 110;
// A chunk of a walk: its barrier, the way of its first vector into registers, the place of the next. Of an
// H200, as all of these: rows in 4 chunks against 2, in 8 against 4.
constexpr double chunk_cycles = 85;
// Between their barriers warps fill so much of the issue slots and of the special function units: layernorm
// with gelu and dropout, 2048 x 65536 in clusters of 4 and 8, whose difference is half a row's instructions.
constexpr double issue_share = 0.72, mufu_share = 0.82;
// What one warp alone takes longer than that, as a share; of several warps, as much less.
constexpr double alone_share = 0.5;
// L2 latencies that a chunk waits, a vector of its threads, for each tensor that rows share and that is read
// again: the same kernels with and without weights in shared memory.
constexpr double late_weights = 0.4, vector_elements = 8;
// A meeting of CTAs through L2: one tells, all look again and again, and the last of so many is awaited: L2
// latencies. Rows of 1048576 over 32 and 64 CTAs take 6 to 9 thousand cycles more than they compute.
constexpr double far_latencies = 25;
// How sharply a row's computation and its DRAM time, which overlap, turn into the longer of the two. With 12,
// hand-written softmax kernels on an H200 (2048 x 65536 in clusters of 1, 2 and 4: 148.6, 151.5 and 159 us;
// 1024 x 262144 in clusters of 4 and 8: 291 and 279 us) fall in their measured order.
constexpr double sharpness = 12;

/// From the return of the slot that a chunk comes into until a walk wants the chunk: the last walk of a row
/// returns slots while it goes, and as much later the first walk of the next row wants what came into them.
double cycles_ahead(const ProgramWork& work, const RingLaunch& l, double walks, double meeting) {
    if (work.readings < 2) return (l.slots - 1) * walks / l.chunks;
    const double spare = std::max(0.0, l.slots - l.chunks), rows = std::floor(spare / l.chunks);
    const double chunk = walks / 2 / l.chunks;
    return rows * (walks + meeting) + (l.chunks - 1 + spare - rows * l.chunks) * chunk;
}

}  // namespace

double ring_meeting_cycles(const FuseHardware& hw, const ProgramWork& work, const RingLaunch& l) {
    double meeting = 2 * shuffles_cycles + barrier_cycles;  // of a warp, then of the warps' words
    // Words from all to all, then as long as the last of the CTAs needs.
    if (l.far) meeting += shuffles_cycles + barrier_cycles + far_latencies * most_known(hw.l2_latency, 0);
    else if (l.cluster > 1)
        meeting += shuffles_cycles + (1 + std::log2(l.cluster)) * most_known(hw.dsmem_latency, 0);
    const double levels = l.cluster > 1 ? 3 : 2;
    return work.reductions * meeting + (work.meetings - work.reductions) * levels * rescale_cycles;
}

double ring_walks_cycles(const FuseHardware& hw, const Program& p, const ProgramWork& work,
                         const RingLaunch& l) {
    const double issue = issue_cycles(hw, work.online) * double(p.columns) / l.cluster;
    const double mufu = most_known(work.online.mufu * double(p.columns) / l.cluster / hw.mufu_rate, 0);
    constexpr double warp = 32;
    double cycles = std::max(issue / issue_share, mufu / mufu_share) * (1 + alone_share * warp / l.lanes);
    cycles += work.readings * l.chunks * chunk_cycles;
    if (!l.kept) {
        const double vectors = l.chunk_bytes / work.full_bytes / l.lanes / vector_elements;
        cycles += l.chunks * vectors * work.shared_loads * late_weights * most_known(hw.l2_latency, 0);
    }
    return cycles;
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
    const double meeting = ring_meeting_cycles(hw, work, l), walks = ring_walks_cycles(hw, p, work, l);
    const double loaded = hw.loaded_latency * hw.loaded_factor;
    const double ahead = cycles_ahead(work, l, walks, meeting);
    const double row_cycles = walks + meeting, dry = most_known(std::max(0.0, loaded - ahead), 0);
    const double full = (row_cycles + dry) / row_dram;
    if (full > 0) {
        f.time.seconds += f.time.dram * (std::pow(1 + std::pow(full, sharpness), 1 / sharpness) - 1);
        if (full > 1 && f.time.bound == Bound::dram) f.time.bound = dry > 0 ? Bound::latency : Bound::issue;
    }

    // Bytes that come into an SM a cycle, and what is on its way while a chunk comes.
    const double rate = double(bytes.read_bytes) / (f.time.dram * hw.clock_hz * f.ctas);
    f.given = std::min(l.slots * l.chunk_bytes, ahead * rate);
    f.round_cycles = loaded;
    f.needed = loaded * rate;
    f.waves = 1;

    // The last row's meeting and result, half of what it takes, overlap with no loads.
    double ends = loaded - hw.dram_latency + (meeting + row_cycles) / 2 + most_known(hw.cta_start, 0);
    if (l.cluster > 1 && !l.far) ends += cluster_start_cycles(hw, l.cluster);
    f.time.seconds += most_known(ends / hw.clock_hz, 0);
    return f;
}

}  // namespace rooftile
