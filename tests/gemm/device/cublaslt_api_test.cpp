// Our declarations of cuBLASLt against its own header, on machines that have it.
#include "rooftile/gemm/device/cublaslt_api.hpp"

#include <gtest/gtest.h>

#if __has_include(<cublasLt.h>) && __has_include(<cuda_runtime_api.h>)
#include <cublasLt.h>

#include <type_traits>

namespace rooftile {
namespace {

namespace api = cublaslt;

static_assert(api::status_success == CUBLAS_STATUS_SUCCESS);
static_assert(api::real_32f == CUDA_R_32F && api::real_16f == CUDA_R_16F && api::real_16bf == CUDA_R_16BF);
static_assert(api::compute_32f == CUBLAS_COMPUTE_32F);
static_assert(api::operation_none == CUBLAS_OP_N && api::operation_transpose == CUBLAS_OP_T);
static_assert(sizeof(cublasOperation_t) == sizeof(std::int32_t));
static_assert(api::desc_transpose_a == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(api::desc_transpose_b == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(api::real_8f_e4m3 == CUDA_R_8F_E4M3 && api::real_8f_e5m2 == CUDA_R_8F_E5M2);
static_assert(api::desc_epilogue == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(api::desc_bias_pointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(api::desc_a_scale_pointer == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
static_assert(api::desc_b_scale_pointer == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
static_assert(api::desc_d_scale_pointer == CUBLASLT_MATMUL_DESC_D_SCALE_POINTER);
static_assert(api::desc_fast_accum == CUBLASLT_MATMUL_DESC_FAST_ACCUM);
static_assert(api::epilogue_default == CUBLASLT_EPILOGUE_DEFAULT && api::epilogue_relu == CUBLASLT_EPILOGUE_RELU);
static_assert(api::epilogue_bias == CUBLASLT_EPILOGUE_BIAS && api::epilogue_gelu == CUBLASLT_EPILOGUE_GELU);
static_assert(api::layout_batch == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(api::layout_stride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(api::preference_max_workspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(api::preference_min_alignment[0] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(api::preference_min_alignment[1] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(api::preference_min_alignment[2] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(api::preference_min_alignment[3] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(api::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(api::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(api::Heuristic, workspace_bytes)
              == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(api::Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(api::Heuristic, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

/// Types that a call passes alike: equal, or both pointers, or integers (an enum is one) of one size.
template <class Ours, class Theirs>
constexpr bool passed_alike() {
    if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
        return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
    } else {
        return sizeof(Ours) == sizeof(Theirs);
    }
}
template <class R, class... Ours, class S, class... Theirs>
constexpr bool same_call(R (*)(Ours...), S (*)(Theirs...)) {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs)) return false;
    else return passed_alike<R, S>() && (passed_alike<Ours, Theirs>() && ...);
}
#define EXPECT_SAME_CALL(member, function) \
    EXPECT_TRUE(same_call(decltype(api::Functions::member){}, static_cast<decltype(&function)>(nullptr)))

TEST(CublasLtApi, CallsAgreeWithTheHeader) {
    EXPECT_SAME_CALL(create, cublasLtCreate);
    EXPECT_SAME_CALL(destroy, cublasLtDestroy);
    EXPECT_SAME_CALL(version, cublasLtGetVersion);
    EXPECT_SAME_CALL(description_create, cublasLtMatmulDescCreate);
    EXPECT_SAME_CALL(description_set, cublasLtMatmulDescSetAttribute);
    EXPECT_SAME_CALL(description_destroy, cublasLtMatmulDescDestroy);
    EXPECT_SAME_CALL(layout_create, cublasLtMatrixLayoutCreate);
    EXPECT_SAME_CALL(layout_set, cublasLtMatrixLayoutSetAttribute);
    EXPECT_SAME_CALL(layout_destroy, cublasLtMatrixLayoutDestroy);
    EXPECT_SAME_CALL(preference_create, cublasLtMatmulPreferenceCreate);
    EXPECT_SAME_CALL(preference_set, cublasLtMatmulPreferenceSetAttribute);
    EXPECT_SAME_CALL(preference_destroy, cublasLtMatmulPreferenceDestroy);
    EXPECT_SAME_CALL(heuristic, cublasLtMatmulAlgoGetHeuristic);
    EXPECT_SAME_CALL(matmul, cublasLtMatmul);
}

}  // namespace
}  // namespace rooftile
#else
TEST(CublasLtApi, CallsAgreeWithTheHeader) { GTEST_SKIP() << "skipped: built without cublasLt.h"; }
#endif
