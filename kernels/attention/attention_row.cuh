// One row of attention by one warp, of the keys that it sees and no others: slow, and free of what stands behind the mask.
#pragma once

#include "kernels/attention/attention_arguments.hpp"
#include "kernels/attention/attention_score.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/ptx/convert.cuh"

namespace rooftile {

/// Head of Q, and query, of a tile's row.
struct AttentionRowPlace {
    int head, query;
};
__device__ inline AttentionRowPlace place_of_row(const AttentionExtent& extent, const AttentionTile& tile, int row) {
    return {tile.head * extent.group + row % extent.group, row / extent.group};
}

/// Of Q or O.
__device__ inline long long offset_of_row(const AttentionExtent& extent, const AttentionStrides& strides, const AttentionTile& tile, int row) {
    const AttentionRowPlace at = place_of_row(extent, tile, row);
    return tile.batch * strides.batch + at.head * strides.head + (tile.first_row + at.query) * strides.row;
}

/// Of K or V.
__device__ inline long long offset_of_key(const AttentionArguments& args, const AttentionStrides& strides, const AttentionTile& tile, int kv_head, int key) {
    if (args.block_table) {
        const int page = args.block_table[static_cast<long long>(tile.batch) * args.table_pages + key / args.page];
        return page * strides.batch + kv_head * strides.head + key % args.page * strides.row;
    }
    return tile.batch * strides.batch + kv_head * strides.head + (tile.first_row + key) * strides.row;
}

/// Where a tile's row has its logarithm.
__device__ inline float* log_sum_exp_place(const AttentionArguments& args, const AttentionExtent& extent, const AttentionTile& tile, int row) {
    const AttentionRowPlace at = place_of_row(extent, tile, row);
    const long long head = static_cast<long long>(tile.batch) * args.heads * extent.group + at.head;
    return args.log_sum_exp + head * (args.extent.queries / extent.group) + tile.first_row + at.query;
}

/// Row `row` of a tile's head and batch, into O and the logarithms of sums; by all lanes of a warp, each with every 32nd element of the row.
/// `max_parts`: as many elements a lane at most.
template <Type type, int max_parts = 8, class Score>
__device__ void attention_row(const AttentionArguments& args, const AttentionExtent& extent, const AttentionTile& tile,
                              int row, const Score& score_of) {
    constexpr unsigned all = 0xffffffff;
    constexpr int lanes = 32;
    const int lane = static_cast<int>(threadIdx.x % lanes), kv_head = tile.head / (args.heads / args.kv_heads);
    const auto elements = [](const void* tensor, long long offset) { return static_cast<const unsigned short*>(tensor) + offset; };
    const unsigned short* q = elements(args.q, offset_of_row(extent, args.q_strides, tile, row));
    float sums[max_parts] = {}, greatest = minus_infinity(), sum = 0;
#pragma unroll 1
    for (int first = extent.first_key(row); first < extent.end_key(row); first += lanes) {
        const int here = min(lanes, extent.end_key(row) - first);
        float score = minus_infinity();
        if (lane < here) {
            const unsigned short* k = elements(args.k, offset_of_key(args, args.k_strides, tile, kv_head, first + lane));
            score = 0;
#pragma unroll 1
            for (int d = 0; d < args.dim; ++d) score = fmaf(ptx::widen<type>(q[d]), ptx::widen<type>(k[d]), score);
            if constexpr (!Score::is_plain)
                score = Score::of(score_of.of_head(place_of_row(extent, tile, row).head), score * args.scale, static_cast<float>(extent.place(row)),
                                  static_cast<float>(first + lane));
        }
        float most = fmaxf(greatest, score);
        for (int other = lanes / 2; other > 0; other /= 2) most = fmaxf(most, __shfl_xor_sync(all, most, other));
        // Differences before products: these leave fp32 where scores are near its end.
        const float from = most == minus_infinity() ? 0 : most;
        const float shrink = ptx::exp2_approx(ptx::difference(greatest, from) * args.scale_log2);
        greatest = most;
        const float probability = lane < here ? ptx::exp2_approx(ptx::difference(score, from) * args.scale_log2) : 0;
        sum = fmaf(sum, shrink, probability);
#pragma unroll
        for (int part = 0; part < max_parts; ++part) sums[part] *= shrink;
#pragma unroll 1
        for (int key = 0; key < here; ++key) {
            const float weight = __shfl_sync(all, probability, key);
            const unsigned short* v = elements(args.v, offset_of_key(args, args.v_strides, tile, kv_head, first + key));
#pragma unroll
            for (int part = 0; part < max_parts; ++part)
                if (part * lanes + lane < args.dim_v)
                    sums[part] = fmaf(weight, ptx::widen<type>(v[part * lanes + lane]), sums[part]);
        }
    }
    for (int other = lanes / 2; other > 0; other /= 2) sum += __shfl_xor_sync(all, sum, other);
    const float by = sum == 0 ? 0 : ptx::reciprocal_approx(sum);
    unsigned short* o = const_cast<unsigned short*>(elements(args.o, offset_of_row(extent, args.o_strides, tile, row)));
#pragma unroll
    for (int part = 0; part < max_parts; ++part)
        if (part * lanes + lane < args.dim_v)
            o[part * lanes + lane] = ptx::narrow<type>(sums[part] * by);
    if (args.log_sum_exp && lane == 0)
        *log_sum_exp_place(args, extent, tile, row) = sum == 0 ? minus_infinity() : greatest * (Score::is_plain ? args.scale : 1.0f) + __logf(sum);
}

}  // namespace rooftile
