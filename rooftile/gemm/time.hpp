// The time of a tiled GEMM as a sum of named terms: full waves, the last wave by its own load, the fill of
// the pipeline, what shows of epilogue and exchange, the launch; and the SM clock that the power limit
// leaves. NaN stands for an unknown number.
#pragma once

#include <algorithm>
#include <limits>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/bound.hpp"
#include "rooftile/gemm/model.hpp"
#include "rooftile/tiled/power.hpp"

namespace rooftile {

struct GemmTime {
    double seconds;      ///< NaN where a number it needs is unknown; the launch is left out where only it is
    double least;        ///< seconds from what is known, for ranking alone; NaN without SMs or clock
    double step;         ///< cycles of the steady k-step with all SMs at work, the slowest resource
    double tile_cycles;  ///< one tile's part of K, exchange, turn and epilogue included as far as they show
    double exchange;     ///< cycles of it in which parts of K add up; NaN unknown
    double epilogue;     ///< cycles of one tile's store, whether it shows or not
    double clock_hz;     ///< of the SMs, as predicted
    double watts = std::numeric_limits<double>::quiet_NaN();  ///< mean power; NaN unknown
    Bound bound;
};

/// All of one tiling's terms that depend neither on the clock nor on DRAM traffic, worked out once. What it
/// is made of outlives it.
class GemmTimer {
  public:
    /// `stages` is the ring's depth.
    GemmTimer(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem,
              const StepCycles& step, const Waves& waves, int stages);
    /// With the SMs at `clock` Hz and `dram` bytes of DRAM traffic. Where that is NaN, no time but `least`
    /// is known, by every operand moved once.
    GemmTime at(double clock, double dram);

    /// From here on: in an order that asks `l2` cycles of a k-step of L2's bandwidth, for what `step` said.
    void set_l2(double l2);
    /// From here on: the ring is full from the start, and clusters need not synchronise.
    void leave_out_fill();
    /// From here on: parts of K need not synchronise.
    void leave_out_exchange() { out_.exchange = 0; }
    /// From here on: nothing is copied into shared memory, and DRAM traffic is C alone.
    void leave_out_loads();
    /// From here on: C stays where it was summed, and DRAM traffic is of A and B alone.
    void leave_out_store();

  private:
    void sum_once();
    bool shows(double sharing) const;
    double beside(double sharing) const;
    void set_step(double ctas, double sharing);
    double wave(double ctas, double sharing, double clock, double dram);
    double with_fill(double steady, double dram_seconds, double clock) const;

