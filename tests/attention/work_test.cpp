// The model against counting: every block looked at pair by pair, tiles handed out one by one, the clock by its power.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "rooftile/attention/model.hpp"
#include "rooftile/attention/space.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

struct Drawn {
    AttentionProblem problem;
    AttentionConfig config;
    AttentionHardware hw;
};

Drawn drawn(Random& random) {
    Drawn d;
    AttentionProblem& p = d.problem;
    p.kv_heads = random.whole(1, 4), p.heads = p.kv_heads * random.whole(1, 4);
    p.batch = random.whole(1, 3);
    p.queries = random.whole(1, 400), p.keys = random.whole(1, 400);
    p.dim = 8 * random.whole(1, 32), p.dim_v = 8 * random.whole(1, 32);
    p.mask = AttentionMask(random.pick(3)), p.window = random.whole(1, 400);
    p.log_sum_exp = random.coin();
    if (random.one_in(3)) {
        for (int i = 0; i < p.batch; ++i) p.lengths.push_back(random.one_in(4) ? 0 : random.whole(1, 300));
        p.queries = p.keys = *std::ranges::max_element(p.lengths);
    }
    d.config.tile_q = int(64 * random.whole(1, 3)), d.config.tile_kv = int(16 * random.whole(1, 16));
    d.config.stages = int(random.whole(1, 4));
    d.config.schedule = random.coin() ? Schedule::pingpong : Schedule::cooperative;
    d.config.section_heads = random.whole(1, p.heads_of_all());
    static const AttentionHardware machines[] = {[] {
                                                     std::vector<std::string> unknown;
                                                     return attention_hardware(machine_by_id("h200-sxm"), Type::bf16, unknown);
                                                 }(),
                                                 [] {
                                                     std::vector<std::string> unknown;
                                                     return attention_hardware(machine_by_id("h100-sxm"), Type::bf16, unknown);
                                                 }()};
    d.hw = machines[random.pick(2)];
    // Few SMs, so that tiles wait for one another; an L2 that holds a few heads, or all.
    if (random.coin()) d.hw.sms = double(random.whole(1, 12));
    if (random.coin()) d.hw.l2_bytes = random.log_uniform(1e4, 1e7);
    return d;
}

/// The definition: query i of S stands at key i + T - S.
bool sees(const AttentionProblem& p, std::int64_t queries, std::int64_t keys, std::int64_t i, std::int64_t key) {
    const std::int64_t place = i + keys - queries;
    if (i >= queries || key >= keys) return false;
    if (p.mask == AttentionMask::none) return true;
    return key <= place && (p.mask == AttentionMask::causal || key > place - p.window);
}

struct Tile {
    int blocks = 0, masked = 0;
};
/// What a head has, counted pair by pair.
struct Counted {
    std::vector<Tile> tiles;  ///< first to last
    std::int64_t seeing = 0, seen = 0;
    double pairs = 0;

    explicit Counted(const Drawn& d) {
        const AttentionProblem& p = d.problem;
        for (std::int64_t s = 0; s < p.sequences(); ++s) {
            const std::int64_t queries = p.packed() ? p.lengths[std::size_t(s)] : p.queries, keys = p.packed() ? queries : p.keys;
            std::vector<bool> key_seen(std::size_t(keys), false);
            for (std::int64_t i = 0; i < queries; ++i) {
                bool any = false;
                for (std::int64_t key = 0; key < keys; ++key)
                    if (sees(p, queries, keys, i, key)) any = true, key_seen[std::size_t(key)] = true, ++pairs;
                seeing += any;
            }
            // Keys between two that are seen are seen.
            seen += std::ranges::count(key_seen, true);
            for (std::int64_t q = 0; q < queries; q += d.config.tile_q) {
                Tile tile;
                for (std::int64_t first = 0; first < keys; first += d.config.tile_kv) {
                    bool any = false, all = true;
                    for (std::int64_t i = q; i < std::min(q + d.config.tile_q, queries); ++i)
                        for (std::int64_t key = first; key < first + d.config.tile_kv; ++key) {
                            const bool one = sees(p, queries, keys, i, key);
                            any |= one, all &= one;
                        }
                    tile.blocks += any, tile.masked += any && !all;
                }
                tiles.push_back(tile);
            }
        }
    }
};

