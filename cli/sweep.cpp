// `sweep OPERATION`: many problems by law, from ranges or lists; saved as a suite, planned, or measured as a suite is.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include "cli/progress.hpp"
#include "cli/suite_run.hpp"
#include "cli/pictures.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/core/sweep.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/report/csv.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/sweep_report.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile::cli {
namespace {

constexpr const char* sweep_group = "Sweep";

std::vector<Field> sweep_fields(const Operation& operation) {
    static const std::string_view left_out[] = {"seed", "suite", "explain", "energy"};
    std::vector<Field> fields = joined_fields({operation.fields(), target_fields(), measure_fields()});
    std::erase_if(fields, [](const Field& field) {
        return std::find(std::begin(left_out), std::end(left_out), field.key) != std::end(left_out);
    });
    const Field own[] = {
        {"draw", "N",
         "So many problems, by the operation's law, or from the ranges and lists that stand for values",
         sweep_group},
        {"let", "NAME=VALUES",
         "NAME in the texts of the problem stands for a list A,B,... or a range A..B; repeatable", sweep_group,
         FieldKind::list},
        {"seed", "S", "Seed of what is drawn, and of the random inputs; default 1", sweep_group},
        {"law", "NAME", "The operation's law to draw by; default: the plain one; another word lists them", sweep_group},
        {"any_alignment", "", "--law any: extents, strides, layouts and base addresses that fit no vector too", sweep_group,
         FieldKind::on},
        {"max_flop", "X", "Only problems of at most so many FLOP, as in 2e12", sweep_group},
        {"max_bytes", "X", "Only problems whose tensors take at most so many bytes together", sweep_group},
        {"save", "FILE", "Write the problems as a suite; without --out and --plan-only nothing else is done",
         sweep_group},
        {"svg", "FILE", "Draw what was measured: heat maps, or curves where one size alone varies", sweep_group},
        {"picture", "NAME", "Draw this one alone; another name lists them", sweep_group},
        {"plan_only", "", "Plan every problem, no GPU: lines of JSON, on a terminal a line of text each, with --csv a table of all", sweep_group, FieldKind::on},
    };
    return joined_fields({own, fields});
}

std::optional<double> limit(const Given& given, std::string_view key) {
    if (!given.has(key)) return std::nullopt;
    const std::string& text = given.text(key);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value > 0))
        throw RequestError(
            fmt::format("{} {}: accepted is a number above 0, as in 2e12", given.name(key), text));
    return value;
}

SweepRequest request_of(const Given& given) {
    SweepRequest request{.given = given};
    read_draw(given, request);
    if (given.has("law") && given.has("any_alignment"))
        throw RequestError(fmt::format("{} and {} exclude each other; the second is the law any", given.name("law"),
                                       given.name("any_alignment")));
    request.law.law = given.has("any_alignment") ? "any" : given.text("law");
    request.lets = given.list("let");
    request.max_flops = limit(given, "max_flop");
    request.max_bytes = limit(given, "max_bytes");
    return request;
}

/// The law that is drawn by. What an operation says of the law any is told of the flag that asked for it.
DrawLaw law_of(const Operation& operation, const SweepRequest& request, const Given& given) {
    try {
        return operation.law(request.law);
    } catch (const RequestError& error) {
        if (request.law.law != "any") throw;
        throw RequestError(fmt::format("{}: {}", given.has("any_alignment") ? given.name("any_alignment") : given.name("law") + " any", error.what()));
    }
}

/// JSON lines of plans, each written as it is made: a context line, then a row a plan; of a problem that no plan fits one row that says
/// why.
class PlanLines {
  public:
    PlanLines(const Suite& suite, const DocumentContext& context, const OutputFlags& output)
        : context_(context), output_(output) {
        Json line = {{"schema", "rooftile/plan/1"},
                     {"context", context_json(context)},
                     {"machine", machine_json(context)},
                     {"suite", suite.name}};
        if (!suite.law.empty()) line["law"] = suite.law;
        write_result(json_text(line, -1), output_);
    }
    void add(const PlanSet& plans) {
        const Json document = plan_document(context_, plans, {}, false);
        if (plans.refusal)
            return add(Json{{"machine", document.at("machine")},
                            {"problem", document.at("problem")},
                            {"plans", Json::array()},
                            {"infeasible", document.at("infeasible")}});
        for (const Json& row : row_lines(document)) add(row);
    }

  private:
    void add(const Json& line) { append_result(json_text(line, -1), output_); }

    DocumentContext context_;
    const OutputFlags& output_;
};

int code_of(std::size_t without, const Suite& suite) {
    if (without == 0) return int(ExitCode::done);
    say(fmt::format("{} of {} problems have no plan; their rows say why", without, suite.problems.size()));
    return int(ExitCode::no_plan);
}

/// On a terminal a line a problem, as it is planned: lines of JSON are for programs.
int show_all(const Suite& suite, const Target& target, const Own& request, const Terminal& terminal) {
    std::size_t widest = 0, without = 0;
    for (const SuiteProblem& p : suite.problems) widest = std::max(widest, std::size_t(columns_of(name_of(p))));
    for (const SuiteProblem& p : suite.problems) {
        const PlanSet plans = derive_for(target, p.problem, request);
        std::string name = name_of(p);
        name.append(widest - std::size_t(columns_of(name)), ' ');
        without += plans.refusal.has_value();
        const std::string text = plans.refusal ? "no plan fits: " + plans.refusal->message
                                               : fmt::format("{:>9}  {:8}  {}", time_or_unknown(plans.plans.front().time_us),
                                                             plans.plans.front().bound ? name_of(*plans.plans.front().bound) : "?",
                                                             suite.operation->label(plans.plans.front()));
        const int indent = int(std::min<std::size_t>(widest + 2, 30));
        append_result("  " + wrapped(displayable(name + "  " + text, terminal.utf8), terminal.prose() - 2, indent) + "\n", {});
    }
    return code_of(without, suite);
}

