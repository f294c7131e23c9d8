// Attention in fp64, every element of every result judged where it was made; and inputs whose result is known bit for bit. It
// shares nothing with the kernels it judges: no TMA, no tensor core, no swizzle, no counter.
//
// The bound. With w_t = exp(s_t - max) and l their sum, O is sum w v / l. A kernel rounds each w to the type (relative error u),
// and errs in each score by d; both errors of a term are as often up as down whatever v is, so that (kernels/measure/numbers.hpp)
// their sum exceeds L (u + d) sigma once in 1e17, sigma^2 = sum (w v)^2 / l^2. Sums of products add their own share of sigma. The
// sum of weights, all of one sign, errs by half a unit a term at most, against O itself; then O is rounded.
#pragma once

#include "kernels/attention/attention_score.cuh"
#include "kernels/attention/reference_arguments.hpp"
#include "kernels/measure/numbers.hpp"
#include "kernels/measure/philox.hpp"

namespace rooftile {

/// A CTA has `queries` rows of one head; its 256 threads make scores of `keys` keys at a time, 16 threads side by side on `rows` rows.
template <int dim, int dim_v>
struct AttentionJudgeTile {
    static constexpr int widest = dim > dim_v ? dim : dim_v;
    static constexpr int threads = 256, side = 16, rows = widest > 256 ? 1 : 2, queries = side * rows;
    static constexpr int keys = widest > 256 ? 16 : widest > 128 ? 32 : 64;
    static constexpr int scores = keys / side;              // of a row and thread
    static constexpr int outputs = (dim_v + side - 1) / side;
    static constexpr int pitch = widest + 1, weight_pitch = keys + 1;  // doubles; odd: rows fall into banks of their own
    static constexpr int q_doubles = queries * (dim + 1), kv_doubles = keys * pitch, weight_doubles = queries * weight_pitch;
    static constexpr int shared_bytes = 8 * (q_doubles + kv_doubles + weight_doubles);
};

/// Exact.
__device__ inline double exact_double(unsigned bits, Type type) { return value_of_bits(bits & 0xffffu, type); }

__device__ inline const unsigned short* attention_line(const void* tensor, const AttentionStrides& strides, int batch, int head,
                                                       int row) {
    return static_cast<const unsigned short*>(tensor) + batch * strides.batch + head * strides.head + row * strides.row;
}

/// A key's or a value's row, where the tensor has pages too.
__device__ inline const unsigned short* attention_key_line(const AttentionArguments& a, const void* tensor, const AttentionStrides& strides, int batch, int head,
                                                           int key) {
    if (!a.block_table) return attention_line(tensor, strides, batch, head, key);
    const int* const pages = a.block_table + static_cast<long long>(batch) * a.table_pages;
    return attention_line(tensor, strides, pages[key / a.page], head, key % a.page);
}

/// What 16 threads of a row have, together.
__device__ inline double side_max(double x) {
    for (int other = 8; other > 0; other /= 2) x = fmax(x, __shfl_xor_sync(0xffffffffu, x, other));
    return x;
}
__device__ inline double side_sum(double x) {
    for (int other = 8; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffffu, x, other);
    return x;
}

/// The worst that a thread, or a warp, saw of one result.
struct AttentionSeen {
    unsigned long long wrong = 0;
    WorstElement worst{};

