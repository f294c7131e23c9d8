#include "tests/core/toy_operation.hpp"

#include <cmath>
#include <memory>
#include <numeric>

#include "rooftile/report/plan_page.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/core/space.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {
namespace {

struct ToyProblem {
    std::vector<std::int64_t> groups;  ///< rows of each, at most
    std::int64_t columns = 0;
    std::int64_t rows() const { return std::accumulate(groups.begin(), groups.end(), std::int64_t{0}); }
    double bytes() const { return 4.0 * double(rows() + std::int64_t(groups.size())) * double(columns); }
};

struct ToyPlan {
    ToyProblem problem;
    int threads = 0;
    std::optional<double> time_us;
};

struct ToyRequest {
    std::optional<int> threads;
    int top = 8;
};

constexpr int searched_threads[] = {128, 256, 512, 1024};
constexpr std::int64_t largest_toy = 1 << 20;

std::vector<Step> derivation(const Machine& machine, const ToyPlan& plan) {
    Derivation steps(machine);
    steps.add("time_us", "bytes / bandwidth + 2 launches",
              {Derivation::given("bytes", plan.problem.bytes(), "B", "the problem"), steps.fact("dram.bandwidth"),
               steps.fact("launch.gap_stream")},
              plan.time_us.value_or(std::nan("")), "us", "each row is read once");
    return steps.take();
}

std::optional<double> time_us(const Machine& machine, const ToyProblem& problem) {
    const auto bandwidth = dram_bandwidth(machine);
    if (!bandwidth) return std::nullopt;
    return (problem.bytes() / bandwidth->value + 2 * machine.number<Seconds>("launch.gap_stream").value_or(Seconds{}).value)
           * 1e6;
}

class ToyOperation final : public Operation {
  public:
    std::string_view name() const override { return "toy"; }
    std::string_view meaning() const override { return "Sums of groups of rows"; }
    std::string_view example() const override { return "--group 3 --group 5 --columns 64"; }
    std::span<const Field> fields() const override {
        static const std::vector<Field> fields = {
            {"group", "ROWS", "Rows of a group; repeatable", "Problem", FieldKind::list},
            {"columns", "N", "Columns of every row", "Problem"},
            {"threads", "N", "Threads of a CTA", "Fixed parameters"},
            {"top", "N", "Plans to keep", "Output"}};
        return fields;
    }

    Problem problem(const Given& given) const override {
        ToyProblem p;
        for (const std::string& rows : given.list("group"))
            p.groups.push_back(whole_number(given.name("group"), rows, 1, largest_toy));
        if (p.groups.empty()) throw RequestError("missing " + given.name("group"));
        p.columns = whole_number(given.name("columns"), given.text("columns"), 1, largest_toy);
        return {this, Own::of(std::move(p))};
    }
    Own request(const Given& given, const PlanDefaults& defaults) const override {
        ToyRequest r{.threads = {}, .top = defaults.top};
        if (given.has("threads")) r.threads = int(whole_number(given.name("threads"), given.text("threads"), 1, 2048));
        if (given.has("top")) r.top = int(whole_number(given.name("top"), given.text("top"), 1, 64));
        return Own::of(r);
    }

    PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem, const Own& request) const override {
        const auto& p = problem.own.as<ToyProblem>();
        const auto& asked = request.as<ToyRequest>();
        PlanSet out;
        out.machine_id = machine->id;
        out.machine_name = machine->name;
        out.problem = problem;
        if (!dram_bandwidth(*machine)) out.unknown = {"dram.bandwidth"};
        for (const int threads : searched_threads) {
            if (asked.threads && *asked.threads != threads) continue;
            if (int(out.plans.size()) == asked.top) {
                ++out.rejected.reasons[std::size_t(Reason::dominated)];
                continue;
            }
            out.plans.push_back(plan_of(machine, {p, threads, time_us(*machine, p)}));
            out.plans.back().rank = int(out.plans.size());
            out.plans.back().unknown = out.unknown;
        }
        if (out.plans.empty())
            out.refusal = Refusal{Reason::threads, "threads must be one of 128, 256, 512, 1024", 128, *asked.threads};
        return out;
    }

