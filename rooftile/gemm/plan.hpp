// A plan: every parameter of one kernel, what it will use, what it should achieve, and why.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/bound.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/gemm/problem.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

class GemmKernel;  // rooftile/gemm/kernel.hpp
std::string_view name_of(const GemmKernel* kernel);
std::string_view name_of(Schedule schedule);
std::string_view name_of(Order order);

/// The operands whose lines L2 is to drop first.
struct EvictFirst {
    bool a = false, b = false, c = false;
    friend bool operator==(const EvictFirst&, const EvictFirst&) = default;
};

/// Every choice; knobs.def says what each is. With epilogue_apart they are the product's, whose sums an expression's kernel reads.
struct GemmConfig {
    const GemmKernel* kernel = nullptr;
#define ROOFTILE_KNOB(TYPE, NAME, PRESET, ...) TYPE NAME = PRESET;
#include "rooftile/gemm/knobs.def"
#undef ROOFTILE_KNOB
    int k_parts() const { return split_k * grid_split_k; }  ///< CTAs that sum parts of K of the same tile
    friend bool operator==(const GemmConfig&, const GemmConfig&) = default;
};

struct Resources {
    std::optional<std::int64_t> threads, accumulator_registers;
    std::optional<std::int64_t> producer_registers, consumer_registers;  ///< setmaxnreg; empty: unused
    std::optional<std::int64_t> stage_bytes, stages_max, shared_bytes, ctas_per_sm;
    std::int64_t grid_ctas = 0;        ///< of a kernel whose CTAs take even shares of all k-steps; else 0, and the launch says
    std::int64_t workspace_bytes = 0;  ///< of packed operands, of sums of pieces of K, of a counter of tiles; 0: the launch takes none
};

/// Empty where an input is unknown.
struct Prediction {
    std::optional<double> time_us, tflops;
    std::optional<Bound> bound;
    std::optional<double> arithmetic_intensity;        ///< FLOP/B of a tile, M1
    std::optional<std::int64_t> tile_compute_cycles;   ///< T of one k-step, M5
    std::optional<std::int64_t> stages_min;            ///< M5, with the machine's stated latency
    std::optional<std::int64_t> stages_for_full_rate;  ///< M14, latency + T_load
    std::optional<std::int64_t> waves;
    std::optional<double> wave_efficiency;
    std::optional<std::int64_t> moved_bytes;             ///< every operand read once, the result written once
    std::optional<std::int64_t> dram_bytes;              ///< after L2, M32
    std::optional<std::int64_t> l2_bytes;                ///< what leaves L2 for the tiles, and the result
    std::optional<std::int64_t> dram_lower_bound_bytes;  ///< no schedule moves less, M33
    /// No schedule of clusters of this size asks L2 for less, and writes to it, M33.
    std::optional<std::int64_t> l2_lower_bound_bytes = {};
    /// Operands that the instructions read from shared memory, and C on its way out; no schedule moves less
    /// into and out of the registers, M33.
    std::optional<std::int64_t> shared_traffic_bytes = {}, shared_lower_bound_bytes = {};

    /// How many times the least possible is moved; empty where either is unknown.
    std::optional<double> dram_over_bound() const { return over(dram_bytes, dram_lower_bound_bytes); }
    std::optional<double> l2_over_bound() const { return over(l2_bytes, l2_lower_bound_bytes); }
    std::optional<double> shared_over_bound() const {
        return over(shared_traffic_bytes, shared_lower_bound_bytes);
    }

  private:
    static std::optional<double> over(const std::optional<std::int64_t>& moved,
                                      const std::optional<std::int64_t>& least) {
        if (!moved || !least || *least <= 0) return std::nullopt;
        return double(*moved) / double(*least);
    }
};

struct GemmPlan {
    int rank = 0;
    bool buildable = false;
    std::string why_not;  ///< where not buildable
    std::string arch;     ///< of the machine: "sm_90"; empty where it names none
    GemmProblem problem;  ///< that the kernel computes: a batch that is one product as that product
    GemmConfig config;
    Resources resources;
    Prediction prediction;
    Steps derivation;
    std::vector<std::string> unknown;  ///< keys of the machine that this plan lacked
};

/// The kept plans, best first.
struct Plans {
    std::string machine_id, machine_name;
    GemmProblem problem;
    std::vector<GemmPlan> plans;
    Rejected rejected;
    std::vector<std::string> unknown;          ///< machine keys nobody knows that a plan asked for
    std::vector<std::string> unchecked_constraints;  ///< constraints those unknowns left unchecked
    std::vector<std::string> notes;            ///< what a reader must know: "tcgen05 is not modelled yet"
    /// FLOP/s of the machine's fastest instruction at the rated clock, where the kernel's is a slower one.
    std::optional<double> tensor_peak = {};
};

/// The request is right but no plan fits.
struct Infeasible {
    Reason reason;
    std::string message;  ///< one line: what is needed, what there is, what to change
    double needed = 0, available = 0;
    std::string machine_id, machine_name;
    GemmProblem problem;
    Rejected rejected;
    std::vector<std::string> unknown{}, unchecked_constraints{}, notes{};  ///< as in Plans
};

inline constexpr int max_gemm_plans = 64;  ///< that are kept

/// What the caller fixes; the rest is searched, or chosen by a rule.
struct GemmRequest {
    const GemmKernel* kernel = nullptr;  ///< null: the first of kernels.def that the machine runs
#define ROOFTILE_KNOB(TYPE, NAME, ...) std::optional<TYPE> NAME{};
#include "rooftile/gemm/knobs.def"
#undef ROOFTILE_KNOB
    int top = 8;                              ///< plans to keep
    bool buildable_only = false;              ///< leave out what no kernel can be compiled for yet
    /// Choose the order of tiles by a simulated L2 (milliseconds), not by a formula (nothing).
    bool simulate = true;
    bool exhaustive = false;  ///< search also what rules leave out (gemm/rules.hpp)
};

/// Derives every parameter of a GEMM kernel for `machine` [M1-M17, M29]. Never throws for an unknown
/// number: what needs it is empty and named in `unknown`.
std::variant<Plans, Infeasible> derive(const Machine& machine, const GemmProblem& problem,
                                       const GemmRequest& request = {});
/// The same without a copy of the machine, which the plans share: their derivations are written from it.
std::variant<Plans, Infeasible> derive(std::shared_ptr<const Machine> machine, const GemmProblem& problem,
                                       const GemmRequest& request = {});

}  // namespace rooftile
