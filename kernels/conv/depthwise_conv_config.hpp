// What planner, launch and kernel of depthwise convolutions by matrix units share. No includes of the host's: NVRTC compiles this file too.
#pragma once

#include "kernels/divider.hpp"
#include "kernels/types.hpp"

namespace rooftile {

/// `lines` of `width` vectors, shared out to warps: a line to a warp, `items` vectors to a lane, or several short ones.
struct LinesOfVectors {
    int width, lines, warps;
    constexpr int together() const { return width < 32 ? 32 / width : 1; }
    constexpr int items() const { return (width - 1) / 32 + 1; }
    constexpr int items_at_once() const { return items() < 4 ? items() : 4; }
    constexpr int groups() const { return (lines - 1) / together() + 1; }
    constexpr int turns() const { return (groups() - 1) / warps + 1; }
    /// Groups of lines that a warp has in registers: so many items of a lane at most.
    constexpr int at_once(int most) const {
        const int rounds = (turns() * items_at_once() - 1) / most + 1, groups = (turns() - 1) / rounds + 1;
        return groups * items_at_once() > most && groups > 1 ? groups - 1 : groups;
    }
};

/// The kernel's template parameter. A tile has `images` images' `groups` groups of `rows` rows of `blocks` blocks of eight places. A block of a group, of an
/// image, is a slot: a row of A, which is 16 pixels wide. `rows` places one below the other are a slot's, so that a fragment of
/// pixels serves each row of taps.
struct DepthwiseConvConfig {
    Type type;
    int taps_y, taps_x;
    int images, groups, rows, blocks;
    int channels;  ///< of a tile, a multiple of 8
    int pitch;     ///< of a row of pixels in shared memory, cells of 8 pixels: 16 B
    int sum_bytes; ///< of a sum in shared memory: 4, or 2, rounded as it is stored, where no epilogue reads it
    int warps, ctas_per_sm;

    static constexpr int most_taps = 9;  ///< of a row: 8 places and 8 pixels more are 16
    constexpr int threads() const { return warps * 32; }
    constexpr int sums() const { return 4 * parts() * rows; }  ///< of a thread
    constexpr int tile_y() const { return groups * rows; }
    constexpr int tile_x() const { return blocks * 8; }
    constexpr int slots() const { return images * groups * blocks; }
    constexpr int parts() const { return (slots() + 15) / 16; }
    constexpr int cells() const { return blocks + 1; }
    constexpr int pixel_rows() const { return tile_y() + taps_y - 1; }
    constexpr int vectors() const { return channels / 8; }
    constexpr LinesOfVectors pixels() const { return {vectors() * 4 * cells(), images * pixel_rows(), warps}; }  ///< two neighbours' to a vector
    constexpr LinesOfVectors places() const { return {vectors() * tile_x() / neighbours(), images * tile_y(), warps}; }
    constexpr int neighbours() const { return 4 / sum_bytes; }  ///< of a row, of which a word has a channel's sums
    static constexpr int most_loads = 6;  ///< of two vectors each, on their way to a thread
    /// Where slot `slot`'s first pixels are in a channel's plane, cells; and its first sum, of as many of the plane, when it is multiplied.
    constexpr unsigned first_cell(unsigned slot) const {
        const unsigned group = slot / blocks;
        return group / groups * pixel_rows() * pitch + group % groups * rows * pitch + slot % blocks;
    }
    constexpr unsigned first_sum(unsigned slot) const { return slot / blocks * rows * tile_x() + slot % blocks * 8; }
    constexpr int plane_bytes() const {
        const int pixels = 16 * images * pixel_rows() * pitch, sums = sum_bytes * images * tile_y() * tile_x();
        return pixels > sums ? pixels : sums;
    }
    /// Between planes of eight channels and the next eight: vectors of a pixel are in different banks.
    constexpr int skew() const { return vectors() == 1 || vectors() > 8 ? 0 : 128 / vectors() / 16 * 16; }
    constexpr unsigned plane(unsigned channel) const { return channel * plane_bytes() + channel / 8 * skew(); }
    constexpr int shared_bytes() const { return static_cast<int>(plane(channels)); }

    template <class Visit>
    static constexpr void each(Visit visit) {
        using C = DepthwiseConvConfig;
        visit("taps_y", &C::taps_y), visit("taps_x", &C::taps_x), visit("images", &C::images), visit("groups", &C::groups), visit("rows", &C::rows);
        visit("blocks", &C::blocks), visit("channels", &C::channels), visit("pitch", &C::pitch), visit("sum_bytes", &C::sum_bytes), visit("warps", &C::warps), visit("ctas_per_sm", &C::ctas_per_sm);
    }
    friend constexpr bool operator==(const DepthwiseConvConfig&, const DepthwiseConvConfig&) = default;
};

struct DepthwiseConvArguments {
    const unsigned short* x;  ///< [images][height][width][filters]
    const unsigned short* w;  ///< [filters][taps]
    unsigned short* y;        ///< [images][places_y][places_x][filters]
    int images, height, width, filters, places_y, places_x, padding_y, padding_x;
    Divider columns, tiles_x, tiles_y;  ///< tiles of a pixel's channels, of a row, of an image
    unsigned rows;                      ///< places, rows of the result
};

}  // namespace rooftile
