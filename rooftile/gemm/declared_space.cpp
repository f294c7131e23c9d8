#include "rooftile/gemm/declared_space.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "rooftile/gemm/hardware.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/knobs.hpp"

namespace rooftile {
namespace {

constexpr std::array declared_on_m{64, 128, 192, 256};
constexpr std::array declared_on_n{8, 16, 32, 48, 64, 96, 128, 192, 256};
constexpr std::array declared_splits{1, 2, 3, 4, 6, 8};

/// Those of `sides` that cut `extent` into fewer pieces than every smaller one does.
std::vector<int> useful(std::span<const int> sides, std::int64_t extent) {
    std::vector<int> out;
    for (const int side : sides)
        if (out.empty() || ceil_div(extent, side) < ceil_div(extent, out.back())) out.push_back(side);
    return out;
}

struct Pair {
    int m, n;
};

/// One tile with everything that the rule says of it.
class DeclaredTile {
  public:
    DeclaredTile(const std::shared_ptr<const Machine>& machine, const GemmProblem& problem, const GemmHardware& hw,
                 std::vector<GemmPlan>& plans)
        : machine_(machine), problem_(problem), hw_(hw), plans_(plans) {}

    void add(int tile_m, int tile_n, bool swap_ab) {
        request_ = {.kernel = &best_gemm_kernel(*machine_),
                    .tile_m = tile_m, .tile_n = tile_n, .swap_ab = swap_ab, .top = 1, .buildable_only = true};
        const std::int64_t rows = ceil_div(problem_.m, tile_m), columns = ceil_div(problem_.n, tile_n);
        // CTAs side by side share columns of B, CTAs of one row of tiles share rows of A.
        const Pair pair = tile_n >= tile_m ? Pair{2, 1} : Pair{1, 2};
        const bool paired = pair.m <= rows && pair.n <= columns;
        const double tiles = double(rows) * double(columns);
        const int side = (swap_ab ? tile_n : tile_m) / 64;
        for (const Pair cluster : {Pair{1, 1}, pair}) {
            if (cluster.m * cluster.n > 1 && !paired) continue;
            request_.cluster_m = cluster.m, request_.cluster_n = cluster.n;
            for (const int split_k : declared_splits) {
                if (split_k > 1 && (tiles >= 2 * hw_.sms || split_k > ceil_div(problem_.k, 64))) break;
                add(Schedule::cooperative, side == 4 ? 2 : side, split_k, 1);
                const double ctas = double(ceil_div(rows, cluster.m) * cluster.m * ceil_div(columns, cluster.n) * cluster.n) * split_k;
                const double fill = cta_slots(hw_, cluster.m * cluster.n * split_k, 1) / ctas;
                for (const double pieces : {std::floor(fill), std::floor(fill / 2)})
                    if (pieces >= 2) add(Schedule::cooperative, side == 4 ? 2 : side, split_k, int(pieces));
            }
            add(Schedule::pingpong, 2, 1, 1);
        }
    }

  private:
    void add(Schedule schedule, int warpgroups, int split_k, int grid_split_k) {
        request_.schedule = schedule;
        request_.consumer_warpgroups = warpgroups;
        request_.split_k = split_k;
        request_.grid_split_k = grid_split_k;
        auto found = derive(machine_, problem_, request_);
        if (auto* plans = std::get_if<Plans>(&found)) plans_.push_back(std::move(plans->plans.front()));
    }

