// The part of cuBLASLt's interface that is used, declared here because its header comes with the toolkit
// alone. Numbers and sizes are those of CUDA 13; tests/gemm/device/cublaslt_api_test.cpp compares them with
// the header where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rooftile::cublaslt {

inline constexpr int status_success = 0;

inline constexpr int real_32f = 0, real_16f = 2, real_16bf = 14, real_8f_e4m3 = 28, real_8f_e5m2 = 29;  // cudaDataType
inline constexpr int compute_32f = 68;                             // cublasComputeType_t
inline constexpr int operation_none = 0, operation_transpose = 1;  // cublasOperation_t

inline constexpr int desc_transpose_a = 3, desc_transpose_b = 4;  // cublasLtMatmulDescAttributes_t, int32
// The same: an int32 of cublasLtEpilogue_t, addresses, an int8.
inline constexpr int desc_epilogue = 7, desc_bias_pointer = 8, desc_a_scale_pointer = 17, desc_b_scale_pointer = 18, desc_d_scale_pointer = 20,
                     desc_fast_accum = 25, desc_a_scale_mode = 31, desc_b_scale_mode = 32;
inline constexpr int scale_outer = 3, scale_1x128 = 4, scale_128x128 = 5;  // cublasLtMatmulMatrixScale_t, int32
inline constexpr int epilogue_default = 1, epilogue_relu = 2, epilogue_bias = 4, epilogue_gelu = 32;  // cublasLtEpilogue_t
inline constexpr int layout_batch = 5, layout_stride = 6;  // cublasLtMatrixLayoutAttribute_t, int32 and int64 of elements
inline constexpr int preference_max_workspace = 1;  // cublasLtMatmulPreferenceAttributes_t, uint64
/// The same, uint32: of the address of A, B, C and D. Leading dimensions it knows from the layouts.
inline constexpr int preference_min_alignment[] = {5, 6, 7, 8};

/// cublasLtMatmulAlgo_t
struct Algorithm {
    std::uint64_t data[8];
};

/// cublasLtMatmulHeuristicResult_t
struct Heuristic {
    Algorithm algorithm;
    std::size_t workspace_bytes;
    int state;  ///< the rest means something only where this is success
    float waves;
    int reserved[4];
};

using Handle = void*;
using Description = void*;
using Layout = void*;
using Preference = void*;

struct Functions {
    int (*create)(Handle*) = nullptr;
    int (*destroy)(Handle) = nullptr;
    std::size_t (*version)() = nullptr;
    int (*description_create)(Description*, int compute, int scale) = nullptr;
    int (*description_set)(Description, int attribute, const void* value, std::size_t bytes) = nullptr;
    int (*description_destroy)(Description) = nullptr;
    int (*layout_create)(Layout*, int type, std::uint64_t rows, std::uint64_t columns,
                         std::int64_t leading) = nullptr;
    int (*layout_set)(Layout, int attribute, const void* value, std::size_t bytes) = nullptr;
    int (*layout_destroy)(Layout) = nullptr;
    int (*preference_create)(Preference*) = nullptr;
    int (*preference_set)(Preference, int attribute, const void* value, std::size_t bytes) = nullptr;
    int (*preference_destroy)(Preference) = nullptr;
    int (*heuristic)(Handle, Description, Layout a, Layout b, Layout c, Layout d, Preference, int asked,
                     Heuristic* results, int* count) = nullptr;
    int (*matmul)(Handle, Description, const void* alpha, const void* a, Layout, const void* b, Layout,
                  const void* beta, const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace,
                  std::size_t workspace_bytes, void* stream) = nullptr;
};

}  // namespace rooftile::cublaslt
