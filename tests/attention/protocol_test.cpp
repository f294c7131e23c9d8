// The roles of sm90_attention meet in any order of events: for every ring, mask and packing, with and without turns, that a plan can choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "text.hpp"

#include "kernels/attention/sm90_attention.cuh"
#include "kernels/attention/sm90_latent_attention.cuh"

namespace rooftile {
namespace {

template <Sm90AttentionConfig C>
void expect_no_fault(AttentionExtent extent, std::vector<int> begins = {}) {
    const int sequences = begins.empty() ? 0 : int(begins.size()) - 1, rows = extent.queries;
    std::vector<uint4> o(std::size_t(rows) * C.dim_v / 8);
    unsigned counter = 0;
    AttentionArguments args{};
    args.extent = extent, args.heads = args.kv_heads = args.batches = args.section_heads = 1;
    args.dim = C.dim, args.dim_v = C.dim_v, args.o = o.data(), args.o_strides = {C.dim_v, 0, 0}, args.counter = &counter;
    args.cu_seqlens = begins.data(), args.sequences = sequences;
    const auto found = protocol::explore(record(C.consumer_warpgroups(), [&] {
        counter = 0;
        sm90_attention<C>({}, {}, {}, args);
    }));
    EXPECT_EQ(found.fault, "") << C.consumer_warpgroups() << " warpgroups, " << C.stages << " stages, " << (C.turns ? "in turns, " : "")
                               << rows << " queries, " << extent.keys << " keys, " << sequences << " sequences; " << found.states << " states";
}

/// The tiles of `batches` batches shared out to CTAs, of which each runs.
template <int tile_q, int stages, int piece = 0>
void expect_shares(int queries, int keys, int batches, unsigned splits) {
    constexpr Sm90AttentionConfig C{
        .tile_q = tile_q, .tile_kv = 16, .dim = 64, .dim_v = 64, .stages = stages, .turns = false, .split = true, .piece = piece};
    std::vector<float> partials(std::size_t(std::max<unsigned>(2 * splits, 32)) * tile_q * (64 + 4));
    std::vector<unsigned> arrived(32);
    std::vector<uint4> o(std::size_t(batches * queries) * 64 / 8);
    AttentionArguments args{};
    args.extent = {AttentionMask::none, queries, keys, 0}, args.heads = args.kv_heads = args.section_heads = 1, args.batches = batches;
    args.dim = args.dim_v = 64, args.o = o.data(), args.o_strides = {64, 0, 64 * queries};
    args.partials = partials.data(), args.arrived = arrived.data();
    for (unsigned cta = 0; cta < splits; ++cta) {
        const auto found = protocol::explore(record(C.consumer_warpgroups(), [&] {
            gridDim.x = splits, blockIdx.x = cta;
            sm90_attention<C>({}, {}, {}, args);
        }));
        EXPECT_EQ(found.fault, "") << batches << " batches of " << queries << " queries and " << keys << " keys, tiles of " << tile_q << ", " << stages
                                   << " stages, CTA " << cta << " of " << splits << "; " << found.states << " states";
    }
}

// Two tiles: each part of one leaves, and is counted; a CTA ends one tile and begins the other.
TEST(AttentionProtocol, KeysInParts) {
    for (const unsigned splits : {2u, 3u, 5u})
        expect_shares<64, 1>(73, 80, 1, splits), expect_shares<64, 2>(73, 80, 1, splits), expect_shares<128, 2>(137, 80, 1, splits);
}

// A CTA goes through whole tiles of one, two and three blocks: the next one's Q comes while this one is computed, and where it is is told
// beside this one's.
TEST(AttentionProtocol, ManyTilesOfFewBlocks) {
    for (const unsigned splits : {1u, 2u, 3u}) {
        expect_shares<64, 1>(3, 16, 7, splits), expect_shares<64, 2>(3, 16, 7, splits), expect_shares<64, 4>(3, 16, 7, splits);
        expect_shares<64, 2>(3, 32, 4, splits), expect_shares<64, 3>(3, 48, 3, splits), expect_shares<128, 2>(70, 16, 5, splits);
    }
}

// The same where a tile's cuts are its own: pieces of two blocks, the last of one.
TEST(AttentionProtocol, PiecesOfATilesOwn) {
    for (const unsigned splits : {1u, 2u, 5u})
        expect_shares<64, 1, 2>(73, 80, 1, splits), expect_shares<64, 2, 2>(3, 80, 3, splits), expect_shares<128, 2, 2>(137, 48, 1, splits);
}

/// The same of latent rows, whose two warpgroups meet twice a block.
template <int stages, int piece = 0, bool apart = false, AttentionMask mask = AttentionMask::none>
void expect_latent_shares(int rows, int keys, int batches, unsigned splits) {
    constexpr Sm90AttentionConfig C{.tile_q = 64, .tile_kv = 32, .dim = 128, .dim_v = 128, .stages = stages, .turns = false, .mask = mask, .split = true, .grouped = true,
                                    .piece = piece, .combine_apart = apart, .latent = true};
    std::vector<float> partials(std::size_t(std::max<unsigned>(2 * splits, 32)) * 64 * (128 + 4));
    std::vector<unsigned> arrived(32);
    std::vector<uint4> o(std::size_t(batches * rows) * 128 / 8);
    AttentionArguments args{};
    args.extent = {mask, rows, keys, 0, 1}, args.heads = args.kv_heads = args.section_heads = 1, args.batches = batches;
    args.dim = args.dim_v = 128, args.o = o.data(), args.o_strides = {128, 0, 128 * rows};
    args.partials = partials.data(), args.arrived = arrived.data();
    for (unsigned cta = 0; cta < splits; ++cta) {
        const auto found = protocol::explore(record(C.consumer_warpgroups(), [&] {
            gridDim.x = splits, blockIdx.x = cta;
            sm90_latent_attention<C>({}, {}, args);
        }));
        EXPECT_EQ(found.fault, "") << batches << " batches of " << rows << " rows and " << keys << " latent keys, " << stages << " stages, CTA " << cta << " of " << splits
                                   << "; " << found.states << " states";
    }
}

// Tiles in parts, whole tiles one after the other, cuts of a tile's own, parts that another kernel adds up.
TEST(AttentionProtocol, LatentRows) {
    for (const unsigned splits : {1u, 2u, 5u}) {
        expect_latent_shares<1>(73, 160, 1, splits), expect_latent_shares<2>(73, 160, 1, splits), expect_latent_shares<4>(73, 160, 1, splits);
        expect_latent_shares<1>(3, 32, 6, splits), expect_latent_shares<2>(3, 32, 6, splits), expect_latent_shares<3>(3, 96, 3, splits);
        expect_latent_shares<2, 2>(73, 160, 1, splits), expect_latent_shares<2, 0, true>(73, 160, 2, splits);
        expect_latent_shares<2, 0, false, AttentionMask::causal>(73, 160, 2, splits);
    }
}

// All CTAs together take each block of each tile once; and where cuts are a tile's own, they are the same whatever else there is.
template <int least, bool tiles_first = false>
void expect_each_block_once(int tiles, int batches, int keys, unsigned splits) {
    AttentionArguments args{};
    args.extent = {AttentionMask::none, 1, keys, 0}, args.batches = batches;
    const int blocks = (keys + 15) / 16;
    std::vector<int> taken(std::size_t(batches * tiles * blocks));
    gridDim.x = splits;
    for (unsigned cta = 0; cta < splits; ++cta) {
        blockIdx.x = cta;
        AttentionTurns<least, tiles_first> turns;
        turns.prepare(args, args.extent, tiles, 16);
        for (unsigned turn = 0; turn < turns.turns; ++turn) {
            const AttentionTurn at = turns.take(args, args.extent, turn, tiles, 16);
            const int tile = (tiles_first ? turns.sequence % batches : turns.sequence) * tiles + at.tile;
            for (int block = at.piece.blocks.first; block < at.piece.blocks.end; ++block) ++taken.at(std::size_t(tile * blocks + block));
            EXPECT_GE(at.piece.part, 0);
            EXPECT_LT(at.piece.part, at.piece.parts);
            if (least == 0) continue;
            const int pieces = pieces_of(blocks, least);
            EXPECT_EQ(at.piece.parts, pieces);
            EXPECT_EQ(at.piece.first_part, unsigned((tiles_first ? turns.sequence : tile) * pieces));
            EXPECT_EQ(at.piece.blocks.first, at.piece.part * blocks_of_piece(blocks, least));
        }
    }
    gridDim.x = 1, blockIdx.x = 0;
    for (const int times : taken)
        ASSERT_EQ(times, 1) << tiles << " tiles, " << batches << " batches, " << keys << " keys, " << splits << " CTAs";
}

TEST(AttentionProtocol, EachBlockIsTakenOnce) {
    for (const unsigned splits : {1u, 3u, 7u, 132u})
        for (const int keys : {1, 16, 17, 500, 5000})
            for (const int tiles : {1, 5})
                expect_each_block_once<0>(tiles, 4, keys, splits), expect_each_block_once<3>(tiles, 4, keys, splits), expect_each_block_once<0, true>(tiles, 4, keys, splits),
                    expect_each_block_once<3, true>(tiles, 4, keys, splits);
}

// Two tiles of each of five sequences over 132 CTAs: those of one tile go through the same blocks as those of the other.
TEST(AttentionProtocol, TilesThatShareKeysReadThemTogether) {
    AttentionArguments args{};
    args.extent = {AttentionMask::none, 128, 16000, 0, 64}, args.heads = 2, args.batches = 5;
    gridDim.x = 132;
    const auto blocks_of = [&](unsigned cta) {
        blockIdx.x = cta;
        AttentionTurns<0, true> turns;
        turns.prepare(args, args.extent, 2, 64);
        std::vector<int> out;
        for (unsigned turn = 0; turn < turns.turns; ++turn) {
            const AttentionTurn at = turns.take(args, args.extent, turn, 2, 64);
            for (int block = at.piece.blocks.first; block < at.piece.blocks.end; ++block) out.push_back(turns.sequence % 5 * 1000 + block);
        }
        return out;
    };
    for (unsigned cta = 0; cta < 66; ++cta) EXPECT_EQ(blocks_of(cta), blocks_of(cta + 66)) << cta;
    gridDim.x = 1, blockIdx.x = 0;
}

template <int tile_q, int stages, bool turns, AttentionMask mask, bool packed = false>
constexpr Sm90AttentionConfig config{.tile_q = tile_q, .tile_kv = 16, .dim = 64, .dim_v = 64, .stages = stages, .turns = turns, .mask = mask,
                                     .packed = packed};

template <int tile_q, int stages, bool turns>
void expect_masks() {
    // Three tiles of one, two and three blocks; of causal ones the second has more blocks than the first, and some see nothing.
    for (const int blocks : {1, 2, 3}) expect_no_fault<config<tile_q, stages, turns, AttentionMask::none>>({AttentionMask::none, 3 * tile_q, 16 * blocks, 0});
    expect_no_fault<config<tile_q, stages, turns, AttentionMask::causal>>({AttentionMask::causal, 3 * tile_q, 2 * tile_q + 16, 0});
    expect_no_fault<config<tile_q, stages, turns, AttentionMask::causal>>({AttentionMask::causal, 3 * tile_q, 40, 0});
    expect_no_fault<config<tile_q, stages, turns, AttentionMask::window>>({AttentionMask::window, 2 * tile_q, 2 * tile_q, 24});
    // Sequences of no row, of less than a tile, and of some tiles.
    expect_no_fault<config<tile_q, stages, turns, AttentionMask::none, true>>({AttentionMask::none, tile_q + 43, tile_q + 43, 0}, {0, 20, 20, 43, tile_q + 43});
}

template <int tile_q, bool turns>
void expect_rings() {
    expect_masks<tile_q, 1, turns>();
    expect_masks<tile_q, 2, turns>();
    expect_masks<tile_q, 3, turns>();
    expect_masks<tile_q, 4, turns>();
}

TEST(AttentionProtocol, OneWarpgroup) { expect_rings<64, true>(); }
TEST(AttentionProtocol, TwoWarpgroups) {
    expect_rings<128, false>();
    expect_rings<128, true>();
}
TEST(AttentionProtocol, ThreeWarpgroups) {
    expect_rings<192, false>();
    expect_rings<192, true>();
}

}  // namespace
}  // namespace rooftile
