// An image as L2 sees it where tiles of a product read it by places and taps: a block is what one step takes of one pixel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "rooftile/tiled/image_operand.hpp"

namespace rooftile {

/// Blocks of the first `block_channels` channels of a pixel, the next, and so on; the last may be shorter. Pixels outside are no blocks: nobody reads
/// them.
struct L2Image {
    ImageOperand image;
    std::int64_t block_channels = 1, element_bytes = 1, first = 0;

    std::int64_t channel_blocks() const { return (image.channels + block_channels - 1) / block_channels; }
    std::int64_t count() const { return image.pixels() * channel_blocks(); }

    /// access(id, bytes) of each pixel inside that places [from, to) meet by block `k` of the product's K: taps, and of a tap its blocks of channels.
    template <class Access>
    void for_each_block(std::int64_t from, std::int64_t to, std::int64_t k, const Access& access) const {
        const std::int64_t blocks = channel_blocks(), block = k % blocks;
        const std::int64_t bytes = std::min(block_channels, image.channels - block * block_channels) * element_bytes;
        std::array<std::int64_t, 3> place{}, offset{};
        std::int64_t tap = k / blocks, at = from;
        for (std::size_t a = 0; a < 3; ++a) {
            const ImageAxis& axis = image.axes[a];
            offset[a] = tap % axis.taps * axis.dilation - axis.padding, tap /= axis.taps;
            place[a] = at % axis.places(), at /= axis.places();
        }
        const std::int64_t places[] = {image.axes[0].places(), image.axes[1].places(), image.axes[2].places()};
        for (std::int64_t left = to - from; left > 0;) {
            // The places left of a row have their pixels in one row of the image.
            const std::int64_t of_row = std::min(left, places[0] - place[0]);
            const std::int64_t y = pixel(1, place, offset), z = pixel(2, place, offset);
            if (y >= 0 && z >= 0) {
                const std::int64_t row = first + ((at * image.axes[2].extent + z) * image.axes[1].extent + y) * image.axes[0].extent * blocks + block;
                std::int64_t x = place[0] * image.axes[0].stride + offset[0];
                for (std::int64_t i = 0; i < of_row; ++i, x += image.axes[0].stride)
                    if (x >= 0 && x < image.axes[0].extent) access(row + x * blocks, bytes);
            }
            left -= of_row, place[0] = 0;
            if (++place[1] == places[1]) {
                place[1] = 0;
                if (++place[2] == places[2]) place[2] = 0, ++at;
            }
        }
    }

  private:
    /// Along an axis; below 0 outside.
    std::int64_t pixel(std::size_t a, const std::array<std::int64_t, 3>& place, const std::array<std::int64_t, 3>& offset) const {
        const std::int64_t at = place[a] * image.axes[a].stride + offset[a];
        return at < image.axes[a].extent ? at : -1;
    }
};

}  // namespace rooftile