double up(double value, double step) { return std::ceil(value / step) * step; }

TEST(AttentionWork, IsWhatCountingGives) {
    Random random(471010);
    for (int i = 0; i < 120; ++i) {
        const Drawn d = drawn(random);
        const AttentionProblem& p = d.problem;
        const AttentionConfig& c = d.config;
        const Counted counted(d);
        const double heads = double(p.packed() ? p.heads : p.batch * p.heads), kv_heads = heads * double(p.kv_heads) / double(p.heads);
        double blocks = 0, masked = 0, longest = 0;
        for (const Tile& tile : counted.tiles)
            blocks += tile.blocks, masked += tile.masked, longest = std::max(longest, double(tile.blocks));
        const double tiles = double(counted.tiles.size());
        const AttentionWork w = attention_work(d.hw, p, c);
        SCOPED_TRACE(::testing::Message() << mask_text(p) << " " << p.queries << "x" << p.keys << " lengths " << lengths_text(p)
                                          << " tiles " << c.tile_q << "x" << c.tile_kv);
        EXPECT_EQ(w.tiles, heads * tiles);
        EXPECT_NEAR(w.blocks, heads * blocks, 1e-9 * w.blocks);
        EXPECT_NEAR(w.masked_blocks, heads * masked, 1e-9 * w.blocks);
        EXPECT_EQ(w.longest, longest);
        EXPECT_EQ(p.visible_pairs(), counted.pairs);
        // Products in k-steps of 16 and widths of 32; rows on chip in boxes of 64 elements of 2 bytes.
        const double dim = up(double(p.dim), 16), dim_v = up(double(p.dim_v), 32), scores = heads * blocks * c.tile_q * c.tile_kv;
        EXPECT_NEAR(w.matrix_flops, 2 * scores * (dim + dim_v), 1e-9 * w.matrix_flops);
        EXPECT_NEAR(w.exponentials, scores, 1e-9 * scores);
        // 4.5 instructions a score, with a mask 2 more, of a window 4; and one of each element of O.
        const double hides = p.mask == AttentionMask::window ? 4 : 2;
        EXPECT_NEAR(w.instructions, heads * c.tile_q * (blocks * (4.5 * c.tile_kv + dim_v) + masked * hides * c.tile_kv),
                    1e-9 * w.instructions);
        const double boxes = up(dim, 64) * 2, boxes_v = up(dim_v, 64) * 2;
        EXPECT_NEAR(w.filled_bytes, heads * (tiles * c.tile_q * boxes + blocks * c.tile_kv * (boxes + boxes_v)), 1e-9 * w.filled_bytes);
        // Of each block every warpgroup reads its 64 rows of Q, and all of K and V.
        const double warpgroups = c.tile_q / 64;
        EXPECT_NEAR(w.shared_read_bytes, heads * blocks * warpgroups * 2 * (64 * dim + c.tile_kv * (dim + dim_v)),
                    1e-9 * w.shared_read_bytes);
        const double rows = double(p.query_rows()), q = heads * double(counted.seeing) * double(p.dim) * 2,
                     o = heads * rows * double(p.dim_v) * 2, keys = kv_heads * double(counted.seen) * double(p.dim + p.dim_v) * 2;
        EXPECT_NEAR(w.l2_bytes, q + o + heads * blocks * c.tile_kv * double(p.dim + p.dim_v) * 2, 1e-9 * w.l2_bytes);
        const double once = q + o + keys + (p.log_sum_exp ? heads * rows * 4 : 0) + (p.packed() ? double(p.batch + 1) * 4 : 0);
        EXPECT_EQ(w.dram_lower_bound_bytes, once);
        EXPECT_EQ(double(p.compulsory_bytes()), once);
        double all = 0;
        for (std::int64_t s = 0; s < p.sequences(); ++s)
            all += p.packed() ? std::pow(double(p.lengths[std::size_t(s)]), 2) : double(p.queries) * double(p.keys);
        EXPECT_EQ(p.unfused_bytes(), once + heads * all * 4 * 2);
        // A section's keys come once where L2 holds them, else at most once a round of each section.
        const double shared_by = double(p.heads) / double(p.kv_heads), section = double(c.section_heads);
        const double held = std::ceil(section / shared_by) * double(p.packed() ? p.keys : counted.seen) * double(p.dim + p.dim_v) * 2;
        const double rounds = std::ceil(section * tiles / d.hw.sms) * std::max(1.0, shared_by / section);
        const double again = held <= d.hw.l2_bytes ? 1 : std::max(1.0, rounds * (1 - d.hw.l2_bytes / held));
        EXPECT_NEAR(w.dram_bytes, once + (again - 1) * keys, 1e-9 * w.dram_bytes);
    }
}

