// Hardware counters in documents and on a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "rooftile/core/measured.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// One value of CounterValues under its key in a document, which names its unit.
struct CounterField {
    const char* key;
    const char*
        unit;  ///< "B", "cycles", "", "share", "us", "MHz"; whole numbers where it is one of the first three
    std::optional<double> CounterValues::*value;
    const char* meaning;  ///< a few words for a terminal
};
/// All of them, in the order in which they are shown.
std::span<const CounterField> counter_fields();

/// What the plan said of those that have a prediction.
struct PredictedTraffic {
    std::optional<std::int64_t> dram_bytes, l2_bytes;
};
/// What was counted beside it.
struct CountedBaseline {
    std::string name;  ///< heading of its column
    std::optional<CounterValues> values;
};

/// What one launch moved and how busy it kept the SMs, one line a counter; how it was counted below. Bytes
/// stand beside what the plan predicted, where it did. `baseline`: the same of what ran beside ours.
std::string counters_text(const CounterValues& counters, const PredictedTraffic& predicted,
                          const Terminal& terminal, const CountedBaseline& baseline = {});

}  // namespace rooftile
