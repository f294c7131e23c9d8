// A layer in fp64, from the same 16-bit inputs and weights as the kernels that it judges, and rounded nowhere: plain loops that share
// nothing with them. What fills weights and inputs is here too, so that a cache can be held against what it was filled with.
#pragma once

#include "kernels/layer/reference_arguments.hpp"
#include "kernels/measure/fill.cuh"
#include "kernels/measure/numbers.hpp"

namespace rooftile {

constexpr int layer_threads = 256;
constexpr int layer_tile = 64, layer_tile_k = 16;  ///< of a product's CTA

/// The value of element `index` of a tensor that layer_fill() made.
__device__ inline unsigned layer_bits(long long index, double mean, double deviation, unsigned long long seed, unsigned long long stream,
                                      Type type) {
    const PhiloxBlock block = philox(static_cast<unsigned long long>(index / fill_group), stream, seed);
    double values[fill_group];
    two_normals(block.word[0], block.word[1], reinterpret_cast<double(&)[2]>(values[0]));
    two_normals(block.word[2], block.word[3], reinterpret_cast<double(&)[2]>(values[2]));
    double value = values[0];
#pragma unroll
    for (int i = 1; i < fill_group; ++i)
        if (index % fill_group == i) value = values[i];  // an index into registers would be one into memory
    return round_to_bits(mean + deviation * value, type);
}

__global__ void layer_fill(unsigned short* to, long long count, double mean, double deviation, unsigned long long seed,
                           unsigned long long stream, Type type) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = static_cast<unsigned short>(layer_bits(i, mean, deviation, seed, stream, type));
}

__device__ inline double layer_value(const unsigned short* from, long long index, Type type) { return value_of_bits(from[index], type); }

__global__ void layer_widen(double* to, const unsigned short* from, long long count, Type type) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        to[i] = layer_value(from, i, type);
}

/// The sum of all threads' `x`, in every thread.
__device__ inline double layer_sum(double x) {
    __shared__ double all[layer_threads];
    __syncthreads();
    all[threadIdx.x] = x;
    __syncthreads();
    for (int apart = blockDim.x / 2; apart > 0; apart /= 2) {
        if (static_cast<int>(threadIdx.x) < apart) all[threadIdx.x] += all[threadIdx.x + apart];
        __syncthreads();
    }
    return all[0];
}

/// A CTA a row: x / rms(x) * w.
__global__ void layer_norm_rows(double* to, const double* from, const unsigned short* weight, long long columns, double eps, Type type) {
    const double* row = from + blockIdx.x * columns;
    double squares = 0;
    for (long long i = threadIdx.x; i < columns; i += blockDim.x) squares += row[i] * row[i];
    const double scale = 1 / sqrt(layer_sum(squares) / static_cast<double>(columns) + eps);
    for (long long i = threadIdx.x; i < columns; i += blockDim.x)
        to[blockIdx.x * columns + i] = row[i] * scale * layer_value(weight, i, type);
}

/// C [m, n] = A [m, k] B [n, k]^T + bias [n] + added [m, n]; the last two may be null.
__global__ void __launch_bounds__(layer_threads)
    layer_product(double* c, const double* a, const unsigned short* b, const unsigned short* bias, const double* added, long long m,
                  long long n, long long k, Type type) {
    __shared__ double as[layer_tile_k][layer_tile + 1], bs[layer_tile_k][layer_tile + 1];
    const long long row0 = static_cast<long long>(blockIdx.y) * layer_tile, column0 = static_cast<long long>(blockIdx.x) * layer_tile;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    double sums[4][4] = {};
    for (long long k0 = 0; k0 < k; k0 += layer_tile_k) {
        for (int i = threadIdx.x; i < layer_tile * layer_tile_k; i += layer_threads) {
            const int line = i / layer_tile_k, depth = i % layer_tile_k;
            const bool inside = k0 + depth < k;
            as[depth][line] = inside && row0 + line < m ? a[(row0 + line) * k + k0 + depth] : 0;
            bs[depth][line] = inside && column0 + line < n ? layer_value(b, (column0 + line) * k + k0 + depth, type) : 0;
        }
        __syncthreads();
        for (int depth = 0; depth < layer_tile_k; ++depth) {
            double x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) x[i] = as[depth][ty + 16 * i], y[i] = bs[depth][tx + 16 * i];
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const long long row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
            if (row >= m || column >= n) continue;
            double sum = sums[i][j];
            if (bias) sum += layer_value(bias, column, type);
            if (added) sum += added[row * n + column];
            c[row * n + column] = sum;
        }
}

