// A tensor map for loads of images (im2col): the copy engine finds the pixels that a filter's taps meet.
#pragma once

#include <cstdint>

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// Images [images][z]?[y][x][channels], dense; axes counted from x.
struct ImageMapRequest {
    static constexpr int most_axes = 3;
    Type type = Type::bf16;
    DevicePointer base = 0;        ///< 16-byte aligned
    int axes = 2;                  ///< 2 or 3
    std::int64_t images = 1, channels = 8;  ///< channels: of whole 16 bytes
    std::int64_t extents[most_axes] = {1, 1, 1};  ///< pixels
    /// Where the first tap's pixel may be: from `first` on, and so far from the image's last pixel.
    int first[most_axes] = {}, past_last[most_axes] = {};
    int strides[most_axes] = {1, 1, 1};
    int box_channels = 64, box_pixels = 128;  ///< of one copy; box_channels * size <= swizzle span, box_pixels <= 1024
    int swizzle_bytes = 128, l2_promotion_bytes = 128;
};
/// Needs a driver but no context. What is outside the image reads as zero.
void encode(TensorMap& map, const ImageMapRequest& request);

}  // namespace rooftile
