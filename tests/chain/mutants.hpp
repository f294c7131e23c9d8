// Chains made wrong on purpose: one small mistake each, in the kernel's own text. What must catch each stands in
// tests/chain/device/wrong_on_purpose_test.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "tests/device/mutant.hpp"

namespace rooftile::chain_mutants {

inline constexpr std::string_view kernel = "kernels/chain/sm90_chain.cuh", roles = "kernels/matrix/back_to_back.cuh",
                                  fragment = "kernels/matrix/fragment.cuh";

// Several blocks a tile of which the last one ends within, more tiles than any GPU has SMs, a last tile that is not full.
inline constexpr const char* whole = "--m 40000 --d 128 --ff 200 --act relu --residual --form on_chip --tile-m 128 --tile-ff 64 --stages 2";
inline constexpr const char* smooth = "--m 40000 --d 128 --ff 200 --act gelu --form on_chip --tile-m 128 --tile-ff 64 --stages 2";
inline constexpr const char* pairs = "--m 40000 --d 128 --ff 200 --act swiglu --form on_chip --tile-m 128 --tile-ff 64 --stages 2";

inline Mutant last_block_dropped() {
    return {"the last block of H is left out", whole, {{kernel, "return (args.ff + C.tile_ff - 1) / C.tile_ff;", "return args.ff / C.tile_ff;"}}};
}
inline Mutant first_block_added_to_the_tile_before() {
    return {"a tile's first block is added to the tile before", whole, {{roles, "e_at.stage, Between::may_be_empty || block > 1);", "e_at.stage, 1);"}}};
}
inline Mutant neighbours_columns() {
    return {"a block of H meets the columns of W2 before its own",
            smooth,
            {{kernel, "map_w2, block * C.tile_ff + box * C.box_elements", "map_w2, (block > 0 ? block - 1 : 0) * C.tile_ff + box * C.box_elements"}}};
}
inline Mutant residual_of_half() {
    return {"the residual is added to the upper half of a pair alone", whole, {{kernel, "sums[2 * i] += ptx::widen<C.type>(words[i] & 0xffffu);", ""}}};
}
// By tanh it would pass: the two differ by less than an element's rounding and what gelu_16 states of its error.
inline Mutant sigmoid_gelu() {
    return {"gelu by a sigmoid stands for gelu by erf", smooth,
            {{kernel, "return expression::gelu_16<C.type>(x);", "return x * expression::sigmoid(1.702f * x);"}}};
}
inline Mutant gates_and_ups_swapped() {
    return {"the function is of the ups", pairs,
            {{kernel, "sums[0][i] = chain_act<C>(sums[0][i]);\n        if constexpr (products == 2) sums[0][i] *= sums[1][i];",
              "if constexpr (products == 2) sums[0][i] *= chain_act<C>(sums[1][i]);\n        else sums[0][i] = chain_act<C>(sums[0][i]);"}}};
}
inline Mutant row_past_the_last() {
    return {"a row behind the last is written", whole, {{kernel, "const bool inside = at < args.m;", "const bool inside = at <= args.m;"}}};
}
inline Mutant counter_left() {
    return {"the counter of tiles is not zero behind a launch", whole,
            {{"kernels/pipeline/scheduler.cuh", "atomicInc(counter_, tiles_ - 1)", "atomicInc(counter_, 0xfffffffe)"}}};
}
inline Mutant cut_not_rounded() {
    return {"H is cut to 16 bits, not rounded", whole,
            {{fragment, "pairs[i] = ptx::pack2<type>(values[2 * i], values[2 * i + 1]);",
              "pairs[i] = __float_as_uint(values[2 * i]) >> 16 | (__float_as_uint(values[2 * i + 1]) & 0xffff0000u);"}}};
}

// Both products in one kernel: chunks that use each other's room, rows that two of the second product's tiles share, a residual.
inline constexpr std::string_view two_gemms = "kernels/gemm/sm90_two_gemms.cuh";
inline constexpr const char* queued = "--m 40001 --d 256 --ff 520 --act relu --residual --form persistent --chunk-rows 4000 --room-chunks 2";

inline Mutant rows_not_waited_for() {
    return {"a tile of the second product waits for none of its rows", queued, {{two_gemms, "ptx::load_acquire(args.ready + block) < all", "ptx::load_acquire(args.ready + block) > all"}}};
}
inline Mutant place_taken_too_soon() {
    return {"a chunk is stored where another one is read yet", queued,
            {{two_gemms, "const int before = chunk - args.room_chunks;\n    if (before < 0) return;", "return;\n    const int before = chunk - args.room_chunks;"}}};
}
inline Mutant next_tile_left() {
    return {"the queue's counter is not zero behind a launch", queued, {{"kernels/pipeline/scheduler.cuh", "atomicInc(counter, tiles + gridDim.x - 1)", "atomicInc(counter, 0xfffffffe)"}}};
}
inline Mutant chunk_read_from_its_own_rows() {
    return {"the second product reads H as if it had room for all rows", queued, {{two_gemms, "{origin.m % args.room_rows, origin.n, 0}, queue);", "origin, queue);"}}};
}

// In turns, and two stages of X: who is ahead meets its own turn of the tile before.
inline constexpr const char* in_turns = "--m 65536 --d 64 --ff 1024 --act relu --form on_chip --tile-m 128 --tile-ff 64 --stages 3 --x-stages 2 --schedule pingpong";
inline Mutant first_turn_kept() {
    return {.name = "nobody has the first turn", .problem = in_turns, .replacements = {{roles, "    if constexpr (across_tiles) order.begin();\n", ""}}, .hangs = true};
}
inline Mutant stored_rows_not_counted() {
    return {.name = "a tile of H that is stored is not counted",
            .problem = queued,
            .replacements = {{two_gemms, "    ptx::count_release(ready);\n", ""}},
            .hangs = true};
}

inline std::vector<Mutant> all() {
    return {first_turn_kept(), stored_rows_not_counted(), last_block_dropped(), first_block_added_to_the_tile_before(), neighbours_columns(), residual_of_half(), sigmoid_gelu(),
            gates_and_ups_swapped(), row_past_the_last(), counter_left(), cut_not_rounded(), rows_not_waited_for(), place_taken_too_soon(), next_tile_left(), chunk_read_from_its_own_rows()};
}

}  // namespace rooftile::chain_mutants
