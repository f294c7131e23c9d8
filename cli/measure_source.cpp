// `measure source`: a kernel that the user wrote, beside the one that is derived for the same expression.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/source_measure.hpp"

namespace rooftile::cli {
namespace {

/// Of measuring anything, those that one kernel has.
std::vector<Field> flags_of_measuring() {
    constexpr std::string_view own[] = {"mode", "baseline", "seed", "rounds", "timings", "counters", "no_time"};
    std::vector<Field> out;
    for (const Field& field : measure_fields())
        if (std::ranges::find(own, field.key) != std::end(own)) out.push_back(field);
    return out;
}

/// A kernel that does not end cannot be waited for, and so nothing of this process can be put away in order.
[[noreturn]] void end_late(const std::string& why) {
    say(why);
    _exit(int(ExitCode::gpu_failed));
}

int write_report(const SourceRun& measured, DocumentContext context, const MeasureFlags& flags, std::uint64_t seed) {
    const MeasureRun& run = measured.run;
    context.gpu = GpuContext{run.gpu.gpu, run.gpu.driver, run.gpu.nvrtc, utc_now(), seed};
    const Format format = checked_format(flags.output);
    if (format == Format::text) {
        const Terminal terminal = terminal_for(flags.output);
        write_result(source_text(context, measured.report, terminal)
                         + closing_text(measured.report.notes, run.timings, flags, terminal),
                     flags.output);
    } else {
        const auto timings = flags.timings ? run.timings : std::vector<Timing>();
        write_result(document_text(source_document(context, measured.report, timings), format), flags.output);
    }
    const auto& rows = measured.report.rows;
    const auto unbuilt = [](const Measurement& row) { return !row.built; };
    return verdict(std::ranges::any_of(rows, is_unproven), std::ranges::any_of(rows, unbuilt));
}

int measure_one_source(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    const MeasureFlags flags(given, output);
    SourceRequest request = source_request(given);
    request.on_timeout = end_late;
    MeasureOptions options = measure_options(flags, *request.problem.operation, invocation.start);
    const auto [live, target] = live_target(given, options.device);
    options.machine = &live.machine;
    if (request.debug) setenv("ROOFTILE_LAUNCH_BLOCKING", "1", 1);
    note_interrupts();
    return write_report(measure_source(request, target.machine, options), context_of(*target.machine, invocation.command), flags,
                        options.seed);
}

}  // namespace

void add_measure_source(std::vector<Verb>& verbs) {
    const std::vector<Field> measuring = flags_of_measuring();
    verbs.push_back({.path = "measure source",
                     .meaning = "A kernel of your own: compiled, proved right, timed beside the derived one and copies",
                     .fields = joined_fields({source_fields(), target_fields(), measuring}),
                     .documents = Documents::all,
                     .examples = "Examples:\n"
                                 "  rooftile measure source gelu.cu --entry gelu --tensor \"x:bf16[4096,4096]\" \\\n"
                                 "      --tensor \"y:bf16[4096,4096]\" --arg int64:16777216 --grid 8192 --reference \"y = gelu(x)\"\n",
                     .synopsis = "FILE.cu --entry NAME --tensor \"x:bf16[4096,4096]\" --grid N --reference \"y = gelu(x)\"",
                     .run = measure_one_source});
}

}  // namespace rooftile::cli
