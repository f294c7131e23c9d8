// A tensor map as host and device hand it on.
#pragma once

namespace rooftile {

/// An encoded CUtensorMap. Its address must be 64-byte aligned (CUDA driver API, cuTensorMapEncodeTiled).
struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

}  // namespace rooftile
