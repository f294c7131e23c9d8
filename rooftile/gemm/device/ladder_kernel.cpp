#include "rooftile/gemm/device/ladder_kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/ladder_model.hpp"

namespace rooftile {
namespace {

constexpr int pointer_alignment = 16;  // of TMA, cp.async and 16-byte loads

bool uses_tma(Rung rung) { return rung >= Rung::wgmma_tma; }
bool stores_by_tma(Rung rung) { return rung >= Rung::pipelined; }
/// Rungs 1 and 2 declare what shared memory they use themselves.
int dynamic_shared(Rung rung) { return rung >= Rung::tensor_sync ? ladder_config(rung).shared_bytes() : 0; }
CtaUse use_of(Rung rung) {
    const LadderConfig c = ladder_config(rung);
    return {c.threads(), dynamic_shared(rung), c.ctas_per_sm, c.cluster_m};
}

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

void check_aligned(const char* name, const void* pointer) {
    if (!pointer) throw RequestError(fmt::format("the pointer to {} is null", name));
    if (reinterpret_cast<DevicePointer>(pointer) % pointer_alignment != 0)
        throw RequestError(fmt::format("{} at {} is not aligned to {} B", name, pointer, pointer_alignment));
}

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

int ladder_grid(Rung rung, const GemmProblem& p, int resident_ctas) {
    const LadderConfig c = ladder_config(rung);
    const std::int64_t rows = ceil_div(ceil_div(p.m, c.tile_m), c.cluster_m),
                       columns = ceil_div(p.n, c.tile_n);
    const std::int64_t clusters = std::max(1, resident_ctas / c.cluster_m);
    // A persistent grid counts tiles in an int and steps past the last by a grid.
    if (rows > (INT32_MAX - clusters) / columns)
        throw RequestError(
            fmt::format("{} x {} has {} x {} tiles, 2^31 or more", p.m, p.n, rows * c.cluster_m, columns));
    if (c.group == 0) return static_cast<int>(rows * columns);
    return static_cast<int>(std::min(rows * columns, clusters)) * c.cluster_m;
}

LadderTensors ladder_tensors(Rung rung, const GemmProblem& p, const void* a, const void* b, const void* c) {
    const LadderConfig config = ladder_config(rung);
    LadderTensors tensors{
        rows_of(p.a_type, a, p.m, p.k, config.tile_m),
        rows_of(p.b_type, b, p.n, p.k, config.tile_n / config.cluster_m),  // a CTA's slice of a shared B
        rows_of(p.c_type, c, p.m, p.n, config.block_m)};
    tensors.a.l2_promotion_bytes = tensors.b.l2_promotion_bytes = 256;
    tensors.c.l2_promotion_bytes = 0;
    return tensors;
}

struct LadderKernel::State {
    Rung rung;
    Module module;
    Function function;
    int ctas_per_sm = 0;
    int resident_ctas = 0;  ///< of the whole device, in whole clusters
};

LadderKernel::LadderKernel(Rung rung, const CachedCompile& compiled) {
    const CtaUse use = use_of(rung);
    auto state = std::make_shared<State>();
    state->rung = rung;
    state->module = Module(compiled.compiled.cubin);
    state->function = state->module.function(compiled.compiled.lowered_names.front());
    if (use.shared_bytes > 0) state->function.allow_shared(use.shared_bytes);
    state->ctas_per_sm = state->function.ctas_per_sm(use.threads, use.shared_bytes);
    state->resident_ctas = rooftile::resident_ctas(state->function, use, current_device());
    state_ = std::move(state);
}

Rung LadderKernel::rung() const { return state_->rung; }
Function LadderKernel::function() const { return state_->function; }
int LadderKernel::ctas_per_sm() const { return state_->ctas_per_sm; }

void LadderKernel::launch(Stream stream, const void* a, const void* b, void* c,
                          const GemmProblem& problem) const {
    const Rung rung = state_->rung;
    if (const std::string why = obstacle_of(rung, problem); !why.empty()) throw RequestError(why);
    check_aligned("A", a);
    check_aligned("B", b);
    check_aligned("C", c);

    Launch where = launch_of(use_of(rung));
    where.grid_x = static_cast<unsigned>(ladder_grid(rung, problem, state_->resident_ctas));
    where.stream = stream;

    const LadderArguments arguments{
        static_cast<const unsigned short*>(a), static_cast<const unsigned short*>(b),
        static_cast<unsigned short*>(c),       static_cast<int>(problem.m),
        static_cast<int>(problem.n),           static_cast<int>(problem.k)};
    if (!uses_tma(rung)) return rooftile::launch(state_->function, where, arguments);

    const LadderTensors tensors = ladder_tensors(rung, problem, a, b, c);
    TensorMap map_a{}, map_b{}, map_c{};
    encode(map_a, tensors.a);
    encode(map_b, tensors.b);
    if (!stores_by_tma(rung)) return rooftile::launch(state_->function, where, map_a, map_b, arguments);
    encode(map_c, tensors.c);
    rooftile::launch(state_->function, where, map_a, map_b, map_c, arguments);
}

}  // namespace rooftile
