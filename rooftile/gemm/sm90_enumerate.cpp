// How the candidates of the sm90_gemm family are enumerated and checked against its constraints.
#include "rooftile/gemm/rules.hpp"
#include "rooftile/gemm/sm90_constraints.hpp"

namespace rooftile {
namespace sm90 {
namespace {

using Config = Sm90GemmConfig;

constexpr int widest_box = 256;  // elements of a TMA box's side, cuTensorMapEncodeTiled

int sharing_warpgroups(const GemmCandidate& c) { return c.schedule == Schedule::pingpong ? 1 : c.consumer_warpgroups; }

}  // namespace

Constraint promotion_constraint(const GemmCandidate& c, const GemmProblem& p) {
    if (!p.promoted()) return Constraint::none();
    if (c.schedule == Schedule::pingpong)
        return Constraint::at(Reason::instruction, 1, 0,
                              "sums are promoted beside another warpgroup's products, for which it would wait in pingpong; take cooperative");
    if (!p.block_scales()) return Constraint::none();
    if (c.swap_ab) return Constraint::at(Reason::instruction, 1, 0, "with scales of blocks A and B are not swapped: every column would have a scale of its own");
    constexpr int more_rows = Config::scales_a_box;  // of A's scales, in front of a group's
    if (p.groups && c.tile_m + more_rows > widest_box)
        return Constraint::at(Reason::instruction, widest_box - more_rows, c.tile_m,
                              "tile_m = {available} must be at most {needed} with scales of blocks of groups: a box of scales begins up to three rows before a group");
    constexpr int block = Sm90GemmConfig::scale_block;  // of other widths none was faster (docs/facts.md 252)
    return c.tile_n == block ? Constraint::none()
                             : Constraint::at(Reason::instruction, block, c.tile_n,
                                              "tile_n = {available} must be {needed}: a scale of B is of so many columns");
}

Constraint instruction_constraint(const GemmCandidate& c, const GemmProblem& problem) {
    const Type type = problem.a_type;
    if (c.swap_ab && is_fp8(problem.c_type))
        return Constraint::at(Reason::instruction, 1, 0,
                              "with a result of 8 bits A and B are not swapped: a tile is turned by matrices of 16 bits; leave swap_ab off");
    if (const Constraint constraint = promotion_constraint(c, problem)) return constraint;
    if (c.swap_ab && problem.pairs() != Pairs::none && !stores_by_tma(problem))
        return Constraint::at(Reason::alignment, 1, 0, "pairs with A and B swapped leave by TMA alone, which takes rows of C at multiples of 16 B; leave swap_ab off");
    constexpr int whole_sectors = 4 * Config::pair_step;  // of B: 16 columns of the result, 32 B of 16 bits
    if (problem.pairs() != Pairs::none && c.tile_n % whole_sectors != 0)
        return Constraint::at(Reason::instruction, whole_sectors, c.tile_n,
                              "tile_n = {available} must be a multiple of {needed} with pairs of columns: half as many are stored, in whole sectors");
    const bool pingpong = c.schedule == Schedule::pingpong;
    const int rows = Config::wgmma_m * sharing_warpgroups(c);
    const int mma_m = c.swap_ab ? c.tile_n : c.tile_m;
    if (pingpong && c.grid_split_k > 1)
        return Constraint::at(Reason::instruction, c.grid_split_k, 1,
                              "grid_split_k = {needed}: with K in pieces a CTA has one tile, and in pingpong one "
                              "warpgroup would have none; take cooperative");
    if (pingpong && c.split_k > 1)
        return Constraint::at(
            Reason::instruction, c.split_k, 1,
            "split_k = {needed}: parts of K exchange their sums through the ring, which in pingpong "
            "the other warpgroup's tile is using; take cooperative");
    if (pingpong && c.consumer_warpgroups != 2)
        return Constraint::at(Reason::instruction, 2, c.consumer_warpgroups,
                              "pingpong takes {needed} consumer warpgroups, not {available}");
    if (mma_m % rows != 0)
        return Constraint::at(Reason::instruction, rows, mma_m,
                              c.swap_ab
                                  ? "with A and B swapped tile_n = {available} must be a multiple of "
                                    "{needed}: 64 columns a wgmma for each warpgroup on the tile"
                                  : "tile_m = {available} must be a multiple of {needed}: 64 rows a wgmma "
                                    "for each warpgroup on the tile");
    if (mma_m > widest_box)
        return Constraint::at(Reason::instruction, widest_box, mma_m,
                              c.swap_ab ? "tile_n = {available} must be at most {needed}"
                                        : "tile_m = {available} must be at most {needed}");
    if (c.swap_ab && (c.tile_m % 8 != 0 || c.tile_m > widest_box))
        return Constraint::at(
            Reason::instruction, 8, c.tile_m,
            "with A and B swapped tile_m = {available} must be a multiple of {needed} up to 256");
    if (!c.swap_ab && (c.tile_n % 16 != 0 || c.tile_n > widest_box))
        return Constraint::at(Reason::instruction, 16, c.tile_n,
                              "tile_n = {available} must be a multiple of {needed} up to 256");
    if (c.tile_k != k_span(type))
        return Constraint::at(Reason::instruction, k_span(type), c.tile_k,
                              "tile_k = {available} must be {needed}: one 128-byte swizzle span");
    return Constraint::none();
}

namespace {

// The ways in which C may leave that the request left open, beside the one that was seen: products and copies are the same.
void check_stores(ConstraintChecker& checker, GemmCandidate& c, const PartsOfK& parts, const Cluster& cluster,
                  GemmVisitor& visitor) {
    const GemmCandidate seen = c;
    const std::vector<int> columns = c.asked.tile_n == 0 ? checker.store_widths() : std::vector<int>{c.asked.tile_n};
    c.seldom = true;
    for (const bool apart : {false, true}) {
        if (apart && (!seen.overlapped_epilogue || seen.asked.overlapped)) break;
        if (apart) c.asked.overlapped = false;
        for (const int width : columns) {
            c.asked.tile_n = width;
            if (!checker.second_row_stops(parts.split_k, parts.grid_split_k)
                && !checker.third_row_stops(cluster))
                visitor.accept_otherwise(c);
        }
    }
    c = seen;
    checker.second_row_stops(parts.split_k, parts.grid_split_k);
}

// Takes all candidates of one tile, schedule and residency past the rows, each row once for all it speaks of.
void check_all(ConstraintChecker& checker, GemmCandidate& c, std::span<const PartsOfK> parts,
               std::span<const Cluster> clusters, const GemmRequest& request, GemmVisitor& visitor) {
    const bool rare = (!request.consumer_warpgroups && c.consumer_warpgroups > usual_warpgroups)
                      || (!request.ctas_per_sm && c.ctas_per_sm > usual_ctas_per_sm);
    for (const PartsOfK& p : parts) {
        c.seldom = rare || (!request.split_k && !usual_split(p.split_k));
        if (checker.second_row_stops(p.split_k, p.grid_split_k)) {
            visitor.reject(checker.constraint(), c, std::int64_t(clusters.size()));
            continue;
        }
        for (const Cluster& cluster : clusters) {
            if (checker.third_row_stops(cluster)) {
                visitor.reject(checker.constraint(), c, 1);
                continue;
            }
            visitor.accept(c);
            if (visitor.may_store_otherwise(c)) check_stores(checker, c, p, cluster, visitor);
        }
    }
}

}  // namespace

void Space::for_each_kind(GemmConfig& c, const std::function<void()>& visit) const {
    static constexpr int searched_warpgroups[] = {1, 2, 3, 4};
    for (const int count : choices(request_.consumer_warpgroups, searched_warpgroups))
        for (const Schedule schedule : {Schedule::cooperative, Schedule::pingpong}) {
            // Two warpgroups take turns; a request for other ones is told so.
            if (schedule != request_.schedule.value_or(count == 2 ? schedule : Schedule::cooperative)) continue;
            c.consumer_warpgroups = count, c.schedule = schedule;
            visit();
        }
}

}  // namespace sm90

Sm90GemmFamily::Sm90GemmFamily(const GemmHardware& hw, const GemmProblem&) {
    for (int warpgroups = 1; warpgroups <= max_warpgroups; ++warpgroups)
        for (int ctas = 1; ctas <= max_ctas; ++ctas)
            residencies_[warpgroups - 1][ctas - 1] = Residency(hw, warpgroups, ctas);
}

const Residency& Sm90GemmFamily::residency_of(const GemmHardware& hw, int warpgroups, int ctas_per_sm,
                                              Residency& other) const {
    if (warpgroups <= max_warpgroups && ctas_per_sm <= max_ctas)
        return residencies_[warpgroups - 1][ctas_per_sm - 1];
    return other = Residency(hw, warpgroups, ctas_per_sm);
}

Constraint Sm90GemmFamily::examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& c) const {
    using namespace sm90;
    if (const Constraint constraint = instruction_constraint(c, problem)) return constraint;
    Residency other;
    const Residency& residency = residency_of(hw, c.consumer_warpgroups, c.ctas_per_sm, other);
    const TileFigures figures(hw, problem, c);
    Cluster cluster{c.cluster_m, c.cluster_n};
    cluster.time(hw, problem, figures);
    c.warp_m = figures.tile.warp_m;
    c.warp_n = figures.tile.warp_n;
    c.store_depth = figures.tile.store_depth;
    ConstraintChecker checker(hw, problem, figures, residency, c);
    const bool stopped = checker.second_row_stops(c.split_k, c.grid_split_k) || checker.third_row_stops(cluster);
    return stopped ? checker.constraint() : Constraint::none();
}

