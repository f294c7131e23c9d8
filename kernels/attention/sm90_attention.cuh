// O = softmax(scale * Q K^T) V on Hopper, forward: bf16 or fp16 in and out, fp32 sums.
//
// One CTA has a producer warpgroup and tile_q / 64 consumer warpgroups, each with 64 queries of a tile. The producer's one
// thread brings the tile's Q and then, block of keys after block, K and V through a ring of `stages` each. Of a block a
// consumer computes S = Q K^T, makes probabilities of it, and adds P V to O, which stays in registers through all blocks: P
// never leaves them, as the sums of the one product lie in registers as the other wants its first operand.
//
// Two overlaps. In a warpgroup: the product S of the next block is issued before O += P V of this one, and the next
// block's softmax runs while the latter does. Between warpgroups (`turns`): they issue their products in turns, so that
// one's exponentials run beside the other's products.
//
// Blocks run from the last key to the first: those that need the mask come first, and the rest are free of it. The grid
// is persistent; tiles come in the order of attention_tile(), longest first, from a counter: who is done takes the next. The
// producer asks for it when it has started the last copy of a tile, some blocks before the consumers are through, and tells
// them beside Q.
//
// Packed sequences of unlike lengths lie one behind the other in each tensor, and where each begins stands on the device
// (cu_seqlens): the producer looks up which one a tile is of, and tells the consumers with Q. A block at the end of a sequence
// holds keys of the next one, which are hidden as the mask hides.
//
// What the mask hides has a probability of 0, but 0 times a NaN or an infinity in V is NaN. A row that is NaN once the masked
// blocks, the first ones, are in is computed again from the keys that it sees alone (attention_row()), as is one whose scores are
// all far from 0, at the end of what fp32 holds.
#pragma once

#include "kernels/attention/attention_arguments.hpp"
#include "kernels/attention/attention_row.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/attention/sm90_attention_config.hpp"
#include "kernels/pipeline/ring.cuh"
#include "kernels/pipeline/roles.cuh"
#include "kernels/pipeline/scheduler.cuh"
#include "kernels/pipeline/ordered_sequence_barrier.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/wgmma_registers.cuh"

namespace rooftile {

inline constexpr int sm90_attention_turn_barrier = 1;  ///< and the next two

/// Shared memory: Q, stages of K, stages of V, barriers. A tensor's rows lie in boxes of 64 elements, one behind the other.
template <Sm90AttentionConfig C>
struct Sm90AttentionShared {
    unsigned base;
    __device__ unsigned q() const { return base; }
    __device__ unsigned k(int stage) const { return base + C.q_bytes() + stage * C.k_bytes(); }
    __device__ unsigned v(int stage) const { return k(C.stages) + stage * C.v_bytes(); }
    __device__ unsigned barriers() const { return v(C.stages); }
    __device__ Ring<1> q_ring() const { return {barriers()}; }
    __device__ Ring<C.stages> k_ring() const { return {barriers() + Ring<1>::bytes()}; }
    __device__ Ring<C.stages> v_ring() const { return {barriers() + Ring<1>::bytes() + Ring<C.stages>::bytes()}; }
    /// Written before Q is announced, read behind the wait for it.
    __device__ unsigned tile_number() const { return barriers() + C.all_barrier_bytes(); }
    /// Of packed sequences the same of every other tile: consumers read it again at a tile's end, when the next one has been told.
    __device__ unsigned told(unsigned turn) const { return tile_number() + turn % 2 * C.told_bytes; }
};

/// A tile, what its rows see, and whether it has any.
struct Sm90AttentionPlace {
    AttentionTile tile;
    AttentionExtent extent;
    int q;  ///< its first query
    __device__ bool any() const { return q < extent.queries; }
};

/// What tile numbers stand for.
template <Sm90AttentionConfig C>
struct Sm90AttentionTiles {
    const AttentionArguments& args;
    __device__ int q_tiles() const {
        if (C.packed) return attention_place(args.extent.queries, args.sequences, C.tile_q);
        return (args.extent.queries + C.tile_q - 1) / C.tile_q;
    }
    __device__ unsigned count() const { return static_cast<unsigned>(q_tiles() * args.heads * args.batches); }
    __device__ Sm90AttentionPlace place(unsigned number) const {
        const AttentionTile tile = attention_tile(static_cast<int>(number), q_tiles(), args.heads, args.batches, args.section_heads,
                                                  C.packed || C.mask != AttentionMask::none);
        if constexpr (C.packed) return in_sequence(tile);
        AttentionExtent extent = args.extent;
        extent.mask = C.mask;  // known to the compiler
        return {tile, extent, tile.q_tile * C.tile_q};
    }
    /// What the producer tells the consumers of a tile of packed sequences.
    __device__ static void tell(unsigned shared, unsigned number, const Sm90AttentionPlace& at) {
        const int words[] = {static_cast<int>(number), at.q, at.tile.head, at.tile.first_row, at.extent.queries, at.extent.keys,
                             at.extent.window};
#pragma unroll
        for (int i = 0; i < 7; ++i) ptx::store_shared(shared + 4 * i, static_cast<unsigned>(words[i]));
    }
    __device__ static Sm90AttentionPlace told(unsigned shared) {
        const auto word = [&](int i) { return static_cast<int>(ptx::load_shared(shared + 4 * i)); };
        return {{0, word(2), 0, word(3)}, {C.mask, word(4), word(5), word(6)}, word(1)};
    }

