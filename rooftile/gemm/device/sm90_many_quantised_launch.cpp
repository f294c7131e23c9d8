#include "rooftile/gemm/device/sm90_many_quantised_launch.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/error.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/tiled/device/epilogue_source.hpp"
#include "rooftile/gemm/device/quantised_operands.hpp"
#include "rooftile/gemm/many_quantised_model.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {
namespace {

class Sm90ManyQuantisedCode final : public GemmCode {
  public:
    explicit Sm90ManyQuantisedCode(const GemmPlan& plan)
        : plan_(plan.config), ctas_(plan.resources.grid_ctas), config_(many_quantised_config(plan)), epilogue_(plan.problem.epilogue) {}

    Source source() const override {
        Source source = many_quantised_source(config_);
        add_epilogue(source, epilogue_, "kernels/gemm/sm90_many_quantised.cuh");
        return source;
    }
    std::string arch() const override { return "sm_90"; }
    CtaUse cta() const override { return {config_.threads(), config_.shared_bytes(), 1, 1}; }
    std::size_t workspace_bytes(const GemmShape& s) const override { return std::size_t(workspace(s).bytes()); }
    void check(const GemmShape& shape, const void* a, const void* b, const void* c) const override {
        check_quantised_operands(config_.ragged_k, shape, a, b, c);
    }
    ClusterTiles tiles(const GemmShape& shape) const override {
        return {ceil_div(shape.m, std::int64_t{config_.tile_m}), ceil_div(shape.n, std::int64_t{config_.tile_n}), 1};
    }
    /// As many as the workspace was made for, on any GPU: nobody waits for another.
    int grid(const GemmShape& shape, int) const override {
        const ClusterTiles all = tiles(shape);
        const std::int64_t units = ceil_div(shape.k, std::int64_t{config_.tile_k});
        check_tiles(shape, {units * all.rows, all.columns, 1}, 1, config_.tile_m, config_.tile_n);
        return int(std::min(ctas_, units * all.rows * all.columns));
    }
    void launch(const Function& function, const Launch& launch, const GemmShape& s, const GemmPointers& p) const override {
        check_pointer("the workspace", p.workspace, PackedCopy::alignment);
        Sm90ManyQuantisedArguments arguments{.weights = static_cast<const unsigned char*>(p.b),
                                             .c = p.c,
                                             .partials = reinterpret_cast<float*>(static_cast<char*>(p.workspace) + workspace(s).counters),
                                             .arrived = static_cast<unsigned*>(p.workspace),
                                             .m = int(s.m),
                                             .n = int(s.n),
                                             .k = int(s.k),
                                             .band = quantised_band(plan_, s.m),
                                             .ldc = s.ldc};
        Launch configured = launch;
        configured.programmatic_dependent = plan_.programmatic_launch;
        TensorMap rows = quantised_rows_map(config_.type, config_.tile_m, config_.spans, config_.ragged_k, s, p.a);
        launch_with_epilogue(function, configured, epilogue_, p.operands, rows, arguments);
    }

  private:
    QuantisedWorkspace workspace(const GemmShape& s) const { return quantised_workspace(s.n, plan_, ctas_); }

    GemmConfig plan_;
    std::int64_t ctas_;
    Sm90ManyQuantisedConfig config_;
    SharedEpilogue epilogue_;
};

}  // namespace

std::string many_quantised_name_expression(const Sm90ManyQuantisedConfig& c) {
    return fmt::format(
        "rooftile::sm90_many_quantised<rooftile::Sm90ManyQuantisedConfig{{.tile_m={}, .tile_n={}, .stages={}, .producer_registers={}, "
        ".consumer_registers={}, .type=rooftile::Type::{}, .layout={}, .ragged_k={}}}>",
        c.tile_m, c.tile_n, c.stages, c.producer_registers, c.consumer_registers, name_of(c.type), layout_expression(c.layout), c.ragged_k);
}

Source many_quantised_source(const Sm90ManyQuantisedConfig& config) {
    return source_of_header("sm90_many_quantised", "kernels/gemm/sm90_many_quantised.cuh", {many_quantised_name_expression(config)},
                            "sm_90a");
}

std::unique_ptr<const GemmCode> sm90_many_quantised_code(const GemmPlan& plan, Ablation ablated) {
    if (ablated != Ablation::nothing) throw RequestError("sm90_many_quantised cannot be compiled without one of its parts; sm90_gemm can");
    return std::make_unique<const Sm90ManyQuantisedCode>(plan);
}

}  // namespace rooftile
