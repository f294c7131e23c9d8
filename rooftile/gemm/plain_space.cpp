#include "rooftile/gemm/plain_space.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "rooftile/core/warp.hpp"

namespace rooftile {
namespace {

constexpr int warpgroup_threads = 128;
constexpr int element_bytes = 2;

void enumerate_both(const auto& family, const GemmHardware& hw, const GemmProblem& problem,
                    const GemmRequest& request, GemmVisitor& visitor) {
    static constexpr int tile_ks[] = {16, 32, 64}, warpgroups[] = {1, 2}, ctas[] = {1, 2, 4};
    enumerate_plain_tiles(family, {searched_tile_ms, searched_tile_ns, tile_ks, warpgroups, ctas}, hw,
                          problem, request, visitor);
}

}  // namespace

double launch_registers(const GemmHardware& hw, int threads, int ctas) {
    // Warps are dealt to four partitions, which have a quarter of the registers each: nine warps take what twelve do (docs/facts.md 387).
    constexpr int partitions = 4;
    const double warps = whole_up(double(threads) / warp_threads * ctas / partitions) * partitions;
    const double a_warp = whole(hw.registers_per_sm / warps / hw.register_unit) * hw.register_unit;
    return min_known(whole(a_warp / warp_threads), hw.registers_per_thread);
}

Constraint plain_constraints(const GemmHardware& hw, const GemmCandidate& c) {
    if (const Constraint constraint = residency_constraint(hw, c.threads, c.ctas_per_sm))
        return constraint;
    if (const int size = c.cluster_m * c.cluster_n; size > 1)
        return Constraint::at(Reason::cluster, size, 1,
                              "a cluster of {needed} CTAs; this kernel takes {available}");
    if (c.schedule != Schedule::cooperative)
        return Constraint::at(Reason::instruction, 2, 1, "pingpong needs wgmma; this kernel is cooperative");
    if (c.registers > c.registers_limit)
        return Constraint::at(
            Reason::registers, c.registers, c.registers_limit,
            "accumulators, fragments and the rest are {needed} registers a thread > {available}; "
            "take a smaller "
            "tile, more warpgroups or fewer CTAs");
    return Constraint::none();
}

void MmaOnlyFamily::enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                              GemmVisitor& visitor) const {
    enumerate_both(*this, hw, problem, request, visitor);
}
void GenericGemmFamily::enumerate(const GemmHardware& hw, const GemmProblem& problem,
                                  const GemmRequest& request, GemmVisitor& visitor) const {
    // Doubled and halved [M8]; where the number of SMs says what a wave is, one side between two of these, which fills waves better. Several warps
    // share a tile whatever the instruction is, so that a side is below 64 only where it takes the whole of the problem's, or an SM holds no 64 x 64.
    static constexpr int tile_ks[] = {32, 64, 128}, warpgroups[] = {1, 2, 4, 8}, ctas[] = {1, 2, 4, 8};
    GemmCandidate least{{.tile_m = 64, .tile_n = 64, .tile_k = 32, .consumer_warpgroups = 1}};
    const std::int64_t shortest = examine(hw, problem, least) || least.stages_max(min_stages) < min_stages ? 16 : 64;
    const auto sides = [shortest](std::int64_t extent, std::initializer_list<int> of) {
        std::vector<int> out;
        std::ranges::copy_if(of, std::back_inserter(out), [&](int side) { return side >= std::min(extent, shortest); });
        return out;
    };
    const std::initializer_list<int> doubled{16, 32, 64, 128, 256}, between{96, 160, 192, 224};
    const auto enumerate_sides = [&](const std::vector<int>& tile_ms, const std::vector<int>& tile_ns) {
        enumerate_plain_tiles(*this, {tile_ms, tile_ns, tile_ks, warpgroups, ctas}, hw, problem, request, visitor);
    };
    enumerate_sides(sides(problem.m, doubled), sides(problem.n, doubled));
    if (std::isnan(hw.sms)) return;
    const std::initializer_list<int> beside{64, 128, 256};
    if (!request.tile_n) enumerate_sides(beside, sides(problem.n, between));
    if (!request.tile_m) enumerate_sides(sides(problem.m, between), beside);
}

