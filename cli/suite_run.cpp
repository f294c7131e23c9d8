#include "cli/suite_run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/prediction_error.hpp"

namespace rooftile::cli {
namespace {

/// The run that --out already holds; empty where it holds none.
std::optional<SuiteRecord> record_in(const OutputFlags& flags) {
    std::error_code error;
    if (flags.file.empty() || !std::filesystem::is_regular_file(flags.file, error)) return std::nullopt;
    const std::string text = read_whole_file(flags.file);
    if (text.empty()) return std::nullopt;
    return read_suite_record(text, flags.file);
}

/// A command without what may change from one part of a run to the next.
std::string lasting(const std::string& command) {
    static const std::regex passing(
        R"re( (--timings|(--max-seconds|--filter|--out|-o|--color|--seed|--save|--svg)[ =]('[^']*'|"[^"]*"|\S+)))re");
    return std::regex_replace(command, passing, "");
}

/// Throws RequestError where what --out holds is of another program, machine, mode or command.
void check_same_run(const SuiteRecord& record, const DocumentContext& context,
                    std::string_view suite, const MeasureFlags& flags) {
    const auto refuse = [&](std::string_view what, std::string_view there, std::string_view here) {
        throw RequestError(fmt::format("--out {} holds a run of another {} ({}, now {}); name another file",
                                       flags.output.file, what, there.empty() ? "none" : there, here));
    };
    if (record.suite != suite) refuse("suite", record.suite, suite);
    if (record.version != context.version) refuse("version", record.version, context.version);
    if (record.machine_hash != context.machine_hash)
        refuse("machine", record.machine_hash, context.machine_hash);
    if (record.program_hash != program_hash()) refuse("program", record.program_hash, program_hash());
    for (const SuiteShape& shape : record.shapes)
        if (shape.first().mode != flags.mode) refuse("mode", shape.first().mode, flags.mode);
    if (const std::string there = lasting(record.command), here = lasting(context.command); there != here)
        refuse("command", there, here);
    if (!flags.seed.empty() && flags.seed != std::to_string(record.seed))
        refuse("seed", std::to_string(record.seed), flags.seed);
}

/// "verify 0.31, time (sustained) 3.20": the parts that took at least 10 ms.
std::string parts_of(const std::vector<Timing>& timings) {
    std::string text;
    for (const Timing& t : timings) {
        if (t.seconds < 0.01 || t.part == "first_result") continue;
        text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", t.part, t.seconds);
    }
    return text;
}

}  // namespace

SuiteRun::SuiteRun(const MeasureFlags& flags, const Invocation& invocation, const Suite& suite)
    : flags_(flags),
      invocation_(invocation),
      suite_(suite.name),
      law_(suite.law),
      problems_(suite.problems.size()),
      record_(record_in(flags.output)) {
    if (problems_ == 0)
        throw RequestError(fmt::format("--filter {} names no problem of {}", flags.filter,
                                       flags.suite.empty() ? suite_ : flags.suite));
    if (!flags.max_seconds.empty())
        max_seconds_ = double(whole_number("--max-seconds", flags.max_seconds, 1, 1'000'000));
}

std::set<std::string> SuiteRun::begin_on(const Machine& machine, std::uint64_t& seed) {
    context_ = context_of(machine, invocation_.command);
    std::set<std::string> complete;
    if (!record_) return complete;
    check_same_run(*record_, context_, suite_, flags_);
    for (const SuiteShape& shape : record_->shapes) {
        complete.insert(shape.first().problem);
        if (const SuiteRow* first = shape.rank1(); first && first->time_us && first->predicted_us)
            prediction_errors_.push_back(*first->predicted_us / *first->time_us - 1);
        failures.infeasible += shape.first().plans == 0;
        for (const SuiteRow& row : shape.rows) {
            failures.wrong += row.wrong;
            failures.unbuilt += row.unbuilt;
            failures.not_run += !row.ran;
        }
    }
    seed = record_->seed;
    std::string text;  // the complete shapes and nothing else
    for (const std::string& line : record_->lines) text += line;
    write_result(text, flags_.output);
    begun_ = true;
    return complete;
}

