// The search that every GEMM kernel family shares: a family enumerates its candidates and checks them against its own constraints, the
// search holds those that stand against the others, times the ones that may be among the best, keeps them.
// Candidates are plain values; looking at one allocates nothing, and a reason is an enum and two numbers.
// Derivations are written afterwards, when somebody reads them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/gemm/time.hpp"

namespace rooftile {

/// One point of a family's space, before stages and order are chosen.
struct GemmCandidate {
    GemmTile tile{};     ///< sizes, cluster, parts of K, CTAs an SM; the family's examine() completes it
    int warpgroups = 0;  ///< that multiply
    Schedule schedule = Schedule::cooperative;
    bool swap_ab = false;                       ///< the tile's columns stand on the instruction's m
    std::optional<bool> overlapped_epilogue{};  ///< empty: wherever it can
    int epilogue_tile_n = 0;                    ///< 0: the widest that takes no stage from the ring
    bool seldom = false;                        ///< taken only where no other is nearly as fast
    friend bool operator==(const GemmCandidate&, const GemmCandidate&) = default;
};
/// The order of candidates where nothing else tells them apart, whichever the search meets first.
inline bool precedes(const GemmCandidate& x, const GemmCandidate& y) {
    if (x.swap_ab != y.swap_ab) return y.swap_ab;
    return x.tile.tile_m != y.tile.tile_m ? x.tile.tile_m < y.tile.tile_m : x.tile.tile_n < y.tile.tile_n;
}
/// Where in the space a finished plan stands.
inline GemmCandidate candidate_of(const GemmConfig& c) {
    return {.tile = {.tile_m = c.tile_m,
                     .tile_n = c.tile_n,
                     .tile_k = c.tile_k,
                     .cluster_m = c.cluster_m,
                     .cluster_n = c.cluster_n,
                     .split_k = c.split_k,
                     .grid_split_k = c.grid_split_k,
                     .ctas_per_sm = c.ctas_per_sm},
            .warpgroups = c.consumer_warpgroups,
            .schedule = c.schedule,
            .swap_ab = c.swap_ab,
            .overlapped_epilogue = c.overlapped_epilogue,
            .epilogue_tile_n = c.epilogue_tile_n};
}

/// Why a candidate is rejected, or nothing: true where the constraint is violated.
struct Constraint {
    /// With {needed} and {available} in it; a literal, so that a constraint stays a plain value. Null: none is violated.
    const char* rule = nullptr;
    double needed = 0, available = 0;
    Reason reason = Reason::dominated;

    explicit operator bool() const { return rule != nullptr; }

    static Constraint none() { return {}; }
    static Constraint at(Reason reason, double needed, double available, const char* rule) {
        return {rule, needed, available, reason};
    }
};

/// A ring needs two stages; 32 of the smallest tile are more than any SM holds.
inline constexpr int min_stages = 2, max_stages = 32;

/// `group` counts rows of cluster tiles; 1 where the order has none.
struct OrderChoice {
    Order order;
    int group;
    friend bool operator==(const OrderChoice&, const OrderChoice&) = default;
};

/// What a family says a candidate uses.
struct Footprint {
    static constexpr double no_stages_limit = 1e9;
    TileGrid tiles{};          ///< CTA tiles of the problem
    std::int64_t k_steps = 0;  ///< of one CTA for one tile
    StepCycles step{};         ///< while candidates are enumerated, in the order that asks least of L2
    double streamed = unknown_number, exchange = 0;  ///< streamed_cycles() of a step; exchange_cycles()
    double slots = unknown_number;                   ///< cta_slots()
    int threads = 0;
    int accumulators = 0;        ///< 32-bit registers a thread
    int registers = 0;           ///< a multiplying thread needs, accumulators included
    double registers_limit = 0;  ///< it can have; NaN unknown
    double sums_limit = unknown_number;  ///< that accumulators may take of them, where a rule says so
    int producer_registers = 0, consumer_registers = 0;  ///< setmaxnreg; 0 unused
    int stage_bytes = 0;
    int stage_overhead = 0;     ///< barriers that come with each stage
    int reserved_bytes = 0;     ///< epilogue and alignment, whatever the stages
    double shared_limit = 0;    ///< B one CTA may use; NaN unknown
    double stages_limit = no_stages_limit;  ///< of the instruction set: 2 where nothing is asynchronous
    int stages_enough = 1 << 20;  ///< where the request leaves them, no more are taken, though they fit
    int stages_min = 2;         ///< that the ring needs for its other uses
    bool overlapped_epilogue = false;
    int epilogue_tile_n = 0;  ///< columns of C a TMA store takes; 0: none does

