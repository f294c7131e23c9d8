#include "rooftile/gemm/device/ladder_kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/ladder_model.hpp"

namespace rooftile {
namespace {

constexpr int pointer_alignment = 16;  // of TMA, cp.async and 16-byte loads

bool uses_tma(Rung rung) { return rung >= Rung::wgmma_tma; }
bool stores_by_tma(Rung rung) { return rung >= Rung::pipelined; }
/// Rungs 1 and 2 declare what shared memory they use themselves.
int dynamic_shared(Rung rung) { return rung >= Rung::tensor_sync ? ladder_config(rung).shared_bytes() : 0; }
TensorMapRequest rows_of(Type type, const void* base, std::int64_t rows, std::int64_t columns, int box_rows) {
    TensorMapRequest request;
    request.type = type;
    request.base = reinterpret_cast<DevicePointer>(base);
    request.inner = columns;
    request.outer = rows;
    request.outer_stride_bytes = columns * LadderConfig::element_bytes;
    request.box_inner = LadderConfig::swizzle_bytes / LadderConfig::element_bytes;
    request.box_outer = box_rows;
    request.swizzle_bytes = LadderConfig::swizzle_bytes;
    return request;
}

class RungCode final : public GemmCode {
  public:
    RungCode(Rung rung, const GemmProblem& problem, std::string_view arch)
        : rung_(rung), config_(ladder_config(rung)), problem_(problem), arch_(arch) {}

    Source source() const override { return ladder_source(rung_, problem_.a_type, arch_); }
    std::string arch() const override { return arch_; }
    CtaUse cta() const override {
        return {config_.threads(), dynamic_shared(rung_), config_.ctas_per_sm, config_.cluster_m};
    }
    void check(const GemmShape& s, const void* a, const void* b, const void* c) const override {
        GemmProblem problem = problem_;
        problem.m = s.m, problem.n = s.n, problem.k = s.k;
        problem.lda = s.lda, problem.ldb = s.ldb, problem.ldc = s.ldc;
        if (const std::string why = obstacle_of(rung_, problem); !why.empty()) throw RequestError(why);
        check_pointer("A", a, pointer_alignment);
        check_pointer("B", b, pointer_alignment);
        check_pointer("C", c, pointer_alignment);
    }
    ClusterTiles tiles(const GemmShape& shape) const override {
        return {ceil_div(shape.m, std::int64_t(config_.tile_m) * config_.cluster_m), ceil_div(shape.n, config_.tile_n)};
    }
    int grid(const GemmShape& shape, int resident_ctas) const override {
        const ClusterTiles all = tiles(shape);
        const std::int64_t clusters = std::max(1, resident_ctas / config_.cluster_m);
        check_tiles(shape, all, clusters, config_.tile_m, config_.tile_n);
        const std::int64_t needed = all.rows * all.columns;
        return int(config_.group == 0 ? needed : std::min(needed, clusters)) * config_.cluster_m;
    }
    void launch(const Function& function, const Launch& launch, const GemmShape& shape,
                const GemmPointers& p) const override {
        const LadderArguments arguments{
            static_cast<const unsigned short*>(p.a), static_cast<const unsigned short*>(p.b),
            static_cast<unsigned short*>(p.c),       int(shape.m), int(shape.n), int(shape.k)};
        if (!uses_tma(rung_)) return rooftile::launch(function, launch, arguments);

        const LadderTensors tensors = ladder_tensors(rung_, problem_.a_type, shape, p);
        TensorMap map_a{}, map_b{}, map_c{};
        encode(map_a, tensors.a);
        encode(map_b, tensors.b);
        if (!stores_by_tma(rung_)) return rooftile::launch(function, launch, map_a, map_b, arguments);
        encode(map_c, tensors.c);
        rooftile::launch(function, launch, map_a, map_b, map_c, arguments);
    }

  private:
    Rung rung_;
    LadderConfig config_;
    GemmProblem problem_;
    std::string arch_;
};

}  // namespace

Source ladder_source(Rung rung, Type type, std::string_view arch) {
    Source source;
    source.name = fmt::format("ladder_{}", name_of(rung));
    source.text = fmt::format("#include \"kernels/gemm/ladder/{}_{}.cuh\"\n", static_cast<int>(rung) + 1,
                              name_of(rung));
    source.name_expressions = {
        fmt::format("rooftile::ladder::{}<rooftile::Type::{}>", name_of(rung), name_of(type))};
    source.arch = nvrtc_arch(arch);
    return source;
}

std::string arch_obstacle(Rung rung, std::string_view arch) {
    if (uses_tma(rung) && arch != "sm_90")
        return fmt::format("needs sm_90 (TMA and wgmma); this GPU is {}", arch);
    const std::string_view number = arch.substr(std::min(arch.size(), arch.find('_') + 1));
    const bool older = number.size() < 2 || (number.size() == 2 && number < "80");
    return older ? fmt::format("needs sm_80 or later; this GPU is {}", arch) : std::string();
}

LadderTensors ladder_tensors(Rung rung, Type type, const GemmShape& shape, const GemmPointers& p) {
    const LadderConfig config = ladder_config(rung);
    LadderTensors tensors{
        rows_of(type, p.a, shape.m, shape.k, config.tile_m),
        rows_of(type, p.b, shape.n, shape.k, config.tile_n / config.cluster_m),  // a CTA's slice of a shared B
        rows_of(type, p.c, shape.m, shape.n, config.block_m)};
    tensors.a.l2_promotion_bytes = tensors.b.l2_promotion_bytes = 256;
    tensors.c.l2_promotion_bytes = 0;
    return tensors;
}

std::unique_ptr<const GemmCode> rung_code(Rung rung, const GemmProblem& problem, std::string_view arch) {
    return std::make_unique<const RungCode>(rung, problem, arch);
}

Kernel compile_rung(Rung rung, const GemmPlan& plan, std::string_view arch) {
    return compile(plan, rung_code(rung, plan.problem, arch));
}

}  // namespace rooftile
