#include "rooftile/gemm/search.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/error.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/orders.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {

std::string words_of(const Constraint& constraint) {
    return fmt::format(fmt::runtime(constraint.rule), fmt::arg("needed", shortest_text(std::round(constraint.needed))),
                       fmt::arg("available", shortest_text(std::round(constraint.available))));
}

void check(const GemmRequest& r) {
    check_knobs<GemmKnobs>(r);
    const bool banded = !r.order || *r.order == Order::grouped || *r.order == Order::serpentine;
    if (r.group && !banded)
        throw RequestError(
            fmt::format("group = {} with order {}: only grouped and serpentine take tiles in groups",
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

Constraint residency_constraint(const GemmHardware& hw, int threads, int ctas_per_sm) {
    if (threads > hw.threads_per_cta)
        return Constraint::at(Reason::threads, threads, hw.threads_per_cta,
                              "{needed} threads a CTA > {available}");
    if (threads * ctas_per_sm > hw.threads_per_sm)
        return Constraint::at(Reason::threads, threads * ctas_per_sm, hw.threads_per_sm,
                              "{needed} threads an SM > {available}");
    if (ctas_per_sm > hw.ctas_per_sm)
        return Constraint::at(Reason::threads, ctas_per_sm, hw.ctas_per_sm,
                              "{needed} CTAs an SM > {available}");
    return Constraint::none();
}

double shared_limit(const GemmHardware& hw, int ctas_per_sm) {
    if (ctas_per_sm == 1) return hw.shared_per_cta;
    const double part =
        whole(hw.shared_per_sm / ctas_per_sm / hw.shared_unit) * hw.shared_unit - hw.shared_reserved;
    return min_known(hw.shared_per_cta, part);
}

void GemmCandidate::set_work(const GemmHardware& hw, const GemmProblem& problem) {
    tiles = cluster_grid(problem, tile_m, tile_n, 1, 1);
    k_steps = rooftile::k_steps(*this, problem);
    step = step_cycles(hw, *this, problem);
    streamed = streamed_cycles(hw, *this, problem, tiles);
}

void GemmCandidate::take_order(const OrderChoice& choice, const GemmHardware& hw, const GemmProblem& problem) {
    order = choice.order, group = choice.group;
    step.l2 = l2_step_cycles(hw, *this, problem, neighbours(problem, *this, order, group));
}

bool BestList::offer(const Kept& k) {
    auto at = rank_.end();
    while (at != rank_.begin() && better(k, kept_[at[-1]])) --at;
    const bool full = rank_.size() == size_;
    if (full && at == rank_.end()) return true;
    const unsigned place = full ? rank_.back() : static_cast<unsigned>(rank_.size());
    rank_.insert(at, place);
    if (full) rank_.pop_back(), kept_[place] = k;
    else kept_.push_back(k);
    return full;
}

bool BestList::better(const Kept& x, const Kept& y) {
    // What is known of an unknown time is less than the time: it says nothing against one that is known.
    const bool unknown = std::isnan(x.time.seconds);
    if (unknown != std::isnan(y.time.seconds)) return !unknown;
    if (std::isnan(x.score) != std::isnan(y.score)) return std::isnan(y.score);
    if (std::isnan(x.score) && x.by_method != y.by_method) return x.by_method < y.by_method;
    if (!std::isnan(x.score) && x.score != y.score) return x.score < y.score;
    if (x.candidate.swap_ab != y.candidate.swap_ab) return y.candidate.swap_ab;
    const auto traffic = [](const Kept& k) {
        return k.dram + max_known(k.candidate.step.l2, k.candidate.step.port);
    };
    const double xt = traffic(x), yt = traffic(y);
    if (xt != yt && !std::isnan(xt) && !std::isnan(yt)) return xt < yt;
    const GemmCandidate &xc = x.candidate, &yc = y.candidate;
    if (xc.registers != yc.registers) return xc.registers < yc.registers;
    const int xs = xc.shared_bytes(xc.stages), ys = yc.shared_bytes(yc.stages);
    return xs != ys ? xs < ys : precedes(xc, yc);
}

std::vector<Kept> BestList::sorted() const {
    std::vector<Kept> sorted;
    sorted.reserve(rank_.size());
    for (unsigned place : rank_) sorted.push_back(kept_[place]);
    return sorted;
}

namespace {

/// All that a tile schedule depends on.
std::array<int, 8> schedule_key(const GemmConfig& t) {
    return {t.tile_m, t.tile_n, t.tile_k, t.cluster_m, t.cluster_n, t.split_k, t.grid_split_k, t.ctas_per_sm};
}

/// One choice, in whichever order of tiles.
bool same_candidate(const GemmConfig& x, GemmConfig y) {
    y.order = x.order, y.group = x.group;
    return x == y;
}

}  // namespace

GemmSearch::GemmSearch(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                       double bound)
    : hw_(hw),
      problem_(problem),
      floor_(hw, problem),
      power_(hw),
      compulsory_(problem.compulsory_bytes().value),
      inner_(inner_space(request)),
      simulates_(request.simulate),
      bound_(bound),
      top_(static_cast<std::size_t>(request.top)),
      times_known_(!std::isnan(hw.flops_per_cycle + hw.shared_bandwidth + hw.l2_share + hw.dram_latency
                               + hw.dram_bandwidth + hw.l2_bytes + hw.sms + hw.clock_hz)),
      by_method_(std::isnan(hw.flops_per_cycle + hw.shared_bandwidth + hw.l2_share + hw.sms + hw.clock_hz)),
      best_(std::max(top_, std::size_t{ranked}), times_known_) {
    // Tiles of groups that share weights follow each other where formulas cannot tell orders apart: CTAs do not stay in step, and what
    // is read many tiles later has left L2 (docs/facts.md 262).
    const auto orders = inner_.orders.begin();
    if (problem.groups) std::stable_partition(orders, orders + inner_.order_count, [](const OrderChoice& o) { return o.order == Order::column; });
    const ScheduleTraffic any(hw, {.tile_m = 1, .tile_n = 1}, problem);
    // Packed weights are read once whatever the order. Of an image tiles side by side share lines that the simulation takes for different ones.
    simulates_ = simulates_ && !problem.is_quantised() && !problem.image && any.least_of_one() > hw.l2_bytes;  // else every order moves the least
    if (std::isnan(any.dram(inner_.orders[0].order, inner_.orders[0].group))) compulsory_ = unknown_number;
}

void GemmSearch::accept(const GemmCandidate& candidate) {
    accepted_ = std::numeric_limits<double>::infinity();
    consider(candidate, true);
}

void GemmSearch::accept_otherwise(const GemmCandidate& candidate) { consider(candidate, false); }

bool GemmSearch::may_store_otherwise(const GemmCandidate& candidate) {
    const int deepest = std::max(max_stages, inner_.stages_high);
    return !(floor_.seconds(candidate, deepest) > reach(candidate));
}

void GemmSearch::consider(const GemmCandidate& f, bool counted) {
    const auto reject = [&](const Constraint& constraint, std::int64_t stages) {
        if (counted) result_.reject(constraint, f, stages * inner_.order_count);
    };
    const int fits = f.stages_max(std::max(max_stages, inner_.stages_high));
    const int high = std::min(inner_.stages_high, fits);
    const std::int64_t too_many = std::max(0, inner_.stages_high - std::max(high, inner_.stages_low - 1));
    if (too_many > 0 && fits >= f.stages_limit)
        reject(Constraint::at(Reason::instruction, std::max(inner_.stages_low, fits + 1), f.stages_limit, "{needed} stages or more; this kernel uses {available}"), too_many);
    else if (too_many > 0)
        reject(Constraint::at(Reason::shared, f.shared_bytes(std::max(inner_.stages_low, fits + 1)),
                              f.shared_limit, "{needed} B of shared memory > {available} B"),
               too_many);
    if (high < inner_.stages_low) return;

    const int need = f.stages_against_latency(hw_.dram_latency);
    const int room = std::max(inner_.stages_low, f.stages_min);
    if (const std::int64_t too_small = std::min(high + 1, room) - inner_.stages_low; too_small > 0)
        reject(
            Constraint::at(Reason::shared, f.stages_min, std::min(high, room - 1),
                           "{needed} stages hold the sums that parts of K exchange, {available} fit or were "
                           "asked for; take a smaller tile or more stages"),
            too_small);
    if (high < room) return;
    const int low = std::max(room, need);
    const std::int64_t too_few = std::min(high + 1, low) - room;
    if (too_few > 0)
        reject(
            Constraint::at(Reason::latency, need, std::min(high, low - 1),
                           "{needed} stages are needed to cover the latency, {available} fit or were asked "
                           "for; take a larger tile or more stages"),
            too_few);
    if (high < low) return;
    if (counted) count_dominated(std::int64_t{high - low + 1} * inner_.order_count);
    // All stages that fit: what is above the least is slack for refresh and congestion [M14].
    const bool fixed = inner_.stages_low == inner_.stages_high;
    time(f, fixed ? high : std::min(high, std::max(low, f.stages_enough)), counted);
}

// Seconds that the tile's candidates may take. Sets the clock of floors to the highest that power allows to them,
// with every operand moved once: no cluster, no parts of K and no order take fewer joules.
double GemmSearch::reach(const GemmCandidate& t) {
    const bool same =
        tile_.m == t.tile_m && tile_.n == t.tile_n && tile_.warp_m == t.warp_m && tile_.warp_n == t.warp_n;
    const double reach = best_.reach() * as_good;
    if (!same) {
        tile_ = {t.tile_m, t.tile_n, t.warp_m, t.warp_n, gemm_energy(hw_, t, problem_, t.tiles, compulsory_),
                 0,        0};
    }
    if (tile_.reach != reach) {
        tile_.reach = reach;
        tile_.clock = power_.clock(reach, tile_.energy.sum());
        floor_.run_at(tile_.clock);
    }
    return reach;
}

bool GemmSearch::beyond(const GemmCandidate& least) {
    const double reach = this->reach(least);
    return floor_.seconds(least.tiles, least.k_steps, least.step) > reach;
}

void GemmSearch::rule_out(const GemmCandidate& least, int stages, std::vector<PartsOfK>& parts) {
    const double reach = this->reach(least);
    const auto resident = floor_.resident(least, stages);
    std::erase_if(parts, [&](const PartsOfK& p) {
        const bool beyond = floor_.seconds(resident, p.split_k * p.grid_split_k, p.work, reach) > reach;
        if (beyond) count_dominated(p.candidates * inner_.size());
        return beyond;
    });
}

const OrderFront& GemmSearch::orders(const GemmConfig& tile, Effort effort) {
    OrderFront& front = orders_[static_cast<int>(effort)][schedule_key(tile)];
    if (front.empty()) front = fastest_orders(hw_, tile, problem_, inner_, effort);
    return front;
}

void GemmSearch::time(const GemmCandidate& candidate, int stages, bool counted) {
    const double reach = this->reach(candidate);
    if (floor_.seconds(candidate, stages) > reach) return;
    Kept kept{.candidate = candidate, .waves = waves(hw_, candidate, problem_)};
    kept.candidate.stages = stages;
    GemmTimer timer(hw_, candidate, problem_, candidate.step, kept.waves, stages);
    const double least = timer.at(tile_.clock, compulsory_).least * rounding;
    if (least > reach) return;
    timed_ += counted;
    take_fastest_order(kept, timer, tile_.energy, reach);
    if (kept.score * rounding > reach) return;
    if (counted) accepted_ = kept.score;
    else if (!(kept.score < accepted_ * (1 - near_tie / 2))) return;
    if (!by_method_) open_.push_back({least, kept});
    if (counted && !candidate.seldom && !best_.offer(kept)) count_dominated(-1);
}

void GemmSearch::take_fastest_order(Kept& kept, GemmTimer& timer, MatrixEnergy energy, double reach) {
    bool first = true;
    for (const auto& [order, dram, l2] : orders(kept.candidate, kept.effort)) {
        energy.dram = dram_energy(hw_, kept.candidate, problem_, dram);
        timer.set_l2(l2);
        const GemmTime time = under_power(power_, timer, energy.sum(), dram, reach);
        const double score = by_method_ ? unknown_number : time.least;
        const bool alike = score == kept.score || std::isnan(score);
        if (!first && !(score < kept.score || (alike && dram < kept.dram))) continue;
        first = false;
        kept.time = time, kept.dram = dram, kept.score = score;
        kept.candidate.order = order.order, kept.candidate.group = order.group, kept.candidate.step.l2 = l2;
    }
    if (by_method_) kept.by_method = rank_by_method(hw_, problem_, kept);
}

void GemmSearch::simulate(Kept& kept, Effort effort, double reach) {
    GemmTimer timer(hw_, kept.candidate, problem_, kept.candidate.step, kept.waves, kept.candidate.stages);
    kept.effort = effort;
    take_fastest_order(kept, timer, gemm_energy(hw_, kept.candidate, problem_, kept.dram), reach);
}

std::optional<Kept> GemmSearch::fastest(double sooner) {
    std::ranges::stable_sort(
        open_, [](const Open& x, const Open& y) { return known_or(x.least, 0) < known_or(y.least, 0); });
    std::optional<Kept> fastest;
    for (auto& [least, kept] : open_) {
        if (least > sooner) break;
        const GemmCandidate& tile = kept.candidate;
        if (simulates_) {
            const double joules = gemm_energy(hw_, tile, problem_, kept.candidate.tiles, compulsory_).sum();
            GemmTimer timer(hw_, tile, problem_, kept.candidate.step, kept.waves, kept.candidate.stages);
            timer.set_l2(l2_step_cycles(hw_, tile, problem_, kept.candidate.tiles));
            if (timer.at(power_.clock(sooner, joules), compulsory_).least * rounding > sooner) continue;
            simulate(kept, Effort::all, sooner);
        }
        if (!(kept.score < sooner) || (fastest && !BestList::better(kept, *fastest))) continue;
        fastest = kept;
        sooner = kept.score;
    }
    return fastest;
}

SearchResult GemmSearch::finish() {
    std::vector<Kept> by_formula = best_.sorted();
    constexpr double any = std::numeric_limits<double>::infinity();
    if (simulates_)
        for (Kept& kept : by_formula) simulate(kept, Effort::few, any);
    // Only as many as are ranked whatever is asked for, so that plan 1 does not depend on it.
    const auto end = by_formula.begin() + std::ptrdiff_t(std::min(by_formula.size(), std::size_t{ranked}));
    std::optional<Kept> first;
    if (const auto best = std::min_element(by_formula.begin(), end, BestList::better); best != end)
        first = *best;
    if (first && simulates_) simulate(*first, Effort::all, any);
    if (const auto sooner = by_method_ ? std::nullopt : fastest(first ? std::min(bound_, first->score * (1 - near_tie)) : any))
        first = sooner;
    if (!first) return std::move(result_);
    BestList best(top_, times_known_);
    best.offer(*first), count_dominated(-1);
    for (const Kept& kept : by_formula) {
        const bool told_apart =
            !same_candidate(kept.candidate, first->candidate) && !BestList::better(kept, *first);
        if (!told_apart || best.offer(kept)) count_dominated(1);
    }
    result_.best = best.sorted();
    return std::move(result_);
}

}  // namespace rooftile
