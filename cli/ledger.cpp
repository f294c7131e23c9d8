// `ledger OPERATION`: the declared spaces of drawn problems, timed on this GPU and kept for `validate`.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/core/sweep.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/measure/space_run.hpp"
#include "rooftile/report/ledger.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile::cli {
namespace {

constexpr const char* group = "Ledger";
constexpr int kept_plans = 8;

std::vector<Field> ledger_fields() {
    const Field own[] = {
        {"draw", "N", "So many problems, by the operation's law", group},
        {"seed", "S", "Seed of what is drawn, and of the random inputs; default 1", group},
        {"picks", "FILE",
         "What others pick of these problems, JSON lines; docs/command-line.md has the format", group},
        {"max_seconds", "S", "Stop in order before S seconds have passed; the same command goes on", group},
        {"plan_only", "", "Print what the spaces hold and how much of it is to be compiled; needs no GPU",
         group, FieldKind::on},
        {"timings", "", "Show what each part of the run took", group, FieldKind::on},
    };
    return joined_fields({own, target_fields()});
}

/// By problem_key(): what others pick.
using Picks = std::map<std::string, std::vector<Pick>>;

Picks picks_in(const Operation& operation, const std::string& file) {
    Picks picks;
    if (file.empty()) return picks;
    const std::string text = read_whole_file(file);
    int number = 1;
    for (std::size_t begin = 0; begin < text.size(); ++number) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        try {
            const Json line = Json::parse(text.substr(begin, end - begin));
            const Problem problem =
                operation.problem(operation.given_of_record(record_of(line.at("problem"))));
            Pick pick{.name = line.at("name").get<std::string>(), .alternatives = {}};
            for (const Json& fixed : line.at("alternatives")) {
                Given& given = pick.alternatives.emplace_back(Given::Named::by_key);
                for (const auto& [key, value] : fixed.items()) given.add(key, value.get<std::string>());
            }
            picks[problem_key(problem)].push_back(std::move(pick));
        } catch (const std::exception& error) {
            throw RequestError(
                fmt::format("--picks {}:{}: no pick: {}", file, number, printable(error.what(), 200)));
        }
        begin = end + 1;
    }
    return picks;
}

/// The file of --out, problem by problem.
class LedgerRun {
  public:
    LedgerRun(const Operation& operation, const Suite& suite, const Given& given, const OutputFlags& output,
              const Invocation& invocation)
        : operation_(operation), suite_(suite), given_(given), output_(output), invocation_(invocation) {
        if (given.has("max_seconds"))
            max_seconds_ = double(whole_number("--max-seconds", given.text("max_seconds"), 1, 1'000'000));
    }

    int run(std::uint64_t seed) {
        if (output_.file.empty())
            throw RequestError("ledger needs --out FILE, from which it goes on; or --plan-only");
        MeasureOptions options;
        options.seed = seed;
        options.mode = operation_.law({}).mode;
        options.interrupted = interrupted;
        options.cases = {VerifyCase::exact, VerifyCase::random};
        const LiveTarget at = live_target(given_, options.device);
        if (!at.target.note.empty()) say(at.target.note);
        options.machine = &at.live.machine, options.target = at.target.machine.get();
        context_ = context_of(*at.target.machine, invocation_.command);
        seed_ = seed;
        const std::vector<Problem> problems = left();
        if (problems.empty()) {
            say(fmt::format("nothing left to do: {} problems are in {}", suite_.problems.size(),
                            output_.file));
            return int(ExitCode::done);
        }
        const Picks picks = picks_in(operation_, given_.text("picks"));
        tasks_ = space_tasks(problems, at.target.machine, kept_plans, others_of(picks));
        std::erase_if(tasks_, [](const SpaceTask& task) { return task.space.members.empty(); });
        note_interrupts();
        time_spaces(
            tasks_,
            {[this](const RunningGpu& gpu) { begin(gpu); },
             [this](LedgerEntry entry, const std::vector<Timing>& timings) { return add(entry, timings); }},
            options);
        if (done_ < tasks_.size())
            say(fmt::format("stopped: {} of {} problems remain; the same command goes on",
                            tasks_.size() - done_, tasks_.size()));
        return int(wrong_ > 0 ? ExitCode::verification_failed : ExitCode::done);
    }