__device__ inline long long position_of(const LayerHeads& p, long long token) {
    return p.keys - p.tokens_of_sequence + token % p.tokens_of_sequence;
}

/// A CTA a head of a token: queries to q [tokens, heads, dim], keys and values to k and v [tokens, kv_heads, dim]. `half_turns`: what
/// one position adds to the angle of each pair, in units of pi.
__global__ void layer_turn(LayerHeads p, double* q, double* k, double* v, const double* rows, const unsigned short* norms,
                           const double* half_turns) {
    const long long of_token = p.heads + 2 * p.kv_heads, token = blockIdx.x / of_token, head = blockIdx.x % of_token;
    const double* from = rows + static_cast<long long>(blockIdx.x) * p.dim;
    const bool is_query = head < p.heads, is_value = head >= p.heads + p.kv_heads;
    double scale = 1;
    if (p.eps >= 0 && !is_value) {
        double squares = 0;
        for (long long i = threadIdx.x; i < p.dim; i += blockDim.x) squares += from[i] * from[i];
        scale = 1 / sqrt(layer_sum(squares) / static_cast<double>(p.dim) + p.eps);
    }
    const unsigned short* weight = norms + (is_query ? 0 : p.dim);
    const auto at = [&](long long i) { return is_value || p.eps < 0 ? from[i] : from[i] * scale * layer_value(weight, i, p.type); };
    double* to = is_query ? q + (token * p.heads + head) * p.dim
                          : (is_value ? v + (token * p.kv_heads + head - p.heads - p.kv_heads) * p.dim
                                      : k + (token * p.kv_heads + head - p.heads) * p.dim);
    const long long half = p.rotated / 2;
    for (long long i = threadIdx.x; i < p.dim; i += blockDim.x) {
        if (is_value || i >= p.rotated) {
            to[i] = at(i);
            continue;
        }
        const double angle = static_cast<double>(position_of(p, token)) * half_turns[i % half];
        const double cosine = p.amplitude * cospi(angle), sine = p.amplitude * sinpi(angle);
        to[i] = i < half ? at(i) * cosine - at(i + half) * sine : at(i) * cosine + at(i - half) * sine;
    }
}

constexpr int layer_chunk = 1024;  ///< keys whose scores are in shared memory at once

/// A CTA a head of a token. Keys before this step's come from the caches [sequences, keys, kv_heads, dim], as they are; this step's from k
/// and v, which nobody rounded.
__global__ void layer_attend(LayerHeads p, double* out, const double* q, const double* k, const double* v, const unsigned short* k_cache,
                             const unsigned short* v_cache) {
    __shared__ double scores[layer_chunk], query[512];
    const long long token = blockIdx.x / p.heads, head = blockIdx.x % p.heads, kv_head = head / (p.heads / p.kv_heads);
    const long long sequence = token / p.tokens_of_sequence, position = position_of(p, token), cached = p.keys - p.tokens_of_sequence;
    for (long long i = threadIdx.x; i < p.dim; i += blockDim.x) query[i] = q[blockIdx.x * p.dim + i];
    const auto new_row = [&](long long key) { return ((sequence * p.tokens_of_sequence + key - cached) * p.kv_heads + kv_head) * p.dim; };
    const auto old_row = [&](long long key) { return ((sequence * p.keys + key) * p.kv_heads + kv_head) * p.dim; };
    const long long first = position + 1 > p.window ? position + 1 - p.window : 0;
    double greatest = -1e300, weights = 0, sums[2] = {};  // a thread has elements threadIdx.x and threadIdx.x + 256
    for (long long begin = first; begin <= position; begin += layer_chunk) {
        const long long end = begin + layer_chunk <= position + 1 ? begin + layer_chunk : position + 1;
        __syncthreads();
        for (long long key = begin + threadIdx.x; key < end; key += blockDim.x) {
            double sum = 0;
            for (long long i = 0; i < p.dim; ++i)
                sum += query[i] * (key < cached ? layer_value(k_cache, old_row(key) + i, p.type) : k[new_row(key) + i]);
            scores[key - begin] = sum * p.scale;
        }
        __syncthreads();
        double highest = greatest;
        for (long long key = begin; key < end; ++key) highest = fmax(highest, scores[key - begin]);
        const double shrink = exp(greatest - highest);
        greatest = highest;
        weights *= shrink, sums[0] *= shrink, sums[1] *= shrink;
        __syncthreads();
        for (long long key = begin + threadIdx.x; key < end; key += blockDim.x) scores[key - begin] = exp(scores[key - begin] - greatest);
        __syncthreads();
        for (long long key = begin; key < end; ++key) {
            const double weight = scores[key - begin];
            weights += weight;
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const long long i = threadIdx.x + e * blockDim.x;
                if (i < p.dim) sums[e] += weight * (key < cached ? layer_value(v_cache, old_row(key) + i, p.type) : v[new_row(key) + i]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const long long i = threadIdx.x + e * blockDim.x;
        if (i < p.dim) out[blockIdx.x * p.dim + i] = sums[e] / weights;
    }
}

/// Of neighbours in a row, gate and up: to [rows, width].
__global__ void layer_gate(double* to, const double* pairs, long long count, bool gelu) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const double g = pairs[2 * i], up = pairs[2 * i + 1];
        constexpr double root = 0.79788456080286535588;  // sqrt(2 / pi)
        to[i] = up * (gelu ? 0.5 * g * (1 + tanh(root * (g + 0.044715 * g * g * g))) : g / (1 + exp(-g)));
    }
}

