#include "rooftile/gemm/sm90_derivation.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/gemm/derivation_choices.hpp"
#include "rooftile/gemm/formulas.hpp"
#include "rooftile/gemm/groups_derivation.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

// What the same tile, ring and order would take with K in so many parts and pieces; NaN where they do not fit.
double seconds_in_parts(const GemmContext& context, const Kept& kept, int parts, int pieces) {
    GemmCandidate candidate = kept.candidate;
    candidate.split_k = parts;
    candidate.grid_split_k = pieces;
    if (Sm90GemmFamily(context.hw, context.problem).examine(context.hw, context.problem, candidate)
        || kept.candidate.stages < candidate.stages_min)
        return std::nan("");
    GemmCandidate tile = kept.candidate;
    tile.split_k = parts;
    tile.grid_split_k = pieces;
    const double dram = ScheduleTraffic(context.hw, tile, context.problem).dram(tile.order, tile.group);
    return gemm_time_under_power(context.hw, tile, context.problem, tile.step,
                                 waves(context.hw, tile, context.problem), dram, tile.stages)
        .seconds;
}

// The most promising other way to part K with this tile, and what the best plan takes that parts K so, in words.
std::string other_parts(const GemmContext& context, const Kept& kept) {
    const int parts = kept.candidate.split_k;
    int best = 0;
    double seconds = 0;
    for (int other : searched_splits) {
        if (other == parts || (parts > 1 && other != 1)) continue;
        const double takes = seconds_in_parts(context, kept, other, kept.candidate.grid_split_k);
        if (!std::isfinite(takes) || (best != 0 && takes >= seconds)) continue;
        best = other;
        seconds = takes;
    }
    const std::string tiles =
        std::isnan(kept.waves.slots)
            ? fmt::format("{} tiles for an unknown number of CTAs at once", kept.waves.tiles)
            : fmt::format("{} tiles for {:.0f} CTAs at once", kept.waves.tiles, kept.waves.slots);
    if (best == 0) return tiles + "; no other split fits this tile, or a number is unknown";
    const double takes = seconds_with(context, [&](GemmRequest& r) { r.split_k = best; });
    if (std::isnan(takes))
        return fmt::format("{}; no plan has split_k = {}, or its time is unknown", tiles, best);
    return fmt::format("{}; the best plan with split_k = {} takes {:.4g} us", tiles, best, takes * 1e6);
}

// Where the search had a choice, or the request made it.
void pieces(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& t = kept.candidate;
    const bool idle = 2 * double(kept.waves.tiles) * t.split_k <= kept.waves.slots;
    if (t.grid_split_k == 1 && !idle && !context.request.grid_split_k) return;
    const double whole = t.grid_split_k == 1
                             ? unknown_number
                             : seconds_with(context, [](GemmRequest& r) { r.grid_split_k = 1; });
    std::vector<Input> inputs = split_inputs(context, kept);
    inputs.push_back(given("split_k", t.split_k, "", "an earlier step"));
    std::string limit = t.grid_split_k == 1 ? "1: what an exchange through L2 costs is not saved"
                        : std::isnan(whole)
                            ? "no plan has K in one piece, or its time is unknown"
                            : fmt::format("the best plan with grid_split_k = 1 takes {:.4g} us", whole * 1e6);
    steps.add_chosen(context.request.grid_split_k.has_value(), gemm_formula::grid_split_k,
              std::move(inputs), t.grid_split_k, std::move(limit));
}

void split(const GemmContext& context, const Kept& kept, Derivation& steps) {
    steps.add_chosen(context.request.split_k.has_value(), gemm_formula::split_k,
        split_inputs(context, kept), kept.candidate.split_k, other_parts(context, kept));
    pieces(context, kept, steps);
    if (kept.candidate.split_k == 1) return;
    const GemmCandidate& f = kept.candidate;
    steps.add(gemm_formula::exchange_bytes,
              {given("tile_m", kept.candidate.tile_m, "", "this plan"),
               given("tile_n", kept.candidate.tile_n, "", "this plan"),
               given("stage_bytes", f.stage_bytes, "B", "an earlier step")},
              4.0 * kept.candidate.tile_m * kept.candidate.tile_n,
              fmt::format("at least {} stages hold them; {} are taken", f.stages_min, kept.candidate.stages));
}

