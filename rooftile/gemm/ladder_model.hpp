// What each rung of the GEMM ladder should take, from a machine's numbers alone. No fitted constant:
// contention, the instructions around the inner loop and the power that traffic costs are left out, and show
// as the ratio of the measured time to this one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm/ladder/ladder_config.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/core/bound.hpp"
#include "rooftile/gemm/hardware.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// "naive", "tensor_sync": the name of a rung and of its kernel.
std::string_view name_of(Rung rung);
/// "1 naive", as tables count.
std::string label_of(Rung rung);
/// What it adds to the one before, in a few words.
std::string_view adds_of(Rung rung);

/// Cycles of one SM for one k-step of one CTA, by resource; 0 where a rung does not use it.
struct LadderStep {
    double math;    ///< the rung's arithmetic units
    double issue;   ///< slots of warp instructions, where the arithmetic is on CUDA cores
    double shared;  ///< the port of L1 and shared memory
    double l2;
};
LadderStep ladder_step(const GemmHardware& hw, Rung rung);

struct LadderTime {
    LadderStep resources;  ///< with L2 shared by as many SMs as have a tile
    double seconds;
    double step;                ///< cycles of a k-step, the slowest resource or the latency
    double series;              ///< cycles of a k-step of a CTA alone: load, then multiply
    double latency;             ///< cycles until a load arrives, beside its transfer
    double dram_bytes;          ///< from and to DRAM
    std::int64_t tiles_per_sm;  ///< of the busiest SM
    int ctas_per_sm;
    Bound bound;
};
/// With n tiles on the busiest SM, c CTAs beside each other and a ring of s stages:
///   step = max(math, issue, shared, l2);  series = latency + l2 + max(math, issue, shared)
///   time = max(n * (K / tile_k) * step, ceil(n / c) * tile alone, DRAM bytes / bandwidth) + launch
/// where a tile alone takes K / tile_k * max(step, series / s), its first load and its store.
LadderTime ladder_time(const GemmHardware& hw, Rung rung, const GemmProblem& problem);

struct LadderPrediction {
    std::optional<double> time_us, tflops, clock_mhz;
    std::optional<Bound> bound;
    std::string reason;                ///< one phrase; why there is no prediction where there is none
    std::vector<std::string> unknown;  ///< the machine's keys that were missed
};

/// At the boost clock, unless the matrix units would then do more FLOP/s than power lets them: what
/// clock.sustained stands for. There are these two clocks and nothing between them: a rung that gains enough
/// to reach the limit is predicted at the lower one, as the planner predicts.
LadderPrediction predict_rung(const Machine& machine, Rung rung, const GemmProblem& problem);

/// Why that rung's kernel cannot compute `problem`: "K is 100; ..."; empty where it can.
std::string obstacle_of(Rung rung, const GemmProblem& problem);

}  // namespace rooftile
