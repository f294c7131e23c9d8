#include "rooftile/chain/operation.hpp"

#include "rooftile/chain/derive.hpp"
#include "rooftile/chain/draw.hpp"
#include "rooftile/chain/fields.hpp"
#include "rooftile/chain/plan_text.hpp"
#include "rooftile/chain/records.hpp"
#include "rooftile/chain/suite_report.hpp"

namespace rooftile {
namespace {

const ChainPlan& typed(const Plan& plan) { return plan.own.as<ChainPlan>(); }
const ChainProblem& typed(const Problem& problem) { return problem.own.as<ChainProblem>(); }

class ChainOperation final : public Operation {
  public:
    std::string_view name() const override { return "chain"; }
    std::string_view meaning() const override { return "Two products in a row, a function of elements between them, as one plan"; }
    std::string_view example() const override { return "--m 65536 --d 128 --ff 512 --act gelu"; }
    std::span<const Field> fields() const override { return chain_fields(); }

    Problem problem(const Given& given) const override { return {this, Own::of(chain_problem(given))}; }
    void add_tensors(Given& given, std::span<const TensorInfo> inputs) const override { add_chain_tensors(given, inputs); }
    Own request(const Given& given, const PlanDefaults& defaults) const override { return Own::of(chain_request(given, defaults)); }
    PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem, const Own& request) const override {
        return derive_chain(std::move(machine), problem, request.as<ChainRequest>());
    }

    Given with_work(const Given& given, std::int64_t size) const override { return chain_with_work(given, size); }
    bool zeros_serve(const Problem&) const override { return true; }
    Given given(const Problem& problem) const override { return chain_given(typed(problem)); }
    Record problem_record(const Problem& problem) const override { return rooftile::problem_record(typed(problem)); }
    Given given_of_record(const Record& record) const override { return chain_given(record); }
    Given given_of_config(const Record& config) const override { return chain_given_of_config(config); }
    std::string short_name(const Problem& problem) const override { return rooftile::short_name(typed(problem)); }
    std::vector<TensorInfo> tensors(const Problem& problem) const override { return chain_tensors(typed(problem)); }
    Record config_record(const Plan& plan) const override { return rooftile::config_record(typed(plan)); }
    Record resources_record(const Plan& plan) const override { return rooftile::resources_record(typed(plan)); }
    Record prediction_record(const Plan& plan) const override { return rooftile::prediction_record(typed(plan).prediction); }
    Demand demand(const Machine& machine, const Plan& plan) const override { return chain_demand(machine, typed(plan), plan.parts); }
    bool models_energy() const override { return true; }
    Predictor predictor(const Machine& machine, std::span<const Plan> plans) const override { return chain_predictor(machine, plans); }
    std::string label(const Plan& plan) const override { return label_of(typed(plan).config); }

    PlanPage page(const PlanSet& plans, std::span<const Explanation> explanations, const Terminal& terminal) const override {
        return chain_page(plans, explanations, terminal);
    }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view machine_name,
                        const Terminal& terminal) const override {
        return chain_heading_text(typed(problem), machine_id, machine_name, terminal);
    }

    DrawLaw law(const DrawRequest& request) const override { return chain_law(request); }
    Problem draw(Random& random, const DrawRequest&) const override { return {this, Own::of(drawn_chain(random))}; }
    ProblemTraits traits(const Problem& problem) const override { return chain_traits(typed(problem)); }

    SuiteReporter suite_reporter(SuiteRecord record, const Suite* suite) const override {
        return chain_suite_reporter(std::move(record), suite);
    }
    std::string_view baseline() const override { return "two_calls"; }
    std::span<const std::string_view> baseline_keys() const override {
        static constexpr std::string_view keys[] = {"two_calls_us", "copy_us"};
        return keys;
    }
};

}  // namespace

const Operation& chain_operation() {
    static const ChainOperation operation;
    return operation;
}

}  // namespace rooftile
