// How the values of a row come together: one accumulator a kind, fed by vectors, merged in any order.
//
// Every accumulator is a few 32-bit words, so that shuffles and shared memory carry them as they are.
#pragma once

#include "kernels/fuse/math.cuh"
#include "kernels/fuse/pack.cuh"

namespace rooftile::fuse {

/// Rounding errors grow with the number of vectors of one thread, not with that of its elements.
template <int width>
__device__ inline float sum_of(const float (&v)[width]) {
    float s[width];
#pragma unroll
    for (int k = 0; k < width; ++k) s[k] = v[k];
#pragma unroll
    for (int half = width / 2; half > 0; half /= 2)
#pragma unroll
        for (int k = 0; k < half; ++k) s[k] += s[k + half];
    return s[0];
}

struct Sum {
    float total = 0;

    template <int width>
    __device__ void add(const float (&v)[width], unsigned) {
        total += sum_of(v);
    }
    __device__ void merge(const Sum& other) { total += other.total; }
};

/// Of the squares: the first sums are fused products.
template <int width>
__device__ inline float square_sum_of(const float (&v)[width]) {
    if constexpr (width == 1) return v[0] * v[0];
    else {
        constexpr int half = width / 2;
        float pairs[half];
#pragma unroll
        for (int k = 0; k < half; ++k) pairs[k] = fmaf(v[k], v[k], v[k + half] * v[k + half]);
        return sum_of(pairs);
    }
}

struct SquareSum {
    float total = 0;

    template <int width>
    __device__ void add(const float (&v)[width], unsigned) {
        total += square_sum_of(v);
    }
    __device__ void merge(const SquareSum& other) { total += other.total; }
};

struct Max {
    float greatest = -infinity;

    template <int width>
    __device__ void add(const float (&v)[width], unsigned) {
#pragma unroll
        for (int k = 0; k < width; ++k) greatest = maximum(greatest, v[k]);
    }
    /// Two elements an instruction; a greatest value is exact in any type.
    template <class T, int width>
    __device__ void add(const Pack<T, width>& v) {
        static_assert(sizeof(T) == 2 && width % 2 == 0);
        const unsigned* pairs = reinterpret_cast<const unsigned*>(&v);
        unsigned top = pairs[0];
#pragma unroll
        for (int k = 1; k < width / 2; ++k) top = ptx::max_nan_2<T::type>(top, pairs[k]);
        greatest =
            maximum(greatest, maximum(ptx::widen<T::type>(top & 0xffffu), ptx::widen<T::type>(top >> 16)));
    }
    __device__ void merge(const Max& other) { greatest = maximum(greatest, other.greatest); }
    /// Of a whole warp in one instruction, as integers of the same order. NaN wins: maximum() makes it
    /// 0x7fffffff, the greatest of them.
    __device__ void merge_warp() {
        const int top = __reduce_max_sync(0xffffffffu, ordered(__float_as_int(greatest)));
        greatest = __int_as_float(ordered(top));
    }

  private:
    __device__ static int ordered(int bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }
};

/// The first column of the greatest value; NaN counts as greater than anything.
struct ArgMax {
    float greatest = -infinity;
    unsigned place = 0xffffffffu;

    __device__ void offer(float value, unsigned column) {
        const bool mine = greatest != greatest, theirs = value != value;
        const bool equal = value == greatest || (mine && theirs);
        if (equal ? column < place : (theirs || (value > greatest && !mine))) {
            greatest = value;
            place = column;
        }
    }
    template <int width>
    __device__ void add(const float (&v)[width], unsigned column) {
#pragma unroll
        for (int k = 0; k < width; ++k) offer(v[k], column + k);
    }
    __device__ void merge(const ArgMax& other) { offer(other.greatest, other.place); }
};

/// The greatest value and the sum of e^(v - greatest), in one reading of the row (online softmax).
struct Exponentials {
    float greatest = -infinity;
    float total = 0;

    /// A row that so far is -Inf alone has no finite greatest to subtract: then 0 stands for it.
    __device__ static float reference(float greatest) { return greatest == -infinity ? 0.0f : greatest; }

