#include "rooftile/gemm/device/sm80_launch.hpp"

#include <fmt/core.h>

#include "kernels/gemm/sm80_image_arguments.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/image_arguments.hpp"
#include "rooftile/gemm/device/in_front.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/sm80_space.hpp"
#include "rooftile/tiled/device/epilogue_source.hpp"

namespace rooftile {
namespace {

ClusterTiles tiles_of(const Sm80GemmConfig& config, const GemmShape& shape) {
    return {ceil_div(shape.m, config.tile_m), ceil_div(shape.n, config.tile_n), shape.batch};
}

// A copy neither begins amid `bytes` nor reaches past the end of a row unasked.
void check_copies(const char* name, const char* ld_name, const void* pointer, std::int64_t leading,
                  std::int64_t extent, int bytes, bool partial) {
    check_leading(ld_name, leading, extent, bytes / Sm80GemmConfig::element_bytes);
    check_pointer(name, pointer, bytes);
    if (!partial && sm80_partial_copies(extent, bytes))
        throw RequestError(
            fmt::format("{}'s rows have {} elements; this kernel copies {} at a time and takes whole copies alone; plan "
                        "for this shape to get one that does not",
                        name, extent, bytes / Sm80GemmConfig::element_bytes));
}

void check_stride(const char* name, std::int64_t stride, int bytes) {
    if (stride * Sm80GemmConfig::element_bytes % bytes != 0)
        throw RequestError(fmt::format("{}'s matrices are {} elements apart; this kernel takes {} B at a time from or to each; plan for this distance to "
                                       "get one that does not", name, stride, bytes));
}

Sm80GemmArguments arguments_of(const GemmConfig& plan, const GemmShape& shape, const GemmPointers& p) {
    return {.m = int(shape.m),
            .n = int(shape.n),
            .k = int(shape.k),
            .order = int(plan.order),
            .group = plan.group,
            .lda = shape.lda,
            .ldb = shape.ldb,
            .ldc = shape.ldc,
            .a = p.a,
            .b = p.b,
            .c = p.c,
            .tiles = p.tiles,
            .batch = int(shape.batch),
            .a_stride = shape.a_stride,
            .b_stride = shape.b_stride,
            .c_stride = shape.c_stride};
}

Sm80ImageArguments pieces_of(const ImageOperand& image) {
    const auto& axes = image.axes;
    return sm80_image_arguments(image_arguments(image, Sm80ImageArguments::piece_channels),
                                {int(axes[0].extent), int(axes[1].extent), int(axes[2].extent)}, int(image.channels));
}

/// The name of the kernel, and of the file that has it.
std::string_view kernel_of(const Sm80GemmConfig& config) { return config.image_axes > 0 ? "sm80_image_gemm" : "sm80_gemm"; }
std::string header_of(const Sm80GemmConfig& config) { return fmt::format("kernels/gemm/{}.cuh", kernel_of(config)); }

class Sm80Code final : public GemmCode {
  public:
    explicit Sm80Code(const GemmPlan& plan)
        : plan_(plan.config),
          problem_(multiplied(plan)),
          config_(sm80_config(problem_, plan.config)),
          arch_(plan.arch),
          epilogue_(plan.problem.epilogue),
          image_(plan.problem.image) {}

    Source source() const override {
        Source source = sm80_source(config_, arch_);
        add_epilogue(source, epilogue_, header_of(config_));
        add_in_front(source, problem_);
        return source;
    }
    bool packs() const override { return has_in_front(problem_); }
    std::size_t workspace_bytes(const GemmShape& s) const override { return in_front_bytes(problem_, s); }
    GemmOperands pack(const Function& pack, Stream stream, const GemmOperands& given, void* workspace) const override {
        check_pointer("the workspace", workspace, PackedCopy::alignment);
        return launch_in_front(pack, stream, problem_, given, static_cast<char*>(workspace), plan_.programmatic_launch);
    }
    std::string arch() const override { return arch_; }
    CtaUse cta() const override { return {config_.threads(), config_.shared_bytes(), config_.ctas_per_sm, 1}; }
    void check(const GemmShape& shape, const void* a, const void* b, const void* c) const override {
        GemmShape taken = shape;
        check_in_front(problem_, taken, a, b);
        check_operands(config_, taken, a, b, c);
    }
    ClusterTiles tiles(const GemmShape& shape) const override { return tiles_of(config_, shape); }
    int grid(const GemmShape& shape, int resident_ctas) const override {
        return sm80_grid_of(config_, shape, resident_ctas);
    }
    void launch(const Function& function, const Launch& launch, const GemmShape& shape,
                const GemmPointers& pointers) const override {
        Sm80GemmArguments arguments = arguments_of(plan_, shape, pointers);
        if (!image_) return launch_with_epilogue(function, launch, epilogue_, pointers.operands, arguments);
        Sm80ImageArguments image = pieces_of(*image_);
        launch_with_epilogue(function, launch, epilogue_, pointers.operands, arguments, image);
    }

