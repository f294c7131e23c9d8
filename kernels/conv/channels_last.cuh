// Images whose channels are outermost, copied with their channels innermost: what convolutions of such images read.
//
// A CTA has tiles of 64 channels and 64 pixels. A thread loads two pixels of two channels, lanes along the pixels, and puts them into shared memory
// as two channels of two pixels; then lanes store along the channels. Both are whole words where numbers of pixels and of channels are even.
#pragma once

#include "kernels/conv/channels_last.hpp"

namespace rooftile {

/// Two neighbours as one word; zeros from `left` on.
__device__ __forceinline__ unsigned load_two(const unsigned short* from, long long left, bool words) {
    if (left >= 2 && words) return __ldg(reinterpret_cast<const unsigned*>(from));
    return (left > 0 ? static_cast<unsigned>(__ldg(from)) : 0u) | (left > 1 ? static_cast<unsigned>(__ldg(from + 1)) << 16 : 0u);
}
__device__ __forceinline__ void store_two(unsigned short* to, unsigned two, long long left, bool words) {
    if (left >= 2 && words) {
        *reinterpret_cast<unsigned*>(to) = two;
        return;
    }
    to[0] = static_cast<unsigned short>(two);
    if (left > 1) to[1] = static_cast<unsigned short>(two >> 16);
}

/// Tiles along pixels, channels and images are the grid's x, y and z, which take turns where there are more.
__global__ void __launch_bounds__(ChannelsLastArguments::threads) channels_last(const __grid_constant__ ChannelsLastArguments p) {
    constexpr int tile = ChannelsLastArguments::tile, half = tile / 2, line = ChannelsLastArguments::line;
    extern __shared__ unsigned turned[];  // a line for a pixel, two channels a word
    const bool pixel_words = p.pixels % 2 == 0, channel_words = p.channels % 2 == 0;
    for (long long image = blockIdx.z; image < p.images; image += gridDim.z)
        for (long long channel = static_cast<long long>(blockIdx.y) * tile; channel < p.channels; channel += static_cast<long long>(gridDim.y) * tile)
            for (long long pixel = static_cast<long long>(blockIdx.x) * tile; pixel < p.pixels; pixel += static_cast<long long>(gridDim.x) * tile) {
                // Lanes are on the pairs of channels that there are, so that images of a few channels are stored in whole lines too.
                const int pairs = static_cast<int>(min((p.channels - channel + 1) / 2, static_cast<long long>(half)));
                const unsigned short* from = p.from + (image * p.channels + channel) * p.pixels + pixel;
                unsigned short* to = p.to + (image * p.pixels + pixel) * p.channels + channel;
#pragma unroll 4
                for (int i = threadIdx.x; i < pairs * half; i += ChannelsLastArguments::threads) {
                    const int pair = i / half, at = i % half * 2;
                    const bool second = channel + 2 * pair + 1 < p.channels;
                    const unsigned short* here = from + 2 * pair * p.pixels + at;
                    const unsigned upper = load_two(here, p.pixels - pixel - at, pixel_words),
                                   lower = second ? load_two(here + p.pixels, p.pixels - pixel - at, pixel_words) : 0;
                    turned[at * line + pair] = (upper & 0xffffu) | lower << 16;
                    turned[(at + 1) * line + pair] = upper >> 16 | (lower & 0xffff0000u);
                }
                __syncthreads();
                const int pixels = static_cast<int>(min(p.pixels - pixel, static_cast<long long>(tile)));
#pragma unroll 4
                for (int i = threadIdx.x; i < pixels * pairs; i += ChannelsLastArguments::threads) {
                    const int at = pairs == half ? i / half : i / pairs, pair = i - at * pairs;
                    store_two(to + at * p.channels + 2 * pair, turned[at * line + pair], p.channels - channel - 2 * pair, channel_words);
                }
                __syncthreads();
            }
}

}  // namespace rooftile
