#include "rooftile/gemm/device/sm90_launch.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include <fmt/core.h>

#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/pack_arguments.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/image_arguments.hpp"
#include "rooftile/gemm/device/in_front.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/model.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/parts.hpp"
#include "rooftile/gemm/pieces.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/runtime/axes_map.hpp"
#include "rooftile/runtime/image_map.hpp"
#include "rooftile/tiled/device/epilogue_source.hpp"

namespace rooftile {
namespace {

// cuTensorMapEncodeTiled: strides are below 2^40 B and multiples of 16 B, as is the base address.
constexpr int tma_alignment = 16;
constexpr int swizzle_rows = 8;  // after which the pattern of a swizzled tile repeats

CachePolicy policy_of(bool first) { return first ? CachePolicy::evict_first : CachePolicy::normal; }

DevicePointer address(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

/// An operand whose lines run along k, or along its other index, `mn` elements long; so many clusters read each.
TensorMapRequest operand(Type type, Major major, const void* base, std::int64_t mn, std::int64_t k,
                         std::int64_t leading, int box_mn, int box_k, CachePolicy policy, std::int64_t readers) {
    TensorMapRequest request;
    request.type = type;
    request.base = address(base);
    request.inner = major == Major::k ? k : mn;
    request.outer = major == Major::k ? mn : k;
    request.outer_stride_bytes = leading * bytes_of(type);
    // One swizzle span wide: a k-major tile is one box, an mn-major tile one box every 64 of mn.
    request.box_inner = Sm90GemmConfig::swizzle_bytes / bytes_of(type);
    request.box_outer = major == Major::k ? box_mn : box_k;
    request.swizzle_bytes = Sm90GemmConfig::swizzle_bytes;
    // Twice what a box reads of a line along k, where several read it: the other half must outlive the wait for the next box.
    // What is read once streams faster without, and of a row that begins off a line every box would ask for part of a second
    // pair of lines (docs/facts.md 131, 132).
    const bool off_line = line_step(request.outer_stride_bytes) < PackedCopy::alignment;
    request.l2_promotion_bytes = policy == CachePolicy::evict_first || off_line || readers == 1 ? 128 : 256;
    return request;
}

}  // namespace

std::string sm90_config_text(const Sm90GemmConfig& config) {
    std::string members;
    const auto add = [&](const char* name, std::string_view type, const auto& value) {
        members += fmt::format("{}.{}={}{}", members.empty() ? "" : ", ", name, type, value);
    };
    Sm90GemmConfig::each([&]<class T>(const char* name, T Sm90GemmConfig::*member) {
        const T value = config.*member;
        if (value == Sm90GemmConfig{}.*member) return;
        if constexpr (std::is_same_v<T, Schedule>) add(name, "rooftile::Schedule::", name_of(value));
        else if constexpr (std::is_same_v<T, Type>) add(name, "rooftile::Type::", name_of(value));
        else if constexpr (std::is_same_v<T, Ablation>) add(name, "rooftile::Ablation::", name_of(value));
        else if constexpr (std::is_same_v<T, Major>) add(name, "rooftile::Major::", value == Major::k ? "k" : "mn");
        else add(name, "", value);
    });
    return fmt::format("rooftile::Sm90GemmConfig{{{}}}", members);
}

std::string sm90_name_expression(const Sm90GemmConfig& config) { return fmt::format("rooftile::sm90_gemm<{}>", sm90_config_text(config)); }

Source gemm_source(const Sm90GemmConfig& config) {
    if (config.image_axes > 0)
        return source_of_header("sm90_image_gemm", "kernels/gemm/sm90_image_gemm.cuh",
                                {fmt::format("rooftile::sm90_image_gemm<{}>", sm90_config_text(config))}, "sm_90");
    return source_of_header("sm90_gemm", "kernels/gemm/sm90_gemm.cuh", {sm90_name_expression(config)}, "sm_90");
}

ClusterTiles cluster_tiles(const Sm90GemmConfig& config, const GemmShape& shape) {
    const std::int64_t height = std::int64_t(config.tile_m) * config.cluster_m, columns = ceil_div(shape.n, std::int64_t(config.tile_n) * config.cluster_n);
    if (shape.groups == 0) return {ceil_div(shape.m, height), columns, shape.batch};
    // However many rows each group has: at most all but one end a row behind a whole tile.
    const std::int64_t alone = std::min(shape.groups, shape.m) - 1;
    return {alone + ceil_div(shape.m - alone, height), columns, 1};
}

int gemm_grid(const Sm90GemmConfig& config, const GemmShape& shape, int resident_ctas, int pieces) {
    const int cluster = config.cluster_ctas();
    const ClusterTiles tiles = cluster_tiles(config, shape);
    const std::int64_t resident_clusters = std::max(1, resident_ctas / cluster);
    if (config.in_pieces) {
        check_tiles(shape, {tiles.rows * pieces, tiles.columns, tiles.products}, cluster, config.tile_m, config.tile_n);
        return int(tiles.rows * tiles.columns * tiles.products) * pieces * cluster;
    }
    check_tiles(shape, tiles, resident_clusters, config.tile_m, config.tile_n);
    return int(std::min(tiles.rows * tiles.columns * tiles.products, resident_clusters)) * cluster;
}

namespace {

void check_stride(const char* name, std::int64_t stride, Type type) {
    if (stride % tma_elements(type) != 0)
        throw RequestError(fmt::format("{} is {}; the kernel needs a multiple of {} elements", name, stride, tma_elements(type)));
}

/// A batch of matrices, or one that serves all of a batch.
void give_depth(TensorMapRequest& request, std::int64_t matrices, std::int64_t stride) {
    request.matrices[0] = matrices;
    // Of one matrix the stride means nothing, but the driver wants one.
    request.matrix_stride_bytes[0] = stride == 0 ? request.outer_stride_bytes : stride * bytes_of(request.type);
}

}  // namespace

namespace {

/// Of the result.
std::int64_t stored_columns(const Sm90GemmConfig& config, const GemmShape& shape) { return config.pairs ? shape.n / 2 : shape.n; }

}  // namespace

void check_operands(const Sm90GemmConfig& config, const GemmShape& shape, const void* a, const void* b,
                    const void* c) {
    check_gemm_size("M", shape.m);
    check_gemm_size("N", shape.n);
    check_gemm_size("K", shape.k);
    if (config.group_slots != (shape.groups > 0 ? group_slots(shape.groups) : 0))
        throw RequestError(fmt::format("there are {} groups; this kernel has room for {}", shape.groups, config.group_slots));
    if (config.batched != (shape.batch > 1 || shape.groups > 0))
        throw RequestError(fmt::format("the batch is {}; this kernel takes {}", shape.batch,
                                       config.batched ? "two and more; plan for one product" : "one product; plan for a batch"));
    check_stride("stride_a", shape.a_stride, config.type);
    check_stride("stride_b", shape.b_stride, config.b_type);
    if (config.tma_store) check_stride("stride_d", shape.c_stride, config.c_type);
    check_leading("lda", shape.lda, config.a_major == Major::k ? shape.k : shape.m, tma_elements(config.type));
    check_leading("ldb", shape.ldb, config.b_major == Major::k ? shape.k : shape.n, tma_elements(config.b_type));
    const int whole = tma_elements(config.c_type);
    const std::int64_t columns = stored_columns(config, shape);
    check_leading("ldc", shape.ldc, columns, config.tma_store ? whole : 1);
    // A TMA store ends on whole 16 B and would write into the padding beyond column n.
    if (config.tma_store && columns % whole != 0)
        throw RequestError(
            fmt::format("N is {}; this kernel stores C by TMA and needs a multiple of {} elements; "
                        "plan for this N to get one that does not",
                        columns, whole));
    constexpr int pairs_step = 2 * Sm90GemmConfig::pair_step;
    if (config.pairs && shape.n % pairs_step != 0)
        throw RequestError(fmt::format("N is {}; this kernel takes pairs of B's columns and needs a multiple of {}", shape.n, pairs_step));
    check_pointer("A", a, tma_alignment);
    check_pointer("B", b, tma_alignment);
    check_pointer("C", c, config.tma_store ? tma_alignment : config.result_bytes());
}

GemmCopies gemm_copies(const Sm90GemmConfig& config, const GemmShape& shape) {
    const auto of = [](Major major, int tile, int peers, std::int64_t extent, int rows) -> OperandCopies {
        const int slice = tile / peers;
        if (major != Major::k || extent >= tile) return {slice, peers};
        return {int(std::min<std::int64_t>(slice, ceil_div(extent, rows) * rows)), int(ceil_div(extent, slice))};
    };
    // Whole atoms of a swizzled tile; of pairs one of each kind.
    GemmCopies copies;
    copies.a = of(config.a_major, config.tile_m, config.cluster_n, shape.m, swizzle_rows);
    copies.b = of(config.b_major, config.tile_n, config.cluster_m, shape.n, config.pairs ? 2 * swizzle_rows : swizzle_rows);
    copies.stage_bytes =
        config.scale_copies()
        + (copies.a.box * copies.a.slices + copies.b.box * copies.b.slices) * config.tile_k * config.operand_bytes();
    return copies;
}

GemmTensors gemm_tensors(const Sm90GemmConfig& config, const GemmShape& shape, const void* a, const void* b,
                         const void* c, CachePolicy a_policy, CachePolicy b_policy) {
    GemmTensors tensors;
    const GemmCopies copies = gemm_copies(config, shape);
    const ClusterTiles clusters = cluster_tiles(config, shape);
    tensors.a = operand(config.type, config.a_major, a, shape.m, shape.k, shape.lda, copies.a.box,
                        config.tile_k, a_policy, clusters.columns);
    tensors.b = operand(config.b_type, config.b_major, b, shape.n, shape.k, shape.ldb, copies.b.box,
                        config.tile_k, b_policy, clusters.rows);
    tensors.c.type = config.c_type;
    tensors.c.base = address(c);
    tensors.c.inner = stored_columns(config, shape);
    tensors.c.outer = shape.m;
    tensors.c.outer_stride_bytes = shape.ldc * config.result_bytes();
    tensors.c.box_inner = config.epilogue_columns();
    tensors.c.box_outer = config.epilogue_rows();
    tensors.c.swizzle_bytes = config.epilogue_swizzle_bytes();
    tensors.c.l2_promotion_bytes = 0;
    if (config.batched) {
        give_depth(tensors.a, shape.a_matrices(), shape.a_stride);
        give_depth(tensors.b, shape.b_matrices(), shape.b_stride);
        give_depth(tensors.c, shape.c_stride == 0 ? 1 : shape.batch, shape.c_stride);
    }
    return tensors;
}

namespace {

/// First row of the last tile of a side of C. Of an operand that is contiguous along that side a box has K for rows, and none of
/// them lies outside: its last tile stays where it is, on whole lines.
int last_origin(Major major, int tile, std::int64_t extent) {
    return major == Major::k && extent >= tile ? int(extent - tile) : std::numeric_limits<int>::max();
}

/// Rows of B, a gate or an up each, as its tile has them: pair_step gates, the ups that belong to them, and so on. `b`: the same of rows as
/// they lie.
AxesMapRequest of_pairs(const TensorMapRequest& b, Pairs pairs, std::int64_t n) {
    constexpr int step = Sm90GemmConfig::pair_step;
    const std::int64_t row = b.outer_stride_bytes, next = pairs == Pairs::interleaved ? 2 * row : row,
                       other = pairs == Pairs::interleaved ? row : n / 2 * row;
    AxesMapRequest request{.type = b.type,
                           .base = b.base,
                           .axes = 4,
                           .extents = {b.inner, step, 2, n / (2 * step)},
                           .stride_bytes = {next, other, step * next},
                           .box = {b.box_inner, step, 2, b.box_outer / (2 * step)},
                           .swizzle_bytes = b.swizzle_bytes,
                           .l2_promotion_bytes = b.l2_promotion_bytes};
    if (b.matrices[0] == 0) return request;
    request.axes = 5;
    request.extents[4] = b.matrices[0], request.stride_bytes[3] = b.matrix_stride_bytes[0], request.box[4] = 1;
    return request;
}

/// All but the pointers.
GemmArguments gemm_arguments(const GemmConfig& plan, const Sm90GemmConfig& config, const GemmShape& shape) {
    const GemmCopies copies = gemm_copies(config, shape);
    GemmArguments arguments{};
    arguments.m = int(shape.m);
    arguments.n = int(shape.n);
    arguments.k = int(shape.k);
    arguments.order = int(plan.order);
    arguments.group = plan.group;
    arguments.stage_bytes = copies.stage_bytes;
    // A group's last tile stays where it is: what lies before it may be another group's.
    // Scales of a tile's rows begin at 16 bytes, and its columns fall into whole blocks of them.
    const bool stays = config.block_scales;
    arguments.last_m = config.grouped() || stays ? std::numeric_limits<int>::max() : last_origin(config.a_major, config.tile_m, shape.m);
    arguments.last_n = stays ? std::numeric_limits<int>::max() : last_origin(config.b_major, config.tile_n, shape.n);
    arguments.a_slices = copies.a.slices;
    arguments.b_slices = copies.b.slices;
    arguments.ldc = shape.ldc;
    arguments.a_policy = cache_policy_word(policy_of(plan.evict_first.a));
    arguments.b_policy = cache_policy_word(policy_of(plan.evict_first.b));
    arguments.c_policy = cache_policy_word(policy_of(plan.evict_first.c));
    arguments.batch = int(shape.batch);
    arguments.a_step = shape.a_stride == 0 ? 0 : 1;
    arguments.b_step = shape.b_stride == 0 ? 0 : 1;
    arguments.c_stride = shape.c_stride;
    arguments.groups = int(shape.groups);
    return arguments;
}

/// An image's boxes: a copy takes as many places as a tile's slice has rows, or a block of K, and channels of one tap.
ImageMapRequest image_map(const ImageOperand& image, const Sm90GemmConfig& config, const TensorMapRequest& operand) {
    ImageMapRequest request;
    request.type = operand.type, request.base = operand.base, request.axes = config.image_axes;
    request.images = image.images, request.channels = image.channels;
    for (std::size_t i = 0; i < image.axes.size(); ++i) {
        const ImageAxis& axis = image.axes[i];
        request.extents[i] = axis.extent, request.strides[i] = int(axis.stride);
        request.first[i] = int(-axis.padding), request.past_last[i] = int(axis.padding - axis.reach());
    }
    request.box_channels = operand.box_inner, request.box_pixels = operand.box_outer;
    request.swizzle_bytes = operand.swizzle_bytes, request.l2_promotion_bytes = operand.l2_promotion_bytes;
    return request;
}

/// Filters [n][taps][channels]: a box has some channels of one tap, and zeros behind the last. Those that are n-major are [channels][taps][n].
AxesMapRequest filters_map(const ImageOperand& image, const TensorMapRequest& b, Major major) {
    if (major != Major::k)
        return {.type = b.type, .base = b.base, .axes = 3, .extents = {b.inner, image.taps(), image.channels},
                .stride_bytes = {b.outer_stride_bytes, image.taps() * b.outer_stride_bytes}, .box = {b.box_inner, 1, b.box_outer},
                .swizzle_bytes = b.swizzle_bytes, .l2_promotion_bytes = b.l2_promotion_bytes};
    const std::int64_t channels = image.channels * bytes_of(b.type);
    return {.type = b.type, .base = b.base, .axes = 3, .extents = {image.channels, image.taps(), b.outer}, .stride_bytes = {channels, b.outer_stride_bytes},
            .box = {b.box_inner, 1, b.box_outer}, .swizzle_bytes = b.swizzle_bytes, .l2_promotion_bytes = b.l2_promotion_bytes};
}

/// The operand of an epilogue that is staged, in boxes like those in which C leaves: `request` is C's.
TensorMapRequest staged_operand(const GemmProblem& problem, const Sm90GemmConfig& config, const GemmShape& shape, TensorMapRequest request,
                                std::span<const void* const> operands) {
    const std::size_t i = *problem.epilogue->staged_operand();
    const EpilogueOperand& o = problem.epilogue->operands[i];
    check_pointer(o.name.c_str(), operands[i], tma_alignment);
    request.type = o.element == Element::bf16 ? Type::bf16 : Type::fp16;
    request.base = address(operands[i]);
    const std::int64_t columns = stored_columns(config, shape);
    request.outer_stride_bytes = columns * bytes_of(request.type);
    request.l2_promotion_bytes = 128;
    if (config.batched) give_depth(request, o.by_product ? shape.batch : 1, o.by_product ? shape.m * columns : 0);
    return request;
}

PackedLines packed_lines(const PackedCopy& copy, std::int64_t leading, std::int64_t stride, const void* from, char* to) {
    constexpr std::int64_t bytes = 2;  // of an element
    return {static_cast<const unsigned char*>(from),
            reinterpret_cast<unsigned char*>(to),
            copy.lines,
            bytes * leading,
            bytes * copy.pitch,
            unsigned(bytes * copy.width),
            unsigned(copy.matrices),
            bytes * stride,
            bytes * copy.stride()};
}

void check_lines(const char* name, const char* leading_name, std::int64_t width, std::int64_t leading, const void* from, int bytes) {
    check_leading(leading_name, leading, width, 1);
    check_pointer(name, from, bytes);
}

/// Of a problem with an epilogue the class stands before the kernel, and is its second parameter.
void add_epilogue(Source& source, const GemmProblem& problem, const Sm90GemmConfig& config) {
    if (!problem.epilogue) return;
    source.text = epilogue_text(*problem.epilogue, {.header = "kernels/gemm/sm90_gemm.cuh", .prefetches = true, .staged = config.operand_staged});
    if (problem.image) source.text += "#include \"kernels/gemm/sm90_image_gemm.cuh\"\n";
    name_with_epilogue(source, config.image_axes > 0 ? "rooftile::sm90_image_gemm_epilogue"
                               : config.block_scales ? "rooftile::sm90_gemm_scaled"
                               : config.results > 1 ? "rooftile::sm90_gemm_results"
                                                    : "rooftile::sm90_gemm_epilogue");
}

class Sm90Code final : public GemmCode {
  public:
    Sm90Code(const GemmPlan& plan, Ablation ablated) : plan_(plan.config), config_(kernel_config(plan)), problem_(multiplied(plan)) {
        config_.ablated = ablated;
        if (ablated == Ablation::loads) config_.early_weights = false;  // nothing is asked for
    }
    Source source() const override {
        Source source = gemm_source(config_);
        add_epilogue(source, problem_, config_);
        if (has_in_front(problem_)) add_in_front(source, problem_);
        else if (packs()) {
            const bool bytes = config_.operand_bytes() == 1;
            source.text += bytes ? "#include \"kernels/gemm/pack_bytes.cuh\"\n" : "#include \"kernels/gemm/pack.cuh\"\n";
            source.name_expressions.emplace_back(bytes ? "rooftile::pack_bytes"
                                                       : fmt::format("rooftile::pack_operands<{}>", config_.batched));
        }
        return source;
    }
    bool packs() const override { return plan_.pack_a || plan_.pack_b; }
    std::size_t workspace_bytes(const GemmShape& s) const override {
        std::int64_t bytes = pieces(s).bytes();
        if (plan_.pack_a) bytes += copy_of_a(s).bytes();
        if (plan_.pack_b) bytes += copy_of_b(s).bytes();
        return std::size_t(bytes);
    }
    GemmOperands pack(const Function& pack, Stream stream, const GemmOperands& given, void* workspace) const override {
        check_pointer("the workspace", workspace, PackedCopy::alignment);
        char* to = static_cast<char*>(workspace) + pieces(given.shape).bytes();
        if (problem_.is_unpacked()) return launch_in_front(pack, stream, problem_, given, to, plan_.programmatic_launch);
        if (config_.operand_bytes() == 1) return pack_bytes(pack, stream, given, to);
        GemmOperands packed = given;
        PackArguments arguments{};
        if (plan_.pack_a) {
            const PackedCopy copy = copy_of_a(given.shape);
            arguments.a = packed_lines(copy, given.shape.lda, given.shape.a_stride, given.pointers.a, to);
            packed.pointers.a = to;
            packed.shape.lda = copy.pitch;
            if (copy.matrices > 1) packed.shape.a_stride = copy.stride();
            to += copy.bytes();
        }
        if (plan_.pack_b) {
            const PackedCopy copy = copy_of_b(given.shape);
            arguments.b = packed_lines(copy, given.shape.ldb, given.shape.b_stride, given.pointers.b, to);
            packed.pointers.b = to;
            packed.shape.ldb = copy.pitch;
            if (given.shape.b_stride != 0) packed.shape.b_stride = copy.stride();
        }
        rooftile::launch(pack, pack_launch(stream, arguments.a.ctas() + arguments.b.ctas(), std::max(arguments.a.matrices, arguments.b.matrices)),
                         arguments);
        return packed;
    }
    std::string arch() const override { return "sm_90"; }
    CtaUse cta() const override {
        return {config_.threads(), config_.shared_bytes(), config_.ctas_per_sm, config_.cluster_ctas()};
    }
    void check(const GemmShape& shape, const void* a, const void* b, const void* c) const override {
        // What is packed TMA takes from the workspace: as the operand lies, elements have to be aligned, no more.
        GemmShape taken = shape;
        check_in_front(problem_, taken, a, b);
        if (plan_.pack_a && !problem_.narrow) {
            check_lines("A", "lda", problem_.a_major == Major::k ? shape.k : shape.m, shape.lda, a, config_.operand_bytes());
            taken.lda = copy_of_a(shape).pitch, taken.a_stride = 0, a = aligned;
        }
        if (plan_.pack_b && !problem_.is_unpacked()) {
            check_lines("B", "ldb", problem_.b_major == Major::k ? shape.k : shape.n, shape.ldb, b, config_.operand_bytes());
            taken.ldb = copy_of_b(shape).pitch, taken.b_stride = 0, b = aligned;
        }
        check_operands(config_, taken, a, b, c);
    }
    ClusterTiles tiles(const GemmShape& shape) const override { return cluster_tiles(config_, shape); }
    int grid(const GemmShape& shape, int resident_ctas) const override {
        return gemm_grid(config_, shape, resident_ctas, plan_.grid_split_k);
    }
    void launch(const Function& function, const Launch& launch, const GemmShape& shape,
                const GemmPointers& p) const override {
        GemmTensors tensors =
            as_packed(gemm_tensors(config_, shape, p.a, p.b, p.c, policy_of(plan_.evict_first.a), policy_of(plan_.evict_first.b)), shape);
        if (most_groups_are_one_tile()) tensors.b.l2_promotion_bytes = 128;  // what operand() does where one reads it
        TensorMap map_a{}, map_b{}, map_c{};
        if (problem_.image_is_a()) encode(map_a, image_map(*problem_.image, config_, tensors.a));
        else encode(map_a, tensors.a);
        if (problem_.image_is_b()) encode(map_b, image_map(*problem_.image, config_, tensors.b));
        else if (problem_.image) encode(map_b, filters_map(*problem_.image, tensors.b, config_.b_major));
        else if (config_.pairs) encode(map_b, of_pairs(tensors.b, problem_.pairs(), shape.n));
        else encode(map_b, tensors.b);
        if (config_.tma_store) encode(map_c, tensors.c);
        GemmArguments arguments = gemm_arguments(plan_, config_, shape);
        arguments.c = p.c;
        arguments.tiles = p.tiles;
        if (config_.grouped()) {
            check_pointer("the groups' offsets", p.offsets, sizeof(int));
            arguments.offsets = p.offsets;
        }
        if (config_.dynamic_scheduler) {
            check_pointer("the workspace", p.workspace, PackedCopy::alignment);
            arguments.next_tile = static_cast<unsigned*>(p.workspace);
        }
        if (config_.in_pieces) {
            check_pointer("the workspace", p.workspace, PackedCopy::alignment);
            arguments.pieces = plan_.grid_split_k;
            arguments.arrived = static_cast<unsigned*>(p.workspace);
            arguments.sums = static_cast<char*>(p.workspace) + pieces(shape).counters;
        }
        Launch configured = launch;
        configured.programmatic_dependent = plan_.programmatic_launch;
        if (!problem_.epilogue && !problem_.image) return rooftile::launch(function, configured, map_a, map_b, map_c, arguments);
        std::vector<std::uint64_t> epilogue;
        if (problem_.epilogue) epilogue = epilogue_words(*problem_.epilogue, p.operands);
        TensorMap map_operand{};
        if (config_.operand_staged) {
            encode(map_operand, staged_operand(problem_, config_, shape, tensors.c, p.operands));
            arguments.operand_step = problem_.epilogue->operands[*problem_.epilogue->staged_operand()].by_product ? 1 : 0;
        }
        if (problem_.image) {
            if (problem_.image_is_a()) arguments.k = int(problem_.k_blocks(config_.tile_k) * config_.tile_k);  // the kernel counts blocks
            ImageArguments image = image_arguments(*problem_.image, config_.tile_k);
            if (!problem_.epilogue) return rooftile::launch(function, configured, map_a, map_b, map_c, arguments, image);
            void* all[] = {&map_a, &map_b, &map_c, &arguments, &map_operand, &image, epilogue.data()};
            return launch_raw(function, configured, all);
        }
        if (config_.block_scales) {
            TensorMap map_a_scale{}, map_b_scale{};
            encode(map_a_scale, scales("scale_a", p.a_scales, problem_.a_scales(), config_.scale_rows(), 1));
            encode(map_b_scale, scales("scale_b", p.b_scales, problem_.b_scales(), Sm90GemmConfig::tma_bytes / 4, config_.b_scales()));
            void* all[] = {&map_a, &map_b, &map_c, &arguments, &map_operand, &map_a_scale, &map_b_scale, epilogue.data()};
            return launch_raw(function, configured, all);
        }
        if (config_.results > 1) {
            TensorMap more[Sm90GemmConfig::max_results - 1]{};
            for (std::size_t i = 0; i < p.more_results.size(); ++i) {
                arguments.more_results[i] = p.more_results[i];
                if (config_.tma_store) encode(more[i], other_result(shape, tensors.c, p.more_results[i]));
            }
            void* all[] = {&map_a, &map_b, &map_c, &arguments, &more[0], &more[1], epilogue.data()};
            return launch_raw(function, configured, all);
        }
        void* all[] = {&map_a, &map_b, &map_c, &arguments, &map_operand, epilogue.data()};
        launch_raw(function, configured, all);
    }

