// `sweep mlp`: a PyTorch MLP at many sizes, what each step should take, and why its time jumps.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/pictures.hpp"
#include "cli/python_run.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/ways/mlp.hpp"

namespace rooftile::cli {
namespace {

constexpr std::size_t most_points = 500;
constexpr std::int64_t most_value = std::int64_t{1} << 20;
/// Where nothing is given each parameter is swept in turn, the others at their first values.
constexpr std::array<const char*, 4> usual = {"8", "4", "1024", "2048"};
constexpr std::array<const char*, 4> usual_ranges = {"1..32", "1..16", "16..16384", "128..8192"};

std::vector<MlpCurve> curves_of(const Given& given) {
    std::array<std::vector<std::int64_t>, 4> values;
    bool swept = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const char* key = mlp_parameters[i];
        values[i] = value_list(given.name(key), given.has(key) ? given.text(key) : usual[i], most_value);
        swept = swept || values[i].size() > 1;
    }
    std::vector<MlpCurve> out;
    if (swept) out = mlp_curves(values);
    else
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (given.has(mlp_parameters[i])) continue;  // it was given one value
            auto one = values;
            one[i] = value_list(given.name(mlp_parameters[i]), usual_ranges[i], most_value);
            for (MlpCurve& curve : mlp_curves(one)) out.push_back(std::move(curve));
        }
    if (out.empty()) out = mlp_curves(values);
    std::size_t points = 0;
    for (const MlpCurve& curve : out) points += curve.points.size();
    if (points > most_points) throw RequestError(fmt::format("{} points are more than {}: give fewer values", points, most_points));
    return out;
}

int sweep_mlp(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    check_writable(output);
    check_picture_files(given);
    only_value(given.name("type"), given.text("type"), "bf16");
    const std::uint64_t seed = given.has("seed") ? seed_number(given.name("seed"), given.text("seed")) : 1;
    const std::vector<MlpCurve> curves = curves_of(given);
    const auto [machine, note] = target_of(given);
    Json points = Json::array();
    for (const MlpCurve& curve : curves)
        for (const MlpPoint& point : curve.points) {
            Json one = Json::object();
            for (std::size_t i = 0; i < point.size(); ++i) one[mlp_parameters[i]] = point[i];
            points.push_back(std::move(one));
        }
    const bool timed = !given.has("no_time");
    const PythonRun run =
        run_python("mlp_sweep.py", {{"points", std::move(points)}, {"type", "bf16"}, {"seed", seed}, {"time", timed}}, given, timed);
    if (!note.empty()) say(note);
    const Json document =
        mlp_document(context_of_run(*machine, run, invocation.command, seed), curves, "bf16", run.report, run.recordings, machine);
    if (wants_pictures(given)) write_pictures(given, document, invocation.command);
    write_result(output.json ? json_text(document) : mlp_text(document, terminal_for(output)), output);
    for (const Json& curve : document.at("curves"))
        for (const Json& point : curve.at("points"))
            if (point.at("right").is_boolean() && !point.at("right").get<bool>()) {
                say("a result is wrong");
                return int(ExitCode::verification_failed);
            }
    return int(ExitCode::done);
}

}  // namespace

void add_sweep_mlp(std::vector<Verb>& verbs) {
    const char *sizes = "Sizes", *group = "Options";
    const std::vector<Field> own = {
        {"steps", "VALUES", "Forward passes of a run, one after the other; default 8, swept 1..32", sizes, FieldKind::text},
        {"layers", "VALUES", "Linear with bias, then gelu; default 4, swept 1..16", sizes, FieldKind::text},
        {"batch", "VALUES", "Rows; default 1024, swept 16..16384", sizes, FieldKind::text},
        {"dim", "VALUES", "Columns of every layer; default 2048, swept 128..8192", sizes, FieldKind::text},
        {"type", "TYPE", "Type of weights and activations: bf16 (default)", group},
        {"seed", "S", "Seed of the random weights; default 1", group},
        {"no_time", "", "Only verify; without a GPU on the CPU", group, FieldKind::on}};
    verbs.push_back({.path = "sweep mlp",
                     .meaning = "A PyTorch MLP at many sizes: time, prediction, and why the time jumps",
                     .fields = joined_fields({own, python_fields(), target_fields(), picture_fields(true)}),
                     .documents = Documents::json_only,
                     .examples =
                         "Examples:\n  rooftile sweep mlp\n"
                         "  rooftile sweep mlp --batch 128..4096..128 --html batch.html\n"
                         "  rooftile sweep mlp --dim 512,1024,2048 --batch 1..4096\n"
                         "VALUES: 512; 1,2,8; 64..4096 by doubling; 128..1024..128 in steps of 128. Without any list or range each\n"
                         "parameter that is not given is swept by itself.\n",
                     .synopsis = "--batch 16..4096",
                     .run = sweep_mlp});
}

}  // namespace rooftile::cli
