// Y = act(X W1^T) W2^T, or X more, on Hopper, H = act(X W1^T) never leaving registers: bf16 or fp16, fp32 sums.
//
// kernels/matrix/back_to_back.cuh has the roles: A is X, B are rows of W1, E columns of W2, and what is between the products is the
// function. A block is tile_ff columns of H. A function overlaps with products by waiting and special functions alone: additions and
// products of fp32 take from the tensor core what they get of registers (docs/facts.md 271).
//
// All CTAs stream the same W1 and W2. A tile begins at a block of its own and goes round, so that they do not ask the same few lines of L2
// at once; a tile's sums have one order wherever it runs.
//
// Where all of W1 and W2 fit beside X (`resident`) a CTA brings them once and keeps them for all its tiles, and its warpgroups drift
// apart as far as X's stages let them: one stores Y while others multiply.
//
// Of swiglu a block has tile_ff rows of gates and as many of ups, and H = silu(gate) * up.
#pragma once

#include "kernels/chain/chain_arguments.hpp"
#include "kernels/chain/sm90_chain_config.hpp"
#include "kernels/expression/math.cuh"
#include "kernels/matrix/back_to_back.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/tma.cuh"

namespace rooftile {

template <Sm90ChainConfig C>
__device__ int chain_blocks(const ChainArguments& args) {
    return (args.ff + C.tile_ff - 1) / C.tile_ff;
}

/// What the producer brings. A tile begins at a block of its own and goes round.
template <Sm90ChainConfig C>
struct ChainLoads {
    const TensorMap &map_x, &map_w1, &map_w2;
    const ChainArguments& args;

    struct Tile {
        int row = 0;
        int first = 0, count = 0;  ///< blocks
        __device__ int block(int i) const { return first + i < count ? first + i : first + i - count; }
    };
    __device__ unsigned tiles() const { return static_cast<unsigned>((args.m + C.tile_m - 1) / C.tile_m); }
    __device__ unsigned* counter() const { return args.counter; }
    __device__ Tile tile(unsigned number) const {
        const int count = chain_blocks<C>(args);
        return {static_cast<int>(number) * C.tile_m, static_cast<int>(number % static_cast<unsigned>(count)), count};
    }
    __device__ bool any(const Tile&) const { return true; }
    __device__ int blocks(const Tile&) const { return chain_blocks<C>(args); }
    __device__ void tell(unsigned shared, unsigned number, const Tile&) const { ptx::store_shared(shared, number); }
    __device__ void load_a(const Tile& tile, unsigned shared, unsigned barrier) const {
#pragma unroll
        for (int i = 0; i < C.boxes(C.d); ++i)
            ptx::tma_load_2d(shared + i * C.box_bytes(C.tile_m), map_x, i * C.box_elements, tile.row, barrier);
    }
    __device__ void load_b(const Tile& tile, int i, unsigned shared, unsigned barrier) const {
#pragma unroll
        for (int product = 0; product < C.hidden_products(); ++product)
#pragma unroll
            for (int box = 0; box < C.boxes(C.d); ++box)
                ptx::tma_load_3d(shared + (product * C.boxes(C.d) + box) * C.box_bytes(C.tile_ff), map_w1, box * C.box_elements,
                                 tile.block(i) * C.tile_ff, product, barrier);
    }
    __device__ void load_e(const Tile& tile, int i, unsigned shared, unsigned barrier) const {
        const int block = tile.block(i);
#pragma unroll
        for (int box = 0; box < C.boxes(C.tile_ff); ++box)
            ptx::tma_load_2d(shared + box * C.box_bytes(C.d), map_w2, block * C.tile_ff + box * C.box_elements, 0, barrier);
    }
};

/// The function of an element; its result is rounded to 16 bits.
template <Sm90ChainConfig C>
__device__ float chain_act(float x) {
    if constexpr (C.act == ChainFunction::gelu) return expression::gelu_16<C.type>(x);
    else if constexpr (C.act == ChainFunction::relu) return expression::relu(x);
    else return expression::silu(x);
}

/// H of a block in place of its sums, in fp32: what a wgmma reads may not be written while another one runs.
template <Sm90ChainConfig C, int products>
__device__ void make_hidden(float (&sums)[products][C.tile_ff / 2]) {
    unsigned all = 0xffffffffu;
#pragma unroll
    for (int i = 0; i < C.tile_ff / 2; ++i) {
        sums[0][i] = chain_act<C>(sums[0][i]);
        if constexpr (products == 2) sums[0][i] *= sums[1][i];
        all &= __float_as_uint(sums[0][i]);
    }
    // Nothing behind this begins before all of H is there: ptxas knows no order between arithmetic and the wait for a product, and would
    // wait first, but it moves nothing over a branch. All bits are set where every element is a NaN: a moment's sleep does no harm.
    if (__any_sync(0xffffffffu, all == 0xffffffffu)) ptx::pause();
}

/// The residual of this thread's sums, two elements a word, all on their way at once: beside the tile's last product.
template <Sm90ChainConfig C>
__device__ void load_residual(unsigned (&words)[C.d / 4], const ChainArguments& args, long long row) {
    const int lane4 = static_cast<int>(threadIdx.x % 4);
#pragma unroll
    for (int i = 0; i < C.d / 4; ++i) {
        const long long at = row + 8 * (i % 2);
        const int column = i / 2 * 8 + 2 * lane4;
        words[i] = 0;
        if (at < args.m && column < args.d)
            words[i] = *reinterpret_cast<const unsigned*>(static_cast<const char*>(args.x) + C.element_bytes * (at * args.d + column));
    }
}
template <Sm90ChainConfig C>
__device__ void add_residual(float (&sums)[C.d / 2], const unsigned (&words)[C.d / 4]) {
#pragma unroll
    for (int i = 0; i < C.d / 4; ++i) {
        sums[2 * i] += ptx::widen<C.type>(words[i] & 0xffffu);
        sums[2 * i + 1] += ptx::widen_upper<C.type>(words[i]);
    }
}

/// The function between the products of a consumer warpgroup, and the way out of Y.
template <Sm90ChainConfig C>
struct FunctionBetween {
    const ChainArguments& args;
    int warpgroup;
    int row = warpgroup * C.warpgroup_m + FragmentPlace{}.row;

