// The verbs of fused expressions that are not shared yet.
#pragma once

#include <vector>

#include "cli/measure_flags.hpp"
#include "cli/verb.hpp"
#include "rooftile/fuse/operation.hpp"
#include "rooftile/fuse/plan.hpp"

namespace rooftile::cli {

void add_fuse_build(std::vector<Verb>& verbs);
void add_fuse_measure(std::vector<Verb>& verbs);

std::vector<FusePlan> fuse_plans(const PlanSet& plans);
/// `measure fuse --suite`: every problem of the file, one row a plan appended to --out as each is done.
int measure_fuse_suite(const MeasureFlags& flags, const Invocation& invocation);

}  // namespace rooftile::cli
