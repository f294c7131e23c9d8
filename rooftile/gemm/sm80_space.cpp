#include "rooftile/gemm/sm80_space.hpp"

#include <limits>

#include "kernels/gemm/sm80_gemm_arguments.hpp"
#include "rooftile/gemm/plain_space.hpp"

namespace rooftile {
namespace {

constexpr int warps_of_a_warpgroup = 4;
constexpr int widest_tile = 256;

/// Columns that a warp's tile is a multiple of: two operands of N = 8 to a load, four to a store by 16 B.
int warp_columns(const Sm80GemmConfig& c) {
    return c.vector_store ? Sm80GemmConfig::quad_columns : 2 * Sm80GemmConfig::mma_n;
}

// The widest copies that the leading dimensions allow, and what lies beside them.
void set_copies(Sm80GemmConfig& c, const GemmProblem& p) {
    const auto at = [](std::int64_t offset) { return static_cast<unsigned long long>(offset) * Sm80GemmConfig::element_bytes; };
    // Every product's matrix begins where such a copy may.
    c.a_copy_bytes = sm80_copy_bytes(at(p.a_offset) | at(p.a_stride), p.lda);
    c.b_copy_bytes = sm80_copy_bytes(at(p.b_offset) | at(p.b_stride), p.ldb);
    c.partial_copies = sm80_partial_copies(p.a_major == Major::k ? p.k : p.m, c.a_copy_bytes)
                       || sm80_partial_copies(p.b_major == Major::k ? p.k : p.n, c.b_copy_bytes);
    c.vector_store = sm80_vector_store(at(p.c_offset) | at(p.c_stride), p.ldc, p.n);
}

// Each column of warps reads A once, each row of them B.
void set_warps(Sm80GemmConfig& c, int warps) {
    c.warps_m = c.warps_n = 0;
    int least = std::numeric_limits<int>::max();
    for (int m = 1; m <= warps; ++m) {
        const int n = warps / m;
        if (m * n != warps || c.tile_m % (m * Sm80GemmConfig::mma_m) != 0
            || c.tile_n % (n * warp_columns(c)) != 0)
            continue;
        if (const int read = c.tile_m * n + c.tile_n * m; read < least) {
            least = read;
            c.warps_m = m, c.warps_n = n;
        }
    }
}

Constraint instruction_constraint(const GemmCandidate& c, const Sm80GemmConfig& config) {
    constexpr int two_steps = 2 * Sm80GemmConfig::mma_k;
    if (c.tile_k % two_steps != 0)
        return Constraint::at(
            Reason::instruction, two_steps, c.tile_k,
            "tile_k = {available} must be a multiple of {needed}: fragments of two k-steps take turns");
    if (c.tile_m > widest_tile || c.tile_n > widest_tile)
        return Constraint::at(Reason::instruction, std::max(c.tile_m, c.tile_n), widest_tile,
                              "a side of {needed} elements; this kernel takes tiles of at most {available}");
    if (config.warps() == 0)
        return Constraint::at(
            Reason::instruction, warps_of_a_warpgroup * c.consumer_warpgroups, 0,
            "{needed} warps make no grid over the tile: a warp takes a multiple of 16 rows, and "
            "of 32 columns, or 16 where C is stored by element");
    if (config.image_axes > 0 && config.tile_k / Sm80GemmConfig::chunk_elements > config.threads())
        return Constraint::at(Reason::instruction, config.tile_k, config.threads() * Sm80GemmConfig::chunk_elements,
                              "tile_k = {needed}: a thread gathers one piece of a row, together {available} elements");
    if (!config.copies_evenly())
        return Constraint::at(Reason::instruction, config.threads(), 0,
                              "{needed} threads cannot cut the tiles of A and B evenly into copies");
    return Constraint::none();
}

}  // namespace

Sm80GemmConfig sm80_config(const GemmProblem& p, const GemmConfig& c) {
    Sm80GemmConfig config{.tile_m = c.tile_m,
                          .tile_n = c.tile_n,
                          .tile_k = c.tile_k,
                          .stages = c.stages,
                          .warps_m = 0,
                          .warps_n = 0,
                          .ctas_per_sm = c.ctas_per_sm,
                          .type = p.a_type,
                          .a_major = p.a_major,
                          .b_major = p.b_major,
                          .persistent = c.ctas_per_sm == 1,
                          .batched = p.batch > 1,
                          .image_axes = !p.image ? 0 : p.image->is_deep() ? 3 : 2,
                          .expression = bool(p.epilogue),
                          .epilogue_registers = p.epilogue ? p.epilogue->registers(false, false) : 0};
    set_copies(config, p);
    set_warps(config, warps_of_a_warpgroup * c.consumer_warpgroups);
    return config;
}

Constraint Sm80GemmFamily::examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& c) const {
    const Sm80GemmConfig config = sm80_config(problem, c);
    if (const Constraint constraint = instruction_constraint(c, config)) return constraint;
    c.warp_m = config.warp_m();
    c.warp_n = config.warp_n();
    c.set_work(hw, problem);
    c.threads = config.threads();
    c.accumulators = config.accumulator_registers();
    c.registers = config.registers();
    c.registers_limit = launch_registers(hw, c.threads, c.ctas_per_sm);
    if (problem.gathered) c.start = max_known(hw.gather_start, 0) + double(problem.k_blocks(c.tile_k)) * max_known(hw.gather_step, 0);
    c.stage_bytes = config.stage_bytes();
    c.shared_limit = shared_limit(hw, c.ctas_per_sm);
    return plain_constraints(hw, c);
}

void Sm80GemmFamily::enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                               GemmVisitor& visitor) const {
    static constexpr int tile_ms[] = {16, 32, 64, 96, 128, 192, 256}, tile_ns[] = {32, 64, 96, 128, 192, 256},
                         tile_ks[] = {32, 64}, warpgroups[] = {1, 2}, ctas[] = {1, 2, 3, 4};
    enumerate_plain_tiles(*this, {tile_ms, tile_ns, tile_ks, warpgroups, ctas}, hw, problem, request,
                          visitor);
}

}  // namespace rooftile
