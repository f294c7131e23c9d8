// `measure gemm --suite`: all problems of a file in one continuous run that can be cut and gone on with.
#include <fmt/core.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "cli/planning.hpp"
#include "cli/values.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/suite_rows.hpp"

namespace rooftile::cli {
namespace {

constexpr int suite_top = 8;
constexpr int suite_rounds = 4, suite_other_rounds = 2;
constexpr double suite_drop_others = 1.05;

/// Of the program's own file: what was measured before goes on only with the very same planner and kernels.
std::string program_hash() {
    const std::string bytes = read_whole_file("/proc/self/exe");
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// Where the rows go: appended to --out, or to stdout. Each write ends on a whole shape and is flushed.
class RowFile {
  public:
    explicit RowFile(const OutputFlags& flags) : flags_(flags) {}

    /// The run that --out already holds; empty where it holds none.
    std::optional<SuiteRecord> record() const {
        std::error_code error;
        if (flags_.file.empty() || !std::filesystem::is_regular_file(flags_.file, error)) return std::nullopt;
        const std::string text = read_whole_file(flags_.file);
        if (text.empty()) return std::nullopt;
        return read_suite_record(text, flags_.file);
    }
    /// Leaves the complete shapes of `record` in the file and nothing else.
    void keep(const SuiteRecord& record) const {
        std::string text;
        for (const std::string& line : record.lines) text += line;
        write_result(text, flags_);
    }
    void append(const std::string& text) const {
        if (flags_.file.empty()) return write_result(text, flags_);
        std::ofstream file(flags_.file, std::ios::binary | std::ios::app);
        file.write(text.data(), std::streamsize(text.size()));
        file.flush();
        if (!file)
            throw Error(ExitCode::internal,
                        fmt::format("--out {}: cannot write: {}", flags_.file, std::strerror(errno)));
    }

  private:
    const OutputFlags& flags_;
};

/// A suite names its own problems, and writes rows.
void refuse_what_does_not_fit(const MeasureFlags& flags) {
    const GemmFlags& f = flags.gemm;
    for (const auto& [name, value] : {std::pair{"--m", &f.m},
                                      {"--n", &f.n},
                                      {"--k", &f.k},
                                      {"--shape", &f.shape},
                                      {"--type", &f.type},
                                      {"--a-major", &f.a_major},
                                      {"--b-major", &f.b_major},
                                      {"--lda", &f.lda},
                                      {"--ldb", &f.ldb},
                                      {"--ldc", &f.ldc}}) {
        if (!value->empty())
            throw RequestError(
                fmt::format("--suite and {} exclude each other: the suite's file has it", name));
    }
    if (flags.output.json || flags.output.csv)
        throw RequestError(fmt::format("--suite writes JSON lines as it goes; leave out --{}",
                                       flags.output.json ? "json" : "csv"));
}

/// Throws RequestError where what --out holds is of another program, machine or mode.
void check_same_run(const SuiteRecord& record, const DocumentContext& context, const std::string& program,
                    const MeasureFlags& flags) {
    const auto refuse = [&](std::string_view what, std::string_view there, std::string_view here) {
        throw RequestError(fmt::format("--out {} holds a run of another {} ({}, now {}); name another file",
                                       flags.output.file, what, there.empty() ? "none" : there, here));
    };
    if (record.version != context.version) refuse("version", record.version, context.version);
    if (record.machine_hash != context.machine_hash)
        refuse("machine", record.machine_hash, context.machine_hash);
    if (record.program_hash != program) refuse("build of the program", record.program_hash, program);
    for (const SuiteShape& shape : record.shapes)
        if (shape.first().mode != flags.mode) refuse("mode", shape.first().mode, flags.mode);
    if (!flags.seed.empty() && flags.seed != std::to_string(record.seed))
        refuse("seed", std::to_string(record.seed), flags.seed);
}

std::string name_of(const MeasureTask& task) {
    std::string name;
    for (const SuiteLayer& layer : task.layers)
        name += fmt::format("{}{} {}", name.empty() ? "" : ", ", layer.model, layer.layer);
    return fmt::format("{} {}x{}x{}", name, task.problem.m, task.problem.n, task.problem.k);
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

/// One continuous run over what is left of a suite.
class SuiteRun {
  public:
    SuiteRun(const MeasureFlags& flags, const Invocation& invocation)
        : flags_(flags),
          start_(invocation.start),
          options_(measure_options(flags, invocation.start)),
          file_(flags.output),
          suite_(filtered(read_suite(flags.suite), flags.filter)) {
        if (suite_.problems.empty())
            throw RequestError(fmt::format("--filter {} names no problem of {}", flags.filter, flags.suite));
        if (!flags.max_seconds.empty())
            max_seconds_ = double(whole_number("--max-seconds", flags.max_seconds, 1, 1'000'000));
        request_ = request_of(flags.gemm, suite_top);
        request_.buildable_only = true;
        TimingOptions& timing = options_.timing;
        if (flags.rounds.empty()) timing.rounds = suite_rounds;
        timing.other_rounds = std::min(suite_other_rounds, timing.rounds);
        timing.drop_others = suite_drop_others;
        options_.progress = nullptr;  // a line a problem instead
    }

    int run(const std::string& command) {
        const std::optional<SuiteRecord> record = file_.record();
        at_ = live_target(flags_.gemm, options_.device);
        if (!at_.target.note.empty()) say(at_.target.note);
        options_.machine = &at_.live.machine;
        context_ = context_of(at_.target.machine, command);
        program_ = program_hash();
        if (record) go_on_from(*record);
        if (suite_.problems.empty()) {
            say(fmt::format("nothing left to do: {} problems are in {}", done_before_, flags_.output.file));
            return int(ExitCode::done);
        }
        note_interrupts();
        measure_each({[this] { return next(); }, [this](const RunningGpu& gpu) { begin(gpu); },
                      [this](ShapeRun shape) { return done(std::move(shape)); }},
                     options_);
        return finish();
    }

  private:
    void go_on_from(const SuiteRecord& record) {
        check_same_run(record, context_, program_, flags_);
        std::set<std::string> complete;
        for (const SuiteShape& shape : record.shapes) complete.insert(shape.first().problem);
        const auto before = suite_.problems.size();
        std::erase_if(suite_.problems,
                      [&](const SuiteProblem& p) { return complete.count(problem_key(p.problem)) > 0; });
        done_before_ = before - suite_.problems.size();
        options_.seed = record.seed;
        file_.keep(record);
        begun_ = true;
        say(fmt::format("going on: {} of {} problems are in {}", done_before_, before, flags_.output.file));
    }

    /// On a thread of its own.
    std::optional<MeasureTask> next() {
        if (next_ == suite_.problems.size()) return std::nullopt;
        const SuiteProblem& p = suite_.problems[next_++];
        MeasureTask task{p.problem, {}, {}, p.layers};
        auto outcome = derive_for(at_.target, p.problem, request_);
        if (auto* plans = std::get_if<Plans>(&outcome)) task.plans = std::move(plans->plans);
        else task.infeasible = std::get<Infeasible>(std::move(outcome));
        return task;
    }

    void begin(const RunningGpu& gpu) {
        context_.gpu = GpuContext{gpu.gpu, gpu.driver, gpu.nvrtc, utc_now(), options_.seed};
        if (begun_) return;
        Json line = context_line(measurement_document(context_, {}));
        line["context"]["program_hash"] = program_;
        line["suite"] = suite_.name;
        if (flags_.output.file.empty()) file_.append(json_text(line, -1));
        else write_result(json_text(line, -1), flags_.output);
    }

    bool done(ShapeRun shape) {
        std::string text;
        if (shape.task.infeasible) {
            text = json_text(
                infeasible_line(context_, *shape.task.infeasible, shape.task.layers, options_.mode), -1);
        } else {
            for (const Json& line : measurement_lines(context_, shape.rows, shape.notes))
                text += json_text(line, -1);
        }
        file_.append(text);
        ++done_;
        count_failures(shape);
        report(shape);
        longest_ = std::max(longest_, shape.seconds);
        return max_seconds_ <= 0 || elapsed() + longest_ <= max_seconds_;
    }

    double elapsed() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

    void count_failures(const ShapeRun& shape) {
        infeasible_ += shape.task.infeasible ? 1 : 0;
        for (const Measurement& row : shape.rows) {
            unbuilt_ += !row.built;
            not_run_ += !row.ran;
            wrong_ += row.built && row.ran && !row.verified.ok();
        }
    }

    /// One line a problem, whatever stderr is: a run of a quarter of an hour is watched in a log.
    void report(const ShapeRun& shape) const {
        std::string outcome = "no result";
        if (shape.task.infeasible) outcome = "no plan fits: " + shape.task.infeasible->message;
        else if (shape.error) outcome = shape.error->what();
        else if (const Measurement& row = shape.rows.front(); why_no_result(row).empty()) {
            outcome = time_text(row.time_us);
            if (row.baselines.cublaslt_ratio)
                outcome += fmt::format(", {:.3f} x cuBLASLt", *row.baselines.cublaslt_ratio);
        } else outcome = why_no_result(row);
        std::string line =
            fmt::format("{}/{} {}: {}; {:.1f} s", done_before_ + done_, done_before_ + suite_.problems.size(),
                        name_of(shape.task), outcome, shape.seconds);
        if (flags_.timings) line += fmt::format(" ({})", parts_of(shape.timings));
        say(line);
    }

    int finish() const {
        const auto left = suite_.problems.size() - done_;
        if (left > 0)
            say(fmt::format("stopped after {:.0f} s: {} of {} problems remain; the same command goes on",
                            elapsed(), left, done_before_ + suite_.problems.size()));
        ExitCode code = ExitCode::done;
        const auto tell = [&](int count, std::string_view what, ExitCode worse) {
            if (count == 0) return;
            say(fmt::format("{} {}; the rows say why", count, what));
            code = worse;
        };
        tell(infeasible_, "problems that no plan fits", ExitCode::no_plan);
        tell(unbuilt_, "plans did not compile as planned", ExitCode::compile_failed);
        tell(not_run_, "plans could not be run", ExitCode::gpu_failed);
        tell(wrong_, "results are wrong", ExitCode::verification_failed);
        return int(code);
    }

    const MeasureFlags& flags_;
    std::chrono::steady_clock::time_point start_;
    MeasureOptions options_;
    RowFile file_;
    Suite suite_;  ///< what is left of it
    GemmRequest request_;
    double max_seconds_ = 0, longest_ = 0;
    LiveTarget at_;
    DocumentContext context_;
    std::string program_;
    bool begun_ = false;  ///< the file has its context line
    std::size_t next_ = 0, done_ = 0, done_before_ = 0;
    int infeasible_ = 0, unbuilt_ = 0, not_run_ = 0, wrong_ = 0;
};

}  // namespace

int measure_suite(const MeasureFlags& flags, const Invocation& invocation) {
    refuse_what_does_not_fit(flags);
    return SuiteRun(flags, invocation).run(invocation.command);
}

}  // namespace rooftile::cli
