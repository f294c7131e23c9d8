// Run-time arguments of every GEMM kernel, laid out alike on host and device.
#pragma once

namespace rooftile {

/// An encoded CUtensorMap. Its address must be 64-byte aligned (CUDA driver API, cuTensorMapEncodeTiled).
struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

/// Sizes in elements; C is row-major with `ldc` elements from row to row.
struct GemmArguments {
    int m, n, k;
    int order;  ///< an Order
    int group;  ///< rows of cluster tiles walked together where the order is grouped or serpentine
    long long ldc;
    void* c;  ///< read only where C goes out by predicated stores
};

}  // namespace rooftile
