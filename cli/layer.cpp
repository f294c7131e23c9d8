// `plan layer`: every kernel of a model's layer, from the model's own configuration, over batch and context.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include "cli/layer_model.hpp"
#include "cli/pictures.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/layer/report.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile::cli {
namespace {

constexpr std::int64_t most_batch = 1 << 16, most_context = 1 << 24;
constexpr std::size_t most_cells = 20'000;

LayerModel model_of(const Given& given) {
    if (!given.has("config"))
        throw RequestError("missing --config: rooftile plan layer --config config.json --batch 1,16,64 --context 2k..128k");
    return layer_model(given);
}

/// "0,0.25,1".
std::vector<double> shares_of(const std::string& name, const std::string& text) {
    std::vector<double> out;
    for (const std::string_view part : split(text, ',')) {
        const auto read = parse_number(part);
        const auto* number = std::get_if<NumberText>(&read);
        if (!number || !number->unit.text.empty() || number->value > 1)
            throw RequestError(fmt::format("{} is \"{}\"; accepted: shares from 0 to 1, as in 0,0.25,1", name, printable(text)));
        if (std::ranges::find(out, number->value) == out.end()) out.push_back(number->value);
    }
    return out;
}

LayerRequest request_of(const Given& given, const ModelConfig& model) {
    LayerRequest out;
    out.batches = value_list(given.name("batch"), given.has("batch") ? given.text("batch") : "1", most_batch);
    out.contexts = value_list(given.name("context"), given.has("context") ? given.text("context") : "4096", most_context);
    if (given.has("prefill")) out.prefill_shares = shares_of(given.name("prefill"), given.text("prefill"));
    if (given.has("tp")) {
        constexpr std::string_view accepted[] = {"1", "2", "4", "8"};
        out.tp = 1 << one_of(given.name("tp"), given.text("tp"), accepted);
    }
    out.layer = layer_number(given, model);
    return out;
}

/// Every combination of the numbers that are swept.
std::vector<std::vector<std::string>> settings_of(const Given& given) {
    std::vector<std::vector<std::string>> out = {{}};
    if (!given.has("hardware")) return out;
    std::set<std::string, std::less<>> keys;
    for (const std::string& text : given.list("hardware")) {
        const std::vector<std::string> values = swept_numbers(given.name("hardware"), text);
        const std::string_view key = assignment_of(text)->key;
        if (!keys.emplace(key).second)
            throw RequestError(fmt::format("{} has {} twice; give all its values in one list", given.name("hardware"), key));
        std::vector<std::vector<std::string>> more;
        for (const auto& before : out)
            for (const std::string& value : values) {
                more.push_back(before);
                more.back().push_back(value);
            }
        out = std::move(more);
        if (out.size() > most_cells)
            throw RequestError(fmt::format("{}: more than {} machines; give fewer values", given.name("hardware"), most_cells));
    }
    return out;
}

int plan_layer(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    check_writable(output);
    check_picture_files(given);
    const LayerModel model = model_of(given);
    const LayerRequest request = request_of(given, model.config);
    const auto settings = settings_of(given);
    const std::size_t cells = request.batches.size() * request.contexts.size() * request.prefill_shares.size() * settings.size();
    if (cells > most_cells) throw RequestError(fmt::format("{} cells are more than {}; give fewer values", cells, most_cells));
    const Target target = target_of(given);
    if (!target.note.empty()) say(target.note);
    Json document = layer_document(context_of(*target.machine, invocation.command), model, request, *target.machine);
    {
        const Progress progress("planning");
        for (const auto& setting : settings) {
            std::shared_ptr<const Machine> machine = target.machine;
            if (!setting.empty()) {
                Machine changed = *machine;
                try {
                    set_numbers(changed, setting);
                } catch (const RequestError& error) {  // which says how such a number is usually given
                    std::string why = error.what();
                    constexpr std::string_view usual = "--set";
                    if (why.starts_with(usual)) why.replace(0, usual.size(), given.name("hardware"));
                    throw RequestError(why);
                }
                machine = std::make_shared<const Machine>(std::move(changed));
            }
            LayerPlanner planner(std::move(machine), cells);
            add_layer_cells(document, planner, setting, model, request);
        }
    }
    if (wants_pictures(given)) write_pictures(given, document, invocation.command);
    write_result(output.json ? json_text(document) : layer_text(document, terminal_for(output)), output);
    return int(ExitCode::done);
}

}  // namespace

void add_layer(std::vector<Verb>& verbs) {
    const char *model = "Model", *step = "Step", *machines = "Machines that do not exist";
    const std::vector<Field> own = {
        {"config", "FILE", "A model's config.json as it is published", model, FieldKind::text},
        {"layer", "I", "Which of its layers, from 0 on; default: the first of the kind that most are of", model},
        {"batch", "VALUES", "Sequences; default 1", step, FieldKind::text},
        {"context", "VALUES", "Tokens of each sequence, the new ones among them; default 4096", step, FieldKind::text},
        {"prefill", "SHARES", "Share of the sequences whose tokens are all computed; of the others only the last is. Default 0", step,
         FieldKind::text},
        {"tp", "N", "GPUs that share each layer: 1 (default), 2, 4 or 8", step},
        {"hardware", "KEY=VALUES", "A number of the machine over values, as --set takes them; several give every combination", machines,
         FieldKind::list}};
    verbs.push_back({.path = "plan layer",
                     .meaning = "A model's layer from its config.json: every kernel's time, bytes and limit",
                     .fields = joined_fields({own, target_fields(), picture_fields(true)}),
                     .documents = Documents::json_only,
                     .examples =
                         "Examples:\n  rooftile plan layer --config config.json --batch 64 --context 2048\n"
                         "  rooftile plan layer --config config.json --batch 1,16,64 --context 2k..128k --html layer.html\n"
                         "  rooftile plan layer --config config.json --batch 8 --context 1024 --prefill 1\n"
                         "  rooftile plan layer --config config.json --batch 16 --context 8k --hardware \"dram.bandwidth=2..8 TB/s\"\n"
                         "VALUES: 512; 1,2,8; 64..4096 by doubling; 128..1024..128 in steps of 128.\n",
                     .synopsis = "--config config.json --batch 1,16,64 --context 2k..128k",
                     .run = plan_layer});
}

}  // namespace rooftile::cli