    template <int width>
    __device__ void add(const float (&v)[width], unsigned) {
        float top = greatest;
#pragma unroll
        for (int k = 0; k < width; ++k) top = maximum(top, v[k]);
        const float base = reference(top);
        float terms[width];
#pragma unroll
        for (int k = 0; k < width; ++k) terms[k] = exponential_16(v[k] - base);
        total = fmaf(total, exponential_16(greatest - base), sum_of(terms));
        greatest = top;
    }
    __device__ void merge(const Exponentials& other) {
        const float top = maximum(greatest, other.greatest);
        const float base = reference(top);
        total = total * exponential_16(greatest - base) + other.total * exponential_16(other.greatest - base);
        greatest = top;
    }
    /// Of `count` neighbouring lanes: the greatest value first, so that each total is scaled but once.
    template <int count>
    __device__ void merge_lanes(unsigned mask) {
        Max top{greatest};
        if constexpr (count == 32) {
            top.merge_warp();
        } else {
#pragma unroll
            for (int away = count / 2; away > 0; away /= 2)
                top.merge({__shfl_xor_sync(mask, top.greatest, away)});
        }
        total *= exponential_16(greatest - reference(top.greatest));
#pragma unroll
        for (int away = count / 2; away > 0; away /= 2) total += __shfl_xor_sync(mask, total, away);
        greatest = top.greatest;
    }
    __device__ float log_sum_exp() const {
        return greatest == infinity ? greatest : greatest + logarithm(total);
    }
};

/// Mean and the sum of squared deviations from it (Chan, Golub and LeVeque 1979): nothing cancels where the
/// mean is large.
struct Moments {
    float count = 0, mean = 0, deviations = 0;

    template <int width>
    __device__ void add(const float (&v)[width], unsigned) {
        Moments vector;
        vector.count = width;
        vector.mean = sum_of(v) * (1.0f / width);
        float apart[width];
#pragma unroll
        for (int k = 0; k < width; ++k) apart[k] = v[k] - vector.mean;
        vector.deviations = square_sum_of(apart);
        merge(vector);
    }
    __device__ void merge(const Moments& other) {
        const float all = count + other.count;
        const float share = other.count * ptx::reciprocal_approx(fmaxf(all, 1.0f));
        const float apart = other.mean - mean;
        mean = fmaf(apart, share, mean);
        deviations += fmaf(apart * apart, count * share, other.deviations);
        count = all;
    }
    /// Of `lanes` neighbouring lanes at once, with all means seen from that of the first, which has values if
    /// any lane has: three sums side by side. What cancels is at most `lanes` times what is left, since the
    /// first lane's own distance is in it.
    template <int lanes>
    __device__ void merge_lanes(unsigned mask) {
        const float origin = __shfl_sync(mask, mean, 0, lanes);
        const float apart = mean - origin;
        float shift = count * apart;
        float squares = fmaf(shift, apart, deviations);
#pragma unroll
        for (int away = lanes / 2; away > 0; away /= 2) {
            count += __shfl_xor_sync(mask, count, away);
            shift += __shfl_xor_sync(mask, shift, away);
            squares += __shfl_xor_sync(mask, squares, away);
        }
        const float share = shift * ptx::reciprocal_approx(fmaxf(count, 1.0f));
        mean = origin + share;
        deviations = maximum(fmaf(-shift, share, squares), 0.0f);
    }
};

/// Moments of the few elements that one thread reads, as sums around its first one: what cancels at the end is
/// at most as many times what is left as there are elements, since that first one's own distance is in it. With
/// Moments a thread may read any number.
struct RunningMoments {
    static constexpr int parts = 4;
    float origin = 0, count = 0, shift = 0, squares[parts] = {};

    template <int width>
    __device__ void add(const float (&v)[width], unsigned) {
        if (count == 0) origin = v[0];
        float apart[width];
#pragma unroll
        for (int k = 0; k < width; ++k) {
            apart[k] = v[k] - origin;
            squares[k % parts] = fmaf(apart[k], apart[k], squares[k % parts]);
        }
        shift += sum_of(apart);
        count += width;
    }
    __device__ Moments moments() const {
        const float share = shift * ptx::reciprocal_approx(fmaxf(count, 1.0f));
        return {count, origin + share, maximum(fmaf(-shift, share, sum_of(squares)), 0.0f)};
    }
};

}  // namespace rooftile::fuse
