#include "rooftile/gemm/ladder_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/gemm/model.hpp"
#include "rooftile/machine/query.hpp"

namespace rooftile {
namespace {

constexpr int vector_elements = 4;  // fp32 numbers of one 16-byte read of shared memory
constexpr double line_bytes = 128;  // of L1, which hands out one a cycle at 128 B/clk

bool on_cuda_cores(Rung rung) { return rung == Rung::naive || rung == Rung::shared; }
bool by_tma(Rung rung) { return rung >= Rung::wgmma_tma; }

std::string_view family_of(Rung rung) {
    return on_cuda_cores(rung) ? "fma" : rung == Rung::tensor_sync ? "mma_sync" : "wgmma";
}

GemmCandidate tile_of(const LadderConfig& c) {
    GemmCandidate tile{{.tile_m = c.tile_m, .tile_n = c.tile_n, .tile_k = c.tile_k, .cluster_m = c.cluster_m, .ctas_per_sm = c.ctas_per_sm}};
    tile.warp_m = c.block_m, tile.warp_n = c.block_n;
    return tile;
}

/// Rows of A and B that one k-step of a CTA brings from L2, multicast ones shared.
double rows_from_l2(const LadderConfig& c) { return c.tile_m + double(c.tile_n) / c.cluster_m; }

/// Bytes through the port of L1 and shared memory for one k-step of a CTA.
double port_bytes(Rung rung, const LadderConfig& c) {
    const double area = double(c.tile_m) * c.tile_n;
    // A load takes as many cycles as it touches lines; rows of A and B lie in lines of their own.
    if (rung == Rung::naive) return area / warp_threads * (c.block_m + c.block_n) * line_bytes;
    const double loaded = rung == Rung::shared ? (c.tile_m + c.tile_n) * line_bytes : 0;
    const auto [written, read] = shared_step_bytes(tile_of(c), c.staged_bytes);
    return loaded + written + read;
}

/// Warp instructions of one k-step of a CTA on CUDA cores.
double instructions(Rung rung, const LadderConfig& c) {
    const double warps = double(c.consumer_threads) / warp_threads;
    if (rung == Rung::naive) return warps * 5;  // two loads, two conversions, one multiply-add
    const double products = double(c.tile_k) * c.block_m * c.block_n;
    const double reads = double(c.tile_k) * (c.block_m + c.block_n) / vector_elements;
    const double elements = double(c.tile_m + c.tile_n) * c.tile_k / c.consumer_threads;
    // Each element is converted and stored; one load brings a chunk of them.
    return warps * (products + reads + elements * (2 + 1.0 / LadderConfig::chunk_elements));
}

struct BoundedTime {
    double cycles;
    Bound bound;
};
/// The largest; of equals the first.
BoundedTime slowest(std::initializer_list<BoundedTime> candidates) {
    BoundedTime worst = *candidates.begin();
    for (const BoundedTime& b : candidates) {
        if (std::isnan(b.cycles)) return b;
        if (b.cycles > worst.cycles) worst = b;
    }
    return worst;
}

int resident_ctas(const GemmHardware& hw, const LadderConfig& c, double tiles) {
    double ctas = c.ctas_per_sm;
    if (c.stages > 0)
        ctas = min_known(ctas, whole(hw.shared_per_sm / (c.shared_bytes() + hw.shared_reserved)));
    return static_cast<int>(std::max(1.0, min_known(ctas, whole_up(tiles / hw.sms))));
}

std::string units_of(Rung rung) { return on_cuda_cores(rung) ? "CUDA cores" : "matrix units"; }

std::string reason_of(const GemmHardware& hw, Rung rung, const LadderTime& t) {
    const LadderConfig c = ladder_config(rung);
    const LadderStep& s = t.resources;
    switch (t.bound) {
        case Bound::shared:
            if (rung == Rung::naive)
                return fmt::format(
                    "the two loads of a warp touch {} lines of L1, which gives one a cycle: {:.0f} cycles "
                    "for {} "
                    "multiply-adds",
                    c.block_m + c.block_n,
                    port_bytes(rung, c) / line_bytes * warp_threads / c.consumer_threads, warp_threads);
            return fmt::format("shared memory's port is busy {:.0f} cycles a k-step, the {} {:.0f}", s.shared,
                               units_of(rung), s.math);
        case Bound::issue:
            if (s.issue <= s.math) break;
            return fmt::format(
                "reads and conversions take issue slots: {:.0f} cycles a k-step, the {} {:.0f}", s.issue,
                units_of(rung), s.math);
        case Bound::l2:
            return fmt::format(
                "a k-step takes {:.0f} B from L2 at {:.0f} B/clk: {:.0f} cycles, the {} {:.0f}",
                rows_from_l2(c) * c.tile_k * LadderConfig::element_bytes,
                rows_from_l2(c) * c.tile_k * LadderConfig::element_bytes / s.l2, s.l2, units_of(rung),
                s.math);
        case Bound::latency:
            return fmt::format(
                "load, then multiply: {:.0f} + {:.0f} + {:.0f} cycles a k-step, {} CTA{} an SM to fill the "
                "gaps",
                t.latency, s.l2, t.series - t.latency - s.l2, t.ctas_per_sm, t.ctas_per_sm == 1 ? "" : "s");
        case Bound::dram:
            return fmt::format("{:.0f} MB to and from DRAM", t.dram_bytes * 1e-6);
        case Bound::launch:
            return "the launch takes longer than the work";
        case Bound::tensor:
            break;
    }
    return fmt::format("the {} do {:.0f} FLOP/clk: {:.0f} cycles a k-step", units_of(rung),
                       hw.flops_per_cycle, s.math);
}

}  // namespace

std::string_view name_of(Rung rung) {
    constexpr std::string_view names[] = {"naive", "shared", "tensor_sync", "wgmma_tma", "pipelined", "full"};
    return names[static_cast<int>(rung)];
}

std::string label_of(Rung rung) { return fmt::format("{} {}", static_cast<int>(rung) + 1, name_of(rung)); }

std::string_view adds_of(Rung rung) {
    constexpr std::string_view words[] = {"a thread an element", "shared tiles",     "mma.sync, cp.async",
                                          "wgmma, TMA",          "roles, ring of 4", "persistent clusters"};
    return words[static_cast<int>(rung)];
}

LadderStep ladder_step(const GemmHardware& hw, Rung rung) {
    const LadderConfig c = ladder_config(rung);
    const double flops = 2.0 * c.tile_m * c.tile_n * c.tile_k;
    return {.math = flops / hw.flops_per_cycle,
            .issue = on_cuda_cores(rung) ? instructions(rung, c) / hw.issue_slots : 0,
            .shared = port_bytes(rung, c) / hw.shared_bandwidth,
            .l2 = rows_from_l2(c) * c.tile_k * LadderConfig::element_bytes
                  / (std::isnan(hw.l2_share) ? hw.l2_share : min_known(hw.l2_port, hw.l2_share))};
}

LadderTime ladder_time(const GemmHardware& hw, Rung rung, const GemmProblem& p) {
    const LadderConfig c = ladder_config(rung);
    const GemmCandidate tile = tile_of(c);
    const double steps = double(ceil_div(p.k, c.tile_k));
    GemmConfig alone_on_sm = tile;
    alone_on_sm.ctas_per_sm = 1;
    const Waves turns = waves(hw, alone_on_sm, p);

    // Few tiles leave L2 to few SMs, each of which takes what its port lets through.
    GemmHardware shared_out = hw;
    shared_out.l2_share *= hw.sms / min_known(hw.sms, double(turns.tiles));

    LadderTime t{};
    const LadderStep s = t.resources = ladder_step(shared_out, rung);
    const double n = turns.waves;
    t.tiles_per_sm = std::isnan(n) ? 0 : static_cast<std::int64_t>(n);
    t.ctas_per_sm = resident_ctas(hw, c, double(turns.tiles) / c.cluster_m);

    // Hits in L2 are as many as the tile schedule leaves: the first read of a line waits for DRAM.
    const double written = double(p.m) * double(p.n) * bytes_of(p.c_type);
    t.dram_bytes =
        ScheduleTraffic(hw, tile, p).dram(c.group > 0 ? Order::grouped : Order::row, std::max(1, c.group));
    const double missed = (t.dram_bytes - written) / (l2_bytes(tile, p) - written);
    t.latency = rung == Rung::naive ? 0 : hw.l2_latency + missed * (hw.dram_latency - hw.l2_latency);
    if (by_tma(rung)) t.latency += hw.tma_latency;

    const Bound arithmetic = on_cuda_cores(rung) ? Bound::issue : Bound::tensor;
    const BoundedTime compute =
        slowest({{s.math, arithmetic}, {s.issue, Bound::issue}, {s.shared, Bound::shared}});
    const BoundedTime busy = slowest({compute, {s.l2, Bound::l2}});
    t.series = t.latency + s.l2 + compute.cycles;
    const BoundedTime alone = c.stages == 0 ? busy : slowest({busy, {t.series / c.stages, Bound::latency}});

    // Beside others a CTA's gaps are filled; alone on its SM it also shows its first load and its store.
    const double fill = c.stages > 1 ? t.latency + s.l2 : 0;
    const double tile_alone = steps * alone.cycles + store_cycles(hw, tile, p, 0) + (c.group > 0 ? 0 : fill);
    const double together = n * steps * busy.cycles;
    const double in_turn = whole_up(n / t.ctas_per_sm) * tile_alone + (c.group > 0 ? fill : 0);
    const bool gaps = c.stages > 0 && in_turn > together;
    t.bound = gaps ? alone.bound : busy.bound;
    // The gaps that show beside a resource in full use are first loads and stores, not the steps.
    t.step = gaps ? alone.cycles : busy.cycles;
    const double cycles = gaps ? in_turn : together;
    t.seconds = (c.stages > 0 && std::isnan(in_turn) ? in_turn : cycles) / hw.clock_hz;
    const double memory = t.dram_bytes / hw.dram_bandwidth;
    if (!(memory <= t.seconds)) {
        t.seconds = std::isnan(memory) || std::isnan(t.seconds) ? std::nan("") : memory;
        t.bound = Bound::dram;
    }
    if (hw.launch_seconds > t.seconds) t.bound = Bound::launch;
    t.seconds += known_or(hw.launch_seconds, 0);
    return t;
}

LadderPrediction predict_rung(const Machine& machine, Rung rung, const GemmProblem& problem) {
    LadderPrediction out;
    if (!on_cuda_cores(rung)) {
        const char* feature = by_tma(rung) ? "wgmma" : "mma_sync";
        if (machine.lacks(feature)) {
            out.reason = fmt::format("{} has no {}", machine.id, feature);
            return out;
        }
    }
    if (out.reason = obstacle_of(rung, problem); !out.reason.empty()) return out;

    // Power holds wgmma to the sustained clock even where it waits half of the time (docs/facts.md 21).
    const auto sustained = matrix_clock(machine, rate_name_of(problem.a_type));
    const auto clock = !by_tma(rung) ? machine.number<Clock>("clock.boost")
                       : sustained   ? std::optional(sustained->clock)
                                     : std::nullopt;
    const GemmHardware hw = gemm_hardware(machine, family_of(rung), problem.a_type, out.unknown, clock);
    const LadderTime time = ladder_time(hw, rung, problem);
    if (std::isnan(time.seconds)) {
        out.reason = "unknown:";
        for (const std::string& key : out.unknown) out.reason += " " + key;
        return out;
    }
    out.time_us = time.seconds * 1e6;
    out.tflops = problem.flops().value / time.seconds * 1e-12;
    out.clock_mhz = hw.clock_hz * 1e-6;
    out.bound = time.bound;
    out.reason = reason_of(hw, rung, time);
    return out;
}

std::string obstacle_of(Rung rung, const GemmProblem& p) {
    if (p.a_major != Major::k || p.b_major != Major::k)
        return "the ladder's kernels take A and B with K contiguous (--a-major k --b-major k)";
    if (p.lda != p.k || p.ldb != p.k || p.ldc != p.n)
        return "the ladder's kernels take dense operands: lda = ldb = K, ldc = N";
    constexpr int whole_chunk = LadderConfig::chunk_elements;
    if (rung >= Rung::shared && p.k % whole_chunk != 0)
        return fmt::format("K is {}; rows of A and B are read in 16-byte pieces: a multiple of {}", p.k,
                           whole_chunk);
    if (rung >= Rung::pipelined && p.n % whole_chunk != 0)
        return fmt::format("N is {}; C is stored by TMA in 16-byte pieces: a multiple of {}", p.n,
                           whole_chunk);
    return {};
}

}  // namespace rooftile
