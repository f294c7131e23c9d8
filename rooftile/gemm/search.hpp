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

/// The order of candidates where nothing else tells them apart, whichever the search meets first.
inline bool precedes(const GemmCandidate& x, const GemmCandidate& y) {
    if (x.swap_ab != y.swap_ab) return y.swap_ab;
    return x.tile_m != y.tile_m ? x.tile_m < y.tile_m : x.tile_n < y.tile_n;
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

/// Its rule, with what is needed and available.
std::string words_of(const Constraint& constraint);

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
    GemmTime time{};
    Waves waves{};
    double dram = 0;
    double score = 0;  ///< seconds; NaN where they are unknown, and rank_by_method() decides
    std::array<double, 5> by_method{};
    Effort effort = Effort::formula;  ///< that the order was chosen with
};

/// What ranks a plan where its time cannot be told, the lesser the better, figure by figure [M8]. Of an unknown number of SMs: whether the FLOP a
/// loaded byte reach peak / bandwidth; then the fewest stages that cover the latency; the most FLOP a byte; the most CTAs an SM, then threads; the
/// longest k-step up to 128 B of a row. Else first the time that an SM takes for its tiles when what they load comes from DRAM, nothing of it shared and nothing overlapped.
std::array<double, 5> rank_by_method(const GemmHardware& hw, const GemmProblem& problem, const Kept& kept);
/// FLOP of the problem a byte that its tiles load, each for itself: F / D of whole tiles, less where they stand out of C [M1].
double flops_a_loaded_byte(const GemmProblem& problem, const GemmConfig& tile);

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
    Constraint nearest{};  ///< of the rejected candidate that came nearest to being accepted, for the Infeasible message
    GemmCandidate nearest_candidate{};

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
        const int further = nearest ? progress(constraint.reason) - progress(nearest.reason) : 1;
        if (further < 0) return;
        // Of capacities a ratio says how near a candidate came; other rules are met or not.
        const bool capacity = constraint.reason == Reason::registers || constraint.reason == Reason::shared || constraint.reason == Reason::threads;
        const double excess = capacity ? constraint.needed / constraint.available : 1, least = capacity ? nearest.needed / nearest.available : 1;
        if (further == 0 && !(excess < least) && (excess > least || !precedes(candidate, nearest_candidate))) return;
        nearest = constraint;
        nearest_candidate = candidate;
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
    virtual void accept(const GemmCandidate& candidate) = 0;
    /// Whether the candidate that was seen last may be among the best where C leaves otherwise.
    virtual bool may_store_otherwise(const GemmCandidate&) { return false; }
    /// The same candidate, whose C leaves otherwise; taken only where it is faster.
    virtual void accept_otherwise(const GemmCandidate&) {}
    /// Whether no candidate of this tile can be among the best, with any residency and any parts of K, before any
    /// constraint is checked. `least` has its tiles, the k-steps of K in one piece, and no more cycles of one than
    /// any cluster takes.
    virtual bool beyond(const GemmCandidate& /*least*/) { return false; }
    /// The same of a residency: takes out of `parts` those of which it is so, and meets their candidates.
    /// `stages` is the deepest ring.
    virtual void rule_out(const GemmCandidate& /*least*/, int /*stages*/, std::vector<PartsOfK>& /*parts*/) {}
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
    void accept(const GemmCandidate& candidate) override;
    bool may_store_otherwise(const GemmCandidate& candidate) override;
    void accept_otherwise(const GemmCandidate& candidate) override;
    bool beyond(const GemmCandidate& least) override;
    void rule_out(const GemmCandidate& least, int stages, std::vector<PartsOfK>& parts) override;
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
    void consider(const GemmCandidate& candidate, bool counted);
    void time(const GemmCandidate& candidate, int stages, bool counted);
    const OrderFront& orders(const GemmConfig& tile, Effort effort);
    /// Of those that may be the fastest; where it takes longer than `reach`, any that does.
    void take_fastest_order(Kept& kept, GemmTimer& timer, MatrixEnergy energy, double reach);
    void simulate(Kept& kept, Effort effort, double reach);
    /// The fastest of all that take less than `sooner` seconds; every order is simulated of those that may.
    std::optional<Kept> fastest(double sooner);
    double reach(const GemmCandidate& candidate);
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