/// A row a plan, and one of each problem that has none.
int plans_as_csv(const Suite& suite, const Target& target, const Own& request, const DocumentContext& context, const OutputFlags& output) {
    Json document = {{"machine", machine_json(context)}, {"plans", Json::array()}};
    std::size_t without = 0;
    Progress progress("planning", suite.problems.size());
    for (const SuiteProblem& p : suite.problems) {
        const PlanSet plans = derive_for(target, p.problem, request);
        const Json planned = plan_document(context, plans, {}, false);
        for (Json& row : row_lines(planned)) document["plans"].push_back(std::move(row));
        if (plans.refusal) ++without, document["plans"].push_back({{"problem", planned.at("problem")}, {"why_not", plans.refusal->message}});
        progress.step();
    }
    progress.clear();
    write_result(csv_text(document), output);
    return code_of(without, suite);
}

int plan_all(const Suite& suite, const Given& given, const OutputFlags& output,
             const Invocation& invocation) {
    const Format format = checked_format(output);
    if (format == Format::json) refuse_whole_documents(output, "sweep");
    check_writable(output);
    const Own request = suite.operation->request(given, {.top = 1});
    const Target target = target_of(given);
    if (!target.note.empty()) say(target.note);
    if (format == Format::csv) return plans_as_csv(suite, target, request, context_of(*target.machine, invocation.command), output);
    if (format == Format::text && output.file.empty() && isatty(STDOUT_FILENO)) return show_all(suite, target, request, terminal_for(output));
    Progress progress("planning", suite.problems.size());
    PlanLines lines(suite, context_of(*target.machine, invocation.command), output);
    std::size_t without = 0;
    for (const SuiteProblem& p : suite.problems) {
        const PlanSet plans = derive_for(target, p.problem, request);
        lines.add(plans);
        without += plans.refusal.has_value();
        progress.step();
    }
    return code_of(without, suite);
}

void check_together(const Given& given, const OutputFlags& output) {
    if (given.has("svg") && (output.file.empty() || given.has("plan_only")))
        throw RequestError("--svg shows what was measured: it needs --out FILE, and no --plan-only");
    if (given.has("plan_only"))
        for (const Field& field : measure_fields())
            if (field.key != "filter" && field.key != "seed" && given.has(field.key))
                throw RequestError(given.name(field.key) + " measures, and --plan-only does not");
    if (!given.has("save") && !given.has("plan_only") && output.file.empty())
        throw RequestError(
            "sweep needs --out FILE for the measured rows, from which it goes on; or --plan-only, or --save "
            "FILE");
}

int sweep(const Operation& operation, const Given& asked, const OutputFlags& output,
          const Invocation& invocation) {
    checked_format(output);
    check_together(asked, output);
    const SweepRequest request = request_of(asked);
    const DrawLaw law = law_of(operation, request, asked);
    const Suite suite = filtered(swept_suite(operation, request), asked.text("filter"));
    if (asked.has("save")) {
        OutputFlags file;
        file.file = asked.text("save");
        file.flag = "--save";
        write_result(suite_toml(suite), file);
        if (output.file.empty() && !asked.has("plan_only")) return int(ExitCode::done);
    }
    if (asked.has("plan_only")) return plan_all(suite, asked, output, invocation);
    Given given = asked;
    given.add_default("mode", name_of(law.mode));
    given.add_default("seed", std::to_string(request.seed));
    const int code = measure_problems(suite, MeasureFlags(given, output), invocation, sweep_top);
    SuiteRecord record = read_suite_record(read_whole_file(output.file), output.file);
    if (record.shapes.empty()) return code;
    const SweepReport report = sweep_report({std::move(record)});
    if (wants_pictures(asked)) write_pictures(asked, sweep_document(report), invocation.command);
    OutputFlags shown = output;
    shown.file.clear();
    write_result(sweep_text(report, terminal_for(shown)), shown);
    return code;
}

}  // namespace

void add_sweep(std::vector<Verb>& verbs) {
    for (const Operation* operation : operations()) {
        const std::string name(operation->name());
        verbs.push_back(
            {.path = "sweep " + name,
             .meaning = std::string(operation->meaning()) + ", of many sizes",
             .fields = sweep_fields(*operation),
             .documents = Documents::all,
             .examples =
                 fmt::format("Examples:\n  rooftile sweep {0} --draw 100 --seed 7 --save draw-7.toml\n"
                             "  rooftile sweep {0} --draw 100 --seed 7 --plan-only --machine h100-sxm\n"
                             "  rooftile sweep {0} --draw 100 --seed 7 --out draw-7.jsonl\n",
                             name),
             .synopsis = "--draw N --seed S",
             .run = [operation](const Given& given, const OutputFlags& output, const Invocation& invocation) {
                 return sweep(*operation, given, output, invocation);
             }});
    }
}

}  // namespace rooftile::cli
