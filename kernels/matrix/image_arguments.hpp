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
    /// How far a tap is from the first, along each axis.
    template <int count>
    constexpr void tap_offset(unsigned tap, unsigned short (&offset)[count]) const {
        for (int i = 0; i < count; ++i) {
            const unsigned next = axes[i].taps.quotient(tap);
            offset[i] = static_cast<unsigned short>((tap - next * axes[i].taps.divisor) * static_cast<unsigned>(axes[i].dilation));
            tap = next;
        }
    }
    /// What a block of K is. The one beyond the end that a short part of K takes is after the last tap's channels, where both operands are
    /// zeros.
    struct Block {
        unsigned tap;
        int channel;
    };
    constexpr Block block_at(unsigned block, int tile_k) const {
        const unsigned last = axes[0].taps.divisor * axes[1].taps.divisor * axes[2].taps.divisor - 1, found = channel_blocks.quotient(block),
                       tap = found < last ? found : last;
        return {tap, static_cast<int>(block - tap * channel_blocks.divisor) * tile_k};
    }
};

}  // namespace rooftile
