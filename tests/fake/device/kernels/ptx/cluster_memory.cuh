// Stands in for kernels/ptx/cluster_memory.cuh where kernels/pipeline/scheduler.cuh runs on the CPU.
#pragma once

#include <cstring>

#include "kernels/ptx/sync.cuh"

namespace rooftile::ptx {

inline void store_shared(unsigned shared, unsigned word) { std::memcpy(fake_shared[0] + shared, &word, sizeof word); }
inline unsigned load_shared(unsigned shared) {
    unsigned word;
    std::memcpy(&word, fake_shared[0] + shared, sizeof word);
    return word;
}
inline unsigned map_to_rank(unsigned shared, unsigned rank) {
    return rank * fake_shared_bytes + shared % fake_shared_bytes;
}

}  // namespace rooftile::ptx
