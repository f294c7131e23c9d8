// What a CTA takes one after the other where the blocks of all tiles are shared out evenly: its part of them, cut where a tile ends, so that
// a turn is a tile or a piece of one. Sequences may have lengths of their own, which are read on the device: the shares follow from them.
//
// Tiles are numbered sequence after sequence, in each head after head, tile after tile. A sequence without keys counts as one block, which
// sees nothing: somebody has to write its rows.
#pragma once

#include "kernels/attention/attention_arguments.hpp"

namespace rooftile {

/// A piece of a tile: blocks, the tile's first part, and in how many it is.
struct AttentionPiece {
    KeyBlocks blocks;
    int first_part, parts;
};

/// Where the turns of one CTA begin and end. Of a whole warp first, prepare(); then of one thread, turn after turn.
struct AttentionTurns {
    unsigned all, parts, begin, end;  ///< blocks of all tiles; CTAs that have some; this one's blocks
    unsigned first_tile, turns;     ///< tiles that it has blocks of
    int sequence;                   ///< that `before` is of
    unsigned before;                ///< blocks of all sequences in front of it

    /// Blocks of keys that rows of a sequence see, the same for all of its tiles: those that some row does.
    static __device__ KeyBlocks blocks_of(const AttentionExtent& extent, int tile_kv) {
        const KeyBlocks seen = extent.blocks(0, extent.queries, tile_kv);
        return seen.count() > 0 ? seen : KeyBlocks{0, 1};
    }
    static __device__ AttentionExtent extent_of(const AttentionArguments& args, AttentionExtent extent, int sequence) {
        if (args.lengths) extent.keys = max(0, min(args.lengths[sequence], args.extent.keys));  // nobody reads beyond the room
        return extent;
    }
    static __device__ unsigned count(const AttentionArguments& args, const AttentionExtent& extent, int sequence, int tile_kv) {
        return static_cast<unsigned>(blocks_of(extent_of(args, extent, sequence), tile_kv).count());
    }

    /// By all lanes of a warp, each of which then knows it. `tiles`: of a sequence.
    __device__ void prepare(const AttentionArguments& args, const AttentionExtent& extent, int tiles, int tile_kv) {
        constexpr unsigned everyone = 0xffffffff;
        const int lane = static_cast<int>(threadIdx.x % 32);
        if (!args.lengths) {
            const unsigned each = count(args, extent, 0, tile_kv);
            all = each * tiles * args.batches;
            share();
            first_tile = begin / each, turns = begin < end ? (end - 1) / each - first_tile + 1 : 0;
            sequence = static_cast<int>(first_tile / tiles), before = sequence * tiles * each;
            return;
        }
        unsigned sum = 0;
        for (int i = lane; i < args.batches; i += 32) sum += count(args, extent, i, tile_kv);
        for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(everyone, sum, other);
        all = sum * tiles;
        share();
        // The sequences that have the first block and the last one.
        unsigned last_tile = 0;
        first_tile = 0, sequence = 0, before = 0;
        unsigned in_front = 0;
        for (int base = 0; base < args.batches; base += 32) {
            const unsigned each = base + lane < args.batches ? count(args, extent, base + lane, tile_kv) : 0;
            unsigned behind = each * tiles;
            for (int step = 1; step < 32; step *= 2) {
                const unsigned more = __shfl_up_sync(everyone, behind, step);
                if (lane >= step) behind += more;
            }
            behind += in_front;
            const auto find = [&](unsigned block, unsigned& tile, bool keep) {
                const unsigned there = __ballot_sync(everyone, block >= behind - each * tiles && block < behind);
                if (there == 0) return;
                const int of = __ffs(static_cast<int>(there)) - 1;
                const unsigned front = __shfl_sync(everyone, behind - each * tiles, of), size = __shfl_sync(everyone, each, of);
                tile = (base + of) * tiles + (block - front) / size;
                if (keep) sequence = base + of, before = front;
            };
            find(begin, first_tile, true);
            find(end - 1, last_tile, false);
            in_front = __shfl_sync(everyone, behind, 31);
        }
        turns = begin < end ? last_tile - first_tile + 1 : 0;
    }

    /// Of the turn that follows, or is, the one asked for last: which tile it is, of sequence `sequence`, and its piece.
    __device__ unsigned tile(unsigned turn) const { return first_tile + turn; }
    __device__ AttentionPiece piece(const AttentionArguments& args, const AttentionExtent& extent, unsigned tile, int tiles, int tile_kv) {
        for (; tile >= static_cast<unsigned>((sequence + 1) * tiles); ++sequence) before += tiles * count(args, extent, sequence, tile_kv);
        const KeyBlocks blocks = blocks_of(extent_of(args, extent, sequence), tile_kv);
        const unsigned size = static_cast<unsigned>(blocks.count()), front = before + (tile - sequence * tiles) * size;
        const unsigned from = begin > front ? begin - front : 0, to = end < front + size ? end - front : size;
        const int first = static_cast<int>(part_with(front, all, parts)), last = static_cast<int>(part_with(front + size - 1, all, parts));
        return {{blocks.first + static_cast<int>(from), blocks.first + static_cast<int>(to)}, first, last - first + 1};
    }

  private:
    __device__ void share() {
        parts = min(all, gridDim.x);  // of short sequences there are fewer blocks than CTAs
        const BlockShare mine = blockIdx.x < parts ? share_of(all, blockIdx.x, parts) : BlockShare{0, 0};
        begin = mine.begin, end = mine.end;
    }
};

}  // namespace rooftile
