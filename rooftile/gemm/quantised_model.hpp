// Products of few rows by packed weights: candidates, time, workspace and derivation of sm90_few_quantised. Time is that of the longest of
// three units, since CTAs take even shares of all stages and stand in no waves.
#pragma once

#include <vector>

#include "kernels/gemm/sm90_few_quantised_config.hpp"
#include "rooftile/gemm/derivation.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

struct QuantisedFamily {
    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                   GemmVisitor& visitor) const;
    /// Completes a candidate's tile; the constraint that it violates, if any.
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const;
};

/// The kernel's template parameter for a configuration.
Sm90QuantisedConfig quantised_config(const GemmProblem& problem, const GemmConfig& choices);

/// Seconds by unit, NaN where a number of the machine is unknown. `clock` in Hz, `dram` in bytes.
struct QuantisedSeconds {
    double launch, fill, dram, unpack, l2, combine, express;
    double units_a_cta;     ///< stages of a CTA at most
    double busiest_cycles;  ///< of a stage: issue slots, matrix units or shared memory
    double stage_cycles;    ///< of one CTA alone
    double rest() const { return launch + fill + combine + express; }
};
QuantisedSeconds quantised_seconds(const GemmHardware& hw, const GemmConfig& config,
                                   const GemmProblem& problem, double stages, double clock, double dram);
GemmTime quantised_time(const GemmHardware& hw, const GemmConfig& config, const GemmProblem& problem,
                        double stages, double clock, double dram);

/// CTAs of a launch: as many as fit at once, at most one a stage. 0 where the count of SMs is unknown.
std::int64_t quantised_ctas(const GemmHardware& hw, const GemmProblem& problem, const GemmConfig& config);

/// Counters of tiles, then fp32 sums of cut tiles; in bytes.
struct QuantisedWorkspace {
    std::int64_t counters = 0, sums = 0;
    std::int64_t bytes() const { return counters + sums; }
};
QuantisedWorkspace quantised_workspace(std::int64_t n, const GemmConfig& config, std::int64_t ctas);
inline QuantisedWorkspace quantised_workspace(const GemmProblem& problem, const GemmConfig& config,
                                              std::int64_t ctas) {
    return quantised_workspace(problem.n, config, ctas);
}

std::vector<Step> quantised_derivation(const GemmContext& context, const Kept& kept);

}  // namespace rooftile
