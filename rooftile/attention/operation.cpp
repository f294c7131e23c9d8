#include "rooftile/attention/operation.hpp"

#include <set>
#include <tuple>

#include "rooftile/attention/demand.hpp"
#include "rooftile/attention/draw.hpp"
#include "rooftile/attention/fields.hpp"
#include "rooftile/attention/formulas.hpp"
#include "rooftile/attention/known_kernels.hpp"
#include "rooftile/attention/pictured.hpp"
#include "rooftile/attention/plan_text.hpp"
#include "rooftile/attention/records.hpp"
#include "rooftile/attention/space.hpp"
#include "rooftile/attention/suite_report.hpp"
#include "rooftile/core/map_cell.hpp"
#include "rooftile/core/typed_plan.hpp"

namespace rooftile {
namespace {

const AttentionPlan& typed(const Plan& plan) { return plan.own.as<AttentionPlan>(); }
const AttentionProblem& typed(const Problem& problem) { return problem.own.as<AttentionProblem>(); }

class AttentionOperation final : public Operation {
  public:
    std::string_view name() const override { return "attention"; }
    std::string_view array_function() const override { return "scaled_dot_product_attention"; }
    std::string_view meaning() const override { return "Softmax of queries' scores times values, of every head, as one kernel"; }
    std::string_view example() const override { return "--batch 2 --heads 16 --q 2048 --dim 128 --mask causal"; }
    std::span<const Field> fields() const override { return attention_fields(); }

    Problem problem(const Given& given) const override { return {this, Own::of(attention_problem(given))}; }
    void add_tensors(Given& given, std::span<const TensorInfo> inputs) const override { add_attention_tensors(given, inputs); }
    Own request(const Given& given, const PlanDefaults& defaults) const override {
        return Own::of(attention_request(given, defaults.top));
    }
    PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem, const Own& request) const override {
        return attention_plan_set(rooftile::derive(std::move(machine), typed(problem), request.as<AttentionRequest>()));
    }

    Given with_work(const Given& given, std::int64_t size) const override { return attention_with_work(given, size); }
    // A row without keys is 0, and so is one whose values are; but not the logarithm of its sum.
    bool zeros_serve(const Problem& problem) const override { return !typed(problem).log_sum_exp; }
    Given given(const Problem& problem) const override { return attention_given(typed(problem)); }
    Record problem_record(const Problem& problem) const override { return rooftile::problem_record(typed(problem)); }
    Given given_of_record(const Record& record) const override { return attention_given(record); }
    Given given_of_config(const Record& config) const override { return attention_given_of_config(config); }
    std::string short_name(const Problem& problem) const override { return rooftile::short_name(typed(problem)); }
    std::vector<TensorInfo> tensors(const Problem& problem) const override { return attention_tensors(typed(problem)); }
    Record config_record(const Plan& plan) const override { return rooftile::config_record(typed(plan)); }
    Record resources_record(const Plan& plan) const override { return rooftile::resources_record(typed(plan).resources); }
    Record prediction_record(const Plan& plan) const override { return rooftile::prediction_record(typed(plan).prediction); }
    Demand demand(const Machine& machine, const Plan& plan) const override { return attention_demand(machine, typed(plan)); }
    bool models_energy() const override { return true; }
    const Facet* facet(const std::type_info& type) const override { return type == typeid(KnownKernels) ? &known_attention_kernels() : nullptr; }
    Predictor predictor(const Machine&, std::span<const Plan> plans) const override { return attention_predictor(plans); }
    std::optional<PipelineCycles> pipeline(const Machine& machine, const Plan& plan) const override {
        return attention_pipeline(machine, typed(plan));
    }
    std::array<std::string_view, 2> map_keys() const override { return {"tile_q", "tile_kv"}; }
    PlanMap map(const std::shared_ptr<const Machine>& machine, const Plan& first, const Own& request) const override {
        AttentionRequest one = request.as<AttentionRequest>();
        one.tile_q.reset(), one.tile_kv.reset(), one.top = 1;
        std::set<int> across, down;
        for_each_config(one, typed(first).problem, 1, [&](const AttentionConfig& c) { across.insert(c.tile_q), down.insert(c.tile_kv); });
        PlanMap map{"tile_q", "tile_kv", {}};
        for (const int kv : down)
            for (const int q : across) {
                one.tile_q = q, one.tile_kv = kv;
                map.cells.push_back(map_cell(q, kv, derive(machine, first.problem, Own::of(one))));
            }
        return map;
    }
    std::string label(const Plan& plan) const override { return label_of(typed(plan)); }

