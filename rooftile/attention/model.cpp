#include "rooftile/attention/model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "rooftile/attention/space.hpp"
#include "rooftile/tiled/pipeline.hpp"

namespace rooftile {
namespace {

constexpr double bytes_an_element = 2;
/// Of a score, in instructions of a lane: a maximum, a multiply-add, an exponential, a sum; of two a conversion.
constexpr double arithmetic_of_score = 2, comparisons_of_score = 1.5, instructions_of_score = 4.5;

/// The same with what an expression makes of it, and the product with the scale before that.
struct ScoreWork {
    double exponentials = 1, arithmetic = arithmetic_of_score, comparisons = comparisons_of_score, instructions = instructions_of_score;
    /// `masked`: with the mask of a block that needs it.
    ScoreWork(const AttentionProblem& p, bool masked) {
        if (masked) {
            // A comparison with the last key and a choice; of a window a comparison with the first, too, and both in one.
            const double hides = p.mask == AttentionMask::window ? 4 : 2;
            comparisons += hides, instructions += hides;
        }
        if (!p.score) return;
        const OpCost& more = p.score->cost;
        exponentials += more.mufu;
        comparisons += more.alu;
        arithmetic += 1 + more.issue - more.mufu - more.alu;
        instructions += 1 + more.issue;
    }
};

/// What one tile goes through.
struct TileBlocks {
    double blocks = 0, masked = 0;
    double cycles(double block, double masked_block, double turn) const { return blocks * block + masked * (masked_block - block) + turn; }
};

TileBlocks tile_blocks(const AttentionExtent& extent, std::int64_t q, const AttentionConfig& c) {
    const KeyBlocks blocks = extent.blocks(int(q), c.tile_q, c.tile_kv);
    return {double(blocks.count()), double(masked_blocks(blocks, extent.clear(int(q), c.tile_q, c.tile_kv)))};
}

/// Every row of tiles of a head, first to last; of packed sequences one behind the other.
std::vector<TileBlocks> tiles_of_a_head(const AttentionProblem& p, const AttentionConfig& c) {
    std::vector<TileBlocks> tiles;
    for (std::int64_t i = 0; i < p.sequences(); ++i) {
        const AttentionExtent extent = p.extent(i);
        for (std::int64_t q = 0; q < extent.queries; q += c.tile_q) tiles.push_back(tile_blocks(extent, q, c));
    }
    return tiles;
}

/// A head's tiles together, and what its longest goes through.
struct HeadBlocks {
    double tiles = 0;
    TileBlocks sum, longest;
    void add(const TileBlocks& tile) {
        sum.blocks += tile.blocks, sum.masked += tile.masked;
        longest.blocks = std::max(longest.blocks, tile.blocks), longest.masked = std::max(longest.masked, tile.masked);
    }
};

HeadBlocks whole_blocks(const AttentionProblem& p, const AttentionConfig& c) {
    HeadBlocks head;
    if (p.packed()) {
        for (const TileBlocks& tile : tiles_of_a_head(p, c)) ++head.tiles, head.add(tile);
        return head;
    }
    const AttentionExtent extent = p.extent();
    const std::int64_t tiles = (p.queries + c.tile_q - 1) / c.tile_q;
    constexpr std::int64_t looked_at = 4096;
    const std::int64_t step = p.mask == AttentionMask::none ? std::max<std::int64_t>(1, tiles) : std::max<std::int64_t>(1, tiles / looked_at);
    double seen = 0;
    for (std::int64_t tile = 0; tile < tiles; tile += step) head.add(tile_blocks(extent, tile * c.tile_q, c)), ++seen;
    head.tiles = double(tiles);
    if (seen > 0) head.sum.blocks *= double(tiles) / seen, head.sum.masked *= double(tiles) / seen;
    if (tiles > 0) {
        const TileBlocks last = tile_blocks(extent, (tiles - 1) * c.tile_q, c);
        head.longest.blocks = std::max(head.longest.blocks, last.blocks);
    }
    return head;
}

/// From few rows of tiles where there are many: between two of them the number of blocks is a straight line, but for rounding. Pieces of a tile
/// count as tiles.
HeadBlocks head_blocks(const AttentionProblem& p, const AttentionConfig& c) {
    HeadBlocks head = whole_blocks(p, c);
    if (c.splits == 1) return head;
    const double heads = double(p.heads_of_all()), tiles = double(most_tiles(p, c.tile_q));
    head.sum.blocks = double(blocks_of_all(p, c)) / heads;
    head.tiles = (c.batch_invariant ? double(units_of_all(p, c)) : c.splits + (most_turns(p, c) == 1 ? 0 : tiles)) / heads;
    head.longest.blocks = double(longest_share(p, c));
    return head;
}

/// Cycles from the last part of a tile to its rows: the part leaves for L2 and is counted there, then each warp reads all parts of its rows,
/// as many loads at once as the kernel has unrolled. In trips to L2, fitted to 4 caches in 2 to 64 parts on one H200 (docs/facts.md 367).
double adding_cycles(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) {
    if (c.splits == 1) return 0;
    constexpr double leaving = 10, reading = 3, columns_at_once = 128;
    // Of latent rows both warpgroups add up the same ones, and a warp's loads are of a quarter of a row's 512 columns.
    const double warps = p.latent ? 4 * warpgroups_of(p, c) : 4, turns_a_row = p.latent ? whole_up(double(p.dim_v) / columns_at_once) : 1;
    const double rows = whole_up(double(std::min<std::int64_t>(rows_of_tile(AttentionConfig::warpgroup_q, p.latent ? int(p.group) : 1), p.queries)) / warps), parts = parts_of_a_tile(p, c);
    const double trips = (leaving + reading * rows * turns_a_row * whole_up(parts / Sm90AttentionConfig::split_loads)) * max_known(hw.l2_latency, 0);
    if (!p.latent) return trips;
    if (c.combine_apart) {
        // All rows at once, after another launch: a warp has 128 columns of one.
        const double bytes = double(most_tiles(p, c.tile_q)) * parts * double(std::min<std::int64_t>(c.tile_q, p.queries)) * double(p.dim_v) * double(sizeof(float));
        const double at_once = (leaving + reading * (1 + whole_up(parts / Sm90AttentionConfig::split_loads))) * max_known(hw.l2_latency, 0);
        return max_known(at_once, bytes / (hw.l2_share * hw.sms)) + max_known(hw.launch_seconds * hw.clock_hz, 0);
    }
    // 64 rows of 512 columns are many bytes for one SM.
    const double bytes = parts * double(std::min<std::int64_t>(c.tile_q, p.queries)) * double(p.dim_v) * double(sizeof(float));
    return max_known(trips, bytes / hw.l2_port);
}

/// Of blocks, and between tiles.
struct TileCycles {
    double block, masked, turn;
    double of(const TileBlocks& tile) const { return tile.cycles(block, masked, turn); }
};

/// Beyond so many rounds of tiles the end is a small part of the whole, whatever goes last.
constexpr double few_rounds = 16;

/// What SMs do where each that is done takes the next tile, longest first within sections of heads.
struct Ends {
    double least = 0;    ///< of the last to end, whatever the sections; NaN: unknown
    bool any = true;     ///< whatever the sections, it is that
    std::vector<double> tiles{};  ///< cycles of a head's tiles in the order in which they are taken, where it is not