// Shared memory of just so many stages has them, and of a byte less has one less.
TEST(AttentionWork, AsManyStagesAsHaveRoom) {
    Random random(471014);
    for (int i = 0; i < 300; ++i) {
        Drawn d = drawn(random);
        const int bytes = kernel_config(d.problem, d.config).shared_bytes();
        d.hw.shared_per_cta = bytes;
        EXPECT_EQ(stages_max(d.hw, d.problem, d.config), d.config.stages);
        d.hw.shared_per_cta = bytes - 1;
        EXPECT_EQ(stages_max(d.hw, d.problem, d.config), d.config.stages - 1);
        // By hand: Q, K and V in rows of whole boxes, two barriers of Q's stage and of each of K and V, and which tile Q is of.
        const double dim = up(up(double(d.problem.dim), 16), 64) * 2, dim_v = up(up(double(d.problem.dim_v), 32), 64) * 2;
        EXPECT_EQ(bytes, d.config.tile_q * dim + d.config.stages * (d.config.tile_kv * (dim + dim_v) + 4 * 8) + 2 * 8
                             + (d.problem.packed() ? 2 * 36 : 8));
    }
}

// Tiles one by one, the longest of a section first, each to the SM that is free the soonest.
TEST(AttentionTime, SmsEndWhereTilesAreHandedOutOneByOne) {
    Random random(471011);
    int compared = 0;
    for (int i = 0; i < 120; ++i) {
        const Drawn d = drawn(random);
        const AttentionProblem& p = d.problem;
        const AttentionTime t = attention_time(d.hw, p, d.config);
        const Counted counted(d);
        if (counted.tiles.empty()) continue;
        // What waits for loads is in both kinds of block alike; of one without a mask it is what the block lacks.
        const AttentionHardware hw = at_clock(d.hw, t.clock_hz);
        const BlockCycles plain = block_cycles(hw, p, d.config), hidden = block_cycles(hw, p, d.config, true);
        const double wait =
            std::max(0.0, hw.few_loads_latency() + std::max(plain.port, plain.l2) - (d.config.stages - 1) * plain.all) / d.config.stages;
        const double block = plain.all + wait, masked = hidden.all + wait;
        EXPECT_NEAR(t.masked_block, masked, 1e-4 * masked);
        EXPECT_NEAR(t.block.all, plain.all, 1e-4 * plain.all);
        const auto cycles = [&](const Tile& tile) { return tile.blocks * block + tile.masked * (masked - block) + t.tile_turn; };
        const std::int64_t heads = p.heads_of_all();
        std::vector<double> ends(std::size_t(d.hw.sms), 0.0);
        double all = 0, longest = 0;
        for (std::int64_t first = 0; first < heads; first += d.config.section_heads)
            for (std::size_t tile = counted.tiles.size(); tile-- > 0;)
                for (std::int64_t head = first; head < std::min(heads, first + d.config.section_heads); ++head) {
                    const double one = cycles(counted.tiles[tile]);
                    *std::ranges::min_element(ends) += one;
                    all += one, longest = std::max(longest, one);
                }
        const double last = std::ranges::max(ends);
        SCOPED_TRACE(::testing::Message() << mask_text(p) << " " << p.queries << "x" << p.keys << " lengths " << lengths_text(p) << " on "
                                          << d.hw.sms << " SMs");
        const bool alike = p.mask == AttentionMask::none && !p.packed();
        if (alike || double(counted.tiles.size()) * double(heads) <= 16 * d.hw.sms) {
            ++compared;
            EXPECT_NEAR(t.cycles, last, 1e-4 * last);
            EXPECT_NEAR(t.balance, all / d.hw.sms / last, 1e-4);
        } else {  // of many rounds a quarter of the longest tile stands for the end
            EXPECT_NEAR(t.cycles, all / d.hw.sms + longest / 4, 1e-4 * last);
            EXPECT_NEAR(t.cycles, last, longest);
        }
    }
    EXPECT_GE(compared, 60);
}

