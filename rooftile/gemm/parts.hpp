// The time of a GEMM kernel compiled without one of its parts, for comparison with what such a kernel takes.
#pragma once

#include <optional>
#include <string_view>

#include "rooftile/gemm/attainability.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

std::string_view name_of(Ablation part);

/// Of the whole kernel where nothing is left out. With the SMs at `clock` Hz, else at the clock that power
/// leaves to what is left. Without loads nothing but C crosses L2 and DRAM, and shared memory is read alone;
/// without products it is written alone; without the store C costs nothing behind the sums. What a tile costs
/// beside these, and the least k-step, stay.
GemmTime time_without(Ablation part, const TiledGemm& gemm, std::optional<double> clock = {});

/// What the model says of a plan's kernel compiled without a part; empty where a number is unknown.
struct PartPrediction {
    std::optional<double> time_us, clock_mhz;
};
/// At `clock_mhz` where given, else at the clock as predicted. Ablation::nothing: of the whole kernel.
PartPrediction predict_without(const Machine& machine, const GemmPlan& plan, Ablation part,
                               std::optional<double> clock_mhz = {});

}  // namespace rooftile
