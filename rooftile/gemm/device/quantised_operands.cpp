#include "rooftile/gemm/device/quantised_operands.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "kernels/gemm/sm90_many_quantised_config.hpp"
#include "rooftile/error.hpp"
#include "rooftile/runtime/axes_map.hpp"

namespace rooftile {
namespace {

constexpr int row_element_bytes = 2, row_alignment = 16, packed_alignment = 128;
constexpr int span_k = Sm90ManyQuantisedConfig::span_k, span_bytes = Sm90ManyQuantisedConfig::span_bytes;

}  // namespace

TensorMap quantised_rows_map(Type type, int tile_m, int spans, bool ragged_k, const GemmShape& s, const void* a) {
    const std::int64_t row = s.lda * row_element_bytes;
    AxesMapRequest request{.type = type,
                           .base = reinterpret_cast<DevicePointer>(a),
                           .axes = 2,
                           .extents = {s.k, s.m},
                           .stride_bytes = {row},
                           .box = {span_k, tile_m},
                           .swizzle_bytes = span_bytes,
                           .l2_promotion_bytes = 256};
    if (!ragged_k) {
        request.axes = 4;
        const std::int64_t extents[] = {span_k, s.m, s.k / span_k, 1}, strides[] = {row, span_bytes, row};
        const int box[] = {span_k, tile_m, spans, 1};
        std::copy(std::begin(extents), std::end(extents), request.extents);
        std::copy(std::begin(strides), std::end(strides), request.stride_bytes);
        std::copy(std::begin(box), std::end(box), request.box);
    }
    TensorMap map{};
    encode(map, request);
    return map;
}

void check_quantised_operands(bool ragged_k, const GemmShape& s, const void* a, const void* b, const void* c) {
    check_gemm_size("M", s.m);
    check_gemm_size("N", s.n);
    check_gemm_size("K", s.k);
    if (ragged_k != (s.k % span_k != 0))
        throw RequestError(
            fmt::format("K is {}; this kernel takes {}; plan for this K", s.k, ragged_k ? "no multiples of 64" : "multiples of 64"));
    constexpr int whole = row_alignment / row_element_bytes;
    if (s.k % whole != 0) throw RequestError(fmt::format("K is {}; the kernel needs a multiple of {} elements", s.k, whole));
    check_leading("lda", s.lda, s.k, whole);
    check_leading("ldc", s.ldc, s.n, 1);
    check_pointer("A", a, row_alignment);
    check_pointer("B", b, packed_alignment);
    check_pointer("C", c, row_element_bytes);
}

std::string layout_expression(const QuantisedLayout& layout) {
    return fmt::format(
        "rooftile::QuantisedLayout{{.weights=rooftile::WeightType::{}, .group={}, .scale=rooftile::Type::{}, "
        ".zeros=rooftile::ZeroType({})}}",
        name_of(layout.weights), layout.group, name_of(layout.scale), int(layout.zeros));
}

std::string unpack_name_expression(const QuantisedLayout& layout, Type activations, Type rows) {
    return fmt::format("rooftile::unpack_weights<rooftile::Type::{}, {}, rooftile::Type::{}>", name_of(activations), layout_expression(layout), name_of(rows));
}

}  // namespace rooftile
