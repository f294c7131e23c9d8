#include "rooftile/gemm/device/sm90_quantised_launch.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/gemm/device/quantised_code.hpp"

namespace rooftile {
namespace {

class Sm90QuantisedCode final : public QuantisedCode {
  public:
    explicit Sm90QuantisedCode(const GemmPlan& plan) : QuantisedCode(plan), config_(quantised_config(plan.problem, plan.config)) {}

    Source source() const override { return with_epilogue(quantised_source(config_), "kernels/gemm/sm90_few_quantised.cuh"); }
    CtaUse cta() const override { return {config_.threads(), config_.shared_bytes(), config_.ctas_per_sm, 1}; }
    void check_taken(const GemmShape& shape, const void* a, const void* b, const void* c) const override {
        check_operands(config_, shape, a, b, c);
    }
    ClusterTiles tiles(const GemmShape& shape) const override {
        return {1, ceil_div(shape.n, std::int64_t{config_.tile_n}), 1};
    }
    int grid(const GemmShape& shape, int) const override { return grid_of(config_, shape); }
    void launch(const Function& function, const Launch& launch, const GemmShape& s, const GemmPointers& p) const override {
        launch_rows(function, launch, s, p, quantised_rows_map(config_.type, config_.tile_m, config_.spans(), config_.ragged_k, s, p.a),
                    Sm90QuantisedArguments{});
    }

  private:
    Sm90QuantisedConfig config_;
};

}  // namespace

std::string quantised_name_expression(const Sm90QuantisedConfig& c) {
    return fmt::format(
        "rooftile::sm90_few_quantised<rooftile::Sm90QuantisedConfig{{.tile_m={}, .tile_n={}, .tile_k={}, "
        ".stages={}, .consumer_warps={}, "
        ".ctas_per_sm={}, .type=rooftile::Type::{}, .layout={}, .ragged_k={}}}>",
        c.tile_m, c.tile_n, c.tile_k, c.stages, c.consumer_warps, c.ctas_per_sm, name_of(c.type), layout_expression(c.layout), c.ragged_k);
}

Source quantised_source(const Sm90QuantisedConfig& config) {
    return source_of_header("sm90_few_quantised", "kernels/gemm/sm90_few_quantised.cuh", {quantised_name_expression(config)}, "sm_90");
}

void check_operands(const Sm90QuantisedConfig& config, const GemmShape& s, const void* a, const void* b,
                    const void* c) {
    check_quantised_operands(config.ragged_k, s, a, b, c);
    if (s.m > config.tile_m)
        throw RequestError(fmt::format(
            "M is {}; this kernel holds {} rows; plan for this M to get one that does", s.m, config.tile_m));
}

std::unique_ptr<const GemmCode> sm90_few_quantised_code(const GemmPlan& plan, Ablation ablated) {
    if (ablated != Ablation::nothing)
        throw RequestError("sm90_few_quantised cannot be compiled without one of its parts; sm90_gemm can");
    return std::make_unique<const Sm90QuantisedCode>(plan);
}

}  // namespace rooftile
