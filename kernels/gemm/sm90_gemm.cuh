// C[M x N] = A[M x K] * B[K x N] on Hopper: bf16 or fp16 in and out, fp32 sums; or a batch of such products.
//
// kernels/matrix/matrix_kernel.cuh has the story, the roles and all else. Here are the kernels: what comes with the products.
#pragma once

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/gemm_config.hpp"
#include "kernels/matrix/matrix_kernel.cuh"

namespace rooftile {

/// A and B by TMA boxes.
template <Sm90GemmConfig C, class Epilogue>
__device__ __forceinline__ void run_gemm(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_c, const MoreTensorMaps& more,
                                         const GemmArguments& args, const Epilogue& epilogue) {
    const auto load_of = [&](const MatrixShared<C>& shared) { return TiledLoad<C>{map_a, map_b, more, args, shared}; };
    run_cta<C>(load_of, map_c, more, args, epilogue);
}

template <Sm90GemmConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
              const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args) {
    run_gemm<C>(map_a, map_b, map_c, {map_c, map_c, map_c, map_c, map_c}, args, NoEpilogue{});
}

/// The same, and what is stored is an expression of the sums; `map_operand` is read with operand_staged alone.
template <Sm90GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm_epilogue(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                       const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args,
                       const __grid_constant__ TensorMap map_operand, const __grid_constant__ Epilogue epilogue) {
    static_assert(!C.overlapped_epilogue, "what waits to be stored is finished");
    run_gemm<C>(map_a, map_b, map_c, {map_operand, map_c, map_c, map_c, map_c}, args, epilogue);
}

/// The same with block_scales.
template <Sm90GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm_scaled(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                     const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args,
                     const __grid_constant__ TensorMap map_operand, const __grid_constant__ TensorMap map_a_scale,
                     const __grid_constant__ TensorMap map_b_scale, const __grid_constant__ Epilogue epilogue) {
    run_gemm<C>(map_a, map_b, map_c, {map_operand, map_a_scale, map_b_scale, map_c, map_c}, args, epilogue);
}

/// The same with several results.
template <Sm90GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm90_gemm_results(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                      const __grid_constant__ TensorMap map_c, const __grid_constant__ GemmArguments args,
                      const __grid_constant__ TensorMap map_second, const __grid_constant__ TensorMap map_third,
                      const __grid_constant__ Epilogue epilogue) {
    run_gemm<C>(map_a, map_b, map_c, {map_c, map_c, map_c, map_second, map_third}, args, epilogue);
}

}  // namespace rooftile