    const GemmHardware& hw_;
    const GemmCandidate& tile_;
    const GemmProblem& problem_;
    const StepCycles& step_;
    const Waves& waves_;
    double steps_, streamed_;     // k-steps of a tile; cycles a k-step waits for DRAM
    double ctas_;                 // of all waves
    double l2_;                   // cycles of a k-step at L2's bandwidth, all SMs pulling
    double last_, last_sharing_;  // CTAs of the last wave; on each SM
    double loaded_, result_;      // bytes of a CTA and tile: it asks for itself; of C
    double read_once_ = 0;        // the same, of what an epilogue reads
    double issued_ = 0;           // cycles of a tile in which an expression's instructions keep the matrix units from their sums
    double crossing_;             // share of what DRAM delivers that passes L2 once more
    double dram_byte_, l2_byte_, store_byte_;  // seconds of the whole GPU
    double operands_;             // of those loaded, every operand once: what DRAM delivers at least
    double reads_ = 0;            // what it does
    double crossed_ = 0;          // what passes L2
    double latency_, l2_latency_, cluster_syncs_, once_;  // cycles
    double idle_latency_;                            // of loads that fill the ring where DRAM is idle
    double counting_;                                // the same, of groups
    double apart_ = 0;                               // cycles of a tile: turn and, where it shows, store
    double fills_;                                   // times that the ring begins empty
    double stages_;                                  // of the ring
    double scale_ = 1;                               // clock / hw.clock_hz
    double taken_turns_ =
        0;              // cycles that a warpgroup's store takes beside the other's products; 0: no turns
    double alone_ = 0;  // cycles of a step of one CTA while no other multiplies on its SM
    double on_sm_ = 0;  // of its instructions and of shared memory, the longer
    Bound on_sm_bound_ = Bound::tensor;
    Bound step_bound_ = Bound::tensor;
    double unstreamed_share_ = 1;  // of a step: what it would take if one SM streamed as fast as it asks
    bool l2_binds_ = false;  // the step but for its latency is that of L2's bandwidth
    GemmTime out_{};
};

/// Bytes of a k-step that one CTA waits for DRAM to deliver. Of a line that several read one is the first,
/// and the rest find it in L2: so do all products of a batch but one what they share. A cluster that shares by multicast reads once. `tiles`
/// counts those of CTAs.
inline double streamed_bytes(const GemmConfig& t, const GemmProblem& p, const TileGrid& tiles) {
    const auto waited_for = [&](double extent, int sharing, std::int64_t all_readers, std::int64_t matrices) {
        return extent / sharing / double(ceil_div(all_readers, sharing)) * double(matrices) / double(p.groups ? matrices : p.batch);
    };
    // Of an image each element comes once, and is there for the other taps.
    const double lines = waited_for(min_known(t.tile_m, double(p.m)), t.cluster_n, tiles.columns, p.a_matrices()) * p.a_columns() / double(p.k)
                         + waited_for(min_known(t.tile_n, double(p.n)), t.cluster_m, std::int64_t(whole_up(rows_a_matrix(p, tiles))), p.b_matrices()) * p.b_rows() / double(p.k);
    return lines * t.tile_k * bytes_of(p.a_type);
}
/// No more CTAs than half of the SMs, none of which waits for what a peer's SM brings.
inline bool streams_alone(const GemmHardware& hw, const TileGrid& tiles, int sharing, int k_parts) {
    return sharing == 1 && 2 * tiles.count() * k_parts <= hw.sms;
}
/// Most that one CTA streams, in B/clk. NaN: no limit.
inline double streaming_rate(const GemmHardware& hw, const TileGrid& tiles, int sharing, int k_parts) {
    return streams_alone(hw, tiles, sharing, k_parts) ? max_known(hw.dram_per_sm, hw.dram_per_sm_alone)
                                             : hw.dram_per_sm;
}
/// Operands that were packed in front, and that L2 holds: the GEMM loads them from there.
inline bool held_by_l2(const GemmHardware& hw, const GemmProblem& p) { return hw.packing_seconds > 0 && p.a_bytes() + p.b_bytes() <= hw.l2_bytes; }
/// Cycles of a k-step in which one CTA waits for DRAM; NaN: no limit known.
inline double streamed_cycles(const GemmHardware& hw, const GemmConfig& t, const GemmProblem& p,
                              const TileGrid& tiles) {
    if (held_by_l2(hw, p)) return 0;
    return streamed_bytes(t, p, tiles) / streaming_rate(hw, tiles, t.cluster_m * t.cluster_n, t.k_parts());
}

/// What one CTA does for one tile, as far as the parts of K change it. NaN: unknown.
struct WorkOfParts {
    std::int64_t k_steps;
    double streamed, exchange;  ///< streamed_cycles() of a step; exchange_cycles()
    double slots;               ///< CTAs at once, at most; NaN: as many as the SMs hold
};

/// What is added up in another order than the time may round up by less than this.
inline constexpr double rounding = 1 - 1e-9;

/// Bounds times from below in a few operations: nothing but steady k-steps in whole waves on all SMs, or what
/// crosses L2, or every operand once from DRAM; the turn between tiles and the ring's fills. A search asks it first.
class GemmTimeFloor {
  public:
    GemmTimeFloor(const GemmHardware& hw, const GemmProblem& problem);
    /// From here on: with the SMs at `clock` Hz, not that of sustained matrix work.
    void run_at(double clock) {
        scale_ = clock * second_;
        cycle_ = rounding / clock;
    }
    /// What CTAs of one tile and as many an SM have in common, unknown numbers 0.
    struct Resident {
        double sharing, alone;  // CTAs an SM; 1 / them
        double ctas;            // with K in one piece
        double busy, pace;      // cycles of a k-step: its resources; at least
        double late, later;     // of its load's latency: from L2; that DRAM adds
        double once;            // k-steps that load as much as all operands
        double l2;              // of a k-step and CTA, at L2's bandwidth
        double turn, fill;      // cycles of each
    };
    Resident resident(const GemmCandidate& t, int stages) const {
        const StepCycles& step = t.step;
        const double sharing = t.ctas_per_sm, alone = t.ctas_per_sm == 1 ? 1 : 1 / sharing;
        const double ctas = t.tiles.count(),
                     in_ring = scale_ / ((stages - 1) * sharing);
        const double port = max_known(step.port, 0), l2 = max_known(step.l2, 0);
        const double busy = std::max(max_known(max_known(step.tensor, step.shared), 0), port * scale_);
        return {
            .sharing = sharing,
            .alone = alone,
            .ctas = ctas,
            .busy = busy,
            .pace = step_floor_ * alone,
            .late = (l2_latency_ + port) * in_ring,
            .later = (latency_ - l2_latency_) * in_ring,
            .once = lines_
                    / (t.tile_k * (std::min(m_, double(t.tile_m)) + std::min(n_, double(t.tile_n))) * ctas),
            .l2 = l2 * scale_ * wave_an_sm_,
            .turn = t.ctas_per_sm == 1 ? turn_ : 0,
            .fill = idle_latency_ + std::max(l2, port)};
    }
    /// No more than gemm_time()'s `least`, whatever the traffic; NaN without SMs or clock. Where it is more than
    /// `enough`, something between the two will do.
    double seconds(const Resident& r, int k_parts, const WorkOfParts& work,
                   double enough = std::numeric_limits<double>::infinity()) const {
        if (quantised_) return dram_ + launch_;
        const double ctas = r.ctas * k_parts, k_steps = double(work.k_steps);
        const double waves = std::max(ctas * wave_an_sm_ * r.alone, ctas * rounding / work.slots);
        const double full_waves = whole_up(waves);
        // Whatever the waves hold, some SM has its share of the CTAs one after the other or in turns; it is that
        // of the SMs on which their clusters find room. Where they are fewer than it holds, fewer loads fly.
        const double turns = r.sharing == 1 ? full_waves : whole_up(waves * r.sharing);
        const double busy = std::max(r.busy, work.streamed), exchange = std::max(0.0, work.exchange);
        const double turned = full_waves * r.turn, fills = (k_parts > 1 ? full_waves : 1) * r.fill;
        const double promptly = ((k_steps * busy + exchange) * turns + turned + fills) * cycle_ + launch_;
        if (promptly > enough) return promptly;
        const double fewer = turns < r.sharing ? r.sharing / turns : 1;
        const double from_dram = std::min(1.0, r.once / (k_steps * k_parts));
        const double late = (r.late + r.later * from_dram) * fewer;
        const double cycles =
            k_steps * std::max({busy, late, r.pace * fewer}) + exchange;
        const double steady = std::max(cycles * turns, k_steps * r.l2 * ctas) + turned;
        return std::max(steady * cycle_, dram_) + fills * cycle_ + launch_;
    }
    double seconds(const GemmCandidate& t, int stages) const {
        return seconds(resident(t, stages), t.k_parts(), {t.k_steps, t.streamed, t.exchange, t.slots});
    }
    /// No more than seconds() with any number of CTAs an SM and of parts into which `k_steps` are split.
    double seconds(const TileGrid& tiles, std::int64_t k_steps, const StepCycles& step) const {
        if (quantised_) return dram_ + launch_;
        const double cycles =
            max_known(max_known(step.tensor, step.shared), max_known(step.l2, step.port) * scale_);
        const double steps_an_sm = tiles.count() * double(k_steps) * wave_an_sm_;
        return (steps_an_sm * cycles + idle_latency_) * cycle_ + launch_;
    }

