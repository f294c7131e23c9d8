// Where rows of A are that are taken from an image; host and device see the same bytes.
#pragma once

#include "kernels/divider.hpp"

namespace rooftile {

/// Axes are counted from the fastest one: x, y, z. A row of A is a place of the result, tap for tap of the filter.
struct ImageArguments {
    static constexpr int most_axes = 3;
    struct Axis {
        Divider places;  ///< of the result along the axis
        Divider taps;    ///< of the filter
        int stride = 1, before = 0, dilation = 1;  ///< before: pixels of padding in front of the image
    } axes[most_axes];
    Divider channel_blocks;  ///< blocks of K that one tap has

    /// The pixel that the first tap meets at a place of the result, along each of `count` axes, and behind them the image's number.
    template <int count>
    constexpr void first_pixel(unsigned place, int (&pixel)[count + 1]) const {
        for (int i = 0; i < count; ++i) {
            const Axis& axis = axes[i];
            const unsigned next = axis.places.quotient(place);
            pixel[i] = static_cast<int>(place - next * axis.places.divisor) * axis.stride - axis.before;
            place = next;
        }
        pixel[count] = static_cast<int>(place);
    }
    constexpr unsigned taps() const { return axes[0].taps.divisor * axes[1].taps.divisor * axes[2].taps.divisor; }
};

/// A block of K: channels of one tap. The one beyond the end that a short part of K takes is after the last tap's channels, where both operands
/// are zeros.
template <int count>
struct ImageBlock {
    int channel;
    unsigned tap, along[count];  ///< along: the tap's number along each axis

    constexpr ImageBlock(const ImageArguments& image, unsigned block, int tile_k) : along{} {
        const unsigned last = image.taps() - 1, found = image.channel_blocks.quotient(block);
        tap = found < last ? found : last;
        channel = static_cast<int>(block - tap * image.channel_blocks.divisor) * tile_k;
        unsigned left = tap;
        for (int i = 0; i < count; ++i) {
            const unsigned next = image.axes[i].taps.quotient(left);
            along[i] = left - next * image.axes[i].taps.divisor;
            left = next;
        }
    }
    /// The next one, without a division.
    constexpr void advance(const ImageArguments& image, int tile_k) {
        channel += tile_k;
        if (channel < static_cast<int>(image.channel_blocks.divisor) * tile_k || tap + 1 == image.taps()) return;
        channel = 0, ++tap;
        for (int i = 0; i < count; ++i) {
            if (++along[i] < image.axes[i].taps.divisor) return;
            along[i] = 0;
        }
    }
    /// How far the tap is from the first, along each axis.
    constexpr void offset(const ImageArguments& image, unsigned short (&to)[count]) const {
        for (int i = 0; i < count; ++i) to[i] = static_cast<unsigned short>(along[i] * static_cast<unsigned>(image.axes[i].dilation));
    }
};

}  // namespace rooftile
