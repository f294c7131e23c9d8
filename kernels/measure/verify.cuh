// The reference: every element of C from its own fp64 sum, judged where it was made. The sum costs far more
// than a verdict, so one sum judges the results of several launches. Beside each sum stands that of the squared
// products: every element is judged by itself, then the tile by the sum of its squared errors.
//
// One CTA makes 64 x 64 elements, 4 x 4 a thread, from tiles of A and B that stand in shared memory as
// doubles; CTAs go over the tiles of C. Only what is inside the matrices is read. It shares nothing
// with the kernels it judges: no TMA, no tensor core, no swizzle.
#pragma once

#include "kernels/expression/bounded.hpp"
#include "kernels/measure/arguments.hpp"
#include "kernels/measure/numbers.hpp"
#include "kernels/measure/saturate.hpp"

namespace rooftile {

struct VerifyTile {
    static constexpr int mn = verify_tile;  ///< rows and columns of C a CTA
    static constexpr int k = 16;            ///< of a step
    static constexpr int threads = 256;
    static constexpr int side = 4;  ///< rows and columns of C a thread
    static constexpr int loads = mn * k / threads;
    /// Doubles from one k to the next: 16-byte aligned, and 16 k's of a row fall into 8 bank pairs.
    static constexpr int pitch = mn + 2;
};

struct VerifyTiles {
    double a[2][VerifyTile::k][VerifyTile::pitch];  // [buffer][k][m]
    double b[2][VerifyTile::k][VerifyTile::pitch];  // [buffer][k][n]
};

/// What some threads saw of one result: the largest ratio and its thread, the count of wrong elements, and the sum of
/// squared errors as shares of sigma.
struct VerifyPart {
    double ratio;
    int thread;
    unsigned wrong;
    double errors;

    __device__ void add(const VerifyPart& other) {
        if (other.ratio > ratio || (other.ratio == ratio && other.thread < thread))
            ratio = other.ratio, thread = other.thread;
        wrong += other.wrong, errors += other.errors;
    }
};

struct VerifyShared {
    union {
        VerifyTiles tiles;
        WorstElement worst[VerifyTile::threads];  // after a tile's last step
    };
    VerifyPart part[VerifyTile::threads / 32];          // of each warp
    ExpectedErrors expected[VerifyTile::threads / 32];  // of each warp, before any result is judged
};

/// Exact. Types of a shorter exponent have it moved by a multiplication, which makes their subnormals normal.
__device__ inline double widen(unsigned short bits, Type type) {
    if (type == Type::bf16) return __uint_as_float(static_cast<unsigned>(bits) << 16);
    const FloatFormat f = float_format(type);
    const unsigned magnitude = bits & f.magnitude_bits(), fraction = magnitude << (23 - f.fraction_bits);
    float x = __uint_as_float(fraction) * __uint_as_float(static_cast<unsigned>(127 - f.bias + 127) << 23);
    if (magnitude >= f.infinity()) x = __uint_as_float(fraction | 0x7f800000u);
    return (bits & f.sign_bit()) ? -x : x;
}

/// fp32's bits are all there are.
__device__ inline double widen(unsigned bits, Type) { return __uint_as_float(bits); }

/// One thread's share of a 64 x 16 tile of an operand, and where it stands: threads run along the index
/// that is contiguous in memory.
struct VerifyLoader {
    const unsigned char* data;
    long long next, advance;  ///< elements from one of a thread's loads to the next, and from step to step
    int mn_left, k_left;  ///< elements inside the matrix from this thread's first one; sizes are below 2^31
    int mn, k;            ///< of the first element
    int mn_step, k_step;  ///< to the next

