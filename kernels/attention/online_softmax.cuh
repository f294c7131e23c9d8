// The softmax of a warpgroup's rows, block after block of keys: what a thread keeps of its two rows.
#pragma once

#include "kernels/attention/attention_mask.hpp"
#include "kernels/attention/attention_score.cuh"
#include "kernels/ptx/special.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// The greatest or the sum of what the four threads of a row have.
__device__ inline float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ inline float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

__device__ inline float minus_infinity() { return __int_as_float(0xff800000); }

/// Which register of a fragment is number `i` of those of the thread's upper (0) or lower row: two of each four.
__device__ constexpr int of_half(int i, int half) { return i / 2 * 4 + 2 * half + i % 2; }

/// Products of queries and keys become scores, where those are not plain; `query` is the thread's upper row, `key` its first column. `heads`:
/// of both rows, or of the upper and the lower one.
template <class Score, int count, int heads_of_thread>
__device__ void make_scores(float (&scores)[count], const typename Score::OfHead (&heads)[heads_of_thread], float scale, const AttentionExtent& extent, int query,
                            int key) {
    if constexpr (!Score::is_plain) {
        const float places[] = {static_cast<float>(extent.place(query)), static_cast<float>(extent.place(query + 8))};
#pragma unroll
        for (int i = 0; i < count; ++i)
            scores[i] = Score::of(heads[i / 2 % 2 % heads_of_thread], scores[i] * scale, places[i / 2 % 2], static_cast<float>(key + (i / 4 * 8 + i % 2)));
    }
}

/// Scores of keys that a row does not see become minus infinity; `first_key` is that of the block, `query` of the thread's
/// upper row.
template <int tile_kv, bool windowed>
__device__ void hide(float (&scores)[tile_kv / 2], const AttentionExtent& extent, int query, int first_key, int column) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int begin = extent.first_key(query + 8 * half) - first_key - column;
        const int end = extent.end_key(query + 8 * half) - first_key - column;
#pragma unroll
        for (int i = 0; i < tile_kv / 4; ++i) {
            const int key = i / 2 * 8 + i % 2;
            if ((windowed && key < begin) || key >= end) scores[of_half(i, half)] = minus_infinity();
        }
    }
}

/// What probabilities of both rows so far count from, and their sum. Not the greatest score itself: where a later block's is less than
/// 2^8 times as probable nothing need be rescaled, as P and O hold such numbers as exactly. So O is rescaled in the first blocks and
/// hardly ever after, and whether it is says one branch of a warp.
struct OnlineSoftmax {
    // Of the score that probabilities are relative to, times scale_log2; minus infinity: no key was seen, or none from -far on. Sums are of
    // this thread's columns.
    float from[2], sum[2];
    // Beyond, what the product of a score is rounded by is more than powers of 2 have room for, as probabilities that fp16 holds.
    static constexpr float far = 134217728.0f;  // 2^27: 4 at most, where terms may be 2^8

    __device__ OnlineSoftmax() : from{minus_infinity(), minus_infinity()}, sum{0, 0} {}

    /// The greatest score of one of the two rows, of the warpgroup's columns.
    template <int count>
    static __device__ float greatest(const float (&scores)[count], int half) {
        float of_columns[2] = {scores[2 * half], scores[2 * half + 1]};  // two chains: each maximum waits for the one before
#pragma unroll
        for (int i = 2; i < count / 2; ++i) of_columns[i % 2] = fmaxf(of_columns[i % 2], scores[of_half(i, half)]);
        return row_max(fmaxf(of_columns[0], of_columns[1]));
    }
    /// One row's scores become probabilities, of which `most` is the greatest score times `scale_log2`; false where all before is multiplied by 1.
    template <int count>
    __device__ bool count_row(float (&scores)[count], float scale_log2, int half, float most, float& shrink) {
        constexpr float most_growth = 8;
        // Not where both are minus infinity, nor where a score is NaN: that stays NaN. What lies below -far adds 0 to anything above it.
        const bool grows = most - from[half] > most_growth && most > -far;
        const float before = from[half];
        if (grows) from[half] = most;
        shrink = grows ? ptx::exp2_approx(before - most) : 1.0f;
        // A row that has seen nothing yet has no place to count from: 0 does, all its terms are 0.
        const float offset = from[half] == minus_infinity() ? 0 : from[half];
        float more = 0;
#pragma unroll
        for (int i = 0; i < count / 2; ++i) {
            float& score = scores[of_half(i, half)];
            more += score = ptx::exp2_approx(fmaf(score, scale_log2, -offset));
        }
        sum[half] = fmaf(sum[half], shrink, more);
        return grows;
    }
    /// Scores become probabilities; `shrink` is what all before is multiplied by. False where that is 1 in all of the warp's rows.
    template <int count>
    __device__ bool take(float (&scores)[count], float scale_log2, float (&shrink)[2]) {
        bool rescales = false;
#pragma unroll
        for (int half = 0; half < 2; ++half) rescales |= count_row(scores, scale_log2, half, greatest(scores, half) * scale_log2, shrink[half]);
        return __any_sync(0xffffffff, rescales);
    }
    /// Nothing behind this begins before all probabilities are there. ptxas knows no order between arithmetic and the wait for a product, and
    /// waits first; it moves nothing over a branch. Sums are not negative, so none is ever taken.
    __device__ void complete() const {
        while (__any_sync(0xffffffff, sum[0] < 0 || sum[1] < 0)) ptx::pause();
    }
    /// Of a whole row, and what its sums are to be multiplied by; 0 where it saw nothing.
    __device__ float total(int half) const { return row_sum(sum[half]); }
    /// Whether all that a row saw is beyond `far`, or nothing: attention_row() has it right up to the end of fp32.
    __device__ bool lost(int half) const {
        return from[half] >= far || (from[half] == minus_infinity() && sum[half] == 0);
    }
};

}  // namespace rooftile
