// `simulate workers`: two workers of one CTA in phase and a stage apart, beside one.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/physics/workers.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile::cli {
namespace {

constexpr std::string_view works[] = {"softmax", "silu"};

const char* name_of(const WorkersRun& run) { return run.workers == 1 ? "one" : run.phase == Phase::together ? "two in phase" : "two a stage apart"; }

int simulate(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    constexpr std::int64_t most_side = 1024, most_dim = 1 << 20, most_in_flight = 64;
    WorkerTile tile;
    if (given.has("work")) tile.work = Work(one_of(given.name("work"), given.text("work"), works));
    if (given.has("tile")) {
        const auto sides = whole_numbers(given.name("tile"), given.text("tile"), "MxN", 1, most_side);
        tile.m = int(sides[0]), tile.n = int(sides[1]);
    }
    if (given.has("dim")) tile.dim = whole_number(given.name("dim"), given.text("dim"), 1, most_dim);
    else if (tile.work == Work::silu) tile.dim = 4096;
    const int in_flight = given.has("in_flight") ? int(whole_number(given.name("in_flight"), given.text("in_flight"), 1, most_in_flight)) : 2;
    const Target target = target_of(given);
    const std::vector<WorkerStage> stages = stages_of(*target.machine, tile);
    const WorkersRun runs[] = {simulate_workers(stages, 1, Phase::apart, in_flight), simulate_workers(stages, 2, Phase::together, in_flight),
                               simulate_workers(stages, 2, Phase::apart, in_flight)};
    const double ceiling = workers_ceiling(stages, in_flight);
    const auto gain = [&](const WorkersRun& run) { return runs[0].cycles_per_block / run.cycles_per_block; };
    if (format != Format::text) {
        Json listed = Json::array(), simulated = Json::array();
        for (const WorkerStage& s : stages) listed.push_back({{"stage", s.name}, {"unit", s.unit}, {"cycles", s.cycles}, {"asynchronous", s.asynchronous}});
        for (const WorkersRun& run : runs) {
            Json busy = Json::object();
            for (const auto& [unit, share] : run.busy) busy[unit] = share;
            simulated.push_back({{"workers", run.workers},
                                 {"phase", run.workers == 1 ? "alone" : run.phase == Phase::together ? "together" : "apart"},
                                 {"cycles_per_block", run.cycles_per_block},
                                 {"gain", gain(run)},
                                 {"busy", busy}});
        }
        write_result(document_text({{"schema", "rooftile/workers/1"},
                                    {"context", context_json(context_of(*target.machine, invocation.command))},
                                    {"machine", {{"id", target.machine->id}, {"name", target.machine->name}}},
                                    {"work", works[int(tile.work)]},
                                    {"tile_m", tile.m},
                                    {"tile_n", tile.n},
                                    {"dim", tile.dim},
                                    {"in_flight", in_flight},
                                    {"stages", listed},
                                    {"runs", simulated},
                                    {"ceiling", ceiling}},
                                   format),
                     output);
        return int(ExitCode::done);
    }
    const Terminal terminal = terminal_for(output);
    Table parts({{"stage", Table::Align::left}, {"unit", Table::Align::left}, {"cycles"}, {"the worker", Table::Align::left}});
    for (const WorkerStage& s : stages) parts.row({{s.name}, {s.unit}, {number_text(s.cycles, 4)}, {s.asynchronous ? "goes on" : "waits"}});
    std::vector<Table::Column> columns{{"workers", Table::Align::left}, {"cycles a block"}, {"gain"}};
    for (const auto& busy : runs[0].busy) columns.push_back({busy.unit + " busy"});
    Table table(columns);
    for (const WorkersRun& run : runs) {
        std::vector<Table::Cell> cells{{name_of(run)}, {number_text(run.cycles_per_block, 4)}, {number_text(gain(run), 3)}};
        for (const auto& busy : run.busy) cells.push_back({percent_text(busy.share)});
        table.row(cells);
    }
    write_result(fmt::format("{} tile {}x{}, {} {}, on {}  {}\n\n", works[int(tile.work)], tile.m, tile.n, tile.work == Work::softmax ? "dim" : "K", tile.dim,
                             target.machine->id, target.machine->name)
                     + parts.text(terminal) + "\n" + table.text(terminal) + "\n"
                     + entry("ceiling", fmt::format("{}: products, function, and copies that nothing hides, over the longest unit [M38]", number_text(ceiling, 4)), terminal),
                 output);
    return int(ExitCode::done);
}

}  // namespace

void add_workers(std::vector<Verb>& verbs) {
    const char* group = "Work";
    const Field own[] = {{"work", "NAME", "softmax (scores, exponentials, values; default) or silu (a product's tile whose elements pass it)", group},
                         {"tile", "MxN", "Queries and keys, or rows and columns; default 128x128", group},
                         {"dim", "N", "Elements of a query, default 128; or K of the product, default 4096", group},
                         {"in_flight", "N", "Blocks that a worker has begun and not finished, at most; default 2", group}};
    Verb verb;
    verb.path = "simulate workers";
    verb.meaning = "Two workers of one CTA on unlike units, in phase and a stage apart, beside one";
    verb.fields = joined_fields({own, target_fields()});
    verb.documents = Documents::json_only;
    verb.examples = "Examples:\n  rooftile simulate workers --machine a100-80-sxm\n"
                    "  rooftile simulate workers --work silu --machine async-units\n";
    verb.run = simulate;
    verbs.push_back(std::move(verb));
}

}  // namespace rooftile::cli
