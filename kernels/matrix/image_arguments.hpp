// Where an operand's lines are that are taken from an image; host and device see the same bytes.
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
    Divider channel_blocks;  ///< blocks of channels that one tap has
    unsigned step[most_axes + 1] = {};  ///< from one block of places to the next: along each axis, and of images; each below its axis's places

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
    constexpr void step_by(unsigned places) {
        for (int i = 0; i < most_axes; ++i) {
            const unsigned next = axes[i].places.quotient(places);
            step[i] = places - next * axes[i].places.divisor, places = next;
        }
        step[most_axes] = places;
    }
    constexpr unsigned taps() const { return axes[0].taps.divisor * axes[1].taps.divisor * axes[2].taps.divisor; }
};

/// A place of the result, counted on from one to another without a division.
template <int count>
struct ImagePlace {
    unsigned at[count + 1];  ///< along each axis, and behind them the image's number

    constexpr ImagePlace(const ImageArguments& image, unsigned place) : at{} {
        for (int i = 0; i < count; ++i) {
            const unsigned next = image.axes[i].places.quotient(place);
            at[i] = place - next * image.axes[i].places.divisor;
            place = next;
        }
        at[count] = place;
    }
    /// That of the next block.
    constexpr void advance(const ImageArguments& image) {
        unsigned carried = 0;
        for (int i = 0; i < count; ++i) {
            at[i] += image.step[i] + carried;
            carried = at[i] >= image.axes[i].places.divisor ? 1 : 0;
            if (carried) at[i] -= image.axes[i].places.divisor;
        }
        at[count] += image.step[ImageArguments::most_axes] + carried;
    }
    /// As ImageArguments::first_pixel().
    constexpr void pixel(const ImageArguments& image, int (&to)[count + 1]) const {
        for (int i = 0; i < count; ++i) to[i] = static_cast<int>(at[i]) * image.axes[i].stride - image.axes[i].before;
        to[count] = static_cast<int>(at[count]);
    }
};

/// A block of channels of one tap. What is beyond the end, as of a short part of K, is after the last tap's channels, where the image
/// is zeros.
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
