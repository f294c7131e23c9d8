// What lies between the products of a layer of experts: which tokens go to whom, their rows side by side, the gate, and the sum of what
// comes back. Every kernel is right for any choice of experts, all tokens to one of them included, and makes the same bits every time.
#pragma once

#include "kernels/layer/experts_arguments.hpp"
#include "kernels/layer/runs.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

constexpr int route_threads = 128, sort_threads = 1024, row_threads = 128;
constexpr unsigned whole_warp = 0xffffffffu;

/// A warp a token: the `chosen` greatest logits, of equal ones the first, and their softmax over all experts.
template <int of_lane, Type type>
__global__ void __launch_bounds__(route_threads) route(const RouteArguments a) {
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    const int token = static_cast<int>((blockIdx.x * route_threads + threadIdx.x) / 32), lane = static_cast<int>(threadIdx.x % 32);
    if (token >= a.tokens) return;
    const unsigned short* row = static_cast<const unsigned short*>(a.logits) + static_cast<long long>(token) * a.columns;
    const float lowest = -__int_as_float(0x7f800000);
    float logits[of_lane], greatest = lowest;
#pragma unroll
    for (int i = 0; i < of_lane; ++i) {
        const int expert = i * 32 + lane;
        logits[i] = expert < a.experts ? ptx::widen<type>(row[expert]) : lowest;
        greatest = fmaxf(greatest, logits[i]);
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) greatest = fmaxf(greatest, __shfl_xor_sync(whole_warp, greatest, apart));
    float all = 0;
#pragma unroll
    for (int i = 0; i < of_lane; ++i) all += __expf(logits[i] - greatest);
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) all += __shfl_xor_sync(whole_warp, all, apart);

    float own_weight = 0, chosen_weights = 0;
    int own_expert = 0;
    for (int choice = 0; choice < a.chosen; ++choice) {
        float best = logits[0];
        int at = lane;
#pragma unroll
        for (int i = 1; i < of_lane; ++i)
            if (logits[i] > best) best = logits[i], at = i * 32 + lane;
#pragma unroll
        for (int apart = 16; apart > 0; apart /= 2) {
            const float other = __shfl_xor_sync(whole_warp, best, apart);
            const int other_at = __shfl_xor_sync(whole_warp, at, apart);
            if (other > best || (other == best && other_at < at)) best = other, at = other_at;
        }
        // Lanes agree but where a logit is no number; the first one's choice is taken then, and is an expert's in any case.
        at = __shfl_sync(whole_warp, at, 0);
        at = at < a.experts ? at : a.experts - 1;
        best = __shfl_sync(whole_warp, best, 0);
#pragma unroll
        for (int i = 0; i < of_lane; ++i)
            if (at == i * 32 + lane) logits[i] = lowest;
        const float weight = __expf(best - greatest);
        chosen_weights += weight;
        if (lane == choice) own_weight = weight, own_expert = at;
    }
    if (lane < a.chosen) {
        const long long place = static_cast<long long>(token) * a.chosen + lane;
        a.to.weights[place] = own_weight / (a.renormalized ? chosen_weights : all);
        a.to.experts[place] = own_expert;
    }
    if (a.shared_gate && lane == 0) static_cast<unsigned short*>(a.shared_gate)[token] = row[a.experts];
}

/// The sum of `x` over the threads before this one, and over all of them in `all`.
__device__ inline int sum_before(int x, int& all) {
    __shared__ int of_warps[sort_threads / 32];
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    int sum = x;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const int before = __shfl_up_sync(whole_warp, sum, apart);
        if (lane >= apart) sum += before;
    }
    __syncthreads();
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    int before = 0;
    all = 0;
    for (int w = 0; w < sort_threads / 32; ++w) {
        const int of_warp = of_warps[w];
        before += w < warp ? of_warp : 0;
        all += of_warp;
    }
    return before + sum - x;
}

/// A CTA an expert: its choices get rows one after the other in the order of tokens, behind those of the experts before it. Each thread has
/// neighbouring choices, so that their order is kept by one sum over threads.
__global__ void __launch_bounds__(sort_threads) sort_choices(const ExpertChoices c, int choices, int experts) {
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    const int expert = static_cast<int>(blockIdx.x), share = (choices + sort_threads - 1) / sort_threads;
    const int first = static_cast<int>(threadIdx.x) * share, last = first + share < choices ? first + share : choices;
    int lower = 0, own = 0;
    for (int i = first; i < last; ++i) {
        const int chosen = c.experts[i];
        lower += chosen < expert;
        own += chosen == expert;
    }
    int begin, count;
    sum_before(lower, begin);
    int row = sum_before(own, count) + begin;
    for (int i = first; i < last; ++i)
        if (c.experts[i] == expert) c.rows[i] = row++;
    if (threadIdx.x != 0) return;
    c.offsets[expert] = begin;
    if (expert == experts - 1) c.offsets[experts] = begin + count;
}

/// A thread copies 8 columns of a choice: from its token's row to the choice's. Columns are a multiple of 8. Grid: x choices, y columns.
__global__ void __launch_bounds__(row_threads) gather_rows(const void* from, void* to, const int* rows, int chosen, int columns) {
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    const int vectors = columns / run_elements;
    const uint4* source = static_cast<const uint4*>(from) + static_cast<long long>(blockIdx.x / chosen) * vectors;
    uint4* target = static_cast<uint4*>(to) + static_cast<long long>(rows[blockIdx.x]) * vectors;
    const int i = static_cast<int>(blockIdx.y) * row_threads + static_cast<int>(threadIdx.x);
    if (i < vectors) target[i] = source[i];
}

/// A thread sums 8 columns of a token: what its experts made, by their weights and in the order of its choices, is added to `base`. More
/// columns a thread would wait for each choice's row number and row once more. Grid: x tokens, y columns.
template <Type type>
__global__ void __launch_bounds__(row_threads)
    combine_rows(const void* made, const ExpertChoices c, const void* base, void* to, int chosen, int columns) {
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    const long long token = blockIdx.x;
    const int vectors = columns / run_elements;
    const int i = static_cast<int>(blockIdx.y) * row_threads + static_cast<int>(threadIdx.x);
    if (i >= vectors) return;
    float sum[run_elements];
    load_run<type>(static_cast<const uint4*>(base) + token * vectors + i, sum);
    for (int choice = 0; choice < chosen; ++choice) {
        const long long place = token * chosen + choice;
        const float weight = c.weights[place];
        float row[run_elements];
        load_run<type>(static_cast<const uint4*>(made) + static_cast<long long>(c.rows[place]) * vectors + i, row);
#pragma unroll
        for (int e = 0; e < run_elements; ++e) sum[e] += weight * row[e];
    }
    store_run<type>(static_cast<uint4*>(to) + token * vectors + i, sum);
}

}  // namespace rooftile
