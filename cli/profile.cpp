// `profile -- PROGRAM`: what a program does on the GPU, and what it should take; `report profile`: the same of recorded runs.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cli/pictures.hpp"
#include "cli/verb.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/profile/counted.hpp"
#include "rooftile/profile/document.hpp"
#include "rooftile/runtime/counted_program.hpp"
#include "rooftile/runtime/profiled_program.hpp"

namespace rooftile::cli {
namespace {

constexpr int usual_top = 10, most_top = 1000;

std::vector<Field> profile_fields() {
    const char* group = "Options";
    return {{"range", "NAME", "Only what is asked for in NVTX ranges of that name, and times a range; cudaProfilerStart: between its calls",
             group},
            {"top", "N", "Kernels to list; default 10", group},
            {"machine", "ID|FILE", "Predict by these numbers; default: the shipped file that stands for the GPU", group},
            {"timeline", "FILE", "Write trace events, which ui.perfetto.dev shows", group},
            {"flame", "FILE", "Write folded stacks, range by range, for flame graph tools", group}};
}

int top_of(const Given& given) {
    return given.has("top") ? int(whole_number(given.name("top"), given.text("top"), 1, most_top)) : usual_top;
}

void check_files(const Given& given, const OutputFlags& output) {
    checked_format(output);
    check_writable(output);
    check_picture_files(given);
    for (const char* key : {"timeline", "flame"})
        if (given.has(key)) check_writable(file_flags(given, key));
}

std::string quoted(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : " ") + shell_quoted(word);
    return out;
}

/// That --machine names; null: each device's own.
std::shared_ptr<const Machine> machine_of(const Given& given) {
    return given.has("machine") ? std::make_shared<const Machine>(machine_by_id(given.text("machine"))) : nullptr;
}

Json document_of(const std::shared_ptr<const Machine>& machine, Profile profile, const std::string& profiled, double wall_ns,
                 const std::string& command) {
    profile.command = profiled, profile.wall = wall_ns;
    DocumentContext context = machine ? context_of(*machine, command) : context_of(command);
    if (!profile.devices.empty() && wall_ns > 0) {
        context.gpu.emplace();
        context.gpu->gpu = profile.devices.front().device.name, context.gpu->date = utc_now();
    }
    return profile_document(context, profile, explained(profile, machine));
}

void write_files(const Given& given, const Json& document, const std::vector<Recorded>& recordings, const OutputFlags& output,
                 const std::string& command) {
    if (given.has("timeline")) write_result(json_text(timeline(recordings), -1), file_flags(given, "timeline"));
    if (given.has("flame")) write_result(folded_stacks(document), file_flags(given, "flame"));
    if (wants_pictures(given)) write_pictures(given, document, command);
    write_result(output.json ? json_text(document) : profile_text(document, top_of(given), terminal_for(output)), output);
}

/// Why no work was seen; empty where some was.
std::string why_nothing(const std::vector<Recorded>& recordings) {
    std::string notice;
    bool cut_off = false;
    for (const Recorded& r : recordings) {
        if (!r.work.empty()) return "";
        if (!r.notices.empty()) notice = r.notices.front();
        cut_off |= r.begin && !r.end;
    }
    if (recordings.empty()) return "did not start CUDA";
    if (!notice.empty()) return "was not recorded, " + notice;
    return cut_off ? "ended at once (a kill, _exit), before its work was recorded" : "launched nothing on a GPU";
}

/// Runs the program once more, for counters of its top kernels.
void count(Profile& profile, const std::vector<Recorded>& recordings, const std::string& ncu, const std::vector<std::string>& command,
           std::size_t top) {
    const LaunchesToCount launches = launches_to_count(recordings, profile, top);
    for (const std::string& name : launches.skipped)
        profile.notices.push_back(fmt::format("{} is not counted: its name has signs that ncu's filter of launches cannot take", name));
    if (launches.kernels.empty()) return;
    say(fmt::format("runs {} again under ncu, for counters of {} {}", command.front(), launches.kernels.size(),
                    launches.kernels.size() == 1 ? "kernel" : "kernels"));
    add_counters(profile, read_counted(run_counted(ncu, command, counted_metrics(), kernel_filter(launches))));
    if (std::ranges::none_of(profile.kernels, [](const KernelGroup& group) { return group.counters.has_value(); }))
        throw Error(ExitCode::gpu_failed,
                    "nothing was counted: no launch of the second run is like one of the first; a program that launches alike each time "
                    "has counters");
}

int profile(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    const std::vector<std::string>& command = invocation.program;
    if (command.empty())
        throw RequestError(fmt::format("profile needs a program after --: rooftile profile -- {}",
                                       given.has("program") ? quoted(given.list("program")) : "python3 train.py"));
    top_of(given);
    check_files(given, output);
    const std::shared_ptr<const Machine> machine = machine_of(given);
    const std::string ncu = given.has("counters") ? found_ncu() : "";
    const ProfiledProgram program =
        run_profiled({.command = command, .keep = given.text("recordings"), .operators = given.has("operators")});
    const std::string end = program.signal ? fmt::format("was ended by signal {} ({})", program.signal, strsignal(program.signal))
                            : program.code ? fmt::format("ended with exit code {}", program.code)
                                           : "";
    if (const std::string why = why_nothing(program.recordings); !why.empty()) {
        say(fmt::format("{} {}{}{}: there is nothing to report", command.front(), end, end.empty() ? "" : "; it ", why));
        return program.code ? program.code : int(ExitCode::gpu_failed);
    }
    if (!end.empty()) say(fmt::format("{} {}; what it did until then is reported", command.front(), end));
    Profile seen = profile_of(program.recordings, given.text("range"));
    int code = program.code;
    if (!ncu.empty()) {
        try {
            count(seen, program.recordings, ncu, command, std::size_t(top_of(given)));
        } catch (const Error& error) {  // the profile stands without counters
            say(error.what());
            if (code == int(ExitCode::done)) code = int(error.code());
        }
    }
    write_files(given, document_of(machine, std::move(seen), quoted(command), program.wall_ns, invocation.command), program.recordings,
                output, invocation.command);
    return code;
}

std::string lacks(const std::string& file, const nlohmann::json::exception& error) {
    return fmt::format("{} lacks what its schema promises: {}", file, error.what());
}

/// A document, or a recording as one. `recorded`: what the recording held, where it was one.
Json read_profile(const Given& given, const std::string& file, const std::string& command, std::vector<Recorded>& recorded) {
    const std::string text = read_whole_file(file);
    if (is_recording(text)) {
        recorded.push_back(read_recording(text, file));
        return document_of(machine_of(given), profile_of(recorded, given.text("range")), file, 0, command);
    }
    const Json document = Json::parse(text, nullptr, false);
    if (!document.is_object() || text_at(document, "schema") != "rooftile/profile/1")
        throw RequestError(fmt::format("{}: no profile; `rooftile profile --json --out {} -- PROGRAM` writes one", file, file));
    for (const char* key : {"range", "machine", "timeline"})
        if (given.has(key))
            throw RequestError(
                fmt::format("{} needs a recording, and {} is a document made of one; `rooftile profile --recordings DIR` keeps them",
                            given.name(key), file));
    try {
        profile_text(document, most_top, {});
    } catch (const nlohmann::json::exception& error) { throw RequestError(lacks(file, error)); }
    return document;
}

int report_profile(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    if (!given.has("file"))
        throw RequestError("report profile needs what `profile --json` or `profile --recordings` wrote: report profile FILE [FILE]");
    const int top = top_of(given);
    check_files(given, output);
    if (given.has("other")) {
        for (const char* key : {"timeline", "flame", "svg", "html"})
            if (given.has(key)) throw RequestError(fmt::format("two profiles are compared as text; leave {} out", given.name(key)));
        if (output.json) throw RequestError("two profiles are compared as text; leave --json out");
    }
    std::vector<Recorded> recordings, others;
    const Json document = read_profile(given, given.text("file"), invocation.command, recordings);
    if (given.has("other")) {
        const Json other = read_profile(given, given.text("other"), invocation.command, others);
        write_result(profile_comparison_text(document, other, top, terminal_for(output)), output);
        return int(ExitCode::done);
    }
    try {
        write_files(given, document, recordings, output, invocation.command);
    } catch (const nlohmann::json::exception& error) { throw RequestError(lacks(given.text("file"), error)); }
    return int(ExitCode::done);
}

}  // namespace

