// The reference of expressions: every operator's meaning over whole tensors in fp64, and results judged against it. It
// shares nothing with the kernels that it judges but the definition of Philox. The host writes a source that includes this
// and makes a kernel of each operator (ROOFTILE_ELEMENT_KERNEL, ROOFTILE_ROW_KERNEL).
#pragma once

#include "kernels/expression/row_meaning.hpp"
#include "kernels/measure/expression_arguments.hpp"
#include "kernels/measure/fill.cuh"
#include "kernels/measure/saturate.hpp"

namespace rooftile {

__device__ inline double element_at(const void* data, Element element, long long i) {
    switch (element) {
        case Element::boolean:
            return static_cast<const unsigned char*>(data)[i];
        case Element::int64:
            return static_cast<double>(static_cast<const long long*>(data)[i]);
        case Element::fp32:
            return static_cast<const float*>(data)[i];
        default:
            return value_of_bits(static_cast<const unsigned short*>(data)[i], type_of(element));
    }
}

__device__ inline void set_element(void* data, Element element, long long i, double value) {
    switch (element) {
        case Element::boolean:
            static_cast<unsigned char*>(data)[i] = value != 0;
            return;
        case Element::int64:
            static_cast<long long*>(data)[i] = static_cast<long long>(value);
            return;
        case Element::fp32:
            static_cast<float*>(data)[i] = static_cast<float>(value);
            return;
        default:
            static_cast<unsigned short*>(data)[i] =
                static_cast<unsigned short>(round_to_bits(value, type_of(element)));
    }
}

__device__ __noinline__ Bounded value_at(const BoundedView& view, long long i) {
    if (view.held == Held::number) return {view.number, 0};
    if (view.held == Held::element) return {element_at(view.data, view.element, i), 0};
    const double2 pair = static_cast<const double2*>(view.data)[i];
    return {pair.x, pair.y};
}

__device__ inline void store(Bounded* to, Bounded b) {
    *reinterpret_cast<double2*>(to) = make_double2(b.value, b.error);
}

/// Where operand `o` has what the result has at `index`.
template <class Index>
__device__ inline long long operand_place(const ElementArguments& p, int o, Index index) {
    long long at = 0;
    for (int axis = p.axes - 1; axis >= 0; --axis) {
        const Index extent = static_cast<Index>(p.extents[axis]), next = index / extent;
        at += static_cast<long long>(index - next * extent) * p.strides[o][axis];
        index = next;
    }
    return at;
}

__device__ __noinline__ Bounded operand_at(const ElementArguments& p, int o, long long i) {
    if (o >= p.operand_count) return {};
    if (p.dense[o] || p.operands[o].held == Held::number) return value_at(p.operands[o], i);
    const bool narrow = p.count < (1ll << 32);  // a division of 64 bits is five of 32
    return value_at(p.operands[o],
                    narrow ? operand_place(p, o, static_cast<unsigned>(i)) : operand_place(p, o, i));
}

template <Bounded (*meaning_of)(const ElementCall&)>
__device__ inline void each_element(const ElementArguments& p) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count;
         i += step) {
        ElementCall call = p.call;
        call.x = operand_at(p, 0, i);
        call.y = operand_at(p, 1, i);
        call.z = operand_at(p, 2, i);
        call.index = p.first + static_cast<unsigned long long>(i);
        store(p.out + i, meaning::as_flag(call, meaning_of(call)));
    }
}

/// Threads that come to one answer: lanes of a warp, a CTA, or several CTAs that all run at once.
struct Team {
    int threads, ctas;
    int rank;  ///< among all threads of all CTAs
    int cta;
    unsigned* arrived;
    char* parts;
    char* shared;  ///< of the CTA: a part a warp
    mutable unsigned meetings = 0;

    __device__ long long size() const { return static_cast<long long>(threads) * ctas; }

    template <class R>
    __device__ static R from_lane(const R& mine, int mask) {
        constexpr int words = sizeof(R) / 8;
        static_assert(sizeof(R) % 8 == 0 && sizeof(R) <= row_part_bytes);
        struct Words {
            unsigned long long word[words];
        };
        Words w = __builtin_bit_cast(Words, mine);
        for (int i = 0; i < words; ++i) w.word[i] = __shfl_xor_sync(0xffffffffu, w.word[i], mask);
        return __builtin_bit_cast(R, w);
    }

