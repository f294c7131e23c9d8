// What a plan asks of a GPU, as work and not as time: how long it takes depends on what runs beside it, on the clock, and on what
// L2 holds already [M1, M32, M33]. Ladders, what-if, plans inside plans and energy read it and nothing of an operation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/problem.hpp"

namespace rooftile {

/// FLOP of one family of matrix instructions ("wgmma", "mma_sync", "generic").
struct MatrixWork {
    std::string family, input, accumulate;
    double flops = 0;
};

/// Bytes of one tensor. Parts of a plan are wired by its name.
struct TensorTraffic {
    std::string tensor;
    TensorRole role = TensorRole::in;
    double footprint_bytes = 0;        ///< each element once: what is compulsory where nothing of it is in L2
    std::optional<double> dram_bytes;  ///< as planned; over the footprint: how often it comes again. Empty: unknown
};

struct Demand {
    std::vector<MatrixWork> matrix;
    double issue_slots = 0;   ///< of instructions of one lane; 0: not counted
    double exponentials = 0;  ///< of one lane, on the special function unit
    std::optional<double> shared_bytes, l2_bytes;  ///< into and out of shared memory; asked of L2
    std::optional<double> dram_bytes;              ///< of all tensors, as planned
    double filled_bytes = 0, shared_read_bytes = 0;  ///< copied into shared memory; read there by matrix instructions
    double loaded_bytes = 0;  ///< that pass L2 beside those copies: to and from registers, stored, from half to half
    std::vector<TensorTraffic> tensors;
    std::int64_t tiles = 1;   ///< pieces that may run side by side
    int launches = 1;
};

}  // namespace rooftile
