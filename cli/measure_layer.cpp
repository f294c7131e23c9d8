// `measure layer`: a model's layer by our own kernels, each kernel's time and its prediction, and PyTorch's way of the same layer.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/layer_model.hpp"
#include "cli/measure_flags.hpp"
#include "cli/python_run.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/layer/device/measure.hpp"
#include "rooftile/layer/device/reference.hpp"

namespace rooftile::cli {
namespace {

constexpr std::int64_t most_gpus = 8, most_sequences = 65536, most_tokens = std::int64_t{1} << 24;
constexpr std::string_view baselines[] = {"torch", "none"};

std::vector<Field> layer_fields() {
    const char *layer = "Layer", *group = "Measuring";
    const std::vector<Field> own = {
        {"config", "FILE", "The model's config.json, as it is published", layer},
        {"layer", "I", "Which of its layers, from 0 on; default: the first of the kind that most are of",
         layer},
        {"batch", "N", "Sequences; default 1", layer},
        {"context", "N", "Keys that each sequence has once its token is among them", layer},
        {"prefill", "N", "Prefill so many tokens of each sequence instead of decoding one", layer},
        {"tp", "N", "GPUs that share the layer: 1 runs, more are planned only", layer},
        {"baseline", "torch|none", "What it is compared with: PyTorch, where it is installed (default)",
         group},
        {"seed", "N", "Seed of weights, caches and inputs; default: a new one, which the document names",
         group},
        {"rounds", "N", "Blocks of the layer and of each kernel; default: as many as the error needs", group},
        {"counters", "", "Hardware counters of each kernel and of the layer, after they were timed", group,
         FieldKind::on},
        {"no_time", "", "Verify, and time nothing", group, FieldKind::on},
    };
    const std::vector<Field> python = {{"python", "PROGRAM", "The Python that has PyTorch; default python3", group}};
    return joined_fields({own, python, target_fields()});
}

std::int64_t size_of(const Given& given, const char* key, std::int64_t preset, std::int64_t most) {
    return given.has(key) ? size_number(given.name(key), given.text(key), most) : preset;
}

LayerStep step_of(const Given& given) {
    LayerStep step;
    const std::int64_t batch = size_of(given, "batch", 1, most_sequences);
    if (given.has("tp") && whole_number(given.name("tp"), given.text("tp"), 1, most_gpus) > 1)
        throw RequestError(
            fmt::format("{} {}: a layer that several GPUs share is planned, not yet run; rooftile plan layer "
                        "--tp {} says what it takes",
                        given.name("tp"), given.text("tp"), given.text("tp")));
    if (given.has("prefill") && given.has("context"))
        throw RequestError(
            fmt::format("{} with {}: a step that prefills some sequences and decodes others is planned, not "
                        "yet run; rooftile plan layer "
                        "--prefill SHARE says what it takes. Give one of the two",
                        given.name("context"), given.name("prefill")));
    if (!given.has("prefill") && !given.has("context"))
        throw RequestError(
            "measure layer needs --context N, keys that sequences have while they decode, or --prefill N, tokens that each of them begins "
            "with");
    if (given.has("prefill")) step.prefill = batch, step.context = size_of(given, "prefill", 0, most_tokens);
    else step.decode = batch, step.context = size_of(given, "context", 0, most_tokens);
    return step;
}

/// What the script of the baseline is told.
Json request_of(const MeasuredLayer& layer, const LayerKind& kind, std::uint64_t seed) {
    const ModelConfig& m = layer.model.config;
    Json experts = nullptr;
    if (kind.experts)
        experts = {{"count", m.experts->count},
                   {"per_token", m.experts->per_token},
                   {"intermediate", m.experts->intermediate},
                   {"shared_intermediate", m.experts->shared_intermediate},
                   {"shared_gate", m.experts->shared_gate},
                   {"renormalized", m.experts->renormalized}};
    return {{"hidden", m.hidden},
            {"heads", m.heads},
            {"kv_heads", m.kv_heads},
            {"head_dim", m.head_dim},
            {"intermediate", m.intermediate},
            {"experts", std::move(experts)},
            {"activation", m.activation},
            {"eps", m.norm_eps},
            {"frequencies", rotary_frequencies(m, layer.step.context)},
            {"amplitude", m.rope_scaling.amplitude},
            {"rotated", rotated_elements(m)},
            {"query_key_norms", m.query_key_norms},
            {"qkv_bias", m.qkv_bias},
            {"type", m.type},
            {"window", kind.window},
            {"batch", layer.step.sequences()},
            {"context", layer.step.context},
            {"prefill", layer.step.prefill > 0},
            {"sets", layer.sets},
            {"seed", seed}};
}

void add_baseline(MeasuredLayer& layer, const LayerKind& kind, const Given& given, std::uint64_t seed) {
    const PythonRun run = run_python("layer_torch.py", request_of(layer, kind, seed), given, false);
    const std::string torch = text_at(run.report, "torch");
    if (torch.empty()) {
        layer.notes.push_back(
            "PyTorch is not installed, so nothing is compared; --python names a Python that has it, --baseline none leaves it out");
        return;
    }
    layer.baseline_program = "PyTorch " + torch;
    for (const Json& way : run.report.at("ways"))
        layer.baselines.push_back({.name = text_at(way, "name"), .time_us = number_at(way, "time_us"), .absent = text_at(way, "absent")});
}

int measure_layer_verb(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    check_writable(output);
    if (!given.has("config")) throw RequestError("measure layer needs --config FILE, the config.json of a model");
    const bool with_torch = !given.has("baseline") || one_of(given.name("baseline"), given.text("baseline"), baselines) == 0;
    const LayerStep step = step_of(given);
    const LayerModel model = layer_model(given);
    const std::int64_t which = layer_number(given, model.config);
    const LayerKind kind = model.config.layers.at(std::size_t(which));
    check_layer_reference(model.config, step);

    MeasureOptions options;
    options.seed = given.has("seed") ? seed_number(given.name("seed"), given.text("seed")) : fresh_seed();
    options.time = !given.has("no_time");
    options.counters = given.has("counters");
    options.timing.rounds = rounds_of(options.mode);
    options.timing.alone_seconds = 0;
    if (given.has("rounds"))
        options.timing.rounds.least = options.timing.rounds.most =
            std::size_t(whole_number(given.name("rounds"), given.text("rounds"), 1, 1000));
    options.interrupted = interrupted;
    options.program_start = invocation.start;
    const auto [live, target] = live_target(given, options.device);
    note_interrupts();
    RunningGpu gpu;
    LayerPlanner planner(target.machine);
    MeasuredLayer layer = measure_layer(planner, model, which, step, options, gpu);
    if (!target.note.empty()) layer.notes.push_back(target.note);
    if (with_torch && options.time && layer.right()) {
        try {
            add_baseline(layer, kind, given, options.seed);
        } catch (const Error& error) {  // what was measured stands, unless somebody asked for that baseline
            if (given.has("baseline")) throw;
            layer.notes.push_back(error.what());
        }
    }
    DocumentContext context = context_of(*target.machine, invocation.command);
    context.gpu = GpuContext{gpu.gpu, gpu.driver, gpu.nvrtc, utc_now(), options.seed};
    write_result(output.json ? json_text(measured_layer_document(context, layer, planner))
                             : measured_layer_text(context, layer, terminal_for(output)),
                 output);
    if (layer.right()) return int(ExitCode::done);
    say("verification failed: the layer's result is further from fp64 than its roundings make");
    return int(ExitCode::verification_failed);
}

}  // namespace

void add_measure_layer(std::vector<Verb>& verbs) {
    verbs.push_back({.path = "measure layer",
                     .meaning = "One layer of a model by our kernels: each one's time and its prediction, and PyTorch's layer",
                     .fields = layer_fields(),
                     .documents = Documents::json_only,
                     .examples = "Examples:\n  rooftile measure layer --config config.json --batch 16 --context 2048\n"
                                 "  rooftile measure layer --config config.json --batch 8 --prefill 1024 --json\n",
                     .synopsis = "--config config.json --batch 16 --context 2048",
                     .run = measure_layer_verb});
}

}  // namespace rooftile::cli
