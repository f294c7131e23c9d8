// From a configuration and a shape to what a GEMM launch needs; no driver call here.
#include <algorithm>
#include <cassert>
#include <cstdint>

#include <fmt/core.h>

#include "kernels/gemm/tile_order.cuh"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/parts.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t most_size = INT32_MAX;
// cuTensorMapEncodeTiled: strides are below 2^40 B and multiples of 16 B, as is the base address.
constexpr std::int64_t most_stride_bytes = std::int64_t(1) << 40;
constexpr int tma_alignment = 16;
constexpr int swizzle_rows = 8;  // after which the pattern of a swizzled tile repeats
constexpr int element_bytes = Sm90GemmConfig::element_bytes;

std::string_view name_of_type(Type type) {
    return type == Type::bf16 ? "bf16" : type == Type::fp16 ? "fp16" : "fp32";
}

DevicePointer address(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

void check_size(const char* name, std::int64_t size) {
    if (size < 1 || size > most_size)
        throw RequestError(fmt::format("{} is {}; 1 to {} are accepted", name, size, most_size));
}

void check_leading(const char* name, std::int64_t leading, std::int64_t contiguous, bool by_tma) {
    if (leading < contiguous)
        throw RequestError(
            fmt::format("{} is {}, less than the {} elements of a line", name, leading, contiguous));
    if (by_tma && leading * element_bytes % tma_alignment != 0)
        throw RequestError(fmt::format("{} is {}; the kernel needs a multiple of {} elements", name, leading,
                                       tma_alignment / element_bytes));
    if (leading > most_stride_bytes / element_bytes - 1)
        throw RequestError(fmt::format("{} is {}; lines must be less than 2^40 B apart", name, leading));
}

void check_pointer(const char* name, const void* pointer, int alignment) {
    if (!pointer) throw RequestError(fmt::format("the pointer to {} is null", name));
    if (address(pointer) % DevicePointer(alignment) != 0)
        throw RequestError(
            fmt::format("{} at {:#x} is not aligned to {} B", name, address(pointer), alignment));
}

/// An operand whose lines run along k, or along its other index, `mn` elements long.
TensorMapRequest operand(Type type, Major major, const void* base, std::int64_t mn, std::int64_t k,
                         std::int64_t leading, int box_mn, int box_k, CachePolicy policy) {
    TensorMapRequest request;
    request.type = type;
    request.base = address(base);
    request.inner = major == Major::k ? k : mn;
    request.outer = major == Major::k ? mn : k;
    request.outer_stride_bytes = leading * element_bytes;
    // One swizzle span wide: a k-major tile is one box, an mn-major tile one box every 64 of mn.
    request.box_inner = Sm90GemmConfig::swizzle_bytes / element_bytes;
    request.box_outer = major == Major::k ? box_mn : box_k;
    request.swizzle_bytes = Sm90GemmConfig::swizzle_bytes;
    // Twice what a box reads of a line along k: the other half must outlive the wait for the next box.
    request.l2_promotion_bytes = policy == CachePolicy::evict_first ? 128 : 256;
    return request;
}

}  // namespace

GemmShape shape_of(const GemmProblem& problem) {
    return {problem.m, problem.n, problem.k, problem.lda, problem.ldb, problem.ldc};
}

std::string sm90_name_expression(const Sm90GemmConfig& config) {
    auto major = [](Major m) { return m == Major::k ? "k" : "mn"; };
    const std::string left_out =
        config.left_out == LeftOut::nothing
            ? std::string()
            : fmt::format(", .left_out=rooftile::LeftOut::{}", name_of(config.left_out));
    return fmt::format(
        "rooftile::sm90_gemm<rooftile::Sm90GemmConfig{{.tile_m={}, .tile_n={}, .tile_k={}, .stages={}, "
        ".consumer_warpgroups={}, .schedule=rooftile::Schedule::{}, .cluster_m={}, .cluster_n={}, "
        ".split_k={}, "
        ".ctas_per_sm={}, "
        ".producer_registers={}, .consumer_registers={}, .type=rooftile::Type::{}, "
        ".a_major=rooftile::Major::{}, "
        ".b_major=rooftile::Major::{}, .tma_store={}, .deferred_store={}, "
        ".store_n={}, .load_policy={}, .store_policy={}{}}}>",
        config.tile_m, config.tile_n, config.tile_k, config.stages, config.consumer_warpgroups,
        config.schedule == Schedule::pingpong ? "pingpong" : "cooperative", config.cluster_m,
        config.cluster_n, config.split_k, config.ctas_per_sm, config.producer_registers,
        config.consumer_registers, name_of_type(config.type), major(config.a_major), major(config.b_major),
        config.tma_store, config.deferred_store, config.store_n, config.load_policy, config.store_policy,
        left_out);
}

Source gemm_source(const Sm90GemmConfig& config) {
    Source source;
    source.name = "sm90_gemm";
    source.text = "#include \"kernels/gemm/sm90_gemm.cuh\"\n";
    source.name_expressions = {sm90_name_expression(config)};
    source.arch = nvrtc_arch("sm_90");
    return source;
}

