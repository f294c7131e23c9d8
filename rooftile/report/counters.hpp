// Hardware counters in documents and on a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "rooftile/gemm/measurement.hpp"
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

/// What one launch moved and how busy it kept the SMs, one line a counter; how it was counted below. Bytes
/// stand beside what the plan predicted, where it did. `rival`: the same of cuBLASLt's best, beside ours.
std::string counters_text(const CounterValues& counters, const Prediction& prediction,
                          const Terminal& terminal, const std::optional<CounterValues>& rival = {});

}  // namespace rooftile
