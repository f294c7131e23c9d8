// What GEMM keeps of a measured row beyond what every operation has.
#pragma once

#include <optional>

#include "rooftile/gemm/device/ablation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/measure/measurement.hpp"

namespace rooftile {

struct GemmMeasured {
    std::optional<AblationStudy> ablation;   ///< where it was asked for
};

/// The plan of a row of GEMM.
inline const GemmPlan& gemm_plan(const Measurement& row) { return row.plan.own.as<GemmPlan>(); }
/// A row of that plan with nothing measured.
Measurement gemm_row(GemmPlan plan, Mode mode = Mode::sustained);
/// Gives the row what GEMM keeps of it, and its document what it says of that.
void set_measured(Measurement& row, GemmMeasured measured);
/// Null where nothing was asked for.
const GemmMeasured* gemm_measured(const Measurement& row);

// Keys of the baselines of a row.
inline constexpr std::string_view cublaslt_top1 = "cublaslt_top1", cublaslt_best = "cublaslt_best",
                                  cublaslt_loop = "cublaslt_loop", copy_baseline = "copy";

}  // namespace rooftile