  private:
    /// `q_tile` is a place among those of all sequences.
    __device__ Sm90AttentionPlace in_sequence(AttentionTile tile) const {
        const int sequence = attention_sequence(args.cu_seqlens, args.sequences, tile.q_tile, C.tile_q);
        tile.first_row = args.cu_seqlens[sequence];
        tile.q_tile -= attention_place(tile.first_row, sequence, C.tile_q);
        const int length = args.cu_seqlens[sequence + 1] - tile.first_row;
        return {tile, {C.mask, length, length, args.extent.window}, tile.q_tile * C.tile_q};
    }
};

/// Box after box of `rows` rows of a head.
template <int rows, int elements>
__device__ void load_rows(const TensorMap& map, unsigned shared, unsigned barrier, int row, int head, int batch) {
#pragma unroll
    for (int i = 0; i < Sm90AttentionConfig::boxes(elements); ++i)
        ptx::tma_load_4d(shared + i * Sm90AttentionConfig::box_bytes(rows), map, i * Sm90AttentionConfig::box_elements, row,
                         head, batch, barrier);
}

/// The producer, one thread: the first K and Q, then each next K before the V that it runs ahead of.
template <Sm90AttentionConfig C>
__device__ void produce(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v, const AttentionArguments& args,
                        const Sm90AttentionShared<C>& shared) {
    RingPosition<1> q_at;
    RingPosition<C.stages> k_at, v_at;
    const Ring<1> q_ring = shared.q_ring();
    unsigned tiles_told = 0;
    const auto tell = [&](unsigned number, const Sm90AttentionPlace& at) {
        q_ring.acquire(q_at);
        if constexpr (C.packed) Sm90AttentionTiles<C>::tell(shared.told(tiles_told++), number, at);
        else ptx::store_shared(shared.tile_number(), number);
    };
    const int queries_a_key_head = args.heads / args.kv_heads;
    const Sm90AttentionTiles<C> tiles{args};
    ScheduleSlots<1, 1> alone;
    for (DynamicTileScheduler<1, 1> turn(alone, args.counter, tiles.count()); turn.more(); turn.ask(), turn.advance()) {
        const Sm90AttentionPlace at = tiles.place(turn.index());
        if (C.packed && !at.any()) continue;
        const AttentionTile& tile = at.tile;
        const int kv_head = tile.head / queries_a_key_head;
        const KeyBlocks blocks = at.extent.blocks(at.q, C.tile_q, C.tile_kv);
        if (blocks.count() == 0) {  // its rows see nothing
            tell(turn.index(), at);
            q_ring.commit(0);
            q_at.advance();
            continue;
        }
        const auto load_k = [&](int block) {
            const Ring<C.stages> ring = shared.k_ring();
            ring.acquire(k_at);
            ring.expect(k_at.stage, C.k_bytes());
            load_rows<C.tile_kv, C.dim>(map_k, shared.k(k_at.stage), ring.full(k_at.stage), tile.first_row + block * C.tile_kv, kv_head, tile.batch);
            k_at.advance();
        };
        const auto load_v = [&](int block) {
            const Ring<C.stages> ring = shared.v_ring();
            ring.acquire(v_at);
            ring.expect(v_at.stage, C.v_bytes());
            load_rows<C.tile_kv, C.dim_v>(map_v, shared.v(v_at.stage), ring.full(v_at.stage), tile.first_row + block * C.tile_kv, kv_head, tile.batch);
            v_at.advance();
        };
        load_k(blocks.end - 1);  // before Q, whose place the tile before still holds
        tell(turn.index(), at);
        q_ring.expect(0, C.q_bytes());
        load_rows<C.tile_q, C.dim>(map_q, shared.q(), q_ring.full(0), tile.first_row + at.q, tile.head, tile.batch);
        q_at.advance();
        for (int block = blocks.end - 2; block >= blocks.first; --block) {
            load_k(block);
            load_v(block + 1);
        }
        load_v(blocks.first);
    }
    tell(no_tile, {});
    q_ring.commit(0);
}

/// S = Q K^T of this warpgroup's rows and one block, issued.
template <Sm90AttentionConfig C>
__device__ void multiply_keys(float (&scores)[C.tile_kv / 2], const Sm90AttentionShared<C>& shared, int warpgroup, int stage) {
    constexpr int steps_a_box = Sm90AttentionConfig::box_elements / 16, step_bytes = 32;
    constexpr int eight_rows = 8 * Sm90AttentionConfig::swizzle_bytes;
#pragma unroll
    for (int step = 0; step < C.dim / 16; ++step) {
        const unsigned within = step % steps_a_box * step_bytes;
        const unsigned q = shared.q() + step / steps_a_box * Sm90AttentionConfig::box_bytes(C.tile_q)
                           + warpgroup * Sm90AttentionConfig::box_bytes(Sm90AttentionConfig::warpgroup_q) + within;
        const unsigned k = shared.k(stage) + step / steps_a_box * Sm90AttentionConfig::box_bytes(C.tile_kv) + within;
        ptx::wgmma<C.tile_kv, C.type, C.type, Major::k, Major::k>(scores, ptx::matrix_descriptor(q, 16, eight_rows),
                                                          ptx::matrix_descriptor(k, 16, eight_rows), step > 0);
    }
}

/// O += P V of one block, issued.
template <Sm90AttentionConfig C>
__device__ void multiply_values(float (&sums)[C.dim_v / 2], const unsigned (&pairs)[C.tile_kv / 4],
                                const Sm90AttentionShared<C>& shared, int stage) {
    constexpr int eight_rows = 8 * Sm90AttentionConfig::swizzle_bytes, box = Sm90AttentionConfig::box_bytes(C.tile_kv);
#pragma unroll
    for (int step = 0; step < C.tile_kv / 16; ++step) {
        const unsigned v = shared.v(stage) + step * 16 * Sm90AttentionConfig::swizzle_bytes;
        ptx::wgmma_registers<C.dim_v, C.type, Major::mn>(sums, pairs + 4 * step, ptx::matrix_descriptor(v, box, eight_rows), 1);
    }
}

/// What four neighbouring threads have of four groups each: thread i gets all of group i, thread after thread. By swaps of two, as a 4x4
/// matrix is transposed.
__device__ inline void swap_groups(unsigned (&words)[4], int lane4) {
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
        const bool upper = (lane4 & bit) != 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if ((i & bit) != 0) continue;
            const unsigned got = __shfl_xor_sync(0xffffffff, upper ? words[i] : words[i + bit], bit);
            words[i] = upper ? got : words[i];
            words[i + bit] = upper ? words[i + bit] : got;
        }
    }
}