  private:
    Launch pack_launch(Stream stream, long long ctas, unsigned matrices) const {
        return packing_launch(stream, ctas, matrices, pack_threads, plan_.programmatic_launch);
    }
    GemmOperands pack_bytes(const Function& pack, Stream stream, const GemmOperands& given, char* to) const {
        GemmOperands packed = given;
        PackBytesArguments arguments{};
        const auto take = [&to](const PackedCopy& copy, Major major, const void*& from, std::int64_t& leading, std::int64_t& stride) {
            const PackedBytes bytes{static_cast<const unsigned char*>(from), reinterpret_cast<unsigned char*>(to), copy.lines, copy.width,
                                    leading, copy.pitch, stride, copy.stride(), unsigned(copy.matrices), major == Major::k};
            from = to, leading = copy.pitch;
            if (stride != 0) stride = copy.stride();
            to += copy.bytes();
            return bytes;
        };
        if (plan_.pack_a)
            arguments.a = take(copy_of_a(given.shape), problem_.a_major, packed.pointers.a, packed.shape.lda, packed.shape.a_stride);
        if (plan_.pack_b)
            arguments.b = take(copy_of_b(given.shape), problem_.b_major, packed.pointers.b, packed.shape.ldb, packed.shape.b_stride);
        rooftile::launch(pack, pack_launch(stream, arguments.a.ctas() + arguments.b.ctas(), std::max(arguments.a.matrices, arguments.b.matrices)),
                         arguments);
        return packed;
    }
    /// Dense, in boxes like those in which C leaves.
    TensorMapRequest other_result(const GemmShape& shape, TensorMapRequest request, const void* result) const {
        const std::int64_t columns = stored_columns(config_, shape);
        request.base = address(result);
        request.outer_stride_bytes = columns * config_.result_bytes();
        if (config_.batched) give_depth(request, shape.batch, shape.m * columns);
        return request;
    }
    static TensorMapRequest scales(const char* name, const void* base, const ScaleLayout& layout, int box_inner, int box_outer) {
        check_pointer(name, base, tma_alignment);
        TensorMapRequest request;
        request.type = Type::fp32;
        request.base = address(base);
        request.inner = layout.width;
        request.outer = layout.all_lines();
        request.outer_stride_bytes = layout.pitch() * 4;
        request.box_inner = box_inner;
        request.box_outer = box_outer;
        request.swizzle_bytes = 0;
        return request;
    }
    /// Copied lines end with zeros; those of unpacked weights with K.
    GemmTensors as_packed(GemmTensors tensors, const GemmShape& shape) const {
        if (plan_.pack_a) tensors.a.inner = copy_of_a(shape).filled();
        if (plan_.pack_b && !problem_.is_unpacked()) tensors.b.inner = copy_of_b(shape).filled();
        return tensors;
    }
    /// By the counts that were planned for: no more than half of the groups with rows have a second row of cluster tiles.
    bool most_groups_are_one_tile() const {
        if (!problem_.groups) return false;
        const TileGrid clusters = cluster_grid(problem_, config_.tile_m, config_.tile_n, config_.cluster_m, config_.cluster_n);
        return rows_a_matrix(problem_, clusters) <= 1.5;
    }
    PiecesWorkspace pieces(const GemmShape& s) const { return pieces_workspace(plan_, s.m, s.n, s.batch); }
    PackedCopy copy_of_a(const GemmShape& s) const { return packed_copy(config_.type, config_.a_major, s.m, s.k, s.a_matrices()); }
    PackedCopy copy_of_b(const GemmShape& s) const { return packed_copy(config_.b_type, config_.b_major, s.n, s.k, s.b_matrices()); }
    /// Any address that passes for one in the workspace.
    static inline const void* const aligned = reinterpret_cast<const void*>(std::uintptr_t{PackedCopy::alignment});

