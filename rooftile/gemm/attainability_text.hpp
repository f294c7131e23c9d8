// Where a predicted time comes from and what a plan costs in energy, for a terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/gemm/explanation.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// The steps from the datasheet's roof to the prediction, each with its time, what it adds and the numbers it
/// came from; those that add nothing in one line; with `measured_us` what the prediction leaves unexplained.
/// Empty where there are no steps.
std::string attainability_text(const std::vector<RoofStep>& steps, std::optional<double> measured_us,
                               const Terminal& terminal);

/// Joules of one launch by term, mean power and joules a TFLOP; or what is unknown.
std::string energy_text(const PlanEnergy& energy, const Terminal& terminal);

/// The plan of least energy beside the fastest, in a line; empty where no energy is known.
std::string min_energy_text(const Plans& plans, const std::vector<Explanation>& explanations,
                            const Terminal& terminal);

}  // namespace rooftile