    /// Of `mine` of all threads, for all of them; always in the same order. Whole warps call it.
    template <class R>
    __device__ R joined(R mine) const {
        for (int mask = (threads < 32 ? threads : 32) / 2; mask > 0; mask /= 2)
            mine.join(from_lane(mine, mask));
        if (threads <= 32) return mine;
        if (threadIdx.x % 32 == 0) *part<R>(shared, static_cast<int>(threadIdx.x) / 32) = mine;
        __syncthreads();
        R all;
        for (int warp = 0; warp < threads / 32; ++warp) all.join(*part<R>(shared, warp));
        __syncthreads();
        return ctas == 1 ? all : met(all);
    }

  private:
    template <class R>
    __device__ static R* part(char* parts, int i) {
        return reinterpret_cast<R*>(parts + i * row_part_bytes);
    }

    /// Across CTAs. Parts have two places: who writes the first again has passed the meeting of the second, which all
    /// came to after they had read the first.
    template <class R>
    __device__ R met(const R& mine) const {
        char* const place = parts + meetings % 2 * ctas * row_part_bytes;
        ++meetings;
        if (threadIdx.x == 0) {
            *part<R>(place, cta) = mine;
            __threadfence();
            atomicAdd(arrived, 1u);
            while (*static_cast<volatile unsigned*>(arrived) < meetings * static_cast<unsigned>(ctas)) {}
            __threadfence();
        }
        __syncthreads();
        R all;
        for (int other = 0; other < ctas; ++other) {
            struct Words {
                unsigned long long word[sizeof(R) / 8];
            } w;
            for (int i = 0; i < static_cast<int>(sizeof(R) / 8);
                 ++i)  // past L1, which may hold an older part
                w.word[i] = __ldcg(reinterpret_cast<const unsigned long long*>(part<R>(place, other)) + i);
            all.join(__builtin_bit_cast(R, w));
        }
        return all;
    }
};

/// A row that a team goes over; kernels/expression/row_meaning.hpp says what its members are.
struct DeviceRow {
    const RowArguments& p;
    const Team& team;
    long long row;
    bool writes;  ///< threads without a row of their own go with another's
    long long n;
    double epsilon;
    int weights;

    __device__ Bounded x(long long i) const { return value_at(p.x, row * p.pitch + i * p.step); }
    __device__ Bounded weight(int w, long long i) const { return value_at(p.weights[w], i); }
    template <class R, class Step>
    __device__ R reduce(Step step) const {
        R r;
        for (long long i = team.rank; i < n; i += team.size()) step(r, x(i), i);
        return team.joined(r);
    }
    template <class F>
    __device__ void each(F f) const {
        if (!writes) return;
        for (long long i = team.rank; i < n; i += team.size()) store(p.out + row * n + i, settled(f(x(i), i)));
    }
    __device__ void give(Bounded b) const {
        if (writes && team.rank == 0) store(p.out + row, settled(b));
    }
};

template <class Operation>
__device__ inline void each_row(const RowArguments& p, Operation operation) {
    __shared__ double2 shared[reference_threads / 32 * row_part_bytes / sizeof(double2)];
    const int in_cta = reference_threads / p.threads;  // rows side by side
    const int sub = static_cast<int>(threadIdx.x) / p.threads;
    const long long group = blockIdx.x / p.ctas, groups = gridDim.x / p.ctas;
    const int cta = static_cast<int>(blockIdx.x % p.ctas);
    const Team team{p.threads,
                    p.ctas,
                    cta * p.threads + static_cast<int>(threadIdx.x) % p.threads,
                    cta,
                    p.arrived + group,
                    p.parts + group * 2 * p.ctas * row_part_bytes,
                    reinterpret_cast<char*>(shared)};
    for (long long first = group * in_cta; first < p.rows; first += groups * in_cta) {
        const bool own = first + sub < p.rows;
        DeviceRow row{p, team, own ? first + sub : p.rows - 1, own, p.columns, p.epsilon, p.weight_count};
        operation(row);
    }
}

struct JudgeTally {
    double ratio = 0;
    long long place = 0x7fffffffffffffffll;
    unsigned long long wrong = 0, undecided = 0;
    __device__ void join(const JudgeTally& other) {
        if (other.ratio > ratio || (other.ratio == ratio && other.place < place)) {
            ratio = other.ratio;
            place = other.place;
        }
        wrong += other.wrong;
        undecided += other.undecided;
    }
};

__device__ inline long long got_place(const JudgeArguments& p, long long i) {
    return p.pitch == 0 ? i : i / p.columns * p.pitch + i % p.columns;
}

