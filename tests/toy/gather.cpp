#include "tests/toy/gather.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/report/plan_page.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/core/knob.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/physics/roofs.hpp"
#include "rooftile/report/suite_rows.hpp"

namespace rooftile {
namespace {

struct GatherRequest {
    std::optional<int> tile_m{}, tile_n{}, stages{};
    int top = 8;
};

/// The operation's row of knobs.
struct GatherKnobs {
    using Config = MatrixConfig;
    using Request = GatherRequest;
    template <class Visit>
    static void each(Visit visit) {
        using Number = Knob<Config, Request, int>;
        visit(Number{{"tile_m", "tile_m", "N", "Rows of a tile of C", {64, 128}, Recorded::always}, &Config::tile_m, &Request::tile_m});
        visit(Number{{"tile_n", "tile_n", "N", "Columns of a tile of C", {64, 256}, Recorded::always}, &Config::tile_n, &Request::tile_n});
        visit(Number{{"stages", "stages", "N", "Tiles of A and B in flight", {2, 6}, Recorded::always}, &Config::stages, &Request::stages});
    }
};

double flops_of(const GatherPlan& p) { return 2.0 * double(p.m) * double(p.n) * double(p.k); }
double tiles_of(const GatherPlan& p) {
    const auto count = [](std::int64_t extent, int tile) { return std::ceil(double(extent) / tile); };
    return count(p.m, p.config.tile_m) * count(p.n, p.config.tile_n);
}

Demand demand_of(const GatherPlan& p) {
    Demand out;
    out.matrix = {{"wgmma", "bf16", "fp32", flops_of(p)}};
    const auto add = [&](const char* name, TensorRole role, double bytes) { out.tensors.push_back({name, role, bytes, bytes}); };
    add("rows", TensorRole::in, 4.0 * double(p.m));
    add("a", TensorRole::in, 4.0 * double(std::min(p.m, p.source_rows)) * double(p.k));
    add("b", TensorRole::in, 2.0 * double(p.n) * double(p.k));
    add("c", TensorRole::out, 2.0 * double(p.m) * double(p.n));
    out.tiles = std::int64_t(tiles_of(p));
    return out;
}

RoofTime roof_of(const Machine& machine, const GatherPlan& p) { return roof_time(demand_of(p), machine, {.sustained = true}); }
/// The last wave takes as long as a full one.
std::optional<double> time_us(const Machine& machine, const GatherPlan& p) {
    const auto roof = roof_of(machine, p).seconds(), sms = machine.count("sm.count");
    if (!roof || !sms) return std::nullopt;
    const double waves = tiles_of(p) / *sms;
    return *roof * std::ceil(waves) / std::max(1.0, waves) * 1e6;
}

std::vector<Step> derivation(const Machine& machine, const GatherPlan& p) {
    Derivation steps(machine);
    const MatrixConfig& c = p.config;
    const auto ours = [](const char* name, double value, const char* unit) { return Derivation::given(name, value, unit, "the plan"); };
    steps.add("shared_bytes", "stages (A + B) + rest", {ours("stages", c.stages, ""), ours("A + B", c.stage_bytes(), "B"), steps.fact("shared.per_cta")},
              c.shared_bytes(), "B", "a CTA may ask for so much");
    steps.add("time_us", "roof ceil(tiles / sm.count) / (tiles / sm.count)",
              {ours("roof", roof_of(machine, p).seconds().value_or(std::nan("")) * 1e6, "us"), ours("tiles", tiles_of(p), ""), steps.fact("sm.count")},
              p.time_us.value_or(std::nan("")), "us", "the last wave takes as long as a full one");
    return steps.take();
}

class ToyGather final : public Operation {
  public:
    std::string_view name() const override { return "toy_gather"; }
    std::string_view meaning() const override { return "Products of rows of A that a list names, rounded to bf16"; }
    std::string_view example() const override { return "--m 4096 --source-rows 8192 --n 4096 --k 1024"; }
    std::span<const Field> fields() const override {
        static const std::vector<Field> fields = [] {
            std::vector<Field> all = knob_fields<GatherKnobs>("Fixed parameters");
            for (const char* key : {"m", "source_rows", "n", "k"}) all.push_back({key, "N", "An extent of the matrices", "Problem"});
            return all;
        }();
        return fields;
    }