    Ends(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c, const TileCycles& cycles, const HeadBlocks& head) {
        const double all_tiles = head.tiles * double(p.heads_of_all());
        const double all = double(p.heads_of_all()) * head.sum.cycles(cycles.block, cycles.masked, head.tiles * cycles.turn);
        const double longest = cycles.of(head.longest);
        if (std::isnan(all) || std::isnan(hw.sms)) least = unknown_number;
        else if (c.splits > 1) least = head.longest.cycles(cycles.block, cycles.masked, double(most_turns(p, c)) * cycles.turn);
        else if (p.mask == AttentionMask::none && !p.packed()) least = whole_up(all_tiles / hw.sms) * longest;
        else if (all_tiles > few_rounds * hw.sms) least = all / hw.sms + longest / 4;
        else {
            any = false;
            for (const TileBlocks& tile : tiles_of_a_head(p, c)) tiles.push_back(cycles.of(tile));
            std::ranges::reverse(tiles);
            least = std::max(all / hw.sms, tiles.empty() ? 0 : std::ranges::max(tiles));
        }
    }

    double last(const AttentionHardware& hw, const AttentionProblem& p, std::int64_t section_heads) const {
        if (any) return least;
        // SMs that end together are one entry: a section's equal tiles are many.
        std::map<double, std::int64_t> ends{{0, std::int64_t(std::max(1.0, hw.sms))}};
        for (std::int64_t first = 0; first < p.heads_of_all(); first += section_heads) {
            const std::int64_t heads = std::min(section_heads, p.heads_of_all() - first);
            for (std::size_t i = 0, next = 0; i < tiles.size(); i = next) {
                while (next < tiles.size() && tiles[next] == tiles[i]) ++next;
                for (std::int64_t left = heads * std::int64_t(next - i); left > 0;) {
                    const auto soonest = ends.begin();
                    const std::int64_t taken = std::min(left, soonest->second);
                    left -= taken;
                    ends[soonest->first + tiles[i]] += taken;
                    if ((soonest->second -= taken) == 0) ends.erase(soonest);
                }
            }
        }
        return ends.rbegin()->first;
    }
};

/// A section's keys and values come once, unless one section is more than L2 holds: then once for each round of its tiles.
double section_dram_bytes(const AttentionHardware& hw, const AttentionProblem& p, const HeadBlocks& head, std::int64_t section_heads) {
    const double shared_by = double(p.heads) / double(p.kv_heads);
    const double section = whole_up(double(section_heads) / shared_by) * double(p.most_seen_keys()) * double(p.key_elements()) * bytes_an_element;
    double again = 1;
    if (section > hw.l2_bytes) {
        // Heads that share their keys and values are in one section, or each section reads them.
        const double rounds = whole_up(double(section_heads) * head.tiles / hw.sms), sections = std::max(1.0, shared_by / double(section_heads));
        again = max_known(1, rounds * sections * (1 - hw.l2_bytes / section));
    } else if (std::isnan(section - hw.l2_bytes)) again = unknown_number;
    const double keys = double(p.k_bytes() + p.v_bytes());
    return double(p.compulsory_bytes()) + (again - 1) * keys;
}

/// Bytes that the products of a block read from shared memory: of scores and of values. A warpgroup reads its rows of Q and all keys, and P is in registers; of
/// latent rows it reads all rows of Q and half of the keys, then all of P and half of the values' columns.
struct OperandBytes {
    double of_scores, of_values;
};
OperandBytes operand_bytes(const AttentionProblem& p, const AttentionConfig& c) {
    const Sm90AttentionConfig k = kernel_config(p, c);
    const double warpgroups = warpgroups_of(p, c), rows = c.tile_q, keys = c.tile_kv;
    if (p.latent) return {bytes_an_element * (warpgroups * rows + keys) * k.dim, bytes_an_element * (warpgroups * rows * keys + keys * k.dim_v)};
    return {bytes_an_element * (rows + warpgroups * keys) * k.dim, bytes_an_element * warpgroups * keys * k.dim_v};
}

/// A block that several tiles read comes once, unless what all CTAs load between two of the readers outgrows L2. Tiles of a sequence are as far from each
/// other as a tile of all sequences has blocks: where that is whole shares their CTAs read the same block at the same time.
double latent_dram_bytes(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) {
    const double tiles = double(most_tiles(p, c.tile_q)) / double(p.batch), blocks = double(blocks_of_all(p, c)), share = blocks / c.splits;
    const double phase = std::fmod(blocks / tiles, share), lag = std::min(phase, share - phase);
    const double between = lag * c.splits * c.tile_kv * double(p.dim) * bytes_an_element;
    const double missed = between > hw.l2_bytes ? 1 - hw.l2_bytes / between : 0;
    return double(p.compulsory_bytes()) + (tiles - 1) * missed * double(p.k_bytes());
}

double joules_of(const AttentionHardware& hw, const AttentionWork& w) {
    return MatrixEnergy{.matrix = (w.matrix_flops + w.exponentials * hw.softmax_flops) * hw.flop_joules,
                        .fill = w.filled_bytes * hw.fill_joules,
                        .dram = w.dram_bytes * hw.dram_joules,
                        .shared_read = w.shared_read_bytes * hw.shared_read_joules}
        .sum();
}

}  // namespace

double tail_bytes(const AttentionProblem& p, const AttentionConfig& c) {
    if (!p.cached) return 0;
    double rows = 0;
    for (const std::int64_t length : p.lengths) {
        const std::int64_t box = p.paged() ? std::min<std::int64_t>(p.page, c.tile_kv) : c.tile_kv, read = padded_to(length, box);
        rows += double((p.paged() ? read : std::min(read, p.keys)) - length);
    }
    return rows * double(p.kv_heads) * double(p.key_elements()) * bytes_an_element;
}

double first_load_cycles(const AttentionHardware& hw, const AttentionProblem& p) {
    if (!few_queries(p) || std::isnan(hw.dram_latency)) return hw.few_loads_latency();
    return (1 + (p.cached ? 1 : 0) + (p.paged() ? 1 : 0)) * hw.dram_latency + hw.tma_latency;
}

double BlockCycles::ceiling() const { return (tensor + exponential) / std::max(tensor, exponential); }

BlockCycles block_cycles(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c, bool masked) {
    const Sm90AttentionConfig k = kernel_config(p, c);
    const double scores = double(c.tile_q) * c.tile_kv, outputs = double(c.tile_q) * k.dim_v;
    const double warpgroups = warpgroups_of(p, c);
    BlockCycles b{};
    b.tensor = 2 * scores * (k.dim + k.dim_v) / hw.flops_per_cycle;
    const ScoreWork work(p, masked);
    b.exponential = work.exponentials * scores / hw.exponentials_per_cycle;
    b.arithmetic = (work.arithmetic * scores + outputs) / hw.arithmetic_per_cycle;
    // Behind the values of a masked block O is looked at: what is NaN was spoiled by a hidden key.
    const double looked_at = masked ? outputs : 0;
    b.comparison = (work.comparisons * scores + looked_at) / hw.comparisons_per_cycle;
    b.issue = (work.instructions * scores + outputs + looked_at) / hw.issue_lanes;
    // Each warpgroup reads its Q, K and V; the copies come in by the same port.
    const double filled = k.k_bytes() + k.v_bytes();
    const auto [read_of_scores, read_of_values] = operand_bytes(p, c);
    b.shared = (filled + k.written_probability_bytes() + read_of_scores + read_of_values) / hw.shared_bandwidth;
    b.port = filled / hw.l2_port;
    b.l2 = filled / hw.l2_share;
    const double softmax = max_known(max_known(b.exponential, b.arithmetic), max_known(b.comparison, b.issue));
    // The tensor core has one product at a time, which is as fast as its operands are read: of few keys that of scores waits for Q.
    const double score_share = double(k.dim) / (k.dim + k.dim_v);
    b.products = max_known(b.tensor * score_share, read_of_scores / hw.shared_bandwidth)
                 + max_known(b.tensor * (1 - score_share), read_of_values / hw.shared_bandwidth);
    Pace step;
    step.beside(b.tensor, Bound::tensor);
    step.beside(softmax, Bound::issue);
    step.beside(max_known(b.products, b.shared), Bound::shared);
    step.beside(max_known(b.port, b.l2), Bound::l2);
    step.time *= c.ctas_per_sm;  // they share the units, and not the chains
    // A warpgroup alone: scores, then the softmax, which the product of the block before with V runs beside.
    const double parties = warpgroups;
    const double own = b.tensor / parties, instructions = (b.exponential + max_known(b.comparison, 0)) / parties;
    // What it takes over its own instructions is said for two warpgroups, and grows with those that share the partitions with it.
    constexpr double said_for = 2;
    b.softmax = (1 + (hw.softmax_stretch - 1) * parties / said_for) * instructions + hw.softmax_latency;
    // Of latent rows both warpgroups go through a block together: scores, softmax, values.
    b.chain = p.latent ? b.products + b.softmax : own * score_share + max_known(own * (1 - score_share), b.softmax);
    step.beside(b.chain, Bound::latency);
    step.beside(hw.step_floor, Bound::latency);
    b.bound = step.bound;
    b.all = step.time;
    if (std::isnan(b.tensor) || std::isnan(b.exponential)) b.all = unknown_number;
    return b;
}

AttentionWork attention_work(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) {
    const Sm90AttentionConfig k = kernel_config(p, c);
    const HeadBlocks head = head_blocks(p, c);
    AttentionWork w;
    const double heads = double(p.heads_of_all());
    w.tiles = head.tiles * heads;
    w.blocks = head.sum.blocks * heads;
    w.masked_blocks = head.sum.masked * heads;
    w.longest = head.longest.blocks;
    const double scores = w.blocks * c.tile_q * c.tile_kv;
    w.matrix_flops = 2 * scores * (k.dim + k.dim_v);
    const ScoreWork work(p, false), of_masked(p, true);
    w.scores = scores;
    w.exponentials = work.exponentials * scores;
    w.instructions = (work.instructions * w.blocks + (of_masked.instructions - work.instructions) * w.masked_blocks) * c.tile_q * c.tile_kv + w.blocks * c.tile_q * k.dim_v;
    w.filled_bytes = w.tiles * k.q_bytes() + w.blocks * (k.k_bytes() + k.v_bytes());
    const auto [read_of_scores, read_of_values] = operand_bytes(p, c);
    w.shared_read_bytes = w.blocks * (read_of_scores + read_of_values);
    w.l2_bytes = double(p.q_bytes() + p.o_bytes()) + w.blocks * c.tile_kv * double(p.key_elements()) * bytes_an_element;
    w.l2_bytes += double(split_bytes(p, c).partials);  // half of the places are written, and read by who comes last
    w.dram_lower_bound_bytes = double(p.compulsory_bytes());
    w.dram_bytes = (p.latent ? latent_dram_bytes(hw, p, c) : section_dram_bytes(hw, p, head, c.section_heads)) + tail_bytes(p, c);
    return w;
}

AttentionTime attention_time(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) {
    return TimedAttention(hw, p, c).in_sections(c.section_heads);
}

struct TimedAttention::Tiles {
    HeadBlocks head;
    std::optional<Ends> ends;
};

TimedAttention::TimedAttention(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) : hardware_(hw), problem_(&p) {
    begun_.work = attention_work(hw, p, c);
    tails_ = tail_bytes(p, c);
    if (p.latent) dram_ = latent_dram_bytes(hw, p, c);
    const HeadBlocks head = head_blocks(p, c);
    // What is beyond the SMs takes its own time, so cycles depend on the clock, a little, and the clock on cycles.
    const auto seconds_at = [&](double clock) {
        hardware_ = at_clock(hw, clock);
        time_tiles(c, std::make_shared<Tiles>(Tiles{head, {}}));
        return tiles_->ends->least / clock;
    };
    clock_hz_ = PowerLimit(hw).held(joules_of(hw, begun_.work), seconds_at).clock_hz;
}

void TimedAttention::time_tiles(const AttentionConfig& c, const std::shared_ptr<Tiles>& tiles) {
    const AttentionHardware& hw = hardware_;
    const AttentionProblem& p = *problem_;
    begun_.block = block_cycles(hw, p, c);
    const BlockCycles& b = begun_.block;
    const double block = fed_step(RingRule::turn, b.all, hw.few_loads_latency() + max_known(b.port, b.l2), c.stages);
    // A masked block waits for its load as any other.
    const double masked = begun_.masked_block = block_cycles(hw, p, c, true).all + (block - b.all);
    // A tile's first scores, their softmax and its last product stand alone, where in its blocks all three run side by side; and O leaves.
    const double alone = b.tensor + max_known(b.softmax, b.exponential);
    // Of an element of O: its product, half a conversion, and of each eight four shuffles, twelve choices and what a store takes.
    constexpr double instructions_of_output = 4;
    const double outputs = double(std::min<std::int64_t>(c.tile_q, p.queries)) * double(p.dim_v) * (c.splits > 1 ? 2 : 1);  // parts in fp32
    const double store = max_known(max_known(outputs * bytes_an_element / hw.l2_port, outputs * instructions_of_output / hw.issue_lanes), 0);
    begun_.tile_turn = max_known(alone - block, 0) + store * c.ctas_per_sm + max_known(hw.turn_cycles, 0);
    begun_.store = store;
    busy_ =
        (begun_.work.blocks * block + begun_.work.masked_blocks * (masked - block) + begun_.work.tiles * begun_.tile_turn) / c.ctas_per_sm;
    adding_ = adding_cycles(hw, p, c);
    tiles->ends.emplace(hw, p, c, TileCycles{block, masked, begun_.tile_turn}, tiles->head);
    tiles_ = tiles;
}

AttentionTime TimedAttention::least() const { return with(tiles_->ends->least, double(problem_->compulsory_bytes()) + tails_); }

AttentionTime TimedAttention::in_sections(std::int64_t heads) const {
    return with(tiles_->ends->last(hardware_, *problem_, heads), (dram_ ? *dram_ : section_dram_bytes(hardware_, *problem_, tiles_->head, heads)) + tails_);
}

std::int64_t TimedAttention::fastest_sections(std::int64_t usual) const {
    constexpr double enough = 1 + 1e-3;  // the usual ones stay where no others can be sooner by more
    const double least_seconds = least().seconds;
    const auto seconds_of = [&](std::int64_t heads) { return in_sections(heads).seconds; };
    std::int64_t best = usual;
    double fastest = seconds_of(usual) / enough;
    const auto offer = [&](std::int64_t heads) {
        if (const double seconds = seconds_of(heads); seconds < fastest) fastest = seconds, best = heads;
    };
    const auto open = [&] { return fastest > least_seconds * enough; };
    // Where tiles end together in any case bytes are all there is to sections, and more heads than share keys ask for no fewer.
    const AttentionProblem& p = *problem_;
    const std::int64_t most = tiles_->ends->any ? std::min(p.heads / p.kv_heads, p.heads_of_all()) : p.heads_of_all();
    for (std::int64_t heads = most; heads >= 1 && open(); --heads) offer(heads);
    return best;
}

AttentionTime TimedAttention::with(double cycles, double dram_bytes) const {
    const AttentionHardware& hw = hardware_;
    AttentionTime t = begun_;
    t.cycles = cycles + adding_;
    t.work.dram_bytes = dram_bytes;
    t.balance = busy_ / hw.sms / t.cycles;
    t.clock_hz = clock_hz_;
    const double fill = fill_cycles(first_load_cycles(hw, *problem_), max_known(t.block.port, t.block.l2)) / t.clock_hz;
    // Q and O cross L2 too.
    const double dram = t.work.dram_bytes / hw.dram_bandwidth, l2 = t.work.l2_bytes / (hw.l2_share * hw.sms * t.clock_hz);
    const Pace launch = launch_pace({t.cycles / t.clock_hz, t.block.bound}, dram, l2, fill, hw.launch_seconds);
    t.seconds = launch.time, t.bound = launch.bound;
    return t;
}

}  // namespace rooftile
