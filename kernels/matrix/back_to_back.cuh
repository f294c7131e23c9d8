// Two products back to back on Hopper: D = f(A B) E, where f(A B) never leaves registers. bf16 or fp16 in and out, fp32 sums.
//
// One CTA has a producer warpgroup and `rows` / 64 consumer warpgroups, each with 64 rows of a tile. The producer's one thread brings the
// tile's A once and then, block after block, B and E through two rings of `stages`. Of a block a consumer computes S = A B, makes f of it,
// and adds f(S) E to D, which stays in registers through all blocks: the accumulators of the one product lie in registers as the other
// wants its first operand.
//
// Two overlaps. In a warpgroup the product S of the next block is issued before D += f(S) E of this one, and the next block's f runs
// while the latter does. Between warpgroups (`ordered`) they issue their products one after the other, so that one's f runs beside the
// others' products.
//
// The grid is persistent: who is done takes the next tile from a counter. The producer asks for it when it has started the last copy of a
// tile, some blocks before the consumers are through, and tells them beside A.
//
// An operation gives two policies. Loads, of the producer's thread:
//   Tile                                what a tile's number stands for
//   tiles(), counter()                  how many; DynamicTileScheduler's
//   tile(number), any(tile)             any: false where no row is there, and nothing is told
//   blocks(tile)                        may be 0 where Between::may_be_empty
//   tell(shared, number, tile)          for Between::begin(); load_shared(shared) is the number
//   load_a(tile, shared, barrier), load_b and load_e(tile, i, shared, barrier): the tile's i-th block
//   prepare(), by the producer's whole warp; a_bytes(), b_bytes() and e_bytes(tile, i) of what is loaded: where they are not there, nothing and all
// Between, of a consumer warpgroup:
//   Tile, begin(number, told), blocks(tile)
//   apply<overlapped>(tile, S, i)       f of the i-th block in place of S[0]; overlapped: beside the product before it
//   clean_e(tile, shared, i)            if there: before the i-th block of E is multiplied
//   added(tile, D, i)                   the i-th block is in D
//   rescale(tile, D)                    before the next block is added
//   beside_last(tile), finish(tile, D, number, told): beside the last product; behind it: D on its way out
#pragma once

#include "kernels/matrix/back_to_back_shape.hpp"
#include "kernels/matrix/fragment.cuh"
#include "kernels/pipeline/ordered_sequence_barrier.cuh"
#include "kernels/pipeline/ring.cuh"
#include "kernels/pipeline/roles.cuh"
#include "kernels/pipeline/scheduler.cuh"
#include "kernels/ptx/wgmma_registers.cuh"

