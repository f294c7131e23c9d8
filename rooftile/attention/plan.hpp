// A plan for one attention kernel: every parameter, what it uses, what it is predicted to take, and why.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/attention/problem.hpp"
#include "rooftile/core/bound.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Every choice; knobs.def says what each is.
struct AttentionConfig {
#define ROOFTILE_KNOB(TYPE, NAME, PRESET, ...) TYPE NAME = PRESET;
#include "rooftile/attention/knobs.def"
#undef ROOFTILE_KNOB

    static constexpr int warpgroup_q = 64;
    int consumer_warpgroups() const { return tile_q / warpgroup_q; }
    friend bool operator==(const AttentionConfig&, const AttentionConfig&) = default;
};

/// Padding on chip: k-steps of the product of queries and keys, widths of the one with values.
constexpr std::int64_t padded_to(std::int64_t elements, std::int64_t step) { return (elements + step - 1) / step * step; }
inline constexpr std::int64_t key_product_step = 16, value_product_step = 32;

/// "sm90_attention".
std::string_view kernel_name(const AttentionProblem& problem);

/// What lies in a launch's workspace beside the counter of tiles, where keys are split: bytes of the counters of parts, and of the parts' sums.
struct SplitBytes {
    std::int64_t arrived = 0, partials = 0;
};

struct AttentionResources {
    std::optional<std::int64_t> threads, accumulator_registers, producer_registers, consumer_registers, stages_max,
        stage_bytes, shared_bytes;
    int ctas_per_sm = 1;
};

struct AttentionPrediction {
    std::optional<double> time_us, tflops, clock_mhz;
    std::optional<Bound> bound;
    std::optional<double> overlap_ceiling;   ///< (t_mma + t_exp) / max of both [M38]
    std::optional<double> overlap_gain;      ///< (t_mma + t_exp) / predicted time of a block: what of the ceiling is had
    std::optional<double> tensor_cycles, exponential_cycles, block_cycles;  ///< of a block and CTA
    std::optional<double> balance;           ///< mean work of an SM over that of the last to end
    std::optional<std::int64_t> tiles, blocks;  ///< of all heads; blocks of keys that they go through
    std::optional<std::int64_t> dram_bytes, dram_lower_bound_bytes, l2_bytes;
    std::optional<std::int64_t> unfused_moved_bytes;  ///< of a product, a softmax and a product as three kernels
};

struct AttentionPlan {
    int rank = 0;
    bool buildable = false;
    std::string why_not;
    std::string arch;  ///< "sm_90"
    AttentionProblem problem;
    AttentionConfig config;
    /// What a rule leaves out lost where it was measured, as no term of the model tells. Where a request fixes it, it is told no sooner than the best
    /// that the search takes: so many times the model's own seconds. 1 of all others.
    double held_back = 1;
    AttentionResources resources;
    AttentionPrediction prediction;
    Steps derivation;
    std::vector<std::string> unknown;
};

struct AttentionPlans {
    std::string machine_id, machine_name;
    AttentionProblem problem;
    std::vector<AttentionPlan> plans;  ///< best first
    Rejected rejected;
    std::vector<std::string> unknown, unchecked_constraints, notes;
};

/// The request is right but no kernel computes it.
struct AttentionInfeasible {
    Reason reason = Reason::instruction;
    std::string message;
    std::optional<double> needed, available;
    std::string machine_id, machine_name;
    AttentionProblem problem;
    Rejected rejected;
    std::vector<std::string> unknown, notes;
};

/// What the caller fixes; the rest is searched.
struct AttentionRequest {
#define ROOFTILE_KNOB(TYPE, NAME, ...) std::optional<TYPE> NAME{};
#include "rooftile/attention/knobs.def"
#undef ROOFTILE_KNOB
    std::optional<int> consumer_warpgroups{};  ///< 64 queries of a tile each
    int top = 8;
    bool exhaustive = false;  ///< search also what rules leave out
};

/// Derives the kernel's parameters [M19, M36, M38]. Never throws for an unknown number.
std::variant<AttentionPlans, AttentionInfeasible> derive(std::shared_ptr<const Machine> machine,
                                                         const AttentionProblem& problem,
                                                         const AttentionRequest& request = {});

}  // namespace rooftile
