@HEAD@
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_universal.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

namespace @NAME@ {

using ElementA = @A_TYPE@;
using ElementB = @B_TYPE@;
using ElementD = @D_TYPE@;

using Gemm = cutlass::gemm::device::GemmUniversal<
    ElementA, cutlass::layout::@A_LAYOUT@, ElementB, cutlass::layout::@B_LAYOUT@, ElementD, cutlass::layout::RowMajor, float,
    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<@TILE_M@, @TILE_N@, @TILE_K@>,
    cutlass::gemm::GemmShape<@WARP_M@, @WARP_N@, @TILE_K@>, cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<ElementD, @D_ALIGNMENT@, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<@SWIZZLE@>, @STAGES@, @A_ALIGNMENT@, @B_ALIGNMENT@>;
static_assert(sizeof(typename Gemm::GemmKernel::SharedStorage) <= @SHARED@);

/// Bytes that run() needs, and its arguments. Batch strides count elements from one matrix to the next.
inline typename Gemm::Arguments arguments(ElementA const* a, ElementB const* b, ElementD* d, int m, int n, int k) {
    return {@MODE@, {m, n, k}, @BATCH@, {1.0f, 0.0f}, a, b, d, d,
            @A_BATCH@, @B_BATCH@, @D_BATCH@, @D_BATCH@, @LDA@, @LDB@, @LDD@, @LDD@};
}
template <class = void>
size_t workspace_bytes(int m = @M@, int n = @N@, int k = @K@) {
    return Gemm::get_workspace_size(arguments(nullptr, nullptr, nullptr, m, n, k));
}

/// Enqueues d = a b.
template <class = void>
cutlass::Status run(ElementA const* a, ElementB const* b, ElementD* d, void* workspace = nullptr, cudaStream_t stream = nullptr,
                    int m = @M@, int n = @N@, int k = @K@) {
    typename Gemm::Arguments const given = arguments(a, b, d, m, n, k);
    Gemm gemm;
    cutlass::Status status = gemm.can_implement(given);
    if (status == cutlass::Status::kSuccess) status = gemm.initialize(given, workspace, stream);
    return status == cutlass::Status::kSuccess ? gemm(stream) : status;
}

}  // namespace @NAME@
