// A tile in parts: each leaves its sums, not yet divided, what its probabilities count from, and their sum; whoever comes last adds all up in
// the order of the parts, so that nobody waits and who comes last changes no bit.
//
// A part has rows of `width` fp32 numbers, and behind each {from, sum}. Rows beyond the queries are not kept. A CTA has two places: for the
// part that begins its share, of a tile that an earlier CTA began, and for the one that ends it, of a tile that it begins. Where a tile's
// cuts are its `own` (attention_turn.cuh) each piece has a place.
#pragma once

#include "kernels/attention/attention_row.cuh"
#include "kernels/attention/sm90_attention_config.hpp"
#include "kernels/ptx/matrix_store.cuh"

namespace rooftile {

/// Of a tile in parts: rows that are kept, its first part, which is that CTA's number, or that piece's, and how many.
template <int width, bool own>
struct SplitTile {
    int rows;
    unsigned first_part;
    int parts;
    static constexpr int places = own ? 1 : 2;
    static constexpr long long numbers(int rows) { return static_cast<long long>(rows) * (width + Sm90AttentionConfig::split_pair); }
    /// Part `i`'s row.
    __device__ float* line(float* partials, int i, int row) const {
        const long long place = own ? first_part + i : 2 * (first_part + i) + (i == 0 ? 1 : 0);
        return partials + place * numbers(rows) + numbers(row);
    }
};

/// A warpgroup's rows of one part, of which a thread has two. What is lost is marked by a sum of NaN: to fp32, or to a NaN behind the mask, of which a warp
/// has sixteen bits, `again`.
/// `first_column`: of a warpgroup that has some of the columns.
template <int width, bool own, int count, class Softmax>
__device__ void leave_part(const float (&sums)[count], const Softmax& softmax, unsigned again, float* partials,
                           const SplitTile<width, own>& tile, int part, int row, int column, int first_column = 0) {
    const float totals[2] = {softmax.total(0), softmax.total(1)};  // by whole warps
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float total = totals[half];
        const int kept = row + 8 * half;
        if (kept >= tile.rows) continue;
        float* line = tile.line(partials, part, kept);
#pragma unroll
        for (int i = 0; i < count / 4; ++i)
            *reinterpret_cast<float2*>(line + first_column + 8 * i + column) = make_float2(sums[4 * i + 2 * half], sums[4 * i + 2 * half + 1]);
        // Nothing seen in this part is no loss: another part may have seen something.
        const bool lost = (softmax.lost(half) && total != 0) || (again >> kept % 16 & 1) != 0;
        if (first_column + column == 0) *reinterpret_cast<float2*>(line + width) = make_float2(softmax.from[half], lost ? __int_as_float(0x7fffffff) : total);
    }
}

/// By one warp: row `row` of a tile from all its parts, into O and the logarithms, or `columns` of it from `begin_column` on; `row_of_all`: of the
/// tile's head and batch. False: it is to be computed again, as it saw nothing, or a part's sum is lost.
template <Type type, int most_parts, int width, bool own, int columns = width>
__device__ bool add_up_row(const AttentionArguments& args, const AttentionExtent& extent, const AttentionTile& at, int row_of_all,
                           const SplitTile<width, own>& tile, int row, int begin_column = 0) {
    constexpr unsigned everyone = 0xffffffff;
    constexpr int lanes = 32, parts_a_lane = most_parts / lanes;
    const int lane = static_cast<int>(threadIdx.x % lanes);
    // The first part lies in another of its CTA's places than the rest, which follow each other.
    const long long step = SplitTile<width, own>::places * SplitTile<width, own>::numbers(tile.rows);
    const float *first_line = tile.line(args.partials, 0, row), *second_line = tile.line(args.partials, 1, row) - step;
    const auto line = [&](int part) { return part == 0 ? first_line : second_line + part * step; };
    float weight[parts_a_lane], sum[parts_a_lane], most = minus_infinity();
    bool lost = false;
#pragma unroll
    for (int i = 0; i < parts_a_lane; ++i) {
        const int part = i * lanes + lane;
        float2 stated = make_float2(minus_infinity(), 0);
        if (part < tile.parts) stated = __ldcg(reinterpret_cast<const float2*>(line(part) + width));
        weight[i] = stated.x, sum[i] = stated.y;
    }
    // Sums are on their way while it is settled what each counts.
    constexpr int batch = Sm90AttentionConfig::split_loads;
    float4 parts[batch];
    const auto load = [&](int first, int column) {
#pragma unroll
        for (int i = 0; i < batch; ++i)
            if (first + i < tile.parts && column < width) parts[i] = __ldcg(reinterpret_cast<const float4*>(line(first + i) + column));
    };
    load(0, begin_column + 4 * lane);
#pragma unroll
    for (int i = 0; i < parts_a_lane; ++i) lost |= sum[i] != sum[i], most = fmaxf(most, weight[i]);
    for (int other = lanes / 2; other > 0; other /= 2) most = fmaxf(most, __shfl_xor_sync(everyone, most, other));
    float total = 0;
#pragma unroll
    for (int i = 0; i < parts_a_lane; ++i) {
        weight[i] = weight[i] == minus_infinity() ? 0 : ptx::exp2_approx(weight[i] - most);
        total = fmaf(sum[i], weight[i], total);
    }
    for (int other = lanes / 2; other > 0; other /= 2) total += __shfl_xor_sync(everyone, total, other);
    if (__any_sync(everyone, lost) || total == 0) return false;
    const float by = ptx::reciprocal_approx(total);
    unsigned short* o = static_cast<unsigned short*>(args.o) + offset_of_row(extent, args.o_strides, at, row_of_all);
#pragma unroll
    for (int first = 0; first < columns; first += 4 * lanes) {
        const int column = begin_column + first + 4 * lane;
        float4 out = make_float4(0, 0, 0, 0);
        float weights[parts_a_lane];
#pragma unroll
        for (int i = 0; i < parts_a_lane; ++i) weights[i] = weight[i];
        // A loop: code that is run once comes from far away.
#pragma unroll 1
        for (int begin = 0; begin < tile.parts; begin += batch) {
            if (begin > 0 || first > 0) load(begin, column);
#pragma unroll
            for (int i = 0; i < batch; ++i) {
                const float by_part = __shfl_sync(everyone, weights[0], begin % lanes + i);
                if (begin + i >= tile.parts) continue;
                out.x = fmaf(by_part, parts[i].x, out.x), out.y = fmaf(by_part, parts[i].y, out.y);
                out.z = fmaf(by_part, parts[i].z, out.z), out.w = fmaf(by_part, parts[i].w, out.w);
            }
            if (begin % lanes + batch < lanes) continue;
#pragma unroll
            for (int i = 1; i < parts_a_lane; ++i) weights[i - 1] = weights[i];
        }
        if (column < args.dim_v) *reinterpret_cast<uint2*>(o + column) = make_uint2(ptx::pack2<type>(out.x * by, out.y * by), ptx::pack2<type>(out.z * by, out.w * by));
    }
    constexpr float ln2 = 0.693147180559945f;
    if (args.log_sum_exp && begin_column + lane == 0) *log_sum_exp_place(args, extent, at, row_of_all) = most * ln2 + __logf(total);
    return true;
}

}  // namespace rooftile
