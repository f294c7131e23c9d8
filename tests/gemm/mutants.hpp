// Matrix products made wrong on purpose. Each is one small mistake in the kernel's own text; what must catch it stands in
// tests/gemm/device/wrong_on_purpose_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/device/mutant.hpp"

namespace rooftile::gemm_mutants {

inline constexpr std::string_view matrix_tiles = "kernels/matrix/tile_scheduler.cuh",
                                  matrix_layout = "kernels/matrix/layout.cuh",
                                  matrix_load = "kernels/matrix/load_tiled.cuh",
                                  matrix_producer = "kernels/matrix/producer.cuh",
                                  main_loop = "kernels/matrix/main_loop.cuh",
                                  accumulators = "kernels/matrix/accumulators.cuh",
                                  store = "kernels/matrix/store.cuh",
                                  store_upright = "kernels/matrix/store_upright.cuh",
                                  store_transposed = "kernels/matrix/store_transposed.cuh",
                                  store_by_element = "kernels/matrix/store_by_element.cuh",
                                  store_rows = "kernels/matrix/store_rows.cuh",
                                  store_ragged = "kernels/matrix/store_ragged.cuh",
                                  split_k_cluster = "kernels/matrix/split_k_cluster.cuh",
                                  split_k_workspace = "kernels/matrix/split_k_workspace.cuh",
                                  matrix_consumer = "kernels/matrix/consumer.cuh",
                                  matrix_kernel = "kernels/matrix/matrix_kernel.cuh",
                                  matrix_epilogue = "kernels/matrix/epilogue.cuh",
                                  row_groups = "kernels/matrix/row_groups.cuh",
                                  tile_scheduler = "kernels/pipeline/scheduler.cuh",
                                  came_last = "kernels/pipeline/came_last.cuh",
                                  epilogue_pair = "kernels/matrix/epilogue_pair.cuh",
                                  sm80_kernel = "kernels/gemm/sm80_gemm.cuh",
                                  sm80_load = "kernels/gemm/sm80_gemm_load.cuh",
                                  sm80_products = "kernels/gemm/sm80_gemm_products.cuh",
                                  sm80_store = "kernels/gemm/sm80_gemm_store.cuh",
                                  few_kernel = "kernels/gemm/sm80_few_gemm.cuh",
                                  few_load = "kernels/gemm/sm80_few_gemm_load.cuh",
                                  few_arguments = "kernels/gemm/sm80_few_gemm_arguments.hpp",
                                  few_quantised = "kernels/gemm/sm90_few_quantised.cuh",
                                  many_quantised = "kernels/gemm/sm90_many_quantised.cuh",
                                  quantised_fragment = "kernels/gemm/quantised_fragment.cuh",
                                  quantised_store = "kernels/gemm/quantised_store.cuh",
                                  pack = "kernels/gemm/pack.cuh",
                                  unpack = "kernels/gemm/unpack_weights.cuh",
                                  widen = "kernels/gemm/widen_rows.cuh",
                                  convert = "kernels/ptx/matrix_store.cuh";

/// At which wrong values must show: from hardly any rounding to as much as the longest sums of today's models have.
inline constexpr std::array<std::int64_t, 4> depths = {512, 4096, 16384, 28672};

inline std::string with_k(const std::string& problem, std::int64_t k, int pieces = 1) {
    return problem + " --k " + std::to_string(k) + " --grid-split-k " + std::to_string(pieces);
}

// Four tiles, one a CTA; C leaves by TMA, which clips.
inline std::string plain(std::int64_t k = 512) {
    return with_k(
        "--m 256 --n 256 --tile 128x128x64 --consumer-warpgroups 2 --schedule cooperative --split-k 1 "
        "--swap-ab off --cluster 1x1 --epilogue-tile-n 64 --overlapped-epilogue off",
        k);
}
// C leaves from registers, and there is room between its rows; the last row of tiles begins in C's last row. Where K is not the
// contiguous side of A and B, tiles stand partly outside C; else the last would end with it.
inline const std::string tiles_outside = "--a-major m --b-major n --lda 264 --ldb 136 ";
inline std::string by_rows() {
    return with_k(tiles_outside + "--m 129 --n 130 --ldc 160 --tile 128x128x64 --schedule cooperative --split-k 1 --swap-ab off --cluster 1x1",
                  512);
}
// The same in clusters of two tiles, of which the fourth lies outside C as a whole.
inline std::string beyond_c() {
    return with_k(tiles_outside + "--m 257 --n 130 --ldc 160 --tile 128x128x64 --schedule cooperative --split-k 1 --swap-ab off --cluster 2x1",
                  512);
}
// More tiles than CTAs, and a tile leaves beside the next one's products.
inline std::string persistent() {
    return with_k(
        "--m 1792 --n 1792 --tile 128x128x64 --consumer-warpgroups 2 --schedule cooperative --split-k 1 "
        "--swap-ab off --cluster 1x1 --overlapped-epilogue on",
        512);
}
inline std::string pingpong() {
    return with_k("--m 1792 --n 1792 --tile 64x128x64 --schedule pingpong --split-k 1 --swap-ab off --cluster 1x1", 512);
}
inline std::string split() {
    return with_k("--m 256 --n 256 --tile 64x128x64 --split-k 4 --swap-ab off --cluster 1x1", 512);
}
/// Four tiles in three pieces of two parts each.
inline std::string pieces() {
    return with_k("--m 256 --n 256 --tile 128x128x64 --split-k 2 --swap-ab off --cluster 1x1", 1536, 3);
}
inline std::string multicast(std::int64_t k = 512) {
    return with_k("--m 256 --n 256 --tile 128x128x64 --schedule cooperative --split-k 1 --swap-ab off --cluster 2x1", k);
}
/// Rows of C on wgmma's n: two tiles of 136 hold 257, each in boxes of 48 rows of which the last holds 40.
inline std::string turned() {
    return with_k("--m 257 --n 256 --tile 136x128x64 --split-k 1 --swap-ab on --cluster 1x1", 512);
}
/// C has fewer rows than a tile.
inline std::string turned_by_element() {
    return with_k("--m 66 --n 129 --ldc 160 --tile 72x128x64 --split-k 1 --swap-ab on --cluster 1x1", 512);
}
inline std::string ampere(std::int64_t k = 512) {
    return with_k("--kernel sm80_gemm --m 256 --n 256 --tile 128x128x32", k);
}
inline std::string ampere_persistent() {
    return with_k("--kernel sm80_gemm --m 1792 --n 1792 --tile 128x128x32 --ctas-per-sm 1", 512);
}
/// An odd row of tiles begins in C's last row.
inline std::string ampere_ragged() {
    return with_k("--kernel sm80_gemm --m 129 --n 128 --tile 128x128x32", 512);
}
/// The last block of K is not full.
inline std::string ampere_short_block() {
    return with_k("--kernel sm80_gemm --m 128 --n 128 --tile 128x128x32", 200);
}

/// Rows of both operands begin at any element.
inline std::string few(int pieces = 1) { return with_k("--kernel sm80_few_gemm --m 9 --n 250 --tile 16x128x64", 1021, pieces); }

/// Two bf16 a word, each rounded to the four significant bits of fp8 e4m3. Its range is left out: a scale would keep it.
inline constexpr const char* to_fp8 = R"(
__device__ inline unsigned rounded_to_fp8(unsigned word) {
    return (word + 0x00070007u + (word >> 4 & 0x00010001u)) & 0xfff0fff0u;
}
)";
inline constexpr const char* to_bf16 = R"(
__device__ inline float rounded_to_bf16(float x) {
    const unsigned bits = __float_as_uint(x);
    return __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}
)";

