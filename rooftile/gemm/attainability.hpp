// How a GEMM's predicted time comes about: from the datasheet's roof to the prediction, one term of the time
// model switched on after the other. Pure functions over plain numbers, as in gemm_time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rooftile/gemm/time.hpp"

namespace rooftile {

/// The terms in the order in which they are switched on. Each is named by what the GPU stops getting free.
enum class Term : std::uint8_t {
    datasheet,  ///< FLOP at the stated peak, or every operand moved once at the stated bandwidth
    measured,   ///< the same at the clock as predicted and the bandwidth as measured
    tiles,      ///< whole tiles and whole k-steps, spread evenly over all SMs
    waves,      ///< by waves, the last one by what it holds, on the SMs that clusters can use
    shared,     ///< shared memory's bandwidth
    l2,         ///< L2's bandwidth, of the GPU and into one SM
    dram,       ///< what L2 does not hold, and what one SM streams
    latency,    ///< k-steps that wait for loads; the least k-step
    turn,       ///< from one tile to the next
    exchange,   ///< sums between parts of K
    epilogue,   ///< C on its way out, where nobody multiplies meanwhile
    fill,       ///< the ring filled, and clusters' CTAs met
    launch,
    packing,  ///< copies of operands that are made first; a step only where some are
};
inline constexpr int term_count = 14;
std::string_view name_of(Term term);

/// FLOP/s and B/s of the GPU as its maker states them; NaN unknown.
struct DatasheetRoof {
    double flops, bytes_per_second;
};

/// One tiling, as gemm_time() takes it.
struct TiledGemm {
    GemmHardware hw;
    GemmCandidate tile;
    GemmProblem problem;
    StepCycles step;
    Waves waves;
    double dram;  ///< B
    int stages;
};

/// Seconds with all terms up to and with `term`, the SMs at `clock` Hz throughout. That of `packing` is
/// gemm_time()'s.
double seconds_with(Term term, const TiledGemm& gemm, const DatasheetRoof& roof, double clock);

/// One step: a term, the time with it and all before it, and what it adds. In whole nanoseconds, so that the
/// first time and all costs behind it add up to the last time exactly.
struct AttainStep {
    Term term;
    std::int64_t time_ns, cost_ns;  ///< of the first step both are its time
};

/// All steps in their order; without `datasheet` where the roof is unknown, without `packing` where nothing is packed;
/// empty where the time is unknown.
std::vector<AttainStep> attainability(const TiledGemm& gemm, const DatasheetRoof& roof, double clock);

}  // namespace rooftile
