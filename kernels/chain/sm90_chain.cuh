// Y = act(X W1^T) W2^T, or X more, on Hopper, H = act(X W1^T) never leaving registers: bf16 or fp16, fp32 sums.
//
// One CTA has a producer warpgroup and tile_m / 64 consumer warpgroups, each with 64 rows of a tile. The producer's one thread
// brings the tile's X once and then, block of H's columns after block, rows of W1 and columns of W2 through two rings of `stages`.
// Of a block a consumer computes S = X W1^T, makes H of it, and adds H W2^T to Y, which stays in registers through all blocks: the
// sums of the one product lie in registers as the other wants its first operand.
//
// Two overlaps, and what they are worth. In a warpgroup the product S of the next block is issued before Y += H W2^T of this one, and the
// next block's function runs while the latter ends. Between warpgroups one's function runs beside the others' products; with `turns` they
// issue those one after the other. But additions and products of fp32 take from the tensor core what they get of registers: what
// overlaps is waiting and special functions, the rest adds up (docs/facts.md 271).
//
// The grid is persistent: who is done takes the next tile from a counter. The producer asks for it when it has started the last copy
// of a tile, some blocks before the consumers are through, and tells them beside X.
//
// All CTAs stream the same W1 and W2. A tile begins at a block of its own and goes round, so that they do not ask the same few lines of L2
// at once; a tile's sums have one order wherever it runs.
//
// Where all of W1 and W2 fit beside X (`resident`) a CTA brings them once and keeps them for all its tiles, and its warpgroups drift apart as
// far as X's stages let them: one stores Y while others multiply.
//
// Of swiglu a block has tile_ff rows of gates and as many of ups, and H = silu(gate) * up.
#pragma once

#include "kernels/chain/chain_arguments.hpp"
#include "kernels/chain/sm90_chain_config.hpp"
#include "kernels/expression/math.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/pipeline/roles.cuh"
#include "kernels/pipeline/scheduler.cuh"
#include "kernels/pipeline/ordered_sequence_barrier.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma_registers.cuh"

