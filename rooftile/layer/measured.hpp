// What running a layer gave: each kernel's time and its prediction, the layer's own, how far its results are from fp64, and what PyTorch
// takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/measured.hpp"
#include "rooftile/layer/report.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// No element is further off than so many times the bound of its row: of 1e10 elements of a normal law one is at 6.5 deviations.
inline constexpr double layer_element_factor = 8;

/// How far a result is from the one that nobody rounded.
struct LayerError {
    std::string tensor;
    double row = 0;             ///< the worst row's: root mean square of its errors over that of the row
    double element = 0;         ///< the worst element's, over the root mean square of its row
    double all = 0;             ///< of all rows together
    double bound = 0;           ///< of `row`
    std::uint64_t changed = 0;  ///< elements of a cache that are none of this step's and were written
    /// False too where a figure is NaN: a reference of zeros says nothing.
    bool ok() const { return row <= bound && element <= layer_element_factor * bound && all <= bound && changed == 0; }
};

struct LayerKernelTime {
    std::string name;
    std::string plan;  ///< that ran, in a few words
    std::optional<double> predicted_us{}, least_us{};  ///< predicted_us: with the gaps of its launches in a graph, as it is measured
    std::optional<MedianInterval> measured_us{};  ///< by itself, launched over all sets again and again
    std::optional<CounterValues> counters{};      ///< of one such launch
};

/// Another program's way of the same layer.
struct LayerBaseline {
    std::string name;
    std::optional<double> time_us{};
    std::string absent{};  ///< why it has no time
};

struct MeasuredLayer {
    LayerModel model;
    std::int64_t layer = 0;  ///< of the model's
    LayerStep step;
    std::int64_t sets = 0, set_bytes = 0;  ///< layers in the graph, and weights and caches of one
    std::vector<LayerKernelTime> kernels;
    std::vector<LayerError> errors;            ///< of the last layer of the graph
    std::optional<MedianInterval> layer_us{};  ///< of the graph's time, one layer's share
    std::optional<CounterValues> counters{};   ///< of one layer's launches together
    std::optional<bool> same_bits{};           ///< after timing and counting, as when it was verified
    std::string baseline_program{};            ///< "PyTorch 2.9"; empty: none ran
    std::vector<LayerBaseline> baselines{};
    std::vector<std::string> notes{};

    bool right() const;
    /// Sums; empty where a kernel lacks its own.
    std::optional<double> sum_us() const;
    std::optional<double> predicted_us() const;
    std::optional<double> least_us() const;
    std::optional<double> dram_bytes() const;  ///< of the kernels by themselves, as counted
    const LayerBaseline* best_baseline() const;
};

/// `rooftile/layer/1` of a layer that ran: its one cell has what was measured with what is predicted by the planner, which knows it
/// already where it is the one that measure_layer() was given.
Json measured_layer_document(const DocumentContext& context, const MeasuredLayer& layer,
                             LayerPlanner& planner);
std::string measured_layer_text(const DocumentContext& context, const MeasuredLayer& layer, const Terminal& terminal);

}  // namespace rooftile