/// A CTA a row: rows of `from` by their numbers.
__global__ void layer_take(double* to, const double* from, const int* numbers, long long columns) {
    for (long long i = threadIdx.x; i < columns; i += blockDim.x) to[blockIdx.x * columns + i] = from[numbers[blockIdx.x] * columns + i];
}

/// A CTA a row, times its weight, onto the row of that number; no two have the same number.
__global__ void layer_add(double* to, const double* from, const int* numbers, const double* weights, long long columns) {
    for (long long i = threadIdx.x; i < columns; i += blockDim.x)
        to[numbers[blockIdx.x] * columns + i] += weights[blockIdx.x] * from[blockIdx.x * columns + i];
}

__device__ inline void layer_most(double* to, double value) {
    // Not negative: as numbers so as bits. NaN is above all.
    atomicMax(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(__double_as_longlong(value)));
}

/// Where a row begins, in elements.
__device__ inline long long first_of_row(const LayerPlace& p, long long row) {
    if (p.keys == 0) return row * p.columns;
    return (row / p.tokens_of_sequence * p.keys + p.keys - p.tokens_of_sequence + row % p.tokens_of_sequence) * p.columns;
}

/// A CTA a row.
__global__ void layer_judge(const unsigned short* got, LayerPlace place, const double* wanted, LayerSeen* seen, Type type) {
    const long long first = first_of_row(place, blockIdx.x);
    double errors = 0, all = 0, most = 0;
    for (long long i = threadIdx.x; i < place.columns; i += blockDim.x) {
        const double want = wanted[blockIdx.x * place.columns + i], error = layer_value(got, first + i, type) - want;
        errors += error * error, all += want * want;
        if (!(fabs(error) <= most)) most = fabs(error);
    }
    errors = layer_sum(errors), all = layer_sum(all);
    const double rms = sqrt(all / static_cast<double>(place.columns));
    layer_most(&seen->element, most == most ? most / rms : most);
    if (threadIdx.x != 0) return;
    layer_most(&seen->row, sqrt(errors / all));
    atomicAdd(&seen->errors, errors);
    atomicAdd(&seen->all, all);
}

/// Counts elements of a cache that are not what it was filled with, but for this step's.
__global__ void layer_unchanged(const unsigned short* cache, LayerPlace place, long long count, double mean, double deviation,
                                unsigned long long seed, unsigned long long stream, LayerSeen* seen, Type type) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        if (i / place.columns % place.keys >= place.keys - place.tokens_of_sequence) continue;
        if (cache[i] != static_cast<unsigned short>(layer_bits(i, mean, deviation, seed, stream, type))) atomicAdd(&seen->changed, 1ull);
    }
}

}  // namespace rooftile