    const std::shared_ptr<const Machine>& machine_;
    const GemmProblem& problem_;
    const GemmHardware& hw_;
    std::vector<GemmPlan>& plans_;
    GemmRequest request_;
};

// DeepGEMM's rule, below.
constexpr int widest_n = 256, tall_m = 256;
constexpr double port_rate = 128;  // a cycle that one SM takes from shared memory and L1, as the rule has it

struct Block {
    int m, n;
    Pair cluster;
    double cycles, efficiency;
};

Block scored(const GemmProblem& p, double sms, double l2_bytes, int m, int n, Pair cluster) {
    const double tiles = double(ceil_div(p.m, m)) * double(ceil_div(p.n, n));
    const double waves = whole_up(tiles / sms), efficiency = tiles / (waves * sms);
    const double asked = tiles * double(p.k) * 2 * (double(m) / cluster.n + double(n) / cluster.m);
    const double in = tiles * double(p.k) * 2 * (m + n), out = double(p.m) * double(p.n) * 2;
    const double cycles = std::max((in + out) / (port_rate * sms), (asked + out) / l2_bytes) / efficiency;
    return {m, n, cluster, cycles, efficiency};
}

}  // namespace

std::string_view gemm_space_rule() {
    return "sm90_gemm with 64, 128, 192 or 256 on the matrix instruction's m and 8, 16, 32, 48, 64, 96, 128, "
           "192 or 256 on its "
           "n, A and B swapped or not, as far as a size cuts C into fewer tiles than every smaller one; each "
           "with a "
           "cooperative warpgroup for every 64 on m (256: two) and with two in pingpong, without a cluster "
           "and with the "
           "pair that shares the larger operand tile, and K of the cooperative ones whole and, below two "
           "waves of tiles, in "
           "2, 3, 4, 6 and 8 parts; and each of these in as many pieces besides as fill one wave, and in half of them. Every other value is the planner's choice for these; the plans that it "
           "keeps without any of "
           "them fixed are members, and so are the picks of others.";
}

std::span<const std::string_view> gemm_space_keys() {
    static constexpr std::string_view keys[] = {
        "kernel",   "tile_m",  "tile_n",    "tile_k",    "consumer_warpgroups",
        "schedule", "swap_ab", "cluster_m", "cluster_n", "split_k", "grid_split_k"};
    return keys;
}

std::vector<GemmPlan> gemm_space(const std::shared_ptr<const Machine>& machine, const GemmProblem& problem) {
    std::vector<GemmPlan> plans;
    if (problem.is_quantised()) return plans;  // the rule is of whole operands
    const GemmKernel& kernel = best_gemm_kernel(*machine);
    std::vector<std::string> unknown;
    const GemmHardware hw =
        gemm_hardware(*machine, kernel.instruction(*machine, problem.a_type), problem.a_type, unknown);
    DeclaredTile tile(machine, problem, hw, plans);
    for (const int on_m : useful(declared_on_m, problem.m))
        for (const int on_n : useful(declared_on_n, problem.n)) tile.add(on_m, on_n, false);
    for (const int on_n : useful(declared_on_n, problem.m))
        for (const int on_m : useful(declared_on_m, problem.n)) tile.add(on_n, on_m, true);
    return plans;
}

// Blocks of 64 or 128 rows (16 and 32 where C has no more, 256 beside at most 128 columns) by 16 to 256 columns in steps of
// 16; a pair of CTAs along either side where it divides the tiles and they fill more than a wave. The best takes the fewest
// cycles for the bytes that its tiles pull through the SMs' ports or out of L2, whichever is slower, over the share of the
// waves' slots that hold a tile; among equals the later block, the larger. Products and DRAM are alike for all blocks, so the
// rule leaves them out, and K is never split. L2's rate is that of our machine.
std::vector<Pick> gemm_picks(const Machine& machine, const GemmProblem& p) {
    if (p.is_quantised()) return {};
    const GemmKernel& kernel = best_gemm_kernel(machine);
    std::vector<std::string> unknown;
    const GemmHardware hw = gemm_hardware(machine, kernel.instruction(machine, p.a_type), p.a_type, unknown);
    if (kernel.instruction(machine, p.a_type) != "wgmma" || std::isnan(hw.l2_share) || std::isnan(hw.sms))
        return {};
    const double l2_bytes = hw.l2_share * hw.sms;
    std::vector<int> heights{64, 128, tall_m};
    if (p.m <= 32) heights.insert(heights.begin(), 32);
    if (p.m <= 16) heights.insert(heights.begin(), 16);
    std::optional<Block> best;
    for (const int m : heights)
        for (int n = 16; n <= widest_n; n += 16) {
            if (m > 128 && n > 128) continue;
            const std::int64_t rows = ceil_div(p.m, m), columns = ceil_div(p.n, n);
            const bool one_wave = double(rows) * double(columns) <= hw.sms;
            for (const Pair cluster : {Pair{1, 1}, Pair{2, 1}, Pair{1, 2}}) {
                const bool pair = cluster.m * cluster.n > 1;
                if (pair && (one_wave || rows % cluster.m != 0 || columns % cluster.n != 0)) continue;
                const Block block = scored(p, hw.sms, l2_bytes, m, n, cluster);
                if (!best || block.cycles <= best->cycles) best = block;
            }
        }
    // Rows below 64 stand on the instruction's n; the columns then go in steps of 64.
    Pick pick{.name = "deepgemm", .alternatives = {}};
    const auto offer = [&](int n, Pair cluster, bool swap) {
        Given& given = pick.alternatives.emplace_back(Given::Named::by_key);
        given.add("tile", fmt::format("{}x{}x64", best->m, n));
        given.add("cluster", fmt::format("{}x{}", cluster.m, cluster.n));
        given.add("swap_ab", swap ? "on" : "off");
        given.add("schedule", "cooperative");
        given.add("split_k", "1");
        given.add("grid_split_k", "1");
    };
    const bool swap = best->m < 64;
    const int n = swap ? 64 * int(ceil_div(best->n, 64)) : best->n;
    offer(n, best->cluster, swap);
    offer(n, {1, 1}, swap);
    return {pick};
}

Given gemm_given_of_config(const Record& record) {
    const GemmRequest fixed = fixed_to(config_of(record));
    Given given = given_of<GemmKnobs>(fixed);
    given.add("kernel", std::string(name_of(fixed.kernel)));
    return given;
}

}  // namespace rooftile
