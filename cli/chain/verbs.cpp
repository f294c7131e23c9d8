// The verb of chains that most other operations lack: what a simulated L2 sees of one.
#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/pictures.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/chain/operation.hpp"
#include "rooftile/chain/plan_text.hpp"
#include "rooftile/chain/simulation_report.hpp"
#include "rooftile/error.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/report/explanation_record.hpp"
#include "rooftile/report/explanation_text.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile::cli {
namespace {

int simulate_chain(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    check_picture_files(given);
    const Operation& chain = chain_operation();
    const Problem problem = chain.problem(given);
    const Own request = chain.request(given, {.top = 1});
    const Target target = target_of(given);
    const DocumentContext context = context_of(*target.machine, invocation.command);
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return report_refusal(plans, context, output);
    const Plan& plan = plans.plans.front();
    const ChainPlan& own = plan.own.as<ChainPlan>();
    if (own.prediction.traffic.tensors.empty())
        throw RequestError("l2.size or sm.count of " + target.machine->id + " is unknown, and nothing can be simulated without; --set gives it");
    Json document = {{"schema", "rooftile/chain_simulation/1"},
                     {"context", context_json(context)},
                     {"machine", {{"id", target.machine->id}, {"name", target.machine->name}}},
                     {"problem", problem_json(problem)},
                     {"config", to_json(chain.config_record(plan))}};
    document.update(to_json(chain_simulation_record(own.prediction.traffic)));
    const auto explanations = explain(*target.machine, plans, {Depth::none, given.has("energy")});
    if (!explanations.empty()) document.update(to_json(explanation_record(explanations.front())));
    if (wants_pictures(given)) write_pictures(given, document, invocation.command);
    if (format == Format::text) {
        const Terminal terminal = terminal_for(output);
        std::string text = chain_simulation_text(plans, plan, terminal);
        if (!explanations.empty()) text += "\n" + energy_text(*explanations.front().energy, terminal);
        write_result(text, output);
        return int(ExitCode::done);
    }
    write_result(document_text(document, format), output);
    return int(ExitCode::done);
}

}  // namespace

void add_chain_verbs(std::vector<Verb>& verbs);
void add_chain_verbs(std::vector<Verb>& verbs) {
    std::vector<Field> fields(chain_operation().fields().begin(), chain_operation().fields().end());
    std::erase_if(fields, [](const Field& field) { return field.key == "top" || field.key == "flips"; });
    const Field own[] = {
        {"energy", "", "Add the joules of a launch by term, from the simulated DRAM traffic", "Simulation", FieldKind::on}};
    verbs.push_back({.path = "simulate chain",
                     .meaning = "What a form of two products in a row reads from DRAM and finds in L2, by tensor",
                     .fields = joined_fields({fields, target_fields(), own, picture_fields(true)}),
                     .documents = Documents::json_only,
                     .examples = "Examples:\n"
                                 "  rooftile simulate chain --m 65536 --d 512 --ff 2048 --machine a40 --form carry_over\n"
                                 "  rooftile simulate chain --m 65536 --d 512 --ff 2048 --machine a40 --form persistent --svg hits.svg\n",
                     .synopsis = std::string(chain_operation().example()),
                     .run = simulate_chain});
}

}  // namespace rooftile::cli
