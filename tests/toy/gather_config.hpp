// What the toy's planner, launch and kernel share. No includes of the host's: NVRTC compiles this file too.
#pragma once

#include "kernels/matrix/matrix_arguments.hpp"
#include "kernels/matrix/matrix_config.hpp"

namespace rooftile {

struct GatherArguments {
    MatrixArguments matrix;
    const float* a;   ///< dense; its rows begin at multiples of 16 bytes
    const int* rows;  ///< of A, one for each of C's
};

constexpr MatrixConfig gather_config(int tile_m, int tile_n, int stages) {
    return {.tile_m = tile_m, .tile_n = tile_n, .tile_k = 64, .stages = stages, .consumer_warpgroups = tile_m / 64,
            .schedule = Schedule::cooperative, .cluster_m = 1, .cluster_n = 1, .ctas_per_sm = 1, .producer_registers = 0,
            .consumer_registers = 0, .type = Type::bf16, .a_major = Major::k, .b_major = Major::k, .tma_store = true};
}

}  // namespace rooftile
