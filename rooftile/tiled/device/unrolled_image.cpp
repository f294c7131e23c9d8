#include "rooftile/tiled/device/unrolled_image.hpp"

#include <algorithm>
#include <span>

#include "kernels/measure/arguments.hpp"
#include "kernels/measure/unroll_image_arguments.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile {
namespace {

constexpr unsigned threads = 256, ctas_per_sm = 8;
constexpr std::int64_t most_bytes = std::int64_t{1} << 30, element_bytes = 2;

}  // namespace

Source unroll_image_source(std::string_view arch) {
    return source_of_header("unroll_image", "kernels/measure/unroll_image.cuh", {"rooftile::unroll_image"}, arch);
}

UnrolledImage::UnrolledImage(const ImageOperand& image, std::int64_t channels, Columns columns) : image_(image), channels_(channels), columns_(columns) {
    const auto device = Driver::instance().device(current_device());
    const CachedCompile made = compile_cached(unroll_image_source(device.arch()));
    module_ = Module(std::span<const char>(made.compiled.cubin));
    unroll_ = module_.function(made.compiled.lowered_names[0]);
    ctas_ = unsigned(device.sm_count) * ctas_per_sm;
    const std::int64_t row_bytes = (columns == Columns::one_tap ? 1 : image.taps()) * channels * element_bytes;
    room_ = columns == Columns::one_tap ? image.rows() : std::min(image.rows(), std::max<std::int64_t>(verify_tile, most_bytes / row_bytes / verify_tile * verify_tile));
    to_ = DeviceBuffer(std::size_t(room_ * row_bytes));
}

std::int64_t UnrolledImage::channels_together(const ImageOperand& image) {
    std::int64_t channels = image.channels;
    while (channels % 2 == 0 && image.rows() * channels * element_bytes > most_bytes) channels /= 2;
    return channels;
}

const void* UnrolledImage::rows_of(Stream stream, const void* image, std::int64_t first, std::int64_t rows, std::int64_t first_channel, std::int64_t tap) const {
    UnrollImage arguments{};
    arguments.image = static_cast<const unsigned short*>(image) + first_channel;
    arguments.to = reinterpret_cast<unsigned short*>(to_.address());
    arguments.first_row = first, arguments.rows = rows;
    arguments.channels = channels_, arguments.pixel_channels = image_.channels;
    for (std::size_t i = 0; i < image_.axes.size(); ++i) {
        const ImageAxis& axis = image_.axes[i];
        arguments.axes[i] = {axis.extent, axis.places(), axis.taps, axis.stride, axis.padding, axis.dilation};
        if (columns_ != Columns::one_tap) continue;
        arguments.axes[i].taps = 1, arguments.axes[i].padding -= tap % axis.taps * axis.dilation;
        tap /= axis.taps;
    }
    arguments.reversed = columns_ == Columns::reversed;
    launch(unroll_, {.grid_x = ctas_, .block_x = threads, .stream = stream}, arguments);
    return reinterpret_cast<const void*>(to_.address());
}

}  // namespace rooftile
