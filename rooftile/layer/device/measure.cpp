#include "rooftile/layer/device/measure.hpp"

#include "rooftile/core/operation.hpp"
#include "rooftile/layer/device/run.hpp"
#include "rooftile/measure/bench.hpp"

namespace rooftile {
namespace {

/// The layer, and each kernel by itself, in as many rounds as tell its median.
std::vector<TimedWork> works_of(const LayerRun& run) {
    std::vector<TimedWork> works;
    works.push_back(
        {.name = "layer", .launch = [&run](Stream stream, std::int64_t set) { run.launch(stream, set); }, .role = Role::leader});
    for (std::size_t i = 0; i < run.kernels().size(); ++i)
        works.push_back({.name = run.kernels()[i].part.name,
                         .launch = [&run, i](Stream stream, std::int64_t set) { run.launch(i, stream, set); },
                         .role = Role::aside});
    return works;
}

}  // namespace

MeasuredLayer measure_layer(const std::shared_ptr<const Machine>& machine, const ModelConfig& model, const LayerKind& kind,
                            const LayerStep& step, const MeasureOptions& options, RunningGpu& gpu) {
    check_layer_reference(model, kind, step);
    MeasuredLayer out{.model = model, .step = step, .kernels = {}, .errors = {}};
    std::vector<RunnablePart> kernels = compile_layer(machine, model, layer_parts(model, kind, step));
    for (const RunnablePart& kernel : kernels) {
        LayerKernelTime& time = out.kernels.emplace_back();
        time.name = kernel.part.name, time.operation = kernel.part.operation, time.plan = kernel.label;
        if (kernel.kernel) time.problem = kernel.kernel->plan().operation->short_name(kernel.kernel->plan().problem);
        time.predicted_us = kernel.predicted_us, time.least_us = kernel.least_us;
        out.notes.insert(out.notes.end(), kernel.notes.begin(), kernel.notes.end());
    }
    std::vector<Timing> timings;
    std::unique_ptr<Context> context;
    const std::unique_ptr<Bench> bench = start_bench(options, Driver::instance().device(options.device).arch(), context, timings);
    gpu = bench->running();
    const LayerRun run(std::move(kernels), model, kind, step, 0, options.seed);
    out.sets = run.sets(), out.set_bytes = run.set_bytes();
    out.errors = run.verify();
    if (!options.time || !out.right()) return out;

    const std::vector<unsigned char> verified = run.result();
    const std::vector<TimedWork> works = works_of(run);
    const std::vector<TimedResult> timed = bench->time(works, run.sets(), 1, timings);
    for (std::size_t i = 0; i < works.size(); ++i) {
        if (!timed[i].failure.empty()) throw Error(ExitCode::gpu_failed, works[i].name + ": " + timed[i].failure);
        (i == 0 ? out.layer_us : out.kernels[i - 1].measured_us) = timed[i].time_us;
    }
    // The same layer once more: whatever raced while it was timed shows here too.
    const StreamOwner stream;
    for (std::int64_t set = 0; set < run.sets(); ++set) run.launch(stream, set);
    stream.synchronize();
    out.same_bits = run.result() == verified;
    return out;
}

}  // namespace rooftile
