// What host and kernel share of packing images with their channels innermost. No includes of the host's: NVRTC compiles this file too.
#pragma once

namespace rooftile {

struct ChannelsLastArguments {
    static constexpr int tile = 64, threads = 256;  ///< pixels, and channels, of a CTA's tile
    static constexpr int line = tile / 2 + 1;       ///< words of a pixel in shared memory: odd, so that lanes along pixels meet in pairs at most
    static constexpr int shared_bytes = 4 * tile * line;
    const unsigned short* from;  ///< [images][channels][pixels]
    unsigned short* to;          ///< [images][pixels][channels]
    long long images, channels, pixels;
};

}  // namespace rooftile
