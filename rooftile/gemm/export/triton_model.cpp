#include "rooftile/gemm/export/triton_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <tuple>

#include "rooftile/core/warp.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/plain_space.hpp"

namespace rooftile {
namespace {

constexpr int triton_rows[] = {16, 32, 64, 128, 256};
constexpr int triton_columns[] = {32, 64, 128, 256};  // 16 take 1.2 to 1.4 of what is told in half of six products (docs/facts.md 359)
constexpr int triton_depths[] = {32, 64, 128, 256}, triton_warps[] = {4, 8},
              triton_stages[] = {6, 5, 4, 3, 2}, triton_bands[] = {1, 2, 4, 8, 16, 32};
constexpr int line_bytes = 128;        // of L2: shorter rows of a stage ask for half of one
constexpr int large_tile = 128 * 128;  // elements; eight warps from here on, four up to here, as in all that others tuned
constexpr double near_tie = 1.02;      // no model tells such times apart: then the smallest tile is taken, whose last wave costs least
constexpr double slow_latency = 1.5;   // of what the machine says: the second time by which plans are ranked
// What 1,570 measured configurations say beside our own kernels' numbers (docs/facts.md 359; `bench/export/judge_triton.py`): a loop of
// wgmma by descriptors waits less for its loads; eight warps that meet at each step's barrier lose so many cycles of it where an SM holds
// one CTA; rows of a box outside of the operand cost L2 as so many inside; a copy of a gathered row of A takes a thread so many cycles.
constexpr double descriptor_latency = 0.4, eight_warps_meet = 350, outside_rows = 2.5, gathered_copy = 30;
constexpr int usual_band = 8;  // as fast as others or faster by up to 13 % where the model tells no difference (the same fact)
constexpr int wgmma_rows = 64, mma_rows = 16, mma_columns = 8, warpgroup_warps = 4;
constexpr int mma_k_bytes = 32, copy_bytes = 16, barrier_bytes = 64;

// Registers beside the sums, from what Triton 3.6 compiles of every configuration (docs/facts.md 355): a loop by descriptors has 26;
// each copy of 16 B that a thread makes a step has an address and a mask; mma.sync's fragments come on top.
int other_registers(TritonLoads loads, bool wgmma, int accumulators, int copies) {
    const int fragments = wgmma ? 0 : accumulators * 2 / 3;
    if (loads == TritonLoads::descriptors) return 26 + fragments;
    return 28 + fragments + (wgmma ? 3 : 1) * copies + (loads == TritonLoads::gathered ? 10 : 0);
}
// From here on it spills: the compiler gives no more than 255 registers to a thread.
constexpr int most_accumulators = 128;

/// Of a warp and k-step, within a fifth of what was counted in 45 loops (docs/facts.md 356).
double loop_instructions(TritonLoads loads, bool wgmma, int accumulators, int copies, double products) {
    if (loads == TritonLoads::descriptors) return wgmma ? 103 + 0.8 * accumulators : 88 + 2 * products;
    return wgmma ? 45 + 6 * copies + 0.15 * accumulators : 30 + 4 * copies + 2 * products;
}
// Of a warp alone: every other instruction waits for the one before it, four cycles (arithmetic.latency).
constexpr double cycles_an_instruction = 2;
constexpr int schedulers = 4;  // of an SM (sm.partitions), a warp instruction a cycle each

/// Of 16 B that a thread makes a step, of so many lines.
int copies_of(int lines, const TritonConfig& t, Type type) {
    return std::max(1, lines * t.block_k * bytes_of(type) / copy_bytes / (t.warps * warp_threads));
}

/// Warps along M and N.
struct WarpGrid {
    int m, n;
};

WarpGrid warp_grid(const TritonConfig& t, bool wgmma) {
    if (wgmma) {
        const int m = std::min(t.warps / warpgroup_warps, t.block_m / wgmma_rows);
        return {m, t.warps / warpgroup_warps / m};
    }
    WarpGrid grid{1, 1};
    while (grid.m * grid.n < t.warps) {
        const bool taller = t.block_m / mma_rows / grid.m >= t.block_n / (2 * mma_columns) / grid.n && grid.m < t.block_m / mma_rows;
        (taller ? grid.m : grid.n) *= 2;
    }
    return grid;
}

std::int64_t triton_stage_bytes(const TritonConfig& t, const GemmProblem& p) {
    return std::int64_t{t.block_k} * (t.block_m * bytes_of(p.a_type) + t.block_n * bytes_of(p.b_type));
}

std::vector<int> sides_left(const std::optional<int>& fixed, std::span<const int> searched, const char* what) {
    if (!fixed) return {searched.begin(), searched.end()};
    if (std::ranges::find(searched, *fixed) == searched.end())
        throw RequestError(fmt::format("{} {}: Triton takes powers of two, here {} to {}; fix one of them or leave it out", what, *fixed,
                                       *std::ranges::min_element(searched), *std::ranges::max_element(searched)));
    return {*fixed};
}

}  // namespace

TritonModel::TritonModel(const Machine& machine, const GemmProblem& problem, TritonLoads loads)
    : problem_(problem), loads_(loads), has_wgmma_(machine.has("wgmma")) {
    if (!machine.has("cp_async") || machine.has("tcgen05"))
        throw RequestError(fmt::format("{} ({}): Triton's kernels are modelled for sm_80 to sm_90", machine.id,
                                       machine.arch.empty() ? "no architecture" : machine.arch));
    std::vector<std::string> unknown;
    const auto hardware = [&](const char* family, Following following) {
        return with_operands(as_launched(gemm_hardware(machine, family, problem.a_type, unknown), following, problem.b_bytes()), problem,
                             {});
    };
    // Launches are plain ones; those of mma.sync were fitted without what a programmatic one saves.
    mma_sync_ = hardware("mma_sync", {});
    if (!has_wgmma_) return;
    wgmma_ = hardware("wgmma", {.programmatic = false});
    // The same loads, barriers and turns. Without them mma.sync is told too short, most where K is (docs/facts.md 349).
    for (const auto member : {&GemmHardware::loaded_latency, &GemmHardware::l2_loaded_latency, &GemmHardware::tile_turn,
                              &GemmHardware::store_latency, &GemmHardware::step_floor, &GemmHardware::dram_overlap_exponent})
        mma_sync_.*member = wgmma_.*member;
}

std::optional<TritonUse> TritonModel::use(const TritonConfig& t) const {
    const int threads = t.warps * warp_threads;
    TritonUse use{.wgmma = has_wgmma_ && t.block_m >= wgmma_rows};
    const GemmHardware& hw = use.wgmma ? wgmma_ : mma_sync_;
    use.accumulators = t.block_m * t.block_n / threads;
    if (use.accumulators > most_accumulators) return std::nullopt;
    const int copies = copies_of(t.block_m, t, problem_.a_type) + copies_of(t.block_n, t, problem_.b_type);
    use.registers = use.accumulators + other_registers(loads_, use.wgmma, use.accumulators, copies);
    const WarpGrid grid = warp_grid(t, use.wgmma);
    use.warp_m = use.wgmma ? wgmma_rows : t.block_m / grid.m, use.warp_n = std::max(mma_columns, t.block_n / grid.n);
    const double products = double(use.warp_m) / mma_rows * use.warp_n / mma_columns * t.block_k * bytes_of(problem_.a_type) / mma_k_bytes;
    use.instructions = loop_instructions(loads_, use.wgmma, use.accumulators, copies, products);
    if (use.registers > hw.registers_per_thread) return std::nullopt;
    // wgmma reads a stage until the next step's is issued; mma.sync has it in registers before, so one fewer is
    // kept. C leaves
    // through them.
    const int buffers = use.wgmma ? t.stages : t.stages - 1;
    const std::int64_t ring = buffers * triton_stage_bytes(t, problem_),
                       c = std::int64_t{t.block_m} * t.block_n * bytes_of(problem_.c_type);
    // A result in fp32 that leaves by TMA has a tile of its own beside the ring.
    const bool apart = loads_ == TritonLoads::descriptors && problem_.c_type == Type::fp32;
    use.shared_bytes = (apart ? ring + c : std::max(ring, c)) + barrier_bytes;
    const auto resident = [&](int ctas) {
        return !residency_constraint(hw, threads, ctas) && use.registers <= launch_registers(hw, threads, ctas)
               && double(use.shared_bytes) <= shared_limit(hw, ctas);
    };
    while (use.ctas_per_sm < 32 && resident(use.ctas_per_sm + 1)) ++use.ctas_per_sm;
    if (use.ctas_per_sm == 0) return std::nullopt;
    return use;
}

std::optional<TritonPlan> TritonModel::plan(const TritonConfig& t) const {
    const std::optional<TritonUse> use = this->use(t);
    if (!use) return std::nullopt;
    std::optional<TritonPlan> plan = timed(use->wgmma ? wgmma_ : mma_sync_, t, *use, cycles_an_instruction);
    if (!plan) return std::nullopt;
    // What Triton's loop adds to a load's latency nobody knows: a plan that bears it is worth more than one that is as fast without.
    GemmHardware slow = use->wgmma ? wgmma_ : mma_sync_;
    for (double* cycles :
         {&slow.loaded_latency, &slow.l2_loaded_latency, &slow.dram_latency, &slow.l2_latency, &slow.tma_latency, &slow.step_floor})
        *cycles *= slow_latency;
    plan->slow_seconds = timed(slow, t, *use, slow_latency * cycles_an_instruction)->seconds;
    return plan;
}

std::optional<TritonPlan> TritonModel::timed(const GemmHardware& machine, const TritonConfig& t, const TritonUse& use,
                                             double instruction_cycles) const {
    GemmHardware hw = machine;
    const bool by_descriptors = use.wgmma && loads_ == TritonLoads::descriptors;
    if (by_descriptors)
        for (double* cycles : {&hw.loaded_latency, &hw.l2_loaded_latency}) *cycles *= descriptor_latency;
    hw.step_floor = max_known(hw.step_floor, use.instructions * instruction_cycles);
    GemmCandidate c{};
    c.tile_m = t.block_m, c.tile_n = t.block_n, c.tile_k = t.block_k, c.stages = t.stages;
    c.order = Order::grouped, c.group = t.group_m, c.ctas_per_sm = use.ctas_per_sm;
    c.consumer_warpgroups = t.warps / warpgroup_warps;
    c.warp_m = use.warp_m, c.warp_n = use.warp_n;
    c.threads = t.warps * warp_threads, c.accumulators = use.accumulators, c.registers = use.registers;
    c.stage_bytes = int(triton_stage_bytes(t, problem_));
    c.set_work(hw, problem_);
    c.take_order({Order::grouped, t.group_m}, hw, problem_);
    if (loads_ != TritonLoads::gathered) {  // rows and columns outside are filled all the same
        const double outside = std::max<double>(0, double(t.block_m - problem_.m)) + std::max<double>(0, double(t.block_n - problem_.n));
        const double bytes = outside * t.block_k * bytes_of(problem_.a_type);
        c.step.port += bytes / hw.l2_port, c.step.l2 += outside_rows * bytes / hw.l2_share;
    }
    c.step.shared = max_known(c.step.shared, t.warps * use.instructions * instruction_cycles / (cycles_an_instruction * schedulers));
    if (by_descriptors && t.warps > warpgroup_warps && use.ctas_per_sm == 1) c.step.tensor += eight_warps_meet;
    if (loads_ == TritonLoads::gathered) c.step.tensor += gathered_copy * copies_of(t.block_m, t, problem_.a_type);
    const Waves w = waves(hw, c, problem_);
    const double dram = ScheduleTraffic(hw, c, problem_).dram(Order::grouped, t.group_m);
    const GemmTime time = gemm_time_under_power(hw, c, problem_, c.step, w, dram, t.stages, std::numeric_limits<double>::infinity());
    if (std::isnan(time.seconds)) return std::nullopt;
    // Each CTA fills its ring anew; where an SM holds one, nothing multiplies meanwhile.
    const double fills = use.ctas_per_sm == 1 ? w.waves - 1 : 0, fill = hw.few_loads_latency() + c.step.port;
    return TritonPlan{.config = t,
                      .use = use,
                      .seconds = time.seconds + known_or(fills * fill / time.clock_hz, 0),
                      .dram_bytes = dram,
                      .waves = w,
                      .bound = time.bound};
}

std::vector<TritonConfig> TritonModel::space(const GemmRequest& r, Type type) {
    std::optional<int> warps = r.consumer_warpgroups;
    if (warps) *warps *= warpgroup_warps;
    const auto ms = sides_left(r.tile_m, triton_rows, "tile_m"), ns = sides_left(r.tile_n, triton_columns, "tile_n"),
               ks = sides_left(r.tile_k, triton_depths, "tile_k"),
               some_warps = sides_left(warps, triton_warps, "warps (4 a consumer warpgroup)"),
               stages = sides_left(r.stages, triton_stages, "stages"),
               bands = r.group ? std::vector<int>{*r.group} : std::vector<int>(std::begin(triton_bands), std::end(triton_bands));
    std::vector<TritonConfig> all;
    for (const int m : ms)
        for (const int n : ns)
            for (const int k : ks)
                for (const int w : some_warps) {
                    if ((!r.tile_k && (k * bytes_of(type) < line_bytes || k * bytes_of(type) > 2 * line_bytes))
                        || (!warps && (w == 8 ? m * n < large_tile : m * n > large_tile)))
                        continue;
                    for (const int s : stages)
                        for (const int g : bands) all.push_back({m, n, k, g, w, s});
                }
    return all;
}

std::vector<TritonPlan> fastest_triton(const std::vector<TritonModel>& models, const GemmRequest& request) {
    struct Ranked {
        double ranking = 0;
        std::vector<TritonPlan> plans;
    };
    std::vector<Ranked> near;
    double least = std::numeric_limits<double>::infinity();
    for (const TritonConfig& config : TritonModel::space(request, models.front().type())) {
        Ranked one;
        for (const TritonModel& model : models) {
            const auto plan = model.plan(config);
            if (!plan) break;
            one.ranking += plan->seconds + plan->slow_seconds;
            one.plans.push_back(*plan);
        }
        if (one.plans.size() < models.size() || one.ranking > near_tie * least) continue;
        least = std::min(least, one.ranking);
        near.push_back(std::move(one));
    }
    std::erase_if(near, [&](const Ranked& one) { return one.ranking > near_tie * least; });
    if (near.empty()) return {};
    const auto of = [&](const Ranked& one) {
        const TritonConfig& t = one.plans.front().config;
        const double band = models.front().grouped() ? 1 : double(std::max(t.group_m, usual_band)) / std::min(t.group_m, usual_band);
        return std::tuple(t.block_m * t.block_n, band, one.ranking);
    };
    return std::ranges::min(near, {}, of).plans;
}

}  // namespace rooftile
