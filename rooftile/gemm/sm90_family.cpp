#include "rooftile/gemm/sm90_family.hpp"

#include <algorithm>
#include <bit>

#include "rooftile/gemm/kernel.hpp"

namespace rooftile {
namespace {

constexpr int roomy_producer = 40;  // tests/compile holds it to no spills

}  // namespace

RegisterSplits::RegisterSplits(double registers_per_sm, double registers_per_thread, int consumers, int ctas)
    : roomy(split_registers(registers_per_sm, registers_per_thread, consumers, ctas, roomy_producer)),
      tight(split_registers(registers_per_sm, registers_per_thread, consumers, ctas, tight_producer)) {}

const char* bars_overlapped_epilogue(const Sm90GemmConfig& c) {
    if (c.schedule == Schedule::pingpong)
        return "no overlapped epilogue in pingpong: the other warpgroup's products run during the store as "
               "it is";
    if (c.promoted) return "no overlapped epilogue with promoted sums: a stage's own sums are where a finished tile would wait";
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

Sm90GemmConfig kernel_config(const GemmProblem& p, const GemmConfig& c) {
    Sm90GemmConfig config{};
    // What the code has of the choices.
    const auto take = [&c](auto& own) {
#define ROOFTILE_KNOB(TYPE, NAME, ...) \
        if constexpr (requires { own.NAME; }) own.NAME = c.NAME;
#include "rooftile/gemm/knobs.def"
#undef ROOFTILE_KNOB
    };
    take(config);
    config.in_pieces = c.grid_split_k > 1;
    config.type = p.a_type, config.b_type = p.b_type, config.c_type = p.c_type;
    config.a_major = is_fp8(p.a_type) ? Major::k : p.a_major;  // others are packed so
    config.b_major = is_fp8(p.b_type) ? Major::k : p.b_major;
    config.tma_store = stores_by_tma(p);
    config.load_policy = c.evict_first.a || c.evict_first.b;
    config.store_policy = config.tma_store && c.evict_first.c;
    config.batched = p.batch > 1 || bool(p.groups);
    config.operand_staged = operand_staged(p, c.k_parts());
    config.group_slots = p.groups ? group_slots(p.groups->count()) : 0;
    config.promoted = p.promoted(), config.block_scales = p.block_scales();
    config.pairs = p.pairs() != Pairs::none;
    config.results = int(p.results());
    config.image_axes = p.image ? p.image->is_deep() ? 3 : 2 : 0;
    config.expression = bool(p.epilogue);
    config.epilogue_registers = p.epilogue ? p.epilogue->registers(c.swap_ab, config.operand_staged) : 0;
    return config;
}

Sm90GemmConfig kernel_config(const GemmPlan& plan) {
    Sm90GemmConfig config = kernel_config(multiplied(plan), plan.config);
    config.producer_registers = int(plan.resources.producer_registers.value_or(0));
    config.consumer_registers = int(plan.resources.consumer_registers.value_or(0));
    return config;
}

Residency::Residency(const GemmHardware& hw, int warpgroups, int ctas_per_sm)
    : registers(hw.registers_per_sm, hw.registers_per_thread, warpgroups, ctas_per_sm),
      constraint(residency_constraint(hw, Sm90GemmConfig::warpgroup_threads * (1 + warpgroups), ctas_per_sm)),
      shared_limit(rooftile::shared_limit(hw, ctas_per_sm)) {}

}  // namespace rooftile
