// The SM clock that the power limit leaves [M46].
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {

/// What a machine's power lets matrix kernels do. NaN: unknown; where one but shared_read_joules is, the sustained clock holds.
struct MatrixPower {
    double sustained_hz = unknown_number;  ///< SM clock under sustained matrix work; energies are of this clock
    double top_hz = unknown_number;        ///< SM clock where power does not bind
    double sustained_watts = unknown_number, static_watts = unknown_number;
    double flop_joules = unknown_number, fill_joules = unknown_number, dram_joules = unknown_number;
    double shared_read_joules = 0;  ///< of operands read from shared memory; unknown: not charged
    double energy_exponent = unknown_number;
};

/// Joules of a launch at the clock of sustained matrix work, by term; NaN unknown.
struct MatrixEnergy {
    double matrix, fill, dram;  ///< FLOPs; bytes into shared memory; bytes to and from DRAM
    double shared_read;         ///< operands that instructions read from shared memory
    double sum() const { return matrix + fill + dram + shared_read; }
};

/// What the power limit leaves of the clock. At c times the clock of sustained matrix work its joules J, at that
/// clock, take J c^x / room seconds at least, and more at a higher clock; its time is no less at a lower one.
class PowerLimit {
  public:
    explicit PowerLimit(const MatrixPower& power)
        : PowerLimit(power.sustained_hz, power.top_hz,
                     power.flop_joules + power.fill_joules + power.dram_joules < INFINITY ? power.sustained_watts : unknown_number,
                     power.static_watts, power.energy_exponent) {}
    /// Of joules that are known at `stated_hz`.
    PowerLimit(double stated_hz, double top_hz, double sustained_watts, double static_watts, double exponent)
        : clock_hz_(stated_hz),
          top_hz_(top_hz),
          static_(static_watts),
          room_(sustained_watts - static_watts),
          exponent_(exponent),
          log_top_(std::log(top_hz / stated_hz)),
          at_top_(std::exp(log_top_ * exponent)) {
        if (std::isnan(at_top_) || !(room_ > 0)) room_ = unknown_number;
    }

    /// The highest clock, in Hz, at which so many `joules` do not by themselves take more than `reach` seconds:
    /// under power work takes at most `reach` exactly where it does at this clock. Where an energy is unknown:
    /// that of sustained matrix work.
    double clock(double reach, double joules) const {
        if (std::isnan(room_ + joules)) return clock_hz_;
        const double room = room_ * reach;  // J
        return room >= joules * at_top_ ? top_hz_ : clock_hz_ * std::pow(room / joules, 1 / exponent_);
    }

    struct Held {
        double clock_hz;
        double watts = unknown_number;  ///< mean power
    };
    /// The clock that holds the mean power to the limit, of work that takes `joules` at the clock of sustained matrix work and
    /// seconds_at(Hz) at another; the last call of seconds_at is with that clock. Where an energy is unknown: that of sustained
    /// matrix work. Where the time is more than `limit` seconds, any clock between the two.
    template <class SecondsAt>
    Held held(double joules, SecondsAt seconds_at, double limit = std::numeric_limits<double>::infinity()) const {
        constexpr double rounding = 1 - 1e-9;  // what is added up in another order may round up by less
        Held held{clock(limit, joules)};
        double seconds = seconds_at(held.clock_hz);
        if (std::isnan(room_ + joules) || seconds * rounding > limit) return held;
        // From the top, whatever the limit: the same work always comes to the same bits, and ties stay ties.
        if (held.clock_hz < top_hz_) seconds = seconds_at(held.clock_hz = top_hz_);
        // Power grows with the clock by its own exponent and by the shorter time: first as if all of the time went
        // with the clock, then as the last two times did. Two or three steps do; where neither answers to the clock,
        // halving. In logarithms of ratios:
        constexpr int max_steps = 60;
        constexpr double close = 1e-6, furthest = 1;
        const double work = std::log(joules / room_);
        double faster = log_top_, longer = std::log(seconds);  // clock, time
        double stretch = 1;                                    // -d longer / d faster
        double kept = -std::numeric_limits<double>::infinity(), beyond = log_top_;
        for (int i = 0;; ++i) {
            const double over = work + exponent_ * faster - longer;
            held.watts = static_ + room_ * std::exp(std::min(0.0, over));
            // So that the clock is as close, however little power answers to it.
            const double enough = close * std::min(1.0, exponent_ + stretch);
            if ((over <= 0 && faster == log_top_) || !(std::abs(over) >= enough) || i == max_steps) return held;
            (over > 0 ? beyond : kept) = faster;
            double next = std::max(faster - over / (exponent_ + stretch), faster - furthest);
            if (!(next > kept && next < beyond)) next = (kept + beyond) / 2;
            seconds = seconds_at(held.clock_hz = clock_hz_ * std::exp(next));
            const double longer_before = std::exchange(longer, std::log(seconds));
            stretch = std::clamp((longer - longer_before) / (faster - next), 0.0, 1.0);
            faster = next;
        }
    }
    double top_hz() const { return top_hz_; }

  private:
    double clock_hz_, top_hz_;
    double static_, room_;  // W; room NaN: an energy is unknown
    double exponent_;       // x
    double log_top_;        // of the top clock, to that of sustained matrix work
    double at_top_;         // J there, of each at the clock of sustained matrix work
};

}  // namespace rooftile
