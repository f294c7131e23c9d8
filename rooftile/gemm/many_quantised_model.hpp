// Products of many rows by packed weights: candidates, time, workspace and derivation of sm90_many_quantised. CTAs take whole tiles, and even
// shares of those that are left, so that time is that of the longest of three units, and there are no waves.
#pragma once

#include <vector>

#include "kernels/gemm/sm90_many_quantised_config.hpp"
#include "rooftile/gemm/quantised_model.hpp"

namespace rooftile {

struct ManyQuantisedFamily {
    void enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request, GemmVisitor& visitor) const;
    /// Completes a candidate's tile; the constraint that it violates, if any.
    Constraint examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& candidate) const;
};

/// Whether the configuration, or a candidate of the family, is sm90_many_quantised's.
bool takes_many_rows(const GemmConfig& config);

/// The kernel's template parameter for a configuration; `producer` and `consumer`: registers of the two roles, 0 where a thread keeps what it has
/// at launch.
Sm90ManyQuantisedConfig many_quantised_config(const GemmProblem& problem, const GemmConfig& choices, int producer, int consumer);
Sm90ManyQuantisedConfig many_quantised_config(const GemmPlan& plan);

/// Rows of tiles that follow each other down a column: the run-time argument that the plan's order is.
int quantised_band(const GemmConfig& config, std::int64_t m);

QuantisedSeconds many_quantised_seconds(const GemmHardware& hw, const GemmConfig& config, const GemmProblem& problem, double stages,
                                        double clock, double dram);
std::int64_t many_quantised_ctas(const GemmHardware& hw, const GemmProblem& problem, const GemmConfig& config);
QuantisedWorkspace many_quantised_workspace(const GemmConfig& config, std::int64_t ctas);
std::vector<Step> many_quantised_derivation(const GemmContext& context, const Kept& kept);

}  // namespace rooftile
