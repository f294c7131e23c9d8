// What planner, launch and kernel of convolutions by rows of pixels share. No includes of the host's: NVRTC compiles this file too.
#pragma once

#include "kernels/divider.hpp"
#include "kernels/types.hpp"

namespace rooftile {

/// The kernel's template parameter. K runs over rows of taps; the elements of one, taps_x x channels, are contiguous in the image. They
/// are read in pairs, words of shared memory; a row of taps that begins or ends amid a word has a whole one of which half is zero.
struct StemConvConfig {
    Type type;
    int taps_y, taps_x, stride_y, stride_x, dilation_y, channels;
    int front;          ///< elements of a row of pixels in shared memory before the first tap of the first place: 0 to 7
    int tile_y, tile_x; ///< places of a CTA at once
    int warps;
    int warp_tiles, warp_filters;  ///< of a warp at once: 16 places each, filters
    int cta_filters;               ///< whose weights a CTA has
    int apart;       ///< places between neighbouring rows of a fragment: 1, or 2 where that keeps them in different banks, or of one parity
    int copy_bytes;  ///< of one copy of pixels: 16, 8, 4; 2: by a register
    int store_bytes;
    int ctas_per_sm;

    static constexpr int mma_k = 16, most_steps = 64;
    constexpr int threads() const { return warps * 32; }
    constexpr int sums() const { return warp_tiles * warp_filters / 2; }  ///< of a thread
    constexpr int places() const { return tile_y * tile_x; }
    constexpr int row_elements() const { return taps_x * channels; }
    /// Whether neighbouring places begin at elements of other parity: then every other fragment row is read by halves of words.
    constexpr bool odd_places() const { return stride_x * channels % 2 != 0; }
    constexpr int row_pairs() const { return (front % 2 + row_elements() + 1) / 2; }
    constexpr int pairs() const { return taps_y * row_pairs(); }
    constexpr int steps() const { return (2 * pairs() + mma_k - 1) / mma_k; }
    /// A row of pixels in shared memory, elements; and how many rows.
    constexpr int pitch() const { return (front + ((tile_x - 1) * stride_x + taps_x) * channels + 1 + 7) / 8 * 8; }
    constexpr int pixel_rows() const { return (tile_y - 1) * stride_y + (taps_y - 1) * dilation_y + 1; }
    constexpr int pixel_bytes() const { return 2 * pitch() * pixel_rows(); }
    constexpr int weight_bytes() const { return 2 * mma_k * steps() * cta_filters; }
    constexpr int shared_bytes() const { return weight_bytes() + 2 * pixel_bytes(); }
    /// Words from the first of a place to pair `pair` of K; beyond the last its mask is 0.
    constexpr int pair_word(int pair) const { return pair < pairs() ? pair / row_pairs() * dilation_y * pitch() / 2 + pair % row_pairs() : 0; }
    /// The bits of a pair that are of its window.
    constexpr unsigned pair_mask(int pair) const {
        if (pair >= pairs()) return 0;
        const int at = pair % row_pairs();
        return (at == 0 && front % 2 != 0 ? 0xffff0000u : ~0u) & (at == row_pairs() - 1 && (front + row_elements()) % 2 != 0 ? 0xffffu : ~0u);
    }
    /// The place of a tile's sixteen that row `row` of a fragment's upper or lower eight is.
    constexpr unsigned place_of(unsigned row, unsigned lower) const { return apart == 2 ? 2 * row + lower : row + 8 * lower; }
    /// Where the weights of a filter's pair are, in words. B's fragments one after the other, a lane's words of two beside each other; their
    /// columns are such filters that a lane's sums of four fragments are of eight neighbours.
    constexpr unsigned weight_word(unsigned filter, unsigned pair) const {
        const unsigned column = filter % 32 / 8 * 2 + filter % 2, tile = filter / 32 * 4 + filter % 8 / 2;
        return (((pair / 8 * (cta_filters / 16) + tile / 2) * 8 + column) * 4 + pair % 4) * 4 + tile % 2 * 2 + pair % 8 / 4;
    }

    template <class Visit>
    static constexpr void each(Visit visit) {
        using C = StemConvConfig;
        visit("taps_y", &C::taps_y), visit("taps_x", &C::taps_x), visit("stride_y", &C::stride_y), visit("stride_x", &C::stride_x);
        visit("dilation_y", &C::dilation_y), visit("channels", &C::channels), visit("front", &C::front);
        visit("tile_y", &C::tile_y), visit("tile_x", &C::tile_x), visit("warps", &C::warps), visit("warp_tiles", &C::warp_tiles);
        visit("warp_filters", &C::warp_filters), visit("cta_filters", &C::cta_filters), visit("apart", &C::apart);
        visit("copy_bytes", &C::copy_bytes), visit("store_bytes", &C::store_bytes), visit("ctas_per_sm", &C::ctas_per_sm);
    }
    friend constexpr bool operator==(const StemConvConfig&, const StemConvConfig&) = default;
};

struct StemConvArguments {
    const unsigned short* x;  ///< [images][height][row_elements], whole pixels
    const unsigned short* w;  ///< [filters][taps][channels]
    unsigned short* y;        ///< [images][places_y][places_x][filters]
    int height, row_elements, filters, places_y, places_x, padding_y;
    int lead;                 ///< elements from where the first tile's copies begin to the image: padding, up to a multiple of 16 B
    Divider tiles_x, tiles_y; ///< of a row, of an image
    unsigned tiles, rows;     ///< of all images: tiles, and places, rows of the result
};

}  // namespace rooftile
