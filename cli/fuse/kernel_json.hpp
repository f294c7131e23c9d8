// What `build fuse` says of one kernel: its figures, and all that a program of its own needs to launch it.
#pragma once

#include <string>

#include "rooftile/fuse/device/kernel.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile::cli {

/// Accesses to global memory in PTX, by width: what shows that vectors stayed whole.
struct Accesses {
    int loads_16 = 0, loads = 0, stores_16 = 0, stores = 0;
};

Accesses accesses_of(const std::string& ptx);

/// Of a CTA: what its threads tell each other, and the rows that wait there.
std::int64_t shared_bytes(const FuseKernel& kernel);

/// Everything of the kernel, and how it is launched: what `rooftile/build/1` has of it.
Json kernel_json(const FuseKernel& kernel);

/// Entry, block, cluster and shared memory; the CTAs; its two arguments, the tensors as words and the sizes as
/// bytes. docs/command-line.md tells how they are read.
Json launch_json(const FuseKernel& kernel);

}  // namespace rooftile::cli