    PlanPage page(const PlanSet& plans, std::span<const Explanation>, const Terminal& terminal) const override { return attention_page(plans, terminal); }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view machine_name,
                        const Terminal& terminal) const override {
        return attention_heading_text(typed(problem), machine_id, machine_name, terminal);
    }

    std::vector<FormulaPage> symbols() const override {
        const auto sections = attention_formulas();
        return {{"Attention O = softmax(Q K^T) V: the derivation in symbols",
                 "Every step of `rooftile plan attention --explain=all`, in its order, without numbers. Brackets name the method's rules.",
                 {sections.begin(), sections.end()}}};
    }
    std::vector<FormulaPage> forms() const override { return attention_forms(); }
    DrawLaw law(const DrawRequest& request) const override { return attention_law(request); }
    Problem draw(Random& random, const DrawRequest& request) const override {
        return {this, Own::of(drawn_attention(random, request))};
    }
    ProblemTraits traits(const Problem& problem) const override { return attention_traits(typed(problem)); }

    std::string_view space_rule() const override {
        return "Every tile of 64, 128 or 192 queries and of 64 to 256 keys in steps of 16 (fewer where the problem has fewer) that registers "
               "and shared memory hold, by warpgroups in turns and not; the planner's choice for each are stages, two at least, and "
               "sections of heads.";
    }
    std::span<const std::string_view> space_keys() const override {
        static constexpr std::string_view keys[] = {"tile_q", "tile_kv", "schedule"};
        return keys;
    }
    std::vector<Plan> space(const std::shared_ptr<const Machine>& machine, const Problem& problem) const override {
        constexpr int all = 4096;  // more than the search has
        std::vector<Plan> members;
        std::set<std::tuple<int, int, Schedule>> seen;
        for (Plan& plan : derive(machine, problem, Own::of(AttentionRequest{.top = all})).plans) {
            const AttentionConfig& c = typed(plan).config;
            if (plan.buildable && seen.emplace(c.tile_q, c.tile_kv, c.schedule).second) members.push_back(std::move(plan));
        }
        return members;
    }

    SuiteReporter suite_reporter(SuiteRecord record, const Suite* suite) const override {
        return attention_suite_reporter(std::move(record), suite);
    }
    std::string_view baseline() const override { return "copy"; }
    std::span<const std::string_view> baseline_keys() const override {
        static constexpr std::string_view keys[] = {"copy_us"};
        return keys;
    }
};

}  // namespace

Plan any_plan(AttentionPlan plan, const Problem& problem) {
    const std::string kernel(kernel_name(plan.problem));
    return plan_of(problem, kernel, std::move(plan));
}

const Operation& attention_operation() {
    static const AttentionOperation operation;
    return operation;
}

PlanSet attention_plan_set(std::variant<AttentionPlans, AttentionInfeasible> outcome) {
    PlanSet out = std::visit([](auto& found) { return plan_set_of(attention_operation(), found); }, outcome);
    if (auto* plans = std::get_if<AttentionPlans>(&outcome)) {
        out.unchecked_constraints = std::move(plans->unchecked_constraints);
        for (AttentionPlan& plan : plans->plans) out.plans.push_back(any_plan(std::move(plan), out.problem));
    } else if (auto* none = std::get_if<AttentionInfeasible>(&outcome)) {
        out.refusal = Refusal{none->reason, std::move(none->message), none->needed, none->available};
    }
    return out;
}

}  // namespace rooftile
