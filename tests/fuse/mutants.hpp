// Fused kernels made wrong on purpose, in the text that is generated for them or in what it includes. What must catch each
// stands in tests/fuse/device/wrong_on_purpose_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "tests/device/mutant.hpp"

namespace rooftile::fuse_mutants {

inline constexpr std::string_view generated = "", pack = "kernels/fuse/pack.cuh", reduce = "kernels/fuse/reduce.cuh",
                                  team = "kernels/fuse/team.cuh", whole = "kernels/fuse/whole.cuh",
                                  columns = "kernels/fuse/columns.cuh",
                                  dropout = "kernels/expression/dropout.cuh",
                                  convert = "kernels/ptx/matrix_store.cuh";

inline constexpr const char* pointwise =
    R"-("y = gelu(x + b)" --tensor x:bf16[512,512] --tensor b:bf16[512])-";
inline constexpr const char* dropped = R"-("y = dropout(x, 0.25, 7)" --tensor x:bf16[64,512])-";
inline constexpr const char* row_of_a_warp = R"-("y = softmax(x)" --tensor x:bf16[512,1024])-";
inline constexpr const char* row_of_a_cta =
    R"-("y = rmsnorm(x, g)" --tensor x:bf16[64,8192] --tensor g:bf16[8192] --row-storage registers --threads 256)-";
// Means of rows differ by little: it shows where x is near its own.
inline constexpr const char* row_of_a_cluster =
    R"-("y = x - sum(x)" --tensor x:bf16[16,131072] --row-storage pipelined --cluster 4 --reduction-threads 0)-";
inline constexpr const char* row_of_the_grid =
    R"-("y = x - mean(x)" --tensor x:bf16[4,262144] --row-storage reload --cluster 32 --threads 256)-";
inline constexpr const char* normed_row_of_a_cta =
    R"-("y = layernorm(x)" --tensor x:fp32[512,3000] --row-storage registers)-";
inline constexpr const char* normed_row_read_again =
    R"-("y = layernorm(x)" --tensor x:fp32[64,40000] --row-storage reload --cluster 1)-";
inline constexpr const char* ring =
    R"-("y = x - mean(x)" --tensor x:bf16[200,32768] --row-storage pipelined --reduction-threads 0 --exhaustive)-";
inline constexpr const char* short_columns = R"-("y = column_sum(x)" --tensor x:bf16[1003,33])-";
inline constexpr const char* tiles_of_columns = R"-("y = column_sum(x)" --tensor x:bf16[4096,1024] --row-splits 32)-";
inline constexpr const char* shifted_columns = R"-("y = column_sum(x)" --tensor x:bf16[600,4099])-";
inline constexpr const char* everything = R"-("s = sum_all(x)" --tensor x:bf16[256,1024])-";

inline Mutant one_row_wrong() {
    return {"one row is 3 % too large",
            row_of_a_warp,
            {{generated, "reference_2_base.power(x_k) * inverse_sum_5_row;",
              "reference_2_base.power(x_k) * inverse_sum_5_row * (row == 37 ? 1.03125f : 1.0f);"}}};
}

inline constexpr const char *gathers = "for (int i = 0; i < count; ++i) part[i] =",
                            *gathers_all_but_one = "for (int i = 0; i < count - 1; ++i) part[i] =";

inline Mutant last_warp_skipped() {
    return {
        "a reduction skips the last warp of its CTA", row_of_a_cta, {{team, gathers, gathers_all_but_one}}};
}

// Of 8 warps all count, of 4 CTAs three.
inline Mutant last_cta_skipped() {
    return {"a reduction skips the last CTA of its cluster",
            row_of_a_cluster,
            {{team, gathers, "for (int i = 0; i < count - (count == 4); ++i) part[i] ="}}};
}

// The others of the grid have each other's words; the last lane hears of the first CTA twice.
inline Mutant last_cta_of_the_grid_skipped() {
    return {"a reduction over the grid takes the first CTA's part for the last one's",
            row_of_the_grid,
            {{team, "grid_.wait_for(raw, word, from * 32 + threadIdx.x);",
              "grid_.wait_for(raw, word, (from * 32 + threadIdx.x) % (cluster - 1));"}}};
}

// E[x^2] - E[x]^2.
inline Mutant naive_variance() {
    return {"a variance is the mean of squares less the square of the mean",
            normed_row_read_again,
            {{reduce, "if (!any) origin = v[0];", "if (!any) origin = 0;"}}};
}

// A sum times an approximate reciprocal: an ulp off, which is all that a row of one value has.
inline Mutant mean_left_near() {
    return {"a mean is left as the first sum gives it",
            normed_row_of_a_cta,
            {{reduce, "return {count, near + share, squares", "return {count, near, squares"}}};
}

inline Mutant last_part_skipped() {
    return {"a reduction of everything skips the last CTA's part",
            everything,
            {{whole, "for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {",
              "for (unsigned i = threadIdx.x; i + 1 < gridDim.x; i += blockDim.x) {"}}};
}

// 8 rows of 33 elements lie together; of 1003 three are left over.
inline Mutant last_rows_skipped() {
    return {"a reduction of columns skips the rows that are fewer than lie together",
            short_columns,
            {{columns, "if (blockIdx.y > 0 || y_ > 0) return 0;", "return 0;"}}};
}

inline Mutant split_taken_twice() {
    return {"a reduction of columns adds one CTA's sums twice",
            tiles_of_columns,
            {{columns, "sum[k].merge(A{of[i].element[k]});",
              "for (int times = 0; times <= (split + i * parts == 1); ++times) sum[k].merge(A{of[i].element[k]});"}}};
}

// A tile's columns lie in other vectors every row.
inline Mutant shift_left_out() {
    return {"a reduction of columns forgets where rows begin in their vectors",
            shifted_columns,
            {{columns, "c + shift(part);", "c;"}}};
}

inline Mutant mask_shifted() {
    return {"dropout's mask is shifted by one element",
            dropped,
            {{dropout, "draw_of(block, place + k, key.fold) >= key.threshold;",
              "draw_of(block, place + (k + 1) % each, key.fold) >= key.threshold;"}}};
}

inline Mutant element_unwritten() {
    return {"one element is not written",
            pointwise,
            {{pack, "    T* to = tensor + vector * vector_width + further * vector_width;\n",
              "    T* to = tensor + vector * vector_width + further * vector_width;\n"
              "    if (vector == 5) {\n"
              "        for (int k = 1; k < vector_width; ++k) to[k] = from.element[k];\n"
              "        return;\n"
              "    }\n"}}};
}

inline Mutant truncated() {
    return {"results are cut off where they should be rounded",
            pointwise,
            {{convert, "cvt.rn.bf16x2.f32", "cvt.rz.bf16x2.f32"}}};
}

inline Mutant nan_unwritten() {
    return {"NaN is not written",
            pointwise,
            {{pack, "    T* to = tensor + vector * vector_width + further * vector_width;\n",
              "    T* to = tensor + vector * vector_width + further * vector_width;\n"
              "    if (vector >= 0) {\n"
              "        for (int k = 0; k < vector_width; ++k)\n"
              "            if ((from.element[k].bits & 0x7fff) <= 0x7f80) to[k] = from.element[k];\n"
              "        return;\n"
              "    }\n"}}};
}

inline constexpr const char* stores = "        store(t.y_out, at, packed<bf16>(y_values));\n";

inline Mutant past_the_output() {
    return {"a vector behind the output is written",
            pointwise,
            {{generated, stores,
              "        store(t.y_out, at, packed<bf16>(y_values));\n"
              "        if (at == vectors - 1) store(t.y_out, at + 1, packed<bf16>(y_values));\n"}}};
}

inline Mutant far_past_the_output() {
    return {"a vector 60 kB behind the output is written",
            pointwise,
            {{generated, stores,
              "        store(t.y_out, at, packed<bf16>(y_values));\n"
              "        if (at == vectors - 1) store(t.y_out, at + 3750, packed<bf16>(y_values));\n"}}};
}

inline Mutant input_changed() {
    return {"an input is written",
            pointwise,
            {{generated, stores,
              "        store(t.y_out, at, packed<bf16>(y_values));\n"
              "        if (at == 0) const_cast<bf16*>(t.b_in)[3].bits ^= 1;\n"}}};
}

inline Mutant nan_to_zero() {
    return {"NaN becomes 0",
            pointwise,
            {{convert, "    unsigned packed;\n",
              "    unsigned packed;\n    low = low == low ? low : 0.0f;\n    high = high == high ? high : "
              "0.0f;\n"}}};
}

// CTA 0 counts; of one launch some CTAs may see its count and others not yet.
inline Mutant wrong_from_the_tenth_launch_on() {
    return {"the last vector is doubled from the tenth launch on",
            pointwise,
            {{generated, "/// One element.\n", "__device__ unsigned launches;\n\n/// One element.\n"},
             {generated, "    const unsigned vectors = size.vectors;\n",
              "    const unsigned vectors = size.vectors;\n"
              "    const bool tenth = *const_cast<volatile unsigned*>(&launches) >= 9;\n"
              "    if (blockIdx.x + threadIdx.x == 0) atomicAdd(&launches, 1u);\n"},
             {generated, stores,
              "        if (tenth && at == vectors - 1)\n"
              "            for (float& y : y_values) y *= 2;\n"
              "        store(t.y_out, at, packed<bf16>(y_values));\n"}}};
}

// A CTA takes a second row where another has one too.
inline Mutant stale_row() {
    return {"a CTA's later rows have its first row's mean",
            ring,
            {{generated, "    while (true) {\n        slots.arrived();  // a row's first chunk\n",
              "    float first_total = 0;\n    while (true) {\n        slots.arrived();  // a row's first "
              "chunk\n"},
             {generated, " = mean_of(sum_1_row, ",
              " = mean_of(Sum{row == blockIdx.x ? first_total = sum_1_row.total : first_total}, "}}};
}

inline std::vector<Mutant> all() {
    return {one_row_wrong(),
            last_warp_skipped(),
            last_cta_skipped(),
            last_cta_of_the_grid_skipped(),
            naive_variance(),
            mean_left_near(),
            last_part_skipped(),
            last_rows_skipped(),
            split_taken_twice(),
            shift_left_out(),
            mask_shifted(),
            element_unwritten(),
            past_the_output(),
            far_past_the_output(),
            input_changed(),
            nan_to_zero(),
            nan_unwritten(),
            truncated(),
            wrong_from_the_tenth_launch_on(),
            stale_row()};
}

}  // namespace rooftile::fuse_mutants
