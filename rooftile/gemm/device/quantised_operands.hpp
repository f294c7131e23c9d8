// What launches of kernels by packed weights share: how TMA reads rows of A, and which operands are refused.
#pragma once

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/gemm/device/launch.hpp"

namespace rooftile {

/// Rows of A: boxes of 64 of K by `tile_m` rows, `spans` of these at once where K is made of them (`ragged_k`: it is not).
TensorMap quantised_rows_map(Type type, int tile_m, int spans, bool ragged_k, const GemmShape& shape, const void* a);

/// Throws RequestError naming the first size, leading dimension or pointer that such a kernel cannot address.
void check_quantised_operands(bool ragged_k, const GemmShape& shape, const void* a, const void* b, const void* c);

/// "rooftile::QuantisedLayout{.weights=...}", as name expressions have it.
std::string layout_expression(const QuantisedLayout& layout);
/// "rooftile::unpack_weights<rooftile::Type::bf16, ..., rooftile::Type::fp8_e4m3>": the types that are multiplied, and that rows of A have in memory.
std::string unpack_name_expression(const QuantisedLayout& layout, Type activations, Type rows);
inline std::string unpack_name_expression(const QuantisedLayout& layout, Type activations) { return unpack_name_expression(layout, activations, activations); }

}  // namespace rooftile