// The clock is the highest, or the one at which the launch takes the limit's power: its energy at the reference, grown by the clock's power.
TEST(AttentionTime, IsTheLongestOfItsPartsAtTheClockThatPowerLeaves) {
    Random random(471012);
    int throttled = 0;
    std::set<Bound> bounds;
    for (int i = 0; i < 600; ++i) {
        Drawn d = drawn(random);
        const AttentionProblem& p = d.problem;
        d.hw.sustained_watts = d.hw.static_watts + random.log_uniform(5, 1000);
        d.hw.dram_bandwidth *= random.log_uniform(0.02, 1), d.hw.l2_share *= random.log_uniform(0.05, 1);
        const AttentionTime t = attention_time(d.hw, p, d.config);
        const AttentionWork& w = t.work;
        if (w.blocks == 0) continue;
        const double joules = (w.matrix_flops + w.exponentials * d.hw.softmax_flops) * d.hw.flop_joules + w.filled_bytes * d.hw.fill_joules
                              + w.shared_read_bytes * d.hw.shared_read_joules + double(p.compulsory_bytes()) * d.hw.dram_joules;
        const double most = std::max(d.hw.top_hz, d.hw.clock_hz);
        EXPECT_LE(t.clock_hz, most);
        // Sections may cost bytes and cycles after the clock is settled: held to what settled it where they do not.
        if (w.dram_bytes == double(p.compulsory_bytes()) && p.mask == AttentionMask::none && !p.packed()) {
            const double watts = joules * std::pow(t.clock_hz / d.hw.clock_hz, d.hw.energy_exponent) / (t.cycles / t.clock_hz);
            throttled += t.clock_hz < most;
            if (t.clock_hz < most) EXPECT_NEAR(watts, d.hw.sustained_watts - d.hw.static_watts, 1e-3 * watts);
            else EXPECT_LE(watts, (d.hw.sustained_watts - d.hw.static_watts) * 1.001);
        }
        const AttentionHardware hw = at_clock(d.hw, t.clock_hz);
        const double chip = t.cycles / t.clock_hz, dram = w.dram_bytes / hw.dram_bandwidth,
                     l2 = w.l2_bytes / (hw.l2_share * hw.sms * t.clock_hz);
        // Few queries find nothing in L2.
        const double first = p.packed() || p.queries > 256 || p.keys == 0 ? hw.few_loads_latency() : hw.dram_latency + hw.tma_latency;
        const double fill = (first + std::max(t.block.port, t.block.l2)) / t.clock_hz,
                     launch = std::isnan(hw.launch_seconds) ? 0 : hw.launch_seconds;
        EXPECT_NEAR(t.seconds, std::max({chip, dram, l2}) + fill + launch, 1e-4 * t.seconds);
        const Bound longest = launch > std::max({chip, dram, l2}) ? Bound::launch
                              : l2 > std::max(chip, dram)         ? Bound::l2
                              : dram > chip                       ? Bound::dram
                                                                  : t.block.bound;
        EXPECT_EQ(t.bound, longest);
        bounds.insert(t.bound);
    }
    EXPECT_GE(throttled, 10);
    EXPECT_GE(bounds.size(), 4u);
}

