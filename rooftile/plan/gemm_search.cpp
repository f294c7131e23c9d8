#include "rooftile/plan/gemm_search.hpp"

#include <fmt/core.h>

#include "rooftile/error.hpp"

namespace rooftile {

void check(const GemmRequest& r) {
    const auto within = [](const char* name, const std::optional<int>& value, int least, int most) {
        if (value && (*value < least || *value > most))
            throw RequestError(fmt::format("{} = {}: must be {} .. {}", name, *value, least, most));
    };
    within("tile_m", r.tile_m, 1, 1024);
    within("tile_n", r.tile_n, 1, 1024);
    within("tile_k", r.tile_k, 1, 1024);
    within("stages", r.stages, least_stages, 256);  // one fills while another is used
    within("consumer_warpgroups", r.consumer_warpgroups, 1, 8);
    within("cluster_m", r.cluster_m, 1, 16);
    within("cluster_n", r.cluster_n, 1, 16);
    within("group", r.group, 1, 1 << 20);
    within("split_k", r.split_k, 1, 1 << 20);
    within("ctas_per_sm", r.ctas_per_sm, 1, 32);
    const bool banded = !r.order || *r.order == Order::grouped || *r.order == Order::serpentine;
    if (r.group && !banded)
        throw RequestError(fmt::format("group = {} with order {}: only grouped and serpentine walk in groups",
                                       *r.group, name_of(*r.order)));
}

InnerSpace inner_space(const GemmRequest& request) {
    InnerSpace inner;
    if (request.stages) inner.stages_low = inner.stages_high = *request.stages;
    if (request.order && *request.order != Order::grouped && *request.order != Order::serpentine) {
        inner.orders[inner.order_count++] = {*request.order, 1};
        return inner;
    }
    for (const OrderChoice& choice : searched_orders) {
        const bool banded = choice.order == Order::grouped;
        if (request.order && !banded) continue;
        if (request.group && (!banded || choice.group != *request.group)) continue;
        inner.orders[inner.order_count++] = {request.order.value_or(choice.order), choice.group};
    }
    if (inner.order_count == 0)  // a group of a size that is not searched
        inner.orders[inner.order_count++] = {request.order.value_or(Order::grouped), *request.group};
    return inner;
}

std::string copy_problem(const GemmProblem& p) {
    struct Side {
        const char *operand, *major, *other_major, *ld_name;
        std::int64_t extent, ld;
    };
    const bool a_k = p.a_major == Major::k, b_k = p.b_major == Major::k;
    const Side sides[] = {{"A", a_k ? "k" : "m", a_k ? "m" : "k", "lda", a_k ? p.k : p.m, p.lda},
                          {"B", b_k ? "k" : "n", b_k ? "n" : "k", "ldb", b_k ? p.k : p.n, p.ldb}};
    std::string problem, remedy;
    for (const Side& s : sides) {
        const bool extent_fits = s.extent % copy_elements == 0;
        if (extent_fits && s.ld % copy_elements == 0) continue;
        const char* name = extent_fits ? s.ld_name : s.major;
        const std::int64_t value = extent_fits ? s.ld : s.extent;
        problem += fmt::format("{}{} is {}-major and {} = {}", problem.empty() ? "" : ", ", s.operand,
                               s.major, name, value);
        remedy += fmt::format("{}pad {} to {}", remedy.empty() ? "" : ", ", name,
                              ceil_div(value, copy_elements) * copy_elements);
        if (!extent_fits) remedy += fmt::format(" or give {} {}-major", s.operand, s.other_major);
    }
    if (problem.empty()) return {};
    return fmt::format("{}: not a multiple of {} elements (16 B, which copies to shared memory need); {}",
                       problem, copy_elements, remedy);
}

Wall residency_wall(const GemmHardware& hw, int threads, int ctas_per_sm) {
    if (threads > hw.threads_per_cta)
        return Wall::at(Reason::threads, threads, hw.threads_per_cta, "{needed} threads a CTA > {available}");
    if (threads * ctas_per_sm > hw.threads_per_sm)
        return Wall::at(Reason::threads, threads * ctas_per_sm, hw.threads_per_sm,
                        "{needed} threads an SM > {available}");
    if (ctas_per_sm > hw.ctas_per_sm)
        return Wall::at(Reason::threads, ctas_per_sm, hw.ctas_per_sm, "{needed} CTAs an SM > {available}");
    return Wall::none();
}

double shared_limit(const GemmHardware& hw, int ctas_per_sm) {
    if (ctas_per_sm == 1) return hw.shared_per_cta;
    const double part =
        whole(hw.shared_per_sm / ctas_per_sm / hw.shared_unit) * hw.shared_unit - hw.shared_reserved;
    return least_known(hw.shared_per_cta, part);
}

int stages_against_latency(const GemmHardware& hw, const GemmProblem& p, const GemmTile& tile,
                           const StepCycles& s) {
    const double step = most_known(s.tensor, most_known(s.shared, s.l2)) * tile.ctas_per_sm;
    const double need = whole_up(hw.dram_latency / step) + 1;
    if (std::isnan(need)) return least_stages;
    const double steps = double(k_steps(tile, p));
    return static_cast<int>(least_known(need, most_known(steps, least_stages)));
}

namespace {

double score(const Kept& kept) {
    const GemmTile& t = kept.footprint.tile;
    if (!std::isnan(kept.time.least)) return kept.time.least;
    if (!std::isnan(kept.time.step)) return kept.time.step / (double(t.tile_m) * t.tile_n * t.tile_k);
    return -double(t.tile_m) * t.tile_n / (t.tile_m + t.tile_n);
}

}  // namespace

void weigh(const GemmHardware& hw, const GemmProblem& problem, const InnerSpace& inner,
           const GemmCandidate& candidate, const Footprint& f, SearchResult& result) {
    const int fits = f.stages_max(std::max(most_stages, inner.stages_high));
    const int high = std::min(inner.stages_high, fits);
    const std::int64_t too_many = std::max(0, inner.stages_high - std::max(high, inner.stages_low - 1));
    if (too_many > 0)
        result.fall(Wall::at(Reason::shared, f.shared_bytes(std::max(inner.stages_low, fits + 1)),
                             f.shared_limit, "{needed} B of shared memory > {available} B"),
                    candidate, too_many * inner.order_count);
    if (high < inner.stages_low) return;

    const StepCycles step = step_cycles(hw, f.tile, bytes_of(problem.a_type));
    const int need = stages_against_latency(hw, problem, f.tile, step);
    const int room = std::max(inner.stages_low, f.stages_least);
    if (const std::int64_t too_small = std::min(high + 1, room) - inner.stages_low; too_small > 0)
        result.fall(
            Wall::at(Reason::shared, f.stages_least, std::min(high, room - 1),
                     "{needed} stages hold the sums that parts of K exchange, {available} fit or were "
                     "asked for; take a smaller tile or more stages"),
            candidate, too_small * inner.order_count);
    if (high < room) return;
    const int low = std::max(room, need);
    const std::int64_t too_few = std::min(high + 1, low) - room;
    if (too_few > 0)
        result.fall(Wall::at(Reason::latency, need, std::min(high, low - 1),
                             "{needed} stages are needed to cover the latency, {available} fit or were asked "
                             "for; take a larger tile or more stages"),
                    candidate, too_few * inner.order_count);
    if (high < low) return;

    const std::int64_t choices = std::int64_t{high - low + 1} * inner.order_count;
    const Waves wave_count = waves(hw, f.tile, problem);
    // No order moves less than nothing: what is too slow without DRAM need not be walked.
    GemmTimer timer(hw, f.tile, problem, step, wave_count, high);
    if (result.best.out_of_reach(timer.at(hw.clock_hz, 0).least)) {
        result.rejected.reasons[static_cast<int>(Reason::dominated)] += choices;
        return;
    }

    Kept kept{.candidate = candidate, .footprint = f, .step = step, .waves = wave_count};
    const WalkTraffic walk(hw, f.tile, problem);
    for (int i = 0; i < inner.order_count; ++i) {
        const OrderChoice& choice = inner.orders[i];
        const double dram = walk.dram(choice.order, choice.group);
        if (i == 0 || dram < kept.dram) {
            kept.dram = dram;
            kept.order = choice;
        }
    }
    // All stages that fit: what is above the least is slack for refresh and congestion [M14].
    kept.stages = high;
    kept.time = timer.at(hw.clock_hz, kept.dram);
    kept.score = score(kept);

    result.rejected.reasons[static_cast<int>(Reason::dominated)] +=
        choices - 1 + (result.best.offer(kept) ? 1 : 0);
}

void rank_under_power(const GemmHardware& hw, const GemmProblem& problem, std::size_t top,
                      SearchResult& result) {
    BestList best(top);
    for (Kept kept : result.best.kept()) {
        kept.time = gemm_time_under_power(hw, kept.footprint.tile, problem, kept.step, kept.waves, kept.dram,
                                          kept.stages);
        kept.score = score(kept);
        if (best.offer(kept)) ++result.rejected.reasons[static_cast<int>(Reason::dominated)];
    }
    result.best = std::move(best);
}

}  // namespace rooftile
