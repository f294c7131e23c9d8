// A kernel that begins as one with a ring does, and then only waits: as a programmatic dependent its start and set-up run
// beside the end of the launch before.
#pragma once

#include "kernels/probe/record.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

constexpr int dependent_barriers = 16;

/// Holds each SM for `cycles` once the launch before has ended.
__global__ void __launch_bounds__(384) dependent(unsigned long long cycles) {
    extern __shared__ unsigned long long dependent_words[];
    if (threadIdx.x == 0) {
        const unsigned barriers = ptx::shared_address(dependent_words);
        for (int i = 0; i < dependent_barriers; ++i) ptx::mbarrier_init(barriers + 8 * unsigned(i), 1);
        ptx::fence_mbarrier_init();
    }
    __syncthreads();
    ptx::launch_dependents();
    ptx::wait_for_dependencies();
    const unsigned long long begin = probe_cycles();
    while (probe_cycles() - begin < cycles) {}
}

}  // namespace rooftile