/// A small product each, of which a whole tile's blocks fit the ring: what is early is all of it.
inline Mutant a_asked_for_early() {
    return {"A is asked for before the kernel in front has ended",
            with_k("--m 64 --n 1024 --tile 64x128x64 --split-k 1 --swap-ab off --cluster 1x1 --early-weights on", 256),
            {{matrix_producer, "        load.load_b(scheduler, stage, at_c, blocks.first + stage);\n",
              "        load.load_b(scheduler, stage, at_c, blocks.first + stage);\n"
              "        load.load_a(scheduler, stage, at_c, blocks.first + stage);\n"},
             {matrix_producer, "                    load.load_a(scheduler, at.stage, at_c, block);\n", ""}}};
}
inline Mutant few_a_asked_for_early() {
    return {"A of few rows is asked for before the kernel in front has ended",
            few() + " --early-weights on",
            {{few_kernel, "    ptx::launch_dependents();\n    ptx::wait_for_dependencies();\n", ""},
             {few_kernel, "    turner.ask(0, blocks.begin + on_their_way);\n",
              "    turner.ask(0, blocks.begin + on_their_way);\n    ptx::launch_dependents();\n    ptx::wait_for_dependencies();\n"}}};
}

inline Mutant few_turned_neighbours_swapped() {
    return {"of A every two elements of K are swapped",
            few(),
            {{few_load, "element[i][j][0] | unsigned(element[i][j][1]) << 16", "element[i][j][1] | unsigned(element[i][j][0]) << 16"}}};
}
inline Mutant few_turned_block_late() {
    return {"the second block of an m-major A is multiplied again in the place of the third",
            few() + " --a-major m",
            {{few_load, "next += C.tile_k * step();", "if (block != 1) next += C.tile_k * step();"}}};
}

inline Mutant tail_of_k_dropped() {
    return {"the tail of K is dropped",
            plain(520),
            {{matrix_tiles, "count(ceil_div(args.k, C.tile_k))", "count(args.k / C.tile_k)"}}};
}

// TMA brings zeros from beyond the tensor: the second block of 64 products is not summed.
inline Mutant block_dropped(std::int64_t k) {
    return {"a block of 64 products is dropped",
            plain(k),
            {{matrix_load, "block * C.tile_k, at_c.batch * args.a_step",
              "block == 1 ? 1 << 30 : block * C.tile_k, at_c.batch * args.a_step"}}};
}

/// Of 8 bits a block is 128 products.
inline std::string bytes(std::int64_t k) {
    return with_k("--types fp8_e4m3,fp8_e4m3,bf16 --m 256 --n 256 --tile 128x128x128 --consumer-warpgroups 2 --schedule cooperative --split-k 1 "
                  "--swap-ab off --cluster 1x1", k);
}
inline Mutant block_of_bytes_dropped(std::int64_t k) {
    return {"a block of 128 products of 8 bits is dropped", bytes(k), block_dropped(k).replacements};
}

/// Results of 8 bits, of which neighbours give each other two of every four.
inline Mutant neighbours_bytes_swapped() {
    return {"every other word of 8-bit results has its halves swapped",
            with_k("--types fp8_e4m3,fp8_e4m3,fp8_e4m3 --m 256 --n 256 --tile 128x128x128 --consumer-warpgroups 2 --schedule cooperative --split-k 1 "
                   "--cluster 1x1", 512),
            {{store_upright, "odd ? other | second << 16 :", "odd ? second | other << 16 :"}}};
}

// Scales of blocks: tiles of 128 columns, each of its own scale.
inline std::string in_scaled_blocks(const std::string& sizes) {
    return with_k("--types fp8_e4m3,fp8_e4m3,bf16 --scales block --tile 128x128x128 --consumer-warpgroups 2 --split-k 1 --cluster 1x1 " + sizes, 1024);
}
// Four tiles with an epilogue; what follows is its own.
inline std::string with_epilogue(const std::string& epilogue) {
    return "--m 256 --n 256 --k 512 --tile 128x128x64 --schedule cooperative --split-k 1 --swap-ab off --cluster 1x1 --epilogue " + epilogue;
}
inline Mutant bias_twice_on_the_last_column_tile() {
    return {"the bias is added twice in the last column of a thread's pairs in the last column tile",
            with_epilogue("d=acc+bias --tensor bias:bf16[N]"),
            {{"", "to[1] = element(second, widened(with.bias_pair[1]));",
              "to[1] = element(second, widened(with.bias_pair[1]));\n"
              "        if (at.column + at.right + 2 == at.columns) to[1] = element(to[1], widened(with.bias_pair[1]));"}}};
}
inline Mutant gate_and_up_swapped() {
    return {"gates stand where ups should, and ups where gates should",
            with_epilogue("d=silu(gate)*up --pairs interleaved"),
            {{matrix_epilogue, "sums.take(two, i, up);", "sums.take(two, i, gate + 0);"},
             {matrix_epilogue, "sums.take(two, i, gate);", "sums.take(two, i, up);"}}};
}
inline Mutant gate_and_up_swapped_in_the_last_columns() {
    return {"the same in the last eight columns of the result alone",
            with_epilogue("d=silu(gate)*up --pairs split"),
            {{matrix_epilogue, "ups[e] = two[0], ups[e + 1] = two[1];",
              "ups[e] = two[0], ups[e + 1] = two[1];\n"
              "            if (n + at / step * 8 + 8 == C.result_columns(args.n)) {\n"
              "                const float one = gates[e];\n"
              "                gates[e] = ups[e], ups[e] = one;\n"
              "            }"}}};
}
inline Mutant ups_of_the_next_gates() {
    return {"a tile of B begins eight pairs too late",
            with_epilogue("d=silu(gate)*up --pairs split"),
            {{matrix_load, "const int step = (n + slice * slice_extent) / (2 * C.pair_step);",
              "const int step = (n + slice * slice_extent) / (2 * C.pair_step) + (n > 0);"}}};
}
inline Mutant second_result_of_the_first() {
    return {"the second result is stored as the first one's values",
            with_epilogue("pre=acc+bias;d=gelu(pre);z=pre --tensor bias:bf16[N]"),
            {{matrix_epilogue, "put(e, x[2 * result], x[2 * result + 1]);", "put(e, x[0], x[1]);"}}};
}
inline Mutant second_result_missing() {
    return {"the second result is not written",
            with_epilogue("pre=acc+bias;d=gelu(pre);z=pre --tensor bias:bf16[N]"),
            {{matrix_epilogue, "if constexpr (result + 1 < C.results) store_results", "if constexpr (result + 2 < C.results) store_results"}}};
}