    Problem problem(const Given& given) const override {
        const auto size = [&](const char* key, int multiple) {
            const std::int64_t value = whole_number(given.name(key), given.text(key), 1, 1 << 20);
            if (value % multiple != 0) throw RequestError(fmt::format("{} must be a multiple of {}", given.name(key), multiple));
            return value;
        };
        return {this, Own::of(GatherPlan{size("m", 1), size("source_rows", 1), size("n", 8), size("k", 8)})};
    }
    Own request(const Given& given, const PlanDefaults& defaults) const override {
        GatherRequest r{.top = defaults.top};
        read_knobs<GatherKnobs>(given, r);
        return Own::of(r);
    }

    PlanSet plans(std::shared_ptr<const Machine> machine, const Problem& problem, const Own& request) const override {
        const auto& asked = request.as<GatherRequest>();
        PlanSet out;
        out.machine_id = machine->id, out.machine_name = machine->name, out.problem = problem;
        const double room = machine->number<Bytes>("shared.per_cta").value_or(Bytes{}).value;
        std::vector<GatherPlan> found;
        const auto consider = [&](const MatrixConfig& config) {
            GatherPlan plan = problem.own.as<GatherPlan>();
            plan.config = config, plan.time_us = time_us(*machine, plan);
            out.unknown = roof_of(*machine, plan).unknown;
            const bool fits = config.shared_bytes() <= room, has_wgmma = machine->arch == "sm_90";
            if (fits && has_wgmma) found.push_back(plan);
            else ++out.rejected.reasons[std::size_t(fits ? Reason::instruction : Reason::shared)];
        };
        for (const int tile_m : {128, 64})
            for (const int tile_n : {128, 64, 256})
                for (const int stages : {6, 5, 4, 3, 2})
                    if (asked.tile_m.value_or(tile_m) == tile_m && asked.tile_n.value_or(tile_n) == tile_n && asked.stages.value_or(stages) == stages)
                        consider(gather_config(tile_m, tile_n, stages));
        std::ranges::stable_sort(found, {}, [](const GatherPlan& plan) { return plan.time_us.value_or(0); });
        for (const GatherPlan& plan : found) {
            if (int(out.plans.size()) == asked.top) ++out.rejected.reasons[std::size_t(Reason::dominated)];
            else out.plans.push_back(plan_of(machine, plan, out));
        }
        if (found.empty()) out.refusal = Refusal{Reason::instruction, "wgmma of sm_90 and a tile that fits shared memory are needed", {}, {}};
        return out;
    }

