// The kernel of the toy matrix operation: C[i, :] = A[rows[i], :] B^T. A is of fp32 and its rows are named by a list on the device; the load
// policy gathers them and rounds them to bf16 on their way to shared memory. Everything else is kernels/matrix/'s.
#pragma once

#include "kernels/matrix/matrix_kernel.cuh"
#include "tests/toy/gather_config.hpp"

namespace rooftile {

/// Brings a stage by all threads of the producer's warpgroup: B by TMA, A by themselves, a 16-byte chunk of a row at a time.
template <MatrixConfig C>
struct GatheredLoad {
    const TensorMap& map_b;
    const GatherArguments& args;
    const MatrixShared<C>& shared;

    static constexpr unsigned fills = 1 + 4;  ///< of the thread that asks for B, and of each warp
    static constexpr bool whole_warpgroup = true;

    template <class Scheduler>
    __device__ void operator()(const Scheduler&, int stage, const TileOrigin& at_c, int block) const {
        const unsigned full = shared.ring.full(stage);
        if (threadIdx.x == 0) {
            shared.ring.expect(stage, C.b_bytes());
            load_operand<C, C.b_major, C.tile_n, 1>(map_b, shared.b(stage), full, at_c.n, block * C.tile_k, 0, 0, 1, 1, 0);
        }
        constexpr int chunk_elements = 8, chunks = C.tile_k / chunk_elements;
        const int chunk = threadIdx.x % chunks, k = block * C.tile_k + chunk * chunk_elements;
#pragma unroll 4
        for (int row = threadIdx.x / chunks; row < C.tile_m; row += C.warpgroup_threads / chunks) {
            float x[chunk_elements] = {};  // rows beyond C's, and columns beyond A's
            if (at_c.m + row < args.matrix.m && k < args.matrix.k) {
                const float* from = args.a + static_cast<long long>(args.rows[at_c.m + row]) * args.matrix.k + k;
                *reinterpret_cast<float4*>(x) = *reinterpret_cast<const float4*>(from);
                *reinterpret_cast<float4*>(x + 4) = *reinterpret_cast<const float4*>(from + 4);
            }
            float words[chunk_elements / 2];
#pragma unroll
            for (int i = 0; i < chunk_elements / 2; ++i) words[i] = __uint_as_float(ptx::pack2<C.type>(x[2 * i], x[2 * i + 1]));
            // As TMA would leave it: a row's chunks are xored with its place among eight.
            ptx::store_shared_4(shared.a(stage) + row * C.swizzle_bytes + (chunk ^ row % 8) * 16, words);
        }
        ptx::fence_async_proxy();  // wgmma reads what ordinary stores wrote
        __syncwarp();
        if (threadIdx.x % 32 == 0) shared.ring.commit(stage);
    }
};

template <MatrixConfig C>
__global__ void __launch_bounds__(C.threads(), 1)
    toy_gather(const __grid_constant__ TensorMap map_b, const __grid_constant__ TensorMap map_c, const __grid_constant__ GatherArguments args) {
    const auto load_of = [&](const MatrixShared<C>& shared) { return GatheredLoad<C>{map_b, args, shared}; };
    run_cta<C>(load_of, map_c, {map_c, map_c, map_c, map_c, map_c}, args.matrix, NoEpilogue{});
}

}  // namespace rooftile