    /// Tiles and k-steps of a tile that no cluster shares, and what a step takes.
    void set_work(const GemmHardware& hw, const GemmTile& tile, const GemmProblem& problem);
    /// From here on `step` is that of this order.
    void take_order(const OrderChoice& order, const GemmHardware& hw, const GemmTile& tile,
                    const GemmProblem& problem);
    int shared_bytes(int stages) const { return stages * (stage_bytes + stage_overhead) + reserved_bytes; }
    /// Cycles of a k-step of the slowest resource.
    double pace() const { return max_known(step.tensor, max_known(step.shared, max_known(step.l2, step.port))); }
    /// Stages that (stages - 1) steps of the slowest resource need to cover the latency [M5]. A ring deeper
    /// than the K loop has nothing to fetch, so a short K asks for no more than it has steps.
    int stages_against_latency(double dram_latency, int ctas_per_sm) const {
        const double need = whole_up(dram_latency / (pace() * ctas_per_sm)) + 1;
        if (std::isnan(need)) return min_stages;
        return static_cast<int>(min_known(need, max_known(double(k_steps), min_stages)));
    }
    bool has_stages_limit() const { return stages_limit < no_stages_limit; }
    /// Most stages that fit; empty where shared memory is unknown.
    std::optional<std::int64_t> known_stages_max() const {
        if (std::isnan(shared_limit)) return std::nullopt;
        return stages_max(1 << 20);
    }
    /// Most stages that fit [M13]; `limit` where shared memory is unknown.
    int stages_max(int limit) const {
        double most = min_known(limit, stages_limit);
        most = min_known(most, whole((shared_limit - reserved_bytes) / (stage_bytes + stage_overhead)));
        return static_cast<int>(most);
    }
};

/// Orders tried for every candidate: the tile schedule of a persistent grid [M32].
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
/// How the fastest order of a tile schedule is found: by closed form, among the few that move least by it, among all; the latter two by a
/// simulated L2.
enum class Effort { formula, few, all };
struct ScoredOrder {
    OrderChoice order;
    double dram = unknown_number;  ///< bytes to and from DRAM
    double l2 = unknown_number;    ///< cycles of a k-step at L2's bandwidth
};
/// Orders of which none is behind another in both.
class OrderFront {
  public:
    /// Takes it where no other is as good, and drops what it is as good as.
    void offer(const ScoredOrder& order);
    /// DRAM bytes that an order with such a k-step must stay below to be taken.
    double most_dram(double l2) const;
    bool empty() const { return count_ == 0; }
    ScoredOrder* begin() { return orders_.data(); }
    ScoredOrder* end() { return orders_.data() + count_; }
    const ScoredOrder* begin() const { return orders_.data(); }
    const ScoredOrder* end() const { return orders_.data() + count_; }

  private:
    /// Neighbours share rows of A, or columns of B, or nothing: L2 is asked for one of three numbers of bytes.
    std::array<ScoredOrder, 3> orders_{};
    int count_ = 0;
};

/// A candidate that was accepted, with the best stages and order found for it.
struct Kept {
    GemmCandidate candidate;
    Footprint footprint;
    GemmTime time{};
    Waves waves{};
    OrderChoice order{};
    int stages = 0;
    double dram = 0;
    double score = 0;  ///< seconds; NaN where they are unknown, and rank_by_method() decides
    std::array<double, 5> by_method{};
    Effort effort = Effort::formula;  ///< that the order was chosen with
};

/// Sets what the search chose; candidate_of() is the way back.
void give_choices(GemmConfig& config, const Kept& kept);

/// What ranks a plan where its time cannot be told, the lesser the better, figure by figure [M8]. Of an unknown number of SMs: whether the FLOP a
/// loaded byte reach peak / bandwidth; then the fewest stages that cover the latency; the most FLOP a byte; the most CTAs an SM, then threads; the
/// longest k-step up to 128 B of a row. Else first the time that an SM takes for its tiles when what they load comes from DRAM, nothing of it shared and nothing overlapped.
std::array<double, 5> rank_by_method(const GemmHardware& hw, const GemmProblem& problem, const Kept& kept);
/// FLOP of the problem a byte that its tiles load, each for itself: F / D of whole tiles, less where they stand out of C [M1].
double flops_a_loaded_byte(const GemmProblem& problem, const GemmTile& tile);

/// The best few, those of unknown time behind all others. Ties fall to what is not swapped, less traffic, fewer registers, less shared memory, the lower tile, the
/// narrower, the first found.
class BestList {
  public:
    /// `times_known`: the machine says the time of some candidates at least.
    explicit BestList(std::size_t size, bool times_known = false) : size_(size), times_known_(times_known) {
        kept_.reserve(size);
        rank_.reserve(size + 1);
    }
    /// True where something was dropped to make room, or `k` itself found none.
    bool offer(const Kept& k);
    /// The score of the last; infinite while there is room, and while a known time would take an unknown one's place.
    double reach() const {
        const bool open =
            rank_.size() < size_ || (times_known_ && std::isnan(kept_[rank_.back()].time.seconds));
        return open ? std::numeric_limits<double>::infinity() : known_or(kept_[rank_.back()].score, std::numeric_limits<double>::infinity());
    }
    /// Best first.
    std::vector<Kept> sorted() const;

