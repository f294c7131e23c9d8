#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "rooftile/profile/document.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/prediction_error.hpp"

namespace rooftile {
namespace {

double at(const Json& object, const char* key) { return object.at(key).get<double>(); }

std::string time(const std::optional<double>& us) { return us ? time_text(*us) : ""; }

std::string share_of(double part, double whole) { return whole > 0 ? percent_text(part / whole) : "-"; }

/// "3x5", "132": without the ones at its end.
std::string extents(const Json& three) {
    std::string out = three.at(0).dump();
    int last = 2;
    while (last > 0 && three.at(std::size_t(last)).get<int>() == 1) --last;
    for (int i = 1; i <= last; ++i) out += "x" + three.at(std::size_t(i)).dump();
    return out;
}

/// Cut in the middle, where what tells kernels apart is at both ends.
std::string shortened(const std::string& text, int columns) {
    if (columns_of(text) <= columns) return text;
    const auto kept = std::size_t(columns - 3);
    return text.substr(0, kept - kept / 3) + "..." + text.substr(text.size() - kept / 3);
}

/// Columns for a name in a table whose other columns take so many.
int name_columns(const Terminal& terminal, int others, int least, int most) {
    return terminal.width > 0 ? std::clamp(terminal.width - others, least, most) : most;
}

std::string counted(const std::string& count, const char* one, const char* more) { return count + " " + (count == "1" ? one : more); }

/// A command in lines that a shell reads as one.
std::string command_lines(std::string command, const Terminal& terminal, int indent) {
    constexpr char kept = '\x01';  // a space inside quotes
    bool quoted = false;
    for (char& c : command)
        if (c == '\'') quoted = !quoted;
        else if (c == ' ' && quoted) c = kept;
    std::string out;
    for (const char c : wrapped(command, terminal.width > 0 ? terminal.width - indent - 2 : 0, indent))
        out += c == '\n' ? " \\\n" : std::string(1, c == kept ? ' ' : c);
    return std::string(std::size_t(indent), ' ') + out;
}

/// What happens once a step, of a run in steps.
class PerStep {
  public:
    explicit PerStep(const Json& document) : count_(at(document, "steps")) {}
    double operator()(double sum) const { return sum / count_; }
    std::string count(double number) const { return number_text(number / count_); }
    std::string_view words() const { return count_ > 1 ? " a step" : ""; }

