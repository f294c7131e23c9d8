// The numbers behind a finished plan, as the search had them. For the plan station's own sources.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "rooftile/core/operation.hpp"
#include "rooftile/gemm/attainability.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/search.hpp"

namespace rooftile {

struct PlanEvaluation {
    TiledGemm gemm;
    std::string family;  ///< of the matrix instruction: "wgmma", "mma_sync", "generic"
    OrderChoice order;
    Following following;
    PackedOperands packed;
    GemmTime time;  ///< the predicted one, at its clock
};

/// Empty where the constraints of that machine do not let the plan pass: it was made for another.
std::optional<PlanEvaluation> evaluate_plan(const Machine& machine, const GemmPlan& plan);

/// How those plans run on machines with other numbers: they are evaluated once.
Predictor gemm_predictor(const Machine& machine, std::span<const Plan> plans);

/// The same tiling where the machine's numbers are `hw`: its traffic changes as the closed form of its order
/// does, where there is one.
PlanEvaluation on_hardware(const GemmHardware& hw, const PlanEvaluation& evaluation);

}  // namespace rooftile