    Given given(const Problem& problem) const override { return given_of_record(problem_record(problem)); }
    Record problem_record(const Problem& problem) const override {
        Record out;
        for (const auto& [key, value] : sizes(problem.own.as<GatherPlan>())) out.emplace_back(key, value);
        return out;
    }
    Given given_of_record(const Record& record) const override {
        Given given(Given::Named::by_key);
        for (const auto& [key, _] : sizes({})) given.add(key, std::to_string(find_as<std::int64_t>(record, key).value_or(0)));
        return given;
    }
    DrawLaw law(const DrawRequest&) const override { return {"draw", "M, N, K and rows of A up to 2048"}; }
    Problem draw(Random& random, const DrawRequest&) const override {
        return {this, Own::of(GatherPlan{random.whole(1, 2048), random.whole(1, 2048), 8 * random.whole(1, 256), 8 * random.whole(1, 256)})};
    }
    ProblemTraits traits(const Problem& problem) const override {
        const auto& p = problem.own.as<GatherPlan>();
        return {.band = "all", .features = {}, .x = {"K", double(p.k)}, .y = {"M", double(p.m)}, .flops = flops_of(p)};
    }
    std::vector<TensorInfo> tensors(const Problem& problem) const override {
        const auto& p = problem.own.as<GatherPlan>();
        const auto matrix = [](const char* name, const char* type, int bits, std::int64_t rows, std::int64_t columns, TensorRole role) {
            return TensorInfo{name, type, bits, {Extent::of(rows), Extent::of(columns)}, {columns, 1}, role};
        };
        return {{"rows", "int32", 32, {Extent::of(p.m)}, {1}, TensorRole::in},
                matrix("a", "fp32", 32, p.source_rows, p.k, TensorRole::in),
                matrix("b", "bf16", 16, p.n, p.k, TensorRole::in),
                matrix("c", "bf16", 16, p.m, p.n, TensorRole::out)};
    }
    Record config_record(const Plan& plan) const override {
        Record out = {{"kernel", "toy_gather"}};
        add_knobs<GatherKnobs>(out, plan.own.as<GatherPlan>().config);
        return out;
    }
    Given given_of_config(const Record& config) const override { return given_of_knobs<GatherKnobs>(config); }
    Record resources_record(const Plan& plan) const override { return {{"shared_bytes", plan.own.as<GatherPlan>().config.shared_bytes()}}; }
    Record prediction_record(const Plan& plan) const override { return {{"time_us", plan.own.as<GatherPlan>().time_us}}; }
    Demand demand(const Machine&, const Plan& plan) const override { return demand_of(plan.own.as<GatherPlan>()); }
    Predictor predictor(const Machine&, std::span<const Plan> plans) const override {
        return [plans = std::vector<Plan>(plans.begin(), plans.end())](const Machine& machine) {
            std::vector<PredictedRun> runs;
            for (const Plan& plan : plans) runs.push_back({time_us(machine, plan.own.as<GatherPlan>()).value_or(std::nan("")) / 1e6, std::nan("")});
            return runs;
        };
    }
    std::string label(const Plan& plan) const override {
        const MatrixConfig& c = plan.own.as<GatherPlan>().config;
        return fmt::format("{}x{}x{}, {} stages", c.tile_m, c.tile_n, c.tile_k, c.stages);
    }
    PlanPage page(const PlanSet& plans, std::span<const Explanation>, const Terminal&) const override {
        PlanPage page{.heading = label(plans.plans.front()) + "\n", .table = Table({{"#", Table::Align::right, 0, true}, {"configuration", Table::Align::left}})};
        for (const Plan& plan : plans.plans) page.table.row({{std::to_string(plan.rank)}, {label(plan)}});
        return page;
    }
    std::string short_name(const Problem& problem) const override {
        const auto& p = problem.own.as<GatherPlan>();
        return fmt::format("{} of {}x{}x{}", p.m, p.source_rows, p.n, p.k);
    }
    std::string heading(const Problem& problem, std::string_view machine_id, std::string_view, const Terminal&) const override {
        return fmt::format("toy_gather {} on {}\n", short_name(problem), machine_id);
    }
    SuiteReporter suite_reporter(SuiteRecord record, const Suite*) const override {
        return {[name = record.suite](const Terminal&) { return name + "\n"; }, [name = record.suite] { return name + "\n"; }, {}};
    }
    std::string_view baseline() const override { return "copy"; }

  private:
    static std::vector<std::pair<std::string, std::int64_t>> sizes(const GatherPlan& p) {
        return {{"m", p.m}, {"source_rows", p.source_rows}, {"n", p.n}, {"k", p.k}};
    }
    Plan plan_of(const std::shared_ptr<const Machine>& machine, const GatherPlan& own, const PlanSet& set) const {
        Plan plan;
        plan.operation = this, plan.problem = set.problem, plan.unknown = set.unknown;
        plan.rank = int(set.plans.size()) + 1, plan.buildable = true;
        plan.time_us = own.time_us, plan.bound = roof_of(*machine, own).bound();
        plan.derivation = Steps([machine, own] { return derivation(*machine, own); });
        plan.launches = {{"toy_gather"}};
        plan.own = Own::of(own);
        return plan;
    }
};

}  // namespace

const Operation& toy_gather() {
    static const ToyGather operation;
    return operation;
}

}  // namespace rooftile
