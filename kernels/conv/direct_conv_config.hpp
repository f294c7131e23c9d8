// What planner, launch and kernel of direct convolutions share. No includes of the host's: NVRTC compiles this file too.
#pragma once

#include "kernels/divider.hpp"
#include "kernels/types.hpp"

namespace rooftile {

/// The kernel's template parameter: all that unrolls its loops.
struct DirectConvConfig {
    Type type;
    int taps_y, taps_x, stride_y, stride_x, dilation_y, dilation_x;
    int group_channels, group_filters;  ///< of one group
    int vector;      ///< filters of a thread, whole groups or a part of one
    int strip, rows; ///< places of a thread, along x and along y
    int lanes;       ///< threads beside each other on other filters
    int slots;       ///< and on other places
    int load_bytes;  ///< of one load of a pixel's channels: 2 to 16

    constexpr int threads() const { return lanes * slots; }
    constexpr int sums() const { return rows * strip * vector; }  ///< of a thread
    constexpr int taps() const { return taps_y * taps_x; }
    /// Filters of a thread that are of one group.
    constexpr int filters_together() const { return vector < group_filters ? vector : group_filters; }
    /// Channels that a thread's filters read.
    constexpr int thread_channels() const { return vector / filters_together() * group_channels; }
    constexpr int loads_a_pixel() const { return 2 * thread_channels() / load_bytes; }
    /// Pixels that a thread's places meet, along x and along y.
    constexpr int pixels_x() const { return (strip - 1) * stride_x + (taps_x - 1) * dilation_x + 1; }
    constexpr int pixels_y() const { return (rows - 1) * stride_y + (taps_y - 1) * dilation_y + 1; }
    /// Whether some place of a thread's, along an axis, has a tap on pixel `at`.
    static constexpr bool met(int at, int places, int taps, int stride, int dilation) {
        for (int place = 0; place < places; ++place) {
            const int from_first = at - place * stride;
            if (from_first >= 0 && from_first % dilation == 0 && from_first / dilation < taps) return true;
        }
        return false;
    }
    constexpr bool met_x(int at) const { return met(at, strip, taps_x, stride_x, dilation_x); }
    constexpr bool met_y(int at) const { return met(at, rows, taps_y, stride_y, dilation_y); }
    /// Weights in fp32, of a CTA's filters: a quarter of a line of four banks each, so that neighbours' loads do not meet.
    constexpr int together() const { return vector < 4 ? vector : 4; }
    constexpr int cta_filters() const { return lanes * vector; }
    constexpr int weights() const { return taps() * group_channels * cta_filters(); }
    constexpr int shared_bytes() const { return 4 * weights(); }
    /// Where the weight of filter `i` of lane `lane` is, of one tap and channel.
    constexpr int weight_place(int lane, int i) const { return (i / together() * lanes + lane) * together() + i % together(); }

    template <class Visit>
    static constexpr void each(Visit visit) {
        using C = DirectConvConfig;
        visit("taps_y", &C::taps_y), visit("taps_x", &C::taps_x);
        visit("stride_y", &C::stride_y), visit("stride_x", &C::stride_x);
        visit("dilation_y", &C::dilation_y), visit("dilation_x", &C::dilation_x);
        visit("group_channels", &C::group_channels), visit("group_filters", &C::group_filters);
        visit("vector", &C::vector), visit("strip", &C::strip), visit("rows", &C::rows);
        visit("lanes", &C::lanes), visit("slots", &C::slots), visit("load_bytes", &C::load_bytes);
    }
    friend constexpr bool operator==(const DirectConvConfig&, const DirectConvConfig&) = default;
};

struct DirectConvArguments {
    const unsigned short* x;  ///< [images][height][width][channels]
    const unsigned short* w;  ///< [filters][taps][group_channels]
    unsigned short* y;        ///< [images][places_y][places_x][filters]
    int height, width, channels, filters, places_y, places_x, padding_y, padding_x;
    Divider strips_x, strips_y;  ///< of a row, of an image
    unsigned strips, rows;       ///< of all images: strips, and places, rows of the result
};

}  // namespace rooftile
