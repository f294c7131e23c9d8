// An operand of a product that is no matrix in memory: rows are places of a filtered image, columns the channels of the pixels
// that a filter's taps meet there, tap by tap.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rooftile {

/// One axis of the image; all lengths in pixels.
struct ImageAxis {
    std::int64_t extent = 1, taps = 1, stride = 1, padding = 0, dilation = 1;  ///< padding: on either side

    /// Pixels from a filter's first tap to its last.
    std::int64_t reach() const { return (taps - 1) * dilation; }
    /// Places of the result; none where the filter is longer than the padded image.
    std::int64_t places() const {
        const std::int64_t room = extent + 2 * padding - reach() - 1;
        return room < 0 ? 0 : room / stride + 1;
    }
    /// Pixels of the image that some pair of a place and a tap meets; this and the next take time by the taps, not by the pixels.
    std::int64_t pixels_read() const;
    /// Pairs of a place and a tap whose pixel is inside the image.
    std::int64_t pairs_inside() const;
    /// Pairs that meet one pixel, at most: of taps that a stride holds together each meets it from a place of its own.
    std::int64_t most_uses() const;
    friend bool operator==(const ImageAxis&, const ImageAxis&) = default;
};

/// Images one after the other, [images][z][y][x][channels], dense. axes[0] is x.
struct ImageOperand {
    std::int64_t images = 1, channels = 1;
    std::array<ImageAxis, 3> axes{};

    /// Whether the third axis counts.
    bool is_deep() const { return axes[2] != ImageAxis{}; }
    std::int64_t rows() const { return images * axes[0].places() * axes[1].places() * axes[2].places(); }
    std::int64_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
    std::int64_t columns() const { return taps() * channels; }
    std::int64_t pixels() const { return images * axes[0].extent * axes[1].extent * axes[2].extent; }
    std::int64_t elements() const { return pixels() * channels; }
    /// Elements that the result depends on: with strides beyond the filter not all.
    std::int64_t elements_read() const { return images * channels * axes[0].pixels_read() * axes[1].pixels_read() * axes[2].pixels_read(); }
    /// The share of products whose pixel is inside the image.
    double share_inside() const;
    /// Blocks of `block` channels: the last of a tap is filled up with zeros.
    std::int64_t blocks(std::int64_t block) const { return taps() * ((channels + block - 1) / block); }
    /// Places and taps that meet one pixel, at most.
    std::int64_t most_uses() const { return axes[0].most_uses() * axes[1].most_uses() * axes[2].most_uses(); }
    /// All numbers in their order: the same for the same image.
    std::string text() const;
    friend bool operator==(const ImageOperand&, const ImageOperand&) = default;
};

/// What the copy engine's loads of images cannot address, one line for a reader; empty where they can.
std::string image_load_obstacle(const ImageOperand& image, int element_bytes);
/// The same of loads that gather an image by pieces of 16 bytes; `most_taps`: along all axes together.
std::string image_gather_obstacle(const ImageOperand& image, int element_bytes, int most_taps);

}  // namespace rooftile
