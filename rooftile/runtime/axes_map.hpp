// A tensor map of as many axes as TMA knows, each with its own part of a box: for boxes that are no rows of one matrix.
#pragma once

#include <cstdint>

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// Element (i0, i1, ...) lies at base + i0 * size + i1 * strides[0] + ...; box and shared memory have the axes in the same order, the first
/// one contiguous.
struct AxesMapRequest {
    static constexpr int most_axes = 5;
    Type type = Type::bf16;
    DevicePointer base = 0;                            ///< 16-byte aligned
    int axes = 2;
    std::int64_t extents[most_axes] = {};              ///< elements
    std::int64_t stride_bytes[most_axes - 1] = {};     ///< of all axes but the first: multiples of 16, below 2^40, in any order
    int box[most_axes] = {};                           ///< elements, at most 256 each; box[0] * size <= swizzle span
    int swizzle_bytes = 128, l2_promotion_bytes = 128;  ///< as TensorMapRequest's
};
/// As encode() of a TensorMapRequest.
void encode(TensorMap& map, const AxesMapRequest& request);

}  // namespace rooftile
