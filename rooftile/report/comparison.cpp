#include "rooftile/report/comparison.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

/// What a row says of its time.
struct Timed {
    Json line;
    double time_us, low_us, high_us;
};

/// By problem and mode; without those that have no time.
std::map<std::string, Timed> times_of(const SuiteRecord& record) {
    std::map<std::string, Timed> out;
    for (const SuiteShape& shape : record.shapes) {
        const SuiteRow* row = shape.rank1() ? shape.rank1() : &shape.first();
        if (!row->time_us) continue;
        Json line = Json::parse(row->line);
        const double low = number_at(line, "time_us_low").value_or(*row->time_us);
        const double high = number_at(line, "time_us_high").value_or(*row->time_us);
        out.emplace(row->problem + row->mode, Timed{std::move(line), *row->time_us, low, high});
    }
    return out;
}

std::string run_text(const SuiteRecord& r) {
    const std::string program = r.program_hash.empty() ? "" : " (" + r.program_hash.substr(0, 8) + ")";
    return fmt::format("{}, driver {}, rooftile {}{}, {}", r.gpu.empty() ? r.machine_name : r.gpu,
                       r.driver.empty() ? "unknown" : r.driver, r.version, program, r.date.substr(0, 10));
}

std::string name_of_problem(const Json& line) {
    const Json& problem = line.at("problem");
    const Operation* operation = find_operation(text_at(problem, "op"));
    if (!operation) throw RequestError("this program has no operation " + text_at(problem, "op"));
    return text_at(problem, "op") + " "
           + operation->short_name(operation->problem(operation->given_of_record(record_of(problem))));
}

Change change_of(double low, double high, double within) {
    const double most = 1 + within,
                 least = 1 / most;  // so that runs in the other order have the opposite change
    if (low > most) return Change::faster;
    if (high < least) return Change::slower;
    return low >= least && high <= most ? Change::same : Change::undecided;
}

}  // namespace

std::string_view name_of(Change change) {
    static constexpr std::string_view names[] = {"slower", "undecided", "faster", "same"};
    return names[std::size_t(change)];
}

int Comparison::count(Change change) const {
    return int(std::ranges::count(problems, change, &ComparedProblem::change));
}

Comparison compared(const SuiteRecord& first, const SuiteRecord& second, double within) {
    Comparison out;
    out.first = run_text(first), out.second = run_text(second), out.within = within;
    const auto before = times_of(first), after = times_of(second);
    for (const auto& [key, a] : before) {
        const auto found = after.find(key);
        if (found == after.end()) continue;
        const Timed& b = found->second;
        const double low = a.low_us / b.high_us, high = a.high_us / b.low_us;
        const bool same_plan = a.line.at("config") == b.line.at("config");
        out.problems.push_back({name_of_problem(a.line), a.time_us, b.time_us, a.time_us / b.time_us, low,
                                high, same_plan, change_of(low, high, within)});
    }
    out.in_one_only = int(before.size() + after.size() - 2 * out.problems.size());
    if (out.problems.empty())
        throw RequestError(
            "no problem was measured in both runs in the same mode; "
            "runs of one suite, or of a draw with the same seed, can be compared");
    std::ranges::stable_sort(out.problems, [](const ComparedProblem& x, const ComparedProblem& y) {
        if (x.change != y.change) return x.change < y.change;
        return std::abs(std::log(x.ratio)) > std::abs(std::log(y.ratio));
    });
    return out;
}

std::string comparison_text(const Comparison& c, const Terminal& terminal) {
    std::string out = entry("first ", c.first, terminal) + entry("second", c.second, terminal) + "\n";
    constexpr auto left = Table::Align::left;
    Table table({{"problem", left},
                 {"first"},
                 {"second"},
                 {"ratio"},
                 {"interval", left, 1},
                 {"plan", left, 2},
                 {"second is", left}});
    double logarithm = 0;
    for (const ComparedProblem& p : c.problems) {
        const Tone tone = p.change == Change::slower   ? Tone::bad
                          : p.change == Change::faster ? Tone::good
                                                       : Tone::plain;
        table.row({{p.name},
                   {time_text(p.first_us)},
                   {time_text(p.second_us)},
                   {fmt::format("{:.3f}", p.ratio)},
                   {fmt::format("{:.3f} to {:.3f}", p.low, p.high)},
                   {p.same_plan ? "same" : "another"},
                   {std::string(name_of(p.change)), tone}});
        logarithm += std::log(p.ratio) / double(c.problems.size());
    }
    out += table.text(terminal) + "\n";
    std::string counts;
    for (const Change change : {Change::faster, Change::slower, Change::same, Change::undecided})
        counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", c.count(change), name_of(change));
    out += wrapped(fmt::format("{} problem{}: {}; {} in one run only. Ratio: the first run's time over the "
                               "second's, geometric mean {:.3f}; same: the whole "
                               "interval within {:g} % of 1.",
                               c.problems.size(), c.problems.size() == 1 ? "" : "s", counts, c.in_one_only,
                               std::exp(logarithm), 100 * c.within),
                   terminal.prose(), 0);
    return out + "\n";
}

}  // namespace rooftile
