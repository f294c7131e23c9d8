// `step`: a kernel of the user's on the CPU, with every access checked. Needs g++, no GPU.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/verb.hpp"
#include "rooftile/error.hpp"
#include "rooftile/step/report.hpp"

namespace rooftile::cli {
namespace {

/// Who interrupts ends the compiler, or the kernel, too.
StepOutcome stepped(const StepRequest& request) {
    std::optional<Progress> progress(std::in_place, "compiling");
    bool steps = false;
    try {
        return step(request, [&](std::int64_t done, std::int64_t total) {
            if (!steps) progress.emplace("stepping block", std::size_t(total), request.source.timeout_seconds);
            steps = true;
            progress->set(std::size_t(done));
        });
    } catch (const Error&) {
        if (interrupted()) throw Error(ExitCode::interrupted, "interrupted");
        throw;
    }
}

int step_kernel(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const Format format = checked_format(output);
    const StepRequest request = step_request(given);
    note_interrupts();
    const StepOutcome outcome = stepped(request);
    write_result(format == Format::text ? step_text(request, outcome, terminal_for(output))
                                        : document_text(step_document(context_of(invocation.command), request, outcome), format),
                 output);
    if (outcome.fault) {
        const StepFault& fault = *outcome.fault;
        say(fmt::format("{}: {}", fault.at.line > 0 ? fmt::format("{}:{}", fault.at.file, fault.at.line) : request.source.path,
                        fault.message));
    } else if (outcome.right == false) say(fmt::format("verification failed: {}: {}", request.source.entry, outcome.comparison));
    return int(outcome.fault || outcome.right == false ? ExitCode::verification_failed : ExitCode::done);
}

}  // namespace

void add_step(std::vector<Verb>& verbs) {
    const std::span<const Field> fields = step_fields();
    verbs.push_back(
        {.path = "step",
         .meaning = "A kernel of your own on the CPU: the first access out of bounds, race or divergent barrier, with its line",
         .fields = {fields.begin(), fields.end()},
         .documents = Documents::json_only,
         .examples = "Examples:\n"
                     "  rooftile step saxpy.cu --tensor \"x:fp32[1000]\" --tensor \"y:fp32[1000]\" --arg int32:1000 --arg fp32:2 --grid 4\n"
                     "  rooftile step sum.cu --entry block_sum --tensor \"x:fp32[4096]\" --tensor \"y:fp32[16]\" --grid 16 \\\n"
                     "      --thread 5 --watch 12:sum\n",
         .synopsis = "FILE.cu --entry NAME --tensor \"x:fp32[1000]\" --grid N",
         .run = step_kernel});
}

}  // namespace rooftile::cli
