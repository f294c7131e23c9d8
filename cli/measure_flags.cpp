#include "cli/measure_flags.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/timings.hpp"

namespace rooftile::cli {
namespace {

constexpr std::string_view modes[] = {"cold", "sustained", "burst"};

}  // namespace

std::span<const Field> measure_fields() {
    const char* group = "Measuring";
    static const Field fields[] = {
        {"mode", "MODE", "sustained (default), cold or burst", group},
        {"baseline", "NAME|none",
         "What is timed next to our kernels: all that the operation has (default), or none", group},
        {"seed", "N",
         "Seed of the random inputs and of what is drawn; default: a new one, which the document names", group},
        {"rounds", "N",
         "Blocks of each candidate (cold: launches); default: as many as the ratio to the baseline needs", group},
        {"confirm", "N",
         "Rounds at most of a paired re-measurement of plan 1 and the fastest; default 0, in a suite 12",
         group},
        {"suite", "FILE", "All problems of FILE; rows are appended to --out, which it resumes from", group},
        {"filter", "TEXT", "Only problems of a suite whose name holds TEXT", group},
        {"max_seconds", "S", "Stop a suite in order before S seconds have passed", group},
        {"timings", "", "Show what each part of the run took", group, FieldKind::on},
        {"counters", "", "Hardware counters of each plan, and of the baseline to beat, after they were timed",
         group, FieldKind::on},
        {"no_time", "", "Verify, and count with --counters, but time nothing", group, FieldKind::on},
        {"debug", "", "Wait for every launch and name the one that fails, with its plan; time nothing", group, FieldKind::on},
        {"explain", "", "How the predicted time comes about, and what the measured one leaves unexplained",
         group, FieldKind::on},
        {"energy", "", "Joules of a launch by term, predicted and measured", group, FieldKind::on},
    };
    return fields;
}

MeasureFlags::MeasureFlags(const Given& g, const OutputFlags& o)
    : given(g),
      output(o),
      mode(g.has("mode") ? g.text("mode") : "sustained"),
      seed(g.text("seed")),
      rounds(g.text("rounds")),
      confirm(g.text("confirm")),
      suite(g.text("suite")),
      filter(g.text("filter")),
      max_seconds(g.text("max_seconds")),
      timings(g.has("timings")) {}

MeasureOptions measure_options(const MeasureFlags& flags, const Operation& operation,
                               std::chrono::steady_clock::time_point start) {
    MeasureOptions options;
    options.mode = Mode(one_of("--mode", flags.mode, modes));
    if (flags.given.has("baseline")) {
        const std::string_view names[] = {operation.baseline(), "none"};
        options.baseline = one_of("--baseline", flags.given.text("baseline"), names) == 0;
    }
    options.seed = flags.seed.empty() ? fresh_seed()
                                      : seed_number("--seed", flags.seed);
    options.timing.rounds = rounds_of(options.mode);
    if (!flags.rounds.empty())
        options.timing.rounds.least = options.timing.rounds.most =
            std::size_t(whole_number("--rounds", flags.rounds, 1, 1000));
    if (!flags.confirm.empty())
        options.timing.confirmation.rounds = std::size_t(whole_number("--confirm", flags.confirm, 0, 1000));
    if (options.timing.confirmation.rounds > 0 && options.mode == Mode::cold)
        throw RequestError("--confirm is of --mode sustained and burst: cold launches are many already");
    options.counters = flags.given.has("counters");
    options.ablate = flags.given.has("ablate");
    options.time = !flags.given.has("no_time") && !flags.given.has("debug");
    if (flags.given.has("debug")) setenv("ROOFTILE_LAUNCH_BLOCKING", "1", 1);  // before the first launch reads it
    options.explain = flags.given.has("explain");
    options.energy = flags.given.has("energy");
    options.interrupted = interrupted;
    options.program_start = start;
    if (isatty(STDERR_FILENO)) options.progress = [](const std::string& line) { say(line); };
    return options;
}

LiveTarget live_target(const Given& given, int device) {
    std::optional<Target> named;
    if (given.has("machine")) named = target_of(given);
    LiveMachine live = live_machine(device);
    return {std::move(live), named ? std::move(*named) : target_of(given)};
}

void refuse_suite_flags(const MeasureFlags& flags) {
    for (const char* key : {"filter", "max_seconds"})
        if (flags.given.has(key)) throw RequestError(fmt::format("{} needs --suite FILE", flags.given.name(key)));
}

void refuse_problem(const Given& given, const Operation& operation) {
    for (const Field& field : operation.fields())
        if (field.group.starts_with("Problem") && given.has(field.key))
            throw RequestError(fmt::format("--suite and {} exclude each other: the suite's file has it",
                                           field.kind == FieldKind::positional ? "an " + field.key
                                                                               : given.name(field.key)));
}

std::string closing_text(const std::vector<std::string>& notes, const std::vector<Timing>& timings,
                         const MeasureFlags& flags, const Terminal& terminal) {
    std::string out;
    for (const std::string& note : notes)
        out += "\nnote  " + wrapped(displayable(note, terminal.utf8), terminal.prose() - 6, 6);
    if (!notes.empty()) out += "\n";
    if (flags.timings) out += "\n" + timings_text(timings, terminal);
    return out;
}

int verdict(bool unproven, bool unbuilt) {
    if (unproven) {
        say("verification failed: a result is wrong or was not compared; its row says where");
        return int(ExitCode::verification_failed);
    }
    if (!unbuilt) return int(ExitCode::done);
    say("a kernel did not compile as planned; its row says why");
    return int(ExitCode::compile_failed);
}

}  // namespace rooftile::cli
