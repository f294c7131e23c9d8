// Short kernels over sizes: what bounds each by the machine's numbers and its own machine code, and what was measured [M43]. The document
// `rooftile/units/1` (docs/schema/units-1.json).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/measure/unit_arguments.hpp"
#include "rooftile/machine/machine.hpp"
#include "rooftile/report/instruction_counts.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/prediction_error.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// A kernel's name and what it moves.
struct UnitWords {
    UnitKind kind;
    const char *id, *name, *meaning;
    double read, written;  ///< bytes for each byte of x; the weight, the vector and the sums of rows are left out
};
/// One for each kind, in their order.
const std::vector<UnitWords>& unit_words();

struct UnitCode {
    UnitKind kind = UnitKind::product;
    InstructionCounts counts;
    int registers = 0;
};

/// Customers that wait apart from each other and then take turns at servers, round after round.
struct TakenTurns {
    double round = 0;  ///< what one of them needs for a round
    double rate = 0;   ///< rounds of all of them a unit of time
};
/// Mean-value analysis of a closed queueing network: nobody is served twice at once, and who comes finds what the others leave on average.
TakenTurns take_turns(int customers, double apart, std::span<const double> services);

/// What one launch should take, us; empty where a number is unknown. `bytes`, `issue` and `special` are what all CTAs of an SM need of
/// memory, issue slots and the special function unit, which they take in turns; `latency` is what one of them waits in between.
struct UnitPrediction {
    std::optional<double> launch, store, latency, bytes, issue, special;  ///< store: the last one's way to L2
    double ctas = 1;     ///< of the SM with the most
    int in_flight = 1;   ///< of them at a time
    std::string bound;   ///< the longest of the three, or latency where too few CTAs are in flight to fill any
    std::optional<double> total() const;
};

/// `x_bytes` of x, which with all else come from DRAM, or are in L2.
UnitPrediction predicted_unit(const Machine& machine, const UnitCode& code, Type type, std::int64_t x_bytes, bool from_dram);

/// A kernel at a size.
struct UnitPoint {
    UnitKind kind = UnitKind::product;
    std::int64_t x_bytes = 0;
    bool from_dram = true;
    std::int64_t sets = 1, launches = 0;
    double time_us = 0, low_us = 0, high_us = 0;  ///< of a launch: the median of its rounds, their least and most
    double worst = 0;                             ///< the largest error over what rounding may make of it, before and after timing
    bool right = false;
    std::map<std::string, double> counters{};  ///< by unit_counters()' keys; empty: not counted
};

/// Hardware counters of a kernel: the key in documents and CUPTI's name, of every chip that has counters here.
struct UnitCounter {
    const char *key, *metric;
};
/// First busy shares, in percent, and counts; from stall_counters on, warps that wait for that reason, a cycle in which one issues.
const std::vector<UnitCounter>& unit_counters();
inline constexpr std::size_t first_stall_counter = 4;

struct UnitRun {
    Type type = Type::bf16;
    std::string chip;            ///< of the counters; empty: nothing was counted
    std::vector<UnitCode> code;  ///< one for each kind
    std::vector<UnitPoint> points;
    std::vector<std::string> notes;
};

Json unit_document(const DocumentContext& context, const Machine& machine, const UnitRun& run);
/// Throws nlohmann::json::exception where it is no such document.
std::string unit_text(const Json& document, const Terminal& terminal);

/// Of predicted / measured - 1 of the points from `least_us` on; empty: there are none.
std::optional<PredictionError> unit_error(const Json& document, double least_us);

}  // namespace rooftile
