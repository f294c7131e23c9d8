// The roofs of copying and of reading, as ordinary loads and stores reach them: one CTA for each piece of the
// data, which it goes through in one go.
#pragma once

#include "kernels/ptx/stream.cuh"

namespace rooftile {

/// Every 16 bytes of `from` once to `to`, `count` of them. A thread loads all of its `accesses`, a CTA's width
/// apart, before it stores the first. `cached`: through L1 like any other load. `last`: L2 gives up what was read after
/// what was written (docs/facts.md 87).
template <int accesses, bool cached, bool last>
__global__ void __launch_bounds__(1024) copy_pieces(uint4* to, const uint4* from, long long count) {
    const long long begin = static_cast<long long>(blockIdx.x) * blockDim.x * accesses + threadIdx.x;
    ptx::Words<16> words[accesses];
#pragma unroll
    for (int j = 0; j < accesses; ++j) {
        const long long i = begin + static_cast<long long>(j) * blockDim.x;
        if (i < count)
            ptx::load_global<cached ? ptx::LoadPath::l1 : ptx::LoadPath::past_l1,
                             last ? CachePolicy::evict_last : CachePolicy::normal>(words[j], from + i);
    }
#pragma unroll
    for (int j = 0; j < accesses; ++j) {
        const long long i = begin + static_cast<long long>(j) * blockDim.x;
        if (i < count) ptx::store_words(to + i, words[j]);
    }
}

/// Every 16 bytes of `from` once. Words that sum to `never` alone would be told.
template <int accesses, bool cached>
__global__ void __launch_bounds__(1024)
    read_pieces(const uint4* from, long long count, unsigned never, unsigned* told) {
    const long long begin = static_cast<long long>(blockIdx.x) * blockDim.x * accesses + threadIdx.x;
    ptx::Words<16> words[accesses] = {};
#pragma unroll
    for (int j = 0; j < accesses; ++j) {
        const long long i = begin + static_cast<long long>(j) * blockDim.x;
        if (i < count)
            ptx::load_global<cached ? ptx::LoadPath::l1 : ptx::LoadPath::past_l1>(words[j], from + i);
    }
    unsigned sum = 0;
#pragma unroll
    for (int j = 0; j < accesses; ++j)
        sum += words[j].word[0] ^ words[j].word[1] ^ words[j].word[2] ^ words[j].word[3];
    if (sum == never) *told = sum;
}

}  // namespace rooftile