    static std::function<std::vector<Pick>(const Problem&)> others_of(const Picks& picks) {
        return [&picks](const Problem& problem) {
            const auto found = picks.find(problem_key(problem));
            return found == picks.end() ? std::vector<Pick>() : found->second;
        };
    }

  private:
    /// The problems that --out does not have yet.
    std::vector<Problem> left() {
        std::vector<std::string> known;
        std::error_code error;
        if (std::filesystem::is_regular_file(output_.file, error)) {
            const std::string text = read_whole_file(output_.file);
            if (!text.empty()) {
                const Ledger ledger = read_ledger(text, output_.file);
                if (ledger.program_hash != program_hash() || ledger.machine_hash != context_.machine_hash
                    || ledger.operation != &operation_ || ledger.seed != seed_)
                    throw RequestError(
                        fmt::format("--out {} holds a ledger of another program, machine, operation or seed; "
                                    "name another file",
                                    output_.file));
                for (const LedgerEntry& entry : ledger.entries) known.push_back(problem_key(entry.problem));
                lines_.emplace(ledger);
                write_result(ledger.text, output_);
                begun_ = true;
            }
        }
        std::vector<Problem> problems;
        for (const SuiteProblem& p : suite_.problems)
            if (std::find(known.begin(), known.end(), problem_key(p.problem)) == known.end())
                problems.push_back(p.problem);
        return problems;
    }

    void begin(const RunningGpu& gpu) {
        if (begun_) return;
        context_.gpu = GpuContext{gpu.gpu, gpu.driver, gpu.nvrtc, utc_now(), seed_};
        lines_.emplace(operation_);
        const Record configuration = operation_.config_record(tasks_.front().space.members.front());
        write_result(json_text(lines_->head(context_, program_hash(), suite_.law, configuration), -1),
                     output_);
        begun_ = true;
    }

    bool add(const LedgerEntry& entry, const std::vector<Timing>& timings) {
        append_result(json_text(lines_->line(entry), -1), output_);
        ++done_;
        std::string line = fmt::format("{}/{} {}: {}", done_, tasks_.size(),
                                       operation_.short_name(entry.problem), outcome_of(entry));
        for (const Timing& t : timings)
            if (given_.has("timings") && t.seconds >= 0.01)
                line += fmt::format(", {} {:.2f}", t.part, t.seconds);
        say(line);
        longest_ = std::max(longest_, entry.seconds);
        return max_seconds_ <= 0 || seconds_since(invocation_.start) + longest_ <= max_seconds_;
    }

    std::string outcome_of(const LedgerEntry& entry) {
        std::size_t timed = 0, unknown = 0;
        const LedgerMember* wrong = nullptr;
        for (const LedgerMember& member : entry.members) {
            timed += member.first_us.has_value();
            unknown += member.first_us && !member.right;
            if (member.right != false) continue;
            wrong = &member;
            ++wrong_;
        }
        std::string text = fmt::format("{} of {} timed", timed, entry.members.size());
        if (unknown > 0) text += fmt::format(", {} not compared", unknown);
        if (wrong) text += ", WRONG: " + wrong->failed;
        if (entry.members.empty() && !entry.notes.empty()) text += ": " + entry.notes.front();
        double best = 0, first = 0;
        for (const LedgerAgain& again : entry.again) {
            const double us = again.settled_us.value_or(again.us);
            if (again.member == 0) first = us;
            if (best == 0 || us < best) best = us;
        }
        if (first > 0)
            text += fmt::format(", plan 1 {} at {:.3f} of the fastest", time_text(first), first / best);
        return text;
    }

