// One row of attention by one warp, of the keys that it sees and no others: slow, and free of what stands behind the mask.
#pragma once

#include "kernels/attention/attention_arguments.hpp"
#include "kernels/attention/attention_score.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/ptx/convert.cuh"

namespace rooftile {

/// Query `row` of a tile's head and batch, into O; by all lanes of a warp, each with every 32nd element of the row.
template <Type type, class Score>
__device__ void attention_row(const AttentionArguments& args, const AttentionExtent& extent, const AttentionTile& tile,
                              int row, const Score& score_of) {
    constexpr unsigned all = 0xffffffff;
    constexpr int lanes = 32, max_parts = 8;  // of at most 256 elements
    const int lane = static_cast<int>(threadIdx.x % lanes), kv_head = tile.head / (args.heads / args.kv_heads);
    const auto line = [&](const void* tensor, const AttentionStrides& strides, int head, int place) {
        return static_cast<const unsigned short*>(tensor) + tile.batch * strides.batch + head * strides.head
               + (tile.first_row + place) * strides.row;
    };
    const unsigned short* q = line(args.q, args.q_strides, tile.head, row);
    float sums[max_parts] = {}, greatest = minus_infinity(), sum = 0;
#pragma unroll 1
    for (int first = extent.first_key(row); first < extent.end_key(row); first += lanes) {
        const int here = min(lanes, extent.end_key(row) - first);
        float score = minus_infinity();
        if (lane < here) {
            const unsigned short* k = line(args.k, args.k_strides, kv_head, first + lane);
            score = 0;
#pragma unroll 1
            for (int d = 0; d < args.dim; ++d) score = fmaf(ptx::widen<type>(q[d]), ptx::widen<type>(k[d]), score);
            if constexpr (!Score::is_plain)
                score = Score::of(score_of.of_head(tile.head), score * args.scale, static_cast<float>(extent.place(row)),
                                  static_cast<float>(first + lane));
        }
        float most = fmaxf(greatest, score);
        for (int other = lanes / 2; other > 0; other /= 2) most = fmaxf(most, __shfl_xor_sync(all, most, other));
        const float from = most == minus_infinity() ? 0 : most * args.scale_log2;
        const float shrink = ptx::exp2_approx(greatest * args.scale_log2 - from);
        greatest = most;
        const float probability = lane < here ? ptx::exp2_approx(fmaf(score, args.scale_log2, -from)) : 0;
        sum = fmaf(sum, shrink, probability);
#pragma unroll
        for (int part = 0; part < max_parts; ++part) sums[part] *= shrink;
#pragma unroll 1
        for (int key = 0; key < here; ++key) {
            const float weight = __shfl_sync(all, probability, key);
            const unsigned short* v = line(args.v, args.v_strides, kv_head, first + key);
#pragma unroll
            for (int part = 0; part < max_parts; ++part)
                if (part * lanes + lane < args.dim_v)
                    sums[part] = fmaf(weight, ptx::widen<type>(v[part * lanes + lane]), sums[part]);
        }
    }
    for (int other = lanes / 2; other > 0; other /= 2) sum += __shfl_xor_sync(all, sum, other);
    const float by = sum == 0 ? 0 : ptx::reciprocal_approx(sum);
    unsigned short* o = const_cast<unsigned short*>(line(args.o, args.o_strides, tile.head, row));
#pragma unroll
    for (int part = 0; part < max_parts; ++part)
        if (part * lanes + lane < args.dim_v)
            o[part * lanes + lane] = ptx::narrow<type>(sums[part] * by);
}

}  // namespace rooftile
