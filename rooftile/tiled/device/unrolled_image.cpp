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

UnrolledImage::UnrolledImage(const ImageOperand& image, std::int64_t channels) : image_(image), channels_(channels) {
    const auto device = Driver::instance().device(current_device());
    const CachedCompile made = compile_cached(unroll_image_source(device.arch()));
    module_ = Module(std::span<const char>(made.compiled.cubin));
    unroll_ = module_.function(made.compiled.lowered_names[0]);
    ctas_ = unsigned(device.sm_count) * ctas_per_sm;
    const std::int64_t row_bytes = image.taps() * channels * element_bytes;
    room_ = std::min(image.rows(), std::max<std::int64_t>(verify_tile, most_bytes / row_bytes / verify_tile * verify_tile));
    to_ = DeviceBuffer(std::size_t(room_ * row_bytes));
}

const void* UnrolledImage::rows_of(Stream stream, const void* image, std::int64_t first, std::int64_t rows, std::int64_t first_channel) const {
    UnrollImage arguments{};
    arguments.image = static_cast<const unsigned short*>(image) + first_channel;
    arguments.to = reinterpret_cast<unsigned short*>(to_.address());
    arguments.first_row = first, arguments.rows = rows;
    arguments.channels = channels_, arguments.pixel_channels = image_.channels;
    for (std::size_t i = 0; i < image_.axes.size(); ++i) {
        const ImageAxis& axis = image_.axes[i];
        arguments.axes[i] = {axis.extent, axis.places(), axis.taps, axis.stride, axis.padding, axis.dilation};
    }
    launch(unroll_, {.grid_x = ctas_, .block_x = threads, .stream = stream}, arguments);
    return reinterpret_cast<const void*>(to_.address());
}

}  // namespace rooftile