    GemmConfig plan_;
    Sm90GemmConfig config_;
    GemmProblem problem_;
};

}  // namespace

Sm90Operands sm90_operands(const GemmPlan& plan, const Sm90GemmConfig& config, const GemmPointers& p, const RoomRows& room) {
    const GemmShape shape = shape_of(plan.problem);
    check_operands(config, shape, p.a, p.b, p.c);
    GemmTensors tensors = gemm_tensors(config, shape, p.a, p.b, p.c, policy_of(plan.config.evict_first.a), policy_of(plan.config.evict_first.b));
    const TensorMapRequest result = tensors.c;
    if (room.a > 0) tensors.a.outer = room.a;
    if (room.c > 0) tensors.c.outer = room.c;
    Sm90Operands out{};
    encode(out.a, tensors.a);
    if (config.pairs) encode(out.b, of_pairs(tensors.b, plan.problem.pairs(), shape.n));
    else encode(out.b, tensors.b);
    encode(out.c, tensors.c);
    if (config.operand_staged) encode(out.operand, staged_operand(plan.problem, config, shape, result, p.operands));
    out.arguments = gemm_arguments(plan.config, config, shape);
    out.arguments.c = p.c;
    return out;
}

std::unique_ptr<const GemmCode> sm90_gemm_code(const GemmPlan& plan, Ablation ablated) {
    return std::make_unique<const Sm90Code>(plan, ablated);
}

}  // namespace rooftile