    Given given(const Problem& problem) const override {
        const auto& p = problem.own.as<ToyProblem>();
        Given given(Given::Named::by_key);
        for (const std::int64_t rows : p.groups) given.add("group", std::to_string(rows));
        given.add("columns", std::to_string(p.columns));
        return given;
    }
    Record problem_record(const Problem& problem) const override {
        const auto& p = problem.own.as<ToyProblem>();
        return {{"groups", p.groups}, {"columns", p.columns}};
    }
    Given given_of_record(const Record& record) const override {
        Given given(Given::Named::by_key);
        for (const Value& rows : find_as<List>(record, "groups").value_or(List()))
            given.add("group", std::to_string(std::get<std::int64_t>(rows.content())));
        given.add("columns", std::to_string(find_as<std::int64_t>(record, "columns").value_or(0)));
        return given;
    }
    DrawLaw law(const DrawRequest& request) const override {
        if (!request.law.empty()) throw RequestError("a toy draws plain problems alone");
        return {"draw", "one to four groups of up to 1000 rows, 64 to 4096 columns"};
    }
    Problem draw(Random& random, const DrawRequest&) const override {
        ToyProblem p;
        p.groups.resize(1 + random.pick(4));
        for (std::int64_t& rows : p.groups) rows = random.whole(1, 1000);
        p.columns = std::int64_t(random.log_uniform(64, 4096));
        return {this, Own::of(std::move(p))};
    }
    ProblemTraits traits(const Problem& problem) const override {
        const auto& p = problem.own.as<ToyProblem>();
        return {.band = p.groups.size() > 1 ? "groups" : "one group",
                .features = {{"odd columns", p.columns % 2 != 0}},
                .x = {"columns", double(p.columns)},
                .y = {"rows", double(p.rows())}};
    }
    std::vector<TensorInfo> tensors(const Problem& problem) const override {
        const auto& p = problem.own.as<ToyProblem>();
        const Extent rows{.most = p.rows(), .least = 0, .read_from = "row_count"}, columns = Extent::of(p.columns);
        const auto groups = Extent::of(std::int64_t(p.groups.size()));
        return {{"row_count", "int32", 32, {Extent::of(1)}, {1}, TensorRole::in},
                {"x", "fp32", 32, {rows, columns}, {p.columns, 1}, TensorRole::in},
                {"y", "fp32", 32, {groups, columns}, {p.columns, 1}, TensorRole::out}};
    }
    Record config_record(const Plan& plan) const override {
        return {{"kernel", "toy_sum"}, {"threads", plan.own.as<ToyPlan>().threads}};
    }
    Record resources_record(const Plan& plan) const override { return {{"threads", plan.own.as<ToyPlan>().threads}}; }
    Record prediction_record(const Plan& plan) const override { return {{"time_us", plan.own.as<ToyPlan>().time_us}}; }
    Demand demand(const Machine&, const Plan& plan) const override {
        const auto& p = plan.own.as<ToyPlan>().problem;
        Demand out;
        const double columns = 4.0 * double(p.columns);
        out.tensors = {{"x", TensorRole::in, double(p.rows()) * columns, double(p.rows()) * columns},
                       {"y", TensorRole::out, double(p.groups.size()) * columns, double(p.groups.size()) * columns}};
        out.launches = 2;
        return out;
    }
    std::string label(const Plan& plan) const override {
        return std::to_string(plan.own.as<ToyPlan>().threads) + " threads";
    }
    Predictor predictor(const Machine&, std::span<const Plan> plans) const override {
        const auto problem = plans.front().own.as<ToyPlan>().problem;
        return [problem, count = plans.size()](const Machine& machine) {
            const double seconds = time_us(machine, problem).value_or(std::nan("")) / 1e6;
            return std::vector<PredictedRun>(count, {seconds, std::nan("")});
        };
    }
    PlanPage page(const PlanSet& plans, std::span<const Explanation>, const Terminal&) const override {
        PlanPage page{.heading = label(plans.plans.front()) + "\n", .table = Table({{"#", Table::Align::right, 0, true}, {"configuration", Table::Align::left}})};
        for (const Plan& plan : plans.plans) page.table.row({{std::to_string(plan.rank)}, {label(plan)}});
        return page;
    }
    std::string short_name(const Problem& problem) const override {
        return std::to_string(problem.own.as<ToyProblem>().groups.size()) + " groups";
    }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view,
                        const Terminal&) const override {
        return "toy " + short_name(problem) + " on " + std::string(machine_id) + "\n";
    }
    SuiteReporter suite_reporter(SuiteRecord record, const Suite*) const override {
        const auto name = std::make_shared<std::string>(record.suite + "\n");
        return {[name](const Terminal&) { return *name; }, [name] { return *name; }, {}};
    }
    std::string_view baseline() const override { return "copy"; }
    std::string_view space_rule() const override { return "every number of threads"; }
    std::span<const std::string_view> space_keys() const override {
        static constexpr std::string_view keys[] = {"threads"};
        return keys;
    }
    std::vector<Plan> space(const std::shared_ptr<const Machine>& machine, const Problem& problem) const override {
        return derive(machine, problem, Own::of(ToyRequest{})).plans;
    }
    std::vector<Pick> picks(const Machine&, const Problem&) const override {
        Pick pick{.name = "widest", .alternatives = {}};
        for (const char* threads : {"2048", "1024"})
            pick.alternatives.emplace_back(Given::Named::by_key).add("threads", threads);
        return {pick, {.name = "nobody", .alternatives = {}}};
    }
    Given given_of_config(const Record& config) const override {
        Given given(Given::Named::by_key);
        given.add("threads", std::to_string(find_as<std::int64_t>(config, "threads").value_or(0)));
        return given;
    }

  private:
    Plan plan_of(const std::shared_ptr<const Machine>& machine, ToyPlan own) const {
        constexpr std::int64_t counter_bytes = 4;
        Plan plan;
        plan.operation = this;
        plan.problem = {this, Own::of(own.problem)};
        plan.time_us = own.time_us;
        plan.bound = Bound::dram;
        plan.why_not = "a toy has no kernel";
        plan.derivation = Steps([machine, own] { return derivation(*machine, own); });
        const std::int64_t workspace = counter_bytes * std::int64_t(own.problem.groups.size());
        plan.launches = {{"toy_count", workspace, WorkspaceState::zeroed, WorkspaceState::any},
                         {"toy_sum", workspace, WorkspaceState::any, WorkspaceState::zeroed}};
        for (const char* name : {"x", "y"}) add_part(plan, machine, own.problem, name);
        plan.own = Own::of(std::move(own));
        return plan;
    }
    /// Where no operation of that name is there the plan has no such part.
    static void add_part(Plan& plan, const std::shared_ptr<const Machine>& machine, const ToyProblem& p, std::string name) {
        Given given;
        given.add("expression", name + "_scaled = " + name + " * 2");
        given.add("tensor", name + ":fp32[" + std::to_string(name == "x" ? p.rows() : std::int64_t(p.groups.size())) + ","
                                + std::to_string(p.columns) + "]");
        PlanSet part = derive_part("fuse", machine, given);
        if (!part.plans.empty()) plan.parts.push_back(std::move(part.plans.front()));
    }
};

}  // namespace

const Operation& toy_operation() {
    static const ToyOperation operation;
    return operation;
}

}  // namespace rooftile
