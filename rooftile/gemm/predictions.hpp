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

struct PredictionReport {
    std::string machine_id, gpu, driver, date, mode;
    std::vector<PredictedShape> shapes;  ///< in the order of the file
    int configurations = 0;
    int without_result = 0;              ///< rows that have no time, or no prediction
    double chosen_error = 0, error = 0;  ///< mean absolute: over rank 1 of every shape; over all
    double bias = 0;                     ///< geometric mean of predicted / measured, over all, less 1
    double rank_correlation = 0, min_rank_correlation = 1;  ///< mean and least over shapes
};

inline constexpr double chosen_error_limit = 0.06, error_limit = 0.10, min_correlation = 0.9;
inline constexpr int min_configurations = 7;  ///< a shape: rank 1 and 6 that chose no constant

/// Every row predicted anew by the model and the numbers of `machine`. Throws RequestError where a
/// configuration does not fit it.
PredictionReport prediction_report(const RecordedRun& run, const Machine& machine);

std::string predictions_text(const PredictionReport& report, const Terminal& terminal);

/// One line for each bar that is missed: 6 configurations a shape beside the chosen one; mean absolute error
/// 6 % over the chosen plans, 10 % over all; rank correlation within a shape 0.9 in the mean.
std::vector<std::string> missed_prediction_bars(const PredictionReport& report);

}  // namespace rooftile
