// Attention made wrong on purpose: one small mistake each, in the kernel's own text. What must catch each stands in
// tests/attention/device/wrong_on_purpose_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "tests/device/mutant.hpp"

namespace rooftile::attention_mutants {

inline constexpr std::string_view kernel = "kernels/attention/sm90_attention.cuh", mask = "kernels/attention/attention_mask.hpp",
                                  split = "kernels/attention/attention_split.cuh", turn = "kernels/attention/attention_turn.cuh",
                                  softmax = "kernels/attention/online_softmax.cuh",
                                  roles = "kernels/matrix/back_to_back.cuh", latent = "kernels/attention/sm90_latent_attention.cuh";

// Several blocks a tile, heads that share keys, rows that fill no tile.
inline constexpr const char* plain = "--batch 2 --heads 4 --kv-heads 2 --q 300 --kv 500 --dim 64 --tile-q 128 --tile-kv 128 --stages 2";
inline constexpr const char* causal =
    "--batch 2 --heads 4 --kv-heads 2 --q 300 --kv 500 --dim 64 --mask causal --tile-q 128 --tile-kv 128 --stages 2";
inline constexpr const char* with_log =
    "--batch 2 --heads 4 --kv-heads 2 --q 300 --kv 500 --dim 64 --log-sum-exp on --tile-q 128 --tile-kv 128 --stages 2";

// More tiles than any GPU has SMs.
inline constexpr const char* many = "--batch 4 --heads 64 --kv-heads 64 --q 200 --kv 130 --dim 64 --tile-q 128 --tile-kv 128 --stages 2";

// Sequences that end within a block, one without rows among them.
inline constexpr const char* packed =
    "--lengths 70,0,300,1,129,511 --heads 4 --kv-heads 2 --dim 64 --tile-q 128 --tile-kv 128 --stages 2";

// One query of each of four heads that share keys, whose keys are split; and rows of two tiles.
inline constexpr const char* cache = "--batch 3 --heads 8 --kv-heads 2 --q 1 --kv 1500 --dim 64 --splits 31 --tile-kv 64 --stages 2";
inline constexpr const char* rows_in_parts = "--heads 3 --q 100 --kv 900 --dim 64 --splits 7 --tile-q 64 --tile-kv 64 --stages 2";
inline constexpr const char* own_cuts = "--lengths 1500,0,300 --heads 8 --kv-heads 2 --q 2 --dim 64 --batch-invariant on --log-sum-exp on";
// Caches of unlike lengths whose keys lie in pages, of which the last is not full.
inline constexpr const char* pages =
    "--lengths 100,0,700,1,250 --heads 8 --kv-heads 2 --q 3 --dim 64 --page 32 --tile-kv 64 --stages 2";

// Latent rows: heads that fill half of a tile, in parts; and caches of unlike lengths.
inline constexpr const char* latent_rows = "--batch 2 --heads 32 --q 1 --kv 500 --dim 192 --dim-v 128 --latent on --log-sum-exp on --tile-kv 64 --splits 5";
inline constexpr const char* latent_apart = "--batch 2 --heads 32 --q 1 --kv 900 --dim 320 --dim-v 256 --latent on --tile-kv 64 --splits 7 --combine-apart on";
inline constexpr const char* latent_cache = "--lengths 100,0,700,1,250 --heads 16 --q 2 --dim 192 --dim-v 128 --latent on --page 32 --tile-kv 64";

inline constexpr const char* sloped =
    "--batch 2 --heads 4 --kv-heads 2 --q 300 --kv 500 --dim 64 --tile-q 128 --tile-kv 128 --stages 2 "
    "--score s=s+where(i-j>40.5,slope,0) --tensor slope:fp32[H]";

inline Mutant latent_values_of_the_other_columns() {
    return {"each warpgroup has the other one's columns of values",
            latent_rows,
            {{latent, "shared.k(stage) + warpgroup * boxes * C.box_bytes", "shared.k(stage) + (1 - warpgroup) * boxes * C.box_bytes"}}};
}
inline Mutant latent_rotary_part_left_out() {
    return {"scores lack what is behind the values in a key's row",
            latent_rows,
            {{latent, "multiply_by_columns<keys, C.dim, C.type>", "multiply_by_columns<keys, C.dim_v, C.type>"}}};
}
inline Mutant latent_maxima_of_one_warpgroup() {
    return {"each warpgroup's probabilities count from the greatest score of its own keys",
            latent_rows,
            {{latent, "most[half] = fmaxf(most[half], ptx::load_shared_float(shared.maxima(1 - warpgroup, place.row + 8 * half)));", ""}}};
}
inline Mutant latent_sum_of_one_warpgroup() {
    return {"rows are divided by the sum of half of their probabilities",
            latent_rows,
            {{latent, "rows.sum[half] += ptx::load_shared_float(shared.totals(1 - warpgroup, place.row + 8 * half));", ""}}};
}
inline Mutant latent_keys_behind_the_length() {
    return {"keys behind a cache's length are seen",
            latent_cache,
            {{latent, "if (masked)\n", "if (masked && block == -1)\n"}}};
}
inline Mutant latent_tail() {
    return {"what stands behind the keys of a page is multiplied by 0",
            latent_cache,
            {{latent, "if (left >= C.tile_kv) return;", "return;"}}};
}
inline Mutant latent_columns_added_up_twice() {
    return {"the kernel that adds parts up writes a row's first columns in the place of all",
            latent_apart,
            {{latent, "unit % chunks * C.combine_columns", "0"}}};
}
inline Mutant latent_parts_of_the_first_tile() {
    return {"the kernel that adds parts up takes each tile's from where a launch of fewer CTAs has them",
            latent_apart,
            {{latent, "of_sequence, C.tile_kv, ctas);", "of_sequence, C.tile_kv, ctas - 1);"}}};
}
inline Mutant part_left_out() {
    return {"the last part of the keys is not added",
            cache,
            {{split, "if (begin + i >= tile.parts) continue;", "if (begin + i >= tile.parts - 1) continue;"}}};
}
inline Mutant part_counted_twice() {
    return {"a block of keys is in two parts",
            cache,
            {{turn, "from = begin > front ? begin - front : 0", "from = begin > front ? begin - front - 1 : 0"}}};
}
inline Mutant parts_from_the_wrong_maximum() {
    return {"parts are added as if all counted from the same score",
            cache,
            {{split, "ptx::exp2_approx(weight[i] - most)", "1.0f"}}};
}
inline Mutant part_of_another_row() {
    return {"rows of a second tile are taken from the first one's parts",
            rows_in_parts,
            {{split, ": 2 * (first_part + i) + (i == 0 ? 1 : 0);", ": 2 * (first_part + i);"}}};
}
inline Mutant piece_twice() {
    return {"a tile's second piece begins a block early",
            own_cuts,
            {{mask, "first = all.first + piece * each;", "first = all.first + piece * each - (piece == 1 ? 1 : 0);"}}};
}
inline Mutant piece_in_the_first_ones_place() {
    return {"pieces of a tile are left in one place",
            own_cuts,
            {{split, "own ? first_part + i :", "own ? first_part :"}}};
}
/// Towards the first page: a row that met what is behind a cache's end would be computed again, and right; and pages in another order
/// give the same sums.
inline Mutant page_of_the_block_before() {
    return {"the table of pages is off by one",
            pages,
            {{kernel, "__ldg(table + (group + j * rows) / C.page)", "__ldg(table + max((group + j * rows) / C.page - 1, 0))"}}};
}
inline Mutant tail_of_a_page() {
    return {"what stands behind the keys of a page is multiplied by 0",
            pages,
            {{kernel, "if (left >= C.tile_kv) return;", "return;"}}};
}
inline Mutant heads_of_another_group() {
    return {"a tile has the heads that share another head's keys",
            pages,
            {{kernel, "tile.at.tile.head * args.extent.group, tile.at.q", "(tile.at.tile.head ^ 1) * args.extent.group, tile.at.q"}}};
}
inline Mutant length_of_another_sequence() {
    return {"sequences have the first one's length",
            pages,
            {{turn, "min(args.lengths[sequence], args.extent.keys)", "min(args.lengths[0], args.extent.keys)"}}};
}
inline Mutant place_of_the_other_row() {
    return {"a thread's lower row has its upper row's place in a score",
            sloped,
            {{softmax, "static_cast<float>(extent.place(query + 8))", "static_cast<float>(extent.place(query))"}}};
}
inline Mutant slope_of_another_head() {
    return {"a score takes the first head's number",
            sloped,
            {{kernel, "score.of_head(C.grouped ? place_of_row(at.extent, at.tile, row).head : at.tile.head)", "score.of_head(0)"}}};
}
inline Mutant first_key_of_the_next_sequence() {
    return {"the last queries of a sequence see the first key of the next one",
            packed,
            {{kernel, "return {tile, {C.mask, length, length, args.extent.window}", "return {tile, {C.mask, length, length + 1, args.extent.window}"}}};
}
inline Mutant nan_of_the_next_sequence() {
    return {"a NaN in V of the next sequence is not recomputed",
            packed,
            {{kernel, "constexpr bool hides = C.mask != AttentionMask::none || C.packed;", "constexpr bool hides = C.mask != AttentionMask::none;"}}};
}
inline Mutant rows_of_the_next_sequence() {
    return {"a sequence writes a row of the next one",
            packed,
            {{kernel, "const bool inside = row < Sm90AttentionTiles<C>{args}.end_row(at);", "const bool inside = row <= Sm90AttentionTiles<C>{args}.end_row(at);"}}};
}

inline Mutant one_key_too_many() {
    return {"a query sees the key behind its own place",
            causal,
            {{mask, "return place(i) < 0 ? 0 : place(i) + 1;", "return place(i) < 0 ? 0 : place(i) + 1 < keys ? place(i) + 2 : keys;"}}};
}
inline Mutant one_key_too_few() {
    return {"a query does not see the key at its own place",
            causal,
            {{mask, "return place(i) < 0 ? 0 : place(i) + 1;", "return place(i) < 0 ? 0 : place(i);"}}};
}
inline Mutant last_block_dropped() {
    return {"the last block of keys that a tile goes through is left out",
            plain,
            {{mask, "return {first < end ? first : end, end};", "return {first + 1 < end ? first + 1 : first < end ? first : end, end};"}}};
}
inline Mutant rescaled_once_too_seldom() {
    return {"O is not rescaled behind its first block",
            plain,
            {{roles, "between.rescale(tile, sums);", "if (block > 1) between.rescale(tile, sums);"}}};
}
inline Mutant neighbours_keys() {
    return {"heads read their neighbour's keys",
            plain,
            {{kernel, "(map_k, shared, barrier, key(tile, i), tile.kv_head,", "(map_k, shared, barrier, key(tile, i), (tile.kv_head + 1) % args.kv_heads,"}}};
}
inline Mutant heads_dealt_round() {
    return {"heads share keys in turns instead of in groups",
            plain,
            {{kernel, "at.tile.head / queries_a_key_head};", "at.tile.head % args.kv_heads};"}}};
}
inline Mutant sum_from_before_the_last_block() {
    return {"a row's sum lacks its last block",
            plain,
            {{kernel, "tile.rescales = tile.softmax.take(scores[0], args.scale_log2, tile.shrink);\n",
              "const float sum0 = tile.softmax.sum[0], sum1 = tile.softmax.sum[1];\n"
              "        tile.rescales = tile.softmax.take(scores[0], args.scale_log2, tile.shrink);\n"
              "        if (overlapped && block == tile.blocks.first) tile.softmax.sum[0] = sum0 * tile.shrink[0], tile.softmax.sum[1] = sum1 * tile.shrink[1];\n"}}};
}
inline Mutant maximum_of_one_thread() {
    return {"a row's maximum is that of its first thread's columns alone, and its terms are cut off",
            plain,
            {{softmax, "return row_max(fmaxf(of_columns[0], of_columns[1]));",
              "return __shfl_sync(0xffffffff, fmaxf(of_columns[0], of_columns[1]), threadIdx.x % 32 / 4 * 4);"},
             {softmax, "more += score = ptx::exp2_approx(fmaf(score, scale_log2, -offset));",
              "more += score = fminf(1.0f, ptx::exp2_approx(fmaf(score, scale_log2, -offset)));"}}};
}
inline Mutant row_past_the_last() {
    return {"the row behind the last query is written",
            plain,
            {{kernel, "const bool inside = row < Sm90AttentionTiles<C>{args}.end_row(at);", "const bool inside = row < Sm90AttentionTiles<C>{args}.end_row(at) + 1;"}}};
}
inline Mutant hidden_nan() {
    return {"a NaN in V behind the mask is not recomputed",
            causal,
            {{kernel, "again = spoiled;", "again = 0;"}}};
}
inline Mutant log_of_base_two() {
    return {"the log-sum-exp is of base 2",
            with_log,
            {{kernel, "softmax.from[half] * ln2 + __logf(total)",
              "softmax.from[half] + __log2f(total)"}}};
}
inline Mutant counter_left() {
    return {"from the second launch on the first tiles are left out: the counter is not made 0 again",
            many,
            {{"kernels/pipeline/scheduler.cuh", "coming_ = counter_ ? teams + atomicInc(counter_, tiles_ - 1) : index_ + teams;",
              "coming_ = counter_ ? teams + atomicInc(counter_, 0xfffffffe) : index_ + teams;"}}};
}

inline Mutant first_turn_waited_for() {
    return {.name = "who has the first turn waits for it",
            .problem = many,
            .replacements = {{roles, "order.wait(!across_tiles && block == 1);", "order.wait(false);"}},
            .hangs = true};
}

inline std::vector<Mutant> all() {
    return {first_turn_waited_for(),
            one_key_too_many(),
            one_key_too_few(),
            last_block_dropped(),
            rescaled_once_too_seldom(),
            neighbours_keys(),
            heads_dealt_round(),
            sum_from_before_the_last_block(),
            maximum_of_one_thread(),
            row_past_the_last(),
            hidden_nan(),
            log_of_base_two(),
            counter_left(),
            first_key_of_the_next_sequence(),
            nan_of_the_next_sequence(),
            rows_of_the_next_sequence(),
            part_left_out(),
            part_counted_twice(),
            parts_from_the_wrong_maximum(),
            part_of_another_row(),
            piece_twice(),
            piece_in_the_first_ones_place(),
            page_of_the_block_before(),
            tail_of_a_page(),
            heads_of_another_group(),
            length_of_another_sequence(),
            place_of_the_other_row(),
            slope_of_another_head(),
            latent_values_of_the_other_columns(),
            latent_rotary_part_left_out(),
            latent_maxima_of_one_warpgroup(),
            latent_sum_of_one_warpgroup(),
            latent_keys_behind_the_length(),
            latent_tail(),
            latent_columns_added_up_twice(),
            latent_parts_of_the_first_tile()};
}

}  // namespace rooftile::attention_mutants
