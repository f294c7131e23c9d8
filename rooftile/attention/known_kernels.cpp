#include "rooftile/attention/known_kernels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/attention/hardware.hpp"
#include "rooftile/attention/model.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/attention/space.hpp"
#include "rooftile/core/warp.hpp"

namespace rooftile {
namespace {

constexpr int warpgroup_threads = 128;
constexpr double bytes_an_element = 2;

/// The kernel's tile in our terms.
struct KnownTile {
    AttentionConfig config;
    std::string instructions;  ///< whose rate its products have
};

/// Empty: its name does not say it.
std::optional<KnownTile> known_tile(const KernelName& name, const LaunchedKernel& launch, const HeadSizes& s) {
    if (!name.tile_m || !name.tile_n) return std::nullopt;
    KnownTile t;
    t.config.tile_q = *name.tile_m, t.config.tile_kv = *name.tile_n;
    t.instructions = name.arch == "sm_90" ? "wgmma" : "mma_sync";
    t.config.schedule = Schedule::cooperative;
    // cuDNN's names have a warpgroup's queries; beside those that multiply is one that loads.
    if (name.family == "cudnn") t.config.tile_q *= std::max(1, launch.threads / warpgroup_threads - 1);
    t.config.stages = std::max(2, name.stages.value_or(2));
    t.config.section_heads = std::max<std::int64_t>(1, s.heads / s.kv_heads);
    if (t.config.consumer_warpgroups() == 0 || t.config.tile_q % AttentionConfig::warpgroup_q != 0) return std::nullopt;
    return t;
}

class KnownAttentionKernels final : public KnownKernels {
  public:
    std::optional<Answer> answer(const Machine& machine, const KernelName& name, const LaunchedKernel& launch) const override {
        const auto* sizes = std::get_if<HeadSizes>(&launch.sizes);
        if (!sizes) return std::nullopt;
        if (sizes->causal) {
            const Problem problem = problem_of(*sizes, name, *sizes->causal);
            return seconds_of(machine, problem, name, launch, *sizes);
        }
        // Nothing is guessed: the reader knows which of the two it was.
        Answer out{{}, {}, "its launch does not say the mask"};
        const Answer all = seconds_of(machine, problem_of(*sizes, name, false), name, launch, *sizes),
                     causal = seconds_of(machine, problem_of(*sizes, name, true), name, launch, *sizes);
        constexpr double us = 1e6;
        if (all.seconds && causal.seconds)
            out.why_not += fmt::format(" of {} heads of {} queries and {} keys: {:.3g} us predicted without one, {:.3g} us causal",
                                       sizes->batch * sizes->heads, sizes->queries, sizes->keys, *all.seconds * us, *causal.seconds * us);
        return out;
    }

  private:
    static Problem problem_of(const HeadSizes& s, const KernelName& name, bool causal) {
        Given given(Given::Named::by_key);
        const auto add = [&](const char* key, std::int64_t value) { given.add(key, std::to_string(value)); };
        add("batch", s.batch), add("heads", s.heads), add("kv_heads", s.kv_heads), add("q", s.queries), add("kv", s.keys),
            add("dim", s.dim);
        if (s.dim_v != s.dim) add("dim_v", s.dim_v);
        if (causal) given.add("mask", "causal");
        // cuDNN prints f16 for both 16-bit types, which take the same time.
        given.add("type", name.types.a == "fp16" ? "fp16" : "bf16");
        return attention_operation().problem(given);
    }

    /// Kernels without a warp that loads: each warp has 16 or 32 queries, copies, multiplies by mma.sync what it reads of K and V
    /// itself, and takes the softmax, one after the other. What overlaps are the CTAs of an SM, which meet at its matrix units and at its shared memory.
    static Answer of_warps(const Machine& machine, const Problem& problem, const AttentionHardware& wgmma, const KnownTile& tile,
                           const LaunchedKernel& launch) {
        const auto& p = problem.own.as<AttentionProblem>();
        std::vector<std::string> unknown;
        const MatrixHardware warps =
            matrix_hardware(machine, {.input = attention_type_name(p.type), .needs = {"rate"}, .family = tile.instructions}, unknown);
        AttentionHardware hw = wgmma;
        hw.flops_per_cycle = warps.flops_per_cycle;
        if (std::isnan(hw.flops_per_cycle)) return {problem, {}, fmt::format("no rate of {} is known", tile.instructions)};
        const AttentionConfig& c = tile.config;
        const double ctas = std::max(1, launch.ctas_per_sm), readers = std::max(1, launch.threads / warp_threads);
        const auto of_block = [&](bool masked) {
            const BlockCycles b = block_cycles(hw, p, c, masked);
            const double read =
                double(c.tile_kv) * double(p.dim + p.dim_v) * bytes_an_element * (readers + 1) / hw.shared_bandwidth;  // and copied once
            const double demands[] = {b.tensor, read};
            // Mean value analysis of a closed network of CTAs, as of a kernel that streams.
            double queues[2] = {0, 0}, rate = 0;
            for (int n = 1; n <= int(ctas); ++n) {
                double all = b.softmax;
                double resident[2];
                for (int i = 0; i < 2; ++i) all += resident[i] = demands[i] * (1 + queues[i]);
                rate = n / all;
                for (int i = 0; i < 2; ++i) queues[i] = rate * resident[i];
            }
            return 1 / rate;
        };
        const AttentionWork w = attention_work(hw, p, c);
        const double whole_block = of_block(false), masked_block = of_block(true);
        const double once = (hw.few_loads_latency() + hw.l2_latency) / ctas;  // of a tile: its first loads and its last stores
        const double all = w.blocks * whole_block + w.masked_blocks * (masked_block - whole_block) + w.tiles * once;
        // CTAs come in the order of their numbers, long ones and short ones: at the end half of the longest runs alone.
        const double cycles = all / hw.sms + w.longest * whole_block * ctas / 2;
        const double seconds = std::max(cycles / hw.clock_hz, w.dram_bytes / hw.dram_bandwidth);
        if (std::isnan(seconds))
            return {problem, {}, fmt::format("{} is unknown", unknown.empty() ? "a number of the machine" : unknown.front())};
        return {problem, seconds, ""};
    }

    static Answer seconds_of(const Machine& machine, const Problem& problem, const KernelName& name, const LaunchedKernel& launch,
                             const HeadSizes& s) {
        const auto tile = known_tile(name, launch, s);
        if (!tile) return {problem, {}, "its name does not say the tile"};
        const auto& p = problem.own.as<AttentionProblem>();
        std::vector<std::string> unknown;
        AttentionHardware hw = attention_hardware(machine, p.type, unknown);
        if (tile->instructions != hw.family) return of_warps(machine, problem, hw, *tile, launch);
        hw.launch_seconds = 0;
        const AttentionTime time = attention_time(hw, p, tile->config);
        if (std::isnan(time.seconds))
            return {problem, {}, fmt::format("{} is unknown", unknown.empty() ? "a number of the machine" : unknown.front())};
        return {problem, time.seconds, ""};
    }
};

}  // namespace

const KnownKernels& known_attention_kernels() {
    static const KnownAttentionKernels known;
    return known;
}

}  // namespace rooftile