// A block's units, each by its own count and rate; the longest binds.
TEST(AttentionTime, ABlocksUnitsAreTheirCountsOverTheirRates) {
    Random random(471013);
    std::set<Bound> bounds;
    for (int i = 0; i < 300; ++i) {
        Drawn d = drawn(random);
        for (double* rate : {&d.hw.exponentials_per_cycle, &d.hw.arithmetic_per_cycle, &d.hw.comparisons_per_cycle, &d.hw.issue_lanes,
                             &d.hw.shared_bandwidth, &d.hw.l2_port, &d.hw.l2_share, &d.hw.flops_per_cycle})
            *rate *= random.log_uniform(0.2, 2);
        d.hw.softmax_stretch = random.uniform(1, 2), d.hw.softmax_latency = random.uniform(0, 500);
        const AttentionProblem& p = d.problem;
        const AttentionHardware& hw = d.hw;
        const bool masked = random.coin();
        const BlockCycles b = block_cycles(hw, p, d.config, masked);
        const double q = d.config.tile_q, kv = d.config.tile_kv, dim = up(double(p.dim), 16), dim_v = up(double(p.dim_v), 32),
                     groups = q / 64;
        const double hides = masked ? p.mask == AttentionMask::window ? 4 : 2 : 0, outputs = q * dim_v, checked = masked ? outputs : 0;
        const double products = 2 * q * kv * dim / hw.flops_per_cycle, values = 2 * q * kv * dim_v / hw.flops_per_cycle;
        EXPECT_NEAR(b.tensor, products + values, 1e-9 * b.tensor);
        EXPECT_NEAR(b.exponential, q * kv / hw.exponentials_per_cycle, 1e-9 * b.exponential);
        EXPECT_NEAR(b.arithmetic, (2 * q * kv + outputs) / hw.arithmetic_per_cycle, 1e-9 * b.arithmetic);
        EXPECT_NEAR(b.comparison, ((1.5 + hides) * q * kv + checked) / hw.comparisons_per_cycle, 1e-9 * b.comparison);
        EXPECT_NEAR(b.issue, ((4.5 + hides) * q * kv + outputs + checked) / hw.issue_lanes, 1e-9 * b.issue);
        const double filled = kv * 2 * (up(dim, 64) + up(dim_v, 64)), read_q = 2 * (q + groups * kv) * dim,
                     read_v = 2 * groups * kv * dim_v;
        EXPECT_NEAR(b.shared, (filled + read_q + read_v) / hw.shared_bandwidth, 1e-9 * b.shared);
        EXPECT_NEAR(b.port, filled / hw.l2_port, 1e-9 * b.port);
        EXPECT_NEAR(b.l2, filled / hw.l2_share, 1e-9 * b.l2);
        EXPECT_NEAR(b.products, std::max(products, read_q / hw.shared_bandwidth) + std::max(values, read_v / hw.shared_bandwidth),
                    1e-9 * b.products);
        // A warpgroup's share of the softmax stretches by as much as others share its partitions, said for two.
        const double softmax = (1 + (hw.softmax_stretch - 1) * groups / 2) * (b.exponential + b.comparison) / groups + hw.softmax_latency;
        EXPECT_NEAR(b.softmax, softmax, 1e-9 * softmax);
        EXPECT_NEAR(b.chain, products / groups + std::max(values / groups, softmax), 1e-9 * b.chain);
        EXPECT_NEAR(b.ceiling(), (b.tensor + b.exponential) / std::max(b.tensor, b.exponential), 1e-12);
        const std::pair<Bound, double> units[] = {{Bound::tensor, b.tensor},
                                                  {Bound::issue, std::max({b.exponential, b.arithmetic, b.comparison, b.issue})},
                                                  {Bound::shared, std::max(b.products, b.shared)},
                                                  {Bound::l2, std::max(b.port, b.l2)},
                                                  {Bound::latency, std::isnan(hw.step_floor) ? b.chain : std::max(b.chain, hw.step_floor)}};
        const auto longest = std::ranges::max_element(units, {}, &std::pair<Bound, double>::second);
        EXPECT_EQ(b.bound, longest->first);
        EXPECT_NEAR(b.all, longest->second, 1e-9 * b.all);
        bounds.insert(b.bound);
    }
    EXPECT_GE(bounds.size(), 4u);
}

}  // namespace
}  // namespace rooftile
