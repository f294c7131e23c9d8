// The search that every GEMM kernel family shares: walk the family's candidates, send each against the walls,
// time the ones that stand, keep the best. Candidates are plain values; looking at one allocates nothing, and
// a reason is an enum and two numbers. Derivations are built afterwards, for the plans that are returned.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/model/arithmetic.hpp"
#include "rooftile/model/gemm_time.hpp"
#include "rooftile/plan/plan.hpp"

namespace rooftile {

/// One point of a family's space, before stages and order are chosen.
struct GemmCandidate {
    int tile_m = 0, tile_n = 0, tile_k = 0;
    int warpgroups = 0;  ///< that multiply
    Schedule schedule = Schedule::cooperative;
    int cluster_m = 1, cluster_n = 1;
    int ctas_per_sm = 1;
    int split_k = 1;
    std::optional<bool> deferred_store{};  ///< empty: wherever it can
};

/// Why a candidate fell, or nothing.
struct Wall {
    bool stands = false;  ///< the wall stands in the way
    Reason reason = Reason::dominated;
    double needed = 0, available = 0;
    /// The rule, with {needed} and {available} in it; a literal, so that a wall stays a plain value.
    const char* rule = "";

    static Wall none() { return {}; }
    static Wall at(Reason reason, double needed, double available, const char* rule) {
        return {true, reason, needed, available, rule};
    }
};

/// What a family says a candidate uses.
struct Footprint {
    GemmTile tile{};
    int threads = 0;
    int accumulators = 0;        ///< 32-bit registers a thread
    int registers = 0;           ///< a multiplying thread needs, accumulators included
    double registers_limit = 0;  ///< it can have; NaN unknown
    int producer_registers = 0, consumer_registers = 0;  ///< setmaxnreg; 0 unused
    int stage_bytes = 0;
    int stage_overhead = 0;     ///< barriers that come with each stage
    int reserved_bytes = 0;     ///< epilogue and alignment, whatever the stages
    double shared_limit = 0;    ///< B one CTA may use; NaN unknown
    double stages_limit = 1e9;  ///< of the instruction set: 2 where nothing is asynchronous
    int stages_least = 2;       ///< that the ring needs for its other uses
    bool deferred_store = false;

    int shared_bytes(int stages) const { return stages * (stage_bytes + stage_overhead) + reserved_bytes; }
    /// Most stages that fit [M13]; `limit` where shared memory is unknown.
    int stages_max(int limit) const {
        double most = least_known(limit, stages_limit);
        most = least_known(most, whole((shared_limit - reserved_bytes) / (stage_bytes + stage_overhead)));
        return static_cast<int>(most);
    }
};

/// Orders tried for every candidate: the walk of a persistent grid [M32].
struct OrderChoice {
    Order order;
    int group;
};
inline constexpr std::array<OrderChoice, 10> searched_orders{{{Order::row, 1},
                                                              {Order::column, 1},
                                                              {Order::grouped, 2},
                                                              {Order::grouped, 4},
                                                              {Order::grouped, 6},
                                                              {Order::grouped, 8},
                                                              {Order::grouped, 10},
                                                              {Order::grouped, 12},
                                                              {Order::grouped, 14},
                                                              {Order::grouped, 16}}};
/// A ring needs two stages; 32 of the smallest tile are more than any SM holds.
inline constexpr int least_stages = 2, most_stages = 32;

/// A candidate that stood, with the best stages and order found for it.
struct Kept {
    GemmCandidate candidate;
    Footprint footprint;
    StepCycles step{};
    GemmTime time{};
    Waves waves{};
    OrderChoice order{};
    int stages = 0;
    double dram = 0;
    double score = 0;  ///< seconds; cycles per product where seconds are unknown
};

/// The best few, in order. Ties fall to less traffic, fewer registers, less shared memory, the first found.
class BestList {
  public:
    explicit BestList(std::size_t size) : size_(size) { kept_.reserve(size + 1); }
    /// True where something fell out to make room, or `k` itself found none.
    bool offer(const Kept& k) {
        auto at = kept_.end();
        while (at != kept_.begin() && better(k, at[-1])) --at;
        if (kept_.size() == size_ && at == kept_.end()) return true;
        kept_.insert(at, k);
        if (kept_.size() <= size_) return false;
        kept_.pop_back();
        return true;
    }
    std::span<const Kept> kept() const { return kept_; }
    /// True where nothing with this score or a higher one can still get in.
    bool out_of_reach(double score) const { return kept_.size() == size_ && score > kept_.back().score; }

  private:
    static bool better(const Kept& x, const Kept& y) {
        if (x.score != y.score) return x.score < y.score;
        const double xt = x.dram + x.step.l2, yt = y.dram + y.step.l2;
        if (xt != yt && !std::isnan(xt) && !std::isnan(yt)) return xt < yt;
        if (x.footprint.registers != y.footprint.registers)
            return x.footprint.registers < y.footprint.registers;
        return x.footprint.shared_bytes(x.stages) < y.footprint.shared_bytes(y.stages);
    }
    std::size_t size_;
    std::vector<Kept> kept_;
};

/// Everything a search came to.
struct SearchResult {
    BestList best;
    Rejected rejected;
    Wall last{};  ///< the wall of the candidate that got furthest, for the Infeasible message
    GemmCandidate last_candidate{};
    explicit SearchResult(std::size_t top) : best(top) {}

