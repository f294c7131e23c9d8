// Where a predicted time comes from, what a plan costs in energy and what would let it win, for a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/physics/explanation.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// The steps from the datasheet's roof to the prediction, each with its time, what it adds and the numbers it
/// came from; those that add nothing in one line; with `measured_us` what the prediction leaves unexplained.
/// Empty where there are no steps.
std::string attainability_text(const std::vector<RoofStep>& steps, std::optional<double> measured_us,
                               const Terminal& terminal);

/// The same steps as bars, those of less than 1 % together.
std::string roof_bars_text(const std::vector<RoofStep>& steps, const Terminal& terminal);

/// A step's name in words: "measured roof".
std::string roof_step_words(const std::string& name);

/// Joules of one launch by term, mean power and joules a TFLOP; or what is unknown.
std::string energy_text(const Energy& energy, const Terminal& terminal);

/// One of the plans that are shown, the fastest first.
struct NamedPlan {
    std::string label;
    std::optional<double> time_us;  ///< predicted
    std::string why_behind;         ///< what it lost to the first by
};

/// The plan of least energy beside the fastest, in a line; empty where no energy is known.
std::string min_energy_text(std::span<const NamedPlan> plans, std::span<const Explanation> explanations,
                            const Terminal& terminal);

/// One line a plan behind the first: what it lost by. Empty where there is one plan alone.
/// `explanations`, of all plans or none, say of the first two what would let them win: the nearest `wins_if` numbers.
std::string runners_up_text(std::span<const NamedPlan> plans, std::span<const Explanation> explanations,
                            std::size_t wins_if, const Terminal& terminal);

}  // namespace rooftile
