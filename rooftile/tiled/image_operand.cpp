#include "rooftile/tiled/image_operand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace rooftile {

std::int64_t ImageAxis::pixels_read() const {
    if (stride == 1 && (dilation == 1 || taps == 1)) return std::min(extent, places() + reach() - std::min(padding, places() + reach()));
    std::vector<bool> met(std::size_t(extent), false);
    for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t place = 0; place < places(); ++place) {
            const std::int64_t at = place * stride - padding + tap * dilation;
            if (at >= 0 && at < extent) met[std::size_t(at)] = true;
        }
    return std::count(met.begin(), met.end(), true);
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

// CUDA driver API, cuTensorMapEncodeIm2col; PTX ISA 5.5.5 "Im2col mode" for the offsets.
std::string image_load_obstacle(const ImageOperand& image, int element_bytes) {
    constexpr int whole = 16, most_stride = 8;
    const int multiple = whole / element_bytes;
    if (image.channels % multiple != 0)
        return fmt::format("{} channels: image loads take pixels of whole 16 bytes; pad them to {}", image.channels,
                           (image.channels + multiple - 1) / multiple * multiple);
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