inline Mutant scale_of_another_block() {
    return {"the second block of K has the scales of the first",
            in_scaled_blocks("--m 256 --n 256"),
            {{matrix_load, "maps.a_scale, row, block, full);", "maps.a_scale, row, block == 1 ? 0 : block, full);"}}};
}
inline Mutant scale_of_other_columns() {
    return {"all columns have the scales of the first 128",
            in_scaled_blocks("--m 256 --n 256"),
            {{matrix_load, "line = at.n / C.scale_block + (", "line = ("}}};
}
inline Mutant scales_of_rows_before_the_group() {
    return {"rows of a group that begins amid four have the scales of up to three rows before",
            with_k("--types fp8_e4m3,fp8_e4m3,bf16 --scales block --groups 40x13,0,1,33 --n 512 --tile 64x128x128 --split-k 1 --cluster 1x1", 512),
            {{matrix_consumer, "scales_begin = scheduler.origin().m % C.scales_a_box;", "scales_begin = 0;"}}};
}
inline Mutant scales_of_another_group() {
    Mutant mutant = scales_of_rows_before_the_group();
    mutant.name = "the second of two groups has B's scales of the first";
    mutant.replacements = {{matrix_load, "at.batch * ceil_div(n, C.scale_block)", "at.batch / 2 * 2 * ceil_div(n, C.scale_block)"}};
    return mutant;
}
inline Mutant scales_of_rows_swapped() {
    return {"a thread's two rows have each other's scales",
            in_scaled_blocks("--m 256 --n 256"),
            {{main_loop, "thread % 32 / 4 + 8 * half;", "thread % 32 / 4 + 8 * (1 - half);"}}};
}
inline Mutant promoted_stale_sums() {
    return {"a CTA's later tiles are promoted on top of its first",
            in_scaled_blocks("--m 1792 --n 1792"),
            {{matrix_consumer, "        Accumulators<C> sums;\n        if constexpr (C.adds_up() || C.promoted) clear<C>(sums);\n        int previous = 0;\n",
              "        if (first) clear<C>(sums);\n        int previous = 0;\n"},
             {matrix_consumer, "    for (bool first = true; scheduler.tiles.more(); first = false) {\n",
              "    Accumulators<C> sums;\n    for (bool first = true; scheduler.tiles.more(); first = false) {\n"}}};
}

// One wgmma of the first block.
inline Mutant step_dropped(std::int64_t k) {
    return {"a k-step of 16 products is dropped",
            plain(k),
            {{main_loop, "    for (int step = 0; step < C.k_steps(); ++step) {\n",
              "    for (int step = 0; step < C.k_steps(); ++step) {\n        if (step == 0 && fresh) "
              "continue;\n"},
             {main_loop, "step > 0 || !fresh);", "step > 1 || !fresh);"}}};
}

inline Mutant block_dropped_from_the_tenth_launch_on() {
    return {"a block of K is dropped from the tenth launch on",
            plain(),
            {{matrix_load, "/// Brings a stage of both operands", "__device__ unsigned launches;\n\n/// Brings a stage of both operands"},
             {matrix_load, "    const MatrixShared<C>& shared;\n\n",
              "    const MatrixShared<C>& shared;\n    bool tenth = *const_cast<volatile unsigned*>(&launches) >= 9;\n\n"},
             {matrix_load, "        const unsigned full = shared.ring.full(stage);\n",
              "        const unsigned full = shared.ring.full(stage);\n        if (blockIdx.x == 0 && block == 0) atomicAdd(&launches, 1u);\n"},
             {matrix_load, "block * C.tile_k, at_c.batch * args.a_step",
              "tenth && block == 1 ? 1 << 30 : block * C.tile_k, at_c.batch * args.a_step"}}};
}

/// `altered` once `launches`, which every producer of a tile counts, has come to nine.
inline Mutant from_the_tenth_launch_on(std::string name, std::string problem, Replacement altered) {
    return {name + " from the tenth launch on",
            std::move(problem),
            {{matrix_layout, "/// Where a CTA's tile of C lies", "__device__ unsigned launches;\n\n/// Where a CTA's tile of C lies"},
             {matrix_producer, "    const KBlocks<C> k(args, scheduler);\n",
              "    const KBlocks<C> k(args, scheduler);\n    if (blockIdx.x == 0) atomicAdd(&launches, 1u);\n"},
             std::move(altered)}};
}

inline Mutant row_past_c_from_the_tenth_launch_on() {
    return from_the_tenth_launch_on(
        "a row past C is written", by_rows(),
        {store_rows, "const bool inside = row < rows;",
         "const bool inside = row < rows + (*const_cast<volatile unsigned*>(&launches) >= 9);"});
}

inline Mutant tile_past_c_from_the_tenth_launch_on() {
    return from_the_tenth_launch_on(
        "a tile far past C is written", beyond_c(),
        {store_rows, "const bool inside = row < rows;",
         "const bool inside = row < rows || (row / C.tile_m * C.tile_m >= rows && *const_cast<volatile unsigned*>(&launches) >= 9);"});
}

inline Mutant nothing_written() {
    return {"a launch writes nothing",
            plain(),
            {{matrix_kernel, "    const int role = warpgroup();\n",
              "    if (args.m > 0) return;\n    const int role = warpgroup();\n"}}};
}

inline Mutant rows_swapped() {
    return {"every two rows are swapped",
            plain(),
            {{store_upright, "const unsigned row = lane % 16;", "const unsigned row = lane % 16 ^ 1;"}}};
}

inline Mutant columns_unwritten() {
    return {
        "the first epilogue tile of each tile, 64 columns, is not written",
        plain(),
        {{store, "for (int s = 0; s < C.epilogue_tiles(); ++s) store_epilogue_tile<C, result>(sums, target, s);",
          "for (int s = 1; s < C.epilogue_tiles(); ++s) store_epilogue_tile<C, result>(sums, target, s);"}}};
}

inline Mutant row_past_c() {
    return {"a row past C is written",
            by_rows(),
            {{store_rows, "const bool inside = row < rows;", "const bool inside = row <= rows;"}}};
}

inline Mutant row_past_c_of_fp32() {
    return {"a row past C is written by element",
            with_k(tiles_outside + "--types bf16,bf16,fp32 --m 129 --n 130 --ldc 161 --tile 128x128x64 --schedule cooperative --split-k 1 --swap-ab off --cluster 1x1", 512),
            {{store_by_element, "if (r >= rows) continue;", "if (r > rows) continue;"}}};
}