/// This warpgroup's rows of O, divided by their sums. The four threads of a row have two columns of each eight: they swap, so
/// that each stores 16 bytes of one of four such groups.
template <Sm90AttentionConfig C>
__device__ void store(const float (&sums)[C.dim_v / 2], const OnlineSoftmax& softmax, const AttentionArguments& args,
                      const Sm90AttentionPlace& at, int query) {
    const AttentionTile& tile = at.tile;
    const int lane4 = static_cast<int>(threadIdx.x % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float total = softmax.total(half);
        const float by = total == 0 ? 0 : ptx::reciprocal_approx(total);
        const int row = query + 8 * half, row_of_all = tile.first_row + row;
        const bool inside = row < at.extent.queries;
        char* o = static_cast<char*>(args.o)
                  + Sm90AttentionConfig::element_bytes
                        * (tile.batch * args.o_strides.batch + tile.head * args.o_strides.head + row_of_all * args.o_strides.row);
#pragma unroll
        for (int first = 0; first < C.dim_v / 8; first += 4) {
            unsigned words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                words[i] = ptx::pack2<C.type>(sums[4 * (first + i) + 2 * half] * by, sums[4 * (first + i) + 2 * half + 1] * by);
            swap_groups(words, lane4);
            const int column = (first + lane4) * 8;
            if (inside && column < args.dim_v)
                *reinterpret_cast<uint4*>(o + column * Sm90AttentionConfig::element_bytes) =
                    make_uint4(words[0], words[1], words[2], words[3]);
        }
        constexpr float ln2 = 0.693147180559945f;
        if (args.log_sum_exp && inside && lane4 == 0)
            *log_sum_exp_place(args, tile, row) = total == 0 ? minus_infinity() : softmax.from[half] * ln2 + __logf(total);
    }
}

