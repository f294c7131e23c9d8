// A product's plans for CUTLASS, Triton and the servers that take Triton's block sizes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/core/exports.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

const Exports& gemm_exports();

/// What a target's text is made from.
struct GemmExport {
    std::string_view target;
    std::shared_ptr<const Machine> machine;
    const GemmProblem& problem;
    const GemmRequest& request;
    std::vector<const GemmPlan*> plans;  ///< best first
    const Given& given;
};

// One a target. Each throws RequestError, one line, where it has nothing for the problem.
Exported export_triton(const GemmExport& from);
Exported export_vllm_moe(const GemmExport& from);
Exported export_cutlass(const GemmExport& from);  ///< of plans that are not empty

/// Others that a plan can be exported to, as bits.
enum : unsigned { to_triton = 1, to_cutlass = 2 };
/// Of the plan what `target` cannot express, a line each.
std::vector<std::string> lost_features(const GemmProblem& problem, const GemmConfig& config, unsigned target);
/// Throws RequestError where the problem is more than one product, or one for each group, of plain C.
void refuse_more_than_plain(std::string_view target, const GemmProblem& problem);

/// The embedded text rooftile/gemm/export/NAME with "@KEY@" replaced by the value of each key. Every key of the text must have one.
std::string filled_template(std::string_view name, const std::vector<std::pair<std::string, std::string>>& values);
/// Lines of a comment, no longer than 110 signs.
std::string comment_lines(const std::vector<std::string>& lines, std::string_view sign);
/// Whole microseconds from 100 on, else three digits; "unknown".
std::string microseconds(std::optional<double> us);

}  // namespace rooftile