  private:
    double wave_an_sm_;                                // 1 / SMs
    double second_, scale_;                            // 1 / hw.clock_hz; clock / hw.clock_hz
    double cycle_, launch_, dram_;                     // seconds; dram_: every operand moved once
    double latency_, l2_latency_, idle_latency_, step_floor_, turn_;  // cycles
    double m_, n_, lines_;                             // of the problem; elements of A and B, each once
    bool quantised_;                                   // nothing but the bytes is sure: steps are shared out evenly
};

/// At the SM clock of sustained matrix work. `dram` is the DRAM traffic in bytes; `stages` the ring's depth.
GemmTime gemm_time(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem,
                   const StepCycles& step, const Waves& waves, double dram, int stages);

/// The same at the clock that holds the mean power to `power.sustained`: every operation's energy grows with the
/// clock, so what moves fewer bytes for its FLOPs, or idles in part, runs at a higher one [M46]. Where an
/// energy is unknown: as gemm_time. Where the time is more than `limit` seconds, any time between the two.
GemmTime gemm_time_under_power(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem,
                               const StepCycles& step, const Waves& waves, double dram, int stages,
                               double limit = std::numeric_limits<double>::infinity());

/// The same for any timer: of work that takes `joules` at the clock of sustained matrix work.
GemmTime under_power(const PowerLimit& limit, GemmTimer& timer, double joules, double dram,
                     double reach = std::numeric_limits<double>::infinity());

/// Lines of A and B, `bytes` of K each, that meet in products of data; that are copied into shared memory; that
/// instructions read from there.
struct OperandLines {
    double products, filled, read, bytes;
};
/// Bytes that cross from one half of L2 to the other, of `dram` bytes to and from DRAM. No cluster and no order changes their share.
double bytes_across_l2(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem, double dram);
/// Joules of `dram` bytes. What crosses L2 takes as much on the way as what goes to an SM.
double dram_energy(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem, double dram);
/// `tiles` counts those of CTAs.
OperandLines operand_lines(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem,
                           const TileGrid& tiles);
MatrixEnergy gemm_energy(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem,
                       const TileGrid& tiles, double dram);
inline MatrixEnergy gemm_energy(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem,
                              double dram) {
    return gemm_energy(hw, tile, problem, cluster_grid(problem, tile.tile_m, tile.tile_n, 1, 1), dram);
}

}  // namespace rooftile
