// How the values of a row come together: one accumulator a kind, fed by vectors, merged in any order.
//
// Every accumulator is a few 32-bit words, so that shuffles and shared memory carry them as they are.
#pragma once

#include "kernels/expression/math.cuh"
#include "kernels/fuse/pack.cuh"

namespace rooftile::fuse {

/// Rounding errors grow with the number of vectors of one thread, not with that of its elements.
template <int vector_width>
__device__ inline float sum_of(const float (&v)[vector_width]) {
    float s[vector_width];
#pragma unroll
    for (int k = 0; k < vector_width; ++k) s[k] = v[k];
#pragma unroll
    for (int half = vector_width / 2; half > 0; half /= 2)
#pragma unroll
        for (int k = 0; k < half; ++k) s[k] += s[k + half];
    return s[0];
}

struct Sum {
    static constexpr float nothing = 0;  ///< what adds nothing
    static constexpr float rest = 0;     ///< SumAndRest has one
    float total = 0;

    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
        total += sum_of(v);
    }
    __device__ void merge(const Sum& other) { total += other.total; }
};

/// A sum and what its roundings left out (Kahan 1965; where two meet, Knuth's sum). Its mean may be subtracted from the values again: of a
/// row of one value it is that value.
struct SumAndRest {
    static constexpr float nothing = 0;
    float total = 0, rest = 0;

    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
        const float before = total;
#pragma unroll
        for (int k = 0; k < vector_width; ++k) {
            const float more = v[k] + rest, all = total + more;
            rest = more - (all - total);
            total = all;
        }
        if (!known(total)) total = before + sum_of(v), rest = 0;
    }
    __device__ void merge(const SumAndRest& other) {
        const float all = total + other.total, more = all - total;
        const float left = (total - (all - more)) + (other.total - more);
        rest = known(all) ? rest + other.rest + left : 0;
        total = all;
    }

  private:
    /// Of Inf and NaN there is no rest.
    __device__ static bool known(float total) { return fabsf(total) < infinity; }
};

/// The mean of `count` + `count_rest` values, `share` of which is one: their sum divided, with its rest, by one step of Newton's.
template <class AnySum>
__device__ inline float mean_of(const AnySum& sum, float count, float count_rest, float share) {
    const float near = sum.total * share;
    const float left = fmaf(-near, count_rest, fmaf(-near, count, sum.total)) + sum.rest;
    return fabsf(near) < infinity ? fmaf(left, share, near) : near;
}

/// Of the squares: the first sums are fused products.
template <int vector_width>
__device__ inline float square_sum_of(const float (&v)[vector_width]) {
    if constexpr (vector_width == 1) return v[0] * v[0];
    else {
        constexpr int half = vector_width / 2;
        float pairs[half];
#pragma unroll
        for (int k = 0; k < half; ++k) pairs[k] = fmaf(v[k], v[k], v[k + half] * v[k + half]);
        return sum_of(pairs);
    }
}

struct SquareSum {
    static constexpr float nothing = 0;
    float total = 0;

    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
        total += square_sum_of(v);
    }
    __device__ void merge(const SquareSum& other) { total += other.total; }
};

/// Of a vector in its own type, two elements an instruction; exact in any type. NaN where one is.
template <class T, int vector_width>
__device__ inline float greatest_of(const Pack<T, vector_width>& v) {
    if constexpr (sizeof(T) == 2 && vector_width % 2 == 0) {
        const unsigned* pairs = reinterpret_cast<const unsigned*>(&v);
        unsigned top = pairs[0];
#pragma unroll
        for (int k = 1; k < vector_width / 2; ++k) top = ptx::max_nan_2<T::type>(top, pairs[k]);
        return maximum(ptx::widen<T::type>(top & 0xffffu), ptx::widen_upper<T::type>(top));
    } else {
        float top = v[0];
#pragma unroll
        for (int k = 1; k < vector_width; ++k) top = maximum(top, v[k]);
        return top;
    }
}

struct Max {
    static constexpr float nothing = -infinity;
    float greatest = -infinity;

    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) greatest = maximum(greatest, v[k]);
    }
    template <class T, int vector_width>
    __device__ void add(const Pack<T, vector_width>& v) {
        greatest = maximum(greatest, greatest_of(v));
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

/// Of `count` neighbouring lanes.
template <int count>
__device__ inline float greatest_of_lanes(float mine, unsigned mask) {
    Max top{mine};
    if constexpr (count == 32) {
        top.merge_warp();
    } else {
#pragma unroll
        for (int away = count / 2; away > 0; away /= 2)
            top.merge({__shfl_xor_sync(mask, top.greatest, away)});
    }
    return top.greatest;
}

/// The first column of the greatest value; NaN counts as greater than anything.
struct ArgMax {
    static constexpr float nothing = -infinity;
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
    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned column) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) offer(v[k], column + k);
    }
    __device__ void merge(const ArgMax& other) { offer(other.greatest, other.place); }
};

