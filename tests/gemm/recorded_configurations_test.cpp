// Predicted times beside recorded ones, over configurations that nobody chose for being good: how far the model can be trusted to rank.
// Each row is predicted anew, by today's model and numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "rooftile/core/rank_correlation.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/report/sweep_report.hpp"
#include "tests/gemm/recorded.hpp"
#include "tests/gemm/tiles_outside.hpp"

namespace rooftile {
namespace {

/// The run of bench/configurations.sh that chose no number of the model (docs/facts.md 59).
constexpr const char* fresh_configurations = "2026-11-22-h200-configurations-fresh.jsonl";

struct ConfigurationFigures {
    int problems = 0, configurations = 0;
    double chosen_error = 0, error = 0;  ///< mean |predicted / measured - 1|: of rank 1 of each problem, and of all
    double rank_correlation = 0;         ///< Spearman's within a problem, mean
    int least_configurations = 1000;     ///< of a problem
};

ConfigurationFigures configuration_figures(const std::vector<RecordedRow>& rows, const Machine& machine) {
    ConfigurationFigures f;
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::pair<std::vector<double>, std::vector<double>>> problems;
    for (const RecordedRow& row : rows) {
        const double predicted = planned_again(machine, row).prediction.time_us.value(), error = std::abs(predicted / row.time_us.value() - 1);
        auto& [all_predicted, measured] = problems[{row.problem.m, row.problem.n, row.problem.k}];
        all_predicted.push_back(predicted), measured.push_back(*row.time_us);
        f.error += error, ++f.configurations;
        if (row.rank == 1) f.chosen_error += error;
    }
    f.problems = int(problems.size());
    for (const auto& [problem, times] : problems) {
        f.least_configurations = std::min(f.least_configurations, int(times.first.size()));
        if (times.first.size() >= 3) f.rank_correlation += rank_correlation(times.first, times.second) / f.problems;
    }
    f.chosen_error /= f.problems, f.error /= f.configurations;
    return f;
}

/// Leaves out what was timed when the last tiles stood outside C; how many.
std::size_t leave_out_tiles_outside(std::vector<RecordedRow>& rows) {
    return std::erase_if(rows, [](const RecordedRow& r) {
        return stood_outside(r.problem, r.config.tile_m, r.config.tile_n, r.config.cluster_m, r.config.cluster_n);
    });
}

TEST(RankCorrelation, ByHand) {
    const double x[] = {1, 2, 3, 4, 5};
    EXPECT_DOUBLE_EQ(rank_correlation(x, x), 1);
    // Ranks 0 1 2 3 4 against 0 1 2 4 3: sum of squared differences 2, 1 - 6 x 2 / (5 x 24) = 0.9.
    EXPECT_DOUBLE_EQ(rank_correlation(x, std::vector<double>{10, 20, 30, 50, 40}), 0.9);
    EXPECT_DOUBLE_EQ(rank_correlation(x, std::vector<double>{5, 4, 3, 2, 1}), -1);
    // A tie: ranks 0 1 2 3 4 against 0 1.5 1.5 3 4: covariance 9.5, variances 10 and 9.5.
    EXPECT_DOUBLE_EQ(rank_correlation(x, std::vector<double>{1, 2, 2, 3, 4}), 9.5 / std::sqrt(10 * 9.5));
    EXPECT_TRUE(std::isnan(rank_correlation(x, std::vector<double>(5, 1))));
}

/// What every run of configurations is held to: 7 of a problem at least, 6 % off over those chosen and 10 % over all, ranked at 0.9.
bool holds(const ConfigurationFigures& f) { return f.least_configurations >= 7 && f.chosen_error <= 0.06 && f.error <= 0.10 && f.rank_correlation >= 0.9; }

TEST(RecordedConfigurations, EveryBarHolds) {
    std::vector<RecordedRow> rows = rows_of_run(fresh_configurations);
    const Machine machine = machine_by_id("h200-sxm");
    const ConfigurationFigures all = configuration_figures(rows, machine);
    EXPECT_TRUE(holds(all));
    EXPECT_EQ(all.problems, 202);
    EXPECT_EQ(all.configurations, 1616);
    EXPECT_EQ(leave_out_tiles_outside(rows), 27u);
    const ConfigurationFigures f = configuration_figures(rows, machine);
    EXPECT_LE(f.chosen_error, 0.022);
    EXPECT_LE(f.error, 0.074);
    EXPECT_GE(f.rank_correlation, 0.92);
}

// A number wrong by a factor of two, or a term left out, is noticed: a bar is missed.
TEST(RecordedConfigurations, ABrokenTermMissesABar) {
    const std::vector<RecordedRow> rows = rows_of_run(fresh_configurations);
    for (const auto& [key, value] : {std::pair("l2.bandwidth", "5 TB/s"),
                                     {"dram.sustained_read", "2.1 TB/s"},
                                     {"tma.latency_loaded_l2", "1.8 us"},
                                     {"dram.per_sm", "12 B/clk/SM"},
                                     {"energy.flop.bf16", "0.72 pJ/FLOP"}}) {
        Machine wrong = machine_by_id("h200-sxm");
        set_fact(wrong, key, value, "wrong on purpose");
        EXPECT_FALSE(holds(configuration_figures(rows, wrong))) << key;
    }
    // Terms that cost less than a bar has room for still show in the figures.
    const Machine h200 = machine_by_id("h200-sxm");
    const double right = configuration_figures(rows, h200).error;
    for (const char* key : {"tma.latency_loaded_l2", "dram.per_sm_alone", "l2.partitions"}) {
        Machine without = h200;
        EXPECT_EQ(without.facts.erase(key), 1u) << key;
        EXPECT_GT(configuration_figures(rows, without).error, right + 0.001) << key;
    }
}

// Of an H100's numbers three are fitted to drawn problems of another run, none to this one; what terms the model has was settled with
// these rows in sight. 24 of the suite's problems, cut by --max-seconds.
TEST(RecordedConfigurations, AnotherGpuIsWithinTenPercent) {
    const std::vector<RecordedRow> rows = rows_of_run("2026-11-22-h100-configurations.jsonl");
    const ConfigurationFigures f = configuration_figures(rows, machine_by_id("h100-sxm"));
    EXPECT_EQ(f.problems, 24);
    EXPECT_EQ(f.configurations, 192);
    EXPECT_LE(f.chosen_error, 0.052);
    EXPECT_LE(f.error, 0.095);
    EXPECT_GE(f.rank_correlation, 0.889);
    Machine wrong = machine_by_id("h100-sxm");
    set_fact(wrong, "l2.bandwidth", "4 TB/s", "wrong on purpose");
    EXPECT_GT(configuration_figures(rows, wrong).error, 0.10);
}

/// The draw that counts, whose operands off the line were loaded with another promotion than kernels ask for now: L2's cost of
/// such loads as the same probe had it with that.
constexpr std::pair<const char*, const char*> as_it_was_drawn[] = {
    {"tma.off_line_16", "1.366"},        {"tma.off_line_32", "1.04"},        {"tma.off_line_64", "1"},
    {"tma.off_line_shared_16", "1.75"}, {"tma.off_line_shared_32", "1.11"}, {"tma.off_line_shared_64", "0.85"}};

/// Of a draw: relative errors from 5 us on, absolute ones of what is shorter.
struct DrawFigures {
    std::vector<double> errors;    ///< |predicted / measured - 1|, ascending
    std::vector<double> short_us;  ///< |predicted - measured|
    double mean_error() const { return mean(errors); }
    double p95() const { return nearest_rank(errors, 0.95); }
};

DrawFigures draw_figures(const std::vector<RecordedRow>& rows, const Machine& machine) {
    DrawFigures f;
    for (const RecordedRow& row : rows) {
        const double predicted = planned_again(machine, row).prediction.time_us.value(), time = row.time_us.value();
        if (time < 5) f.short_us.push_back(std::abs(predicted - time));
        else f.errors.push_back(std::abs(predicted / time - 1));
    }
    std::sort(f.errors.begin(), f.errors.end());
    return f;
}

TEST(DrawnProblems, EveryBarHoldsAndTermsAreNeeded) {
    std::vector<RecordedRow> rows = rows_of_run("2026-11-25-h200-gemm-draw-14281972.jsonl");
    EXPECT_EQ(leave_out_tiles_outside(rows), 3u);
    Machine h200 = machine_by_id("h200-sxm");
    for (const auto& [key, value] : as_it_was_drawn) set_fact(h200, key, value, "probed with a promotion of 256 B");
    const DrawFigures f = draw_figures(rows, h200);
    EXPECT_EQ(f.errors.size(), 85u);
    EXPECT_LE(f.mean_error(), 0.038);
    EXPECT_LE(f.p95(), 0.125);
    EXPECT_EQ(f.short_us.size(), 12u);
    EXPECT_LE(mean(f.short_us), 0.5);
    const auto without = [&](std::initializer_list<const char*> keys) {
        Machine machine = h200;
        for (const char* key : keys) EXPECT_EQ(machine.facts.erase(key), 1u) << key;
        return draw_figures(rows, machine);
    };
    // Without what rows off the line cost, or rows of C amid a sector, a draw is predicted worse.
    const DrawFigures on_line = without({"tma.off_line_16", "tma.off_line_32", "tma.off_line_64"});
    EXPECT_GT(on_line.mean_error(), f.mean_error() + 0.01);
    EXPECT_GT(on_line.p95(), 0.15);
    EXPECT_GT(without({"tma.store_amid_sector"}).mean_error(), f.mean_error() + 0.001);
}

// Many configurations of a problem count each, and a record of before a key of the space is predicted by what it has: the file that
// bench/fit_sm80.sh fits to.
TEST(RecordedConfigurations, AReportPredictsAllOfAProblem) {
    const std::string name = "2026-11-24-h200-sm80-fit.jsonl";
    std::vector<SuiteRecord> records;
    records.push_back(read_suite_record(read_whole_file(ROOFTILE_SOURCE_DIR "/bench/results/history/" + name), name));
    const SweepReport report = sweep_report(std::move(records), std::make_shared<const Machine>(machine_by_id("h200-sxm")));
    ASSERT_EQ(report.points.size(), 80u);
    for (const SweepPoint& point : report.points) EXPECT_TRUE(point.time_us && point.predicted_us) << point.label;
    EXPECT_EQ(report.all.front().problems, 80);
    EXPECT_LT(report.all.front().error_mean.value(), 0.2);
}

// What `report sweep --again` tells is what each plan of the run is predicted to take now.
TEST(DrawnProblems, AReportPredictsThemAnew) {
    const std::string name = "2026-11-26-h100-gemm-draw-13553889.jsonl";
    const auto machine = std::make_shared<Machine>(machine_by_id("h100-sxm"));
    const auto report = [&](const std::shared_ptr<const Machine>& numbers) {
        std::vector<SuiteRecord> records;
        records.push_back(read_suite_record(read_whole_file(ROOFTILE_SOURCE_DIR "/bench/results/history/" + name), name));
        return sweep_report(std::move(records), numbers);
    };
    const SweepReport again = report(machine);
    EXPECT_EQ(again.predicted_by, "h100-sxm");
    std::map<double, double> predicted;  // by the time that was measured
    for (const RecordedRow& row : rows_of_run(name))
        if (row.rank == 1 && row.time_us) predicted[*row.time_us] = planned_again(*machine, row).prediction.time_us.value();
    int compared = 0;
    for (const SweepPoint& point : again.points) {
        if (!point.time_us || !point.predicted_us) continue;
        EXPECT_DOUBLE_EQ(*point.predicted_us, predicted.at(*point.time_us)) << point.name;
        ++compared;
    }
    EXPECT_GE(compared, 50);
    set_fact(*machine, "dram.sustained_read", "1 TB/s", "wrong on purpose");
    EXPECT_GT(report(machine).all.front().error_mean.value(), 2 * again.all.front().error_mean.value());
    EXPECT_NE(report(nullptr).all.front().error_mean, again.all.front().error_mean);
}

}  // namespace
}  // namespace rooftile
