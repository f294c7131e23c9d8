// Counted traffic beside the predicted, the simulated and the least possible: how far the model of L2 can be
// trusted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/gemm/recorded_run.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/gemm/simulate_orders.hpp"

namespace rooftile {

/// One problem in one order of tiles. Bytes of one launch, read and written.
struct TrafficPair {
    GemmProblem problem;
    GemmConfig config;
    bool large = false;  ///< A and B come to 2 x L2 or more
    double counted = 0, simulated = 0;
    std::optional<double> predicted;  ///< by the plan of that configuration
    std::optional<double> bound;      ///< of DRAM
    std::optional<double> counted_l2, l2_bound;

    double error() const { return predicted.value_or(simulated) / counted - 1; }
    double simulation_error() const { return simulated / counted - 1; }
};

/// Errors over the pairs of one size, as shares.
struct TrafficErrors {
    int pairs = 0, within = 0;  ///< within: no further off than the limit
    double limit = 0;
    double mean = 0, worst = 0;                        ///< absolute, of the predicted bytes
    double simulation_mean = 0, simulation_worst = 0;  ///< the same of the simulated
};

/// The order that the planner chose for a problem's tiling beside all that can be simulated.
struct ChosenOrder {
    GemmProblem problem;
    TileOrder chosen{}, best{};
    double chosen_bytes = 0, best_bytes = 0;      ///< simulated
    std::optional<double> counted, counted_best;  ///< of the chosen order; of the best that was counted
};

struct TrafficReport {
    std::string machine_id, gpu, driver, date;
    std::vector<TrafficPair> pairs;  ///< in the order of the file
    TrafficErrors large, small;
    std::vector<ChosenOrder> orders;  ///< one a problem
    int uncounted = 0;                ///< rows without counters
};

inline constexpr double large_traffic_limit = 0.05, small_traffic_limit = 0.15, order_limit = 0.02;
inline constexpr int min_large_pairs = 30;

/// Everything but what was counted is worked out now, by the model and the numbers of `machine`. Throws
/// RequestError where a configuration does not fit it, or where it lacks L2 or SMs.
TrafficReport traffic_report(const RecordedRun& run, const Machine& machine);

std::string traffic_text(const TrafficReport& report, const Terminal& terminal);

/// One line for each bar that is missed: 30 large pairs, each within 5 %; small ones within 15 %; a chosen
/// order at most 2 % above the best simulated; nothing counted below its bound; every row counted.
std::vector<std::string> missed_traffic_bars(const TrafficReport& report);

}  // namespace rooftile
