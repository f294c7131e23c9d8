// From a timing to the figures of a measured GEMM, and the roofs that refuse impossible ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/measure/ratios.hpp"

namespace rooftile {

/// What the hardware allows, to refuse what cannot be. Empty where unknown.
struct Roofs {
    std::optional<double> flops_per_cycle;  ///< of the whole GPU, for one matrix instruction and type
    std::optional<double> dram_bytes_per_s;
    std::optional<double> boost_clock_mhz;  ///< no SM clock is higher
};
/// Of a plan, by the instruction of its kernel.
Roofs roofs_of(const Machine* machine, const GemmPlan& plan, int sms);
/// Of a library that may take any instruction: by the machine's fastest for the problem's types. Without a tensor roof
/// where the machine has an instruction of unknown rate.
Roofs baseline_roofs_of(const Machine* machine, const GemmProblem& problem, int sms);

/// Why `timed` cannot be true of that problem: "above the roof: ..."; empty where no known roof forbids it.
std::string above_roof(const GemmProblem& problem, Mode mode, const TimedResult& timed, const Roofs& roofs);

/// What above_roof() could not compare, one line each: a reader must know it.
std::vector<std::string> unchecked_roofs(Mode mode, const TimedResult& timed, const Roofs& roofs);

/// Fills rates and roof_fraction of a row from `timed`; sets `invalid` where a figure lies above a roof.
void set_figures(Measurement& row, const TimedResult& timed, const Roofs& roofs);

/// The fastest of cuBLASLt's `algorithms` that were never clearly slower and that no roof forbids.
std::optional<std::size_t> best_algorithm(const GemmProblem& problem, Mode mode,
                                          std::span<const TimedResult> algorithms, const Roofs& roofs);

/// The first and the best of cuBLASLt's `algorithms`. One above a roof is left out, with a line in `notes`.
std::vector<Baseline> cublaslt_baselines(const GemmProblem& problem, Mode mode, std::span<const TimedResult> algorithms,
                                         const Roofs& roofs, std::vector<std::string>& notes);

}  // namespace rooftile