/// The greatest value and the sum of e^(v - greatest), in one reading of the row (online softmax).
struct Exponentials {
    static constexpr float nothing = -infinity;
    float greatest = -infinity;
    float total = 0;

    /// A row that so far is -Inf alone has no finite greatest to subtract: then 0 stands for it.
    __device__ static float reference(float greatest) { return greatest == -infinity ? 0.0f : greatest; }

    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
        float top = greatest;
#pragma unroll
        for (int k = 0; k < vector_width; ++k) top = maximum(top, v[k]);
        const float base = reference(top);
        float terms[vector_width];
#pragma unroll
        for (int k = 0; k < vector_width; ++k) terms[k] = exponential_16(apart(v[k], base));
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
        const float top = greatest_of_lanes<count>(greatest, mask);
        total *= exponential_16(greatest - reference(top));
#pragma unroll
        for (int away = count / 2; away > 0; away /= 2) total += __shfl_xor_sync(mask, total, away);
        greatest = top;
    }
    __device__ float log_sum_exp() const {
        return greatest == infinity ? greatest : greatest + logarithm(total);
    }
};

/// e^difference, of values from the greatest of their row. A difference that is fused with the product that its value is has what
/// that was rounded by, of huge values more than powers hold: from 2^28 on the scale falls, so that they do. What differs there
/// differs by 32 and more.
struct DifferencePowers {
    float scale;

    // Divided before the reciprocal: that of what is beyond 2^126 is 0 (ftz).
    __device__ explicit DifferencePowers(float greatest)
        : scale(fminf(log2_e, ptx::reciprocal_approx(fabsf(greatest) * (1 / 536870912.0f)))) {}
    __device__ float power(float difference) const { return ptx::exp2_approx(difference * scale); }
};

/// e^(v - reference) of 16-bit values, as 2^(v * scale + offset): one instruction beside the power itself, where
/// exponential_16(v - reference) has two. The rounding of `offset` puts one factor within 2^+-0.07 on all powers of
/// a base, which softmax divides away; beside it their relative error is at most (2 + |v - reference|) * 2^-22.
/// Beyond 2^20 no other 16-bit value is nearer to the reference than 4096: powers are 0 or 1 whatever the scale,
/// and only with 1 neither the product nor its rounding leaves fp32.
struct PowerBase {
    float scale, offset;

    /// Of a row that so far is -Inf alone fp32's least number stands for it: all powers are 0, none is NaN.
    __device__ explicit PowerBase(float reference) {
        constexpr float least = -3.40282347e38f, far = 1048576.0f;
        scale = fabsf(reference) > far ? 1.0f : log2_e;
        // Rounded alike everywhere: what it is off by stands in all powers of the base, or in none.
        offset = ptx::product(-scale, maximum(reference, least));
    }
    __device__ float power(float v) const { return ptx::exp2_approx(fmaf(v, scale, offset)); }
    /// What 1 of `lower` is here, whose reference is not the greater. Where scales differ, 4096 or more lie between.
    __device__ float power(const PowerBase& lower) const {
        return lower.scale == scale ? ptx::exp2_approx(offset - lower.offset) : 0.0f;
    }
};

/// The sum of e^(v - reference) of 16-bit values, by PowerBase; the reference is the greatest of them. NaN and +Inf
/// make the total NaN.
struct Powers {
    float reference = -infinity;
    float total = 0;

    __device__ void merge(const Powers& other) {
        const float top = maximum(reference, other.reference);
        const PowerBase base(top);
        total =
            total * base.power(PowerBase(reference)) + other.total * base.power(PowerBase(other.reference));
        reference = top;
    }
    /// Of `count` neighbouring lanes: the reference first, so that each total is scaled but once.
    template <int count>
    __device__ void merge_lanes(unsigned mask) {
        const float top = greatest_of_lanes<count>(reference, mask);
        total *= PowerBase(top).power(PowerBase(reference));
#pragma unroll
        for (int away = count / 2; away > 0; away /= 2) total += __shfl_xor_sync(mask, total, away);
        reference = top;
    }
};

/// Powers of what one thread reads in one pass, several vectors an iteration: scaled anew once an iteration, without a branch.
struct RunningPowers {
    float reference = -infinity, total = 0;
    PowerBase base{-infinity};

