// From a request to plans or to the one line that says why there are none, alike for every kind of problem.
#pragma once

#include <nlohmann/json.hpp>
#include <variant>

#include "cli/gemm_arguments.hpp"
#include "cli/output.hpp"
#include "rooftile/error.hpp"

namespace rooftile::cli {

/// derive(), with the target's note among the outcome's notes.
template <class Problem, class Request>
auto derive_for(const Target& target, const Problem& problem, const Request& request) {
    auto outcome = derive(target.machine, problem, request);
    if (!target.note.empty())
        std::visit([&](auto& found) { found.notes.insert(found.notes.begin(), target.note); }, outcome);
    return outcome;
}

/// No plan fits: the one line on stderr, and the document where a format asks for it. Returns exit code 10.
template <class NoPlan>
int report_infeasible(const NoPlan& infeasible, const DocumentContext& context, const OutputFlags& output) {
    const Format format = checked_format(output);
    if (format != Format::text)
        write_result(document_text(plan_document(context, infeasible), format), output);
    say(infeasible.message);
    return int(ExitCode::no_plan);
}

}  // namespace rooftile::cli
