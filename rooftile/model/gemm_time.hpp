// The time of a tiled GEMM as a sum of named terms: full waves, the last wave by its own load, the fill of
// the pipeline, what shows of epilogue and exchange, the launch; and the SM clock that the power limit
// leaves. NaN stands for an unknown number.
#pragma once

#include <limits>

#include "rooftile/model/bound.hpp"
#include "rooftile/model/gemm_model.hpp"

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

/// All of one tiling's terms that depend neither on the clock nor on DRAM traffic, worked out once. What it is
/// made of outlives it.
class GemmTimer {
  public:
    /// `stages` is the ring's depth.
    GemmTimer(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem,
              const StepCycles& step, const Waves& waves, int stages);
    /// With the SMs at `clock` Hz and `dram` bytes of DRAM traffic.
    GemmTime at(double clock, double dram);

  private:
    bool shows(double sharing) const;
    double beside(double sharing) const;
    double wave(double ctas, double sharing, double clock, double dram);

    const GemmHardware& hw_;
    const GemmTile& tile_;
    const StepCycles& step_;
    const Waves& waves_;
    double steps_, streamed_;     // k-steps of a tile; bytes a k-step of a CTA
    double ctas_, l2_;            // CTAs of all waves; L2 bytes a CTA and tile
    double last_, last_sharing_;  // CTAs of the last wave; on each SM
    double latency_, once_;       // cycles
    double ring_;                 // stages in flight
    GemmTime out_{};
};

/// At the SM clock of sustained matrix work. `dram` is the DRAM traffic in bytes; `stages` the ring's depth.
GemmTime gemm_time(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem,
                   const StepCycles& step, const Waves& waves, double dram, int stages);

/// The same at the clock that holds the mean power to `power.held`: every operation's energy grows with the
/// clock, so what moves fewer bytes for its FLOPs, or idles in part, runs at a higher one [M46]. Where an
/// energy is unknown: as gemm_time.
GemmTime gemm_time_under_power(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem,
                               const StepCycles& step, const Waves& waves, double dram, int stages);

/// Joules of a whole problem at the clock of sustained matrix work, by term; NaN unknown.
struct GemmEnergy {
    double matrix, fill, dram;  ///< FLOPs of whole tiles; bytes into shared memory; bytes to and from DRAM
    double sum() const { return matrix + fill + dram; }
};
GemmEnergy gemm_energy(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem,
                       const Waves& waves, double dram);

}  // namespace rooftile
