// A plan for a chain of two products: in which form its intermediate passes from one to the other, what that moves and takes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/chain/problem.hpp"
#include "rooftile/core/bound.hpp"
#include "rooftile/core/value.hpp"
#include "rooftile/tiled/row_chunks.hpp"

namespace rooftile {

enum class ChainForm : std::uint8_t {
    two_kernels,  ///< each at its best by itself
    carry_over,   ///< two kernels; the second takes its tiles from the last of the first's on, which L2 still holds
    persistent,   ///< one kernel that takes chunks of rows through both products
    on_chip,      ///< one kernel whose CTAs keep their rows of H in registers
};
std::string_view name_of(ChainForm form);
inline constexpr std::size_t chain_forms = 4;

std::string_view name_of_order(Order order);

/// How the kernel that keeps H on chip is cut; knobs.def says what each is. Of weights that stay there is a stage for each block.
struct ChainTile {
#define ROOFTILE_KNOB(TYPE, NAME, PRESET, ...) TYPE NAME = PRESET;
#include "rooftile/chain/knobs.def"
#undef ROOFTILE_KNOB

    static constexpr int warpgroup_m = 64;
    int consumer_warpgroups() const { return tile_m / warpgroup_m; }
    friend bool operator==(const ChainTile&, const ChainTile&) = default;
};

/// One of the two products as L2 sees it: a persistent grid over the tiles of its result.
struct ChainProduct {
    std::int64_t m = 0, n = 0, k = 0;
    int tile_m = 0, tile_n = 0, tile_k = 0;
    int cluster_m = 1, cluster_n = 1, k_parts = 1, stages = 1;
    std::int64_t clusters = 1;  ///< in flight
    std::int64_t late_clusters = 0;
    double skew = 0;            ///< by which the last of them fall behind
    Order order = Order::row;
    int group = 1;
    bool pingpong = false;      ///< a tile is stored while another one is multiplied on its SM
    bool reverse = false;       ///< from the last tile of that order to the first
};

/// Bytes between DRAM and the chip of one tensor.
struct ChainTensorTraffic {
    std::string_view name;
    std::int64_t read = 0, written = 0;
    std::int64_t asked = 0;  ///< of L2, by each cluster's reads: a hit is what of it was not read from DRAM, as of a single product
    std::int64_t all() const { return read + written; }
};

/// Where a simulation stood: bytes of each tensor so far, in the order of ChainTraffic::tensors.
struct ChainSample {
    std::int64_t steps = 0, both_hits = 0;
    std::vector<std::int64_t> asked{}, read{};
};

/// Of an extent only a part was followed through L2, and half of it.
struct ChainPart {
    std::string_view extent;
    std::int64_t followed = 0, whole = 0;
};

struct ChainTraffic {
    std::vector<ChainTensorTraffic> tensors;  ///< X, W1, H, W2, Y; where H stays on chip without it
    std::vector<ChainSample> samples{};       ///< of two kernels and of the persistent one, some hundred at even distances
    std::vector<ChainPart> parts{};           ///< empty: all of it was followed
    std::array<std::int64_t, 2> of_kernel{};  ///< read by each of two kernels, and written by it or for it later
    std::int64_t steps = 0, both_hits = 0;    ///< steps of tiles; those whose operands were both in L2 [M40]
    std::int64_t dram_bytes() const {
        std::int64_t sum = 0;
        for (const ChainTensorTraffic& t : tensors) sum += t.all();
        return sum;
    }
    std::int64_t asked_bytes() const {
        std::int64_t sum = 0;
        for (const ChainTensorTraffic& t : tensors) sum += t.asked;
        return sum;
    }
};

struct ChainConfig {
    ChainForm form = ChainForm::two_kernels;
    std::array<ChainProduct, 2> products{};  ///< of forms of two kernels, and of the persistent one, which has their tiles
    std::int64_t chunk_rows = 0;             ///< of the persistent form: rows that go through both products together
    int room_chunks = 2;                     ///< of the persistent form: chunks of H that there is room for
    ChainTile tile{};                        ///< of form on_chip
};

inline RowChunks chunks_of(const ChainConfig& config) { return {config.chunk_rows, config.room_chunks}; }

struct ChainPrediction {
    std::optional<double> time_us, tflops;
    std::optional<Bound> bound;
    std::optional<std::int64_t> dram_bytes, l2_bytes;
    std::int64_t dram_lower_bound_bytes = 0;                    ///< of the chain
    std::optional<std::int64_t> dram_sum_of_bounds_bytes = {};  ///< of its products by themselves [M33]
    std::optional<double> both_hit_share = {};                  ///< M40
    ChainTraffic traffic{};
};

struct ChainPlan {
    std::string arch;
    ChainProblem problem;
    ChainConfig config;
    ChainPrediction prediction;
    std::array<Record, 2> part_configs{};  ///< as the parts' operation shows them
    std::optional<std::int64_t> threads{}, shared_bytes{}, accumulator_registers{}, producer_registers{}, consumer_registers{};
    std::int64_t workspace_bytes = 0;
};

/// Traffic that was followed, by all that it depends on: no rate of the machine is among that.
using FollowedTraffic = std::map<std::string, ChainTraffic>;

/// What a caller fixes; the rest is searched.
struct ChainRequest {
    std::optional<ChainForm> form{};
#define ROOFTILE_KNOB(TYPE, NAME, ...) std::optional<TYPE> NAME{};
#include "rooftile/chain/knobs.def"
#undef ROOFTILE_KNOB
    std::optional<std::int64_t> chunk_rows{};
    std::optional<int> room_chunks{};
    int top = 8;
    bool flips = false;           ///< say also from where on another form is the first
    bool first_only = false;      ///< only the first plan is wanted: forms that cannot be it may be left out
    bool coarse = false;          ///< follow little of the traffic: many plans are made, and it may err by some percent
    std::shared_ptr<FollowedTraffic> followed{};  ///< of plans made before, where many are made; may be null
    bool exhaustive = false;      ///< search also what rules leave out
    bool buildable_only = false;  ///< leave out what no kernel can be compiled for
};

}  // namespace rooftile
