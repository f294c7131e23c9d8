#include "rooftile/gemm/export/exports.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>

#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/plan_text.hpp"

namespace rooftile {
namespace {

struct GemmTarget {
    ExportTarget target;
    Exported (*text)(const GemmExport&);
};
constexpr GemmTarget gemm_targets[] = {
    {{"triton", "A Python file: a triton.Config, a kernel that takes it, matmul(a, b), a check next to torch", true}, export_triton},
    {{"vllm-moe", "Block sizes by tokens of a mixture of experts (--groups), as vLLM and SGLang read them", true}, export_vllm_moe},
    {{"cutlass", "A CUTLASS type of the plan and a launcher: 3.x on Hopper, 2.x before"}, export_cutlass},
};

class GemmExports final : public Exports {
  public:
    std::span<const ExportTarget> targets() const override {
        static const auto all = [] {
            std::vector<ExportTarget> targets;
            for (const GemmTarget& t : gemm_targets) targets.push_back(t.target);
            return targets;
        }();
        return all;
    }
    std::span<const Field> fields() const override {
        static const Field own[] = {{"top_k", "N", "vllm-moe: experts that a token goes to; default 8", "Output"}};
        return own;
    }
    Exported exported(std::size_t target, const std::shared_ptr<const Machine>& machine, const Problem& problem, const Own& request,
                      const PlanSet& plans, const Given& given) const override {
        std::vector<const GemmPlan*> typed;
        for (const Plan& plan : plans.plans) typed.push_back(&plan.own.as<GemmPlan>());
        return gemm_targets[target].text({gemm_targets[target].target.name, machine, problem.own.as<GemmProblem>(),
                                          request.as<GemmAsk>().request, std::move(typed), given});
    }
};

}  // namespace

const Exports& gemm_exports() {
    static const GemmExports all;
    return all;
}

std::vector<std::string> lost_features(const GemmProblem& p, const GemmConfig& c, unsigned target) {
    std::vector<std::string> lost;
    const auto check = [&](unsigned have, bool used, std::string what) {
        if (used && !(have & target)) lost.push_back(std::move(what));
    };
    const bool hopper = name_of(c.kernel) == "sm90_gemm";
    check(to_cutlass, hopper, "a producer warpgroup that only loads, and registers moved from it to those that multiply (setmaxnreg)");
    check(to_cutlass, c.schedule == Schedule::pingpong,
          "ping-pong: two warpgroups on two tiles in turns, one stores while the other multiplies");
    check(to_cutlass, c.cluster_m * c.cluster_n > 1,
          fmt::format("clusters of {}x{}, whose CTAs share loads by multicast", c.cluster_m, c.cluster_n));
    check(to_cutlass, c.split_k > 1, fmt::format("split_k {}: CTAs of a cluster that add up parts of K through shared memory", c.split_k));
    check(to_cutlass, c.grid_split_k > 1, fmt::format("grid_split_k {}: pieces of K that add up through a workspace", c.grid_split_k));
    check(to_cutlass, c.swap_ab, "swap_ab: columns of C on the instruction's m");
    check(0, c.order != Order::row && c.order != Order::column && c.order != Order::grouped,
          fmt::format("the order of tiles {}: bands of rows are as near as it gets", order_text(c.order, c.group)));
    check(0, c.overlapped_epilogue, "the store of a tile between the next one's first MMAs (overlapped_epilogue)");
    check(to_triton, hopper && c.ctas_per_sm > 1, fmt::format("{} CTAs an SM: a persistent grid has one", c.ctas_per_sm));
    check(to_cutlass, c.programmatic_launch, "programmatic dependent launch");
    check(0, c.early_weights, "B asked for before the wait for the kernel in front (early_weights)");
    check(0, c.evict_first != EvictFirst{}, "L2 told which operands to drop first (evict_first)");
    check(0, c.pack_a || c.pack_b,
          fmt::format("{} copied to aligned lines first (pack)", c.pack_a && c.pack_b ? "A and B are"
                                                                 : c.pack_a           ? "A is"
                                                                                      : "B is"));
    check(0, c.dynamic_scheduler, "tiles taken from a counter (dynamic_scheduler)");
    check(0, c.reverse, "tiles from the last to the first (reverse)");
    check(to_cutlass, p.promoted(), "sums promoted to fp32 from 128 of K to the next");
    return lost;
}

void refuse_more_than_plain(std::string_view target, const GemmProblem& p) {
    const auto refuse = [&](const char* what) {
        throw RequestError(fmt::format("--to {}: {} is not exported yet; leave it out, or take `rooftile emit`", target, what));
    };
    if (p.epilogue || p.alpha != 1 || p.beta != 0) refuse("an epilogue, alpha, beta or scales");
    if (p.promoted()) refuse("promoted accumulation");
    if (p.is_quantised()) refuse("a product of packed weights");
    if (p.batch > 1) refuse("a batch");
}

std::string filled_template(std::string_view name, const std::vector<std::pair<std::string, std::string>>& values) {
    const std::string path = fmt::format("rooftile/gemm/export/{}", name);
    const auto file = std::ranges::find(embedded_exports(), path, &EmbeddedFile::path);
    assert(file != embedded_exports().end());
    std::string text(file->text);
    for (const auto& [key, value] : values)
        for (std::size_t at = 0; (at = text.find("@" + key + "@", at)) != text.npos; at += value.size())
            text.replace(at, key.size() + 2, value);
    return text;
}

std::string comment_lines(const std::vector<std::string>& lines, std::string_view sign) {
    std::string out;
    for (const std::string& line : lines) {
        std::string_view rest = line;
        const std::size_t indent = std::min(rest.find_first_not_of(' '), rest.size());
        for (bool first = true; first || !rest.empty(); first = false) {
            constexpr std::size_t width = 110;
            std::size_t end = rest.size() <= width ? rest.size() : rest.rfind(' ', width);
            if (end == rest.npos || end <= indent) end = rest.size();
            out += fmt::format("{}{}{}{}\n", sign, rest.empty() ? "" : " ", first ? "" : std::string(indent + 2, ' '), rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    return out;
}

std::string microseconds(std::optional<double> us) {
    if (!us) return "unknown";
    return *us >= 100 ? fmt::format("{:.0f} us", *us) : fmt::format("{:.3g} us", *us);
}

}  // namespace rooftile