    __device__ void add(double ratio, double reference, double bound, long long row, long long column, unsigned got,
                        unsigned expected) {
        wrong += !(ratio <= 1.0);
        if (!(ratio <= worst.ratio)) worst = {ratio != ratio ? infinite_ratio() : ratio, reference, bound, row, column, got, expected};
    }
    __device__ void add(const AttentionSeen& other) {
        wrong += other.wrong;
        if (other.worst.ratio > worst.ratio) worst = other.worst;
    }
};

/// What the lanes of a warp saw goes to `to`, which the warp alone writes.
__device__ inline void add_warp(AttentionSeen& to, AttentionSeen mine) {
    double ratio = mine.worst.ratio;
    for (int lane = 16; lane > 0; lane /= 2) {
        ratio = fmax(ratio, __shfl_xor_sync(0xffffffffu, ratio, lane));
        mine.wrong += __shfl_xor_sync(0xffffffffu, mine.wrong, lane);
    }
    const unsigned worst = __ballot_sync(0xffffffffu, mine.worst.ratio == ratio);
    if (static_cast<int>(threadIdx.x % 32) == __ffs(static_cast<int>(worst)) - 1) to.add(mine);
    __syncwarp();
}

/// Of every warp and result. Zeroed by who uses it: shared memory has no constructors.
struct AttentionSeenOfAll {
    alignas(16) unsigned char bytes[8 * verify_max * sizeof(AttentionSeen)];
    __device__ AttentionSeen& of(int warp, int result) {
        return reinterpret_cast<AttentionSeen*>(bytes)[warp * verify_max + result];
    }
};

/// Of one element; as judge_bounded of kernels/measure/numbers.hpp, with a bound that is given.
/// `vanishes`: the row has weights that the type may hold as 0, and 0 times an infinity in V is NaN.
__device__ inline Verdict judge_weighted(unsigned got, double reference, double bound, Type type, bool vanishes) {
    const unsigned expected = round_to_bits(reference, type);
    const NumberClass got_class = class_of_bits(got, type), wanted = class_of(reference);
    if (wanted != NumberClass::finite) {
        const bool lost = vanishes && wanted != NumberClass::nan && got_class == NumberClass::nan;
        return {got_class == wanted || lost ? 0.0 : infinite_ratio(), 0.0, expected, 0.0};
    }
    if (got_class != NumberClass::finite) return {infinite_ratio(), bound, expected, 0.0};
    const double error = fabs(value_of_bits(got, type) - reference);
    return {error / bound, bound, expected, error};
}

/// The exact case: that whole number, but for what exp() leaves of the other keys, which shows where it is 0.
__device__ inline Verdict judge_whole(unsigned got, double reference, Type type) {
    constexpr double rest = 0x1p-20;
    const bool right = class_of_bits(got, type) == NumberClass::finite && fabs(value_of_bits(got, type) - reference) < rest;
    return {right ? 0.0 : infinite_ratio(), 0.0, round_to_bits(reference, type), 0.0};
}

/// Launched with any number of CTAs; `records` has one zeroed entry a CTA and result. A score that is not plain is made, with its error,
/// by `score` (rooftile/attention/device/score_source.cpp).
template <int dim, int dim_v, class Score>
__device__ void judge_attention(const AttentionJudgeArguments& p, AttentionRecord* records, const Score& score) {
    using Tile = AttentionJudgeTile<dim, dim_v>;
    extern __shared__ double memory[];
    __shared__ AttentionSeenOfAll seen;
    double *q_rows = memory, *kv_rows = q_rows + Tile::q_doubles, *weights = kv_rows + Tile::kv_doubles;
    __shared__ double key_norms[Tile::keys], q_largest[Tile::queries];
    const AttentionArguments& a = p.problem;
    const AttentionExtent& extent = a.extent;
    const int t = static_cast<int>(threadIdx.x), x = t % Tile::side, y = t / Tile::side;
    const double unit = unit_roundoff(p.type), least_weight = p.type == Type::fp16 ? 0x1p-14 : 0;
    const int q_tiles = (extent.queries + Tile::queries - 1) / Tile::queries;
    const long long tiles = static_cast<long long>(q_tiles) * a.heads * a.batches;
    for (int i = t; i < 8 * verify_max; i += Tile::threads) seen.of(i / verify_max, i % verify_max) = AttentionSeen{};
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int q0 = static_cast<int>(tile % q_tiles) * Tile::queries, all_head = static_cast<int>(tile / q_tiles);
        const int head = all_head % a.heads, batch = all_head / a.heads, kv_head = head / (a.heads / a.kv_heads);
        const int last = min(q0 + Tile::queries, extent.queries) - 1;
        const typename Score::OfHead of_head = score.of_head(head);
        __syncthreads();
        for (int i = t; i < Tile::queries * dim; i += Tile::threads) {
            const int row = i / dim, d = i % dim;
            const bool inside = q0 + row <= last && d < a.dim;
            q_rows[row * (dim + 1) + d] =
                inside ? exact_double(attention_line(a.q, a.q_strides, batch, head, q0 + row)[d], p.type) : 0;
        }
        __syncthreads();
        if (t < Tile::queries) {
            double largest = 0;
            for (int d = 0; d < dim; ++d) largest = fmax(largest, fabs(q_rows[t * (dim + 1) + d]));
            q_largest[t] = largest;
        }
        double sums[Tile::rows][Tile::outputs] = {}, squares[Tile::rows][Tile::outputs] = {};
        double greatest[Tile::rows], total[Tile::rows], deviation[Tile::rows], largest_score[Tile::rows];
        for (int r = 0; r < Tile::rows; ++r) greatest[r] = -infinite_ratio(), total[r] = deviation[r] = largest_score[r] = 0;
        const int end = extent.end_key(last);
        for (int k0 = extent.first_key(q0) / Tile::keys * Tile::keys; k0 < end; k0 += Tile::keys) {
            const auto load = [&](const void* tensor, const AttentionStrides& strides, int width, int given) {
                for (int i = t; i < Tile::keys * width; i += Tile::threads) {
                    const int row = i / width, d = i % width;
                    const bool inside = k0 + row < extent.keys && d < given;
                    kv_rows[row * Tile::pitch + d] =
                        inside ? exact_double(attention_key_line(a, tensor, strides, batch, kv_head, k0 + row)[d], p.type) : 0;
                }
            };
            __syncthreads();  // the values of the step before are read
            load(a.k, a.k_strides, dim, a.dim);
            __syncthreads();
            if (t < Tile::keys) {
                double norm = 0;
                for (int d = 0; d < dim; ++d) norm = fma(kv_rows[t * Tile::pitch + d], kv_rows[t * Tile::pitch + d], norm);
                key_norms[t] = sqrt(norm);
            }
            double scores[Tile::rows][Tile::scores] = {};
#pragma unroll 4
            for (int d = 0; d < dim; ++d) {
                double of_q[Tile::rows], of_k[Tile::scores];
#pragma unroll
                for (int r = 0; r < Tile::rows; ++r) of_q[r] = q_rows[(Tile::rows * y + r) * (dim + 1) + d];
#pragma unroll
                for (int j = 0; j < Tile::scores; ++j) of_k[j] = kv_rows[(x + Tile::side * j) * Tile::pitch + d];
#pragma unroll
                for (int r = 0; r < Tile::rows; ++r)
#pragma unroll
                    for (int j = 0; j < Tile::scores; ++j) scores[r][j] = fma(of_q[r], of_k[j], scores[r][j]);
            }
            __syncthreads();  // the keys are read, and their norms written
            load(a.v, a.v_strides, dim_v, a.dim_v);
#pragma unroll
            for (int r = 0; r < Tile::rows; ++r) {
                const int row = Tile::rows * y + r, query = q0 + row;
                const int first_seen = extent.first_key(query), end_seen = extent.end_key(query);
                double most = greatest[r];
#pragma unroll
                for (int j = 0; j < Tile::scores; ++j) {
                    const int key = k0 + x + Tile::side * j;
                    const bool sees = key >= first_seen && key < end_seen;
                    if (sees) {
                        scores[r][j] *= p.scale;
                        double here = q_largest[row] * key_norms[x + Tile::side * j] * p.scale;
                        if constexpr (!Score::is_plain) {
                            const double before = here * p.score_error + 0x1p-22 * fabs(scores[r][j]);
                            const auto made = Score::of(of_head, {scores[r][j], before}, extent.place(query), key);
                            scores[r][j] = made.value;
                            here = made.error / p.score_error;
                        }
                        most = fmax(most, scores[r][j]);
                        // A NaN or an Inf says nothing of how well the others are known.
                        if (here < infinite_ratio() || fabs(scores[r][j]) < infinite_ratio()) deviation[r] = fmax(deviation[r], here);
                        if (fabs(scores[r][j]) < infinite_ratio()) largest_score[r] = fmax(largest_score[r], fabs(scores[r][j]));
                    }
                }
                most = side_max(most);
                const double from = most == -infinite_ratio() ? 0 : most;
                const double shrink = exp(greatest[r] - from);
                greatest[r] = most;
                double more = 0;
#pragma unroll
                for (int j = 0; j < Tile::scores; ++j) {
                    const int key = k0 + x + Tile::side * j;
                    const bool sees = key >= first_seen && key < end_seen;
                    const double weight = sees ? exp(scores[r][j] - from) : 0;
                    // A weight of 0 that the mask gives hides what stands in V; one that exp() gives does not.
                    weights[row * Tile::weight_pitch + x + Tile::side * j] = sees ? weight : -1;
                    more += weight;
                }
                total[r] = total[r] * shrink + side_sum(more);
#pragma unroll
                for (int j = 0; j < Tile::outputs; ++j) sums[r][j] *= shrink, squares[r][j] *= shrink * shrink;
            }
            __syncthreads();
#pragma unroll 1
            for (int key = 0; key < Tile::keys; ++key) {
                double weight[Tile::rows];
#pragma unroll
                for (int r = 0; r < Tile::rows; ++r) weight[r] = weights[(Tile::rows * y + r) * Tile::weight_pitch + key];
#pragma unroll
                for (int j = 0; j < Tile::outputs; ++j) {
                    const int column = x + Tile::side * j;
                    const double value = column < dim_v ? kv_rows[key * Tile::pitch + column] : 0;
#pragma unroll
                    for (int r = 0; r < Tile::rows; ++r) {
                        if (weight[r] < 0) continue;
                        sums[r][j] = fma(weight[r], value, sums[r][j]);
                        const double rounded = fmax(weight[r], least_weight) * value;
                        squares[r][j] = fma(rounded, rounded, squares[r][j]);
                    }
                }
            }
        }
        double of_weight[Tile::rows], of_log[Tile::rows];
        bool vanishes[Tile::rows];
        const double least_log = p.type == Type::fp16 ? 16 : 86;  // of a weight that surely is not 0: 2^-24, 2^-126
        constexpr double fp32_unit = 0x1p-24;
#pragma unroll
        for (int r = 0; r < Tile::rows; ++r) {
            const double score_error = side_max(deviation[r]) * p.score_error, largest = side_max(largest_score[r]);
            // The score, its product with the scale and its difference from the greatest, and exp2: a few units of fp32 each.
            of_weight[r] = score_error + fp32_unit * (6 * largest + 8);
            vanishes[r] = 2 * largest > least_log;
            of_log[r] = score_error + fp32_unit * (6 * largest + 16);
        }
#pragma unroll 1
        for (int result = 0; result < p.results; ++result) {
            AttentionSeen mine;
#pragma unroll
            for (int r = 0; r < Tile::rows; ++r) {
                const int query = q0 + Tile::rows * y + r;
                if (query > last) continue;
                const long long place = static_cast<long long>(all_head) * extent.queries + query;
                const double of_total = fp32_unit * ((extent.end_key(query) - extent.first_key(query)) / 4 + 16);
                const double by = total[r] == 0 ? 0 : 1 / total[r];
                const double share = random_deviations * (unit + of_weight[r]) + p.value_error;
                const unsigned short* line = attention_line(p.o[result], a.o_strides, batch, head, query);
#pragma unroll
                for (int j = 0; j < Tile::outputs; ++j) {
                    const int column = x + Tile::side * j;
                    if (column >= a.dim_v) continue;
                    const double reference = p.exact ? rint(sums[r][j] * by) : sums[r][j] * by;
                    const double bound = share * sqrt(squares[r][j]) * by + (of_total + unit) * fabs(reference)
                                         + half_min_subnormal(p.type);
                    const unsigned got = line[column];
                    const Verdict v = p.exact ? judge_whole(got, reference, p.type) : judge_weighted(got, reference, bound, p.type, vanishes[r]);
                    mine.add(v.ratio, reference, v.bound, place, column, got, v.expected);
                }
                if (x != 0 || !p.log_sum_exp[result]) continue;
                const double reference = total[r] == 0 ? -infinite_ratio() : greatest[r] + log(total[r]);
                const float got = p.log_sum_exp[result][all_head * p.log_sum_exp_head + query];
                const double bound = of_log[r] + fp32_unit * 6 * fabs(reference) + of_total;
                const double ratio = class_of(reference) == NumberClass::finite ? fabs(got - reference) / bound
                                     : class_of(static_cast<double>(got)) == class_of(reference) ? 0.0
                                                                                                 : infinite_ratio();
                mine.add(ratio, reference, bound, place, -1, __float_as_uint(got), 0);
            }
            add_warp(seen.of(t / 32, result), mine);
        }
    }
    __syncthreads();
    if (t >= p.results) return;
    AttentionSeen all;
    for (int warp = 0; warp < Tile::threads / 32; ++warp) all.add(seen.of(warp, t));
    AttentionRecord& record = records[static_cast<long long>(t) * gridDim.x + blockIdx.x];
    record.wrong = all.wrong;
    record.worst = all.worst;
}

