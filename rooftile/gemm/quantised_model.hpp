// Products by packed weights: candidates, time, workspace and derivation of sm90_few_quantised, and what it has in common with the kernel of
// many rows (many_quantised_model.hpp). Time is that of the longest of three units, since CTAs take even shares of all stages and there are no
// waves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/gemm/sm90_few_quantised_config.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/core/plan.hpp"
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
    double launch, packing, fill, dram, unpack, l2, combine, express;  ///< packing: of the launch in front
    double units_a_cta;     ///< stages of a CTA at most
    double busiest_cycles;  ///< of a stage: issue slots, matrix units or shared memory
    Bound busiest = Bound::issue;  ///< which of them, where the kernel says so
    double stage_cycles;    ///< of one CTA alone
    double rest() const { return launch + packing + fill + combine + express; }
};
QuantisedSeconds quantised_seconds(const GemmHardware& hw, const GemmConfig& config,
                                   const GemmProblem& problem, double stages, double clock, double dram);

// Of either kernel, by the configuration.

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
std::vector<Step> quantised_derivation(const GemmContext& context, const Kept& kept);

// What both are made of.

/// Of a load from DRAM amid many: what L2 takes for one, and what DRAM adds to it.
double quantised_load_cycles(const GemmHardware& hw);
/// Stages that keep half as much again in flight as DRAM's rate times the latency takes, of so many bytes of weights in a stage of all of an SM's
/// CTAs: what lies beyond waits in L2 and was no faster.
int quantised_stages_enough(const GemmHardware& hw, double stage_weights);
/// Steps on the weights' bytes and on what rounding to their bits costs.
void add_packed_steps(Derivation& steps, const GemmHardware& hw, const GemmProblem& problem);
void add_quantised_time(Derivation& steps, const GemmProblem& problem, const QuantisedSeconds& seconds, const Kept& kept);
/// What a reader of such plans must know.
std::vector<std::string> quantised_notes(const GemmProblem& problem, const GemmHardware& hw);
/// Of them what is of the weights, whichever kernel multiplies them.
std::vector<std::string> weight_notes(const GemmProblem& problem, const GemmHardware& hw);
/// What neither kernel reads: rows of A that TMA cannot take.
std::optional<Refusal> refuse_rows_of_quantised(const GemmProblem& problem);

}  // namespace rooftile