__device__ inline double stored_value(const JudgeArguments& p, int result, long long i) {
    const long long at = got_place(p, i);
    return is_fp8(p.stored) ? value_of_bits(static_cast<const unsigned char*>(p.got[result])[at], p.stored) : element_at(p.got[result], p.element, at);
}
__device__ inline BoundedVerdict judge_stored(const JudgeArguments& p, int result, long long i) {
    const double got = stored_value(p, result, i);
    const Bounded expected = value_at(p.expected, i);
    return is_fp8(p.stored) ? judge_saturated(got, expected, p.stored) : judge(got, expected, p.element);
}

/// Adds to `records`, an entry a result and CTA, which begin as zeros.
__global__ void __launch_bounds__(reference_threads)
    judge_elements(const __grid_constant__ JudgeArguments p, JudgeRecord* records) {
    __shared__ double2 shared[reference_threads / 32 * row_part_bytes / sizeof(double2)];
    const Team team{reference_threads, 1,       static_cast<int>(threadIdx.x),  0,
                    nullptr,           nullptr, reinterpret_cast<char*>(shared)};
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (int result = 0; result < p.results; ++result) {
        JudgeTally mine;
        for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count;
             i += step) {
            const BoundedVerdict v = judge_stored(p, result, i);
            mine.wrong += v.ratio > 1;
            mine.undecided += v.undecided;
            if (v.ratio > mine.ratio) {
                mine.ratio = v.ratio;
                mine.place = i;
            }
        }
        const JudgeTally all = team.joined(mine);
        if (threadIdx.x > 0) continue;
        JudgeRecord& record = records[result * gridDim.x + blockIdx.x];
        record.wrong += all.wrong;
        record.undecided += all.undecided;
        if (all.ratio <= record.ratio) continue;
        record.ratio = all.ratio;
        record.got = stored_value(p, result, all.place);
        record.expected = value_at(p.expected, all.place).value;
        record.bound = judge_stored(p, result, all.place).bound;
        record.element = p.first + all.place;
    }
}

/// Standard normal numbers rounded to the type; of flags, even odds. An element depends on its index, the seed and the
/// stream alone.
__global__ void fill_elements(const __grid_constant__ ElementFillArguments p) {
    const long long groups = (p.count + fill_group - 1) / fill_group;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long g = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; g < groups; g += step) {
        const PhiloxBlock block = philox(static_cast<unsigned long long>(g), p.stream, p.seed);
        double values[4];
        two_normals(block.word[0], block.word[1], reinterpret_cast<double(&)[2]>(values[0]));
        two_normals(block.word[2], block.word[3], reinterpret_cast<double(&)[2]>(values[2]));
#pragma unroll
        for (int i = 0; i < fill_group; ++i) {
            const long long at = g * fill_group + i;
            const double value = p.element == Element::boolean ? block.word[i] >> 31 : values[i];
            if (at < p.count) set_element(p.data, p.element, at, value);
        }
    }
}

/// What was filled becomes lanes around a mean of 1 to `most`, either sign, as large as they were times 1 to 10^-4; every third lane one value.
/// Of all inputs the same lanes are.
__global__ void shift_lanes(const __grid_constant__ LaneShiftArguments p) {
    const ElementFillArguments& to = p.filled;
    constexpr double of_word = 0x1p-32;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < to.count; i += step) {
        const auto lane = static_cast<unsigned long long>(p.of_columns ? i % p.columns : i / p.columns);
        const PhiloxBlock block = philox(lane, to.stream + 4096, to.seed);  // apart from the streams that fill
        const double mean = exp(of_word * block.word[0] * log(p.most)) * (block.word[1] >> 31 ? 1 : -1);
        const double spread = (lane + to.seed) % 3 == 0 ? 0 : exp(-4 * 2.302585092994046 * of_word * block.word[2]);
        set_element(to.data, to.element, i, mean + spread * element_at(to.data, to.element, i));
    }
}

__global__ void set_one_element(void* data, Element element, long long at, double value) {
    set_element(data, element, at, value);
}

}  // namespace rooftile

/// A kernel of what a point-wise operator means, and of what a row operation does.
#define ROOFTILE_ELEMENT_KERNEL(name, ...)                  \
    namespace rooftile::meaning {                           \
    __global__ void __launch_bounds__(reference_threads, 4) \
        name(const __grid_constant__ ElementArguments p) {  \
        each_element<__VA_ARGS__>(p);                       \
    }                                                       \
    }
#define ROOFTILE_ROW_KERNEL(name, operation)                                                               \
    namespace rooftile::meaning {                                                                          \
    __global__ void __launch_bounds__(reference_threads, 4) name(const __grid_constant__ RowArguments p) { \
        each_row(p, [](DeviceRow& row) { operation(row); });                                               \
    }                                                                                                      \
    }
