// A plan's derivation as a story: every step with its formula, its inputs and the limit it met.
#pragma once

#include <string>
#include <vector>

#include "rooftile/core/step.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// What each rule of a search left out, with its reason; empty where none did.
std::string rules_text(const Rejected& rejected, const Terminal& terminal);
/// Steps of any derivation, numbered; what they chose is in `config`, as config_record() has it.
std::string steps_text(const std::vector<Step>& steps, const Record& config, const Terminal& terminal);

}  // namespace rooftile
