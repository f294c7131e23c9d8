#include "rooftile/gemm/device/image_reference.hpp"

#include <algorithm>
#include <span>

#include "kernels/gemm/image_reference_arguments.hpp"
#include "kernels/measure/arguments.hpp"
#include "rooftile/runtime/cache.hpp"

namespace rooftile {
namespace {

constexpr unsigned threads = 256, ctas_per_sm = 8;
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

}  // namespace

Source image_reference_source(std::string_view arch) {
    return source_of_header("image_reference", "kernels/gemm/image_reference.cuh", {"rooftile::unroll_image"}, arch);
}

ImageReference::ImageReference(const GemmProblem& problem) : problem_(problem) {
    const auto device = Driver::instance().device(current_device());
    const CachedCompile made = compile_cached(image_reference_source(device.arch()));
    module_ = Module(std::span<const char>(made.compiled.cubin));
    unroll_ = module_.function(made.compiled.lowered_names[0]);
    ctas_ = unsigned(device.sm_count) * ctas_per_sm;
    const std::int64_t row_bytes = problem.k * bytes_of(problem.a_type);
    rows_ = std::min(problem.m, std::max<std::int64_t>(verify_tile, most_bytes / row_bytes / verify_tile * verify_tile));
    to_ = DeviceBuffer(std::size_t(rows_ * row_bytes));
}

const void* ImageReference::unroll(Stream stream, const void* image, std::int64_t first, std::int64_t rows) const {
    UnrollImage arguments{};
    arguments.image = static_cast<const unsigned short*>(image);
    arguments.to = reinterpret_cast<unsigned short*>(to_.address());
    arguments.first_row = first, arguments.rows = rows, arguments.channels = problem_.image->channels;
    for (std::size_t i = 0; i < problem_.image->axes.size(); ++i) {
        const ImageAxis& axis = problem_.image->axes[i];
        arguments.axes[i] = {axis.extent, axis.places(), axis.taps, axis.stride, axis.padding, axis.dilation};
    }
    launch(unroll_, {.grid_x = ctas_, .block_x = threads, .stream = stream}, arguments);
    return reinterpret_cast<const void*>(to_.address());
}

}  // namespace rooftile
