#include "rooftile/runtime/axes_map.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/image_map.hpp"

namespace rooftile {
namespace {

CUtensorMapDataType type_of(Type type) {
    if (type == Type::bf16) return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    if (type == Type::fp16) return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    return is_fp8(type) ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}
CUtensorMapSwizzle swizzle_of(int bytes) {
    return bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                         : CU_TENSOR_MAP_SWIZZLE_NONE;
}
CUtensorMapL2promotion promotion_of(int bytes) {
    return bytes == 256   ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
           : bytes == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
           : bytes == 64  ? CU_TENSOR_MAP_L2_PROMOTION_L2_64B
                          : CU_TENSOR_MAP_L2_PROMOTION_NONE;
}

}  // namespace

void encode(TensorMap& map, const AxesMapRequest& request) {
    constexpr int most = AxesMapRequest::most_axes;
    const int axes = request.axes;
    cuuint64_t extents[most] = {}, strides[most - 1] = {};
    cuuint32_t box[most] = {}, element_strides[most] = {};
    for (int i = 0; i < axes; ++i) {
        extents[i] = cuuint64_t(request.extents[i]);
        box[i] = cuuint32_t(request.box[i]);
        element_strides[i] = 1;
        if (i > 0) strides[i - 1] = cuuint64_t(request.stride_bytes[i - 1]);
    }
    const CUresult result = driver_table().cuTensorMapEncodeTiled(
        reinterpret_cast<CUtensorMap*>(&map), type_of(request.type), cuuint32_t(axes), reinterpret_cast<void*>(request.base), extents, strides,
        box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(request.swizzle_bytes), promotion_of(request.l2_promotion_bytes),
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS) return;
    check(result, fmt::format("cuTensorMapEncodeTiled(extents {}, strides {} B, box {}, swizzle {} B, base {:#x})",
                              fmt::join(std::span(request.extents, std::size_t(axes)), "x"),
                              fmt::join(std::span(request.stride_bytes, std::size_t(axes - 1)), ", "),
                              fmt::join(std::span(request.box, std::size_t(axes)), "x"), request.swizzle_bytes, request.base));
}

void encode(TensorMap& map, const ImageMapRequest& request) {
    constexpr int most = ImageMapRequest::most_axes + 2;
    const int axes = request.axes, rank = axes + 2;
    cuuint64_t extents[most] = {cuuint64_t(request.channels)}, strides[most - 1] = {};
    cuuint32_t element_strides[most] = {1};
    std::int64_t step = request.channels * bytes_of(request.type);
    for (int i = 0; i < axes; ++i) {
        extents[i + 1] = cuuint64_t(request.extents[i]), element_strides[i + 1] = cuuint32_t(request.strides[i]);
        strides[i] = cuuint64_t(step);
        step *= request.extents[i];
    }
    extents[rank - 1] = cuuint64_t(request.images), strides[rank - 2] = cuuint64_t(step), element_strides[rank - 1] = 1;
    const CUresult result = driver_table().cuTensorMapEncodeIm2col(
        reinterpret_cast<CUtensorMap*>(&map), type_of(request.type), cuuint32_t(rank), reinterpret_cast<void*>(request.base), extents, strides,
        request.first, request.past_last, cuuint32_t(request.box_channels), cuuint32_t(request.box_pixels), element_strides,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(request.swizzle_bytes), promotion_of(request.l2_promotion_bytes), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS) return;
    check(result, fmt::format("cuTensorMapEncodeIm2col(extents {}, strides {} B, corners {} and {}, {} channels, {} pixels, steps {}, base {:#x})",
                              fmt::join(std::span(extents, std::size_t(rank)), "x"), fmt::join(std::span(strides, std::size_t(rank - 1)), ", "),
                              fmt::join(std::span(request.first, std::size_t(axes)), ","), fmt::join(std::span(request.past_last, std::size_t(axes)), ","),
                              request.box_channels, request.box_pixels, fmt::join(std::span(request.strides, std::size_t(axes)), ","), request.base));
}

}  // namespace rooftile
