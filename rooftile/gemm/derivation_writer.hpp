// What the sections of a GEMM's derivation share: the plan at hand, and how its numbers are named.
#pragma once

#include <fmt/core.h>

#include <cmath>

#include "rooftile/machine/query.hpp"
#include "rooftile/gemm/derivation.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/core/derivation.hpp"

namespace rooftile {

/// What every section of the derivation needs at hand.
struct DerivationWriter {
    const GemmContext& context;
    const Kept& kept;
    Derivation steps;

    const Machine& machine() const { return *context.machine; }
    const GemmProblem& problem() const { return context.problem; }
    const GemmHardware& hw() const { return context.hw; }
    const GemmCandidate& candidate() const { return kept.candidate; }
    int element() const { return bytes_of(problem().a_type); }
    double tile_flops() const { return 2.0 * candidate().tile_m * candidate().tile_n * candidate().tile_k; }
    double tile_bytes() const { return double(candidate().tile_m + candidate().tile_n) * candidate().tile_k * element(); }
    std::string rate() const { return rate_key(context.family, rate_name_of(problem().a_type), "fp32"); }
    std::string clock() const {
        const auto named = matrix_clock(machine(), rate_name_of(problem().a_type));
        return named ? named->key : "clock.boost";
    }
    std::string dram() const {
        return machine().find("dram.sustained_read") ? "dram.sustained_read" : "dram.bandwidth";
    }
    Input config(std::string name, double value) const {
        return Derivation::given(std::move(name), value, "", "this plan");
    }
    Input element_input() const {
        return Derivation::given("b", element(), "B", std::string(name_of(problem().a_type)));
    }
    /// Warpgroups add up their products in registers of their own.
    bool promotes() const { return candidate().promoting_warpgroups > 0; }
    /// Copies and fragments go through one port, in every warp.
    bool warps_share_a_port() const { return !std::isnan(hw().mma_overlap_exponent); }
    Input read_input() const {
        return Derivation::given("read", shared_step_bytes(candidate(), element()).read, "B", "A once a column, B once a row of instruction tiles");
    }
    Input step(std::string name, double value, std::string unit) const {
        return Derivation::given(std::move(name), value, std::move(unit), "an earlier step");
    }
    std::string on() const { return " on " + machine().id; }
};

/// How many blocks of K there are: of an image every tap's channels are filled up to whole ones.
inline std::string_view k_blocks_text(const GemmProblem& problem) { return problem.image_is_a() && !problem.gathered ? "taps * ceil(channels / tile_k)" : "ceil(k / tile_k)"; }

inline double min_stages_for_latency(const DerivationWriter& w) {
    return std::ceil(w.hw().dram_latency / std::ceil(w.candidate().step.tensor)) + 1;
}

/// What one SM gets from L2 with every SM pulling, in B/clk.
inline double l2_rate(const DerivationWriter& w) { return std::fmin(w.hw().l2_port, w.hw().l2_share); }

/// What the tile asks of registers, shared memory and the ring [M5-M7]; then what limits its time [M29].
void write_constraints(DerivationWriter& w);
void write_levels(DerivationWriter& w);
void write_time(DerivationWriter& w);

}  // namespace rooftile