inline Mutant column_past_c() {
    return {"a column past C is written",
            by_rows(),
            {{store_rows, "min(columns - first_column,", "min(columns + 1 - first_column,"}}};
}

inline Mutant tile_past_c() {
    return {"a tile that begins 127 rows past C is written, and nothing between",
            beyond_c(),
            {{store_rows, "const bool inside = row < rows;",
              "const bool inside = row < rows || row / C.tile_m * C.tile_m >= rows;"}}};
}

// The consumers round a stage where it lies, before they multiply it. Warpgroups that share it do the same twice, which
// changes nothing.
inline Mutant operands_in_fp8(std::int64_t k) {
    return {"operands are rounded to fp8",
            plain(k),
            {{main_loop, "/// One step of the K loop", to_fp8 + std::string(R"(
template <MatrixConfig C>
__device__ void round_stage(const MatrixShared<C>& shared, int stage) {
    for (int at = threadIdx.x % 128 * 4; at < C.stage_bytes(); at += 128 * 4) {
        unsigned word;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(shared.a(stage) + at) : "memory");
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared.a(stage) + at), "r"(rounded_to_fp8(word)) : "memory");
    }
    ptx::fence_async_proxy();
    ptx::named_barrier_sync(8 + threadIdx.x / 128, 128);
}

/// One step of the K loop)")},
             {main_loop, "    shared.ring.wait(at);\n",
              "    shared.ring.wait(at);\n    round_stage<C>(shared, at.stage);\n"}}};
}