    static constexpr bool may_be_empty = false;

    struct Tile {
        long long upper;  ///< the thread's upper row
        unsigned residual[C.residual ? C.d / 4 : 1];
    };
    __device__ Tile begin(unsigned number, unsigned) const {
        Tile tile;
        tile.upper = static_cast<long long>(number) * C.tile_m + row;
        return tile;
    }
    __device__ int blocks(const Tile&) const { return chain_blocks<C>(args); }
    template <bool, int products>
    __device__ void apply(Tile&, float (&hidden)[products][C.tile_ff / 2], int) const {
        make_hidden<C, products>(hidden);
    }
    __device__ void added(Tile&, const float (&)[C.d / 2], int) const {}
    __device__ void rescale(Tile&, float (&)[C.d / 2]) const {}
    __device__ void beside_last(Tile& tile) const {
        if constexpr (C.residual) load_residual<C>(tile.residual, args, tile.upper);
    }
    __device__ void finish(Tile& tile, float (&sums)[C.d / 2], unsigned, unsigned) const {
        if constexpr (C.residual) add_residual<C>(sums, tile.residual);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const long long at = tile.upper + 8 * half;
            const bool inside = at < args.m;
            store_row<C.type>(sums, half, 1.0f, static_cast<char*>(args.y) + C.element_bytes * at * args.d, args.d, inside);
        }
    }
};

template <Sm90ChainConfig C>
__global__ void __launch_bounds__(C.threads(), 1)
    sm90_chain(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w1,
               const __grid_constant__ TensorMap map_w2, const __grid_constant__ ChainArguments args) {
    extern __shared__ __align__(Sm90ChainConfig::tile_alignment) unsigned char memory[];
    run_back_to_back<C.shape()>(ptx::shared_address(memory), ChainLoads<C>{map_x, map_w1, map_w2, args},
                                [&](int warpgroup) { return FunctionBetween<C>{args, warpgroup}; });
}

}  // namespace rooftile