Constraint MmaOnlyFamily::examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& c) const {
    // Warps stand 2 x 2 or 2 x 4; each multiplies a block by m8n8k4 in quads.
    const int warps_m = 2, warps_n = 2 * c.consumer_warpgroups;
    constexpr int widest = 256;
    if (c.tile_m % (warps_m * 16) != 0 || c.tile_m > widest)
        return Constraint::at(Reason::instruction, warps_m * 16, c.tile_m,
                              "tile_m = {available} must be a multiple of {needed} up to 256");
    if (c.tile_n % (warps_n * 8) != 0 || c.tile_n > widest)
        return Constraint::at(Reason::instruction, warps_n * 8, c.tile_n,
                              "tile_n = {available} must be a multiple of {needed} up to 256");
    if (c.tile_k % 16 != 0)
        return Constraint::at(Reason::instruction, 16, c.tile_k,
                              "tile_k = {available} must be a multiple of {needed}");
    c.warp_m = c.tile_m / warps_m;
    c.warp_n = c.tile_n / warps_n;
    c.set_work(hw, problem);
    c.threads = warpgroup_threads * c.consumer_warpgroups;
    c.accumulators = c.tile_m * c.tile_n / c.threads;
    // Two k-steps of fragments, one in use and one arriving: 4 registers an m16k16 block, 2 an n8k16 block.
    const int fragments = 2 * (c.warp_m / 16 * 4 + c.warp_n / 8 * 2);
    c.stage_bytes = (c.tile_m + c.tile_n) * c.tile_k * element_bytes;
    const int waiting = c.stage_bytes / 4 / c.threads;  // the next tile, on its way to shared memory
    c.registers = c.accumulators + fragments + waiting + working_registers;
    c.registers_limit = launch_registers(hw, c.threads, c.ctas_per_sm);
    c.shared_limit = shared_limit(hw, c.ctas_per_sm);
    if (const Constraint constraint = plain_constraints(hw, c)) return constraint;
    // Without asynchronous copies a warp waits for its own loads: other resident CTAs must compute meanwhile
    // [M6].
    c.stages_limit = 2;
    const double covered = c.ctas_per_sm * 2.0 * c.tile_m * c.tile_n * c.tile_k / hw.flops_per_cycle;
    if (covered < hw.dram_latency)
        return Constraint::at(
            Reason::latency, hw.dram_latency, covered,
            "the latency is {needed} cycles, and resident CTAs compute for {available}; take a "
            "larger tile or more CTAs");
    return Constraint::none();
}

Constraint GenericGemmFamily::examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& c) const {
    c.warp_m = c.tile_m;
    c.warp_n = c.tile_n;
    c.set_work(hw, problem);
    c.threads = warpgroup_threads * c.consumer_warpgroups;
    if (c.tile_m * c.tile_n % c.threads != 0)
        return Constraint::at(Reason::threads, c.threads, c.tile_m * c.tile_n, "{needed} threads do not share {available} sums evenly; take a larger tile or fewer warpgroups");
    c.accumulators = c.tile_m * c.tile_n / c.threads;
    c.registers = c.accumulators + MmaOnlyFamily::working_registers;
    c.registers_limit = launch_registers(hw, c.threads, c.ctas_per_sm);
    c.stage_bytes = (c.tile_m * bytes_of(problem.a_type) + c.tile_n * bytes_of(problem.b_type)) * c.tile_k;
    c.shared_limit = shared_limit(hw, c.ctas_per_sm);
    // Nobody knows what stages above the least would hide here: they cover the latency, and the transfer where a rate of L2 is known [M5].
    const double transfer = known_or(c.stage_bytes / min_known(hw.l2_port, hw.l2_share), 0);
    c.stages_enough = std::max(min_stages, c.stages_against_latency(hw.dram_latency + transfer));
    c.sums_limit = std::floor((c.registers_limit + 1) / 2);
    if (const Constraint constraint = plain_constraints(hw, c)) return constraint;
    // What its instructions are is unknown: half of the registers are kept for what they read, arriving and in use.
    if (c.accumulators > c.sums_limit)
        return Constraint::at(Reason::registers, c.accumulators, c.sums_limit,
                              "{needed} sums a thread > {available}, half of its registers: the others are kept for what is multiplied; take a smaller tile or fewer CTAs");
    return Constraint::none();
}

}  // namespace rooftile
