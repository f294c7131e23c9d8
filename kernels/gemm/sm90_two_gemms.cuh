// Two products in one kernel, the second of which reads as its A what the first one stores: H = A B^T through an expression, then
// D = H W^T through another. The pieces are sm90_gemm's; each product has tiles of its own, and both share the ring, the epilogue tiles
// and the consumer warpgroups.
//
// CTAs take tiles of both from one queue, in the order that ChunkedOrder has. A warp that has stored its part of a tile of H counts itself at
// the row of tiles, and whoever brings a tile of D waits until all that hold its rows of H are counted. What is waited for has a smaller number, and every
// number belongs to a CTA that runs: nobody waits for ever, and no CTA need run beside another. Where the first product's last tiles do
// not fill the GPU the second one's fill the rest, and there is no second launch.
//
// H is written by the copy engine and read by it in another SM. The writer waits for the write itself, not for its source alone, and counts
// itself by a release; the reader looks by acquires. Both pass a proxy fence, as the counters are not the copy engine's. (A thread of its own
// that stores H, so that consumers need not wait, took longer: docs/facts.md 340.)
//
// H has room for all of its rows, or for some chunks: then a chunk is stored where an earlier one lay, once all of that one's readers have
// counted themselves.
#pragma once

#include "kernels/gemm/two_gemms_arguments.hpp"
#include "kernels/gemm/two_gemms_config.hpp"
#include "kernels/matrix/epilogue.cuh"
#include "kernels/matrix/load_tiled.cuh"
#include "kernels/matrix/main_loop.cuh"
#include "kernels/matrix/store.cuh"
#include "kernels/pipeline/chunked_order.hpp"
#include "kernels/pipeline/roles.cuh"
#include "kernels/pipeline/ordered_sequence_barrier.cuh"
#include "kernels/ptx/arrival.cuh"
#include "kernels/ptx/wait_limit.cuh"

