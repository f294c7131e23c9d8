#include "rooftile/gemm/sm90_family.hpp"

#include <algorithm>
#include <bit>

namespace rooftile {
namespace {

constexpr int roomy_producer = 40;  // tests/compile holds it to no spills

}  // namespace

RegisterSplits::RegisterSplits(double registers_per_sm, double registers_per_thread, int consumers, int ctas)
    : roomy(split_registers(registers_per_sm, registers_per_thread, consumers, ctas, roomy_producer)),
      tight(split_registers(registers_per_sm, registers_per_thread, consumers, ctas, tight_producer)) {}

const char* bars_overlapped_epilogue(const Sm90GemmConfig& c) {
    if (c.schedule == Schedule::pingpong)
        return "no overlapped epilogue in pingpong: the other warpgroup's products run beside the store as "
               "it is";
    if (c.promoted) return "no overlapped epilogue with promoted sums: a stage's own stand where a finished tile would wait";
    if (c.split_k > 1)
        return "no overlapped epilogue with K in parts: they exchange their sums through the ring, at once";
    if (c.in_pieces)
        return "no overlapped epilogue with K in pieces: a CTA has one tile, and no products after it";
    if (c.result_bytes() == 1) return "no overlapped epilogue of 8-bit results: what waits would take the registers of 16-bit ones";
    if (c.result_bytes() > 2) return "no overlapped epilogue of fp32 results: what waits would take as many registers as the sums";
    if (c.expression)
        return "no overlapped epilogue with an expression: what waits to be stored would be finished first, at once";
    if (!c.tma_store)
        return "no overlapped epilogue without TMA: predicated stores hold addresses and bounds besides";
    return nullptr;
}

bool taken_by_tma(std::int64_t leading, std::int64_t offset, std::int64_t stride, Type type) {
    const int whole = tma_elements(type);
    return leading % whole == 0 && offset % whole == 0 && stride % whole == 0;
}

int group_slots(std::int64_t groups) { return int(std::bit_ceil(std::uint64_t(std::max<std::int64_t>(groups, 32)))); }

bool operand_staged(const GemmProblem& p, int k_parts) {
    return k_parts == 1 && !p.groups && stores_by_tma(p) && bytes_of(p.c_type) == 2 && p.epilogue && p.epilogue->staged_operand();
}

bool stores_by_tma(const GemmProblem& p) {
    return p.result_n() % tma_elements(p.c_type) == 0 && taken_by_tma(p.ldc, p.c_offset, p.c_stride, p.c_type);
}

void give_registers(Sm90GemmConfig& config, const GemmCandidate& c, const RegisterSplit& r) {
    config.producer_registers = r.producer;
    config.consumer_registers = r.consumer;
    config.overlapped_epilogue = c.overlapped_epilogue.value_or(true) && !bars_overlapped_epilogue(config)
                                 && config.overlapping_registers() <= r.consumer;
}

Sm90GemmConfig kernel_config(const GemmProblem& p, const GemmCandidate& c, int stages,
                             const RegisterSplit& r) {
    const GemmTile& t = c.tile;
    Sm90GemmConfig config{.tile_m = t.tile_m,
                          .tile_n = t.tile_n,
                          .tile_k = t.tile_k,
                          .stages = stages,
                          .consumer_warpgroups = c.warpgroups,
                          .schedule = c.schedule,
                          .swap_ab = c.swap_ab,
                          .cluster_m = t.cluster_m,
                          .cluster_n = t.cluster_n,
                          .split_k = t.split_k,
                          .in_pieces = t.grid_split_k > 1,
                          .ctas_per_sm = t.ctas_per_sm,
                          .producer_registers = 0,
                          .consumer_registers = 0,
                          .type = p.a_type,
                          .b_type = p.b_type,
                          .c_type = p.c_type,
                          .a_major = is_fp8(p.a_type) ? Major::k : p.a_major,  // others are packed so
                          .b_major = is_fp8(p.b_type) ? Major::k : p.b_major,
                          .tma_store = stores_by_tma(p),
                          .epilogue_tile_n = c.epilogue_tile_n,
                          .batched = p.batch > 1 || bool(p.groups),
                          .operand_staged = operand_staged(p, t.k_parts()),
                          .group_slots = p.groups ? group_slots(p.groups->count()) : 0,
                          .promoted = p.promoted(),
                          .block_scales = p.block_scales(),
                          .pairs = p.pairs() != Pairs::none,
                          .results = int(p.results()),
                          .expression = bool(p.epilogue),
                          .epilogue_registers = p.epilogue ? p.epilogue->registers(c.swap_ab, operand_staged(p, t.k_parts())) : 0};
    give_registers(config, c, r);
    return config;
}

Sm90GemmConfig kernel_config(const GemmPlan& plan) {
    const GemmConfig& c = plan.config;
    const RegisterSplit registers{0, static_cast<int>(plan.resources.producer_registers.value_or(0)),
                                  static_cast<int>(plan.resources.consumer_registers.value_or(0))};
    Sm90GemmConfig config = kernel_config(plan.problem, candidate_of(c), c.stages, registers);
    // What the code has of the plan's choices.
    const auto take = [&c](auto& own) {
#define ROOFTILE_KNOB(TYPE, NAME, ...) \
        if constexpr (requires { own.NAME; }) own.NAME = c.NAME;
#include "rooftile/gemm/knobs.def"
#undef ROOFTILE_KNOB
    };
    take(config);
    config.load_policy = c.evict_first.a || c.evict_first.b;
    config.store_policy = config.tma_store && c.evict_first.c;
    return config;
}

Residency::Residency(const GemmHardware& hw, int warpgroups, int ctas_per_sm)
    : registers(hw.registers_per_sm, hw.registers_per_thread, warpgroups, ctas_per_sm),
      constraint(residency_constraint(hw, Sm90GemmConfig::warpgroup_threads * (1 + warpgroups), ctas_per_sm)),
      shared_limit(rooftile::shared_limit(hw, ctas_per_sm)) {}

}  // namespace rooftile
