// Which keys a query sees, where a tile of queries begins and ends among them, and the order of tiles. On host and device: the
// planner counts blocks by the same lines as the kernel walks them.
#pragma once

namespace rooftile {

/// Queries stand at the end of the keys: query i of S is at key i + T - S of T.
enum class AttentionMask : unsigned char {
    none,    ///< every key
    causal,  ///< keys up to its own place
    window,  ///< the last `window` of those
};

/// Blocks [first, end) of `tile_kv` keys that some query of a tile sees; first == end: none does.
struct KeyBlocks {
    int first, end;
    constexpr int count() const { return end - first; }
};

/// All blocks of all tiles, one behind the other, in `parts` parts that are alike but for one block: part number `part` has [begin, end).
/// blocks * parts is below 2^32.
struct BlockShare {
    unsigned begin, end;
};
constexpr BlockShare share_of(unsigned blocks, unsigned part, unsigned parts) { return {blocks * part / parts, blocks * (part + 1) / parts}; }
/// Which part has that block.
constexpr unsigned part_with(unsigned block, unsigned blocks, unsigned parts) { return ((block + 1) * parts - 1) / blocks; }

constexpr int most_pieces_of_a_tile = 128;
/// Where a tile's cuts follow from its own blocks alone: blocks of each of its pieces but the last. `least` of them, or more where pieces
/// would be beyond what is added up.
constexpr int blocks_of_piece(int blocks, int least) {
    const int wanted = (blocks + most_pieces_of_a_tile - 1) / most_pieces_of_a_tile;
    return wanted > least ? wanted : least;
}
/// The most pieces that any number of blocks up to `blocks` is cut in; more blocks may be cut in fewer.
constexpr int most_pieces_up_to(int blocks, int least) {
    const int pieces = (blocks + least - 1) / least;
    return pieces < most_pieces_of_a_tile ? pieces : most_pieces_of_a_tile;
}
constexpr int pieces_of(int blocks, int least) {
    const int each = blocks_of_piece(blocks, least);
    return (blocks + each - 1) / each;
}
constexpr KeyBlocks piece_of(KeyBlocks all, int piece, int least) {
    const int each = blocks_of_piece(all.count(), least), first = all.first + piece * each;
    return {first, first + each < all.end ? first + each : all.end};
}

/// Of a problem of `queries` x `keys`. Where heads that share keys lie in one tile, its rows are a query's `group` heads, then the next one's,
/// and `queries` counts rows.
struct AttentionExtent {
    AttentionMask mask;
    int queries, keys, window, group = 1;

    /// Key that row `i` stands at; below 0 where it sees nothing.
    constexpr int place(int i) const { return i / group + (keys - queries / group); }
    /// Keys [first_key(i), end_key(i)) are what query `i` sees.
    constexpr int end_key(int i) const {
        if (mask == AttentionMask::none || place(i) + 1 > keys) return keys;
        return place(i) < 0 ? 0 : place(i) + 1;
    }
    constexpr int first_key(int i) const {
        const int first = mask == AttentionMask::window ? place(i) + 1 - window : 0;
        return first < 0 ? 0 : first;
    }
    /// Of the queries [q, q + tile_q), those beyond the last one left out.
    constexpr KeyBlocks blocks(int q, int tile_q, int tile_kv) const {
        const int last = q + tile_q < queries ? q + tile_q - 1 : queries - 1;
        const int end = (end_key(last) + tile_kv - 1) / tile_kv, first = first_key(q) / tile_kv;
        return {first < end ? first : end, end};
    }
    /// Of those the ones whose keys every query of the tile sees: the others need the mask.
    constexpr KeyBlocks clear(int q, int tile_q, int tile_kv) const {
        const int last = q + tile_q < queries ? q + tile_q - 1 : queries - 1;
        return {(first_key(last) + tile_kv - 1) / tile_kv, end_key(q) / tile_kv};
    }
};

/// Blocks of a tile that need the mask: `clear` of the same tile are those that do not, as far as the tile has them.
constexpr int masked_blocks(KeyBlocks blocks, KeyBlocks clear) {
    const int first = clear.first > blocks.first ? clear.first : blocks.first, end = clear.end < blocks.end ? clear.end : blocks.end;
    return blocks.count() - (end > first ? end - first : 0);
}

/// Rows of a tile of `tile_q` that are used: whole queries.
constexpr int rows_of_tile(int tile_q, int group) { return tile_q / group * group; }

/// A tile of queries of one head of one batch. Of packed sequences there is one batch, and the sequence begins at `first_row`.
struct AttentionTile {
    int q_tile, head, batch;
    int first_row = 0;
};

/// Packed sequences are cut into tiles before their lengths are known to the host: sequence `sequence`, which begins at row `first_row`,
/// has the tile places from this one up to the next sequence's. That is as many as it has tiles, or one more.
constexpr int attention_place(int first_row, int sequence, int tile_q) { return first_row / tile_q + sequence; }

/// Which of `sequences`, which begin at the rows `begins`, a tile place is of: the last one that begins at or before it.
constexpr int attention_sequence(const int* begins, int sequences, int place, int tile_q) {
    int sequence = 0, behind = sequences;
    while (behind - sequence > 1) {
        const int middle = (sequence + behind) / 2;
        if (attention_place(begins[middle], middle, tile_q) <= place) sequence = middle;
        else behind = middle;
    }
    return sequence;
}

/// Tile number `index`. Heads are taken in sections whose keys and values L2 holds together, all tiles of a section before the
/// next one; in a section the tiles with most blocks come first, so that the last to run are short.
constexpr AttentionTile attention_tile(int index, int q_tiles, int heads, int batches, int section_heads, bool last_first) {
    const int all = heads * batches;
    const int section = index / (section_heads * q_tiles);
    const int begin = section * section_heads;
    const int here = begin + section_heads < all ? section_heads : all - begin;
    const int within = index - begin * q_tiles;
    const int turn = within / here, head = begin + within % here;
    return {last_first ? q_tiles - 1 - turn : turn, head % heads, head / heads};
}

}  // namespace rooftile