  private:
    GemmConfig plan_;
    GemmProblem problem_;
    Sm80GemmConfig config_;
    std::string arch_;
    SharedEpilogue epilogue_;
    std::optional<ImageOperand> image_;
};

}  // namespace

std::string sm80_name_expression(const Sm80GemmConfig& c) {
    const auto major = [](Major m) { return m == Major::k ? "k" : "mn"; };
    return fmt::format(
        "rooftile::{}<rooftile::Sm80GemmConfig{{.tile_m={}, .tile_n={}, .tile_k={}, .stages={}, .warps_m={}, "
        ".warps_n={}, .ctas_per_sm={}, .type=rooftile::Type::{}, .a_major=rooftile::Major::{}, "
        ".b_major=rooftile::Major::{}, .a_copy_bytes={}, .b_copy_bytes={}, .partial_copies={}, .vector_store={}, "
        ".persistent={}{}{}}}>",
        kernel_of(c), c.tile_m, c.tile_n, c.tile_k, c.stages, c.warps_m, c.warps_n, c.ctas_per_sm, name_of(c.type),
        major(c.a_major), major(c.b_major), c.a_copy_bytes, c.b_copy_bytes, c.partial_copies, c.vector_store,
        c.persistent, c.batched ? ", .batched=true" : "", c.image_axes > 0 ? fmt::format(", .image_axes={}", c.image_axes) : "");
}

Source sm80_source(const Sm80GemmConfig& config, const std::string& arch) {
    return source_of_header(std::string(kernel_of(config)), header_of(config), {sm80_name_expression(config)}, arch);
}

void check_operands(const Sm80GemmConfig& config, const GemmShape& s, const void* a, const void* b,
                    const void* c) {
    check_gemm_size("M", s.m);
    check_gemm_size("N", s.n);
    check_gemm_size("K", s.k);
    check_copies("A", "lda", a, s.lda, config.a_major == Major::k ? s.k : s.m, config.a_copy_bytes,
                 config.partial_copies);
    check_copies("B", "ldb", b, s.ldb, config.b_major == Major::k ? s.k : s.n, config.b_copy_bytes,
                 config.partial_copies);
    const int c_bytes = config.vector_store ? Sm80GemmConfig::chunk_bytes : Sm80GemmConfig::element_bytes;
    check_leading("ldc", s.ldc, s.n, c_bytes / Sm80GemmConfig::element_bytes);
    check_pointer("C", c, c_bytes);
    check_stride("A", s.a_stride, config.a_copy_bytes);
    check_stride("B", s.b_stride, config.b_copy_bytes);
    check_stride("C", s.c_stride, c_bytes);
    if (config.vector_store && s.n % Sm80GemmConfig::chunk_elements != 0)
        throw RequestError(fmt::format("N is {}; this kernel stores C 16 B at a time and needs a multiple of {} elements; "
                                       "plan for this N to get one that does not",
                                       s.n, Sm80GemmConfig::chunk_elements));
}

int sm80_grid_of(const Sm80GemmConfig& config, const GemmShape& shape, int resident_ctas) {
    check_tiles(shape, tiles_of(config, shape), resident_ctas, config.tile_m, config.tile_n);
    return int(sm80_grid(config, shape.m, shape.n, shape.batch, resident_ctas));
}

std::unique_ptr<const GemmCode> sm80_gemm_code(const GemmPlan& plan, Ablation ablated) {
    if (ablated != Ablation::nothing)
        throw RequestError("sm80_gemm cannot be compiled without one of its parts; sm90_gemm can");
    return std::make_unique<const Sm80Code>(plan);
}

}  // namespace rooftile
