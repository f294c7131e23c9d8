// Keys of a tile in parts: each part leaves its sums, not yet divided, what its probabilities count from, and their sum; whoever comes last
// adds all up in the order of the parts, so that nobody waits and who comes last changes no bit.
//
// A part of a tile has rows of `width` fp32 numbers, and behind each {from, sum}. Rows beyond the queries are not kept.
#pragma once

#include "kernels/attention/attention_row.cuh"
#include "kernels/attention/sm90_attention_config.hpp"
#include "kernels/ptx/matrix_store.cuh"

namespace rooftile {

/// Of a tile: rows that are kept, and fp32 numbers of a part.
template <int width>
struct SplitTile {
    int rows;
    static constexpr long long numbers(int rows) { return static_cast<long long>(rows) * (width + Sm90AttentionConfig::split_pair); }
    __device__ float* part(float* partials, unsigned tile, int splits, int part) const {
        return partials + (static_cast<long long>(tile) * splits + part) * numbers(rows);
    }
    __device__ float* place(float* part, int row) const { return part + numbers(row); }
};

/// A warpgroup's rows of one part, of which a thread has two. What is lost to fp32 or NaN is marked by a sum of NaN.
template <int width, class Softmax>
__device__ void leave_part(const float (&sums)[width / 2], const Softmax& softmax, float* part, const SplitTile<width>& tile, int row, int column) {
    const float totals[2] = {softmax.total(0), softmax.total(1)};  // by whole warps
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float total = totals[half];
        const int own = row + 8 * half;
        if (own >= tile.rows) continue;
        float* line = tile.place(part, own);
#pragma unroll
        for (int i = 0; i < width / 8; ++i)
            *reinterpret_cast<float2*>(line + 8 * i + column) = make_float2(sums[4 * i + 2 * half], sums[4 * i + 2 * half + 1]);
        // Nothing seen in this part is no loss: another part may have seen something.
        if (column == 0)
            *reinterpret_cast<float2*>(line + width) = make_float2(softmax.from[half], softmax.lost(half) && total != 0 ? __int_as_float(0x7fffffff) : total);
    }
}

/// By one warp: row `row` of a tile from all its parts, into O and the logarithms.
template <Type type, int width, class Score>
__device__ void add_up_row(const AttentionArguments& args, const AttentionExtent& extent, const AttentionTile& at, int query, float* first_part,
                           const SplitTile<width>& tile, int row, const Score& score) {
    constexpr unsigned all = 0xffffffff;
    constexpr int lanes = 32, parts_a_lane = Sm90AttentionConfig::most_splits / lanes;
    const int lane = static_cast<int>(threadIdx.x % lanes);
    const long long step = SplitTile<width>::numbers(tile.rows);
    const float* line = tile.place(first_part, row);
    float from[parts_a_lane], sum[parts_a_lane], most = minus_infinity();
    bool lost = false;
#pragma unroll
    for (int i = 0; i < parts_a_lane; ++i) {
        const int part = i * lanes + lane;
        float2 stated = make_float2(minus_infinity(), 0);
        if (part < args.splits) stated = __ldcg(reinterpret_cast<const float2*>(line + part * step + width));
        from[i] = stated.x, sum[i] = stated.y;
    }
    // Sums are on their way while it is settled what each counts.
    constexpr int batch = Sm90AttentionConfig::split_loads;
    float4 parts[batch];
    const auto load = [&](int first, int column) {
#pragma unroll
        for (int i = 0; i < batch; ++i)
            if (first + i < args.splits && column < width) parts[i] = __ldcg(reinterpret_cast<const float4*>(line + (first + i) * step + column));
    };
    load(0, 4 * lane);
#pragma unroll
    for (int i = 0; i < parts_a_lane; ++i) lost |= sum[i] != sum[i], most = fmaxf(most, from[i]);
    for (int other = lanes / 2; other > 0; other /= 2) most = fmaxf(most, __shfl_xor_sync(all, most, other));
    float total = 0;
#pragma unroll
    for (int i = 0; i < parts_a_lane; ++i) {
        from[i] = from[i] == minus_infinity() ? 0 : ptx::exp2_approx(from[i] - most);  // the part's weight
        total = fmaf(sum[i], from[i], total);
    }
    for (int other = lanes / 2; other > 0; other /= 2) total += __shfl_xor_sync(all, total, other);
    if (__any_sync(all, lost) || total == 0) {
        attention_row<type>(args, extent, at, query, score);
        return;
    }
    const float by = ptx::reciprocal_approx(total);
    unsigned short* o = static_cast<unsigned short*>(args.o) + at.batch * args.o_strides.batch + at.head * args.o_strides.head + (at.first_row + query) * args.o_strides.row;
#pragma unroll
    for (int first = 0; first < width; first += 4 * lanes) {
        const int column = first + 4 * lane;
        float4 out = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int begin = 0; begin < Sm90AttentionConfig::most_splits; begin += batch) {
            if (begin >= args.splits) break;
            if (begin > 0 || first > 0) load(begin, column);
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                const float weight = __shfl_sync(all, from[begin / lanes], begin % lanes + i);
                if (begin + i >= args.splits) continue;
                out.x = fmaf(weight, parts[i].x, out.x), out.y = fmaf(weight, parts[i].y, out.y);
                out.z = fmaf(weight, parts[i].z, out.z), out.w = fmaf(weight, parts[i].w, out.w);
            }
        }
        if (column < args.dim_v) *reinterpret_cast<uint2*>(o + column) = make_uint2(ptx::pack2<type>(out.x * by, out.y * by), ptx::pack2<type>(out.z * by, out.w * by));
    }
    constexpr float ln2 = 0.693147180559945f;
    if (args.log_sum_exp && lane == 0) *log_sum_exp_place(args, at, query) = most * ln2 + __logf(total);
}

}  // namespace rooftile
