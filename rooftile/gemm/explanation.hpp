// What a finished plan can be asked for beyond its derivation: where its time comes from, what it costs in
// energy. Worked out again from the machine on demand; the search does not pay for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/machine/machine.hpp"
#include "rooftile/gemm/counterfactual.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// One step from the datasheet's roof to the predicted time.
struct RoofStep {
    std::string name;           ///< "datasheet_roof", ... "launch", in the order of model/attainability.hpp
    std::int64_t time_ns = 0;   ///< with this step and all before it
    std::int64_t cost_ns = 0;   ///< this step alone; of the first step its time
    std::vector<Input> inputs;  ///< what it came from
    std::string note;           ///< what the numbers do not say: a number that is unknown and not charged
};

/// Joules of one launch at the clock as predicted; empty where an energy is unknown.
struct PlanEnergy {
    std::optional<double> matrix, fill, dram;  ///< J: products, bytes into shared memory, bytes of DRAM
    std::optional<double> idle;                ///< J: static power times the time
    std::optional<double> total;               ///< J
    std::optional<double> watts;               ///< mean
    std::optional<double> joules_per_tflop;    ///< of the problem's FLOP
    std::vector<Input> inputs;                 ///< the machine's energies and powers
    std::vector<std::string> unknown;          ///< those of them that were missed
};

struct Explanation {
    int rank = 0;
    /// The first step is a roof, the last the prediction: its time is `time_us` to the nanosecond. Empty
    /// where the time is unknown, or was not asked for.
    std::vector<RoofStep> attainability;
    std::optional<PlanEnergy> energy;
    /// What would let the plan win; empty where it was not asked for, and for plan 1.
    std::optional<std::vector<Counterfactual>> wins_if;
};

struct ExplainOptions {
    bool attainability = true, energy = false;
    bool counterfactuals = false;  ///< of a whole outcome alone
};

/// For a plan that derive() made for that machine.
Explanation explain(const Machine& machine, const GemmPlan& plan, const ExplainOptions& options = {});
std::vector<Explanation> explain(const Machine& machine, const Plans& plans, const ExplainOptions& options);

/// What the model says of a plan's kernel compiled without a part; empty where a number is unknown.
struct PartPrediction {
    std::optional<double> time_us, clock_mhz;
};
/// At `clock_mhz` where given, else at the clock as predicted. Ablation::nothing: of the whole kernel.
PartPrediction predict_without(const Machine& machine, const GemmPlan& plan, Ablation part,
                               std::optional<double> clock_mhz = {});

}  // namespace rooftile
