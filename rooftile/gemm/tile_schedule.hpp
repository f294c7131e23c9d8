// The tile schedule of a persistent GEMM over C as L2 sees it: which clusters run side by side, which tiles they take,
// and how many bytes each step of each tile asks for.
//
// The simulation's clock is the k-step. All clusters in flight are at the same step of their tiles: cluster i
// takes tiles i, i + clusters, ... of the tile schedule, so tile number q belongs to round q / clusters, and every
// tile has the same number of steps. A step asks L2 for blocks of A, [tile_m][tile_k], and of B,
// [tile_n][tile_k], once each, however many CTAs want them: those that ask at the same time wait for the same
// line. The last `late_clusters` of those in flight lag: each of their steps takes 1 + skew of the others', so
// they ask for what they share ever later. Parts of a split K take turns within a step. After the last step
// of a round its tiles of C are written, and what an epilogue reads for them is read. Blocks have their true size at the edges; what lies outside is not
// asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rooftile/gemm/model.hpp"

namespace rooftile {

struct TileCoordinate;  // kernels/pipeline/tile_order.cuh

struct TileSchedule {
    std::int64_t m = 0, n = 0, k = 0;
    int a_bytes = 2, b_bytes = 2, c_bytes = 2;  ///< of an element
    int operand_bytes = 0;                      ///< that an epilogue reads for an element of C, beside it
    int tile_m = 0, tile_n = 0, tile_k = 0;
    int cluster_m = 1, cluster_n = 1;  ///< CTAs that share B, that share A, by multicast
    int split_k = 1;
    std::int64_t clusters = 0;       ///< in flight at once
    std::int64_t late_clusters = 0;  ///< the last of them, which fall behind
    double skew = 0;                 ///< by this share of every step
    Order order = Order::row;
    int group = 1;
    std::optional<ImageOperand> image{};  ///< that A's rows are places of, A's elements those of its pixels; block by block alone

    std::int64_t tile_rows() const { return ceil_div(m, tile_m); }
    std::int64_t tile_columns() const { return ceil_div(n, tile_n); }
    TileGrid cluster_tiles() const {
        return {ceil_div(tile_rows(), cluster_m), ceil_div(tile_columns(), cluster_n)};
    }
    std::int64_t k_blocks() const { return image ? image->blocks(tile_k) : ceil_div(k, tile_k); }
    /// The first of `clusters` that lags; `clusters` where none does.
    std::int64_t first_late() const { return skew > 0 ? clusters - late_clusters : clusters; }
    std::int64_t rounds() const {
        const auto [rows, columns, products] = cluster_tiles();
        return ceil_div(rows * columns, clusters);
    }
    /// Of an element of C: what is written, and read with it.
    int result_bytes() const { return c_bytes + operand_bytes; }
    /// Bytes of one k of tile row `i` of A, of tile column `j` of B; 0 outside.
    std::int64_t a_line(std::int64_t i) const { return extent(i, tile_m, m) * a_bytes; }
    std::int64_t b_line(std::int64_t j) const { return extent(j, tile_n, n) * b_bytes; }
    std::int64_t c_tile(std::int64_t i, std::int64_t j) const {
        return extent(i, tile_m, m) * extent(j, tile_n, n) * result_bytes();
    }

  private:
    static std::int64_t extent(std::int64_t index, std::int64_t tile, std::int64_t all) {
        const std::int64_t left = all - index * tile;
        return left < 0 ? 0 : left < tile ? left : tile;
    }
};

/// The tile schedule of a plan's tile in one order, as many clusters in flight as `hw` has room for. Empty where the
/// count of SMs is unknown.
std::optional<TileSchedule> tile_schedule_of(const GemmHardware& hw, const GemmConfig& tile,
                                             const GemmProblem& problem, Order order, int group);

/// Throws RequestError where a size is below 1 or there are too many tiles to simulate.
void check(const TileSchedule& tile_schedule);

/// The cluster tiles in the order in which the kernel meets them.
std::vector<TileCoordinate> scheduled_tiles(const TileSchedule& tile_schedule);

/// Position in time of the blocks of K, of which split_k parts are taken side by side: the block at each
/// position. Part p has the blocks from p * ceil(blocks / split_k) on, as in the kernel.
std::vector<std::int64_t> k_sequence(const TileSchedule& tile_schedule);

/// Bytes that one launch moves, by level, and how its steps met L2.
struct GemmTraffic {
    std::int64_t sm_bytes = 0;                        ///< of A and B that arrive in SMs
    std::int64_t l2_read_bytes = 0;                   ///< of A and B that leave L2; a multicast counts once
    std::int64_t l2_write_bytes = 0;                  ///< of C
    std::int64_t dram_a_bytes = 0, dram_b_bytes = 0;  ///< read
    std::int64_t dram_c_bytes = 0;                    ///< written, each dirty line once
    std::int64_t dram_operand_bytes = 0;              ///< read by an epilogue, once
    std::int64_t fabric_bytes = 0;  ///< from one half of L2 to the other, where there are two
    std::int64_t steps = 0;         ///< k-steps of all CTAs that stand in C
    /// Steps whose block of A, of B, of both, was in L2, or on its way there because another cluster had
    /// asked.
    std::int64_t a_hits = 0, b_hits = 0, both_hits = 0;
    std::int64_t dram_waits =
        0;  ///< steps that begin with A or B not in L2, whoever asked: they wait for DRAM

    std::int64_t dram_bytes() const { return dram_a_bytes + dram_b_bytes + dram_c_bytes + dram_operand_bytes; }
    double hit_rate() const { return 1 - double(dram_a_bytes + dram_b_bytes) / double(l2_read_bytes); }
    double both_hit_share() const { return double(both_hits) / double(steps); }
    double wait_share() const { return double(dram_waits) / double(steps); }
    friend bool operator==(const GemmTraffic&, const GemmTraffic&) = default;
};

/// What does not depend on the cache: bytes into SMs and through L2, C's way out, and the count of steps.
GemmTraffic fixed_traffic(const TileSchedule& tile_schedule);

}  // namespace rooftile