void add_profile(std::vector<Verb>& verbs) {
    const std::vector<Field> own = {
        {"program", "PROGRAM...", "The program and its arguments, after --", "Program", FieldKind::positional},
        {"operators", "", "Make PyTorch's operators ranges, with the shapes of their tensors; Python programs alone; takes the host time",
         "Options", FieldKind::on},
        {"counters", "", "Run the program once more under ncu, for DRAM and L2 bytes, matrix units and issue slots of the listed kernels",
         "Options", FieldKind::on},
        {"recordings", "DIR", "Keep what was recorded there, one file a process, for report profile", "Options"}};
    const std::vector<Field> files = {{"file", "FILE", "What `profile --json` wrote, or a recording", "Files", FieldKind::positional},
                                      {"other", "FILE", "Another run, to be compared kernel by kernel", "Files", FieldKind::positional}};
    verbs.push_back({.path = "profile",
                     .meaning = "Run any program and say what its kernels take, what they should take, and why the GPU waits",
                     .fields = joined_fields({own, profile_fields(), picture_fields(true)}),
                     .documents = Documents::json_only,
                     .examples = "Examples:\n  rooftile profile -- python3 train.py\n"
                                 "  rooftile profile --range step --html step.html -- python3 train.py\n"
                                 "  rooftile profile --timeline trace.json --json -o run.json -- ./program\n",
                     .synopsis = "[OPTIONS] -- PROGRAM...",
                     .takes_program = true,
                     .run = profile});
    verbs.push_back({.path = "report profile",
                     .meaning = "A recorded profile again, or two compared kernel by kernel",
                     .fields = joined_fields({files, profile_fields(), picture_fields(true)}),
                     .documents = Documents::json_only,
                     .examples = "Examples:\n  rooftile report profile run.json\n  rooftile report profile before.json after.json\n",
                     .synopsis = "FILE [FILE]",
                     .run = report_profile});
}

}  // namespace rooftile::cli
