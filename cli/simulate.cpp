// `simulate OPERATION`: the plan ranked first through L2, of every operation that can follow one.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/output.hpp"
#include "cli/pictures.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/report/csv.hpp"
#include "rooftile/report/simulates.hpp"

namespace rooftile::cli {
namespace {

constexpr std::string_view order_sets[] = {"all", "plan"}, policies[] = {"lru", "opt"}, layouts[] = {"half", "halves", "whole"};

SimulationAsk ask_of(const Simulates& simulates, const Given& given) {
    SimulationAsk ask{.orders = given.text("orders"), .fixes_order = given.has("order") || given.has("group"), .energy = given.has("energy")};
    if (given.has("policy")) ask.policy = given.text("policy");
    if (given.has("l2")) ask.layout = given.text("l2");
    one_of("--policy", ask.policy, policies), one_of("--l2", ask.layout, layouts);
    if (!ask.orders.empty()) one_of("--orders", ask.orders, order_sets);
    if (ask.fixes_order && ask.orders == "all")
        throw RequestError("--orders all and --order or --group exclude each other; give one");
    if (ask.orders.empty()) ask.orders = ask.fixes_order ? "plan" : simulates.orders();
    return ask;
}

int simulate(const Operation& operation, const Simulates& simulates, const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    const Problem problem = operation.problem(given);
    simulates.check(problem, given);
    const SimulationAsk ask = ask_of(simulates, given);
    check_picture_files(given);
    const bool draws = wants_pictures(given);
    const Own request = simulates.request(given);
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    std::optional<Progress> progress(std::in_place, "simulating");
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return progress.reset(), report_refusal(plans, context, output);
    const std::unique_ptr<SimulatedPlan> simulated = simulates.simulate(*target.machine, plans, given, ask);
    progress.reset();
    Json document = simulated->document(context);
    if (draws || given.has("tiles")) {
        Json whole = document;
        whole["tiles"] = simulated->tiles();
        if (draws) write_pictures(given, whole, invocation.command);
        if (given.has("tiles")) document = std::move(whole);
    }
    if (format == Format::text) {
        const Terminal terminal = terminal_for(output);
        write_result(operation.heading(problem, plans.machine_id, plans.machine_name, terminal) + simulated->text(terminal), output);
        return int(ExitCode::done);
    }
    write_result(format == Format::csv ? csv_text(document, {"config", "l2"}) : document_text(document, format), output);
    return int(ExitCode::done);
}

}  // namespace

void add_simulate(std::vector<Verb>& verbs) {
    const char* group = "Simulation";
    for (const Operation* operation : operations()) {
        const auto* simulates = facet_of<Simulates>(*operation);
        if (!simulates) continue;
        const std::string orders = simulates->orders() == "all" ? "Every order (default), or the plan's; --order fixes another"
                                                                : "The plan's order (default), or every one; --order fixes another";
        const Field own[] = {
            {"orders", "all|plan", orders, group},
            {"policy", "lru|opt", "lru (default), or opt: the least any replacement could read", group},
            {"l2", "half|halves|whole", "One partition's bytes (default), two partitions followed, or all of L2 as one", group},
            {"energy", "", "Add the joules of a launch in each order, from the simulated DRAM traffic", group, FieldKind::on},
            {"tiles", "", "Add every tile's round and hits to the JSON", group, FieldKind::on}};
        std::vector<Field> fields(operation->fields().begin(), operation->fields().end());
        std::erase_if(fields, [](const Field& field) { return field.key == "sample" || field.key == "orders"; });
        verbs.push_back({.path = fmt::format("simulate {}", operation->name()),
                         .meaning = "What a plan's tile schedule reads from DRAM and finds in L2",
                         .fields = joined_fields({fields, target_fields(), own, picture_fields(true)}),
                         .documents = Documents::all,
                         .examples = std::string(simulates->examples()),
                         .synopsis = std::string(operation->example()),
                         .run = [operation, simulates](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                             return simulate(*operation, *simulates, given, output, invocation);
                         }});
    }
}

}  // namespace rooftile::cli
