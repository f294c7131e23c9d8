#include "rooftile/gemm/device/sm90_quantised_launch.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/error.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/quantised_model.hpp"
#include "rooftile/runtime/axes_map.hpp"
#include "rooftile/tiled/device/epilogue_source.hpp"

namespace rooftile {
namespace {

constexpr int row_element_bytes = 2, row_alignment = 16, packed_alignment = 128;

/// Rows of A: boxes of 64 of K by all rows, as many at once as a stage holds where K is made of them.
TensorMap rows_map(const Sm90QuantisedConfig& c, const GemmShape& s, const void* a) {
    const std::int64_t row = s.lda * row_element_bytes;
    AxesMapRequest request{.type = c.type,
                           .base = reinterpret_cast<DevicePointer>(a),
                           .axes = 2,
                           .extents = {s.k, s.m},
                           .stride_bytes = {row},
                           .box = {c.span_k, c.tile_m},
                           .swizzle_bytes = c.span_bytes,
                           .l2_promotion_bytes = 256};
    if (!c.ragged_k) {
        request.axes = 4;
        const std::int64_t extents[] = {c.span_k, s.m, s.k / c.span_k, 1},
                           strides[] = {row, c.span_bytes, row};
        const int box[] = {c.span_k, c.tile_m, c.spans(), 1};
        std::copy(std::begin(extents), std::end(extents), request.extents);
        std::copy(std::begin(strides), std::end(strides), request.stride_bytes);
        std::copy(std::begin(box), std::end(box), request.box);
    }
    TensorMap map{};
    encode(map, request);
    return map;
}

class Sm90QuantisedCode final : public GemmCode {
  public:
    explicit Sm90QuantisedCode(const GemmPlan& plan)
        : plan_(plan.config),
          ctas_(plan.resources.grid_ctas),
          config_(quantised_config(plan.problem, plan.config)),
          epilogue_(plan.problem.epilogue) {}

    Source source() const override {
        Source source = quantised_source(config_);
        add_epilogue(source, epilogue_, "kernels/gemm/sm90_few_quantised.cuh");
        return source;
    }
    std::string arch() const override { return "sm_90"; }
    CtaUse cta() const override {
        return {config_.threads(), config_.shared_bytes(), config_.ctas_per_sm, 1};
    }
    std::size_t workspace_bytes(const GemmShape& s) const override {
        return std::size_t(workspace(s).bytes());
    }
    void check(const GemmShape& shape, const void* a, const void* b, const void* c) const override {
        check_operands(config_, shape, a, b, c);
    }
    ClusterTiles tiles(const GemmShape& shape) const override {
        return {1, ceil_div(shape.n, std::int64_t{config_.tile_n}), 1};
    }
    /// As many as the workspace was made for, on any GPU: nobody waits for another.
    int grid(const GemmShape& shape, int) const override {
        const std::int64_t units = ceil_div(shape.k, std::int64_t{config_.tile_k});
        check_tiles(shape, {units, tiles(shape).columns, 1}, 1, config_.tile_m, config_.tile_n);
        return int(std::min(ctas_, units * tiles(shape).columns));
    }
    void launch(const Function& function, const Launch& launch, const GemmShape& s,
                const GemmPointers& p) const override {
        check_pointer("the workspace", p.workspace, PackedCopy::alignment);
        Sm90QuantisedArguments arguments{.weights = static_cast<const unsigned char*>(p.b),
                                         .c = p.c,
                                         .partials = reinterpret_cast<float*>(static_cast<char*>(p.workspace) + workspace(s).counters),
                                         .arrived = static_cast<unsigned*>(p.workspace),
                                         .m = int(s.m),
                                         .n = int(s.n),
                                         .k = int(s.k),
                                         .ldc = s.ldc};
        Launch configured = launch;
        configured.programmatic_dependent = plan_.programmatic_launch;
        TensorMap rows = rows_map(config_, s, p.a);
        launch_with_epilogue(function, configured, epilogue_, p.operands, rows, arguments);
    }

  private:
    QuantisedWorkspace workspace(const GemmShape& s) const { return quantised_workspace(s.n, plan_, ctas_); }

    GemmConfig plan_;
    std::int64_t ctas_;
    Sm90QuantisedConfig config_;
    SharedEpilogue epilogue_;
};

}  // namespace

std::string quantised_name_expression(const Sm90QuantisedConfig& c) {
    return fmt::format(
        "rooftile::sm90_few_quantised<rooftile::Sm90QuantisedConfig{{.tile_m={}, .tile_n={}, .tile_k={}, "
        ".stages={}, .consumer_warps={}, "
        ".ctas_per_sm={}, .type=rooftile::Type::{}, "
        ".layout=rooftile::QuantisedLayout{{.weights=rooftile::WeightType::{}, .group={}, "
        ".scale=rooftile::Type::{}, .zeros=rooftile::ZeroType({})}}, .ragged_k={}}}>",
        c.tile_m, c.tile_n, c.tile_k, c.stages, c.consumer_warps, c.ctas_per_sm, name_of(c.type), name_of(c.layout.weights), c.layout.group,
        name_of(c.layout.scale), int(c.layout.zeros), c.ragged_k);
}

Source quantised_source(const Sm90QuantisedConfig& config) {
    return source_of_header("sm90_few_quantised", "kernels/gemm/sm90_few_quantised.cuh", {quantised_name_expression(config)}, "sm_90");
}

void check_operands(const Sm90QuantisedConfig& config, const GemmShape& s, const void* a, const void* b,
                    const void* c) {
    check_gemm_size("M", s.m);
    check_gemm_size("N", s.n);
    check_gemm_size("K", s.k);
    if (s.m > config.tile_m)
        throw RequestError(fmt::format(
            "M is {}; this kernel holds {} rows; plan for this M to get one that does", s.m, config.tile_m));
    if (config.ragged_k != (s.k % config.span_k != 0))
        throw RequestError(fmt::format("K is {}; this kernel takes {}; plan for this K", s.k,
                                       config.ragged_k ? "no multiples of 64" : "multiples of 64"));
    constexpr int whole = row_alignment / row_element_bytes;
    if (s.k % whole != 0)
        throw RequestError(fmt::format("K is {}; the kernel needs a multiple of {} elements", s.k, whole));
    check_leading("lda", s.lda, s.k, whole);
    check_leading("ldc", s.ldc, s.n, 1);
    check_pointer("A", a, row_alignment);
    check_pointer("B", b, packed_alignment);
    check_pointer("C", c, row_element_bytes);
}

std::unique_ptr<const GemmCode> sm90_few_quantised_code(const GemmPlan& plan, Ablation ablated) {
    if (ablated != Ablation::nothing)
        throw RequestError("sm90_few_quantised cannot be compiled without one of its parts; sm90_gemm can");
    return std::make_unique<const Sm90QuantisedCode>(plan);
}

}  // namespace rooftile