namespace rooftile {

inline constexpr int sm90_chain_turn_barrier = 1;  ///< and the next two

/// Shared memory: X, stages of W1, stages of W2, barriers. Rows of a matrix lie in boxes of 64 elements, one behind the other.
template <Sm90ChainConfig C>
struct Sm90ChainShared {
    unsigned base;
    __device__ unsigned x(int stage) const { return base + stage * C.x_bytes(); }
    __device__ unsigned w1(int stage) const { return x(C.x_stages) + stage * C.w1_bytes(); }
    __device__ unsigned w2(int stage) const { return w1(C.stages) + stage * C.w2_bytes(); }
    __device__ unsigned barriers() const { return w2(C.stages); }
    __device__ Ring<C.x_stages> x_ring() const { return {barriers()}; }
    __device__ Ring<C.stages> w1_ring() const { return {barriers() + Ring<C.x_stages>::bytes()}; }
    __device__ Ring<C.stages> w2_ring() const { return {w1_ring().barriers + Ring<C.stages>::bytes()}; }
    /// Written before X is announced, read behind the wait for it.
    __device__ unsigned tile_number(int x_stage) const { return barriers() + C.all_barrier_bytes() + x_stage * C.tile_number_bytes; }
};

template <Sm90ChainConfig C>
__device__ int chain_blocks(const ChainArguments& args) {
    return (args.ff + C.tile_ff - 1) / C.tile_ff;
}

/// The producer, one thread: a tile's X and first W1, then each next W1 before the W2 that it runs ahead of.
template <Sm90ChainConfig C>
__device__ void produce(const TensorMap& map_x, const TensorMap& map_w1, const TensorMap& map_w2, const ChainArguments& args,
                        const Sm90ChainShared<C>& shared) {
    RingPosition<C.x_stages> x_at;
    RingPosition<C.stages> w1_at, w2_at;
    const Ring<C.x_stages> x_ring = shared.x_ring();
    const auto tell = [&](unsigned number) {
        x_ring.acquire(x_at);
        ptx::store_shared(shared.tile_number(x_at.stage), number);
    };
    const auto load_w1 = [&](int block) {
        const Ring<C.stages> ring = shared.w1_ring();
        ring.acquire(w1_at);
        ring.expect(w1_at.stage, C.w1_bytes());
#pragma unroll
        for (int product = 0; product < C.hidden_products(); ++product)
#pragma unroll
            for (int i = 0; i < C.boxes(C.d); ++i)
                ptx::tma_load_3d(shared.w1(w1_at.stage) + (product * C.boxes(C.d) + i) * C.box_bytes(C.tile_ff), map_w1, i * C.box_elements,
                                 block * C.tile_ff, product, ring.full(w1_at.stage));
        w1_at.advance();
    };
    const auto load_w2 = [&](int block) {
        const Ring<C.stages> ring = shared.w2_ring();
        ring.acquire(w2_at);
        ring.expect(w2_at.stage, C.w2_bytes());
#pragma unroll
        for (int i = 0; i < C.boxes(C.tile_ff); ++i)
            ptx::tma_load_2d(shared.w2(w2_at.stage) + i * C.box_bytes(C.d), map_w2, block * C.tile_ff + i * C.box_elements, 0,
                             ring.full(w2_at.stage));
        w2_at.advance();
    };
    const int blocks = chain_blocks<C>(args);
    if constexpr (C.resident) {
        for (int block = 0; block < blocks; ++block) load_w1(block), load_w2(block);
    }
    const auto tiles = static_cast<unsigned>((args.m + C.tile_m - 1) / C.tile_m);
    ScheduleSlots<1, 1> alone;
    for (DynamicTileScheduler<1, 1> turn(alone, args.counter, tiles); turn.more(); turn.ask(), turn.advance()) {
        const int first = static_cast<int>(turn.index() % static_cast<unsigned>(blocks));
        const auto turned = [&](int block) { return first + block < blocks ? first + block : first + block - blocks; };
        if constexpr (C.x_stages == 1 && !C.resident) load_w1(first);  // before X, whose place the tile before still holds
        tell(turn.index());
        x_ring.expect(x_at.stage, C.x_bytes());
#pragma unroll
        for (int i = 0; i < C.boxes(C.d); ++i)
            ptx::tma_load_2d(shared.x(x_at.stage) + i * C.box_bytes(C.tile_m), map_x, i * C.box_elements,
                             static_cast<int>(turn.index()) * C.tile_m, x_ring.full(x_at.stage));
        x_at.advance();
        if constexpr (C.resident) continue;
        if constexpr (C.x_stages > 1) load_w1(first);
        for (int block = 1; block < blocks; ++block) {
            load_w1(turned(block));
            load_w2(turned(block - 1));
        }
        load_w2(turned(blocks - 1));
    }
    tell(no_tile);
    x_ring.commit(x_at.stage);
}

/// Of a consumer: a block of W1 or W2 is there; it is done with it. Resident ones come once, in the barriers' first phase, and stay.
template <Sm90ChainConfig C>
__device__ void wait_for_block(const Ring<C.stages>& ring, const RingPosition<C.stages>& at) {
    ring.wait(C.resident ? RingPosition<C.stages>{at.stage, 0} : at);
}
template <Sm90ChainConfig C>
__device__ void release_block(const Ring<C.stages>& ring, int stage) {
    if constexpr (!C.resident) ring.release(stage);
}

/// S = X W1^T of this warpgroup's rows and one block, issued; `product`: gates or ups.
template <Sm90ChainConfig C>
__device__ void multiply_first(float (&sums)[C.tile_ff / 2], const Sm90ChainShared<C>& shared, int warpgroup, int x_stage, int stage,
                               int product) {
    constexpr int steps_a_box = C.box_elements / 16, step_bytes = 32, eight_rows = 8 * C.swizzle_bytes;
#pragma unroll
    for (int step = 0; step < C.d / 16; ++step) {
        const unsigned within = step % steps_a_box * step_bytes;
        const int box = step / steps_a_box;
        const unsigned x = shared.x(x_stage) + box * C.box_bytes(C.tile_m) + warpgroup * C.box_bytes(C.warpgroup_m) + within;
        const unsigned w = shared.w1(stage) + (product * C.boxes(C.d) + box) * C.box_bytes(C.tile_ff) + within;
        ptx::wgmma<C.tile_ff, C.type, C.type, Major::k, Major::k>(sums, ptx::matrix_descriptor(x, 16, eight_rows),
                                                                   ptx::matrix_descriptor(w, 16, eight_rows), step > 0);
    }
}

/// Y += H W2^T of one block, issued; `adds`: 0 of the first block.
template <Sm90ChainConfig C>
__device__ void multiply_second(float (&sums)[C.d / 2], const unsigned (&pairs)[C.tile_ff / 4], const Sm90ChainShared<C>& shared, int stage,
                                int adds) {
    constexpr int steps_a_box = C.box_elements / 16, step_bytes = 32, eight_rows = 8 * C.swizzle_bytes;
#pragma unroll
    for (int step = 0; step < C.tile_ff / 16; ++step) {
        const unsigned w = shared.w2(stage) + step / steps_a_box * C.box_bytes(C.d) + step % steps_a_box * step_bytes;
        ptx::wgmma_registers<C.d, C.type, Major::k>(sums, pairs + 4 * step, ptx::matrix_descriptor(w, 16, eight_rows), step > 0 ? 1 : adds);
    }
}

template <int count>
__device__ void pin(float (&values)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) ptx::wgmma_pin(values[i]);
}

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