void swap(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& c = kept.candidate;
    const std::int64_t rows = c.tiles.rows, more = rows * c.tile_m - context.problem.m;
    const double other = seconds_with(context, [&](GemmRequest& r) { r.swap_ab = !c.swap_ab; });
    std::string limit =
        fmt::format("{} row{} of tiles, {} rows more than C has", rows, rows == 1 ? "" : "s", more);
    limit += std::isnan(other) ? "; the other way no plan fits what is asked for, or its time is unknown"
                               : fmt::format("; the other way the best plan takes {:.4g} us", other * 1e6);
    steps.add_chosen(context.request.swap_ab.has_value(), gemm_formula::swap_ab,
              {given("m", double(context.problem.m), "rows", "problem"),
               given("tile_m", c.tile_m, "rows", "this plan")},
              c.swap_ab, std::move(limit));
}

void overlapped_epilogue(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& f = kept.candidate;
    const Sm90GemmConfig config = kernel_config(context.problem, f);
    const char* bar = bars_overlapped_epilogue(config);
    const int need = config.overlapping_registers();
    const bool fits = need <= f.consumer_registers;
    std::string limit =
        bar ? std::string(bar)
            : fmt::format("{} + {} + {} {} {}", config.accumulator_registers(), config.kept_registers(),
                          config.working_registers(), fits ? "<=" : ">", f.consumer_registers);
    if (!bar && fits)
        limit += f.overlapped_epilogue ? ": the matrix units do not wait for C"
                                       : ": it would fit, and is no faster";
    steps.add_chosen(context.request.overlapped_epilogue.has_value(), gemm_formula::overlapped_epilogue,
        {given("needed", need, "registers", "accumulators + tile in C's type + the rest"),
         given("setmaxnreg_consumer", f.consumer_registers, "registers", "an earlier step")},
        f.overlapped_epilogue, std::move(limit));
}

// How wide an epilogue tile of C is; wide ones are fewer to wait for.
void epilogue_tiles(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmCandidate& f = kept.candidate;
    if (f.epilogue_tile_n == 0) return;
    const Sm90GemmConfig config = kernel_config(context.problem, f);
    if (kept.candidate.swap_ab) {
        steps.add(config.pairs ? gemm_formula::epilogue_tile_n_swapped_pairs : gemm_formula::epilogue_tile_n_swapped,
                  {given("tile_m", kept.candidate.tile_m, "rows", "this plan"),
                   given("split_k", kept.candidate.split_k, "", "this plan")},
                  f.epilogue_tile_n,
                  fmt::format("{} rows a store, {} stores a warpgroup", config.epilogue_rows(),
                              config.epilogue_tiles()));
        return;
    }
    const int share = config.stored_n(), narrow = config.swizzled_columns(share), wide = config.odd_columns(share);
    std::string limit = fmt::format("{}: {} columns of a swizzle span", f.epilogue_tile_n, narrow);
    if (wide > narrow)
        limit += fmt::format(", {} of an odd number of sectors{}", wide,
                             f.epilogue_tile_n == wide         ? ""
                             : f.overlapped_epilogue           ? ": nobody waits for an overlapped epilogue"
                             : kept.candidate.split_k > 1 ? ": not of sums of parts"
                             : context.request.epilogue_tile_n ? ""
                             : config.result_bytes() > 2       ? ": not of fp32"
                                                               : ": would cost a stage, or is no faster");
    steps.add_chosen(context.request.epilogue_tile_n.has_value(), gemm_formula::epilogue_tile_n,
              {given("share_n", share, "columns", config.pairs ? "tile_n / 2 / split_k" : "tile_n / split_k"),
               given("stages", kept.candidate.stages, "", "an earlier step")},
              f.epilogue_tile_n, std::move(limit));
}

// Whether an epilogue's operand comes while a CTA multiplies, or is loaded when the sums are there.
void staged_operand(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmProblem& p = context.problem;
    if (!p.epilogue) return;
    const auto of_each = [](const EpilogueOperand& o) { return o.by_row && o.by_column; };
    const auto operand = std::ranges::find_if(p.epilogue->operands, of_each);
    if (operand == p.epilogue->operands.end()) return;
    const Sm90GemmConfig config = kernel_config(p, kept.candidate);
    steps.add(gemm_formula::operand_staged,
              {given("split_k", kept.candidate.split_k, "", "this plan"),
               given("n", double(p.n), "columns", "problem"),
               given("element", bytes_of(operand->element), "B", operand->name)},
              config.operand_staged,
              config.operand_staged
                  ? fmt::format("{} comes by TMA into the epilogue tiles beside a tile's products, and the result takes its place",
                                p.epilogue->operands[*p.epilogue->staged_operand()].name)
                  : std::string("it is asked of L2 beside the first products, and loaded when the sums are there"));
}

