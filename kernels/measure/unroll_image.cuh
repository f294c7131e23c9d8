// The rows of an image's product written out, by the definition: what verification multiplies. It shares nothing with the kernels that are
// judged by it.
#pragma once

#include "kernels/measure/unroll_image_arguments.hpp"

namespace rooftile {

/// Any number of threads; each writes elements a grid apart.
__global__ void unroll_image(const __grid_constant__ UnrollImage p) {
    const long long taps = p.axes[0].taps * p.axes[1].taps * p.axes[2].taps, all = p.rows * taps * p.channels;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += step) {
        const long long column = i % (taps * p.channels), channel = p.reversed ? column / taps : column % p.channels;
        long long tap = p.reversed ? taps - 1 - column % taps : column / p.channels, place = p.first_row + i / (taps * p.channels), pixel = 0, pixels = 1;
        bool inside = true;
        for (const UnrollImage::Axis& axis : p.axes) {
            const long long at = place % axis.places * axis.stride - axis.padding + tap % axis.taps * axis.dilation;
            inside = inside && at >= 0 && at < axis.extent;
            pixel += at * pixels;
            place /= axis.places, tap /= axis.taps, pixels *= axis.extent;
        }
        pixel += place * pixels;  // what is left is the image
        p.to[i] = inside ? p.image[pixel * p.pixel_channels + channel] : static_cast<unsigned short>(0);
    }
}

}  // namespace rooftile
