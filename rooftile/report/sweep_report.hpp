// What the rows of many problems say together, whatever the operation: beside the baseline and beside the prediction, by
// band and by feature, with the spread that another draw of as many problems would show.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/operation.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/launch_figures.hpp"
#include "rooftile/report/suite_rows.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// One problem, by the plan ranked first; where plans are predicted anew one of each, and a ratio of the first alone.
struct SweepPoint {
    std::string name;
    ProblemTraits traits;
    std::optional<double> time_us, predicted_us;
    std::optional<PredictedInterval> interval;  ///< where it is predicted anew
    std::optional<double> ratio;        ///< the baseline's time over ours; above 1 ours is faster
    std::optional<double> baseline_us;  ///< by that ratio
    std::vector<RecordedVariant> variants;
    std::string label;                  ///< of the plan
    std::string why_none;               ///< where there is no result
    /// predicted / measured - 1.
    std::optional<double> prediction_error() const;
};

/// Whether ratios say anything of it.
bool is_judged(const SweepPoint& point);

inline constexpr double ratio_limits[] = {0.95, 0.85, 0.70};

/// Of some problems.
struct SweepFigures {
    std::string name;
    int problems = 0;
    int compared = 0;                        ///< that the ratio rests on
    std::optional<double> ratio, low, high;  ///< geometric mean, and where 95 % of resampled draws have it
    std::optional<double> least;
    double below[std::size(ratio_limits)]{};                    ///< shares
    std::optional<double> error_mean, error_95th, error_worst;  ///< of predictions
    std::optional<double> error_bias;                           ///< mean of predicted / measured - 1
    std::optional<double> within;                               ///< share of times within their predicted interval
};

/// Of problems that are not judged: times, not ratios, in microseconds.
struct ShortFigures {
    int problems = 0;
    std::optional<double> behind_mean_us, behind_most_us;  ///< ours less the baseline's
    std::optional<double> error_bias_us, error_mean_us, error_worst_us;  ///< predicted less measured; its size
};

struct SweepReport {
    SuiteRecord record;  ///< the first, without its lines and shapes
    std::string suites;  ///< names of all
    const Operation* operation = nullptr;
    std::string mode;
    std::vector<SweepPoint> points;  ///< in the order of the file
    std::vector<SweepFigures> all;   ///< all that are judged, then each band, then each feature
    std::size_t bands = 0;           ///< of them are bands
    ShortFigures shorts;
    std::vector<LaunchFigures> launches;
    std::vector<std::size_t> worst;  ///< ten of `points` with the least ratio
    std::string predicted_by;        ///< the machine whose numbers predicted anew; empty: predictions are those of the run
};

/// Of runs together, one at least. Throws RequestError where they are of several operations, GPUs, machines or modes, or
/// where a row's problem is none of its operation's. With `machine` every plan that was measured, not the first of a problem alone, is predicted anew, by today's model and
/// these numbers; one that can no longer be planned has no prediction.
SweepReport sweep_report(std::vector<SuiteRecord> records, const std::shared_ptr<const Machine>& machine = nullptr);

/// The document `rooftile/sweep/1`; docs/schema/sweep-1.json is its JSON Schema.
Json sweep_document(const SweepReport& report);
std::string sweep_text(const SweepReport& report, const Terminal& terminal);
std::string sweep_markdown(const SweepReport& report);

}  // namespace rooftile