template <int dim, int dim_v>
__global__ void __launch_bounds__(256, 1) attention_judge(const __grid_constant__ AttentionJudgeArguments p, AttentionRecord* records) {
    judge_attention<dim, dim_v>(p, records, PlainScore{});
}
template <int dim, int dim_v, class Score>
__global__ void __launch_bounds__(256, 1) attention_judge_scored(const __grid_constant__ AttentionJudgeArguments p,
                                                                 AttentionRecord* records, const __grid_constant__ Score score) {
    judge_attention<dim, dim_v>(p, records, score);
}

/// Every other row of a matrix of `rows` x `dim` times `factor`: scores so far apart that O has to be rescaled.
__global__ void attention_scale_rows(unsigned short* matrix, long long rows, int dim, long long pitch, double factor, Type type) {
    const long long all = rows * dim, step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
        unsigned short& element = matrix[i / dim * pitch + i % dim];
        if (i / dim % 2 != 0) element = static_cast<unsigned short>(round_to_bits(factor * value_of_bits(element, type), type));
    }
}

/// Behind a cache's keys, as far as there is room, NaN: whoever reads there has it in the result. One warp a row of K or V; grid-stride.
__global__ void attention_spoil_tails(const __grid_constant__ AttentionArguments a, Type type) {
    const long long warps = static_cast<long long>(gridDim.x) * blockDim.x / 32, rows = static_cast<long long>(a.batches) * a.kv_heads * a.extent.keys;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const unsigned short nan = type == Type::bf16 ? 0x7fc0 : 0x7e00;
    for (long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / 32; i < rows; i += warps) {
        const int key = static_cast<int>(i % a.extent.keys), head = static_cast<int>(i / a.extent.keys % a.kv_heads), batch = static_cast<int>(i / a.extent.keys / a.kv_heads);
        if (key < a.lengths[batch]) continue;
        for (int d = lane; d < a.dim; d += 32) const_cast<unsigned short*>(attention_key_line(a, a.k, a.k_strides, batch, head, key))[d] = nan;
        for (int d = lane; d < a.dim_v; d += 32) const_cast<unsigned short*>(attention_key_line(a, a.v, a.v_strides, batch, head, key))[d] = nan;
    }
}

