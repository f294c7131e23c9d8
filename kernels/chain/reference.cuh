// What a chain's result must be. Sums of products come with their bounds from the measure station (fp64, no tensor core); here is what
// stands between and behind them: the function of elements, H's rounding to 16 bits, and the verdict.
//
// H as fp64 gives it rounds to the same 16 bits as a kernel's does, but where an fp32 error may carry it over the middle between two
// numbers. There `slack` has the distance to the other one. Whether a kernel took it is as likely to add as to take away (signs of W2
// are fair coins), so that all of them together come to no more than L sigma, sigma^2 = sum (slack w2)^2 (kernels/measure/numbers.hpp).
#pragma once

#include "kernels/chain/reference_arguments.hpp"
#include "kernels/expression/meaning.hpp"

namespace rooftile {

__device__ inline Bounded chain_function(ChainFunction act, Bounded x, Element precision) {
    if (act == ChainFunction::gelu) return meaning::of_one<meaning::exact_gelu, meaning::stated_gelu>(x, precision);
    if (act == ChainFunction::relu) return meaning::of_one<meaning::exact_relu, meaning::stated_none>(x, precision);
    return meaning::of_one<meaning::exact_silu, meaning::stated_sigmoid>(x, precision);
}

__global__ void __launch_bounds__(256) chain_round(const __grid_constant__ ChainRoundArguments p) {
    const long long all = p.rows * p.ff, step = static_cast<long long>(gridDim.x) * blockDim.x;
    const Element precision = p.type == Type::bf16 ? Element::bf16 : Element::fp16;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
        const long long row = i / p.ff, column = i - row * p.ff;
        const Bounded* at = p.sums + row * p.width + column;
        Bounded h = chain_function(p.act, at[0], precision);
        if (p.act == ChainFunction::swiglu) h = meaning::product_of(h, at[p.ff]);
        const unsigned bits = round_to_bits(h.value, p.type);
        double apart = 0;
        if (is_infinite(h.error)) apart = bounds::infinity;
        else if (!is_nan(h.value) && !is_infinite(h.value) && h.error > 0) {
            const double here = value_of_bits(bits, p.type);
            const double low = value_of_bits(round_to_bits(h.value - h.error, p.type), p.type),
                         high = value_of_bits(round_to_bits(h.value + h.error, p.type), p.type);
            apart = larger(fabs(here - low), fabs(high - here));
        }
        p.hidden[i] = static_cast<unsigned short>(bits);
        // Distances of neighbours are powers of two; others are rounded up.
        p.slack[i] = static_cast<unsigned short>(round_to_bits(apart * (1 + 2 * unit_roundoff(p.type)), p.type));
    }
}

/// Launched with any number of CTAs of 256 threads; `records` has one entry a CTA and result, zeroed before the first rows.
__global__ void __launch_bounds__(256) chain_judge(const __grid_constant__ ChainJudgeArguments p, ChainRecord* records) {
    __shared__ ChainRecord seen[256];
    const long long all = p.rows * p.d, step = static_cast<long long>(gridDim.x) * blockDim.x;
    const Element element = p.type == Type::bf16 ? Element::bf16 : Element::fp16;
#pragma unroll 1
    for (int result = 0; result < p.results; ++result) {
        ChainRecord mine{};
        mine.ratio = -1;
        for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
            Bounded expected = p.sums[i];
            const long long at = p.first_row * p.d + i;
            if (!p.exact) {
                const Bounded slack = p.slack[i];
                const double open = is_finite(slack.value) ? slack.error * p.slack_sigmas : bounds::infinity;
                if (is_finite(expected.value)) expected.error += open;
                else if (!is_finite(slack.value)) expected.error = bounds::infinity;
            }
            if (p.x) {
                const double beside = value_of_bits(p.x[at], p.type);
                const double sum = expected.value + beside;
                if (is_finite(sum) && !p.exact) expected.error += bounds::unit * (fabs(sum) + expected.error);
                expected.value = sum;
            }
            const unsigned got = p.y[result][at];
            const BoundedVerdict v = judge(value_of_bits(got, p.type), expected, element);
            mine.undecided += v.undecided;
            bool wrong = !(v.ratio <= 1);
            if (p.exact) wrong = judge_exact(got, expected.value, p.type).ratio != 0;
            mine.wrong += wrong;
            const double ratio = p.exact ? (wrong ? bounds::infinity : 0) : v.ratio;
            if (ratio > mine.ratio) {
                mine.ratio = ratio, mine.reference = expected.value, mine.bound = p.exact ? 0 : v.bound;
                mine.row = at / p.d, mine.column = at % p.d, mine.got = got;
            }
        }
        __syncthreads();
        seen[threadIdx.x] = mine;
        __syncthreads();
        if (threadIdx.x != 0) continue;
        ChainRecord& record = records[static_cast<long long>(result) * gridDim.x + blockIdx.x];
        for (const ChainRecord& one : seen) {
            record.wrong += one.wrong, record.undecided += one.undecided;
            if (one.ratio <= record.ratio) continue;
            record.ratio = one.ratio, record.reference = one.reference, record.bound = one.bound;
            record.row = one.row, record.column = one.column, record.got = one.got;
        }
    }
}

/// Every element of a dense matrix times a power of two: sums of unit deviation, where functions bend.
__global__ void chain_scale(unsigned short* matrix, long long elements, double factor, Type type) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += step)
        matrix[i] = static_cast<unsigned short>(round_to_bits(factor * value_of_bits(matrix[i], type), type));
}

}  // namespace rooftile
