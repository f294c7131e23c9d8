// The physics of a tiled GEMM: what one k-step costs at every level, what crosses each level, and the time
// that follows. Pure functions over plain numbers; NaN stands for an unknown one and spreads only into what
// needs it.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/gemm/hardware.hpp"
#include "rooftile/gemm/plan.hpp"

namespace rooftile {

/// The cluster tiles that each C of a batch is cut into; those at the edges may stand partly outside.
struct TileGrid {
    std::int64_t rows, columns;
    std::int64_t products = 1;  ///< of the batch
    double count() const { return double(rows) * double(columns) * double(products); }
};

/// A ring needs two stages; 32 of the smallest tile are more than any SM holds.
inline constexpr int min_stages = 2, max_stages = 32;

/// `group` counts rows of cluster tiles; 1 where the order has none.
struct OrderChoice {
    Order order;
    int group;
    friend bool operator==(const OrderChoice&, const OrderChoice&) = default;
};

/// Cycles of one SM for one k-step of one tile, by resource.
struct StepCycles {
    double tensor, shared;
    double l2;        ///< at L2's bandwidth, all SMs pulling
    double port = 0;  ///< at what one SM asks of L2 at most
};

/// How C leaves, as far as it is asked for; empty and 0: as the rest leaves room.
struct StoreAsked {
    std::optional<bool> overlapped{};
    int tile_n = 0;
};

/// One point of a kernel family's space: its choices, of which the search sets those that it varies, and what the family's examine()
/// makes of them. Stages, order and, with C as it is asked to leave, the epilogue's tile and overlap are chosen last.
struct GemmCandidate : GemmConfig {
    static constexpr double no_stages_limit = 1e9;
    StoreAsked asked{};
    bool seldom = false;  ///< taken only where no other is nearly as fast

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

    int warp_m = 0, warp_n = 0;        ///< block of C whose A and B are read from shared memory once a k-step
    bool epilogue_overlapped = false;  ///< the next tile's products run while this one is stored
    bool turn_overlapped = false;      ///< another warpgroup multiplies while this one changes tiles
    /// How a tile of C leaves: each warp sends `store_boxes` boxes, `store_depth` of them in flight. 0 boxes:
    /// as fast as the port takes it.
    int store_boxes = 0, store_depth = 1;
    bool operand_staged = false;  ///< an epilogue's operand comes by as many boxes, each where one of C will leave
    int operand_turns = 0;        ///< of a thread and tile: loads of an epilogue's operands from L2, one after the other
    bool by_element = false;  ///< or two bytes at a time, which a thread has side by side or, turned, one above the other
    bool turned = false;
    bool by_rows = false;  ///< by 16 bytes amid a row, and by element at its ends
    /// Warpgroups on one tile that add up their products in registers of their own after each k-step; 0: the matrix units do.
    int promoting_warpgroups = 0;
    double step_floor = 0;  ///< cycles of a CTA's k-step at least, whose parts wait for each other; beside the machine's
    double start = 0;       ///< cycles of a wave, beside what all kernels begin and end with