/// Bits of those of the thread's two rows that are NaN.
template <int count>
__device__ unsigned spoiled_rows(const float (&sums)[count]) {
    bool spoiled[2] = {false, false};
#pragma unroll
    for (int i = 0; i < count; ++i) spoiled[i / 2 % 2] |= sums[i] != sums[i];
    return (spoiled[0] ? 1u : 0u) | (spoiled[1] ? 2u : 0u);
}

/// The rows of a warp for which a thread has a bit, again; behind store(). `first` is the warp's first query.
template <Sm90AttentionConfig C, class Score>
__device__ void mend(unsigned spoiled, const AttentionArguments& args, const Sm90AttentionPlace& at, int first, const Score& score) {
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
        const unsigned threads = __ballot_sync(0xffffffff, (spoiled >> (i / 8) & 1) != 0);
        if ((threads >> (i % 8 * 4) & 15) != 0 && first + i < at.extent.queries)
            attention_row<C.type>(args, at.extent, at.tile, first + i, score);
    }
}

/// One consumer warpgroup: its rows of every tile.
template <Sm90AttentionConfig C, class Score>
__device__ void consume(const AttentionArguments& args, const Sm90AttentionShared<C>& shared, int warpgroup, const Score& score) {
    constexpr int parties = C.consumer_warpgroups();
    constexpr bool hides = C.mask != AttentionMask::none || C.packed;
    const OrderedSequenceBarrier<parties == 1 ? 2 : parties, sm90_attention_turn_barrier> turns{warpgroup};
    const FragmentPlace place;
    const Sm90AttentionTiles<C> tiles{args};
    const int rows = warpgroup * Sm90AttentionConfig::warpgroup_q + place.row;
    RingPosition<1> q_at;
    RingPosition<C.stages> at;  // of K; V is read one use behind
    for (unsigned turn = 0;; q_at.advance(), ++turn) {
        shared.q_ring().wait(q_at);
        unsigned number = ptx::load_shared(C.packed ? shared.told(turn) : shared.tile_number());
        if (number == no_tile) return;
        const auto place_of = [&] { return C.packed ? tiles.told(shared.told(turn)) : tiles.place(number); };
        const Sm90AttentionPlace at_begin = place_of();
        const AttentionExtent& extent = at_begin.extent;
        const int q = at_begin.q, query = q + rows;
        const KeyBlocks blocks = extent.blocks(q, C.tile_q, C.tile_kv), clear = extent.clear(q, C.tile_q, C.tile_kv);
        const typename Score::OfHead head = score.of_head(at_begin.tile.head);
        const auto masked = [&](int block) { return block >= clear.end || block < clear.first; };
        OnlineSoftmax softmax;
        float sums[C.dim_v / 2];
#pragma unroll
        for (int i = 0; i < C.dim_v / 2; ++i) sums[i] = 0;
        if (blocks.count() == 0) {
            __syncwarp();
            shared.q_ring().release(0);
            store<C>(sums, softmax, args, at_begin, query);
            continue;
        }
        unsigned pairs[C.tile_kv / 4], spoiled = 0;
        float shrink[2];
        {
            float scores[C.tile_kv / 2];
            shared.k_ring().wait(at);
            ptx::wgmma_fence();
            multiply_keys<C>(scores, shared, warpgroup, at.stage);
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
            ptx::wgmma_pin_all(scores);
            shared.k_ring().release(at.stage);
            if (blocks.count() == 1) shared.q_ring().release(0);
            at.advance();
            make_scores<Score>(scores, head, args.scale, extent.place(query), (blocks.end - 1) * C.tile_kv + place.column);
            if (masked(blocks.end - 1)) hide<C.tile_kv, C.mask == AttentionMask::window>(scores, extent, query, (blocks.end - 1) * C.tile_kv, place.column);
            softmax.take(scores, args.scale_log2, shrink);
            narrow_pairs<C.type>(pairs, scores);
        }
        for (int block = blocks.end - 2; block >= blocks.first; --block) {
            float scores[C.tile_kv / 2];
            const RingPosition<C.stages> v_at = at.before();
            shared.k_ring().wait(at);
            if (C.turns && parties > 1) turns.wait(block == blocks.end - 2);
            ptx::wgmma_fence();
            multiply_keys<C>(scores, shared, warpgroup, at.stage);
            ptx::wgmma_commit();
            shared.v_ring().wait(v_at);
            ptx::wgmma_pin_all(sums);
            ptx::wgmma_fence();
            multiply_values<C>(sums, pairs, shared, v_at.stage);
            ptx::wgmma_commit();
            // Nobody waits for the turn behind the last one of a tile.
            if (C.turns && parties > 1 && !(block == blocks.first && warpgroup == parties - 1)) turns.pass();
            ptx::wgmma_wait<1>();
            ptx::wgmma_pin_all(scores);
            shared.k_ring().release(at.stage);
            if (block == blocks.first) shared.q_ring().release(0);  // the next tile's Q comes beside what is left
            make_scores<Score>(scores, head, args.scale, extent.place(query), block * C.tile_kv + place.column);
            if (masked(block)) hide<C.tile_kv, C.mask == AttentionMask::window>(scores, extent, query, block * C.tile_kv, place.column);
            const bool rescales = softmax.take(scores, args.scale_log2, shrink);
            softmax.complete();
            ptx::wgmma_wait<0>();
            ptx::wgmma_pin_all(sums);
            shared.v_ring().release(v_at.stage);
            at.advance();
            if (hides && masked(block + 1)) spoiled |= spoiled_rows(sums);
            narrow_pairs<C.type>(pairs, scores);
            if (rescales) {
#pragma unroll
                for (int i = 0; i < C.dim_v / 2; ++i) sums[i] *= shrink[i / 2 % 2];
            }
        }
        const RingPosition<C.stages> v_at = at.before();
        shared.v_ring().wait(v_at);
        ptx::wgmma_pin_all(sums);
        ptx::wgmma_fence();
        multiply_values<C>(sums, pairs, shared, v_at.stage);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        ptx::wgmma_pin_all(sums);
        shared.v_ring().release(v_at.stage);
        if (hides && masked(blocks.first)) spoiled |= spoiled_rows(sums);
        spoiled |= (softmax.lost(0) ? 1u : 0u) | (softmax.lost(1) ? 2u : 0u);
        asm volatile("" : "+r"(number));  // a register through the loop, and not all that follows from it
        const Sm90AttentionPlace at_end = place_of();
        store<C>(sums, softmax, args, at_end, query);
        if (__any_sync(0xffffffff, spoiled != 0)) mend<C>(spoiled, args, at_end, query - place.row % 8, score);
    }
}