ClusterTiles cluster_tiles(const Sm90GemmConfig& config, const GemmShape& shape) {
    return {ceil_div(shape.m, std::int64_t(config.tile_m) * config.cluster_m),
            ceil_div(shape.n, std::int64_t(config.tile_n) * config.cluster_n)};
}

std::vector<std::uint32_t> walk_table(Order order, const ClusterTiles& tiles) {
    const auto [rows, columns] = tiles;
    if (std::max(rows, columns) > most_table_extent)
        throw RequestError(
            fmt::format("order {} on {} x {} tiles: its table counts up to {} either way; take another order "
                        "or larger tiles",
                        name_of(order), rows, columns, most_table_extent));
    assert(rows <= most_size / columns);  // as gemm_grid() has it
    std::vector<std::uint32_t> table(std::size_t(rows * columns));
    for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = packed(order == Order::hilbert ? hilbert_at(int(i), int(rows), int(columns))
                                                  : morton_at(int(i), int(rows), int(columns)));
    return table;
}

int gemm_grid(const Sm90GemmConfig& config, const GemmShape& shape, int resident_ctas) {
    const int cluster = config.cluster_ctas();
    const auto [rows, columns] = cluster_tiles(config, shape);
    const std::int64_t resident_clusters = std::max(1, resident_ctas / cluster);
    // The kernel counts tiles in an int and steps past the last by a grid.
    if (rows > (most_size - resident_clusters) / columns)
        throw RequestError(fmt::format("{} x {} has {} x {} tiles of {}x{}, 2^31 or more; take larger tiles",
                                       shape.m, shape.n, rows, columns, config.tile_m, config.tile_n));
    return int(std::min(rows * columns, resident_clusters)) * cluster;
}

void check_operands(const Sm90GemmConfig& config, const GemmShape& shape, const void* a, const void* b,
                    const void* c) {
    check_size("M", shape.m);
    check_size("N", shape.n);
    check_size("K", shape.k);
    check_leading("lda", shape.lda, config.a_major == Major::k ? shape.k : shape.m, true);
    check_leading("ldb", shape.ldb, config.b_major == Major::k ? shape.k : shape.n, true);
    check_leading("ldc", shape.ldc, shape.n, config.tma_store);
    // A TMA store ends on whole 16 B and would write into the padding beyond column n.
    if (config.tma_store && shape.n % (tma_alignment / element_bytes) != 0)
        throw RequestError(
            fmt::format("N is {}; this kernel stores C by TMA and needs a multiple of {} elements; "
                        "plan for this N to get one that does not",
                        shape.n, tma_alignment / element_bytes));
    check_pointer("A", a, tma_alignment);
    check_pointer("B", b, tma_alignment);
    check_pointer("C", c, config.tma_store ? tma_alignment : element_bytes);
}

GemmCopies gemm_copies(const Sm90GemmConfig& config, const GemmShape& shape) {
    const auto of = [](Major major, int tile, int peers, std::int64_t extent) -> OperandCopies {
        const int slice = tile / peers;
        if (major != Major::k || extent >= tile) return {slice, peers};
        // Whole atoms of a swizzled tile.
        return {int(std::min<std::int64_t>(slice, ceil_div(extent, swizzle_rows) * swizzle_rows)),
                int(ceil_div(extent, slice))};
    };
    GemmCopies copies;
    copies.a = of(config.a_major, config.tile_m, config.cluster_n, shape.m);
    copies.b = of(config.b_major, config.tile_n, config.cluster_m, shape.n);
    copies.stage_bytes =
        (copies.a.box * copies.a.slices + copies.b.box * copies.b.slices) * config.tile_k * element_bytes;
    return copies;
}

GemmTensors gemm_tensors(const Sm90GemmConfig& config, const GemmShape& shape, const void* a, const void* b,
                         const void* c, CachePolicy a_policy, CachePolicy b_policy) {
    GemmTensors tensors;
    const GemmCopies copies = gemm_copies(config, shape);
    tensors.a = operand(config.type, config.a_major, a, shape.m, shape.k, shape.lda, copies.a.box,
                        config.tile_k, a_policy);
    tensors.b = operand(config.type, config.b_major, b, shape.n, shape.k, shape.ldb, copies.b.box,
                        config.tile_k, b_policy);
    tensors.c.type = config.type;
    tensors.c.base = address(c);
    tensors.c.inner = shape.n;
    tensors.c.outer = shape.m;
    tensors.c.outer_stride_bytes = shape.ldc * element_bytes;
    tensors.c.box_inner = config.slab_n();
    tensors.c.box_outer = config.warp_rows();
    tensors.c.swizzle_bytes = config.slab_swizzle_bytes();
    tensors.c.l2_promotion_bytes = 0;
    return tensors;
}

}  // namespace rooftile
