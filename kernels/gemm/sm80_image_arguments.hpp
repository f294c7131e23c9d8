// Where the pieces of A are that sm80_image_gemm gathers from an image; host and device see the same bytes.
#pragma once

#include "kernels/matrix/image_arguments.hpp"

namespace rooftile {

/// Distances are counted in pieces: 16 bytes, 8 channels of one pixel.
struct Sm80ImageArguments {
    static constexpr int axes = ImageArguments::most_axes, piece_channels = 8;
    static constexpr int most_taps = 31;  ///< of all axes together: a bit each; the last bit is that of no tap
    ImageArguments image;                 ///< whose blocks of channels are pieces
    Divider dilation[axes];
    int extent[axes];                     ///< pixels along each axis
    int pitch[axes + 1];                  ///< from one pixel along each axis to the next, and from one image
    unsigned first_bit[axes];             ///< of each axis: its first tap's
    unsigned pieces;                      ///< of a row of A

    /// The taps along an axis whose pixel is in the image where the first one's is `pixel`: a bit each, from the axis's first on.
    constexpr unsigned taps_inside(int axis, int pixel) const {
        const auto taps_before = [&](int distance) {  // whose pixels are less than that far from the first
            const unsigned most = image.axes[axis].taps.divisor;
            const unsigned taps = distance > 0 ? dilation[axis].quotient(static_cast<unsigned>(distance) + dilation[axis].divisor - 1) : 0;
            return first_bit[axis] << (taps < most ? taps : most);
        };
        const unsigned low = taps_before(-pixel), high = taps_before(extent[axis] - pixel);
        return high > low ? high - low : 0;
    }
};

/// The same for images whose axes `image` has; `channels`: a multiple of 8.
constexpr Sm80ImageArguments sm80_image_arguments(const ImageArguments& image,
                                                  const int (&extent)[Sm80ImageArguments::axes], int channels) {
    Sm80ImageArguments out{};
    out.image = image;
    out.pieces = static_cast<unsigned>(channels / Sm80ImageArguments::piece_channels);
    out.image.channel_blocks = divider(out.pieces);
    out.pitch[0] = static_cast<int>(out.pieces);
    unsigned bit = 1;
    for (int i = 0; i < Sm80ImageArguments::axes; ++i) {
        const unsigned taps = image.axes[i].taps.divisor;
        out.extent[i] = extent[i];
        out.dilation[i] = divider(static_cast<unsigned>(image.axes[i].dilation));
        out.pitch[i + 1] = out.pitch[i] * extent[i];
        out.first_bit[i] = bit;
        bit <<= taps;
        out.pieces *= taps;
    }
    return out;
}

}  // namespace rooftile