    static bool better(const Kept& x, const Kept& y);

  private:
    std::size_t size_;
    bool times_known_;
    std::vector<Kept> kept_;      // in no order: what is ranked does not move
    std::vector<unsigned> rank_;  // places in kept_, best first
};

/// Everything a search came to.
struct SearchResult {
    std::vector<Kept> best;  ///< first
    Rejected rejected;
    Constraint last{};  ///< the constraint of the candidate that got furthest, for the Infeasible message
    GemmCandidate last_candidate{};

    /// How far a candidate came that was rejected by this constraint: the order of the constraints.
    static constexpr int progress(Reason reason) {
        constexpr int of[reason_count] = {
            /*registers*/ 5, /*shared*/ 6,  /*threads*/ 2, /*instruction*/ 1, /*alignment*/ 3,
            /*cluster*/ 4,   /*latency*/ 7, /*rule*/ 0,    /*dominated*/ 8};
        return of[static_cast<int>(reason)];
    }
    void reject(const Constraint& constraint, const GemmCandidate& candidate, std::int64_t how_many) {
        rejected.reasons[static_cast<int>(constraint.reason)] += how_many;
        if (how_many == 0) return;
        const int further = last ? progress(constraint.reason) - progress(last.reason) : 1;
        if (further < 0 || (further == 0 && !precedes(candidate, last_candidate))) return;
        last = constraint;
        last_candidate = candidate;
    }
};

/// A number of parts of K, as the search weighs it before any constraint is checked.
struct PartsOfK {
    int split_k, grid_split_k;
    WorkOfParts work;         ///< the least with any cluster
    std::int64_t candidates;  ///< of one tile and residency
};

/// Where a family's enumeration of its space sends what it finds.
class GemmVisitor {
  public:
    /// `candidates` of them, of which this is the first, violate the same constraint.
    virtual void reject(const Constraint& constraint, const GemmCandidate& candidate,
                        std::int64_t candidates) = 0;
    /// None of the family's own constraints is violated.
    virtual void accept(const GemmCandidate& candidate, const Footprint& footprint) = 0;
    /// Whether the candidate that was seen last may be among the best where C leaves otherwise.
    virtual bool may_store_otherwise(const GemmCandidate&, const Footprint&) { return false; }
    /// The same candidate, whose C leaves otherwise; taken only where it is faster.
    virtual void accept_otherwise(const GemmCandidate&, const Footprint&) {}
    /// Whether no candidate of this tile can be among the best, with any residency and any parts of K, before any
    /// constraint is checked. `least` has its tiles, the k-steps of K in one piece, and no more cycles of one than
    /// any cluster takes.
    virtual bool beyond(const GemmTile&, const Footprint& /*least*/) { return false; }
    /// The same of a residency: takes out of `parts` those of which it is so, and meets their candidates.
    /// `stages` is the deepest ring.
    virtual void rule_out(const GemmTile&, const Footprint& /*least*/, int /*stages*/,
                          std::vector<PartsOfK>& /*parts*/) {}
    /// Candidates that beyond() spares the enumeration.
    virtual void pass_over(std::int64_t /*candidates*/) {}
    /// Candidates that a rule leaves out.
    virtual void leave_out(const Rule&, std::int64_t /*candidates*/) {}

  protected:
    ~GemmVisitor() = default;
};

/// Sides of the tiles that every family enumerates.
inline constexpr std::array<int, 4> searched_tile_ms{64, 128, 192, 256};
inline constexpr std::array<int, 16> searched_tile_ns{16,  32,  48,  64,  80,  96,  112, 128,
                                                      144, 160, 176, 192, 208, 224, 240, 256};
/// What a dimension of the space enumerates: the request's value, or what is searched.
inline std::span<const int> choices(const std::optional<int>& fixed, std::span<const int> searched) {
    return fixed ? std::span(&*fixed, 1) : searched;
}

/// Stages and orders left free or fixed by the request.
struct InnerSpace {
    int stages_low = min_stages, stages_high = max_stages;
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

/// Sends candidates that their family found no violated constraint for against shared memory and latency, times those that
/// may be among the best, and keeps these.
class GemmSearch final : public GemmVisitor {
  public:
    /// The machine's numbers and the problem outlive it. What takes `bound` seconds or more is not the fastest.
    GemmSearch(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
               double bound = std::numeric_limits<double>::infinity());

