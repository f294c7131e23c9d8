#include "rooftile/gemm/ladder_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/gemm/ladder_json.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/gemm/plan_text.hpp"

namespace rooftile {
namespace {

using Align = Table::Align;

std::string shown(std::optional<double> value, auto&& text) { return value ? text(*value) : "?"; }

std::string times_table(const LadderRun& run, const Terminal& terminal) {
    Table table({{"rung", Align::left},
                 {"adds", Align::left, 2},
                 {"predicted"},
                 {"measured"},
                 {"meas/pred", Align::right, 1},
                 {"TFLOP/s"},
                 {"x before", Align::right, 3},
                 {"cuBLASLt", Align::right, 1}});
    const auto number = [](double value) { return number_text(value, 3); };
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
        const LadderRow& row = run.rows[i];
        const bool valid = why_no_result(row).empty();
        const bool timed = valid && row.measured.time_us.has_value();
        const LadderRatios ratios = ratios_of(run, i);
        const auto ratio = [&](std::optional<double> value, auto&& text) {
            return value ? text(*value) : std::string();
        };
        table.row({{row.name},
                   {row.adds},
                   {shown(row.prediction.time_us, time_text)},
                   {timed   ? time_text(*row.measured.time_us)
                    : valid ? ""
                            : "no result",
                    timed ? Tone::strong : Tone::bad},
                   {ratio(ratios.measured_over_predicted, number)},
                   {timed ? number_text(row.measured.tflops.value_or(0)) : "", Tone::strong},
                   {ratio(ratios.speedup, number)},
                   {ratio(ratios.cublaslt_share, percent_text)}});
    }
    if (const auto best = run.cublaslt_best_us())
        table.row({{"cuBLASLt"},
                   {"best of 8"},
                   {},
                   {time_text(*best)},
                   {},
                   {number_text(run.problem.flops().value / *best * 1e-6)},
                   {},
                   {}});
    return table.text(terminal);
}

}  // namespace

std::string ladder_text(const DocumentContext& context, const LadderRun& run, const Terminal& terminal) {
    std::string out = heading_text(run.problem, context.machine_id,
                                   context.gpu ? context.gpu->gpu : context.machine_name, terminal);
    out += fmt::format("ladder  {}\n\n", name_of(run.mode));
    out += times_table(run, terminal);
    if (!run.baseline_missing.empty())
        out += fmt::format("  no baseline: {}\n", displayable(run.baseline_missing, terminal.utf8));
    out += "\nwhat limits the prediction\n";
    std::vector<Entry> reasons, failures;
    for (const LadderRow& row : run.rows) {
        const std::string bound = row.prediction.bound ? std::string(name_of(*row.prediction.bound)) : "?";
        const std::string plan = row.rung ? "" : label_of(gemm_plan(row.measured).config) + "; ";
        reasons.push_back({row.name, bound, plan + row.prediction.reason});
        if (const std::string why = why_no_result(row); !why.empty())
            failures.push_back({row.name, "no result", why});
    }
    out += entries_text(reasons, 2, terminal);
    if (!failures.empty()) out += "\n" + entries_text(failures, 2, terminal);
    double worst = 0;
    std::size_t verified = 0;
    for (const LadderRow& row : run.rows) {
        if (!row.measured.verified.ok()) continue;
        ++verified;
        worst = std::max(worst, row.measured.verified.max_error);
    }
    if (verified == 0 && run.verified()) return out;  // nothing ran
    const auto mark = run.verified() ? terminal.paint("PASS", Tone::good) : terminal.paint("FAIL", Tone::bad);
    out += fmt::format(
        "\n  verified  {}  {} of {}: integers bit for bit, random data within its bound ({} of it), NaN and "
        "Inf\n",
        mark, verified, run.rows.size(), number_text(worst, 3));
    return out;
}

}  // namespace rooftile
