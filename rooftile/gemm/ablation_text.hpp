// What a kernel takes without each of its parts, beside what the model says, for a terminal.
#pragma once

#include <string>

#include "rooftile/gemm/measurement.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// A table of the whole kernel and of the kernel without each part, and what the miss goes with.
std::string ablation_text(const Measurement& row, const AblationStudy& study, bool valid,
                          const Terminal& terminal);

}  // namespace rooftile
