#include "rooftile/tiled/image_operand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace rooftile {

// Pixels are place * stride + tap * dilation - padding. Divided by what stride and dilation share, taps of one remainder r by the stride meet the
// pixels step * j + r * apart, where j is in [q apart, q apart + places) for the q-th of these taps. Of unlike remainders no pixel is the same.
std::int64_t ImageAxis::pixels_read() const {
    const std::int64_t common = std::gcd(stride, dilation), step = stride / common, apart = dilation / common, count = places();
    if (count == 0) return 0;
    const std::int64_t first = (padding + common - 1) / common, last = (padding + extent - 1) / common;  // of the image, from the padding's first
    std::int64_t all = 0;
    for (std::int64_t r = 0; r < std::min(step, taps); ++r) {
        const std::int64_t of_r = (taps - 1 - r) / step + 1;
        // How many j are below `end`: windows of `count`, a distance of `apart` from one to the next, or one window where they meet.
        const auto below = [&](std::int64_t end) {
            if (end <= 0) return std::int64_t{0};
            if (count >= apart) return std::min(end, (of_r - 1) * apart + count);
            const std::int64_t whole = std::min(end / apart, of_r);
            return whole * count + (whole < of_r ? std::min(end - whole * apart, count) : 0);
        };
        const auto from = [&](std::int64_t pixel) { return pixel <= r * apart ? 0 : (pixel - r * apart + step - 1) / step; };
        all += below(from(last + 1)) - below(from(first));
    }
    return all;
}

std::int64_t ImageAxis::pairs_inside() const {
    std::int64_t all = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
        // Places whose pixel of this tap is in [0, extent).
        const std::int64_t shift = padding - tap * dilation;
        const std::int64_t first = shift <= 0 ? 0 : (shift + stride - 1) / stride;
        const std::int64_t past = extent - 1 + shift;
        const std::int64_t last = past < 0 ? -1 : std::min(places() - 1, past / stride);
        all += std::max<std::int64_t>(0, last - first + 1);
    }
    return all;
}

std::int64_t ImageAxis::most_uses() const {
    const std::int64_t step = stride / std::gcd(stride, dilation);
    return (taps + step - 1) / step;
}

std::string ImageOperand::text() const {
    std::string out = fmt::format("{} {}", images, channels);
    for (const ImageAxis& a : axes) out += fmt::format(" {} {} {} {} {}", a.extent, a.taps, a.stride, a.padding, a.dilation);
    return out;
}

double ImageOperand::share_inside() const {
    double share = 1;
    for (const ImageAxis& axis : axes) share *= double(axis.pairs_inside()) / (double(axis.taps) * double(axis.places()));
    return share;
}

namespace {

std::string whole_pixels_obstacle(const ImageOperand& image, int element_bytes) {
    constexpr int whole = 16;
    const int multiple = whole / element_bytes;
    if (image.channels % multiple == 0) return {};
    return fmt::format("{} channels: image loads take pixels of whole 16 bytes; pad them to {}", image.channels,
                       (image.channels + multiple - 1) / multiple * multiple);
}

}  // namespace

std::string image_gather_obstacle(const ImageOperand& image, int element_bytes, int most_taps) {
    if (std::string why = whole_pixels_obstacle(image, element_bytes); !why.empty()) return why;
    std::int64_t taps = 0;
    double padded = double(image.images + 1);  // the first tap of the first image is before it
    for (const ImageAxis& axis : image.axes) taps += axis.taps, padded *= double(axis.extent + 2 * axis.padding);
    if (taps > most_taps)
        return fmt::format("taps along the axes are {} together; loads that gather pixels take {} at most", taps, most_taps);
    const double pieces = padded * double(image.channels * element_bytes / 16);
    if (pieces >= double(std::int64_t{1} << 31))
        return fmt::format("the padded images have {:.3g} pieces of 16 bytes; loads that gather pixels count fewer than 2^31: take parts "
                           "of the batch", pieces);
    return {};
}

// CUDA driver API, cuTensorMapEncodeIm2col; PTX ISA 5.5.5 "Im2col mode" for the offsets.
std::string image_load_obstacle(const ImageOperand& image, int element_bytes) {
    constexpr int most_stride = 8;
    if (std::string why = whole_pixels_obstacle(image, element_bytes); !why.empty()) return why;
    const bool deep = image.is_deep();
    const std::int64_t corner = deep ? 16 : 128, offset = deep ? 31 : 255;
    static constexpr std::string_view names[] = {"width", "height", "depth"};
    for (std::size_t i = 0; i < 3; ++i) {
        const ImageAxis& axis = image.axes[i];
        const auto refuse = [&](std::string_view what, std::int64_t value, std::int64_t most) {
            return fmt::format("along {} {} is {}; image loads of {} axes take {} at most", names[i], what, value, deep ? 3 : 2, most);
        };
        if (axis.stride > most_stride) return refuse("the stride", axis.stride, most_stride);
        if (axis.padding > corner) return refuse("the padding", axis.padding, corner);
        // The corner of the last tap: padding - reach.
        if (axis.reach() - axis.padding > corner) return refuse("the filter's reach beyond the padding", axis.reach() - axis.padding, corner);
        if (axis.padding - axis.reach() > corner - 1) return refuse("the padding beyond the filter's reach", axis.padding - axis.reach(), corner - 1);
        if (axis.reach() > offset) return refuse("a tap's distance", axis.reach(), offset);
    }
    return {};
}

}  // namespace rooftile
