@HEAD@
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

namespace @NAME@ {

using namespace cute;

// Operands as CUTLASS computes them.@SWAPPED@
using ElementA = @A_TYPE@;
using ElementB = @B_TYPE@;
using ElementD = @D_TYPE@;
using LayoutA = cutlass::layout::@A_LAYOUT@;
using LayoutB = cutlass::layout::@B_LAYOUT@;
using LayoutD = cutlass::layout::@D_LAYOUT@;
constexpr int alignment = 16;  // bytes, of every line

using TileShape = Shape<_@TILE_M@, _@TILE_N@, _@TILE_K@>;
using ClusterShape = Shape<_@CLUSTER_M@, _@CLUSTER_N@, _1>;

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, TileShape, ClusterShape, cutlass::epilogue::collective::EpilogueTileAuto,
    float, float, void, LayoutD, alignment / sizeof(ElementD), ElementD, LayoutD, alignment / sizeof(ElementD),
    cutlass::epilogue::@EPILOGUE@, cutlass::epilogue::fusion::LinearCombination<ElementD, float, void, float>>::CollectiveOp;

using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, ElementA, LayoutA, alignment / sizeof(ElementA), ElementB, LayoutB,
    alignment / sizeof(ElementB), float, TileShape, ClusterShape, cutlass::gemm::collective::StageCount<@STAGES@>,
    cutlass::gemm::@SCHEDULE@>::CollectiveOp;

using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, @SCHEDULER@>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
static_assert(sizeof(typename Kernel::SharedStorage) <= @SHARED@);

/// Of a, b and d, in elements: from one line to the next, and from one matrix of a batch to the next.
struct Strides {
    int64_t a = @LDA@, b = @LDB@, d = @LDD@, a_batch = @A_BATCH@, b_batch = @B_BATCH@, d_batch = @D_BATCH@;
};

inline typename Gemm::Arguments arguments(@OF_A@ const* a, @OF_B@ const* b, ElementD* d, int m, int n, int k, int batch,
                                          Strides strides) {
    typename Kernel::StrideA of_a{};
    typename Kernel::StrideB of_b{};
    typename Kernel::StrideD of_d{};
    get<@A_PITCH@>(of_a) = strides.@FIRST@, get<@B_PITCH@>(of_b) = strides.@SECOND@, get<@D_PITCH@>(of_d) = strides.d;
    get<2>(of_a) = strides.@FIRST@_batch, get<2>(of_b) = strides.@SECOND@_batch, get<2>(of_d) = strides.d_batch;
    typename Gemm::Arguments made{cutlass::gemm::GemmUniversalMode::kGemm, {@ROWS@, @COLUMNS@, k, batch},
                                  {@FIRST@, of_a, @SECOND@, of_b}, {{1.0f, 0.0f}, nullptr, {}, d, of_d}};
    using Raster = cutlass::gemm::kernel::detail::RasterOrderOptions;
    made.scheduler.raster_order = Raster::@RASTER@;
    made.scheduler.max_swizzle_size = @SWIZZLE@;@SPLITS@
    return made;
}

/// Bytes that run() needs.
template <class = void>
size_t workspace_bytes(int m = @M@, int n = @N@, int k = @K@, int batch = @BATCH@) {
    return Gemm::get_workspace_size(arguments(nullptr, nullptr, nullptr, m, n, k, batch, {}));
}

// A programmatic dependent launch begins before the kernel ahead of it has ended; only with this macro does CUTLASS's kernel wait for it.
#ifdef CUTLASS_ENABLE_GDC_FOR_SM90
constexpr bool programmatic_launch = @PDL@;
#else
constexpr bool programmatic_launch = false;
#endif

/// Enqueues d = a b.
template <class = void>
cutlass::Status run(@OF_A@ const* a, @OF_B@ const* b, ElementD* d, void* workspace = nullptr, cudaStream_t stream = nullptr,
                    int m = @M@, int n = @N@, int k = @K@, int batch = @BATCH@, Strides strides = {}) {
    typename Gemm::Arguments const given = arguments(a, b, d, m, n, k, batch, strides);
    Gemm gemm;
    cutlass::Status status = gemm.can_implement(given);
    if (status == cutlass::Status::kSuccess) status = gemm.initialize(given, workspace, stream);
    return status == cutlass::Status::kSuccess ? gemm.run(stream, nullptr, programmatic_launch) : status;
}

}  // namespace @NAME@
