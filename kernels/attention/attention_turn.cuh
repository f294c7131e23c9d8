// What a CTA takes one after the other where the blocks of all tiles are shared out evenly: its part of them, cut where a tile ends, so that
// a turn is a tile or a piece of one. Sequences may have lengths of their own, which are read on the device: the shares follow from them.
//
// With `least` above 0 cuts follow from a tile's own blocks (piece_of()) and not from the shares: then pieces are what is shared out, so
// that what else is in the batch changes no bit of a sequence. Below, a unit is a block or a piece: what shares are counted in.
//
// Tiles are numbered sequence after sequence, in each head after head, tile after tile. A sequence without keys counts as one block, which
// sees nothing: somebody has to write its rows. With `tiles_first` a tile of all sequences comes before the next one of any: where all tiles of a
// sequence read the same keys and divide the CTAs evenly, their CTAs read each key at the same time.
#pragma once

#include "kernels/attention/attention_arguments.hpp"

namespace rooftile {

/// A piece of a tile: its blocks; the number of the tile's first part, which says where parts lie; which one it is, of how many.
struct AttentionPiece {
    KeyBlocks blocks;
    unsigned first_part;
    int part, parts;
};
/// What a turn is of: which tile of its sequence, and its piece.
struct AttentionTurn {
    int tile;
    AttentionPiece piece;
};

/// Where the turns of one CTA begin and end. Of a whole warp first, prepare(); then of one thread, turn after turn. With `tiles_first` what counts as a
/// sequence is one of one tile: sequence `i % batches`, tile `i / batches`.
template <int least, bool tiles_first = false>
struct AttentionTurns {
    static constexpr bool own = least > 0;  ///< a tile's cuts are its own
    unsigned all, parts, begin, end;  ///< units of all tiles; CTAs that have some; this one's units
    unsigned first_tile, turns;     ///< tiles that it has units of; or pieces, where cuts are a tile's own
    int sequence;                   ///< that `before` is of
    unsigned before;                ///< units of all sequences in front of it

    /// Blocks of keys that rows of a sequence see, the same for all of its tiles: those that some row does.
    static __device__ KeyBlocks blocks_of(const AttentionExtent& extent, int tile_kv) {
        const KeyBlocks seen = extent.blocks(0, extent.queries, tile_kv);
        return seen.count() > 0 ? seen : KeyBlocks{0, 1};
    }
    static __device__ AttentionExtent extent_of(const AttentionArguments& args, AttentionExtent extent, int sequence) {
        if (tiles_first) sequence %= args.batches;
        if (args.lengths) extent.keys = max(0, min(args.lengths[sequence], args.extent.keys));  // nobody reads beyond the room
        return extent;
    }
    static __device__ unsigned count(const AttentionArguments& args, const AttentionExtent& extent, int sequence, int tile_kv) {
        const int blocks = blocks_of(extent_of(args, extent, sequence), tile_kv).count();
        return static_cast<unsigned>(own ? pieces_of(blocks, least) : blocks);
    }

