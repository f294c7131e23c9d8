#include "rooftile/gemm/search.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/error.hpp"
#include "rooftile/gemm/orders.hpp"

namespace rooftile {

void check(const GemmRequest& r) {
    const auto within = [](const char* name, const std::optional<int>& value, int least, int most) {
        if (value && (*value < least || *value > most))
            throw RequestError(fmt::format("{} = {}: must be {} .. {}", name, *value, least, most));
    };
    within("tile_m", r.tile_m, 1, 1024);
    within("tile_n", r.tile_n, 1, 1024);
    within("tile_k", r.tile_k, 1, 1024);
    within("stages", r.stages, min_stages, 256);  // one fills while another is used
    within("consumer_warpgroups", r.consumer_warpgroups, 1, 8);
    within("cluster_m", r.cluster_m, 1, 16);
    within("cluster_n", r.cluster_n, 1, 16);
    within("group", r.group, 1, 1 << 20);
    within("split_k", r.split_k, 1, 1 << 20);
    within("grid_split_k", r.grid_split_k, 1, 1 << 20);
    within("ctas_per_sm", r.ctas_per_sm, 1, 32);
    const bool banded = !r.order || *r.order == Order::grouped || *r.order == Order::serpentine;
    if (r.group && !banded)
        throw RequestError(
            fmt::format("group = {} with order {}: only grouped and serpentine take tiles in groups",
                        *r.group, name_of(*r.order)));
}

InnerSpace inner_space(const GemmRequest& request) {
    InnerSpace inner;
    inner.exhaustive = request.exhaustive;
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

void Footprint::set_work(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem) {
    tiles = cluster_grid(problem, tile.tile_m, tile.tile_n, 1, 1);
    k_steps = rooftile::k_steps(tile, problem);
    step = step_cycles(hw, tile, problem);
    streamed = streamed_cycles(hw, tile, problem, tiles);
}

void Footprint::take_order(const OrderChoice& order, const GemmHardware& hw, const GemmTile& tile,
                           const GemmProblem& problem) {
    step.l2 = l2_step_cycles(hw, tile, problem, neighbours(problem, tile, order.order, order.group));
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
        return k.dram + max_known(k.footprint.step.l2, k.footprint.step.port);
    };
    const double xt = traffic(x), yt = traffic(y);
    if (xt != yt && !std::isnan(xt) && !std::isnan(yt)) return xt < yt;
    if (x.footprint.registers != y.footprint.registers) return x.footprint.registers < y.footprint.registers;
    const int xs = x.footprint.shared_bytes(x.stages), ys = y.footprint.shared_bytes(y.stages);
    return xs != ys ? xs < ys : precedes(x.candidate, y.candidate);
}

std::vector<Kept> BestList::sorted() const {
    std::vector<Kept> sorted;
    sorted.reserve(rank_.size());
    for (unsigned place : rank_) sorted.push_back(kept_[place]);
    return sorted;
}

namespace {

// Schedule and warpgroups do not change a tile schedule.
bool scheduled_alike(const GemmTile& x, const GemmTile& y) {
    return x.tile_m == y.tile_m && x.tile_n == y.tile_n && x.split_k == y.split_k && x.grid_split_k == y.grid_split_k
           && x.cluster_m == y.cluster_m && x.cluster_n == y.cluster_n && x.ctas_per_sm == y.ctas_per_sm;
}


}  // namespace

GemmSearch::GemmSearch(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request)
    : hw_(hw),
      problem_(problem),
      floor_(hw, problem),
      power_(hw),
      compulsory_(problem.compulsory_bytes().value),
      inner_(inner_space(request)),
      simulates_(request.simulate),
      top_(static_cast<std::size_t>(request.top)),
      times_known_(!std::isnan(hw.flops_per_cycle + hw.shared_bandwidth + hw.l2_share + hw.dram_latency
                               + hw.dram_bandwidth + hw.l2_bytes + hw.sms + hw.clock_hz)),
      best_(simulates_ ? std::max(top_, std::size_t{simulated}) : top_, times_known_) {
    // Tiles of groups that share weights follow each other where formulas cannot tell orders apart: CTAs do not stay in step, and what
    // is read many tiles later has left L2 (docs/facts.md 262).
    const auto orders = inner_.orders.begin();
    if (problem.groups) std::stable_partition(orders, orders + inner_.order_count, [](const OrderChoice& o) { return o.order == Order::column; });
    const ScheduleTraffic any(hw, {.tile_m = 1, .tile_n = 1}, problem);
    if (std::isnan(any.dram(inner_.orders[0].order, inner_.orders[0].group))) compulsory_ = unknown_number;
}

void GemmSearch::accept(const GemmCandidate& candidate, const Footprint& f) {
    const int fits = f.stages_max(std::max(max_stages, inner_.stages_high));
    const int high = std::min(inner_.stages_high, fits);
    const std::int64_t too_many = std::max(0, inner_.stages_high - std::max(high, inner_.stages_low - 1));
    if (too_many > 0)
        result_.reject(Constraint::at(Reason::shared, f.shared_bytes(std::max(inner_.stages_low, fits + 1)),
                                      f.shared_limit, "{needed} B of shared memory > {available} B"),
                       candidate, too_many * inner_.order_count);
    if (high < inner_.stages_low) return;

    const int need = f.stages_against_latency(hw_.dram_latency, candidate.tile.ctas_per_sm);
    const int room = std::max(inner_.stages_low, f.stages_min);
    if (const std::int64_t too_small = std::min(high + 1, room) - inner_.stages_low; too_small > 0)
        result_.reject(
            Constraint::at(Reason::shared, f.stages_min, std::min(high, room - 1),
                           "{needed} stages hold the sums that parts of K exchange, {available} fit or were "
                           "asked for; take a smaller tile or more stages"),
            candidate, too_small * inner_.order_count);
    if (high < room) return;
    const int low = std::max(room, need);
    const std::int64_t too_few = std::min(high + 1, low) - room;
    if (too_few > 0)
        result_.reject(
            Constraint::at(Reason::latency, need, std::min(high, low - 1),
                           "{needed} stages are needed to cover the latency, {available} fit or were asked "
                           "for; take a larger tile or more stages"),
            candidate, too_few * inner_.order_count);
    if (high < low) return;
    // All stages that fit: what is above the least is slack for refresh and congestion [M14].
    time(candidate, f, high, std::int64_t{high - low + 1} * inner_.order_count);
}

// Seconds that the tile's candidates may take. Sets the clock of floors to the highest that power allows to them,
// with every operand moved once: no cluster, no parts of K and no order take fewer joules.
double GemmSearch::reach(const GemmTile& t, const TileGrid& tiles) {
    const bool same =
        tile_.m == t.tile_m && tile_.n == t.tile_n && tile_.warp_m == t.warp_m && tile_.warp_n == t.warp_n;
    const double reach = best_.reach() * as_good;
    if (!same) {
        tile_ = {t.tile_m, t.tile_n, t.warp_m, t.warp_n, gemm_energy(hw_, t, problem_, tiles, compulsory_),
                 0,        0};
        orders_.clear();
    }
    if (tile_.reach != reach) {
        tile_.reach = reach;
        tile_.clock = power_.clock(reach, tile_.energy.sum());
        floor_.run_at(tile_.clock);
    }
    return reach;
}

const ScoredOrder* GemmSearch::known_order(const GemmTile& t) const {
    for (const auto& [tile, order] : orders_)
        if (scheduled_alike(tile, t)) return &order;
    return nullptr;
}

bool GemmSearch::beyond(const GemmTile& tile, const Footprint& least) {
    const double reach = this->reach(tile, least.tiles);
    return floor_.seconds(least.tiles, least.k_steps, least.step) > reach;
}

void GemmSearch::rule_out(const GemmTile& tile, const Footprint& least, int stages,
                          std::vector<PartsOfK>& parts) {
    const double reach = this->reach(tile, least.tiles);
    const auto resident = floor_.resident(tile, least.tiles, least.step, stages);
    std::erase_if(parts, [&](const PartsOfK& p) {
        const bool beyond = floor_.seconds(resident, p.split_k * p.grid_split_k, p.work, reach) > reach;
        if (beyond) count_dominated(p.candidates * inner_.size());
        return beyond;
    });
}

void GemmSearch::time(const GemmCandidate& candidate, const Footprint& f, int stages, std::int64_t choices) {
    const GemmTile& tile = candidate.tile;
    const double reach = this->reach(tile, f.tiles);
    const WorkOfParts work{f.k_steps, f.streamed, f.exchange, f.slots};
    if (floor_.seconds(tile, f.tiles, f.step, work, stages) > reach) return count_dominated(choices);
    const Waves wave_count = waves(hw_, tile, problem_);
    GemmTimer timer(hw_, tile, problem_, f.step, wave_count, stages);
    const ScoredOrder* tile_schedule = known_order(tile);
    if (!tile_schedule) {
        // An order may ask more of L2. Where CTAs share an SM that can even be the sooner: while one waits for it another
        // changes its tile.
        if (tile.ctas_per_sm == 1 && timer.at(tile_.clock, compulsory_).least * rounding > reach)
            return count_dominated(choices);
        tile_schedule =
            &orders_.emplace_back(tile, order_by_formula(ScheduleTraffic(hw_, tile, problem_), inner_))
                 .second;
    }
    const auto& [order, dram] = *tile_schedule;
    GemmEnergy energy = tile_.energy;
    energy.dram = hw_.dram_joules * dram;
    const double joules = energy.sum();
    ++timed_;
    Footprint footprint = f;
    footprint.take_order(order, hw_, tile, problem_);
    timer.set_l2(footprint.step.l2);
    const GemmTime time = power_.time(timer, joules, dram, reach);
    if (time.least * rounding > reach) return count_dominated(choices);
    Kept kept{.candidate = candidate,
              .footprint = footprint,
              .time = time,
              .waves = wave_count,
              .order = order,
              .stages = stages,
              .dram = dram,
              .score = time.least};
    if (std::isnan(kept.score)) kept.by_method = rank_by_method(hw_, problem_, kept);
    const bool dropped = best_.offer(kept);
    count_dominated(choices - 1 + (dropped ? 1 : 0));
}

void GemmSearch::simulate(BestList& best) const {
    struct Simulated {
        GemmTile tile;
        std::optional<ScoredOrder> order;
    };
    std::vector<Simulated> schedules;
    best.for_each([&](Kept& kept) {
        const GemmTile& t = kept.candidate.tile;
        auto tile_schedule = std::find_if(schedules.begin(), schedules.end(),
                                          [&](const Simulated& w) { return scheduled_alike(w.tile, t); });
        if (tile_schedule == schedules.end())
            tile_schedule =
                schedules.insert(tile_schedule, {t, order_by_simulation(hw_, t, problem_, inner_)});
        if (!tile_schedule->order) return;
        kept.order = tile_schedule->order->order, kept.dram = tile_schedule->order->dram;
        kept.footprint.take_order(kept.order, hw_, t, problem_);
    });
}

SearchResult GemmSearch::finish() {
    if (!simulates_) {
        result_.best = best_.sorted();
        return std::move(result_);
    }
    simulate(best_);
    BestList best(top_, times_known_);
    for (Kept kept : best_.sorted()) {
        kept.time = gemm_time_under_power(hw_, kept.candidate.tile, problem_, kept.footprint.step, kept.waves,
                                          kept.dram, kept.stages, best.reach() * as_good);
        kept.score = kept.time.least;
        if (best.offer(kept)) count_dominated(1);
    }
    result_.best = best.sorted();
    return std::move(result_);
}

}  // namespace rooftile