void SuiteRun::skip(std::size_t left) {
    done_before_ = problems_ - left;
    if (!begun_) return;
    if (left == 0)
        say(fmt::format("nothing left to do: {} problems are in {}", done_before_, flags_.output.file));
    else
        say(fmt::format("going on: {} of {} problems are in {}", done_before_, problems_,
                        flags_.output.file));
}

void SuiteRun::announce(const RunningGpu& gpu, std::uint64_t seed) {
    context_.gpu = GpuContext{gpu.gpu, gpu.driver, gpu.nvrtc, utc_now(), seed};
    if (begun_) return;
    Json line = {{"schema", "rooftile/measurement/1"},
                 {"context", context_json(context_)},
                 {"machine", machine_json(context_)},
                 {"notes", Json::array()}};
    line["context"]["program_hash"] = program_hash();
    line["suite"] = suite_;
    if (!law_.empty()) line["law"] = law_;
    write_result(json_text(line, -1), flags_.output);
}

double SuiteRun::elapsed() const {
    return seconds_since(invocation_.start);
}

/// One line a problem, whatever stderr is: a run of a quarter of an hour is watched in a log.
bool SuiteRun::add(const std::vector<Json>& lines, const SuiteStep& step) {
    std::string text;
    for (const Json& line : lines) text += json_text(line, -1);
    append_result(text, flags_.output);
    ++done_;
    std::string line = fmt::format("{}/{} {}: {}; {:.1f} s", done_before_ + done_, problems_, step.name,
                                   step.outcome, step.seconds);
    if (flags_.timings) line += fmt::format(" ({})", parts_of(step.timings));
    if (const auto left = problems_ - done_before_ - done_; left > 0)
        line += fmt::format(", about {} left", duration_text(elapsed() / double(done_) * double(left)));
    if (step.prediction_error) prediction_errors_.push_back(*step.prediction_error);
    // A bias is seen while the run goes on: of one problem nobody knows whether it is one.
    if (const auto error = prediction_error(prediction_errors_); error && prediction_errors_.size() > 1)
        line += fmt::format("; predictions {}", prediction_error_text(*error));
    say(line);
    longest_ = std::max(longest_, step.seconds);
    return max_seconds_ <= 0 || elapsed() + longest_ <= max_seconds_;
}

int SuiteRun::finish() const {
    const auto left = problems_ - done_before_ - done_;
    if (left > 0)
        say(fmt::format("stopped after {:.0f} s: {} of {} problems remain; the same command goes on",
                        elapsed(), left, problems_));
    ExitCode code = ExitCode::done;
    const auto tell = [&](int count, std::string_view one, std::string_view many, ExitCode worse) {
        if (count == 0) return;
        say(fmt::format("{} {}; the rows say why", count, count == 1 ? one : many));
        code = worse;
    };
    tell(failures.infeasible, "problem that no plan fits", "problems that no plan fits", ExitCode::no_plan);
    tell(failures.unbuilt, "plan did not compile as planned", "plans did not compile as planned", ExitCode::compile_failed);
    tell(failures.not_run, "plan could not be run", "plans could not be run", ExitCode::gpu_failed);
    tell(failures.wrong, "result is wrong or was not compared", "results are wrong or were not compared", ExitCode::verification_failed);
    return int(code);
}

void set_suite_timing(MeasureOptions& options, const MeasureFlags& flags) {
    TimingOptions& timing = options.timing;
    if (options.mode != Mode::burst) timing.rounds.seconds = suite_round_seconds;
    timing.alone_seconds = 0;
    timing.confirmation.seconds = suite_confirmation_seconds;
    if (flags.confirm.empty() && options.mode != Mode::cold) timing.confirmation.rounds = suite_confirmation;
    options.progress = nullptr;  // a line a problem instead
}

void refuse_whole_documents(const OutputFlags& flags, std::string_view what) {
    if (flags.json || flags.csv)
        throw RequestError(
            fmt::format("{} writes JSON lines as it goes; leave out --{}", what, flags.json ? "json" : "csv"));
}

}  // namespace rooftile::cli