    /// By all lanes of a warp, each of which then knows it. `tiles`: of a sequence.
    __device__ void prepare(const AttentionArguments& args, const AttentionExtent& extent, int tiles, int tile_kv) {
        constexpr unsigned everyone = 0xffffffff;
        const int sequences = sequences_of(args, tiles);
        if (tiles_first) tiles = 1;
        const int lane = static_cast<int>(threadIdx.x % 32);
        if (!args.lengths) {
            const unsigned each = count(args, extent, 0, tile_kv);
            all = each * tiles * sequences;
            share();
            first_tile = begin / each, turns = own ? end - begin : begin < end ? (end - 1) / each - first_tile + 1 : 0;
            sequence = static_cast<int>(first_tile / tiles), before = sequence * tiles * each;
            return;
        }
        unsigned sum = 0;
        for (int i = lane; i < sequences; i += 32) sum += count(args, extent, i, tile_kv);
        for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(everyone, sum, other);
        all = sum * tiles;
        share();
        // The sequences that have the first block and the last one.
        unsigned last_tile = 0;
        first_tile = 0, sequence = 0, before = 0;
        unsigned in_front = 0;
        for (int base = 0; base < sequences; base += 32) {
            const unsigned each = base + lane < sequences ? count(args, extent, base + lane, tile_kv) : 0;
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
        turns = own ? end - begin : begin < end ? last_tile - first_tile + 1 : 0;
    }

    /// The turn that follows, or is, the one asked for last; it is of sequence `sequence`.
    __device__ AttentionTurn take(const AttentionArguments& args, const AttentionExtent& extent, unsigned turn, int tiles, int tile_kv) {
        if (tiles_first) tiles = 1;
        const unsigned tile = first_tile + turn, unit = begin + turn;
        for (;; ++sequence) {
            const unsigned here = tiles * count(args, extent, sequence, tile_kv);
            if (own ? unit < before + here : tile < static_cast<unsigned>((sequence + 1) * tiles)) break;
            before += here;
        }
        const KeyBlocks blocks = blocks_of(extent_of(args, extent, sequence), tile_kv);
        if constexpr (own) {
            const unsigned pieces = static_cast<unsigned>(pieces_of(blocks.count(), least)), within = (unit - before) / pieces,
                           part = unit - before - within * pieces;
            return {tile_of(args, within),
                    {piece_of(blocks, static_cast<int>(part), least), unit - part, static_cast<int>(part), static_cast<int>(pieces)}};
        }
        const unsigned within = tile - sequence * tiles, size = static_cast<unsigned>(blocks.count()), front = before + within * size;
        const unsigned from = begin > front ? begin - front : 0, to = end < front + size ? end - front : size;
        const unsigned first = part_with(front, all, parts), last = part_with(front + size - 1, all, parts);
        return {tile_of(args, within),
                {{blocks.first + static_cast<int>(from), blocks.first + static_cast<int>(to)},
                 first,
                 static_cast<int>(blockIdx.x - first),
                 static_cast<int>(last - first + 1)}};
    }

    /// Where tile number `tile` of all has its parts, of as many CTAs as there were; by all lanes of a warp. `blocks` and `part` mean nothing.
    static __device__ AttentionPiece of_tile(const AttentionArguments& args, const AttentionExtent& extent, unsigned tile, int tiles, int tile_kv, unsigned ctas) {
        constexpr unsigned everyone = 0xffffffff;
        const int sequences = sequences_of(args, tiles);
        if (tiles_first) tiles = 1;
        const int sequence = static_cast<int>(tile / tiles);
        const unsigned size = count(args, extent, sequence, tile_kv);
        unsigned sum = size * sequences, before = size * sequence;
        if (args.lengths) {
            sum = before = 0;
            for (int i = static_cast<int>(threadIdx.x % 32); i < sequences; i += 32) {
                const unsigned units = count(args, extent, i, tile_kv);
                sum += units, before += i < sequence ? units : 0;
            }
            for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(everyone, sum, other), before += __shfl_xor_sync(everyone, before, other);
        }
        const unsigned units = sum * tiles, front = before * tiles + tile % tiles * size;
        if (own) return {{}, front, 0, static_cast<int>(size)};
        const unsigned shares = min(units, ctas), first = part_with(front, units, shares), last = part_with(front + size - 1, units, shares);
        return {{}, first, 0, static_cast<int>(last - first + 1)};
    }

  private:
    static __device__ int sequences_of(const AttentionArguments& args, int tiles) { return tiles_first ? args.batches * tiles : args.batches; }
    __device__ int tile_of(const AttentionArguments& args, unsigned within) const { return tiles_first ? sequence / args.batches : static_cast<int>(within); }
    __device__ void share() {
        parts = min(all, gridDim.x);  // of short sequences there are fewer blocks than CTAs
        const BlockShare mine = blockIdx.x < parts ? share_of(all, blockIdx.x, parts) : BlockShare{0, 0};
        begin = mine.begin, end = mine.end;
    }
};

}  // namespace rooftile