namespace rooftile {

inline constexpr int back_to_back_order_barrier = 1;  ///< and the next two

/// Shared memory: stages of A, B, E, barriers, what is told of tiles. Rows of a matrix lie in boxes of 64 elements, one behind the other.
template <BackToBackShape S>
struct BackToBackShared {
    unsigned base;
    __device__ unsigned a(int stage) const { return base + stage * S.a_bytes(); }
    __device__ unsigned b(int stage) const { return a(S.a_stages) + stage * S.b_bytes(); }
    __device__ unsigned e(int stage) const { return b(S.stages) + stage * S.e_bytes(); }
    __device__ unsigned barriers() const { return e(S.stages); }
    __device__ Ring<S.a_stages> a_ring() const { return {barriers()}; }
    __device__ Ring<S.stages> b_ring() const { return {barriers() + Ring<S.a_stages>::bytes()}; }
    __device__ Ring<S.stages> e_ring() const { return {b_ring().barriers + Ring<S.stages>::bytes()}; }
    /// Written before A is announced, read behind the wait for it. `turn`: of this CTA's tiles.
    __device__ unsigned told(int a_stage, unsigned turn) const {
        return barriers() + S.all_barrier_bytes() + (S.told_slots > S.a_stages ? turn % S.told_slots : a_stage) * S.told_bytes;
    }
};

/// The producer, one thread: a tile's A and first B, then each next B before the E that it runs ahead of.
template <BackToBackShape S, bool may_be_empty, class Loads>
__device__ void produce_back_to_back(const BackToBackShared<S>& shared, const Loads& loads) {
    using Tile = typename Loads::Tile;
    RingPosition<S.a_stages> a_at;
    RingPosition<S.stages> b_at, e_at;
    unsigned tiles_told = 0;
    const Ring<S.a_stages> a_ring = shared.a_ring();
    const auto tell = [&](unsigned number, const Tile& tile) {
        a_ring.acquire(a_at);
        loads.tell(shared.told(a_at.stage, tiles_told++), number, tile);
    };
    const auto load_b = [&](const Tile& tile, int i) {
        const Ring<S.stages> ring = shared.b_ring();
        ring.acquire(b_at);
        if constexpr (requires { loads.b_bytes(tile, i); }) ring.expect(b_at.stage, loads.b_bytes(tile, i));
        else ring.expect(b_at.stage, S.b_bytes());
        loads.load_b(tile, i, shared.b(b_at.stage), ring.full(b_at.stage));
        b_at.advance();
    };
    const auto load_e = [&](const Tile& tile, int i) {
        const Ring<S.stages> ring = shared.e_ring();
        ring.acquire(e_at);
        if constexpr (requires { loads.e_bytes(tile, i); }) ring.expect(e_at.stage, loads.e_bytes(tile, i));
        else ring.expect(e_at.stage, S.e_bytes());
        loads.load_e(tile, i, shared.e(e_at.stage), ring.full(e_at.stage));
        e_at.advance();
    };
    if constexpr (S.resident) {
        const Tile any{};
        for (int block = 0; block < loads.blocks(any); ++block) load_b(any, block), load_e(any, block);
    }
    ScheduleSlots<1, 1> alone;
    for (DynamicTileScheduler<1, 1> turn(alone, loads.counter(), loads.tiles()); turn.more(); turn.ask(), turn.advance()) {
        const Tile tile = loads.tile(turn.index());
        if (!loads.any(tile)) continue;
        const int blocks = loads.blocks(tile);
        if (may_be_empty && blocks == 0) {
            tell(turn.index(), tile);
            a_ring.commit(a_at.stage);
            a_at.advance();
            continue;
        }
        if constexpr (S.a_stages == 1 && !S.resident) load_b(tile, 0);  // before A, whose place the tile before still holds
        tell(turn.index(), tile);
        if constexpr (requires { loads.a_bytes(); }) a_ring.expect(a_at.stage, loads.a_bytes());
        else a_ring.expect(a_at.stage, S.a_bytes());
        loads.load_a(tile, shared.a(a_at.stage), a_ring.full(a_at.stage));
        a_at.advance();
        if constexpr (!S.resident) {
            if constexpr (S.a_stages > 1) load_b(tile, 0);
            for (int i = 1; i < blocks; ++i) {
                load_b(tile, i);
                load_e(tile, i - 1);
            }
            load_e(tile, blocks - 1);
        }
    }
    tell(no_tile, {});
    a_ring.commit(a_at.stage);
}

/// Of a consumer: a block of B or E is there; it is done with it. Resident ones come once, in the barriers' first phase, and stay.
template <BackToBackShape S>
__device__ void wait_for_block(const Ring<S.stages>& ring, const RingPosition<S.stages>& at) {
    ring.wait(S.resident ? RingPosition<S.stages>{at.stage, 0} : at);
}
template <BackToBackShape S>
__device__ void release_block(const Ring<S.stages>& ring, int stage) {
    if constexpr (!S.resident) ring.release(stage);
}

/// S = A B of this warpgroup's rows and one block, issued; `product`: which of B's matrices.
template <BackToBackShape S>
__device__ void multiply_first(float (&sums)[S.block / 2], const BackToBackShared<S>& shared, int warpgroup, int a_stage, int stage,
                               int product) {
    constexpr int steps_a_box = S.box_elements / 16, step_bytes = 32, eight_rows = 8 * S.swizzle_bytes;
#pragma unroll
    for (int step = 0; step < S.depth / 16; ++step) {
        const unsigned within = step % steps_a_box * step_bytes;
        const int box = step / steps_a_box;
        const unsigned a = shared.a(a_stage) + box * S.box_bytes(S.rows) + warpgroup * S.box_bytes(S.warpgroup_rows) + within;
        const unsigned b = shared.b(stage) + (product * S.boxes(S.depth) + box) * S.box_bytes(S.block) + within;
        ptx::wgmma<S.block, S.type, S.type, Major::k, Major::k>(sums, ptx::matrix_descriptor(a, 16, eight_rows),
                                                                ptx::matrix_descriptor(b, 16, eight_rows), step > 0);
    }
}

/// D += f(S) E of one block, issued; `adds`: 0 where D begins with it.
template <BackToBackShape S>
__device__ void multiply_second(float (&sums)[S.width / 2], const unsigned (&pairs)[S.block / 4], const BackToBackShared<S>& shared,
                                int stage, int adds) {
    constexpr int steps_a_box = S.box_elements / 16, step_bytes = 32, eight_rows = 8 * S.swizzle_bytes;
#pragma unroll
    for (int step = 0; step < S.block / 16; ++step) {
        constexpr bool by_rows = S.e_major == Major::mn;
        const unsigned within = by_rows ? step * 16 * S.swizzle_bytes
                                        : step / steps_a_box * S.box_bytes(S.width) + step % steps_a_box * step_bytes;
        const auto e = ptx::matrix_descriptor(shared.e(stage) + within, by_rows ? S.box_bytes(S.block) : 16, eight_rows);
        ptx::wgmma_registers<S.width, S.type, S.e_major>(sums, pairs + 4 * step, e, step > 0 ? 1 : adds);
    }
}

/// One consumer warpgroup: its rows of every tile.
template <BackToBackShape S, class Between>
__device__ void consume_back_to_back(const BackToBackShared<S>& shared, int warpgroup, const Between& between) {
    constexpr int parties = S.consumer_warpgroups();
    constexpr bool in_order = S.ordered && parties > 1, across_tiles = in_order && S.ordered_across_tiles;
    const OrderedSequenceBarrier<parties == 1 ? 2 : parties, back_to_back_order_barrier> order{warpgroup};
    RingPosition<S.a_stages> a_position;
    RingPosition<S.stages> at;  // of B; E is read one use behind
    if constexpr (across_tiles) order.begin();
    for (unsigned turn = 0;; a_position.advance(), ++turn) {
        // Where turns are counted anyway they say where A is, made anew at each use: what follows from it would fill registers through
        // the loop.
        const auto a_at = [&] {
            if constexpr (S.a_stages == 1 || S.told_slots == S.a_stages) return a_position;
            ptx::keep(turn);
            return RingPosition<S.a_stages>::of(turn);
        };
        shared.a_ring().wait(a_at());
        const unsigned told = shared.told(a_at().stage, turn), number = ptx::load_shared(told);
        if (number == no_tile) break;
        typename Between::Tile tile = between.begin(number, told);
        const int blocks = between.blocks(tile);
        float sums[S.width / 2];
        if constexpr (Between::may_be_empty) {
#pragma unroll
            for (int i = 0; i < S.width / 2; ++i) sums[i] = 0;
            if (blocks == 0) {
                __syncwarp();
                shared.a_ring().release(a_at().stage);
                between.finish_empty(tile, sums);
                continue;
            }
        }
        unsigned pairs[S.block / 4];
        {
            float inner[S.products][S.block / 2];
            wait_for_block<S>(shared.b_ring(), at);
            ptx::wgmma_fence();
#pragma unroll
            for (int p = 0; p < S.products; ++p) multiply_first<S>(inner[p], shared, warpgroup, a_at().stage, at.stage, p);
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
#pragma unroll
            for (int p = 0; p < S.products; ++p) ptx::wgmma_pin_all(inner[p]);
            release_block<S>(shared.b_ring(), at.stage);
            if (blocks == 1) shared.a_ring().release(a_at().stage);
            at.advance();
            between.template apply<false>(tile, inner, 0);
            narrow_pairs<S.type>(pairs, inner[0]);
        }
        for (int block = 1; block < blocks; ++block) {
            float inner[S.products][S.block / 2];
            const RingPosition<S.stages> e_at = at.before();
            wait_for_block<S>(shared.b_ring(), at);
            if constexpr (in_order) order.wait(!across_tiles && block == 1);
            ptx::wgmma_fence();
#pragma unroll
            for (int p = 0; p < S.products; ++p) multiply_first<S>(inner[p], shared, warpgroup, a_at().stage, at.stage, p);
            ptx::wgmma_commit();
            wait_for_block<S>(shared.e_ring(), e_at);
            if constexpr (requires { between.clean_e(tile, 0u, 0); }) between.clean_e(tile, shared.e(e_at.stage), block - 1);
            ptx::wgmma_pin_all(sums);
            ptx::wgmma_fence();
            multiply_second<S>(sums, pairs, shared, e_at.stage, Between::may_be_empty || block > 1);
            ptx::wgmma_commit();
            // Before the wait: ptxas moves f over what is behind it, and the others would wait for that too. Within a tile nobody waits
            // behind the last one.
            if constexpr (in_order)
                if (across_tiles || !(block == blocks - 1 && warpgroup == parties - 1)) order.pass();
            ptx::wgmma_wait<1>();
#pragma unroll
            for (int p = 0; p < S.products; ++p) ptx::wgmma_pin_all(inner[p]);
            release_block<S>(shared.b_ring(), at.stage);
            if (block == blocks - 1) shared.a_ring().release(a_at().stage);  // the next tile's A comes beside what is left
            between.template apply<true>(tile, inner, block);
            ptx::wgmma_wait<0>();
            ptx::wgmma_pin_all(sums);
            release_block<S>(shared.e_ring(), e_at.stage);
            at.advance();
            between.added(tile, sums, block - 1);
            narrow_pairs<S.type>(pairs, inner[0]);
            between.rescale(tile, sums);
        }
        const RingPosition<S.stages> e_at = at.before();
        wait_for_block<S>(shared.e_ring(), e_at);
        if constexpr (requires { between.clean_e(tile, 0u, 0); }) between.clean_e(tile, shared.e(e_at.stage), blocks - 1);
        ptx::wgmma_pin_all(sums);
        ptx::wgmma_fence();
        multiply_second<S>(sums, pairs, shared, e_at.stage, Between::may_be_empty || blocks > 1);
        ptx::wgmma_commit();
        between.beside_last(tile);
        ptx::wgmma_wait<0>();
        ptx::wgmma_pin_all(sums);
        release_block<S>(shared.e_ring(), e_at.stage);
        between.added(tile, sums, blocks - 1);
        between.finish(tile, sums, number, told);
    }
    if constexpr (across_tiles) order.end();
}

/// What every thread of a CTA does; `consumer(warpgroup)` makes the policy of a consumer warpgroup.
template <BackToBackShape S, class Loads, class Consumer>
__device__ void run_back_to_back(unsigned base, const Loads& loads, const Consumer& consumer) {
    static_assert(S.rows % 64 == 0 && S.rows <= 192 && S.block % 16 == 0 && S.block <= 256, "wgmma's shape; a TMA box");
    static_assert(S.depth % 16 == 0 && S.width % 32 == 0 && S.width <= 256, "k-steps; the widths of wgmma_registers");
    static_assert(S.e_major == Major::mn || S.block % S.box_elements == 0, "a k-step of E is in one box");
    static_assert(S.a_stages == 1 || !S.ordered || S.ordered_across_tiles, "warpgroups may be a tile apart");
    const BackToBackShared<S> shared{base};
    if (shared.base % S.tile_alignment != 0) __trap();
    if (threadIdx.x == 0) {
        constexpr int warps = 4 * S.consumer_warpgroups();
        shared.a_ring().init(1, warps);
        shared.b_ring().init(1, warps);
        shared.e_ring().init(1, warps);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    using Between = decltype(consumer(0));
    if (warpgroup() == 0) {
        if constexpr (requires { loads.prepare(); })
            if (threadIdx.x < 32) loads.prepare();
        if (begin_producer<S.producer_registers>()) produce_back_to_back<S, Between::may_be_empty>(shared, loads);
    } else {
        begin_consumer<S.consumer_registers>();
        consume_back_to_back<S>(shared, warpgroup() - 1, consumer(warpgroup() - 1));
    }
}

}  // namespace rooftile
