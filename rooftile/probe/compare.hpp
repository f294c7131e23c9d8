// Two probes of the same GPU side by side: do they agree within the spread that they state?
#pragma once

#include <string>
#include <vector>

#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// One number of both; NaN where a probe has none.
struct ProbedTwice {
    std::string probe, name, unit;
    bool of_machine = false;  ///< has a key of machine files
    double first = 0, second = 0;
    double spread = 0;  ///< of both together

    /// No further apart than that, or than the half of a thousandth that the figures are written to.
    bool agree() const;
};

/// The numbers of two documents `rooftile/probe/1`, in the order of the first. Throws RequestError where one
/// is no such document, or where they are of different GPUs.
std::vector<ProbedTwice> compare_probes(const Json& first, const Json& second);

/// Of those with a key of machine files, the ones that do not agree; others are shown and decide nothing.
std::vector<ProbedTwice> disagreements(const std::vector<ProbedTwice>& numbers);

std::string compared_text(const std::vector<ProbedTwice>& numbers, const Terminal& terminal);

}  // namespace rooftile