// How the columns of B that belong together meet in one thread.
void pairs(const GemmContext& context, const Kept& kept, Derivation& steps) {
    const GemmProblem& p = context.problem;
    if (p.pairs() == Pairs::none) return;
    const bool interleaved = p.pairs() == Pairs::interleaved;
    steps.add(gemm_formula::pairs,
              {given("n", double(p.n), "columns", "problem"), given("tile_n", kept.candidate.tile_n, "columns of B", "this plan")},
              interleaved ? 1 : double(p.n / 2),
              fmt::format("{:.4g} B are stored, a product alone would store {:.4g} B, and a kernel after it would read these again", p.c_bytes(), 2 * p.c_bytes()));
}

void caching(const GemmContext& context, const Kept& kept, const GemmConfig& config, Derivation& steps) {
    const double bytes = context.problem.compulsory_bytes().value;
    const auto [rows, columns, products] = cluster_grid(context.problem, kept.candidate);
    const auto use = [](bool first, std::int64_t reads) {
        return fmt::format("{}: read {}", first ? "evict_first" : "normal",
                           reads == 1 ? std::string("once") : fmt::format("{} times", reads));
    };
    const double l2 = context.hw.l2_bytes;
    const std::string room = std::isnan(l2) ? "may or may not fit L2"
                                            : fmt::format("{} the {:.4g} B that one partition of L2 holds",
                                                          bytes > l2 ? "exceed" : "fit", l2);
    steps.add_chosen(context.request.evict_first.has_value(), gemm_formula::evict_first,
        {given("A + B + C", bytes, "B", "problem"), steps.fact("l2.size"), steps.fact("l2.partitions"),
         given("reads of A", double(columns), "", "columns of cluster tiles"),
         given("reads of B", double(rows), "", "rows of cluster tiles")},
        double(config.evict_first.a + config.evict_first.b + config.evict_first.c),
        fmt::format("A {}; B {}; C {}, and all three {}", use(config.evict_first.a, columns),
                    use(config.evict_first.b, rows),
                    config.evict_first.c ? "evict_first: written once"
                    : stores_by_tma(context.problem)            ? "normal: written once"
                                                                : "normal: stores without TMA take no hint",
                    room));
}

void launching(const GemmContext& context, const GemmConfig& config, Derivation& steps) {
    std::vector<Input> inputs{steps.fact("launch.gap_stream")};
    if (!std::isnan(context.hw.programmatic_saving)) inputs.push_back(steps.fact("launch.programmatic_saving"));
    steps.add_chosen(context.request.programmatic_launch.has_value(), gemm_formula::programmatic_launch,
        std::move(inputs), config.programmatic_launch,
        config.programmatic_launch
            ? "barriers are made meanwhile; nothing is read or written before the other has ended"
            : "the kernel starts when the one before it has ended");
    explain_early_weights(context, config, config.stages, steps);
}