template <Sm90AttentionConfig C, class Score>
__device__ void run_attention(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v, const AttentionArguments& args,
                              const Score& score) {
    static_assert(C.tile_q % 64 == 0 && C.tile_q <= 192 && C.tile_kv % 16 == 0 && C.tile_kv <= 256, "wgmma's shape; a TMA box");
    static_assert(C.dim % 16 == 0 && C.dim_v % 32 == 0, "k-steps; the widths of wgmma_registers");
    extern __shared__ __align__(Sm90AttentionConfig::tile_alignment) unsigned char memory[];
    const Sm90AttentionShared<C> shared{ptx::shared_address(memory)};
    if (shared.base % Sm90AttentionConfig::tile_alignment != 0) __trap();
    if (threadIdx.x == 0) {
        constexpr int warps = 4 * C.consumer_warpgroups();
        shared.q_ring().init(1, warps);
        shared.k_ring().init(1, warps);
        shared.v_ring().init(1, warps);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    if (warpgroup() == 0) {
        if (begin_producer<C.producer_registers>()) produce<C>(map_q, map_k, map_v, args, shared);
    } else {
        begin_consumer<C.consumer_registers>();
        consume<C>(args, shared, warpgroup() - 1, score);
    }
}

template <Sm90AttentionConfig C>
__global__ void __launch_bounds__(C.threads(), 1)
    sm90_attention(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
                   const __grid_constant__ TensorMap map_v, const __grid_constant__ AttentionArguments args) {
    run_attention<C>(map_q, map_k, map_v, args, PlainScore{});
}

/// The same of scores that are not plain.
template <Sm90AttentionConfig C, class Score>
__global__ void __launch_bounds__(C.threads(), 1)
    sm90_attention_scored(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
                          const __grid_constant__ TensorMap map_v, const __grid_constant__ AttentionArguments args,
                          const __grid_constant__ Score score) {
    run_attention<C>(map_q, map_k, map_v, args, score);
}

}  // namespace rooftile
