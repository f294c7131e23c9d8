// `measure source`: a kernel that the user wrote, beside the one that is derived for the same expression.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/interrupt.hpp"
#include "cli/measure_flags.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/error.hpp"
#include "rooftile/measure/source_measure.hpp"
#include "rooftile/measure/source_suite.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/runtime/child.hpp"

namespace rooftile::cli {
namespace {

/// Of measuring anything, those that one kernel has.
std::vector<Field> flags_of_measuring() {
    constexpr std::string_view own[] = {"mode",     "baseline", "seed",  "rounds", "timings",
                                        "counters", "no_time",  "debug", "suite"};
    std::vector<Field> out;
    for (const Field& field : measure_fields())
        if (std::ranges::find(own, field.key) != std::end(own)) out.push_back(field);
    return out;
}

/// Launches that are recorded for timing cannot be waited for one by one: where the run shows no sign of life for as long as ten of
/// them may take, one hangs.
class StallWatch {
  public:
    StallWatch(std::string entry, double timeout_seconds, std::function<void(const std::string&)> end)
        : entry_(std::move(entry)),
          limit_(std::max(least_seconds, launches * timeout_seconds)),
          end_(std::move(end)),
          thread_([this](const std::stop_token& stop) { watch(stop); }) {}

    /// From the first on.
    void sign_of_life() { last_ = std::chrono::steady_clock::now().time_since_epoch().count(); }

  private:
    static constexpr double least_seconds = 10, launches = 10;

    void watch(const std::stop_token& stop) {
        using Clock = std::chrono::steady_clock;
        while (!stop.stop_requested()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            const auto last = last_.load();
            if (last == 0 || seconds_since(Clock::time_point(Clock::duration(last))) < limit_) continue;
            end_(
                fmt::format("nothing ended for {} s while {} was timed: it hangs in a later launch, though "
                            "the first ones ended; does "
                            "it leave what it counts in device memory as it found it?",
                            limit_, entry_));
        }
    }

    std::string entry_;
    double limit_;
    std::function<void(const std::string&)> end_;
    std::atomic<std::chrono::steady_clock::rep> last_{0};
    std::jthread thread_;  // last: it reads the others
};

/// A kernel that does not end cannot be waited for, and so nothing of this process can be put away in order.
[[noreturn]] void end_late(const std::string& why) {
    say(why);
    _exit(int(ExitCode::gpu_failed));
}

int write_report(const SourceRun& measured, DocumentContext context, const MeasureFlags& flags,
                 std::uint64_t seed) {
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
    if (rows.front().verified.wrong()) {
        say(fmt::format("verification failed: {}: {}", measured.report.codes.front().entry,
                        rows.front().verified.failure));
        return int(ExitCode::verification_failed);
    }
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
    StallWatch watch(request.entry, request.timeout_seconds, end_late);
    options.interrupted = [&watch] {
        watch.sign_of_life();
        return interrupted();
    };
    note_interrupts();
    return write_report(measure_source(request, target.machine, options),
                        context_of(*target.machine, invocation.command), flags, options.seed);
}

/// The suite's kernels, each in a process of its own: what one of them breaks or hangs ends with its process.
class SourceSuiteRun {
  public:
    SourceSuiteRun(const Given& given, const OutputFlags& output)
        : given_(given), output_(output), suite_(read_source_suite(given.text("suite"))) {
        if (output.json || output.csv)
            throw RequestError(fmt::format("--suite writes JSON lines as it goes; leave out --{}",
                                           output.json ? "json" : "csv"));
        for (const Field& field : source_fields())
            if (field.key != "timeout" && given.has(field.key))
                throw RequestError(
                    fmt::format("--suite and {} exclude each other: the suite's file has it",
                                field.kind == FieldKind::positional ? "a file" : given.name(field.key)));
    }

    int run() {
        check_writable(output_);
        write_result("", output_);
        ExitCode worst = ExitCode::done;
        for (std::size_t i = 0; i < suite_.kernels.size(); ++i) {
            const ExitCode code = measure(i);
            if (severity(code) > severity(worst)) worst = code;
            if (code == ExitCode::no_gpu || code == ExitCode::interrupted || interrupted())
                break;  // so would the others
        }
        return int(worst);
    }

  private:
    /// Of what several kernels end with, the first of these is the suite's.
    static std::size_t severity(ExitCode code) {
        constexpr ExitCode order[] = {
            ExitCode::done,           ExitCode::counters_denied, ExitCode::bad_request,
            ExitCode::compile_failed, ExitCode::gpu_failed,      ExitCode::verification_failed,
            ExitCode::no_gpu,         ExitCode::internal,        ExitCode::interrupted};
        return std::size_t(std::ranges::find(order, code) - std::begin(order));
    }

