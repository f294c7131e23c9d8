// The time model against a recorded run that chose none of its numbers: the figures that docs/facts.md states.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/gemm/gemm_config.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/gemm/plan.hpp"
#include "tests/recorded_csv.hpp"

namespace rooftile {
namespace {

struct Row {
    GemmProblem problem;
    GemmRequest request;
    double time_us = 0;
};

// 162 problems, planned with energies fitted to runs before this one.
constexpr const char* unseen = "2026-11-22-h200-energies.csv";

std::vector<Row> recorded_rows(const std::string& name) {
    std::vector<Row> rows;
    for (const std::vector<std::string>& field : recorded_fields(name, "m,")) {
        const auto number = [&](std::size_t i) { return std::stoi(field.at(i)); };
        Row row;
        row.problem = gemm_problem(number(0), number(1), number(2));
        GemmRequest& r = row.request;
        r.tile_m = number(3), r.tile_n = number(4), r.stages = number(5), r.consumer_warpgroups = number(6);
        r.schedule = field.at(7) == "pingpong" ? Schedule::pingpong : Schedule::cooperative;
        r.cluster_m = number(8), r.cluster_n = number(9);
        r.order = field.at(10) == "row"          ? Order::row
                  : field.at(10) == "column"     ? Order::column
                  : field.at(10) == "serpentine" ? Order::serpentine
                                                 : Order::grouped;
        if (r.order != Order::row && r.order != Order::column) r.group = number(11);
        r.split_k = number(12), r.ctas_per_sm = number(13), r.top = 1;
        r.swap_ab = false;
        r.epilogue_tile_n =
            Sm90GemmConfig{}.swizzled_columns(*r.tile_n / *r.split_k);  // as all of them stored C
        r.simulate = false;
        row.time_us = std::stod(field.at(14));
        rows.push_back(row);
    }
    return rows;
}

/// What came of all rows of `least` <= M < `most`.
struct Figures {
    int rows = 0;
    double error = 0;  ///< mean absolute, of the predicted time
    double scatter =
        0;  ///< the same of its logarithm, but for what all rows have in common: one part's clock
    int problems = 0,
        within = 0;  ///< with four plans or more; the least predicted of them within 3 % of the least
};

Figures figures(const Machine& machine, const std::vector<Row>& rows, std::int64_t least, std::int64_t most) {
    Figures out;
    std::vector<double> logs;
    struct Best {
        int plans = 0;
        double predicted = INFINITY, its_time = 0, time = INFINITY;
    };
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Best> problems;
    for (const Row& row : rows) {
        if (row.problem.m < least || row.problem.m >= most) continue;
        GemmRequest request = row.request;
        request.overlapped_epilogue = true;  // all of them that could
        auto plans = derive(machine, row.problem, request);
        if (std::holds_alternative<Infeasible>(plans))
            request.overlapped_epilogue = false, plans = derive(machine, row.problem, request);
        const auto* found = std::get_if<Plans>(&plans);
        if (!found) {
            ADD_FAILURE() << std::get<Infeasible>(plans).message;
            continue;
        }
        const double predicted = found->plans.front().prediction.time_us.value();
        ++out.rows;
        logs.push_back(std::log(predicted / row.time_us));
        out.error += std::abs(predicted / row.time_us - 1);
        Best& best = problems[{row.problem.m, row.problem.n, row.problem.k}];
        ++best.plans;
        if (predicted < best.predicted) best.predicted = predicted, best.its_time = row.time_us;
        best.time = std::min(best.time, row.time_us);
    }
    out.error /= out.rows;
    const double common = median(logs);
    for (double log : logs) out.scatter += std::abs(log - common) / out.rows;
    for (const auto& [problem, best] : problems) {
        if (best.plans < 4) continue;
        ++out.problems;
        out.within += best.its_time <= 1.03 * best.time;
    }
    return out;
}

constexpr std::int64_t any = std::int64_t{1} << 40;

// The rest misses by less than 2 % more, mostly: two blocks of 0.1 s scatter by 1.5 % each.
TEST(RecordedRuns, PredictionsAreAsGoodAsStated) {
    struct Stated {
        std::int64_t least, most;  ///< M
        double error;              ///< mean absolute, at most
        double right;              ///< share of problems whose first plan is within 3 % of the fastest, at least
    };
    const std::vector<Row> rows = recorded_rows(unseen);
    ASSERT_GT(rows.size(), 1200u);
    const Machine h200 = machine_by_id("h200-sxm");
    for (const Stated& stated :
         {Stated{2048, any, 0.016, 0.91}, {128, 2048, 0.029, 0.75}, {1, 128, 0.033, 0.93}}) {
        const Figures f = figures(h200, rows, stated.least, stated.most);
        EXPECT_LE(f.error, stated.error) << "M from " << stated.least;
        EXPECT_GE(f.within, stated.right * f.problems) << "M from " << stated.least;
    }
}

// Each term earns its place: without it the same rows are predicted worse.
TEST(RecordedRuns, EveryTermIsNeeded) {
    const Machine h200 = machine_by_id("h200-sxm");
    const std::vector<Row> rows = recorded_rows(unseen);
    const auto worse = [&](const char* key, std::int64_t least, std::int64_t most) {
        Machine broken = h200;
        EXPECT_EQ(broken.facts.erase(key), 1u) << key;
        const double with = figures(h200, rows, least, most).scatter;
        return figures(broken, rows, least, most).scatter / with - 1;
    };
    for (const auto& [key, least, most] :
         std::vector<std::tuple<const char*, std::int64_t, std::int64_t>>{{"tma.store_latency", 512, any},
                                                                          {"wgmma.turn", 512, any},
                                                                          {"energy.fill", 128, any},
                                                                          {"energy.flop.bf16", 128, any},
                                                                          {"dram.per_sm", 1, 256},
                                                                          {"tma.latency_loaded", 1, any},
                                                                          {"l2.coalesced", 64, 512},
                                                                          {"launch.gap_stream", 1, 128}})
        EXPECT_GT(worse(key, least, most), 0.02) << key;
}

}  // namespace
}  // namespace rooftile