// Whether an operand is copied first, and what that costs.
void packing(const GemmContext& context, const GemmConfig& config, Derivation& steps) {
    const GemmProblem& p = context.problem;
    struct Operand {
        const Formula *rule, *for_tma, *of_bytes;
        const char *leading_name, *offset_name, *stride_name;
        Major major;
        std::int64_t leading, offset, stride;
        bool packed;
        const std::optional<bool>& asked;
        PackedCopy copy;
        PackedOperands alone;
    };
    if (p.is_unpacked()) return explain_in_front(context, steps);
    for (const Operand& o :
         {Operand{&gemm_formula::pack_a, &gemm_formula::pack_a_for_tma, &gemm_formula::pack_a_of_bytes, "lda", "a_offset", "stride_a", p.a_major, p.lda, p.a_offset, p.a_stride, config.pack_a, context.request.pack_a, packed_copy(p.a_type, p.a_major, p.m, p.k, p.a_matrices()), {.a = true}},
          Operand{&gemm_formula::pack_b, &gemm_formula::pack_b_for_tma, &gemm_formula::pack_b_of_bytes, "ldb", "b_offset", "stride_b", p.b_major, p.ldb, p.b_offset, p.b_stride, config.pack_b, context.request.pack_b, packed_copy(p.b_type, p.b_major, p.n, p.k, p.b_matrices()),
                  {.b = true}}}) {
        std::vector<Input> inputs{given(o.leading_name, double(o.leading), "elements", "problem")};
        if (o.offset != 0) inputs.push_back(given(o.offset_name, double(o.offset), "elements", "problem"));
        if (o.stride != 0) inputs.push_back(given(o.stride_name, double(o.stride), "elements", "problem"));
        if (o.packed) {
            inputs.push_back(given("read and written", packing_traffic(p, o.alone), "B", "the operand, twice"));
            inputs.push_back(given("workspace", double(o.copy.bytes()), "B",
                                   fmt::format("{} lines of {} elements, 128 B aligned", o.copy.matrices * o.copy.lines, o.copy.pitch)));
            if (context.machine->find("dram.sustained_copy")) inputs.push_back(steps.fact("dram.sustained_copy"));
            inputs.push_back(steps.fact("launch.gap_stream"));
        }
        const bool of_k = !is_fp8(p.a_type) || o.major == Major::k, taken = of_k && taken_by_tma(o.leading, o.offset, o.stride, p.a_type);
        steps.add_chosen(o.asked.has_value(), taken ? *o.rule : !of_k ? *o.of_bytes : *o.for_tma, std::move(inputs), o.packed,
                  o.packed ? fmt::format("{}: {} for all that is packed", taken ? "TMA would take it as it is" : "TMA cannot take it as it is",
                                         time_or_unknown(known(context.hw.packing_seconds * 1e6)))
                           : "TMA takes it as it is, and reads zeros beyond its ends");
    }
}

// In fixed turns CTAs that do the same stay in step, and L2 answers neighbours' loads at once; what unlike tiles or DRAM push apart stays
// apart. From a counter tiles begin in their order whatever those before took, but not at once (docs/facts.md 320 to 322).
constexpr double least_waves = 8;     // in fewer the tiles that end last decide
constexpr double unlike_counts = 2;   // rows of the longest group over the mean of those that have any

bool of_unlike_counts(const GemmProblem& p) {
    return p.groups && double(p.groups->longest()) * double(p.groups->with_rows()) > unlike_counts * double(p.groups->total());
}

/// From the question which tile follows to L2's answer.
double answer_seconds(const GemmContext& context) { return context.hw.l2_loaded_latency / context.hw.clock_hz; }
double seconds_a_wave(const Kept& kept) { return kept.time.seconds / kept.waves.waves; }

// Who says which tile follows.
void scheduler(const GemmContext& context, const Kept& kept, const GemmConfig& config, Derivation& steps) {
    const GemmProblem& p = context.problem;
    if (p.batch == 1 && !p.groups) return;
    std::vector<Input> inputs{given("waves", kept.waves.waves, "", "an earlier step"), given("wave", seconds_a_wave(kept) * 1e6, "us", "predicted time / waves")};
    if (context.machine->find("tma.latency_loaded_l2")) inputs.push_back(steps.fact("tma.latency_loaded_l2"));
    if (p.groups)
        inputs.push_back(given("the longest group", double(p.groups->longest()) * double(p.groups->with_rows()) / double(p.groups->total()),
                               "", "rows over the mean of those that have any"));
    steps.add_chosen(context.request.dynamic_scheduler.has_value(), gemm_formula::dynamic_scheduler,
              std::move(inputs), config.dynamic_scheduler,
              config.dynamic_scheduler ? fmt::format("the next tile comes from a counter in the workspace, asked for {} k-steps before the last one's end", kept.candidate.stages)
                                       : std::string("turns are fixed"));
}

}  // namespace

bool schedules_dynamically(const GemmContext& context, const Kept& kept) {
    const GemmProblem& p = context.problem;
    if (p.batch == 1 && !p.groups) return false;
    return (kept.time.bound == Bound::dram || of_unlike_counts(p)) && kept.waves.waves >= least_waves && seconds_a_wave(kept) >= answer_seconds(context);
}

void write_sm90_derivation(const GemmContext& context, const Kept& kept, const GemmConfig& config,
                           Derivation& steps) {
    swap(context, kept, steps);
    split(context, kept, steps);
    overlapped_epilogue(context, kept, steps);
    epilogue_tiles(context, kept, steps);
    staged_operand(context, kept, steps);
    pairs(context, kept, steps);
    caching(context, kept, config, steps);
    launching(context, config, steps);
    packing(context, config, steps);
    explain_groups(context, kept, steps);
    scheduler(context, kept, config, steps);
}

}  // namespace rooftile
