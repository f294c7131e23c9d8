// Predicted times beside measured ones, over configurations that nobody chose for being good: how far the
// time model can be trusted to rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rooftile/core/rank_correlation.hpp"
#include "rooftile/gemm/recorded_run.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// The measured configurations of one problem.
struct PredictedShape {
    GemmProblem problem;
    int configurations = 0;
    std::optional<double> chosen_error;  ///< predicted / measured - 1 of rank 1
    double error = 0, worst = 0;         ///< absolute: mean over the configurations, and the largest
    /// Spearman's, of predicted and measured times; empty below 3 configurations.
    std::optional<double> rank_correlation;
};

/// Predicted and measured times of configurations that have something in common.
struct PredictionClass {
    std::string name;
    int configurations = 0;
    double error = 0, p95 = 0, bias = 0;  ///< absolute: mean and 95th percentile; mean of predicted / measured - 1
    double error_us = 0;                  ///< mean absolute, in us
};

struct PredictionReport {
    std::string machine_id, gpu, driver, date, mode;
    std::vector<PredictedShape> shapes;  ///< in the order of the file
    int configurations = 0;
    int without_result = 0;              ///< rows that have no time, or no prediction
    double chosen_error = 0, error = 0;  ///< mean absolute: over rank 1 of every shape; over all
    double bias = 0;                     ///< geometric mean of predicted / measured, over all, less 1
    double rank_correlation = 0, min_rank_correlation = 1;  ///< mean and least over shapes
    /// All from 5 us on, all below, and what those from 5 us on have in common; only classes that have configurations.
    std::vector<PredictionClass> classes;
    /// One configuration a problem, as draws are recorded: nothing to rank.
    bool one_each() const { return configurations == int(shapes.size()); }
};

/// Ratios and percentages count from here on.
inline constexpr double small_time_us = 5;
/// Of a draw: mean and 95th percentile from 5 us on, and mean below in us.
inline constexpr double drawn_error_limit = 0.05, drawn_p95_limit = 0.15, drawn_small_limit_us = 0.7;

inline constexpr double chosen_error_limit = 0.06, error_limit = 0.10, min_correlation = 0.9;
inline constexpr int min_configurations = 7;  ///< a shape: rank 1 and 6 that chose no constant

/// Every row predicted anew by the model and the numbers of `machine`. Throws RequestError where a
/// configuration does not fit it.
PredictionReport prediction_report(const RecordedRun& run, const Machine& machine);

std::string predictions_text(const PredictionReport& report, const Terminal& terminal);

/// One line for each bar that is missed: 6 configurations a shape beside the chosen one; mean absolute error
/// 6 % over the chosen plans, 10 % over all; rank correlation within a shape 0.9 in the mean. Of a draw, with one
/// configuration a problem: 5 % in the mean and 15 % at the 95th percentile from 5 us on, 0.7 us in the mean below.
std::vector<std::string> missed_prediction_bars(const PredictionReport& report);

}  // namespace rooftile