    OrderChoice order_choice() const { return {order, group}; }
    /// Tiles and k-steps of a tile that no cluster shares, and what a step takes.
    void set_work(const GemmHardware& hw, const GemmProblem& problem);
    /// From here on `step` is that of this order.
    void take_order(const OrderChoice& choice, const GemmHardware& hw, const GemmProblem& problem);
    int shared_bytes(int depth) const { return depth * (stage_bytes + stage_overhead) + reserved_bytes; }
    /// Cycles of a k-step of the slowest resource.
    double pace() const { return max_known(step.tensor, max_known(step.shared, max_known(step.l2, step.port))); }
    /// Stages that (stages - 1) steps of the slowest resource need to cover the latency [M5]. A ring deeper
    /// than the K loop has nothing to fetch, so a short K asks for no more than it has steps.
    int stages_against_latency(double dram_latency) const {
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

inline TileGrid cluster_grid(const GemmProblem& p, int tile_m, int tile_n, int cluster_m, int cluster_n) {
    if (p.groups) return {p.groups->tiles(std::int64_t{tile_m} * cluster_m), ceil_div(p.n, std::int64_t{tile_n} * cluster_n), 1};
    return {ceil_div(p.m, std::int64_t{tile_m} * cluster_m), ceil_div(p.n, std::int64_t{tile_n} * cluster_n), p.batch};
}
/// Rows of tiles that read the same B: of groups the mean of those that have any.
inline double rows_a_matrix(const GemmProblem& p, const TileGrid& tiles) {
    return p.groups ? double(tiles.rows) / double(p.groups->with_rows()) : double(tiles.rows);
}
inline TileGrid cluster_grid(const GemmProblem& problem, const GemmConfig& t) {
    return cluster_grid(problem, t.tile_m, t.tile_n, t.cluster_m, t.cluster_n);
}

/// Clusters one after the other in the tile schedule that read the same rows of A, and the same columns of B; 1: none.
struct Neighbours {
    double a, b;
};
/// `clusters` counts cluster tiles of C. A tile schedule that turns at every step has none.
Neighbours neighbours(const TileGrid& clusters, Order order, int group);
inline Neighbours neighbours(const GemmProblem& problem, const GemmConfig& t, Order order, int group) {
    TileGrid clusters = cluster_grid(problem, t);
    if (problem.groups) clusters.rows = ceil_div(clusters.rows, problem.groups->with_rows());
    return neighbours(clusters, order, group);
}

StepCycles step_cycles(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem,
                       const Neighbours& neighbours);
/// The same in the order that asks least of L2: no order takes fewer.
StepCycles step_cycles(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem);
/// Its `l2` and `port` alone: all that a cluster and, of l2, the order change.
double l2_step_cycles(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
                      const Neighbours& neighbours);
/// Least of all orders; `tiles` counts those of CTAs.
double l2_step_cycles(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
                      const TileGrid& tiles);
/// What L2 sends for A and B, as many times as where all of their rows begin on lines; 1: they do. Off them a row's ends are in sectors of which
/// it needs a part. Multicast is not counted: it is the same for all clusters.
double sent_off_line(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem, const TileGrid& tiles);
/// Cycles of a k-step in which one of a tile's promoting warpgroups has nothing to overlap its own work with: products of 64 rows, until
/// they are seen, and their additions, one wgmma after the other. 0 where none promotes.
double promoting_step_cycles(const GemmHardware& hw, const GemmCandidate& tile);
double port_step_cycles(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem);
/// Rows of A and columns of B, tile_k deep, that reach L2 for a k-step of one CTA: what a cluster shares by
/// multicast is asked for once, and of what neighbours load alike about l2.coalesced loads become one.
struct L2Rows {
    double a, b;
};
L2Rows l2_rows(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem,
               const Neighbours& neighbours);
/// The same that one CTA asks for itself, through its SM's port; the rest comes by multicast.
inline L2Rows own_rows(const GemmConfig& t, const GemmProblem& p) {
    const double a = min_known(t.tile_m, double(p.m)), b = min_known(t.tile_n, double(p.n));
    return {t.cluster_n == 1 ? a : a / t.cluster_n, t.cluster_m == 1 ? b : b / t.cluster_m};
}
/// Bytes that one k-step writes into an SM's shared memory and the instructions read from it.
struct SharedBytes {
    double written, read;
};
SharedBytes shared_step_bytes(const GemmCandidate& tile, int element_bytes);

/// k-steps that one CTA takes for one tile, the longest part of K.
inline std::int64_t k_steps(const GemmConfig& tile, const GemmProblem& problem) {
    return ceil_div(problem.k_blocks(tile.tile_k), tile.k_parts());
}

/// Cycles from the last product of a tile to its sum over the parts of K: every CTA writes its fp32 sums to
/// shared memory, the cluster synchronises, every CTA reads its share of them from all parts [M22, M39]. With K in pieces
/// every CTA then writes its share to L2 and counts itself there, and the last one reads that of all pieces. 0 where K is
/// not split.
double exchange_cycles(const GemmHardware& hw, const GemmConfig& tile);

/// Of it, what pieces of K take; 0 where there is one.
double pieces_cycles(const GemmHardware& hw, const GemmConfig& tile);

inline double matrix_bytes(std::int64_t rows, std::int64_t columns, Type type) { return double(rows) * double(columns) * bytes_of(type); }

/// What the tiles of the whole problem ask for: A once for each column of tiles, B once for each row, C
/// written.
double asked_bytes(const GemmConfig& tile, const GemmProblem& problem);
/// What leaves L2: the same, less what multicast shares.
double l2_bytes(const GemmConfig& tile, const GemmProblem& problem);
/// Of what comes from DRAM, the share that crosses from one half of L2 to another: lines that somebody reads
/// who is not on their side.
double crossing_share(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem);

/// Bytes of each operand that cross to or from DRAM. NaN unknown.
struct OperandBytes {
    double a, b, c;
    double sum() const { return c + (a + b); }
};

/// The DRAM traffic of one tiling in any order. What does not depend on the order is worked out once. Of a batch each product
/// meets an L2 that holds nothing of it, but for an operand that all of them share and that stays there.
class ScheduleTraffic {
  public:
    ScheduleTraffic(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem);
    /// Bytes read from DRAM after reuse in L2, and C written. `group` counts rows of (cluster) tiles.
    double dram(Order order, int group) const { return dram_by_operand(order, group).sum(); }
    OperandBytes dram_by_operand(Order order, int group) const;
    /// Bytes with every operand moved once: no order moves less.
    double least() const;
    /// The same of one product, of groups the longest: what must find room in L2.
    double least_of_one() const { return alike_.empty() ? a_ + b_ + c_ : alike_.back().least_of_one(); }

  private:
    /// Of a product of so many rows, which stands for `products` of them.
    ScheduleTraffic(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem, double rows, double products);
    OperandBytes of_one(Order order, int group) const;
    /// Times the image comes where L2 does not hold the tiles in flight until all of their taps have read them; 1 where it does, and of a matrix.
    double times_of_taps() const;
    OperandBytes with_taps(OperandBytes reads) const;
    OperandBytes of_batch(const OperandBytes& one) const;
    /// A tile schedule in bands of rows; down the columns the operands change their parts.
    struct Bands {
        double a, b;                     // B
        double rows, columns;            // tiles
        double a_row, b_column, c_tile;  // B of one
        double rows_a_wave;
    };
    Bands bands(double a, double b, double rows, double columns) const;
    /// Of the operand of the rows, and of that of the columns.
    struct Reads {
        double rows, columns;
    };
    Reads reads(const Bands& tile_schedule, double height) const;

    double a_, b_, c_;       // B: each operand of one product once
    double again_;     // times an image's elements are used by taps: 1 of a matrix
    bool of_b_;        // is the image
    double products_;  // or groups that have rows
    bool a_shared_, b_shared_;  // by all products
    double rows_, columns_;  // tiles of C
    double slots_;           // CTAs that run at once
    double l2_;
    int cluster_m_, cluster_n_;
    Bands down_;
    std::vector<ScheduleTraffic> alike_;  ///< groups of unlike counts, by their counts; else empty
};

struct Waves {
    std::int64_t tiles = 0;  ///< of C, whole clusters
    double slots = 0;        ///< CTAs the GPU runs at once
    double waves = 0;        ///< ceil(tiles * k_parts / slots)
    double efficiency = 0;   ///< tiles * k_parts / (waves * slots)
};
Waves waves(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem);
/// CTAs that the GPU runs at once in clusters of so many. NaN unknown.
double cta_slots(const GemmHardware& hw, int cluster_ctas, int ctas_per_sm);

/// Of a tile's elements, those of one result: half where columns of B come in pairs; and of all.
inline double result_share(const GemmProblem& p) { return double(p.result_n()) / double(p.n); }
inline double stored_share(const GemmProblem& p) { return result_share(p) * double(p.results()); }
/// B/clk that each SM stores of C when all do, as the tile leaves.
double store_rate(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem);
/// Cycles of a tile in which a warp waits for an epilogue's operands that have an element for each of C.
double operand_wait_cycles(const GemmHardware& hw, const GemmCandidate& tile);
/// Of a tile: the issue slots of its epilogue's operators.
double epilogue_issue_cycles(const GemmHardware& hw, const GemmConfig& tile, const GemmProblem& problem);
/// The same, its operands through the SM's port, and the waits for them.
double epilogue_cycles(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem);
/// Cycles from a tile's last sum to the last of its stores, every warp storing box after box.
double store_cycles(const GemmHardware& hw, const GemmCandidate& tile, const GemmProblem& problem, double latency);

}  // namespace rooftile
