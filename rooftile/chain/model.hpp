// How long a chain takes in each of its forms.
#pragma once

#include <optional>

#include "kernels/chain/sm90_chain_config.hpp"
#include "rooftile/chain/hardware.hpp"
#include "rooftile/chain/plan.hpp"
#include "rooftile/chain/queue.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/tiled/registers.hpp"

namespace rooftile {

/// Instructions and special functions that an element of H takes between its two products, its rounding included.
struct ActCost {
    double instructions, exponentials;
};
ActCost act_cost(ChainAct act);

/// A time and what it is the time of; NaN: unknown.
struct ChainTime {
    double seconds = unknown_number;
    Bound bound = Bound::tensor;
    double clock_hz = unknown_number;
};

/// A product's time by its own operation, from DRAM as it is and from one that never binds.
struct ProductTime {
    double seconds = unknown_number, on_chip_seconds = unknown_number;
    double dram_bytes = unknown_number;  ///< that it was planned with
};

/// What the function's instructions take of all SMs, its special functions apart: products hardly go on beside them, and a product's own time
/// takes its epilogue's to be hidden (docs/facts.md 242, 271). 0 where a number is unknown.
double function_seconds(const ChainHardware& hw, const ChainProblem& problem);
/// Two launches, each with the bytes that the chain's traffic has for it, and the function.
ChainTime two_kernels_time(const ChainHardware& hw, const ChainProblem& problem, const ProductTime& first, const ProductTime& second, const ChainTraffic& traffic);
/// Of a tile of each product by itself, from its kernel's time.
QueueTimes queue_times(const ChainHardware& hw, const ChainProblem& problem, const ChainConfig& config, const ProductTime& first, const ProductTime& second);
/// That configuration's queue, DRAM apart.
QueueRun queue_run(const ChainHardware& hw, const ChainProblem& problem, const ChainConfig& config, const ProductTime& first, const ProductTime& second);
/// One launch: both products' tiles from one queue, or all of the traffic. `run`: of that queue.
ChainTime persistent_time(const ChainHardware& hw, const ChainProblem& problem, const ChainConfig& config, const ProductTime& first, const ProductTime& second,
                          const ChainTraffic& traffic, const QueueRun& run);
ChainTime persistent_time(const ChainHardware& hw, const ChainProblem& problem, const ChainConfig& config, const ProductTime& first, const ProductTime& second,
                          const ChainTraffic& traffic);

/// What a block of form on_chip takes of a CTA's units, in cycles.
struct ChainBlock {
    double tensor, special, issue;  ///< products; special functions; what else is issued for the function
    double together;                ///< of those three: only special functions run beside products
    double shared, port, l2;
    double all = 0;
    Bound bound = Bound::tensor;
};
ChainBlock chain_block(const ChainHardware& hw, const ChainProblem& problem, const ChainTile& tile);
struct OnChipTime {
    ChainBlock block;
    double tiles = 0, blocks = 0;  ///< of all; of a tile
    double turn = 0;               ///< cycles of a tile beside its blocks
    double filled_bytes = 0, shared_read_bytes = 0, matrix_flops = 0;
    ChainTime time;
};
OnChipTime on_chip_time(const ChainHardware& hw, const ChainProblem& problem, const ChainTile& tile, double dram_bytes);

/// The kernel's template parameter.
Sm90ChainConfig kernel_config(const ChainProblem& problem, const ChainTile& tile);
/// Registers of a consumer thread that a tile needs.
int registers_needed(const ChainProblem& problem, const ChainTile& tile);
/// Why a tile cannot be had; empty: it can. Unknown numbers bind nothing.
struct ChainWall {
    Reason reason = Reason::registers;
    double needed = 0, available = 0;
};
std::optional<ChainWall> wall_of(const ChainHardware& hw, const ChainProblem& problem, const ChainTile& tile);

}  // namespace rooftile