    std::vector<std::string> command_of(const SourceSuite::Kernel& kernel) const {
        std::vector<std::string> command = {"/proc/self/exe", "measure", "source", kernel.given.text("file"),
                                            "--jsonl"};
        const auto give = [&](const Field& field, const Given& from) {
            if (field.kind == FieldKind::positional || field.key == "suite") return;
            for (const std::string& text : from.list(field.key)) {
                command.push_back(flag_of(field.key));
                if (field.kind != FieldKind::on) command.push_back(text);
            }
        };
        const std::vector<Field> measuring = flags_of_measuring();
        for (const Field& field : joined_fields({source_fields(), target_fields(), measuring}))
            give(field, kernel.given.has(field.key) ? kernel.given : given_);
        return command;
    }

    ExitCode measure(std::size_t i) {
        const SourceSuite::Kernel& kernel = suite_.kernels[i];
        const ChildOutcome child = run_child(command_of(kernel));
        const ExitCode code = child.signal ? ExitCode::internal : ExitCode(child.code);
        const std::string message =
            child.signal ? fmt::format("ended by signal {}", child.signal) : first_line(child.err);
        std::vector<Json> lines = lines_of(child.out);
        if (!lines.empty() && !begun_) {
            lines.front()["suite"] = suite_.name;
            append_result(json_text(lines.front(), -1), output_);
            begun_ = true;
        }
        std::string outcome = message;
        for (std::size_t line = 1; line < lines.size(); ++line) {
            lines[line]["source"]["name"] = kernel.name;
            append_result(json_text(lines[line], -1), output_);
            if (line == 1 && code == ExitCode::done) outcome = outcome_of(lines[line]);
            if (line == 1 && code == ExitCode::verification_failed) outcome = text_at(lines[line], "invalid");
        }
        if (lines.empty())
            append_result(json_text({{"source",
                                      {{"name", kernel.name},
                                       {"file", kernel.given.text("file")},
                                       {"entry", kernel.given.text("entry")}}},
                                     {"exit_code", int(code)},
                                     {"invalid", message}},
                                    -1),
                          output_);
        say(fmt::format("{}/{} {}: {}", i + 1, suite_.kernels.size(), kernel.name, outcome));
        return code;
    }

    static std::string first_line(const std::string& text) {
        constexpr std::string_view prefix = "rooftile: ";
        std::string line = text.substr(0, text.find('\n'));
        return line.starts_with(prefix) ? line.substr(prefix.size()) : line;
    }

    static std::vector<Json> lines_of(const std::string& text) {
        std::vector<Json> lines;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            lines.push_back(parsed_line(std::string_view(text).substr(at, end - at)));
            at = end + 1;
        }
        return lines;
    }

    static std::string outcome_of(const Json& row) {
        const auto time = number_at(row, "time_us"), share = number_at(row, "roof_fraction");
        if (!time) return "right; " + text_at(row, "invalid");
        return time_text(*time)
               + (share ? fmt::format(", {} of the {} roof", percent_text(*share), text_at(row, "roof"))
                        : "");
    }

    const Given& given_;
    const OutputFlags& output_;
    SourceSuite suite_;
    bool begun_ = false;
};

int measure_sources(const Given& given, const OutputFlags& output, const Invocation& invocation) {
    if (!given.has("suite")) return measure_one_source(given, output, invocation);
    checked_format(output);
    note_interrupts();
    return SourceSuiteRun(given, output).run();
}

}  // namespace

void add_measure_source(std::vector<Verb>& verbs) {
    const std::vector<Field> measuring = flags_of_measuring();
    verbs.push_back(
        {.path = "measure source",
         .meaning = "A kernel of your own: compiled, proved right, timed next to the derived one and copies",
         .fields = joined_fields({source_fields(), target_fields(), measuring}),
         .documents = Documents::all,
         .examples = "Examples:\n"
                     "  rooftile measure source gelu.cu --entry gelu --tensor \"x:bf16[4096,4096]\" \\\n"
                     "      --tensor \"y:bf16[4096,4096]\" --arg int64:16777216 --grid 8192 --reference \"y "
                     "= gelu(x)\"\n"
                     "  rooftile measure source --suite kernels.toml --out kernels.jsonl\n",
         .synopsis =
             "FILE.cu --entry NAME --tensor \"x:bf16[4096,4096]\" --grid N --reference \"y = gelu(x)\"",
         .run = measure_sources});
}

}  // namespace rooftile::cli
