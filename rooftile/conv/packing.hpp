// Images whose channels are outermost: a kernel of its own packs them first, and what that takes.
#pragma once

#include <optional>

#include "rooftile/conv/problem.hpp"
#include "rooftile/core/demand.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Bytes that packing moves: every element of the image read once and written once.
double packing_bytes(const ConvProblem& problem);
/// Bytes of the workspace that hold the packed image, in whole lines: what follows begins on one.
std::int64_t packed_image_bytes(const ConvProblem& problem);
/// The kernel's launch and its bytes through DRAM; empty where the machine does not say. 0 of channels-last images.
std::optional<double> packing_us(const Machine& machine, const ConvProblem& problem);
/// `demand`, of the convolution of the packed image, with the packing.
void add_packing(Demand& demand, const ConvProblem& problem);
Step packing_step(const Machine& machine, const ConvProblem& problem);

}  // namespace rooftile
