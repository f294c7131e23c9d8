// What a launch takes in energy, whatever the operation [M46].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// Joules of one launch at the clock as predicted; empty where an energy is unknown.
struct Energy {
    std::optional<double> matrix;              ///< J: products
    std::optional<double> instructions;        ///< J: all other instructions that the demand counts
    std::optional<double> fill, dram;          ///< J: bytes between L2 and SMs and read from shared memory, bytes of DRAM
    std::optional<double> idle;                ///< J: static power times the time
    std::optional<double> total;               ///< J
    std::optional<double> watts;               ///< mean
    std::optional<double> joules_per_tflop;    ///< of matrix FLOP
    std::vector<Input> inputs;                 ///< the machine's energies and powers
    std::vector<std::string> unknown;          ///< those of them that were missed
};

Energy energy_of(const Demand& demand, const Machine& machine, const PredictedRun& run);

}  // namespace rooftile