    /// Before an iteration's vectors, of which `top` is the greatest value.
    __device__ void reach(float top) {
        reference = maximum(reference, top);
        const PowerBase moved(reference);
        total *= moved.power(base);
        base = moved;
    }
    template <class T, int vector_width>
    __device__ void add(const Pack<T, vector_width>& v) {
        float terms[vector_width];
#pragma unroll
        for (int k = 0; k < vector_width; ++k) terms[k] = base.power(v[k]);
        total += sum_of(terms);
    }
    __device__ Powers powers() const { return {reference, total}; }
};

/// Mean and the sum of squared deviations from it (Chan, Golub and LeVeque 1979): nothing cancels where the
/// mean is large. Means move by differences alone, so that of a row of one value it is that value whatever the counts.
struct Moments {
    float count = 0, mean = 0, deviations = 0;

    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
        Moments vector;
        vector.count = vector_width;
        vector.mean = sum_of(v) * (1.0f / vector_width);
        float apart[vector_width];
#pragma unroll
        for (int k = 0; k < vector_width; ++k) apart[k] = v[k] - vector.mean;
        vector.deviations = square_sum_of(apart);
        merge(vector);
    }
    /// Whether sums around 0 lost more than four bits of the deviations, or something is not finite: then the row is to be
    /// gone over again. The same in all threads that have reduced it.
    __device__ bool cancelled() const {
        return !(16.0f * deviations >= count * mean * mean && deviations < infinity);
    }
    __device__ void merge(const Moments& other) {
        const float all = count + other.count;
        const float share = other.count * ptx::reciprocal_approx(fmaxf(all, 1.0f));
        const float apart = other.mean - mean;
        mean = fmaf(apart, share, mean);
        // In this order: of huge values the square alone may be Inf, and nothing times that NaN.
        deviations += fmaf(apart * (count * share), apart, other.deviations);
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

/// Moments as sums around 0: an instruction an element fewer than RunningMoments, and what cancels is as much more than
/// what is left as the mean's square is than the variance. Moments::cancelled() tells.
struct PlainMoments {
    static constexpr int parts = 4;
    float total = 0, squares[parts] = {};

    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
#pragma unroll
        for (int k = 0; k < vector_width; ++k) squares[k % parts] = fmaf(v[k], v[k], squares[k % parts]);
        total += sum_of(v);
    }
    __device__ Moments moments(float count) const {
        const float mean = total * ptx::reciprocal_approx(fmaxf(count, 1.0f));
        return {count, mean, maximum(fmaf(-total, mean, sum_of(squares)), 0.0f)};
    }
};

/// Of differences from some value near their mean: their sum and that of their squares.
struct Differences {
    static constexpr float nothing = 0;
    float shift = 0, squares = 0;

    /// One after the other within a vector: both trees side by side take eight registers more.
    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
        float sum = 0, square = 0;
#pragma unroll
        for (int k = 0; k < vector_width; ++k) {
            sum += v[k];
            square = fmaf(v[k], v[k], square);
        }
        shift += sum;
        squares += square;
    }
    __device__ void merge(const Differences& other) {
        shift += other.shift;
        squares += other.squares;
    }
    /// Of `count` values whose differences from `near` these are. Squares that are Inf have no less left of them: of a row of one huge value
    /// nothing differs, whatever divides it.
    __device__ Moments moments(float count, float near) const {
        const float share = shift * ptx::reciprocal_approx(fmaxf(count, 1.0f));
        return {count, near + share, squares < infinity ? maximum(fmaf(-shift, share, squares), 0.0f) : squares};
    }
};

/// How many of `count` things fall to who takes number `first` and then each `step`-th.
__device__ inline unsigned share_of(unsigned count, unsigned first, unsigned step) {
    return count > first ? (count - first + step - 1) / step : 0;
}

/// Moments of the few elements that one thread reads, as sums around its first one: what cancels at the end is
/// at most as many times what is left as there are elements, since that first one's own distance is in it. With
/// Moments a thread may read any number.
struct RunningMoments {
    static constexpr int parts = 4;
    float origin = 0, shift = 0, squares[parts] = {};
    bool any = false;

    template <int vector_width>
    __device__ void add(const float (&v)[vector_width], unsigned) {
        if (!any) origin = v[0];
        any = true;
        float apart[vector_width];
#pragma unroll
        for (int k = 0; k < vector_width; ++k) {
            apart[k] = v[k] - origin;
            squares[k % parts] = fmaf(apart[k], apart[k], squares[k % parts]);
        }
        shift += sum_of(apart);
    }
    /// `count`: of all that was added; who goes through the row knows it without adding it up.
    __device__ Moments moments(float count) const {
        const float share = shift * ptx::reciprocal_approx(fmaxf(count, 1.0f));
        return {count, origin + share, maximum(fmaf(-shift, share, sum_of(squares)), 0.0f)};
    }
};

}  // namespace rooftile::fuse
