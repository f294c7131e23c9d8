// What a ledger says of the model and the planner as they are now: every stored configuration is predicted and every
// problem planned anew, and held against the times that were measured. No GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/report/ledger.hpp"
#include "rooftile/report/prediction_error.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// The geometric mean of ratios, the arithmetic one of errors' sizes; 95th percentile; worst. Empty of no values.
struct FigureSpread {
    std::optional<double> mean{}, p95{}, max{};
    std::optional<double> bias{};  ///< of errors: their mean, with its sign
};

/// One problem of a ledger. Regrets are a member's time over the fastest member's.
struct ValidatedProblem {
    Problem problem;
    std::string name, best_label, plan_label;
    std::size_t members = 0, unplanned = 0;  ///< that have a time; of them no plan any more
    double best_us = 0;
    std::optional<double> plan_us, plan_predicted_us;  ///< of plan 1, or of the member that stands in for it
    bool outside = false;  ///< plan 1 is no member: the one that the model predicts fastest stands in
    std::optional<double> regret, best_of[3]{};  ///< best of the first 2, 4 and 8 plans
    std::optional<double> ranked_regret;         ///< of the member that the model predicts fastest of all
    std::optional<double> plan_error;            ///< predicted / measured - 1 of plan 1
    std::vector<double> errors;                  ///< the same of all members
    std::optional<double> rank_correlation, noise;
    std::vector<std::pair<std::string, double>> picks;  ///< regrets
    bool is_short() const;                              ///< so short that ratios say little: it counts apart
};

inline constexpr int best_of_counts[] = {2, 4, 8};

struct Validation {
    struct Picker {
        std::string name;
        int problems = 0;
        FigureSpread regret;
    };
    std::string files;
    Ledger ledger;  ///< the first, without its entries
    const Operation* operation = nullptr;
    std::vector<ValidatedProblem> problems;  ///< in the order of the files
    int judged = 0;                          ///< problems that are not short
    double space_mean = 0;
    std::size_t space_least = 0, space_most = 0, unplanned = 0;
    int outside = 0;
    FigureSpread regret, best_of[3], ranked_regret, prediction_error, prediction_error_all;
    std::optional<double> rank_correlation, noise_floor, noise_max;
    std::vector<Picker> pickers;
    int shorts = 0;
    std::optional<double> short_behind_us;         ///< mean: plan 1 less the fastest
    std::optional<PredictionError> short_error_us;  ///< of predicted less measured
};

/// Runs work(i) for every i below count, in any order or at once.
using ForEach = std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)>;

/// Of ledgers of one operation, one at least, planned on `machine`.
Validation validation_of(const std::vector<Ledger>& ledgers, const std::shared_ptr<const Machine>& machine,
                         const ForEach& each);

/// One line for each threshold "NAME=VALUE" that is missed. Names: regret.mean, regret.p95, regret.max, best_of.2, best_of.4,
/// best_of.8, prediction_error.mean, .p95, .max, rank_correlation, noise_floor; rank_correlation is wanted at least, all
/// others at most so high. Throws RequestError on any other.
std::vector<std::string> missed_thresholds(const Validation& validation,
                                           const std::vector<std::string>& required);

/// `rooftile/validation/1`; docs/schema/validation-1.json is its JSON Schema.
Json validation_document(const DocumentContext& context, const std::vector<Validation>& operations);
std::string validation_text(const Validation& validation, const Terminal& terminal);

}  // namespace rooftile
