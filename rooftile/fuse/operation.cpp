// Fused expressions as the stations see them.
#include "rooftile/fuse/operation.hpp"

#include <algorithm>

#include "rooftile/core/typed_plan.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/declared_space.hpp"
#include "rooftile/fuse/demand.hpp"
#include "rooftile/fuse/draw.hpp"
#include "rooftile/fuse/fields.hpp"
#include "rooftile/fuse/forms.hpp"
#include "rooftile/fuse/known_kernels.hpp"
#include "rooftile/fuse/plan_text.hpp"
#include "rooftile/fuse/predictor.hpp"
#include "rooftile/fuse/records.hpp"
#include "rooftile/fuse/suite.hpp"
#include "rooftile/fuse/suite_report.hpp"

namespace rooftile {
namespace {

TensorInfo tensor(const std::string& name, const GraphNode& node, TensorRole role) {
    TensorInfo t{.name = name, .type = std::string(name_of(node.element)), .element_bits = 8 * bytes_of(node.element),
                 .extents = {}, .strides = {}, .role = role};
    std::int64_t stride = 1;
    for (auto extent = node.shape.rbegin(); extent != node.shape.rend(); ++extent) {
        t.extents.insert(t.extents.begin(), Extent::of(*extent));
        t.strides.insert(t.strides.begin(), stride);
        stride *= *extent;
    }
    return t;
}

void add_operands(Given& given, std::span<const TensorInfo> inputs) {
    constexpr std::int64_t aligned = 256;  // bytes, as allocations are
    std::int64_t alignment = aligned;
    for (const TensorInfo& t : inputs) {
        if (t.name.empty()) throw RequestError("a tensor has no name; an expression knows its tensors by name");
        Shape shape;
        for (const Extent& extent : t.extents) shape.push_back(extent.most);
        std::int64_t dense = 1;
        for (std::size_t axis = shape.size(); axis-- > 0; dense *= shape[axis])
            if (shape[axis] > 1 && t.strides[axis] != dense && elements_of(shape) > 0)
                throw RequestError(t.name + " is not dense, its last axis contiguous; hand over a copy that is");
        given.add("tensor", t.name + ":" + t.type + text_of(shape));
        const std::int64_t off = t.offset * t.element_bits / 8 % aligned;
        if (off != 0) alignment = std::min(alignment, off & -off);
    }
    if (alignment < aligned) given.add_default("alignment", std::to_string(alignment));
}

/// What the plans' text needs beside the plans.
struct Counting {
    FuseTotals fused, unfused;
    std::vector<FuseOperator> operators;
};

class FuseOperation final : public Operation {
  public:
    std::string_view name() const override { return "fuse"; }
    std::string_view meaning() const override { return "A chain of operators as one kernel"; }
    std::string_view example() const override { return "\"y = gelu(x)\" --tensor \"x:bf16[16384,16384]\""; }
    std::span<const Field> fields() const override { return fuse_fields(); }

    Problem problem(const Given& given) const override { return {this, Own::of(fuse_problem(given))}; }
    void add_tensors(Given& given, std::span<const TensorInfo> inputs) const override { add_operands(given, inputs); }
    Own request(const Given& given, const PlanDefaults& defaults) const override {
        return Own::of(fuse_request(given, defaults.top));
    }

    PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem,
                   const Own& request) const override {
        return fuse_plan_set(
            rooftile::derive(*machine, problem.own.as<ExpressionGraph>(), request.as<FuseRequest>()));
    }

    Given given(const Problem& problem) const override { return fuse_given(problem.own.as<ExpressionGraph>()); }
    Record problem_record(const Problem& problem) const override {
        return rooftile::problem_record(problem.own.as<ExpressionGraph>());
    }
    Given given_of_record(const Record& record) const override { return fuse_given(record); }
    std::vector<TensorInfo> tensors(const Problem& problem) const override {
        const auto& p = problem.own.as<ExpressionGraph>();
        std::vector<TensorInfo> out;
        for (int i : p.inputs) out.push_back(tensor(p.nodes[size_t(i)].name, p.nodes[size_t(i)], TensorRole::in));
        for (const GraphOutput& o : p.outputs)
            out.push_back(tensor(o.name, p.nodes[size_t(o.node)], TensorRole::out));
        return out;
    }
    Record config_record(const Plan& plan) const override {
        return rooftile::config_record(plan.own.as<FusePlan>());
    }
    Record resources_record(const Plan& plan) const override {
        return rooftile::resources_record(plan.own.as<FusePlan>().resources);
    }
    Record prediction_record(const Plan& plan) const override {
        return rooftile::prediction_record(plan.own.as<FusePlan>().prediction);
    }
    Demand demand(const Machine&, const Plan& plan) const override { return fuse_demand(plan.own.as<FusePlan>()); }
    bool models_energy() const override { return true; }
    const Facet* facet(const std::type_info& type) const override { return type == typeid(KnownKernels) ? &known_passes() : nullptr; }
    std::string label(const Plan& plan) const override { return label_of(plan.own.as<FusePlan>().config); }

