// Who a thread is, and how groups of threads meet. PTX ISA 9.7.13 and 10 "Special Registers".
#pragma once

namespace rooftile::ptx {

__device__ inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// A value that is the same in all lanes, told to the compiler so.
__device__ inline int warp_uniform(int value) { return __shfl_sync(0xffffffff, value, 0); }

/// SMs of the GPU, or numbers that SMs may have.
__device__ inline unsigned sms() {
    unsigned count;
    asm("mov.u32 %0, %%nsmid;" : "=r"(count));
    return count;
}

/// `value` as it is, made only once. No instruction.
__device__ inline void keep(unsigned& value) { asm volatile("" : "+r"(value)); }
__device__ inline void keep(float& value) { asm volatile("" : "+f"(value)); }
__device__ inline void keep(long long& value) { asm volatile("" : "+l"(value)); }

/// True in exactly one lane of a converged warp.
__device__ inline bool elect_one() {
    unsigned elected;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "elect.sync _|p, 0xffffffff;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(elected));
    return elected != 0;
}

/// A moment's sleep, which the compiler moves nothing over.
__device__ inline void pause() { asm volatile("nanosleep.u32 1;"); }

/// Named barrier `id` (0 is __syncthreads) over `threads` threads.
__device__ inline void named_barrier_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_barrier_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/// Gives registers back to the pool, or takes them; a whole warpgroup must call it.
template <int registers>
__device__ inline void release_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

/// Programmatic dependent launch: lets the next kernel of the stream begin, if it was launched so; and waits
/// until the kernels this one depends on are over and their writes visible. Both do nothing in a plain
/// launch, the only kind before sm_90. PTX ISA 9.7.13.13 "griddepcontrol".
__device__ inline void launch_dependents() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void wait_for_dependencies() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace rooftile::ptx
