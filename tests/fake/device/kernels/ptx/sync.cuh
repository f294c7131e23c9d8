// Stands in for kernels/ptx/sync.cuh where kernels/pipeline/scheduler.cuh runs on the CPU: the shared memory of a
// cluster's CTAs lies in one array, and the test says which CTA runs.
#pragma once

#define __device__

inline struct { unsigned x = 0; } blockIdx, gridDim;

namespace rooftile::ptx {

constexpr unsigned fake_shared_bytes = 1024;  ///< of a CTA
alignas(16) inline unsigned char fake_shared[2][fake_shared_bytes];
inline unsigned fake_rank = 0;

inline unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(static_cast<const unsigned char*>(pointer) - fake_shared[0]);
}
inline unsigned cluster_rank() { return fake_rank; }

}  // namespace rooftile::ptx