__device__ inline unsigned attention_hash(unsigned seed, unsigned a, unsigned b) { return philox(b, a, seed).word[0]; }

/// The number that a key's row holds: heads have them in other orders, so that no head finds its key in another's rows.
__device__ inline unsigned attention_key_number(const AttentionExactFill& p, int kv_head_of_all, unsigned key) {
    const unsigned mask = (1u << p.bits) - 1;
    const unsigned shift = attention_hash(p.seed, 3, static_cast<unsigned>(kv_head_of_all));
    return ((key & mask) * ((shift | 1u) & mask) + (shift >> 8)) & mask;
}

/// The key that a query is to find: every other query the last that it sees, the rest any of those.
__device__ inline int attention_key_of(const AttentionExactFill& p, int head_of_all, int query) {
    const int first = p.problem.extent.first_key(query), end = p.problem.extent.end_key(query);
    if (first >= end) return 0;
    const unsigned h = attention_hash(p.seed, 4 + static_cast<unsigned>(head_of_all), static_cast<unsigned>(query));
    return h & 1 ? end - 1 : first + static_cast<int>((h >> 1) % static_cast<unsigned>(end - first));
}

/// One warp a row of Q, K or V; grid-stride.
__global__ void attention_exact_fill(const __grid_constant__ AttentionExactFill p) {
    const AttentionArguments& a = p.problem;
    const long long q_rows = static_cast<long long>(a.batches) * a.heads * a.extent.queries;
    const long long kv_rows = static_cast<long long>(a.batches) * a.kv_heads * a.extent.keys;
    const long long warps = static_cast<long long>(gridDim.x) * blockDim.x / 32;
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / 32; i < q_rows + (p.values_in_keys ? 1 : 2) * kv_rows; i += warps) {
        const bool of_q = i < q_rows, of_v = i >= q_rows + kv_rows;
        const long long place = of_q ? i : (i - q_rows) % kv_rows;
        const int rows = of_q ? a.extent.queries : a.extent.keys, heads = of_q ? a.heads : a.kv_heads;
        const int row = static_cast<int>(place % rows), head_of_all = static_cast<int>(place / rows);
        const int head = head_of_all % heads, batch = head_of_all / heads;
        const int kv_head_of_all = of_q ? batch * a.kv_heads + head / (a.heads / a.kv_heads) : head_of_all;
        const unsigned key = of_q ? static_cast<unsigned>(attention_key_of(p, head_of_all, row)) : static_cast<unsigned>(row);
        const unsigned number = attention_key_number(p, kv_head_of_all, key);
        const void* tensor = of_q ? a.q : of_v ? a.v : a.k;
        const AttentionStrides& strides = of_q ? a.q_strides : of_v ? a.v_strides : a.k_strides;
        unsigned short* to = const_cast<unsigned short*>(of_q ? attention_line(tensor, strides, batch, head, row) : attention_key_line(a, tensor, strides, batch, head, row));
        for (int d = lane; d < (of_v ? a.dim_v : a.dim); d += 32) {
            int value = (number >> (d % p.bits) & 1) != 0 ? AttentionExactFill::magnitude : -AttentionExactFill::magnitude;
            if (of_v) {
                // The same for keys that are alike in their bits.
                const unsigned h = attention_hash(p.seed ^ 0x5bd1e995u, static_cast<unsigned>(d) + 512u * number,
                                                  static_cast<unsigned>(kv_head_of_all));
                constexpr unsigned range = 2 * AttentionExactFill::largest_value + 1;
                value = static_cast<int>(h % range) - AttentionExactFill::largest_value;
            }
            to[d] = static_cast<unsigned short>(round_to_bits(value, p.type));
        }
    }
}

}  // namespace rooftile
