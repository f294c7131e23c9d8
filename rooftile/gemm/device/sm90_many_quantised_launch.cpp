#include "rooftile/gemm/device/sm90_many_quantised_launch.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/error.hpp"
#include "rooftile/gemm/device/quantised_code.hpp"
#include "rooftile/gemm/many_quantised_model.hpp"
#include "rooftile/gemm/sm90_family.hpp"

namespace rooftile {
namespace {

class Sm90ManyQuantisedCode final : public QuantisedCode {
  public:
    explicit Sm90ManyQuantisedCode(const GemmPlan& plan) : QuantisedCode(plan), config_(many_quantised_config(plan)) {}

    Source source() const override { return with_epilogue(many_quantised_source(config_), "kernels/gemm/sm90_many_quantised.cuh"); }
    CtaUse cta() const override { return {config_.threads(), config_.shared_bytes(), 1, 1}; }
    void check_taken(const GemmShape& shape, const void* a, const void* b, const void* c) const override {
        check_quantised_operands(config_.ragged_k, shape, a, b, c);
        if (config_.group_slots != (shape.groups > 0 ? group_slots(shape.groups) : 0))
            throw RequestError(fmt::format("there are {} groups; this kernel has room for {}", shape.groups, config_.group_slots));
    }
    ClusterTiles tiles(const GemmShape& shape) const override {
        // However many rows each group has: at most all but one end a row behind a whole tile.
        const std::int64_t alone = shape.groups > 0 ? std::min(shape.groups, shape.m) - 1 : 0;
        return {alone + ceil_div(shape.m - alone, std::int64_t{config_.tile_m}), ceil_div(shape.n, std::int64_t{config_.tile_n}), 1};
    }
    int grid(const GemmShape& shape, int) const override { return grid_of(config_, shape); }
    void launch(const Function& function, const Launch& launch, const GemmShape& s, const GemmPointers& p) const override {
        Sm90ManyQuantisedArguments arguments{};
        arguments.band = quantised_band(plan_, s.m);
        if (config_.grouped()) {
            check_pointer("the groups' offsets", p.offsets, sizeof(int));
            arguments.groups = int(s.groups), arguments.offsets = p.offsets;
        }
        launch_rows(function, launch, s, p, quantised_rows_map(config_.type, config_.tile_m, config_.spans, config_.ragged_k, s, p.a), arguments);
    }

  private:
    Sm90ManyQuantisedConfig config_;
};

}  // namespace

std::string many_quantised_name_expression(const Sm90ManyQuantisedConfig& c) {
    return fmt::format(
        "rooftile::sm90_many_quantised<rooftile::Sm90ManyQuantisedConfig{{.tile_m={}, .tile_n={}, .stages={}, .producer_registers={}, "
        ".consumer_registers={}, .type=rooftile::Type::{}, .layout={}, .ragged_k={}{}}}>",
        c.tile_m, c.tile_n, c.stages, c.producer_registers, c.consumer_registers, name_of(c.type), layout_expression(c.layout), c.ragged_k,
        c.grouped() ? fmt::format(", .group_slots={}", c.group_slots) : "");
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