    const Operation& operation_;
    const Suite& suite_;
    const Given& given_;
    const OutputFlags& output_;
    const Invocation& invocation_;
    std::optional<LedgerLines> lines_;
    DocumentContext context_;
    std::vector<SpaceTask> tasks_;
    std::uint64_t seed_ = 0;
    double max_seconds_ = 0, longest_ = 0;
    std::size_t done_ = 0, wrong_ = 0;
    bool begun_ = false;
};

/// What is to be compiled and timed, without a GPU.
int tell(const Operation& operation, const Suite& suite, const Given& given, const OutputFlags& output) {
    const Target target = target_of(given);
    if (!target.note.empty()) say(target.note);
    std::vector<Problem> problems;
    for (const SuiteProblem& p : suite.problems) problems.push_back(p.problem);
    const Picks picks = picks_in(operation, given.text("picks"));
    const std::vector<SpaceTask> tasks =
        space_tasks(problems, target.machine, kept_plans, LedgerRun::others_of(picks));
    const SpaceCodes codes = space_codes(tasks);
    std::string text;
    std::size_t least = SIZE_MAX, most = 0, all = 0;
    double seconds = 0;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const DeclaredSpace& space = tasks[i].space;
        const std::size_t size = space.members.size();
        least = std::min(least, size), most = std::max(most, size), all += size;
        double once = 0;
        for (const Plan& plan : space.members) once += plan.time_us.value_or(0) * 1e-6;
        seconds += once;
        text += fmt::format("{:<20} {:>5} members, one launch of each {:.3f} s",
                            operation.short_name(tasks[i].problem), size, once);
        for (const auto& pick : space.picks)
            text += fmt::format(", {} {}", pick.name, operation.label(space.members[pick.member]));
        text += "\n";
        for (const std::string& note : space.notes) text += "    " + note + "\n";
    }
    text += fmt::format(
        "{} problems, {} members: {} at least, {:.0f} in the mean, {} at most; {} distinct kernels; one "
        "launch "
        "of each {:.1f} s\n",
        tasks.size(), all, least, double(all) / double(std::max<std::size_t>(1, tasks.size())), most,
        codes.first.size(), seconds);
    write_result(text, output);
    return int(ExitCode::done);
}

int ledger(const Operation& operation, const Given& given, const OutputFlags& output,
           const Invocation& invocation) {
    if (checked_format(output) != Format::text)
        throw RequestError("ledger writes JSON lines to --out; leave out --json");
    if (operation.space_rule().empty())
        throw RequestError(fmt::format("{} declares no space of configurations yet", operation.name()));
    SweepRequest request;
    if (!given.has("draw")) throw RequestError("ledger needs --draw N, the number of problems");
    read_draw(given, request);
    const Suite suite = swept_suite(operation, request);
    if (given.has("plan_only")) return tell(operation, suite, given, output);
    check_writable(output);
    return LedgerRun(operation, suite, given, output, invocation).run(request.seed);
}

}  // namespace

void add_ledger(std::vector<Verb>& verbs) {
    for (const Operation* operation : operations()) {
        const std::string name(operation->name());
        verbs.push_back(
            {.path = "ledger " + name,
             .meaning =
                 std::string(operation->meaning()) + ", every declared configuration of drawn problems",
             .fields = ledger_fields(),
             .documents = Documents::json_only,
             .examples =
                 fmt::format("Examples:\n  rooftile ledger {0} --draw 48 --seed 7 --out ledger.jsonl\n"
                             "  rooftile ledger {0} --draw 48 --seed 7 --plan-only --machine h200-sxm\n",
                             name),
             .synopsis = "--draw N --seed S --out FILE",
             .run = [operation](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                 return ledger(*operation, given, output, invocation);
             }});
    }
}

}  // namespace rooftile::cli
