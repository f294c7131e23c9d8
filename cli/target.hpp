// What is planned for, and from a request to plans or to the one line that says why there are none.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/output.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile::cli {

/// What target_of() reads.
std::span<const Field> target_fields();

/// Throws RequestError where --energy is asked of an operation that does not model it.
void check_energy(const Operation& operation, const Given& given);

/// Plans with the target's note among theirs.
PlanSet derive_for(const Target& target, const Problem& problem, const Own& request);

/// No plan fits: the one line on stderr, and the document where a format asks for it. Returns exit code 10.
int report_refusal(const PlanSet& plans, const DocumentContext& context, const OutputFlags& output);

/// The plan that --rank names. Throws RequestError where there is none or it cannot be built.
const Plan& ranked_plan(const PlanSet& plans, const Given& given);

}  // namespace rooftile::cli