  private:
    double count_;
};

std::string devices_text(const Json& document, const PerStep& step, const Terminal& terminal) {
    std::string out;
    struct Cause {
        const char *key, *name, *meaning;
    };
    static constexpr Cause causes[] = {{"host_us", "host", "nothing was asked for yet"},
                                       {"waited_us", "waiting host", "the host waited for the device before it asked"},
                                       {"launch_us", "launch gaps", "between kernels of one stream or graph"},
                                       {"dependency_us", "dependency", "another stream came first"},
                                       {"unknown_us", "unknown", "nobody saw who asked"}};
    for (const Json& d : document.at("devices")) {
        const double window = at(d, "window_us"), busy = at(d, "busy_us"), idle = at(d, "idle_us");
        out += terminal.paint(fmt::format("GPU {}{}, process {}", at(d, "index"),
                                          text_at(d, "name").empty() ? "" : ": " + text_at(d, "name"), at(d, "process")),
                              Tone::strong)
               + "\n";
        std::vector<Entry> entries = {{text_at(document, "range").empty() ? "first to last" : "in the range",
                                       time_text(step(window)) + std::string(step.words()), ""},
                                      {"busy", time_text(step(busy)), share_of(busy, window)},
                                      {"idle", time_text(step(idle)), share_of(idle, window)}};
        for (const Cause& cause : causes)
            if (const double each = at(d.at("idle"), cause.key); each > 0)
                entries.push_back(
                    {fmt::format("  {}", cause.name), time_text(step(each)), fmt::format("{}; {}", share_of(each, window), cause.meaning)});
        if (at(d, "overlapped_us") > 0)
            entries.push_back({"side by side", time_text(step(at(d, "overlapped_us"))), "work beside other work, counted once above"});
        if (at(d, "empty_sms_us") > 0)
            entries.push_back(
                {"empty SMs", time_text(step(at(d, "empty_sms_us"))), "busy time by the share of SMs without a CTA, last waves too"});
        if (at(d, "before_us") > 0) entries.push_back({"before it", time_text(at(d, "before_us")), "from CUDA's start to the first work"});
        out += entries_text(entries, 2, terminal);
    }
    const Json& host = document.at("host");
    const double launches = at(host, "launches") + at(host, "graph_launches"), calls = at(host, "launch_calls_us");
    double window = 0;
    for (const Json& d : document.at("devices")) window = std::max(window, at(d, "window_us"));
    if (launches > 0)
        out += entry("launches",
                     fmt::format("{} one by one, {}{}: {} of the host, {} each, {} of the time",
                                 counted(step.count(at(host, "launches")), "kernel", "kernels"),
                                 counted(step.count(at(host, "graph_launches")), "graph", "graphs"), step.words(), time_text(step(calls)),
                                 time_text(calls / launches), share_of(calls, window)),
                     terminal);
    return out;
}

std::string kernels_text(const Json& document, const PerStep& step, int top, const Terminal& terminal) {
    Table table({{"#"},
                 {"kernel", Table::Align::left},
                 {"calls", Table::Align::right, 1},
                 {"time"},
                 {"share"},
                 {"mean"},
                 {"regs", Table::Align::right, 3, true},
                 {"shared", Table::Align::right, 4, true},
                 {"grid", Table::Align::right, 5, true},
                 {"block", Table::Align::right, 6, true}});
    const int columns = name_columns(terminal, 47, 20, 60);
    int rank = 0;
    double shown = 0;
    for (const Json& k : document.at("kernels")) {
        if (++rank > top) break;
        const Json& launch = k.at("launches").at(0);
        const std::string more = k.at("launches").size() > 1 ? fmt::format(" +{}", k.at("launches").size() - 1) : "";
        shown += at(k, "share");
        table.row({{number_text(rank)},
                   {displayable(shortened(text_at(k, "short"), columns), terminal.utf8)},
                   {step.count(at(k, "calls"))},
                   {time_text(step(at(k, "time_us")))},
                   {percent_text(at(k, "share"))},
                   {time_text(at(k, "mean_us"))},
                   {launch.at("registers").dump()},
                   {scaled_text(at(launch, "static_shared_bytes") + at(launch, "dynamic_shared_bytes"), "B")},
                   {extents(launch.at("grid")) + more},
                   {extents(launch.at("block"))}});
    }
    std::string out =
        terminal.paint(
            fmt::format("Kernels: {} of {}, {} of kernel time{}", std::min<std::size_t>(std::size_t(top), document.at("kernels").size()),
                        document.at("kernels").size(), percent_text(shown), step.words().empty() ? "" : ", a step"),
            Tone::strong)
        + "\n" + table.text(terminal);
    return out;
}

constexpr int most_problem_columns = 48;

std::string explained_text(const Json& document, const PerStep& step, int top, const Terminal& terminal) {
    struct Row {
        const Json* kernel;
        const Json* launch;
    };
    std::vector<Row> rows, without;
    std::vector<double> errors;
    double known = 0, whole = 0;
    for (const Json& k : document.at("kernels"))
        for (const Json& launch : k.at("launches")) {
            whole += at(launch, "time_us");
            if (const auto predicted = number_at(launch, "predicted_us")) errors.push_back(*predicted / at(launch, "mean_us") - 1);
            else without.push_back({&k, &launch});
            if (!number_at(launch, "ours_us") && !number_at(launch, "predicted_us")) continue;
            known += at(launch, "time_us");
            rows.push_back({&k, &launch});
        }
    if (rows.empty()) return "";
    for (std::vector<Row>* each : {&rows, &without})
        std::ranges::stable_sort(*each, [](const Row& a, const Row& b) { return at(*a.launch, "time_us") > at(*b.launch, "time_us"); });
    Table table({{"kernel", Table::Align::left, 2},
                 {"problem", Table::Align::left},
                 {"calls", Table::Align::right, 1, true},
                 {"measured"},
                 {"predicted", Table::Align::right, 0, true},
                 {"ours", Table::Align::right, 0, true},
                 {"possible", Table::Align::right, 0, true},
                 {"of it", Table::Align::right, 3, true}});
    const auto problem = [](const Row& row) {
        const std::string operation = text_at(*row.launch, "operation");
        return operation.empty() ? operation : shortened(operation + " " + text_at(*row.launch, "problem"), most_problem_columns);
    };
    int longest = 7;  // as its title
    for (std::size_t i = 0; i < rows.size() && int(i) < top; ++i) longest = std::max(longest, columns_of(problem(rows[i])));
    const int columns = name_columns(terminal, longest + 48, 7, 44);
    for (std::size_t i = 0; i < rows.size() && int(i) < top; ++i) {
        const Json& launch = *rows[i].launch;
        const auto possible = number_at(launch, "possible_us");
        table.row({{displayable(shortened(text_at(*rows[i].kernel, "short"), columns), terminal.utf8)},
                   {problem(rows[i])},
                   {step.count(at(launch, "calls"))},
                   {time_text(at(launch, "mean_us"))},
                   {time(number_at(launch, "predicted_us"))},
                   {time(number_at(launch, "ours_us"))},
                   {time(possible)},
                   {possible ? percent_text(*possible / at(launch, "mean_us")) : ""}});
    }
    std::string unpredicted;
    constexpr std::size_t most_reasons = 5;
    constexpr double least_share = 0.01;
    std::size_t reasons = 0;
    for (const Row& row : without) {
        const double share = at(*row.launch, "time_us") / whole;
        if (share < least_share || ++reasons > most_reasons) break;
        const std::string line =
            fmt::format("not predicted, {}: {}: {}", percent_text(share), text_at(*row.kernel, "short"), text_at(*row.launch, "why_not"));
        unpredicted += "  " + wrapped(displayable(line, terminal.utf8), terminal.prose() - 2, 4) + "\n";
    }
    const auto error = prediction_error(errors);
    const std::string meaning = fmt::format(
        "Known for {} of kernel time. Predicted: for that very kernel; ours: Rooftile's plan 1; possible: the datasheet's "
        "roof.{}",
        percent_text(known / whole),
        error ? " Predictions are off by " + prediction_error_text(*error) + ", each launch of a kernel once." : "");
    return terminal.paint("What they should take", Tone::strong) + "\n  "
           + terminal.paint_lines(wrapped(meaning, terminal.prose() - 2, 2), Tone::faint) + "\n" + table.text(terminal) + unpredicted;
}

/// What was counted of a launch beside what it was predicted to take and the bytes that it must move.
std::string counters_text(const Json& document, int top, const Terminal& terminal) {
    Table table({{"kernel", Table::Align::left, 2},
                 {"measured"},
                 {"predicted", Table::Align::right, 3, true},
                 {"DRAM"},
                 {"least", Table::Align::right, 1, true},
                 {"L2"},
                 {"tensor"},
                 {"issue"}});
    const int columns = name_columns(terminal, 66, 12, 44);
    int shown = 0;
    const auto bytes = [](const std::optional<double>& value) { return value ? scaled_text(*value, "B") : ""; };
    const auto share = [](const std::optional<double>& value) { return value ? percent_text(*value) : ""; };
    for (const Json& k : document.at("kernels"))
        for (const Json& launch : k.at("launches")) {
            const auto counted = launch.find("counters");
            if (counted == launch.end() || ++shown > top) continue;
            const auto read = number_at(*counted, "dram_read_bytes"), written = number_at(*counted, "dram_written_bytes");
            table.row({{displayable(shortened(text_at(k, "short"), columns), terminal.utf8)},
                       {time_text(at(launch, "mean_us"))},
                       {time(number_at(launch, "predicted_us"))},
                       {bytes(read && written ? std::optional(*read + *written) : std::nullopt)},
                       {bytes(number_at(launch, "least_bytes"))},
                       {bytes(number_at(*counted, "l2_bytes"))},
                       {share(number_at(*counted, "tensor_share"))},
                       {share(number_at(*counted, "issue_share"))}});
        }
    if (shown == 0) return "";
    const std::string meaning =
        "A launch on empty caches: bytes of DRAM, and of every tensor once; bytes between SMs and L2; and shares of "
        "busy cycles in which the matrix units work, and of issue slots.";
    return terminal.paint("Counters", Tone::strong) + "\n  " + terminal.paint_lines(wrapped(meaning, terminal.prose() - 2, 2), Tone::faint)
           + "\n" + table.text(terminal);
}

std::string copies_text(const Json& document, const PerStep& step, const Terminal& terminal) {
    std::string out;
    for (const Json& c : document.at("copies"))
        out += fmt::format("{}{} {} {} in {}", out.empty() ? "" : "; ", step.count(at(c, "count")), text_at(c, "kind"),
                           scaled_text(step(at(c, "bytes")), "B"), time_text(step(at(c, "time_us"))));
    return out.empty() ? "" : entry("copies", out, terminal);
}

std::string ranges_text(const Json& document, const PerStep& step, int top, const Terminal& terminal) {
    if (document.at("ranges").empty()) return "";
    Table table({{"range", Table::Align::left}, {"count"}, {"kernels"}, {"host"}, {"device"}});
    const int columns = name_columns(terminal, 42, 20, 60);
    int shown = 0;
    std::vector<std::string> collectives;
    for (const Json& r : document.at("ranges")) {
        if (++shown > top) break;
        table.row({{displayable(shortened(text_at(r, "name"), columns), terminal.utf8)},
                   {step.count(at(r, "count"))},
                   {step.count(at(r, "kernels"))},
                   {time_text(step(at(r, "host_us")))},
                   {time_text(step(at(r, "device_us")))}});
        const double collective = number_at(r, "collective_us").value_or(0);
        collectives.push_back(collective > 0 ? time_text(step(collective)) : "");
    }
    // A collective's time is that of the slowest GPU too: ranges with such kernels say how much of theirs it is.
    if (std::ranges::any_of(collectives, [](const std::string& each) { return !each.empty(); })) table.column({"collectives"}, collectives);
    return terminal.paint("Ranges", Tone::strong) + "\n" + table.text(terminal);
}

std::string title_of(const Json& document) {
    std::string out = text_at(document, "profiled");
    if (!text_at(document, "range").empty())
        out += fmt::format(", in {} \"{}\"", counted(number_text(at(document, "steps")), "range", "ranges"), text_at(document, "range"));
    return out;
}

}  // namespace

std::string profile_text(const Json& document, int top, const Terminal& terminal) {
    const PerStep step(document);
    std::string out = terminal.paint_lines(wrapped(displayable(title_of(document), terminal.utf8), terminal.width, 2), Tone::strong)
                      + "\n\n" + devices_text(document, step, terminal) + copies_text(document, step, terminal) + "\n";
    if (!document.at("kernels").empty()) out += kernels_text(document, step, top, terminal) + "\n";
    const std::string explained = explained_text(document, step, top, terminal);
    if (!explained.empty()) out += explained + "\n";
    const std::string counters = counters_text(document, top, terminal);
    if (!counters.empty()) out += counters + "\n";
    const std::string ranges = ranges_text(document, step, top, terminal);
    if (!ranges.empty()) out += ranges + "\n";
    if (!document.at("savings").empty()) {
        out += terminal.paint(fmt::format("What would save most{}", step.words()), Tone::strong) + "\n";
        int rank = 0;
        for (const Json& saving : document.at("savings")) {
            const std::string head = fmt::format("  {}  {}  ", ++rank, time_text(at(saving, "saved_us")));
            out += head
                   + wrapped(displayable(text_at(saving, "what"), terminal.utf8), terminal.prose() - columns_of(head), columns_of(head))
                   + "\n";
            out += terminal.paint_lines(command_lines(displayable(text_at(saving, "command"), terminal.utf8), terminal, 5), Tone::faint)
                   + "\n";
        }
    }
    for (const Json& notice : document.at("notices")) out += entry("note", displayable(notice.get<std::string>(), terminal.utf8), terminal);
    return out;
}

std::string profile_comparison_text(const Json& first, const Json& second, int top, const Terminal& terminal) {
    struct Pair {
        std::string name;
        std::optional<double> before, after;  // us a step
        double calls_before = 0, calls_after = 0;
        double change() const { return after.value_or(0) - before.value_or(0); }
    };
    const PerStep a(first), b(second);
    std::map<std::string, Pair> by_name;
    for (const Json& k : first.at("kernels"))
        by_name[text_at(k, "name")] = {text_at(k, "short"), a(at(k, "time_us")), {}, a(at(k, "calls")), 0};
    for (const Json& k : second.at("kernels")) {
        Pair& pair = by_name[text_at(k, "name")];
        pair.name = text_at(k, "short"), pair.after = b(at(k, "time_us")), pair.calls_after = b(at(k, "calls"));
    }
    std::vector<Pair> pairs;
    for (auto& [name, pair] : by_name) pairs.push_back(pair);
    std::ranges::stable_sort(pairs, [](const Pair& x, const Pair& y) { return std::abs(x.change()) > std::abs(y.change()); });
    const auto title = [&](const Json& document) {
        return wrapped(displayable(title_of(document), terminal.utf8), terminal.width > 0 ? terminal.width - 3 : 0, 3);
    };
    std::string out = fmt::format("1  {}\n2  {}\n\n", title(first), title(second));
    Table whole({{"", Table::Align::left}, {"1"}, {"2"}, {"change"}});
    const auto sum = [](const Json& d, const PerStep& step, auto value) {
        double all = 0;
        for (const Json& device : d.at("devices")) all += value(device);
        return step(all);
    };
    const auto line = [&](const char* name, auto value) {
        const double x = sum(first, a, value), y = sum(second, b, value);
        whole.row({{name}, {time_text(x)}, {time_text(y)}, {x > 0 ? signed_percent(y / x - 1) : "-"}});
    };
    line("first to last", [](const Json& d) { return at(d, "window_us"); });
    line("busy", [](const Json& d) { return at(d, "busy_us"); });
    line("idle", [](const Json& d) { return at(d, "idle_us"); });
    line("  host", [](const Json& d) { return at(d.at("idle"), "host_us") + at(d.at("idle"), "waited_us"); });
    line("  launch gaps", [](const Json& d) { return at(d.at("idle"), "launch_us") + at(d.at("idle"), "dependency_us"); });
    out += whole.text(terminal) + "\n";
    Table table({{"kernel", Table::Align::left},
                 {"calls 1", Table::Align::right, 2, true},
                 {"calls 2", Table::Align::right, 1, true},
                 {"time 1"},
                 {"time 2"},
                 {"change"}});
    const int columns = name_columns(terminal, 36, 20, 60);
    int shown = 0;
    for (const Pair& p : pairs) {
        if (++shown > top) break;
        table.row({{displayable(shortened(p.name, columns), terminal.utf8)},
                   {p.before ? number_text(p.calls_before) : ""},
                   {p.after ? number_text(p.calls_after) : ""},
                   {p.before ? time_text(*p.before) : "-"},
                   {p.after ? time_text(*p.after) : "-"},
                   {!p.before  ? "new"
                    : !p.after ? "gone"
                               : signed_percent(*p.after / *p.before - 1)}});
    }
    return out + table.text(terminal);
}

}  // namespace rooftile