    __device__ VerifyLoader(const void* operand, Type type, long long mn_stride, long long k_stride,
                            long long mn_first, long long mn_extent, long long k_extent) {
        constexpr int along_mn = VerifyTile::threads / VerifyTile::mn,
                      along_k = VerifyTile::threads / VerifyTile::k;
        const int t = static_cast<int>(threadIdx.x);
        const bool k_contiguous = k_stride == 1;
        mn = k_contiguous ? t / VerifyTile::k : t % VerifyTile::mn;
        k = k_contiguous ? t % VerifyTile::k : t / VerifyTile::mn;
        mn_step = k_contiguous ? along_k : 0;
        k_step = k_contiguous ? 0 : along_mn;
        mn_left = static_cast<int>(mn_extent - mn_first) - mn;
        k_left = static_cast<int>(k_extent) - k;
        next = mn_step * mn_stride + k_step * k_stride;
        advance = VerifyTile::k * k_stride;
        data = static_cast<const unsigned char*>(operand) + ((mn_first + mn) * mn_stride + k * k_stride) * bytes_of(type);
    }

    /// The same of fp32, for which `type` is not asked.
    __device__ void read(unsigned (&to)[VerifyTile::loads], Type) {
#pragma unroll
        for (int i = 0; i < VerifyTile::loads; ++i) {
            const bool inside = i * mn_step < mn_left && i * k_step < k_left;
            to[i] = inside ? reinterpret_cast<const unsigned*>(data)[i * next] : 0;
        }
        data += advance * bytes_of(Type::fp32);
        k_left -= VerifyTile::k;
    }

    /// Reads the elements of one step and moves on by a step; zero outside. `type` each time, from where it is: no register holds it.
    __device__ void read(unsigned short (&to)[VerifyTile::loads], Type type) {
#pragma unroll
        for (int i = 0; i < VerifyTile::loads; ++i) {
            const bool inside = i * mn_step < mn_left && i * k_step < k_left;
            to[i] = !inside         ? 0
                    : is_fp8(type) ? data[i * next]
                                   : reinterpret_cast<const unsigned short*>(data)[i * next];
        }
        data += advance * bytes_of(type);
        k_left -= VerifyTile::k;
    }

    template <class Word>
    __device__ void store(double (*to)[VerifyTile::pitch], const Word (&from)[VerifyTile::loads], Type type) const {
#pragma unroll
        for (int i = 0; i < VerifyTile::loads; ++i)
            to[k + i * k_step][mn + i * mn_step] = widen(from[i], type);
    }

    /// The same times scale(m or n); what lies outside is zero whatever the scale.
    template <class Scale>
    __device__ void store_scaled(double (*to)[VerifyTile::pitch], const unsigned short (&from)[VerifyTile::loads], Type type,
                                 const Scale& scale) const {
#pragma unroll
        for (int i = 0; i < VerifyTile::loads; ++i)
            to[k + i * k_step][mn + i * mn_step] = i * mn_step < mn_left ? widen(from[i], type) * scale(mn + i * mn_step) : 0;
    }
};

/// A thread's 4 x 4 elements lie at rows 4 y + i and columns 2 x + j (j < 2), 32 + 2 x + j - 2 (else): 16
/// contiguous bytes of B a thread, so that reading them meets no bank twice.
__device__ inline int verify_row(int i) { return static_cast<int>(threadIdx.x) / 16 * VerifyTile::side + i; }
__device__ inline int verify_column(int j) {
    return static_cast<int>(threadIdx.x) % 16 * 2 + (j & 1) + (j >> 1) * (VerifyTile::mn / 2);
}

using VerifySums = double[VerifyTile::side * VerifyTile::side];  // row by row

/// One step's products. `squares` is left alone in the exact case, which needs no bound; else it takes
/// (a b)^2 = a^2 b^2, so that one square serves four elements.
template <bool exact>
__device__ inline void verify_multiply(const double (*a)[VerifyTile::pitch],
                                       const double (*b)[VerifyTile::pitch], VerifySums& sum,
                                       VerifySums& squares) {
#pragma unroll 1  // of more the loads of any type spill
    for (int k = 0; k < VerifyTile::k; ++k) {
        double x[VerifyTile::side], y[VerifyTile::side];
#pragma unroll
        for (int i = 0; i < VerifyTile::side; ++i) {
            x[i] = a[k][verify_row(i)];
            y[i] = b[k][verify_column(i)];
        }
#pragma unroll
        for (int i = 0; i < VerifyTile::side; ++i) {
#pragma unroll
            for (int j = 0; j < VerifyTile::side; ++j) {
                const int e = i * VerifyTile::side + j;
                sum[e] = fma(x[i], y[j], sum[e]);
                if constexpr (!exact) squares[e] = fma(x[i] * x[i], y[j] * y[j], squares[e]);
            }
        }
    }
}

template <bool exact>
__device__ inline Verdict verify_element(const VerifyArguments& p, unsigned got, double sum, double sigma) {
    if (is_fp8(p.type))
        return exact ? judge_exact_saturated(got, sum, p.type) : judge_bounded_saturated(got, sum, fabs(sigma), p.model, p.type);
    if constexpr (exact) return judge_exact(got, sum, p.type);
    else return judge_bounded(got, sum, fabs(sigma), p.model, p.type);
}

/// Sixteen times, and every sum is where it was: registers cannot be indexed, so the one looked at is the
/// first.
template <bool exact>
__device__ inline void verify_rotate(VerifySums& sum, VerifySums& sigma) {
    constexpr int last = VerifyTile::side * VerifyTile::side - 1;
    const double first = sum[0], first_sigma = sigma[0];
#pragma unroll
    for (int i = 0; i < last; ++i) {
        sum[i] = sum[i + 1];
        if constexpr (!exact) sigma[i] = sigma[i + 1];
    }
    sum[last] = first;
    if constexpr (!exact) sigma[last] = first_sigma;
}

/// Where a tile lies.
struct VerifyPlace {
    long long row0, column0;

