// What a query sees, and which blocks a tile goes through: against counting by hand and by brute force.
#include "kernels/attention/attention_mask.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "rooftile/attention/problem.hpp"
#include "rooftile/core/random.hpp"

namespace rooftile {
namespace {

/// The definition, one pair at a time: query i stands at key i + T - S.
bool sees(AttentionMask mask, int queries, int keys, int window, int i, int key) {
    const int place = i + keys - queries;
    if (key < 0 || key >= keys) return false;
    if (mask == AttentionMask::none) return true;
    return key <= place && (mask == AttentionMask::causal || key > place - window);
}

TEST(AttentionMask, BoundsAreTheDefinition) {
    Random random(1);
    for (int i = 0; i < 300; ++i) {
        const AttentionExtent e{AttentionMask(random.pick(3)), int(random.whole(1, 40)), int(random.whole(1, 40)),
                                int(random.whole(1, 50))};
        for (int q = 0; q < e.queries; ++q)
            for (int key = 0; key < e.keys; ++key)
                EXPECT_EQ(key >= e.first_key(q) && key < e.end_key(q), sees(e.mask, e.queries, e.keys, e.window, q, key))
                    << int(e.mask) << " " << e.queries << "x" << e.keys << " window " << e.window << ": " << q << ", " << key;
    }
}

// Every tile of every sequence has one place, found again by what the device looks up; the places left over are of no sequence's rows.
TEST(AttentionMask, PackedSequencesHaveAPlaceForEveryTile) {
    Random random(3);
    for (int i = 0; i < 300; ++i) {
        const int sequences = int(random.whole(1, 20)), tile_q = int(64 * random.whole(1, 3));
        std::vector<int> begins{0};
        for (int s = 0; s < sequences; ++s) begins.push_back(begins.back() + int(random.one_in(4) ? 0 : random.whole(1, 400)));
        std::set<std::pair<int, int>> tiles;
        const int places = attention_place(begins.back(), sequences, tile_q);
        for (int place = 0; place < places; ++place) {
            const int sequence = attention_sequence(begins.data(), sequences, place, tile_q);
            const int tile = place - attention_place(begins[std::size_t(sequence)], sequence, tile_q);
            const int length = begins[std::size_t(sequence) + 1] - begins[std::size_t(sequence)];
            if (tile * tile_q < length) { EXPECT_TRUE(tiles.emplace(sequence, tile).second); }
        }
        std::size_t wanted = 0;
        for (int s = 0; s < sequences; ++s)
            wanted += std::size_t((begins[std::size_t(s) + 1] - begins[std::size_t(s)] + tile_q - 1) / tile_q);
        EXPECT_EQ(tiles.size(), wanted);
        EXPECT_LE(std::size_t(places), wanted + std::size_t(sequences));
    }
}

// Every key that a query of a tile sees is in the tile's blocks; a block that is called clear every query sees whole; and a tile has
// no block that none of its queries sees.
TEST(AttentionMask, BlocksHoldWhatIsSeenAndNoMore) {
    Random random(2);
    for (int i = 0; i < 300; ++i) {
        const AttentionExtent e{AttentionMask(random.pick(3)), int(random.whole(1, 200)), int(random.whole(1, 200)),
                                int(random.whole(1, 250))};
        const int tile_q = int(8 * random.whole(1, 6)), tile_kv = int(8 * random.whole(1, 6));
        for (int q = 0; q < e.queries; q += tile_q) {
            const KeyBlocks blocks = e.blocks(q, tile_q, tile_kv), clear = e.clear(q, tile_q, tile_kv);
            for (int block = -1; block <= (e.keys + tile_kv - 1) / tile_kv; ++block) {
                bool any = false, all = true;
                for (int row = q; row < std::min(q + tile_q, e.queries); ++row)
                    for (int key = block * tile_kv; key < (block + 1) * tile_kv; ++key) {
                        const bool seen = sees(e.mask, e.queries, e.keys, e.window, row, key);
                        any |= seen, all &= seen;
                    }
                EXPECT_EQ(any, block >= blocks.first && block < blocks.end) << q << ", block " << block;
                if (any) { EXPECT_EQ(all, block >= clear.first && block < clear.end) << q << ", block " << block; }
            }
        }
    }
}

TEST(AttentionMask, PairsAreCounted) {
    Random random(3);
    for (int i = 0; i < 300; ++i) {
        AttentionProblem p;
        p.mask = AttentionMask(random.pick(3));
        p.queries = random.whole(1, 60), p.keys = random.whole(1, 60), p.window = random.whole(1, 70);
        double pairs = 0;
        for (int q = 0; q < p.queries; ++q)
            for (int key = 0; key < p.keys; ++key) pairs += sees(p.mask, int(p.queries), int(p.keys), int(p.window), q, key);
        EXPECT_EQ(p.visible_pairs(), pairs) << mask_text(p) << " " << p.queries << "x" << p.keys;
    }
}

// Every tile once, whatever the sections; with a mask the last rows, which see most, first within a section.
TEST(AttentionTiles, EachComesOnceAndTheLongestFirst) {
    Random random(4);
    for (int i = 0; i < 100; ++i) {
        const int q_tiles = int(random.whole(1, 9)), heads = int(random.whole(1, 7)), batches = int(random.whole(1, 4));
        const int section = int(random.whole(1, heads * batches));
        const bool last_first = random.coin();
        std::set<std::tuple<int, int, int>> seen;
        int previous_section = 0, previous_row = -1;
        for (int index = 0; index < q_tiles * heads * batches; ++index) {
            const AttentionTile t = attention_tile(index, q_tiles, heads, batches, section, last_first);
            EXPECT_TRUE(seen.emplace(t.q_tile, t.head, t.batch).second);
            EXPECT_TRUE(t.q_tile >= 0 && t.q_tile < q_tiles && t.head >= 0 && t.head < heads && t.batch >= 0 && t.batch < batches);
            const int of = (t.batch * heads + t.head) / section;
            EXPECT_GE(of, previous_section);
            if (of == previous_section && previous_row >= 0) {
                EXPECT_TRUE(last_first ? t.q_tile <= previous_row : t.q_tile >= previous_row);
            }
            previous_section = of, previous_row = t.q_tile;
        }
    }
}

}  // namespace
}  // namespace rooftile