void Sm90GemmFamily::enumerate(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                               GemmVisitor& visitor) const {
    using namespace sm90;
    Space space(hw, problem, request);
    GemmCandidate c;
    Residency other;
    std::vector<PartsOfK> parts;
    parts.reserve(searched_splits.size());

    const auto visit = [&](const TileFigures& figures, std::span<const PartsOfK> of_k) {
        if (of_k.empty()) return;
        c.split_k = of_k.front().split_k;
        c.grid_split_k = of_k.front().grid_split_k;
        c.cluster_m = space.clusters.front().m;
        c.cluster_n = space.clusters.front().n;
        if (const Constraint constraint = instruction_constraint(c, problem))
            return visitor.reject(constraint, c, std::int64_t(of_k.size() * space.clusters.size()));
        ConstraintChecker checker(hw, problem, figures, residency_of(hw, c.consumer_warpgroups, c.ctas_per_sm, other), c);
        check_all(checker, c, of_k, space.clusters, request, visitor);
    };
    for (const TileFigures& figures : tiles_of(hw, problem, request)) {
        if (figures.left_out) {
            visitor.leave_out(*figures.left_out,
                              space.candidates(figures) + space.ablated(figures));
            continue;
        }
        visitor.leave_out(gemm_rules::parts_of_few_waves, space.ablated(figures));
        if (visitor.beyond(least_of(figures, Cluster{}))) {
            visitor.pass_over(space.candidates(figures));
            continue;
        }
        for (Cluster& cluster : space.clusters) cluster.time(hw, problem, figures);
        const Cluster cluster = min_of(space.clusters);
        GemmCandidate least = least_of(figures, cluster);
        const std::span<const PartsOfK> all_parts = space.list_parts(figures, cluster);
        for (std::size_t residency = 0; residency < space.residencies.size(); ++residency) {
            c = figures.tile;
            c.ctas_per_sm = least.ctas_per_sm = space.residencies[residency];
            const int stages = max_stages_of(c, request, rooftile::shared_limit(hw, c.ctas_per_sm));
            space.take_parts(figures, residency, all_parts, parts);
            visitor.rule_out(least, stages, parts);
            const std::span<const PartsOfK> all = parts, whole = all.first(!all.empty() && space.pingpong_takes(all.front()) ? 1 : 0);
            space.for_each_kind(c, [&] { visit(figures, c.schedule == Schedule::pingpong ? whole : all); });
        }
    }
}

}  // namespace rooftile