/// As the first operand of the next product: registers 4 s .. 4 s + 3 are columns 16 s .. 16 s + 15.
template <Type type, int count>
__device__ void narrow_pairs(unsigned (&pairs)[count / 2], const float (&values)[count]) {
#pragma unroll
    for (int i = 0; i < count / 2; ++i) pairs[i] = ptx::pack2<type>(values[2 * i], values[2 * i + 1]);
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

/// This warpgroup's rows of Y. The four threads of a row have two columns of each eight: they swap, so that each stores 16 bytes of
/// one of four such groups. `row` is the thread's upper one.
template <Sm90ChainConfig C>
__device__ void store(const float (&sums)[C.d / 2], const ChainArguments& args, long long row) {
    const int lane4 = static_cast<int>(threadIdx.x % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const long long at = row + 8 * half;
        const bool inside = at < args.m;
        char* y = static_cast<char*>(args.y) + C.element_bytes * at * args.d;
#pragma unroll
        for (int first = 0; first < C.d / 8; first += 4) {
            unsigned mine[4], whole[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                mine[i] = ptx::pack2<C.type>(sums[4 * (first + i) + 2 * half], sums[4 * (first + i) + 2 * half + 1]);
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {  // what thread lane4 ^ turn has of group lane4
                const int other = lane4 ^ turn;
                unsigned give = mine[0];
                if (other == 1) give = mine[1];
                if (other == 2) give = mine[2];
                if (other == 3) give = mine[3];
                const unsigned got = __shfl_xor_sync(0xffffffffu, give, turn);
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (other == i) whole[i] = got;
            }
            const int column = (first + lane4) * 8;
            if (inside && column < args.d)
                *reinterpret_cast<uint4*>(y + column * C.element_bytes) = make_uint4(whole[0], whole[1], whole[2], whole[3]);
        }
    }
}

/// One consumer warpgroup: its rows of every tile.
template <Sm90ChainConfig C>
__device__ void consume(const ChainArguments& args, const Sm90ChainShared<C>& shared, int warpgroup) {
    constexpr int parties = C.consumer_warpgroups(), products = C.hidden_products();
    constexpr bool in_turns = C.turns && parties > 1;
    const OrderedSequenceBarrier<parties == 1 ? 2 : parties, sm90_chain_turn_barrier> turns{warpgroup};
    const int blocks = chain_blocks<C>(args);
    const int row = warpgroup * C.warpgroup_m + static_cast<int>(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4);
    RingPosition<C.x_stages> x_at;
    RingPosition<C.stages> at;  // of W1; W2 is read one use behind
    // The turn goes round through all tiles: with two stages of X a party may be a tile ahead of another.
    if constexpr (in_turns) turns.begin();
    for (;; x_at.advance()) {
        shared.x_ring().wait(x_at);
        const unsigned number = ptx::load_shared(shared.tile_number(x_at.stage));
        if (number == no_tile) break;
        float sums[C.d / 2];
        unsigned pairs[C.tile_ff / 4];
        {
            float hidden[products][C.tile_ff / 2];
            wait_for_block<C>(shared.w1_ring(), at);
            ptx::wgmma_fence();
#pragma unroll
            for (int p = 0; p < products; ++p) multiply_first<C>(hidden[p], shared, warpgroup, x_at.stage, at.stage, p);
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
#pragma unroll
            for (int p = 0; p < products; ++p) pin(hidden[p]);
            release_block<C>(shared.w1_ring(), at.stage);
            if (blocks == 1) shared.x_ring().release(x_at.stage);
            at.advance();
            make_hidden<C, products>(hidden);
            narrow_pairs<C.type>(pairs, hidden[0]);
        }
        for (int block = 1; block < blocks; ++block) {
            float hidden[products][C.tile_ff / 2];
            const RingPosition<C.stages> w2_at = at.before();
            wait_for_block<C>(shared.w1_ring(), at);
            if constexpr (in_turns) turns.wait(false);
            ptx::wgmma_fence();
#pragma unroll
            for (int p = 0; p < products; ++p) multiply_first<C>(hidden[p], shared, warpgroup, x_at.stage, at.stage, p);
            ptx::wgmma_commit();
            wait_for_block<C>(shared.w2_ring(), w2_at);
            pin(sums);
            ptx::wgmma_fence();
            multiply_second<C>(sums, pairs, shared, w2_at.stage, block > 1);
            ptx::wgmma_commit();
            // Before the wait: ptxas moves the function over what stands behind it, and the others would wait for that too.
            if constexpr (in_turns) turns.pass();
            ptx::wgmma_wait<1>();
#pragma unroll
            for (int p = 0; p < products; ++p) pin(hidden[p]);
            release_block<C>(shared.w1_ring(), at.stage);
            if (block == blocks - 1) shared.x_ring().release(x_at.stage);  // the next tile's X comes beside what is left
            make_hidden<C, products>(hidden);
            ptx::wgmma_wait<0>();
            pin(sums);
            release_block<C>(shared.w2_ring(), w2_at.stage);
            at.advance();
            narrow_pairs<C.type>(pairs, hidden[0]);
        }
        const RingPosition<C.stages> w2_at = at.before();
        wait_for_block<C>(shared.w2_ring(), w2_at);
        pin(sums);
        ptx::wgmma_fence();
        multiply_second<C>(sums, pairs, shared, w2_at.stage, blocks > 1);
        ptx::wgmma_commit();
        const long long upper = static_cast<long long>(number) * C.tile_m + row;
        unsigned words[C.residual ? C.d / 4 : 1];
        if constexpr (C.residual) load_residual<C>(words, args, upper);
        ptx::wgmma_wait<0>();
        pin(sums);
        release_block<C>(shared.w2_ring(), w2_at.stage);
        if constexpr (C.residual) add_residual<C>(sums, words);
        store<C>(sums, args, upper);
    }
    if constexpr (in_turns) turns.end();
}

template <Sm90ChainConfig C>
__global__ void __launch_bounds__(C.threads(), 1)
    sm90_chain(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w1,
               const __grid_constant__ TensorMap map_w2, const __grid_constant__ ChainArguments args) {
    static_assert(C.tile_m % 64 == 0 && C.tile_m <= 192 && C.tile_ff % 64 == 0 && C.tile_ff <= 256, "wgmma's shape; a TMA box");
    static_assert(C.d % 64 == 0 && C.d <= 256, "boxes; the widths of wgmma_registers");
    extern __shared__ __align__(Sm90ChainConfig::tile_alignment) unsigned char memory[];
    const Sm90ChainShared<C> shared{ptx::shared_address(memory)};
    if (shared.base % Sm90ChainConfig::tile_alignment != 0) __trap();
    if (threadIdx.x == 0) {
        constexpr int warps = 4 * C.consumer_warpgroups();
        shared.x_ring().init(1, warps);
        shared.w1_ring().init(1, warps);
        shared.w2_ring().init(1, warps);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    if (warpgroup() == 0) {
        if (begin_producer<C.producer_registers>()) produce<C>(map_x, map_w1, map_w2, args, shared);
    } else {
        begin_consumer<C.consumer_registers>();
        consume<C>(args, shared, warpgroup() - 1);
    }
}

}  // namespace rooftile
