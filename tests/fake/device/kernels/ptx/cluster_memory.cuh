// Stands in for kernels/ptx/cluster_memory.cuh where kernels/pipeline/scheduler.cuh runs on the CPU.
#pragma once

#include "kernels/ptx/sync.cuh"

namespace rooftile::ptx {

inline unsigned map_to_rank(unsigned shared, unsigned rank) {
    return rank * fake_shared_bytes + shared % fake_shared_bytes;
}

}  // namespace rooftile::ptx