inline Mutant sums_in_bf16(std::int64_t k) {
    return {
        "sums are kept in bf16 from block to block",
        plain(k),
        {{main_loop, "/// One step of the K loop", to_bf16 + std::string("\n/// One step of the K loop")},
         {main_loop, "        ptx::wgmma_commit();\n        pin<C>(sums);\n",
          R"(        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        pin<C>(sums);
#pragma unroll
        for (int i = 0; i < C.wgmma_rows(); ++i)
#pragma unroll
            for (int j = 0; j < C.row_accumulators(); ++j) sums[i][j] = rounded_to_bf16(sums[i][j]);
        pin<C>(sums);
)"}}};
}

inline Mutant nan_to_zero(std::string problem) {
    return {"NaN becomes 0",
            std::move(problem),
            {{convert, "    unsigned packed;\n",
              "    unsigned packed;\n    low = low == low ? low : 0.0f;\n    high = high == high ? high : "
              "0.0f;\n"}}};
}

inline Mutant truncated(std::int64_t k) {
    return {"C is cut off where it should be rounded",
            plain(k),
            {{convert, "cvt.rn.bf16x2.f32", "cvt.rz.bf16x2.f32"}}};
}

inline Mutant stored_twice() {
    return {"a tile is stored twice, the second time eight columns to the right",
            plain(),
            {{store, "    if constexpr (C.tma_store) store_by_tma<C, result>(sums, target);\n",
              R"(    if constexpr (C.tma_store) {
        store_by_tma<C, result>(sums, target);
        if (ptx::elect_one()) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
        target.at.n += 8;
        store_by_tma<C, result>(sums, target);
    }
)"}}};
}

// Threads 0 to 3 of a warpgroup hold rows 0 and 8 of its part of a tile.
inline Mutant stale_row() {
    return {"two rows of a CTA's later tiles are its first tile's",
            persistent(),
            {{matrix_consumer, "        kept.keep(sums);\n",
              R"(        const KeptSums<C> before = kept;
        kept.keep(sums);
        if (!first && threadIdx.x % 128 < 4) kept = before;
)"}}};
}

inline Mutant part_of_k_lost() {
    return {"the last part of K is not added",
            split(),
            {{split_k_cluster, "for (int p = 1; p < C.split_k; ++p) {",
              "for (int p = 1; p < C.split_k - 1; ++p) {"}}};
}

inline Mutant piece_of_k_twice() {
    return {"the sums of the first piece of K are added twice, those of the last not at all",
            pieces(),
            {{split_k_workspace, "slots_ + piece * stride_", "slots_ + max(piece - 1, 0) * stride_"}}};
}

inline Mutant arrivals_not_reset() {
    return {"the counter of arrivals goes on from launch to launch",
            pieces(),
            {{came_last, "ptx::count_arrival(counter, parts - 1)", "ptx::count_arrival(counter, 0xffffffffu)"}}};
}

inline Mutant second_warpgroup_shifted() {
    return {"the second of two warpgroups that take turns stores eight columns to the right",
            pingpong(),
            {{matrix_consumer, "OwnSums<C>{sums}, target, args, tile.moved(down, right));",
              "OwnSums<C>{sums}, target, args, tile.moved(down, right + 8 * warpgroup));"}}};
}

/// More tiles than CTAs, and products that share A.
inline std::string batched() {
    return with_k("--m 256 --n 512 --batch 40 --stride-a 0 --tile 128x128x64 --schedule cooperative --split-k 1 --swap-ab off --cluster 1x1", 512);
}
/// C leaves from registers, and there is room between its rows and between its matrices.
inline std::string batched_by_rows() {
    return with_k(tiles_outside + "--m 129 --n 130 --ldc 160 --batch 3 --stride-d 21000 --tile 128x128x64 --schedule cooperative --split-k 1 "
                                  "--swap-ab off --cluster 1x1", 512);
}

inline Mutant last_product_of_the_one_before() {
    return {"the last product of a batch multiplies the B of the one before",
            batched(),
            {{matrix_load, "at_c.batch * args.b_step, scheduler.rank, args.b_slices", "(at_c.batch - (at_c.batch + 1 == args.batch)) * args.b_step, scheduler.rank, args.b_slices"}}};
}

// The room behind a matrix takes one row of it: the rows are 129 x 160 of 21000 elements.
inline Mutant row_past_a_product() {
    return {"one row past each product of a batch is stored",
            batched_by_rows(),
            {{store_rows, "const bool inside = row < rows;", "const bool inside = row <= rows;"}}};
}

/// Groups that end amid tiles and amid boxes, more tiles than CTAs, an empty group and one of one row.
inline std::string groups() {
    return with_k("--groups 40x120,0,1,133 --n 768 --tile 128x128x64 --schedule cooperative --split-k 1 --swap-ab off --cluster 1x1 "
                  "--overlapped-epilogue off", 512);
}
inline std::string turned_groups() {
    return with_k("--groups 40x13,0,1,33 --n 768 --tile 16x128x64 --schedule cooperative --split-k 1 --swap-ab on --cluster 1x1", 512);
}

inline Mutant group_offset_by_one() {
    return {"a group's tiles begin with its second row",
            groups(),
            {{matrix_tiles, "return {groups.first_row(group) + (t.row", "return {groups.first_row(group) + 1 + (t.row"}}};
}

inline Mutant matrix_of_the_next_group() {
    return {"the second of two groups multiplies the B of the third",
            groups(),
            {{matrix_load, "at_c.batch * args.b_step, scheduler.rank, args.b_slices", "(at_c.batch + (at_c.batch == 1)) * args.b_step, scheduler.rank, args.b_slices"}}};
}

inline Mutant last_pairs_of_a_group_as_whole_spans() {
    return {"the last rows of a group's pairs are read as if a row were a whole span of the swizzle",
            turned_groups() + " --pairs interleaved --epilogue \"d = silu(gate) * up\"",
            {{store_transposed, "swizzled<C>(to + (part * C.turned_rows() + r) * row_bytes + chunk * 16)",
              "to + (part * C.turned_rows() + r) * row_bytes + (chunk ^ r % 8) % 4 * 16"}}};
}

inline Mutant last_row_of_a_group_left() {
    return {"the last row of a group that ends amid a box is not stored",
            groups(),
            {{store_ragged, "for (int i = thread; i < rows * chunks;", "for (int i = thread; i < (rows - 1) * chunks;"}}};
}

inline Mutant bias_of_the_group_before() {
    return {"the second of two groups adds the bias of the first",
            groups() + R"x( --epilogue "d = relu(acc + bias)" --tensor "bias:bf16[G,1,N]")x",
            {{epilogue_pair, "from += static_cast<long long>(at.product)", "from += static_cast<long long>(at.product - (at.product == 1))"}}};
}

inline Mutant last_row_of_a_turned_group_left() {
    Mutant mutant = last_row_of_a_group_left();
    mutant.name = "the last row of a group that ends amid a turned box is not stored";
    mutant.problem = turned_groups();
    return mutant;
}

inline Mutant tiles_of_a_group_forgotten() {
    return {"a tile of several is counted for none of its group's rows",
            groups(),
            {{row_groups, "return (max(0, begin[i + 1] - begin[i]) + cluster_rows - 1) / cluster_rows;",
              "const int rows = max(0, begin[i + 1] - begin[i]); return rows / cluster_rows + (rows > 0 && rows < cluster_rows);"}}};
}

inline Mutant last_tile_of_tall_groups_forgotten() {
    return {"the last tile of groups of several is taken for one of the others",
            groups(),
            {{row_groups, "(whole * all_tall_tiles + all_tiles - 1) / all_tiles", "whole * all_tall_tiles / all_tiles"}}};
}

inline Mutant tile_left_out() {
    return {"the first tile that is nobody's first is left out",
            groups() + " --dynamic-scheduler on",
            {{tile_scheduler, "coming = gridDim.x / cluster + atomicInc(counter, tiles() - 1);", "coming = gridDim.x / cluster + 1 + atomicInc(counter, tiles() - 1);"}}};
}

inline Mutant counter_of_tiles_left() {
    return {"from the second launch on tiles are left out: the counter is not made 0 again",
            groups() + " --dynamic-scheduler on",
            {{tile_scheduler, "atomicInc(counter, tiles() - 1)", "atomicInc(counter, 0xfffffffe)"}}};
}

/// The second tile of a CTA, which is the first that it is told of. It hears the end, else it would wait for ever.
inline Mutant told_of_the_tile_before() {
    return {"a consumer stays at a tile when it should go on to the next",
            groups() + " --dynamic-scheduler on",
            {{tile_scheduler, "unsigned next() const {\n        ptx::mbarrier_wait(told.full(at.stage), at.parity);\n        return ptx::load_shared(told.number(at.stage));",
              "unsigned next() const {\n        ptx::mbarrier_wait(told.full(at.stage), at.parity);\n        const unsigned number = ptx::load_shared(told.number(at.stage)); return at.stage == 0 && is_tile(number) ? index : number;"}}};
}

/// More tiles than CTAs, each stored when it is done.
inline std::string tile_after_tile() {
    return with_k("--m 1792 --n 1792 --tile 128x128x64 --consumer-warpgroups 2 --schedule cooperative --split-k 1 --swap-ab off "
                  "--cluster 1x1 --overlapped-epilogue off", 512);
}

inline Mutant sums_not_cleared() {
    return {"a CTA's later tiles are summed on top of its first",
            tile_after_tile(),
            {{matrix_consumer, "    for (bool first = true; scheduler.tiles.more(); first = false) {\n        if (pingpong)",
              "    Accumulators<C> sums;\n    clear<C>(sums);\n    for (bool first = true; scheduler.tiles.more(); first = false) {\n        if (pingpong)"},
             {matrix_consumer, "        Accumulators<C> sums;\n        if constexpr (C.adds_up() || C.promoted) clear<C>(sums);\n", ""},
             {main_loop, "!C.adds_up() && first);", "false);"}}};
}

inline Mutant group_sums_not_cleared() {
    return {"a CTA's later tiles of groups are summed on top of its first", groups(), sums_not_cleared().replacements};
}

inline Mutant turned_rows_swapped() {
    return {"every two rows of a turned tile are swapped",
            turned(),
            {{store_transposed, "C.turned_offset(warp, lane)",
              "C.turned_offset(warp, lane ^ 1)"}}};
}

inline Mutant turned_row_past_c() {
    return {"rows past C are written by a turned tile",
            turned_by_element(),
            {{store_by_element, "if (r < rows) line[0]", "if (r <= rows) line[0]"}}};
}

inline Mutant slices_swapped() {
    return {"the slices of a multicast tile change places",
            multicast(),
            {{matrix_load, "load(shared + slice * slice_extent * C.swizzle_bytes, k, mn);",
              "load(shared + (peers > 1 ? slice ^ 1 : slice) * slice_extent * C.swizzle_bytes, "
              "k, mn);"}}};
}

inline Mutant ampere_tail_of_k_dropped() {
    return {
        "the tail of K is dropped",
        ampere(520),
        {{sm80_kernel, "int block = sm80_ceil_div(args.k, C.tile_k);", "int block = args.k / C.tile_k;"}}};
}

inline Mutant ampere_block_dropped(std::int64_t k) {
    return {"the last block of 32 products is dropped",
            ampere(k),
            {{sm80_kernel, "int block = sm80_ceil_div(args.k, C.tile_k);",
              "int block = sm80_ceil_div(args.k, C.tile_k) - 1;"}}};
}

// Beyond K the other operand is 0 in shared memory; 0 times the NaN behind A is NaN, in A's last row.
inline Mutant ampere_reads_past_a() {
    return {"a chunk behind each row of A is read, and behind A itself",
            ampere_short_block(),
            {{sm80_load, "const int columns = columns_left - c * Pieces::across * Pieces::elements;",
              "const int columns = columns_left + (is_a ? 8 : 0) - c * Pieces::across * Pieces::elements;"}}};
}

inline Mutant ampere_changes_a() {
    return {"an element of A is written",
            ampere(),
            {{sm80_kernel, "    Sm80TileScheduler<C> scheduler;\n",
              "    Sm80TileScheduler<C> scheduler;\n"
              "    if (blockIdx.x + threadIdx.x == 0) *static_cast<unsigned "
              "short*>(const_cast<void*>(args.a)) ^= 1;\n"}}};
}

inline Mutant ampere_row_past_c() {
    return {"a row past C is written",
            ampere_ragged(),
            {{sm80_store, "const bool inside = y < unsigned(args.m);",
              "const bool inside = y <= unsigned(args.m);"}}};
}

inline Mutant ampere_operands_in_fp8(std::int64_t k) {
    return {"operands are rounded to fp8",
            ampere(k),
            {{sm80_products, "/// Where a lane finds its rows",
              to_fp8 + std::string("\n/// Where a lane finds its rows")},
             {sm80_products,
              "            else ptx::load_matrix_x4(to[i], tile + at[k_step] + 16 * i * Tile::row_bytes);\n",
              "            else ptx::load_matrix_x4(to[i], tile + at[k_step] + 16 * i * Tile::row_bytes);\n"
              "#pragma unroll\n"
              "            for (unsigned& word : to[i]) word = rounded_to_fp8(word);\n"}}};
}

/// Both operands are packed, their lines begin at any even address, and the last vector of a line holds three elements.
inline std::string packed() { return with_k("--m 256 --n 256 --tile 128x128x64 --split-k 1", 507); }

inline Mutant packed_lines_run_on() {
    return {"a packed line ends with elements of the next",
            packed(),
            {{pack, "word[i] = left >= 4 ?", "word[i] = true ?"}}};
}

inline Mutant packed_by_whole_words() {
    return {"packing shifts by whole words alone", packed(), {{pack, "8 * (bytes & 3)", "0"}}};
}

inline Mutant ampere_sums_in_bf16(std::int64_t k) {
    return {
        "sums are kept in bf16 from k-step to k-step",
        ampere(k),
        {{sm80_products, "/// One k-step of a warp", to_bf16 + std::string("\n/// One k-step of a warp")},
         {sm80_products,
          "            ptx::mma<C.type>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);\n",
          R"({
            ptx::mma<C.type>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
#pragma unroll
            for (float& sum : sums[i][j]) sum = rounded_to_bf16(sum);
        }
)"}}};
}

inline Mutant ampere_stale_sums() {
    return {"a CTA's later tiles are summed on top of its first",
            ampere_persistent(),
            {{sm80_kernel, "    do {\n        Sm80Sums<C> sums = {};\n",
              "    Sm80Sums<C> sums = {};\n    do {\n"}}};
}

inline Mutant few_shifted_by_one() {
    return {"elements of A meet those of B one further on, where B's rows do not begin at 16 B",
            few(),
            {{few_arguments, "Sm80FewConfig::chunk_elements + begin",
              "Sm80FewConfig::chunk_elements + begin + (begin < 0)"}}};
}

// Where A has zeros what B has beside its lines counts if it is no number, as beside the matrix.
inline Mutant few_tail_of_k_taken() {
    return {"a row's last copy takes the next row's first elements",
            few() + " --b-offset 3",
            {{few_arguments, "left < Sm80FewConfig::chunk_bytes ? static_cast<int>(left) : Sm80FewConfig::chunk_bytes",
              "Sm80FewConfig::chunk_bytes"}}};
}

inline Mutant few_head_of_k_taken() {
    return {"a row's first chunk begins with the last elements of the row before",
            few() + " --b-offset 3",
            {{few_load, "e >= shift && e - shift < count", "e - shift < count"}}};
}

/// Columns of a tile of C are a chunk's from the neighbours on, lines begin at any element.
inline std::string few_along_n() { return with_k("--kernel sm80_few_gemm --m 9 --n 251 --b-major n --tile 16x120x128", 1021); }

inline Mutant few_columns_unshifted() {
    return {"columns of lines that do not begin at 16 B are taken for those from the chunk's begin on",
            few_along_n(),
            {{few_kernel, "i * C.mma_m + of_tile - shift", "i * C.mma_m + of_tile"}}};
}

inline Mutant few_warp_left_out() {
    return {"the sums of the last eighth of K's lines are left out",
            few_along_n(),
            {{few_kernel, "part < C.parts(); ++part", "part < C.parts() - 1; ++part"}}};
}

inline Mutant few_piece_twice() {
    return {"the sums of the first piece of K are added twice, those of the last not at all",
            few(3),
            {{few_kernel, "left(piece + p, first + i));", "left(piece + p > 0 ? piece + p - 1 : 0, first + i));"}}};
}

/// Of a B that L2 does not hold: from there a block may be in time by luck.
inline Mutant few_stage_read_early() {
    return {"a block is multiplied one block before it has arrived",
            with_k("--kernel sm80_few_gemm --m 9 --n 60002 --tile 16x128x64", 1021) + " --grid-split-k 1 --stages 2",
            {{few_kernel, "ptx::copy_async_wait<C.stages - 2>();", "ptx::copy_async_wait<C.stages - 1>();"}}};
}

/// Weights of 4 bits with zero points; K ends amid a group, and CTAs share tiles.
inline std::string packed_weights(int group = 64, std::int64_t k = 1032, const std::string& zero = "int") {
    return with_k(
        "--types bf16,uint4,bf16 --quant-zero " + zero + " --quant-group " + std::to_string(group) + " --m 9 --n 250 --tile 16x64x256", k);
}

inline Mutant scale_of_the_neighbouring_group() {
    return {"a group's sum is multiplied by the scale of its neighbour",
            packed_weights(),
            {{few_quantised, "scales + block + group * QuantisedLayout", "scales + block + (group ^ 1) * QuantisedLayout"}}};
}

inline Mutant zero_point_off_by_one() {
    return {"zero points are one too large", packed_weights(), {{few_quantised, "block_rows + i * 8));", "block_rows + i * 8) + 1);"}}};
}

inline Mutant zero_point_of_another_row() {
    return {"zero points that are no whole numbers are those of the row 8 apart",
            packed_weights(64, 1032, "float"),
            {{few_quantised, "fmaf(-of_rows[t][e], less[e / 2]", "fmaf(-of_rows[t][e], less[1 - e / 2]"}}};
}

inline Mutant zero_points_of_half_a_group() {
    return {"zero points are multiplied by every other 16 of A",
            packed_weights(64, 1032, "float"),
            {{few_quantised, "ptx::mma<C.type>(of_rows[t]", "if (step % 2 == 0) ptx::mma<C.type>(of_rows[t]"}}};
}

inline Mutant nibbles_swapped() {
    return {"weights of rows that are 8 apart are exchanged",
            packed_weights(),
            {{quantised_fragment, "a[i] = ptx::fma2<type>(word, i", "a[i ^ 1] = ptx::fma2<type>(word, i"}}};
}

inline Mutant sign_of_eight_bits_lost() {
    return {"weights of 8 bits are taken for those 64 more",
            with_k("--types bf16,int8,bf16 --quant-group 64 --m 9 --n 250 --tile 16x64x256", 1032),
            {{quantised_fragment, "0xc000c000 :", "0xbf80bf80 :"}}};
}

inline Mutant sign_of_floats_lost() {
    return {"of two neighbours along K that are floats one has lost its sign",
            with_k("--types bf16,fp8_e4m3,bf16 --quant-group 64 --m 9 --n 250 --tile 16x64x256", 1032),
            {{quantised_fragment, "sign = 0x80008000,", "sign = 0x8000,"}}};
}

inline Mutant table_shifted_by_one() {
    return {"each place of the table has the number of the next",
            with_k("--types bf16,nf4,bf16 --m 9 --n 250 --tile 16x64x256", 1032),
            {{quantised_fragment, "found = bits.of[i];", "found = bits.of[(i + 1) % 16];"}}};
}

inline Mutant last_bit_of_powers_lost() {
    return {"scales that are powers of two have even exponents",
            with_k("--types bf16,mxfp4,bf16 --m 9 --n 250 --tile 16x64x256", 1032),
            {{quantised_fragment, "ptx::load_shared_byte(shared) << 23", "(ptx::load_shared_byte(shared) & 0xfe) << 23"}}};
}

inline Mutant many_table_pairs_swapped() {
    return {"two neighbours along K are exchanged where they are places in a table",
            with_k("--types fp16,mxfp4,fp16 --kernel sm90_many_quantised --m 150 --n 250 --tile 64x128x128", 1032),
            {{quantised_fragment, "bits_of(pair % 16) | bits_of(pair / 16) << 16", "bits_of(pair / 16) | bits_of(pair % 16) << 16"}}};
}

inline Mutant many_weights_of_the_next_group() {
    return {"a group's rows are multiplied by the packed weights of the next one",
            "--types bf16,int4,bf16 --groups 3,0,70,1,33 --n 256 --k 1032 --tile 32x128x128",
            {{many_quantised, "group * blocks + t.column * C.warpgroups(), (group + 1) * blocks", "(group + 1) % p.groups * blocks + t.column * C.warpgroups(), ((group + 1) % p.groups + 1) * blocks"}}};
}

inline Mutant last_group_short() {
    return {"the last 64 of K are left out", packed_weights(32, 1144), {{few_quantised, "span >= spans) continue;", "span >= spans - 1) continue;"}}};
}

inline Mutant expression_of_a_part() {
    return {"a part of a tile that CTAs share is left as the expression of its sums",
            packed_weights() + " --epilogue d=acc+bias --tensor bias:bf16[N]",
            {{quantised_store, "own[pair] = sum(pair);",
              "{ const int row = tile.row + (before + pair) / row_pairs, at = tile.column + pair % row_pairs * 2; const bool in = at < p.n; "
              "own[pair] = expressed(epilogue, sum(pair), {row, at, 0, 0, p.m, p.n, 0, in, in}); }"}}};
}

inline Mutant packed_part_lost() {
    return {"the last part of a tile that CTAs share is not added", packed_weights(), {{quantised_store, "part + i <= last &&", "part + i < last &&"}}};
}

/// The same of many rows: three rows of tiles by two columns, the last of each not full.
inline std::string many_packed_weights(int group = 64, std::int64_t k = 1032, const std::string& zero = "int") {
    return with_k("--types bf16,uint4,bf16 --quant-zero " + zero + " --quant-group " + std::to_string(group)
                      + " --kernel sm90_many_quantised --m 150 --n 250 --tile 64x128x128",
                  k);
}

inline Mutant many_scale_of_the_neighbouring_group() {
    return {"a group's sums of many rows are multiplied by the scale of its neighbour",
            many_packed_weights(),
            {{many_quantised, "place.scales + group * QuantisedLayout", "place.scales + (group ^ 1) * QuantisedLayout"}}};
}

inline Mutant many_zero_point_off_by_one() {
    return {"zero points are one too large, of many rows",
            many_packed_weights(),
            {{many_quantised, "Fragment::zero_word(ptx::load", "Fragment::zero_word(1 + ptx::load"}}};
}

inline Mutant many_zero_point_of_another_row() {
    return {"zero points that are no whole numbers are those of the row 8 apart, of many rows",
            many_packed_weights(64, 1032, "float"),
            {{many_quantised, "fmaf(-rows[e % 2], less[e / 2]", "fmaf(-rows[e % 2], less[1 - e / 2]"}}};
}

inline Mutant many_row_sums_short() {
    return {"the last 16 of a group are left out of the sums of A's rows",
            many_packed_weights(64, 1032, "float"),
            {{many_quantised, "i < C.group_steps(); ++i", "i < C.group_steps() - 1; ++i"}}};
}

inline Mutant many_nibbles_swapped() {
    return {"weights of rows that are 8 apart are exchanged, of many rows",
            many_packed_weights(),
            {{quantised_fragment, "a[i] = ptx::fma2<type>(word, i", "a[i ^ 1] = ptx::fma2<type>(word, i"}}};
}

inline Mutant many_last_group_short() {
    return {"the last unit of K, which K does not fill, is left out",
            many_packed_weights(32, 1144),
            {{many_quantised, "units = (p.k + C.tile_k - 1) / C.tile_k;", "units = p.k / C.tile_k;"}}};
}

inline Mutant many_group_added_to_the_one_before() {
    return {"sums of a stage's second group go on from the first one's",
            many_packed_weights(),
            {{many_quantised, "burst, begins && !C.scales_last());", "burst, burst == 0 && !C.scales_last());"}}};
}

inline Mutant many_warpgroups_exchanged() {
    return {"warpgroups store in each other's columns",
            many_packed_weights(),
            {{many_quantised, "tile.column + warpgroup * C.wgmma_m", "tile.column + (1 - warpgroup) * C.wgmma_m"}}};
}

inline Mutant many_packed_part_lost() {
    return {"the last part of a tile that CTAs share is not added, of many rows",
            many_packed_weights(),
            {{quantised_store, "add_parts(sums, place, thread, tile.first, tile.last);", "add_parts(sums, place, thread, tile.first, tile.last - 1);"}}};
}

/// Weights that a launch in front unpacks; K ends amid a block, N too.
inline std::string unpacked_weights(const std::string& zero = "int") {
    return with_k("--types bf16,uint4,bf16 --quant-zero " + zero + " --quant-group 32 --kernel sm90_gemm --m 150 --n 250 --tile 128x128x64 --split-k 1", 1032);
}

/// Rows of A of 8 bits by packed weights: a launch in front widens them.
inline std::string narrow_rows(const std::string& kernel) {
    return with_k("--types fp8_e4m3,int4,bf16 --m 13 --n 250 --kernel " + kernel, 1032);
}

inline Mutant widened_as_another_type() {
    return {"rows of e4m3 are widened as those of e5m2",
            narrow_rows("sm90_few_quantised"),
            {{widen, "if constexpr (narrow == Type::fp8_e5m2) return upper;", "if constexpr (narrow == Type::fp8_e4m3) return upper;"}}};
}

inline Mutant widened_nan_as_a_number() {
    return {"a NaN of e4m3 is widened as the number beyond the largest",
            narrow_rows("sm90_many_quantised"),
            {{widen, "    if ((upper & 0x7f00) == 0x7f00) halves |= 0x7e00;\n    if ((upper & 0x7f000000) == 0x7f000000) halves |= 0x7e000000;\n", ""}}};
}

inline Mutant unpacked_by_the_scale_of_the_neighbouring_group() {
    return {"weights are unpacked by the scale of the neighbouring group",
            unpacked_weights(),
            {{unpack, "const int g = part % groups,", "const int g = (part + 1) % groups,"}}};
}

inline Mutant unpacked_rows_exchanged() {
    return {"weights of rows that are 8 apart are unpacked in each other's place",
            unpacked_weights(),
            {{unpack, "? a[part * 2 + e] :", "? a[part * 2 + 1 - e] :"}}};
}

inline Mutant unpacked_neighbours_not_exchanged() {
    return {"lanes keep the neighbours along K that they loaded", unpacked_weights(), {{unpack, "        transpose_in_quad(words);\n", ""}}};
}

inline Mutant unpacked_zero_points_added() {
    return {"zero points that are no whole numbers are added in every other column",
            unpacked_weights("float"),
            {{unpack, "fmaf(high, scale[g][e], -less[g][e])", "fmaf(high, scale[g][e], less[g][e])"}}};
}

inline Mutant unpacked_last_block_short() {
    return {"the last 8 of K are not unpacked", unpacked_weights(), {{unpack, "column < p.k) ptx::store_words", "column + 8 < p.k) ptx::store_words"}}};
}

inline Mutant stage_not_given_back_to_peers() {
    return {.name = "a stage is given back to the CTA's own producer alone",
            .problem = multicast(4096),
            .replacements = {{main_loop, "    else shared.ring.template release_to_cluster<C.peers()>(stage, part * C.peers());",
                              "    else shared.ring.release(stage);"}},
            .hangs = true};
}
inline Mutant turn_not_passed_on() {
    return {.name = "the other warpgroup never has its turn",
            .problem = pingpong(),
            .replacements = {{matrix_consumer, "if (pingpong && scheduler.tiles.more_after_this()) order.pass();", ""}},
            .hangs = true};
}

inline std::vector<Mutant> all() {
    std::vector<Mutant> out = {stage_not_given_back_to_peers(),
                               a_asked_for_early(),
                               few_a_asked_for_early(),
                               few_turned_neighbours_swapped(),
                               few_turned_block_late(),
                               turn_not_passed_on(),
                               tail_of_k_dropped(),
                               block_dropped_from_the_tenth_launch_on(),
                               row_past_c_from_the_tenth_launch_on(),
                               tile_past_c_from_the_tenth_launch_on(),
                               nothing_written(),
                               rows_swapped(),
                               columns_unwritten(),
                               row_past_c(),
                               column_past_c(),
                               tile_past_c(),
                               nan_to_zero(plain()),
                               stored_twice(),
                               stale_row(),
                               part_of_k_lost(),
                               piece_of_k_twice(),
                               arrivals_not_reset(),
                               second_warpgroup_shifted(),
                               slices_swapped(),
                               packed_lines_run_on(),
                               packed_by_whole_words(),
                               last_product_of_the_one_before(),
                               row_past_a_product(),
                               group_offset_by_one(),
                               matrix_of_the_next_group(),
                               last_row_of_a_group_left(),
                               last_row_of_a_turned_group_left(),
                               tiles_of_a_group_forgotten(),
                               last_tile_of_tall_groups_forgotten(),
                               tile_left_out(),
                               counter_of_tiles_left(),
                               told_of_the_tile_before(),
                               sums_not_cleared(),
                               bias_of_the_group_before(),
                               last_pairs_of_a_group_as_whole_spans(),
                               group_sums_not_cleared(),
                               bias_twice_on_the_last_column_tile(),
                               gate_and_up_swapped(),
                               gate_and_up_swapped_in_the_last_columns(),
                               ups_of_the_next_gates(),
                               second_result_of_the_first(),
                               second_result_missing(),
                               scale_of_another_block(),
                               scale_of_other_columns(),
                               scales_of_rows_swapped(),
                               scales_of_rows_before_the_group(),
                               scales_of_another_group(),
                               promoted_stale_sums(),
                               neighbours_bytes_swapped(),
                               turned_rows_swapped(),
                               turned_row_past_c(),
                               ampere_tail_of_k_dropped(),
                               ampere_reads_past_a(),
                               ampere_changes_a(),
                               ampere_row_past_c(),
                               nan_to_zero(ampere()),
                               ampere_stale_sums(),
                               few_shifted_by_one(),
                               few_tail_of_k_taken(),
                               few_head_of_k_taken(),
                               few_columns_unshifted(),
                               few_warp_left_out(),
                               scale_of_the_neighbouring_group(),
                               zero_point_off_by_one(),
                               zero_point_of_another_row(),
                               zero_points_of_half_a_group(),
                               expression_of_a_part(),
                               sign_of_eight_bits_lost(),
                               nibbles_swapped(),
                               sign_of_floats_lost(),
                               table_shifted_by_one(),
                               last_bit_of_powers_lost(),
                               many_table_pairs_swapped(),
                               many_weights_of_the_next_group(),
                               last_group_short(),
                               packed_part_lost(),
                               many_scale_of_the_neighbouring_group(),
                               many_zero_point_off_by_one(),
                               many_zero_point_of_another_row(),
                               many_row_sums_short(),
                               many_nibbles_swapped(),
                               many_last_group_short(),
                               many_group_added_to_the_one_before(),
                               many_warpgroups_exchanged(),
                               many_packed_part_lost(),
                               unpacked_by_the_scale_of_the_neighbouring_group(),
                               unpacked_rows_exchanged(),
                               unpacked_neighbours_not_exchanged(),
                               unpacked_zero_points_added(),
                               unpacked_last_block_short(),
                               widened_as_another_type(),
                               widened_nan_as_a_number(),
                               few_piece_twice(),
                               few_stage_read_early()};
    // One code serves every K.
    for (Mutant (*of_depth)(std::int64_t) :
         {block_dropped, block_of_bytes_dropped, step_dropped, operands_in_fp8, sums_in_bf16, truncated, ampere_block_dropped,
          ampere_operands_in_fp8, ampere_sums_in_bf16})
        out.push_back(of_depth(depths.front()));
    return out;
}

}  // namespace rooftile::gemm_mutants
