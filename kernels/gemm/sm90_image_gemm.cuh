// C[M x N] = A[M x K] * B[K x N] on Hopper, where A's rows are places of an image and its columns the taps of a filter: a convolution as an
// implicit product. kernels/matrix/ has the roles and all else; what is stored is the sums, or an expression of them.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/gemm_config.hpp"
#include "kernels/matrix/load_image.cuh"
#include "kernels/matrix/matrix_kernel.cuh"

namespace rooftile {

template <Sm90GemmConfig C, class Epilogue>
__device__ __forceinline__ void run_image_gemm(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_c, const MoreTensorMaps& more,
                                               const GemmArguments& args, const ImageArguments& image, const Epilogue& epilogue) {
    const auto load_of = [&](const MatrixShared<C>& shared) { return ImageLoad<C>{map_a, map_b, args, image, shared}; };
    run_cta<C>(load_of, map_c, more, args, epilogue);
}

template <Sm90GemmConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_image_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __grid_constant__ TensorMap map_c,
                    const __grid_constant__ GemmArguments args, const __grid_constant__ ImageArguments image) {
    run_image_gemm<C>(map_a, map_b, map_c, {map_c, map_c, map_c, map_c, map_c}, args, image, NoEpilogue{});
}

/// The same, and what is stored is an expression of the sums; `map_operand` is read with operand_staged alone.
template <Sm90GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_image_gemm_epilogue(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const __grid_constant__ TensorMap map_c,
                             const __grid_constant__ GemmArguments args, const __grid_constant__ TensorMap map_operand,
                             const __grid_constant__ ImageArguments image, const __grid_constant__ Epilogue epilogue) {
    static_assert(!C.overlapped_epilogue, "what waits to be stored is finished");
    run_image_gemm<C>(map_a, map_b, map_c, {map_operand, map_c, map_c, map_c, map_c}, args, image, epilogue);
}

}  // namespace rooftile
