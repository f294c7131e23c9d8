// The verbs of GEMM that no other operation has, or that are not shared yet.
#pragma once

#include <vector>

#include "cli/verb.hpp"
#include "rooftile/gemm/operation.hpp"

namespace rooftile::cli {

void add_gemm_build(std::vector<Verb>& verbs);
void add_gemm_measure(std::vector<Verb>& verbs);
void add_gemm_simulate(std::vector<Verb>& verbs);
void add_report_ladder(std::vector<Verb>& verbs);
void add_report_recorded(std::vector<Verb>& verbs);

}  // namespace rooftile::cli