namespace rooftile {

template <Sm90GemmConfig A, Sm90GemmConfig B>
constexpr bool go_together() {
    static_assert(A.stages == B.stages && A.schedule == B.schedule && A.consumer_warpgroups == B.consumer_warpgroups
                      && A.producer_registers == B.producer_registers && A.consumer_registers == B.consumer_registers,
                  "the roles are the same for both");
    static_assert(A.stage_pitch() == B.stage_pitch() && A.epilogue_bytes() == B.epilogue_bytes() && A.stage_pitch() >= A.stage_bytes()
                      && B.stage_pitch() >= B.stage_bytes(),
                  "both lie in the same room");
    static_assert(A.cluster_ctas() == 1 && B.cluster_ctas() == 1 && !A.in_pieces && !B.in_pieces && !A.batched && !B.batched && !A.promoted
                      && !B.promoted && !A.overlapped_epilogue && !B.overlapped_epilogue && A.ctas_per_sm == 1 && B.ctas_per_sm == 1,
                  "a CTA has a tile for itself");
    static_assert(A.tma_store && B.tma_store && A.results == 1 && B.results == 1 && B.a_major == Major::k && B.type == A.c_type,
                  "the second product reads what the first one stores");
    static_assert(!A.operand_staged || !B.operand_staged, "each has its parities of the same barriers");
    static_assert(A.stage_pitch() % Sm90GemmConfig::tile_alignment == 0, "stages begin where a swizzle does");
    return obeys_the_hardware<A>() && obeys_the_hardware<B>();
}

template <Sm90GemmConfig A, Sm90GemmConfig B>
__device__ ChunkedOrder order_of(const TwoGemmsArguments& args) {
    const auto tiles = [](const GemmArguments& g, int tile_m, int tile_n, int chunk_rows) {
        return ChunkedTiles{ceil_div(g.m, tile_m), ceil_div(g.n, tile_n), chunk_rows, g.order, g.group};
    };
    return {tiles(args.first, A.tile_m, A.tile_n, args.first_chunk_rows), tiles(args.second, B.tile_m, B.tile_n, args.second_chunk_rows), args.chunks};
}

/// As MatrixTileScheduler::origin().
template <Sm90GemmConfig C>
__device__ TileOrigin origin_of(const GemmArguments& args, const TileCoordinate& t) {
    return {min(t.row * C.tile_m, args.last_m), min(t.column * C.tile_n, args.last_n), 0};
}

/// Blocks of K of a tile.
template <Sm90GemmConfig C>
__device__ int blocks_of(const GemmArguments& args) { return ceil_div(args.k, C.tile_k); }

/// Which store a tile, and count themselves.
template <Sm90GemmConfig C>
constexpr int storing_warps() { return C.tile_warps() / (C.swap_ab ? 4 : 1); }

/// Until all rows of H from `row` on that a tile reads are stored.
template <Sm90GemmConfig A, Sm90GemmConfig B>
__device__ void wait_for_rows(const TwoGemmsArguments& args, int row, int columns) {
    const unsigned all = columns * storing_warps<A>();
    const int last = (min(row + B.tile_m, args.second.m) - 1) / A.tile_m;
    const ptx::WaitLimit limit;
    for (int block = row / A.tile_m; block <= last; ++block)
        while (ptx::load_acquire(args.ready + block) < all) limit.more(), __nanosleep(32);
    ptx::fence_async_proxy_global();
}

/// A CTA's place in a cluster of its own.
struct Alone {
    int rank = 0, part = 0;
};

/// Every stage of one tile; asks for the next tile a ring before this one's end, as sm90_gemm does.
template <Sm90GemmConfig C, class Queue>
__device__ void produce_tile(const TensorMap& map_a, const TensorMap& map_b, const GemmArguments& args, const MatrixShared<C>& shared,
                             RingPosition<C.stages>& at, const TileOrigin& at_c, Queue& queue) {
    const int blocks = blocks_of<C>(args), asks_at = max(0, blocks - C.stages);
    const TiledLoad<C> load{map_a, map_b, {map_a, map_a, map_a, map_a, map_a}, args, shared};
    for (int block = 0; block < blocks; ++block, at.advance()) {
        if (block == asks_at) queue.ask();
        shared.ring.acquire(at);
        load(Alone{}, at.stage, at_c, block);
    }
}

/// One product's part of the kernel's parameters.
struct OfOneGemm {
    const TensorMap &a, &b, &c, &operand;
};

template <Sm90GemmConfig A, Sm90GemmConfig B>
__device__ void produce_two(const OfOneGemm& first, const OfOneGemm& second, const TwoGemmsArguments& args, const MatrixShared<A>& shared_a,
                            const MatrixShared<B>& shared_b, const TileSchedulerPipeline<A.stages + 2>& told) {
    const ChunkedOrder order = order_of<A, B>(args);
    TileQueueProducer<A.stages + 2> queue{static_cast<unsigned>(order.tiles()), told, args.next};
    RingPosition<A.stages> at;
    queue.ask();
    for (queue.advance(); queue.more(); queue.advance()) {
        const ChunkedOrder::Tile tile = order.at(static_cast<int>(queue.index));
        if (tile.of_second) {
            const TileOrigin origin = origin_of<B>(args.second, order.second.at(tile.index));
            wait_for_rows<A, B>(args, origin.m, order.first.columns);
            produce_tile<B>(second.a, second.b, args.second, shared_b, at, {origin.m % args.room_rows, origin.n, 0}, queue);
        } else {
            produce_tile<A>(first.a, first.b, args.first, shared_a, at, origin_of<A>(args.first, order.first.at(tile.index)), queue);
        }
    }
    // Who comes last has seen everybody's last wait, and so all that was counted.
    if (ptx::count_arrival(args.finished, gridDim.x - 1) == gridDim.x - 1) {
        for (int row = 0; row < order.first.rows; ++row) args.ready[row] = 0;
        for (int chunk = 0; chunk + args.room_chunks < order.chunks; ++chunk) args.taken[chunk] = 0;
    }
}

/// Where this warpgroup's part of a tile begins.
template <Sm90GemmConfig C>
__device__ TileOrigin part_of(const TileOrigin& tile, int warpgroup) {
    const int first_row = C.schedule == Schedule::pingpong ? 0 : warpgroup * C.warpgroup_m();
    return tile.moved(C.swap_ab ? 0 : first_row, C.swap_ab ? first_row : 0);
}

/// Until everybody has read what lies in H where chunk number `chunk` is to lie.
__device__ inline void wait_for_place(const TwoGemmsArguments& args, int chunk) {
    const int before = chunk - args.room_chunks;
    if (before < 0) return;
    const ptx::WaitLimit limit;
    if (ptx::elect_one())
        while (ptx::load_acquire(args.taken + before) < args.chunk_readers) limit.more(), __nanosleep(32);
    __syncwarp();
    ptx::fence_async_proxy_global();
}

/// Says that this warp's part of a tile of H is there.
template <Sm90GemmConfig A>
__device__ void count_stored(unsigned* ready) {
    const int warp = ptx::warp_uniform(threadIdx.x % Sm90GemmConfig::warpgroup_threads / 32);
    if ((A.swap_ab && warp != 0) || !ptx::elect_one()) return;  // the lane whose stores they are
    ptx::tma_store_wait<0>();
    ptx::fence_async_proxy_global();
    ptx::count_release(ready);
}

/// Before another product's tile takes the epilogue tiles: they are cut otherwise, so that a warp writes where another one's store may yet read.
inline __device__ void change_product(int warpgroup) {
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
    ptx::named_barrier_sync(store_barrier + warpgroup, Sm90GemmConfig::warpgroup_threads);
}

/// What a consumer warpgroup keeps from tile to tile.
template <Sm90GemmConfig C>
struct ConsumerOfTwo {
    RingPosition<C.stages> at{};
    bool first = true;        ///< it has had no tile yet
    bool of_second = false;   ///< the last one's product
};

/// A tile's sums; as sm90_gemm's consume() has it. `begin` runs beside the first products.
template <Sm90GemmConfig C, class Queue, class Order, class Begin>
__device__ void sum_tile(Accumulators<C>& sums, const StoreTarget<C>& target, ConsumerOfTwo<C>& own, const Queue& queue, const Order& order,
                         const Begin& begin) {
    constexpr bool pingpong = C.schedule == Schedule::pingpong;
    const int first_row = pingpong ? 0 : target.warpgroup * C.warpgroup_m(), blocks = blocks_of<C>(target.args);
    if (pingpong) order.wait(own.first);
    int previous = 0;
    step<C>(sums, target.shared, own.at, previous, first_row, 0, true);
    begin();
    for (int block = 1; block < blocks; ++block) step<C>(sums, target.shared, own.at, previous, first_row, 0, false);
    if (pingpong && queue.more_after_this()) order.pass();
    drain<C>(sums, target.shared, previous, 0);
}

template <Sm90GemmConfig A, Sm90GemmConfig B, class EpilogueA, class EpilogueB>
__device__ void consume_two(const OfOneGemm& first, const OfOneGemm& second, const TwoGemmsArguments& args, const MatrixShared<A>& shared_a,
                            const MatrixShared<B>& shared_b, const TileSchedulerPipeline<A.stages + 2>& told, int warpgroup, const EpilogueA& epilogue_a,
                            const EpilogueB& epilogue_b) {
    constexpr bool pingpong = A.schedule == Schedule::pingpong;
    const ChunkedOrder order = order_of<A, B>(args);
    const OrderedSequenceBarrier<2, order_barrier> sequence{warpgroup};
    TileQueueConsumer<A.stages + 2> queue{static_cast<unsigned>(order.tiles()), told};
    StoreTarget<A> target_a{.map_c = first.c, .shared = shared_a, .args = args.first, .warpgroup = warpgroup, .map_operand = first.operand};
    StoreTarget<B> target_b{.map_c = second.c, .shared = shared_b, .args = args.second, .warpgroup = warpgroup, .map_operand = second.operand};
    ConsumerOfTwo<A> own;
    const auto skip = [&] {  // over the other warpgroup's tile
        if (!queue.more()) return;
        own.at.skip(order.at(static_cast<int>(queue.index)).of_second ? blocks_of<B>(args.second) : blocks_of<A>(args.first));
        queue.advance();
    };
    queue.begin();
    if (pingpong && warpgroup == 1) skip();
    for (; queue.more(); own.first = false) {
        const ChunkedOrder::Tile tile = order.at(static_cast<int>(queue.index));
        const bool changes = tile.of_second != own.of_second;
        own.of_second = tile.of_second;
        if (tile.of_second) {
            const TileCoordinate t = order.second.at(tile.index);
            const TileOrigin origin = origin_of<B>(args.second, t), part = part_of<B>(origin, warpgroup);
            ConsumerOfTwo<B> same{own.at, own.first};
            Accumulators<B> sums;
            sum_tile<B>(sums, target_b, same, queue, sequence, [&] {
                prefetch_operands<B>(epilogue_b, args.second, origin.template result<B>());
                if (changes) change_product(warpgroup);
                if constexpr (B.operand_staged) begin_operand<B>(target_b, part.template result<B>());
            });
            own.at = same.at;
            // What was multiplied had come from H.
            const int chunk = t.row / args.second_chunk_rows;
            if (chunk + args.room_chunks < args.chunks && (pingpong || warpgroup == 0) && threadIdx.x % Sm90GemmConfig::warpgroup_threads == 0)
                ptx::count_release(args.taken + chunk);
            store_finished<B>(epilogue_b, OwnSums<B>{sums}, target_b, args.second, part);
        } else {
            const TileCoordinate t = order.first.at(tile.index);
            TileOrigin origin = origin_of<A>(args.first, t);
            origin.m %= args.room_rows;
            Accumulators<A> sums;
            sum_tile<A>(sums, target_a, own, queue, sequence, [&] {
                if (changes) change_product(warpgroup);
            });
            wait_for_place(args, t.row / args.first_chunk_rows);
            store_finished<A>(epilogue_a, OwnSums<A>{sums}, target_a, args.first, part_of<A>(origin, warpgroup));
            count_stored<A>(args.ready + t.row);
        }
        queue.advance();
        if (pingpong) skip();
    }
    if (ptx::elect_one()) ptx::tma_store_wait_read<0>();
}

template <Sm90GemmConfig A, Sm90GemmConfig B, class EpilogueA, class EpilogueB>
__global__ void __launch_bounds__(A.threads(), 1)
    sm90_two_gemms(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __grid_constant__ TensorMap map_h,
                   const __grid_constant__ TensorMap map_h_read, const __grid_constant__ TensorMap map_w, const __grid_constant__ TensorMap map_d,
                   const __grid_constant__ TensorMap map_operand_a, const __grid_constant__ TensorMap map_operand_b,
                   const __grid_constant__ TwoGemmsArguments args, const __grid_constant__ EpilogueA epilogue_a,
                   const __grid_constant__ EpilogueB epilogue_b) {
    static_assert(go_together<A, B>());
    extern __shared__ __align__(Sm90GemmConfig::tile_alignment) unsigned char memory[];
    const unsigned base = ptx::shared_address(memory);
    if (base % Sm90GemmConfig::tile_alignment != 0) __trap();
    const MatrixShared<A> shared_a{base};
    const MatrixShared<B> shared_b{base};
    const TileSchedulerPipeline<A.stages + 2> told{base + two_gemms_told_at(A, B)};
    static_assert(TileSchedulerPipeline<A.stages + 2>::bytes() == two_gemms_told_bytes(A), "the planner counts what roles hear of");
    if (threadIdx.x == 0) {
        shared_a.ring.init(1, A.tile_warps());
        told.init();
        for (int i = 0; i < max(A.operand_barriers(), B.operand_barriers()); ++i)
            ptx::mbarrier_init(shared_a.operand_barrier(0, 0, 0) + i * Sm90GemmConfig::barrier_bytes, 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    const OfOneGemm first{map_a, map_b, map_h, map_operand_a}, second{map_h_read, map_w, map_d, map_operand_b};
    if (warpgroup() == 0) {
        if (begin_producer<A.producer_registers>()) produce_two<A, B>(first, second, args, shared_a, shared_b, told);
    } else {
        begin_consumer<A.consumer_registers>();
        consume_two<A, B>(first, second, args, shared_a, shared_b, told, warpgroup() - 1, epilogue_a, epilogue_b);
    }
}

}  // namespace rooftile
