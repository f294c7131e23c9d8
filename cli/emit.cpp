// `emit`: a plan's kernel as one file to read and to take away. Needs no GPU.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/target.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/first_buildable.hpp"
#include "rooftile/emit/emit.hpp"
#include "rooftile/error.hpp"

namespace rooftile::cli {
namespace {

constexpr int emitted_from = 64;  ///< plans that --rank may name where --top does not say

int emit(const Operation& operation, const Given& given, const OutputFlags& output, const Invocation& invocation) {
    checked_format(output);
    const Problem problem = problem_with_work(operation, given);
    const Own request = operation.request(given, {.top = emitted_from});
    const Target target = target_of(given);
    std::optional<Progress> progress(std::in_place, "compiling", emit_turns);
    const PlanSet plans = derive_for(target, problem, request);
    if (plans.refusal) return progress.reset(), report_refusal(plans, context_of(*target.machine, invocation.command), output);
    const Plan& plan = given.has("rank") ? ranked_plan(plans, given) : first_buildable(plans);
    const EmittedFile file = emit_file(*target.machine, plans, plan, [&] { progress->step(); });
    progress.reset();
    OutputFlags to = output;
    if (!output.file.empty()) {
        std::error_code error;
        std::filesystem::create_directories(output.file, error);
        if (error) throw RequestError(fmt::format("--out: {} is no folder and cannot be made: {}", output.file, error.message()));
        to.file = (std::filesystem::path(output.file) / file.name).string();
    }
    write_result(file.text, to);
    if (!to.file.empty())
        say(fmt::format("{}: {} lines; the kernel with all its headers had {}{}", to.file, std::ranges::count(file.text, '\n'),
                        file.lines_before, file.is_reduced ? "" : "; its branches are kept, since without them it is another kernel"));
    if (!target.note.empty()) say(target.note);
    return int(ExitCode::done);
}

std::vector<Field> emit_fields(const Operation& operation) {
    const Field own[] = {
        {"rank", "N", "Emit plan N; default: the first that can be built", "Output"},
        {"out", "DIR", "Write one file into DIR, named by the problem; default: to stdout", "Output", FieldKind::value, 'o'}};
    return joined_fields({operation.fields(), target_fields(), own});
}

}  // namespace

void add_emit(std::vector<Verb>& verbs) {
    for (const Operation* operation : operations()) {
        const std::string name(operation->name()), example(operation->example());
        verbs.push_back({.path = "emit " + name,
                         .meaning = "The planned kernel as one .cu that nvcc compiles by itself, with a launcher and a check",
                         .fields = emit_fields(*operation),
                         .documents = Documents::text_only,
                         .examples = fmt::format("Examples:\n  rooftile emit {0} {1} --machine h100-sxm -o DIR\n"
                                                 "  nvcc -std=c++20 -arch=sm_90a -c DIR/FILE.cu\n",
                                                 name, example),
                         .synopsis = example,
                         .run = [operation](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                             return emit(*operation, given, output, invocation);
                         }});
    }
}

}  // namespace rooftile::cli