    /// How far a candidate came that fell at this wall: the order in which the walls stand.
    static constexpr int progress(Reason reason) {
        constexpr int of[reason_count] = {
            /*registers*/ 4, /*shared*/ 5,  /*threads*/ 1, /*instruction*/ 0,
            /*alignment*/ 2, /*cluster*/ 3, /*latency*/ 6, /*dominated*/ 7};
        return of[static_cast<int>(reason)];
    }
    void fall(const Wall& wall, const GemmCandidate& candidate, std::int64_t how_many) {
        rejected.reasons[static_cast<int>(wall.reason)] += how_many;
        if (how_many > 0 && (!last.stands || progress(wall.reason) > progress(last.reason))) {
            last = wall;
            last_candidate = candidate;
        }
    }
};

/// Stages and orders left free or fixed by the request.
struct InnerSpace {
    int stages_low = least_stages, stages_high = most_stages;
    std::array<OrderChoice, searched_orders.size()> orders{};
    int order_count = 0;
    std::int64_t size() const { return std::int64_t{stages_high - stages_low + 1} * order_count; }
};
InnerSpace inner_space(const GemmRequest& request);

/// Throws RequestError where a fixed value is outside what any kernel could take, or contradicts another.
void check(const GemmRequest& request);

/// Elements of a 16-bit type in 16 B: what TMA and cp.async need addresses and strides to be multiples of
/// [M11, M17; PTX ISA "Tensors", "cp.async"].
inline constexpr int copy_elements = 8;
/// "A is k-major: k = 7 must be ..." where 16-byte copies cannot address an operand; empty where they can.
std::string copy_problem(const GemmProblem& problem);

/// True where a fixed value of the request leaves `candidate` out of the search altogether.
inline bool excluded(const GemmRequest& r, const GemmCandidate& c) {
    const auto differs = [](const auto& fixed, auto value) { return fixed && *fixed != value; };
    return differs(r.tile_m, c.tile_m) || differs(r.tile_n, c.tile_n) || differs(r.tile_k, c.tile_k)
           || differs(r.consumer_warpgroups, c.warpgroups) || differs(r.schedule, c.schedule)
           || differs(r.cluster_m, c.cluster_m) || differs(r.cluster_n, c.cluster_n)
           || differs(r.ctas_per_sm, c.ctas_per_sm) || differs(r.split_k, c.split_k);
}

/// Stages that a candidate must have so that (stages - 1) steps of its slowest resource cover the latency
/// [M5]. A ring deeper than the K loop has nothing to fetch, so a short K asks for no more than it has steps.
int stages_against_latency(const GemmHardware& hw, const GemmProblem& problem, const GemmTile& tile,
                           const StepCycles& step);

/// Sends one candidate, whose family found no wall of its own, against shared memory and latency, and times
/// it.
void weigh(const GemmHardware& hw, const GemmProblem& problem, const InnerSpace& inner,
           const GemmCandidate& candidate, const Footprint& footprint, SearchResult& result);

/// Times the candidates kept once more, each at the clock that power leaves it, and keeps the best `top`.
void rank_under_power(const GemmHardware& hw, const GemmProblem& problem, std::size_t top,
                      SearchResult& result);

/// The wall of threads and CTAs that one SM or one CTA can hold, whatever the family [M6].
Wall residency_wall(const GemmHardware& hw, int threads, int ctas_per_sm);

/// Shared memory one of `ctas_per_sm` CTAs may use, in B [M3]; NaN unknown.
double shared_limit(const GemmHardware& hw, int ctas_per_sm);

/// Walks `Family`'s candidates. A family gives `for_each(request, visit)` and
/// `Wall examine(hw, problem, candidate, Footprint&)`.
template <class Family>
SearchResult search(const Family& family, const GemmHardware& hw, const GemmProblem& problem,
                    const GemmRequest& request) {
    // The clock under power is worked out for the best at the sustained clock alone: it moves a time by a few
    // per cent.
    constexpr std::size_t timed_twice = 24;
    const auto top = static_cast<std::size_t>(request.top);
    SearchResult result(std::max(top, timed_twice));
    const InnerSpace inner = inner_space(request);
    family.for_each(request, [&](const GemmCandidate& candidate) {
        if (excluded(request, candidate)) return;
        Footprint footprint;
        const Wall wall = family.examine(hw, problem, candidate, footprint);
        if (wall.stands) result.fall(wall, candidate, inner.size());
        else weigh(hw, problem, inner, candidate, footprint, result);
    });
    rank_under_power(hw, problem, top, result);
    return result;
}

}  // namespace rooftile