    __device__ long long row(int e) const { return row0 + verify_row(e / VerifyTile::side); }
    __device__ long long column(int e) const { return column0 + verify_column(e % VerifyTile::side); }
    __device__ bool inside(const VerifyArguments& p, int e) const { return row(e) < p.m && column(e) < p.n; }
};

/// Makes sigma of the sums of squares, and says what the tile's errors may come to; once for all results.
/// Where an element's error is not to be counted its sigma has a minus. Ends with the warps' parts in shared memory and no barrier.
__device__ inline void verify_expect(const VerifyArguments& p, VerifyShared& shared, const VerifyPlace& place,
                                     VerifySums& sum, VerifySums& squares) {
    ExpectedErrors expected{};
#pragma unroll 1
    for (int e = 0; e < VerifyTile::side * VerifyTile::side; ++e) {
        squares[0] = root(squares[0]);
        if (place.inside(p, e)) {
            const ExpectedErrors one = expected_error(sum[0], squares[0], p.model, p.type);
            add(expected, one);
            if (one.elements == 0) squares[0] = -squares[0];
        }
        verify_rotate<false>(sum, squares);
    }
    for (int lane = 16; lane > 0; lane /= 2) {
        add(expected, {__shfl_xor_sync(0xffffffffu, expected.elements, lane),
                       __shfl_xor_sync(0xffffffffu, expected.rounding, lane),
                       __shfl_xor_sync(0xffffffffu, expected.rounding_squares, lane),
                       __shfl_xor_sync(0xffffffffu, expected.rounding_most, lane)});
    }
    if (threadIdx.x % 32 == 0) shared.expected[threadIdx.x / 32] = expected;
}

/// The warp's part, in every lane.
__device__ inline void verify_warp(VerifyPart& part) {
    for (int lane = 16; lane > 0; lane /= 2) {
        part.add({__shfl_xor_sync(0xffffffffu, part.ratio, lane),
                  __shfl_xor_sync(0xffffffffu, part.thread, lane),
                  __shfl_xor_sync(0xffffffffu, part.wrong, lane),
                  __shfl_xor_sync(0xffffffffu, part.errors, lane)});
    }
}

/// Adds a tile's errors to the record.
__device__ inline void verify_record_tile(const VerifyArguments& p, const VerifyShared& shared,
                                          VerifyRecord& record, const VerifyPlace& place, double errors) {
    ExpectedErrors expected{};
    for (int w = 0; w < VerifyTile::threads / 32; ++w) add(expected, shared.expected[w]);
    record.errors += errors;
    add(record.expected, expected);
    const double allowed = allowed_errors(expected, p.model);
    record.wrong_tiles += !(errors <= allowed);
    const double ratio = errors > 0 ? root(errors / allowed) : 0;
    if (ratio <= record.worst_tile.ratio) return;
    record.worst_tile = {ratio, root(errors / expected.elements), root(allowed / expected.elements),
                         place.row0, place.column0};
}

/// Adds this tile of result `c` to the CTA's record of it: the count of wrong elements, the worst if it is
/// worse, and the tile. Leaves the sums as they were.
template <bool exact>
__device__ inline void verify_record(const VerifyArguments& p, const void* c, VerifyShared& shared,
                                     VerifyRecord& record, const VerifyPlace& place, VerifySums& sum,
                                     VerifySums& sigma) {
    VerifyPart part{0, static_cast<int>(threadIdx.x), 0, 0};
    // Not unrolled, so that the verdict stands in the code once.
#pragma unroll 1
    for (int e = 0; e < VerifyTile::side * VerifyTile::side; ++e) {
        if (place.inside(p, e)) {
            const long long row = place.row(e), column = place.column(e);
            const long long at = row * p.c_m_stride + column;
            const unsigned got = p.type == Type::fp32 ? static_cast<const unsigned*>(c)[at]
                                 : is_fp8(p.type)     ? static_cast<const unsigned char*>(c)[at]
                                                      : static_cast<const unsigned short*>(c)[at];
            const Verdict v = verify_element<exact>(p, got, sum[0], sigma[0]);
            part.wrong += !(v.ratio <= 1.0);
            if constexpr (!exact) {
                const double share = v.error / sigma[0];
                if (sigma[0] > 0) part.errors += share * share;
            }
            if (v.ratio > part.ratio) {
                part.ratio = v.ratio;
                shared.worst[threadIdx.x] = {v.ratio, sum[0], v.bound, row, column, got, v.expected};
            }
        }
        verify_rotate<exact>(sum, sigma);
    }
    verify_warp(part);
    if (threadIdx.x % 32 == 0) shared.part[threadIdx.x / 32] = part;
    __syncthreads();
    part = shared.part[0];
    for (int w = 1; w < VerifyTile::threads / 32; ++w) part.add(shared.part[w]);
    if (part.thread != static_cast<int>(threadIdx.x)) return;
    if (part.ratio > record.worst.ratio) {
        record.worst = shared.worst[part.thread];
        record.worst.row += p.first_row;
    }
    record.wrong += part.wrong;
    if constexpr (!exact) verify_record_tile(p, shared, record, place, part.errors);
}

/// What a right fp32 sum may be, for whoever computes on with it.
template <bool exact>
__device__ inline Bounded bounded_sum(const VerifyArguments& p, double sum, double sigma) {
    if (exact || !is_finite(sum)) return {sum, 0};
    const double error = p.model.most * sigma;
    return {sum, fabs(sum) + error >= bounds::largest ? bounds::infinity : error};  // else it may have overflowed
}

/// Sums of one 64 x 64 tile and, unless `exact`, of squares. `scaled`: with the arguments' scales. `Word`: of an element of B, unsigned where
/// these are fp32.
template <bool exact, bool scaled = false, class Word = unsigned short>
__device__ inline void verify_sum(const VerifyArguments& p, VerifyTiles& tiles, const VerifyPlace& place, VerifySums& sum,
                                  VerifySums& squares) {
    const long long steps = (p.k + VerifyTile::k - 1) / VerifyTile::k;
    VerifyLoader a(p.a, p.a_type, p.a_m_stride, p.a_k_stride, place.row0, p.m, p.k);
    VerifyLoader b(p.b, p.b_type, p.b_n_stride, p.b_k_stride, place.column0, p.n, p.k);
    unsigned short next_a[VerifyTile::loads];
    Word next_b[VerifyTile::loads];
    a.read(next_a, p.a_type);
    b.read(next_b, p.b_type);
    for (long long step = 0; step < steps; ++step) {
        const int buffer = static_cast<int>(step & 1);
        if constexpr (scaled) {
            constexpr int block = 128;  // of which a step's k's lie in one
            const long long of_k = step * VerifyTile::k / block;
            a.store_scaled(tiles.a[buffer], next_a, p.a_type,
                           [&](int m) { return p.a_scales[of_k * p.a_scale_pitch + place.row0 + m]; });
            b.store_scaled(tiles.b[buffer], next_b, p.b_type,
                           [&](int n) { return p.b_scales[(place.column0 + n) / block * p.b_scale_pitch + of_k]; });
        } else {
            a.store(tiles.a[buffer], next_a, p.a_type);
            b.store(tiles.b[buffer], next_b, p.b_type);
        }
        __syncthreads();  // the other buffer's readers are past it too, so one barrier a step is enough
        a.read(next_a, p.a_type);  // in flight while this step is multiplied; zeros after the last
        b.read(next_b, p.b_type);
        verify_multiply<exact>(tiles.a[buffer], tiles.b[buffer], sum, squares);
    }
}

/// Every sum with its bound to `out`, [m][n], rows of it dense unless `sums_pitch` says otherwise. Launched as verify().
template <bool exact, bool scaled = false, class Word = unsigned short>
__global__ void __launch_bounds__(VerifyTile::threads, 2)
    bounded_sums(const __grid_constant__ VerifyArguments p, Bounded* out) {
    __shared__ VerifyTiles tiles;
    const long long columns = (p.n + VerifyTile::mn - 1) / VerifyTile::mn, pitch = p.sums_pitch > 0 ? p.sums_pitch : p.n;
    const long long all = columns * ((p.m + VerifyTile::mn - 1) / VerifyTile::mn);
    for (long long tile = blockIdx.x; tile < all; tile += gridDim.x) {
        const VerifyPlace place{tile / columns * VerifyTile::mn, tile % columns * VerifyTile::mn};
        VerifySums sum{}, squares{};
        verify_sum<exact, scaled, Word>(p, tiles, place, sum, squares);
#pragma unroll 1
        for (int e = 0; e < VerifyTile::side * VerifyTile::side; ++e) {
            if (place.inside(p, e))
                out[place.row(e) * pitch + place.column(e)] = bounded_sum<exact>(p, sum[0], root(squares[0]));
            verify_rotate<exact>(sum, squares);
        }
        __syncthreads();
    }
}

/// Launched with any number of CTAs of 256 threads; `records` has one zeroed entry a CTA and result.
template <bool exact, class Word = unsigned short>
__global__ void __launch_bounds__(VerifyTile::threads, 2)
    verify(const __grid_constant__ VerifyArguments p, VerifyRecord* records) {
    __shared__ VerifyShared shared;
    const long long columns = (p.n + VerifyTile::mn - 1) / VerifyTile::mn;
    const long long tiles = columns * ((p.m + VerifyTile::mn - 1) / VerifyTile::mn);
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const VerifyPlace place{tile / columns * VerifyTile::mn, tile % columns * VerifyTile::mn};
        VerifySums sum{}, squares{};
        verify_sum<exact, false, Word>(p, shared.tiles, place, sum, squares);
        if constexpr (!exact) verify_expect(p, shared, place, sum, squares);
#pragma unroll 1
        for (int result = 0; result < p.results; ++result) {
            __syncthreads();  // before the tiles, or the last result's worst, are overwritten
            verify_record<exact>(p, p.c[result], shared, records[result * gridDim.x + blockIdx.x], place, sum,
                                 squares);
        }
        __syncthreads();
    }
}

}  // namespace rooftile
