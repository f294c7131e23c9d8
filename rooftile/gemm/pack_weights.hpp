// Weights as plain arrays to weights as a kernel reads them: kernels/gemm/quantised_weights.hpp has the layout.
#pragma once

#include <span>

#include "rooftile/core/packs.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {

/// q [N, K] of int8 or uint8, of floats and tables the weights' bits (of floats those of finite numbers alone); scales [N, groups along K]
/// of fp32, fp16 or bf16, rounded to the layout's type, of mxfp4 powers of two or, of uint8, their exponents as e8m0 has them; with zero
/// points these [N, groups], as q where they are whole numbers, else as scales. Of `rows` alone, as Packs::pack_rows() has them. `to` has
/// problem.quantised.bytes(). Throws RequestError naming the first array or element that does not fit.
void pack_weights(const GemmProblem& problem, RowRange rows, std::span<const PlainArray> arrays, std::span<unsigned char> to);
/// The weights of packed rows, unrounded.
void unpack_weights(const GemmProblem& problem, RowRange rows, std::span<const unsigned char> packed, std::span<double> to);

const Packs& gemm_packs();

}  // namespace rooftile