    Predictor predictor(const Machine&, std::span<const Plan> plans) const override { return fuse_predictor(plans); }
    PlanPage page(const PlanSet& plans, std::span<const Explanation>, const Terminal& terminal) const override {
        const auto& counting = plans.own.as<Counting>();
        return fuse_page(plans, counting.operators, counting.unfused, counting.fused, terminal);
    }
    std::string short_name(const Problem& problem) const override { return problem.own.as<ExpressionGraph>().text; }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view machine_name,
                        const Terminal& terminal) const override {
        return fuse_heading_text(problem.own.as<ExpressionGraph>(), machine_id, machine_name, terminal);
    }
    std::vector<FormulaPage> forms() const override { return fuse_forms(); }
    DrawLaw law(const DrawRequest& request) const override { return fuse_law(request); }
    Problem draw(Random& random, const DrawRequest& request) const override {
        return {this, Own::of(request.law == "columns" ? drawn_columns(random) : drawn_expression(random))};
    }
    ProblemTraits traits(const Problem& problem) const override { return fuse_traits(problem.own.as<ExpressionGraph>()); }
    std::string_view space_rule() const override { return fuse_space_rule(); }
    std::span<const std::string_view> space_keys() const override { return fuse_space_keys(); }
    std::vector<Plan> space(const std::shared_ptr<const Machine>& machine, const Problem& problem) const override {
        std::vector<Plan> plans;
        for (FusePlan& plan : fuse_space(*machine, problem.own.as<ExpressionGraph>()))
            plans.push_back(any_plan(std::move(plan), problem));
        return plans;
    }
    Given given_of_config(const Record& config) const override { return fuse_given_of_config(config); }
    Suite suite(std::string_view text, std::string_view file_name) const override {
        return fuse_suite(text, file_name);
    }
    SuiteReporter suite_reporter(SuiteRecord record, const Suite* suite) const override {
        const auto report = std::make_shared<const FuseSuiteReport>(fuse_suite_report(std::move(record), suite));
        return {[report](const Terminal& terminal) { return suite_text(*report, terminal); },
                [report] { return suite_markdown(*report); }, missed_bars(*report)};
    }
    std::string_view baseline() const override { return "copy"; }
    std::span<const std::string_view> baseline_keys() const override {
        static constexpr std::string_view keys[] = {"copy_us", "copy_form", "memcpy_us",
                                                    "read_us", "read_form", "unfused_us"};
        return keys;
    }
};

}  // namespace

Plan any_plan(FusePlan plan, const Problem& problem) {
    std::string kernel = "fuse_" + std::string(name_of(plan.config.form));
    return plan_of(problem, std::move(kernel), std::move(plan));
}

Plan any_plan(FusePlan plan) {
    const Problem problem{&fuse_operation(), Own::of(plan.problem)};
    return any_plan(std::move(plan), problem);
}

const Operation& fuse_operation() {
    static const FuseOperation operation;
    return operation;
}

PlanSet fuse_plan_set(std::variant<FusePlans, FuseInfeasible> outcome) {
    PlanSet out = std::visit([](auto& found) { return plan_set_of(fuse_operation(), found); }, outcome);
    if (auto* plans = std::get_if<FusePlans>(&outcome)) {
        out.unchecked_constraints = std::move(plans->unchecked_constraints);
        out.totals = totals_record(plans->fused, plans->unfused, plans->operators);
        out.own = Own::of(Counting{plans->fused, plans->unfused, std::move(plans->operators)});
        for (FusePlan& plan : plans->plans) out.plans.push_back(any_plan(std::move(plan), out.problem));
    } else if (auto* none = std::get_if<FuseInfeasible>(&outcome)) {
        out.totals = totals_record(std::nullopt, none->unfused, none->operators);
        out.refusal = Refusal{none->reason, std::move(none->message), {}, {}};
    }
    return out;
}

}  // namespace rooftile
