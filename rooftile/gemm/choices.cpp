#include "rooftile/gemm/choices.hpp"

#include <fmt/core.h>

#include "rooftile/gemm/sm90_family.hpp"

namespace rooftile {
namespace {

Input given(std::string name, double value, std::string unit, std::string source) {
    return Derivation::given(std::move(name), value, std::move(unit), std::move(source));
}

// Score in a reader's unit: microseconds, or cycles per product where the time is unknown.
std::string score_text(const Kept& kept) {
    if (!std::isnan(kept.time.seconds)) return fmt::format("{:.4g} us", kept.time.seconds * 1e6);
    return fmt::format(
        "{:.4g} cycles a product",
        kept.time.step
            / (double(kept.candidate.tile.tile_m) * kept.candidate.tile.tile_n * kept.candidate.tile.tile_k));
}

// How a parameter came about: `rule`, unless the request left nothing to choose.
template <class T>
std::string chosen(const std::optional<T>& fixed, std::string_view rule) {
    return fixed ? "fixed by the request" : std::string(rule);
}

// The best plan kept whose tile is another, for comparison.
const Kept* other_tile(const GemmContext& context, const Kept& kept) {
    for (const Kept& rival : context.kept)
        if (rival.candidate.tile.tile_m != kept.candidate.tile.tile_m
            || rival.candidate.tile.tile_n != kept.candidate.tile.tile_n)
            return &rival;
    return nullptr;
}

void tile(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& c = kept.candidate;
    std::string limit = fmt::format("predicted {}", score_text(kept));
    if (const Kept* rival = other_tile(context, kept))
        limit += fmt::format("; {}x{} would take {}", rival->candidate.tile.tile_m,
                             rival->candidate.tile.tile_n, score_text(*rival));
    const std::string_view rule =
        "the tile_m x tile_n of least predicted time among those that pass every wall   [M8]";
    const std::vector<Input> inputs{given("m", double(context.problem.m), "", "problem"),
                                    given("n", double(context.problem.n), "", "problem"),
                                    given("wave efficiency", kept.waves.efficiency, "", "waves, above")};
    steps.add("tile_m", chosen(context.request.tile_m, rule), inputs, c.tile.tile_m, "rows", limit);
    steps.add("tile_n", chosen(context.request.tile_n, rule), inputs, c.tile.tile_n, "columns",
              std::move(limit));
    const bool wgmma = context.kernel == GemmKernel::sm90_gemm;
    steps.add(
        "tile_k",
        wgmma ? "one 128-byte swizzle span / b   [M13, M17]" : "16, 32 or 64: whole k16 instructions   [M8]",
        {given("b", bytes_of(context.problem.a_type), "B", std::string(name_of(context.problem.a_type)))},
        c.tile.tile_k, "elements",
        wgmma ? "a row of a tile is what TMA swizzles and wgmma reads at once" : "the rank above decides");
}

void warpgroups(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& c = kept.candidate;
    const Footprint& f = kept.footprint;
    const bool pingpong = c.schedule == Schedule::pingpong;
    steps.add(
        "consumer_warpgroups",
        chosen(context.request.consumer_warpgroups, "as many as hold the accumulators in registers   [M12]"),
        {given("registers_per_thread", f.registers, "registers", "an earlier step"),
         given("registers a thread can have", f.registers_limit, "registers", "an earlier step")},
        c.warpgroups, "warpgroups", fmt::format("{} threads a CTA", f.threads));
    steps.add(
        "schedule",
        chosen(context.request.schedule,
               "consumer warpgroups on one tile: all of them (cooperative), or one each in turns (pingpong)"),
        {given("turn and epilogue that show",
               kept.time.tile_cycles - double(k_steps(kept.candidate.tile, context.problem)) * kept.time.step
                   - most_known(kept.time.exchange, 0),
               "cycles", "tile_cycles, below")},
        pingpong ? 1 : c.warpgroups, "warpgroups",
        pingpong ? "pingpong: the epilogue runs beside the other warpgroup's products"
                 : "cooperative: the larger tile asks less of L2, and the epilogue shows");
    if (f.consumer_registers > 0) {
        const std::vector<Input> inputs{steps.fact("sm.registers"),
                                        given("threads", f.threads, "", "an earlier step"),
                                        given("ctas_per_sm", c.tile.ctas_per_sm, "", "this plan")};
        steps.add("setmaxnreg_consumer",
                  "floor((pool - producer) / consumers, to 8); pool = launch registers x warpgroups", inputs,
                  f.consumer_registers, "registers", fmt::format("{} are needed", f.registers));
        steps.add("setmaxnreg_producer", "what is left of the pool, 24 at least   [PTX ISA, setmaxnreg]",
                  inputs, f.producer_registers, "registers", "one thread that issues copies needs few");
    }
    steps.add("ctas_per_sm", chosen(context.request.ctas_per_sm, "1 or 2, by predicted time   [M3, M6]"),
              {given("shared memory of a CTA", f.shared_bytes(kept.stages), "B", "an earlier step"),
               steps.fact("shared.per_sm")},
              c.tile.ctas_per_sm, "CTAs",
              c.tile.ctas_per_sm > 1 ? "one stores while another multiplies, as fast as its own ring feeds it"
                                     : "the ring takes the SM's shared memory");
}

void sharing(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& c = kept.candidate;
    // As the step l2_bytes_per_cycle has it.
    const auto reaches_l2 = [&](const GemmTile& tile) {
        const Neighbours n = neighbours(context.problem, tile, kept.order.order, kept.order.group);
        const auto [a, b] = l2_rows(context.hw, tile, context.problem, n);
        return (a + b) * tile.tile_k * bytes_of(context.problem.a_type) / kept.footprint.step.tensor;
    };
    GemmTile single = c.tile;
    single.cluster_m = single.cluster_n = 1;
    const double alone = reaches_l2(single), shared = reaches_l2(c.tile);
    const bool clustered = c.tile.cluster_m * c.tile.cluster_n > 1;
    std::string limit = "not compared: a rate is unknown";
    if (!std::isnan(alone) && !std::isnan(context.hw.l2_share))
        limit = clustered ? fmt::format(
                    "{:.3g} B/clk of an SM reach L2 instead of {:.3g} without a cluster, of "
                    "{:.3g}",
                    shared, alone, context.hw.l2_share)
                          : fmt::format("without a cluster {:.3g} B/clk of an SM reach L2, of {:.3g}", alone,
                                        context.hw.l2_share);
    const std::vector<Input> inputs{given("l2_bytes_per_cycle", shared, "B/clk", "an earlier step"),
                                    steps.fact("l2.bandwidth")};
    steps.add("cluster_m",
              chosen(context.request.cluster_m,
                     "CTAs of a column of tiles that share B by multicast, by predicted time   [M17, M39]"),
              inputs, c.tile.cluster_m, "CTAs", limit);
    steps.add("cluster_n",
              chosen(context.request.cluster_n,
                     "CTAs of a row of tiles that share A by multicast, by predicted time   [M17, M39]"),
              inputs, c.tile.cluster_n, "CTAs", std::move(limit));
    steps.add(
        "order",
        chosen(context.request.order, "the walk over C with the least DRAM traffic of those tried   [M32]"),
        {steps.fact("l2.size"), steps.fact("l2.partitions"),
         given("slots", kept.waves.slots, "", "waves, above")},
        kept.dram, "B", std::string(name_of(kept.order.order)));
    steps.add("group",
              chosen(context.request.group,
                     "rows of cluster tiles walked together: least DRAM traffic of the orders tried   [M32]"),
              {given("dram_bytes", kept.dram, "B", "an earlier step"), steps.fact("l2.size"),
               steps.fact("l2.partitions")},
              kept.order.group, "rows", fmt::format("order {}", name_of(kept.order.order)));
}

// What the same tile, ring and order would take with K in `parts`; NaN where they do not fit.
double seconds_in_parts(const GemmContext& context, const Kept& kept, int parts) {
    GemmCandidate candidate = kept.candidate;
    candidate.tile.split_k = parts;
    Footprint f;
    if (Sm90GemmFamily(context.hw, context.problem).examine(context.hw, context.problem, candidate, f)
        || kept.stages < f.stages_least)
        return std::nan("");
    GemmTile tile = kept.candidate.tile;
    tile.split_k = parts;
    const double dram =
        WalkTraffic(context.hw, tile, context.problem).dram(kept.order.order, kept.order.group);
    return gemm_time_under_power(context.hw, tile, context.problem, kept.footprint.step,
                                 waves(context.hw, tile, context.problem), dram, kept.stages)
        .seconds;
}

// The best other way to part K with this tile, in words.
std::string other_parts(const GemmContext& context, const Kept& kept) {
    const int parts = kept.candidate.tile.split_k;
    int best = 0;
    double seconds = 0;
    for (int other : searched_splits) {
        if (other == parts || (parts > 1 && other != 1)) continue;
        const double takes = seconds_in_parts(context, kept, other);
        if (!std::isfinite(takes) || (best != 0 && takes >= seconds)) continue;
        best = other;
        seconds = takes;
    }
    const std::string tiles =
        std::isnan(kept.waves.slots)
            ? fmt::format("{} tiles for an unknown number of CTAs at once", kept.waves.tiles)
            : fmt::format("{} tiles for {:.0f} CTAs at once", kept.waves.tiles, kept.waves.slots);
    if (best == 0) return tiles + "; no other split fits this tile, or a number is unknown";
    return fmt::format("{}; {} would take {:.4g} us", tiles,
                       best == 1 ? std::string("K in one piece") : fmt::format("{} parts", best),
                       seconds * 1e6);
}

void split(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const double k_blocks = double(ceil_div(context.problem.k, kept.candidate.tile.tile_k));
    const std::vector<Input> inputs{given("tiles", double(kept.waves.tiles), "", "waves, above"),
                                    given("slots", kept.waves.slots, "", "waves, above"),
                                    given("k-steps", k_blocks, "", "ceil(k / tile_k)")};
    if (context.kernel != GemmKernel::sm90_gemm)
        return steps.add("split_k", "1: parts of K add up within a cluster   [M29, M39]", inputs, 1, "parts",
                         "this kernel has no clusters");
    steps.add(
        "split_k",
        chosen(context.request.split_k,
               "CTAs of a cluster that sum parts of K of one tile: the least predicted time of 1, 2, 3, 4, 6 "
               "and 8   [M29, M39]"),
        inputs, kept.candidate.tile.split_k, "parts", other_parts(context, kept));
    if (kept.candidate.tile.split_k == 1) return;
    const Footprint& f = kept.footprint;
    steps.add("exchange_bytes", "tile_m * tile_n * 4 B of fp32 sums, left in the ring",
              {given("tile_m", kept.candidate.tile.tile_m, "", "this plan"),
               given("tile_n", kept.candidate.tile.tile_n, "", "this plan"),
               given("stage_bytes", f.stage_bytes, "B", "an earlier step")},
              4.0 * kept.candidate.tile.tile_m * kept.candidate.tile.tile_n, "B",
              fmt::format("at least {} stages hold them; {} are taken", f.stages_least, kept.stages));
}

void deferred_store(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const Footprint& f = kept.footprint;
    const Sm90GemmConfig config = kernel_config(context.problem, kept.candidate, kept.stages,
                                                RegisterSplit{0, f.producer_registers, f.consumer_registers});
    const char* bar = bars_deferred_store(config);
    const int need = config.deferring_registers();
    const bool fits = need <= f.consumer_registers;
    std::string limit =
        bar ? std::string(bar)
            : fmt::format("{} + {} + {} {} {}", config.accumulator_registers(), config.kept_registers(),
                          config.working_registers(), fits ? "<=" : ">", f.consumer_registers);
    if (!bar && fits) limit += f.deferred_store ? ": the matrix units do not wait for C" : ": it would fit";
    steps.add(
        "deferred_store",
        chosen(context.request.deferred_store,
               "1 where the sums, the last tile in C's type and the working registers fit a thread: C leaves "
               "between the next tile's first products   [M12]"),
        {given("needed", need, "registers", "accumulators + tile in C's type + the rest"),
         given("setmaxnreg_consumer", f.consumer_registers, "registers", "an earlier step")},
        f.deferred_store, "", std::move(limit));
}

// How wide a slab of C is; wide ones are fewer to wait for.
void slabs(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const Footprint& f = kept.footprint;
    if (f.store_n == 0) return;
    const int share = kept.candidate.tile.tile_n / kept.candidate.tile.split_k,
              narrow = Sm90GemmConfig::swizzled_columns(share), wide = Sm90GemmConfig::odd_columns(share);
    std::string limit = fmt::format("{}: {} columns of a swizzle span", f.store_n, narrow);
    if (wide > narrow)
        limit += fmt::format(", {} of an odd number of sectors{}", wide,
                             f.store_n == wide                    ? ""
                             : f.deferred_store                   ? ": nobody waits for a deferred store"
                             : share < kept.candidate.tile.tile_n ? ": not of sums of parts"
                             : context.request.store_n            ? ""
                                                                  : ": would cost a stage");
    steps.add("store_n",
              chosen(context.request.store_n,
                     "columns of C a TMA store takes: the widest of whole sectors that costs no stage of the "
                     "ring   [M13]"),
              {given("share_n", share, "columns", "tile_n / split_k"),
               given("stages", kept.stages, "", "an earlier step")},
              f.store_n, "columns", std::move(limit));
}

void caching(const GemmContext& context, const Kept& kept, const GemmConfig& config, Derivation& steps) {
    const double bytes = context.problem.compulsory_bytes().value;
    const auto [rows, columns] = cluster_grid(context.problem, kept.candidate.tile);
    const auto use = [](CachePolicy policy, std::int64_t reads) {
        return fmt::format("{}: read {}", policy == CachePolicy::evict_first ? "evict_first" : "normal",
                           reads == 1 ? std::string("once") : fmt::format("{} times", reads));
    };
    const double l2 = context.hw.l2_bytes;
    const std::string room = std::isnan(l2) ? "may or may not fit L2"
                                            : fmt::format("{} the {:.4g} B that one partition of L2 holds",
                                                          bytes > l2 ? "exceed" : "fit", l2);
    steps.add(
        "evict_first",
        chosen(context.request.evict_first,
               "none: streams that are read once were slower with it, C was no faster   [docs/facts.md 23]"),
        {given("A + B + C", bytes, "B", "problem"), steps.fact("l2.size"), steps.fact("l2.partitions"),
         given("reads of A", double(columns), "", "columns of cluster tiles"),
         given("reads of B", double(rows), "", "rows of cluster tiles")},
        double(evict_first_letters(config).size()), "operands",
        fmt::format("A {}; B {}; C {}, and all three {}", use(config.a_policy, columns),
                    use(config.b_policy, rows),
                    config.c_policy == CachePolicy::evict_first ? "evict_first: written once"
                    : stores_by_tma(context.problem)            ? "normal: written once"
                                                                : "normal: stores without TMA take no hint",
                    room));
}

void launching(const GemmContext& context, const GemmConfig& config, Derivation& steps) {
    steps.add(
        "programmatic_launch",
        chosen(
            context.request.programmatic_launch,
            "1: the start of the kernel overlaps the end of the one before it   [PTX ISA, griddepcontrol]"),
        {steps.fact("launch.gap_stream")}, config.programmatic_launch, "",
        config.programmatic_launch
            ? "barriers are made meanwhile; nothing is read or written before the other has ended"
            : "the kernel starts when the one before it has ended");
}

}  // namespace

void set_cache_policies(const GemmContext& context, GemmConfig& config) {
    if (context.kernel != GemmKernel::sm90_gemm) return;
    const EvictFirst operands = context.request.evict_first.value_or(EvictFirst{});
    if (operands.a) config.a_policy = CachePolicy::evict_first;
    if (operands.b) config.b_policy = CachePolicy::evict_first;
    if (operands.c && stores_by_tma(context.problem)) config.c_policy = CachePolicy::evict_first;
}

void write_choices(const GemmContext& context, const Kept& kept, const GemmConfig& config,
                   Derivation& steps) {
    tile(context, kept, steps);
    warpgroups(context, kept, steps);
    sharing(context, kept, steps);
    split(context, kept, steps);
    if (context.kernel != GemmKernel::sm90_gemm) return;
    deferred_store(context, kept, steps);
    slabs(context, kept, steps);
    caching(context, kept, config, steps);
    launching(context, config, steps);
}

}  // namespace rooftile
