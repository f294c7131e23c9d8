#include "rooftile/attention/model.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <vector>

#include "rooftile/attention/space.hpp"

namespace rooftile {
namespace {

constexpr double element_bytes = 2;
/// Of a score, in instructions of a lane: a maximum, a multiply-add, an exponential, a sum; of two a conversion.
constexpr double arithmetic_of_score = 2, comparisons_of_score = 1.5, instructions_of_score = 4.5;

/// The same with what an expression makes of it, and the product with the scale before that.
struct ScoreWork {
    double exponentials = 1, arithmetic = arithmetic_of_score, comparisons = comparisons_of_score, instructions = instructions_of_score;
    explicit ScoreWork(const AttentionProblem& p) {
        if (!p.score) return;
        const OpCost& more = p.score->cost;
        exponentials += more.mufu;
        comparisons += more.alu;
        arithmetic += 1 + more.issue - more.mufu - more.alu;
        instructions += 1 + more.issue;
    }
};

/// Blocks of every row of tiles of a head, first to last; of packed sequences one behind the other.
std::vector<int> blocks_of_tiles(const AttentionProblem& p, const AttentionConfig& c) {
    std::vector<int> blocks;
    for (std::int64_t i = 0; i < p.sequences(); ++i) {
        const AttentionExtent extent = p.extent(i);
        for (std::int64_t q = 0; q < extent.queries; q += c.tile_q)
            blocks.push_back(extent.blocks(int(q), c.tile_q, c.tile_kv).count());
    }
    return blocks;
}

/// Blocks of a head's tiles together, and of its longest.
struct HeadBlocks {
    double tiles, sum, longest;
};

/// From few rows of tiles where there are many: between two of them the number of blocks is a straight line, but for rounding.
HeadBlocks head_blocks(const AttentionProblem& p, const AttentionConfig& c) {
    if (p.packed()) {
        HeadBlocks head{};
        for (const int blocks : blocks_of_tiles(p, c)) ++head.tiles, head.sum += blocks, head.longest = std::max<double>(head.longest, blocks);
        return head;
    }
    const AttentionExtent extent = p.extent();
    const std::int64_t tiles = (p.queries + c.tile_q - 1) / c.tile_q;
    const auto at = [&](std::int64_t tile) { return double(extent.blocks(int(tile * c.tile_q), c.tile_q, c.tile_kv).count()); };
    HeadBlocks head{double(tiles), 0, 0};
    if (p.mask == AttentionMask::none) return {double(tiles), double(tiles) * at(0), at(0)};
    constexpr std::int64_t looked_at = 4096;
    const std::int64_t step = std::max<std::int64_t>(1, tiles / looked_at);
    double seen = 0;
    for (std::int64_t tile = 0; tile < tiles; tile += step) {
        const double blocks = at(tile);
        head.sum += blocks, ++seen;
        head.longest = std::max(head.longest, blocks);
    }
    head.longest = std::max(head.longest, at(tiles - 1));
    head.sum *= double(tiles) / seen;
    return head;
}

/// What the last SM does where each that is done takes the next tile, longest first within sections of heads.
double last_to_end(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c, double block, double turn,
                   const HeadBlocks& head) {
    const double all_tiles = head.tiles * double(p.heads_of_all());
    const double all = double(p.heads_of_all()) * (head.sum * block + head.tiles * turn);
    if (std::isnan(all) || std::isnan(hw.sms)) return unknown_number;
    const double longest = head.longest * block + turn;
    if (p.mask == AttentionMask::none && !p.packed()) return whole_up(all_tiles / hw.sms) * longest;
    constexpr double few_rounds = 16;  // beyond, the end is a small part of the whole
    if (all_tiles > few_rounds * hw.sms) return all / hw.sms + longest / 4;
    std::priority_queue<double, std::vector<double>, std::greater<>> ends;
    for (double sm = 0; sm < hw.sms; ++sm) ends.push(0);
    std::vector<int> blocks = blocks_of_tiles(p, c);
    double last = 0;
    for (std::int64_t first = 0; first < p.heads_of_all(); first += c.section_heads) {
        const std::int64_t heads = std::min(c.section_heads, p.heads_of_all() - first);
        for (auto tile = blocks.rbegin(); tile != blocks.rend(); ++tile)
            for (std::int64_t h = 0; h < heads; ++h) {
                const double end = ends.top() + *tile * block + turn;
                ends.pop();
                ends.push(end);
                last = std::max(last, end);
            }
    }
    return last;
}

/// The clock at which static power and the work's energy, which grows with the clock, are the limit's.
double clock_of(const AttentionHardware& hw, const AttentionWork& work, double cycles) {
    const double joules = (work.matrix_flops + work.exponentials * hw.softmax_flops) * hw.flop_joules
                          + max_known(work.filled_bytes * hw.fill_joules, 0)
                          + max_known(work.shared_read_bytes * hw.shared_read_joules, 0)
                          + max_known(work.dram_bytes * hw.dram_joules, 0);
    const double watts = hw.sustained_watts - hw.static_watts;
    if (std::isnan(joules * watts * hw.energy_exponent * cycles)) return hw.clock_hz;
    // joules (f / f0)^e / (cycles / f) = watts
    const double at_reference = joules * hw.clock_hz / cycles;
    const double clock = hw.clock_hz * std::pow(watts / at_reference, 1 / (hw.energy_exponent + 1));
    return min_known(clock, max_known(hw.top_hz, hw.clock_hz));
}

}  // namespace

double BlockCycles::ceiling() const { return (tensor + exponential) / std::max(tensor, exponential); }

BlockCycles block_cycles(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) {
    const Sm90AttentionConfig k = kernel_config(p, c);
    const double scores = double(c.tile_q) * c.tile_kv, outputs = double(c.tile_q) * k.dim_v;
    const double warpgroups = c.consumer_warpgroups();
    BlockCycles b{};
    b.tensor = 2 * scores * (k.dim + k.dim_v) / hw.flops_per_cycle;
    const ScoreWork work(p);
    b.exponential = work.exponentials * scores / hw.exponentials_per_cycle;
    b.arithmetic = (work.arithmetic * scores + outputs) / hw.arithmetic_per_cycle;
    b.comparison = work.comparisons * scores / hw.comparisons_per_cycle;
    b.issue = (work.instructions * scores + outputs) / hw.issue_lanes;
    // Each warpgroup reads its Q, K and V; the copies come in by the same port.
    const double filled = k.k_bytes() + k.v_bytes();
    const double read = element_bytes * (double(c.tile_q) * k.dim + warpgroups * c.tile_kv * (k.dim + k.dim_v));
    b.shared = (filled + read) / hw.shared_bandwidth;
    b.port = filled / hw.l2_port;
    b.l2 = filled / hw.l2_share;
    const double softmax = max_known(max_known(b.exponential, b.arithmetic), max_known(b.comparison, b.issue));
    struct Unit {
        double cycles;
        Bound bound;
    };
    const Unit units[] = {{b.tensor, Bound::tensor}, {softmax, Bound::issue}, {b.shared, Bound::shared},
                          {max_known(b.port, b.l2), Bound::l2}};
    double longest = 0;
    for (const Unit& unit : units)
        if (unit.cycles > longest) longest = unit.cycles, b.bound = unit.bound;
    // A warpgroup alone: scores, then the softmax, which the product of the block before with V runs beside.
    const double parties = warpgroups, score_share = double(k.dim) / (k.dim + k.dim_v);
    const double own = b.tensor / parties, instructions = (b.exponential + max_known(b.comparison, 0)) / parties;
    b.softmax = hw.softmax_stretch * instructions + hw.softmax_latency;
    b.chain = own * score_share + max_known(own * (1 - score_share), b.softmax);
    if (b.chain > longest) longest = b.chain, b.bound = Bound::latency;
    b.all = longest + max_known(hw.step_cycles, 0);
    if (std::isnan(b.tensor) || std::isnan(b.exponential)) b.all = unknown_number;
    return b;
}

AttentionWork attention_work(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) {
    const Sm90AttentionConfig k = kernel_config(p, c);
    const HeadBlocks head = head_blocks(p, c);
    AttentionWork w;
    const double heads = double(p.heads_of_all());
    w.tiles = head.tiles * heads;
    w.blocks = head.sum * heads;
    w.longest = head.longest;
    const double scores = w.blocks * c.tile_q * c.tile_kv;
    w.matrix_flops = 2 * scores * (k.dim + k.dim_v);
    const ScoreWork work(p);
    w.scores = scores;
    w.exponentials = work.exponentials * scores;
    w.instructions = work.instructions * scores + w.blocks * c.tile_q * k.dim_v;
    w.filled_bytes = w.tiles * k.q_bytes() + w.blocks * (k.k_bytes() + k.v_bytes());
    w.shared_read_bytes = w.blocks * element_bytes
                          * (double(c.tile_q) * k.dim + double(c.consumer_warpgroups()) * c.tile_kv * (k.dim + k.dim_v));
    w.l2_bytes = double(p.q_bytes() + p.o_bytes()) + w.blocks * c.tile_kv * double(p.dim + p.dim_v) * element_bytes;
    w.dram_lower_bound_bytes = double(p.compulsory_bytes());
    // A section's keys and values come once, unless one section is more than L2 holds: then once for each round of its tiles.
    const double shared_by = double(p.heads) / double(p.kv_heads);
    const double section = whole_up(double(c.section_heads) / shared_by) * double(p.keys) * double(p.dim + p.dim_v) * element_bytes;
    double again = 1;
    if (section > hw.l2_bytes) {
        const double rounds = whole_up(double(c.section_heads) * head.tiles / hw.sms);
        again = max_known(1, rounds * (1 - hw.l2_bytes / section));
    } else if (std::isnan(section - hw.l2_bytes)) again = unknown_number;
    const double keys = double(p.k_bytes() + p.v_bytes());
    w.dram_bytes = double(p.compulsory_bytes()) + (again - 1) * keys;
    return w;
}

AttentionTime attention_time(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) {
    AttentionTime t;
    t.block = block_cycles(hw, p, c);
    t.work = attention_work(hw, p, c);
    const BlockCycles& b = t.block;
    double block = b.all;
    // A ring of one stage waits for every load; with more, the others' blocks run meanwhile.
    const double load = hw.load_latency + max_known(b.port, b.l2);
    if (const double shown = load - (c.stages - 1) * block; shown > 0) block += shown / c.stages;
    // A tile's first scores, their softmax and its last product stand alone, where in its blocks all three run side by side; and O leaves.
    const double alone = b.tensor + max_known(b.softmax, b.exponential);
    const double store = max_known(double(c.tile_q) * double(p.dim_v) * element_bytes / hw.l2_port, 0);
    t.tile_turn = max_known(alone - block, 0) + store + max_known(hw.turn_cycles, 0);
    const HeadBlocks head = head_blocks(p, c);
    t.cycles = last_to_end(hw, p, c, block, t.tile_turn, head);
    t.balance = (t.work.blocks * block + t.work.tiles * t.tile_turn) / hw.sms / t.cycles;
    t.clock_hz = clock_of(hw, t.work, t.cycles);
    const double fill = 2 * hw.load_latency / t.clock_hz;
    const double on_chip = t.cycles / t.clock_hz, dram = t.work.dram_bytes / hw.dram_bandwidth;
    t.bound = b.bound;
    double longest = on_chip;
    if (dram > longest) longest = dram, t.bound = Bound::dram;
    if (hw.launch_seconds > longest) t.bound = Bound::launch;
    t.seconds = longest + fill + hw.launch_seconds;
    if (std::isnan(on_chip) || std::isnan(dram)) t.seconds = unknown_number;
    return t;
}

}  // namespace rooftile