    void reject(const Constraint& constraint, const GemmCandidate& candidate,
                std::int64_t candidates) override {
        result_.reject(constraint, candidate, candidates * inner_.size());
    }
    void accept(const GemmCandidate& candidate, const Footprint& footprint) override;
    bool may_store_otherwise(const GemmCandidate& candidate, const Footprint& footprint) override;
    void accept_otherwise(const GemmCandidate& candidate, const Footprint& footprint) override;
    bool beyond(const GemmTile& tile, const Footprint& least) override;
    void rule_out(const GemmTile& tile, const Footprint& least, int stages,
                  std::vector<PartsOfK>& parts) override;
    void pass_over(std::int64_t candidates) override { count_dominated(candidates * inner_.size()); }
    void leave_out(const Rule& rule, std::int64_t candidates) override {
        result_.rejected.add(rule, candidates * inner_.size());
    }

    /// Candidates that were timed under power, of all that were accepted: the others were out of reach without it.
    std::int64_t timed() const { return timed_; }
    SearchResult finish();

  private:
    /// So that the first plans do not depend on how many are asked for.
    static constexpr int ranked = 16;
    /// What is as good as the last kept may be ahead of it by something else, and clocks under power are close,
    /// not exact.
    static constexpr double as_good = 1 + 1e-5;
    /// Of a time: what no model tells apart. So close the closed form's choice stays.
    static constexpr double near_tie = 1e-3;

    /// A candidate whose C leaves otherwise is not counted: it is, as the one that was accepted before it.
    void consider(const GemmCandidate& candidate, const Footprint& footprint, bool counted);
    void time(const GemmCandidate& candidate, const Footprint& footprint, int stages, bool counted);
    const OrderFront& orders(const GemmTile& tile, Effort effort);
    /// Of those that may be the fastest; where it takes longer than `reach`, any that does.
    void take_fastest_order(Kept& kept, GemmTimer& timer, MatrixEnergy energy, double reach);
    void simulate(Kept& kept, Effort effort, double reach);
    /// The fastest of all that take less than `sooner` seconds; every order is simulated of those that may.
    std::optional<Kept> fastest(double sooner);
    double reach(const GemmTile& tile, const TileGrid& tiles);
    void count_dominated(std::int64_t choices) {
        result_.rejected.reasons[static_cast<int>(Reason::dominated)] += choices;
    }

    const GemmHardware& hw_;
    const GemmProblem& problem_;
    GemmTimeFloor floor_;
    PowerLimit power_;
    double compulsory_;  // bytes; NaN: no order's traffic is known, and times do without power
    struct {
        int m = 0, n = 0, warp_m = 0, warp_n = 0;
        MatrixEnergy energy{};          // with every operand moved once
        double reach = 0, clock = 0;  // under power
    } tile_;                          // that was asked for last: candidates come tile by tile
    std::map<std::array<int, 8>, OrderFront> orders_[3];  // by Effort, and by what a tile schedule depends on
    InnerSpace inner_;
    bool simulates_;
    double bound_;
    std::size_t top_;
    bool times_known_;  // of candidates that exchange nothing
    bool by_method_;    // what is known of times is too little to rank by
    struct Open {
        double least;  // seconds, whatever the order
        Kept kept;     // by formula
    };
    std::vector<Open> open_;
    BestList best_;
    double accepted_ = 0;  // score of the candidate that was accepted last
    SearchResult result_{};
    std::int64_t timed_ = 0;
};

/// The constraint of threads and CTAs that one SM or one CTA can hold, whatever the family [M6].
Constraint residency_constraint(const GemmHardware& hw, int threads, int ctas_per_sm);

/// Shared memory one of `ctas_per_sm` CTAs may use, in B [M3]; NaN unknown.
double shared_limit(const GemmHardware& hw, int ctas_per_sm);

/// Enumerates `Family`'s candidates; what takes `bound` seconds or more is not the fastest. A family gives
/// `enumerate(hw, problem, request, visitor)`.
template <class Family>
SearchResult search(const Family& family, const GemmHardware& hw, const GemmProblem& problem,
                    const GemmRequest& request, double bound = std::numeric_limits<double>::infinity()) {
    GemmSearch search(hw, problem, request, bound);
    family.enumerate(hw, problem, request, search);
    return search.finish();
}

}  // namespace rooftile
