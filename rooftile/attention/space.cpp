#include "rooftile/attention/space.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {
namespace {

constexpr int max_consumer_warpgroups = 3;
constexpr int tile_kv_step = 16, max_tile_kv = 256;  // k-steps of the product with V; wgmma's width and a TMA box's rows
constexpr int max_stages = 4, latent_tile_kv_step = 32;
constexpr int producer_of_shares = 40, producer_of_latent = 56;  // which finds its turns, and pages, of nine boxes a block (tests/attention/compile)
constexpr std::int64_t few_rows = 4 * AttentionConfig::warpgroup_q;  // of a head, or of those that share keys

/// Of one CTA, B.
double shared_room(const AttentionHardware& hw, const AttentionConfig& c) {
    return c.ctas_per_sm == 1 ? hw.shared_per_cta : min_known(hw.shared_per_cta, hw.shared_per_sm / c.ctas_per_sm - hw.shared_reserved);
}

/// Blocks of a piece at least, where a tile's cuts are its own.
int least_of_piece(const AttentionProblem& p, const AttentionConfig& c) {
    constexpr int keys = 256;  // of 128 elements each and their values: 128 KB, beside which a row's part of fp32 sums is half a KB
    constexpr int latent_keys = 1024;  // 1.2 MB, beside which a tile's part is 131 KB
    return std::max(1, (p.latent ? latent_keys : keys) / c.tile_kv);
}

std::int64_t blocks_of(const AttentionProblem& p, const AttentionConfig& c, std::int64_t sequence) {
    return std::max<std::int64_t>(1,
                                  p.extent(sequence).blocks(0, int(p.queries), c.tile_kv).count());  // one that sees nothing is a turn too
}
/// Of a tile at most: a cache's sequences may be as long as there is room.
std::int64_t most_blocks(const AttentionProblem& p, const AttentionConfig& c) {
    return p.cached ? std::max<std::int64_t>(1, (p.keys + c.tile_kv - 1) / c.tile_kv) : blocks_of(p, c, 0);
}

}  // namespace

int warpgroups_of(const AttentionProblem& problem, const AttentionConfig& config) { return problem.latent ? Sm90AttentionConfig::latent_warpgroups : config.consumer_warpgroups(); }

RoleRegisters register_shares(const AttentionHardware& hw, const AttentionProblem& p, const AttentionConfig& c) {
    return role_registers(hw, warpgroups_of(p, c), hw.moves_registers, p.latent ? producer_of_latent : c.splits > 1 ? producer_of_shares : tight_producer,
                          c.ctas_per_sm);
}

Sm90AttentionConfig kernel_config(const AttentionProblem& problem, const AttentionConfig& config) {
    Sm90AttentionConfig k;
    k.tile_q = config.tile_q;
    k.tile_kv = config.tile_kv;
    k.dim = int(padded_to(problem.dim, key_product_step));
    k.dim_v = int(padded_to(problem.dim_v, value_product_step));
    k.stages = config.stages;
    k.turns = config.schedule == Schedule::pingpong;
    k.type = problem.type;
    k.mask = problem.mask;
    k.packed = problem.packed();
    k.split = config.splits > 1;
    k.cache = problem.cached;
    k.page = int(problem.page);
    k.ctas_per_sm = config.ctas_per_sm;
    k.piece = config.batch_invariant ? least_of_piece(problem, config) : 0;
    k.grouped = problem.group > 1;
    k.latent = problem.latent;
    k.combine_apart = config.combine_apart;
    if (k.latent) k.split = k.grouped = true;  // the only form there is
    return k;
}

AttentionProblem heads_as_rows(const AttentionProblem& problem) {
    const std::int64_t shared_by = problem.heads / problem.kv_heads;
    AttentionProblem out = problem;
    // The one query stands at the last key.
    if (problem.mask == AttentionMask::causal && problem.queries == 1) out.mask = AttentionMask::none;
    // A head's own queries fill a tile otherwise, and beyond a tile of heads there is none for a query.
    constexpr std::int64_t few_queries = 32, most_heads = max_consumer_warpgroups * AttentionConfig::warpgroup_q;
    const auto group_by = [&](std::int64_t heads) {
        for (const AttentionOperand operand : attention_operands)
            if (!problem.latent || operand != AttentionOperand::v) out.strides[std::size_t(operand)] = pitch_of(problem, operand);
        out.group = heads;
        out.heads = problem.heads / heads, out.queries = problem.queries * heads;
        return out;
    };
    if (problem.latent) {
        if (problem.group > 1) return out;
        std::int64_t heads = std::min<std::int64_t>(problem.heads, AttentionConfig::warpgroup_q);
        while (problem.heads % heads != 0) --heads;
        return group_by(heads);
    }
    if (problem.packed() || shared_by == 1 || shared_by > most_heads || problem.queries > few_queries || problem.queries == 0 || problem.keys == 0) return out;
    return group_by(shared_by);
}

std::int64_t most_turns(const AttentionProblem& p, const AttentionConfig& c) {
    const std::int64_t units = units_of_all(p, c), parts = std::min<std::int64_t>(units, c.splits),
                       tiles = most_tiles(p, c.tile_q) / p.sequences();
    if (c.batch_invariant) return (units + parts - 1) / parts;
    std::int64_t sequence = 0, units_in_front = 0;
    const auto tile_with = [&](std::int64_t unit) {  // asked for in rising order
        for (;; ++sequence) {
            const std::int64_t blocks = blocks_of(p, c, sequence);
            if (unit < units_in_front + tiles * blocks) return sequence * tiles + (unit - units_in_front) / blocks;
            units_in_front += tiles * blocks;
        }
    };
    std::int64_t most = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t first = tile_with(units * part / parts);
        most = std::max(most, tile_with(units * (part + 1) / parts - 1) - first + 1);
    }
    return most;
}

bool few_queries(const AttentionProblem& p) {
    return !p.packed() && p.queries > 0 && p.keys > 0 && (p.cached || p.latent || p.queries <= few_rows);
}

bool may_split(const AttentionProblem& p) {
    // Tiles have the same blocks then, which for few rows are few more than each needs.
    return few_queries(p) || (!p.packed() && p.queries > 0 && p.keys > 0 && p.mask == AttentionMask::none);
}

std::int64_t blocks_of_all(const AttentionProblem& p, const AttentionConfig& c) {
    std::int64_t of_a_tile = 0;
    for (std::int64_t i = 0; i < p.sequences(); ++i) of_a_tile += blocks_of(p, c, i);
    return most_tiles(p, c.tile_q) / p.sequences() * of_a_tile;
}

std::int64_t units_of_all(const AttentionProblem& p, const AttentionConfig& c) {
    if (!c.batch_invariant) return blocks_of_all(p, c);
    std::int64_t of_a_tile = 0;
    for (std::int64_t i = 0; i < p.sequences(); ++i) of_a_tile += pieces_of(int(blocks_of(p, c, i)), least_of_piece(p, c));
    return most_tiles(p, c.tile_q) / p.sequences() * of_a_tile;
}

std::int64_t longest_share(const AttentionProblem& p, const AttentionConfig& c) {
    const std::int64_t units = units_of_all(p, c), parts = std::min<std::int64_t>(units, c.splits),
                       tiles = most_tiles(p, c.tile_q) / p.sequences();
    if (!c.batch_invariant) return (units + parts - 1) / parts;
    std::int64_t sequence = 0, units_in_front = 0, blocks_in_front = 0;
    const auto blocks_before = [&](std::int64_t unit) {  // asked for in rising order
        for (;; ++sequence) {
            const std::int64_t blocks = blocks_of(p, c, sequence), pieces = pieces_of(int(blocks), least_of_piece(p, c)),
                               within = unit - units_in_front;
            if (within <= tiles * pieces)
                return blocks_in_front + within / pieces * blocks
                       + std::min(blocks, within % pieces * blocks_of_piece(int(blocks), least_of_piece(p, c)));
            units_in_front += tiles * pieces, blocks_in_front += tiles * blocks;
        }
    };
    std::int64_t longest = 0, begin = 0;
    for (std::int64_t part = 1; part <= parts; ++part) {
        const std::int64_t end = blocks_before(units * part / parts);
        longest = std::max(longest, end - begin), begin = end;
    }
    return longest;
}

double parts_of_a_tile(const AttentionProblem& p, const AttentionConfig& c) {
    if (c.splits == 1) return 1;
    if (c.batch_invariant) return double(pieces_of(int(most_blocks(p, c)), least_of_piece(p, c)));
    const double each = double(p.cached ? most_blocks(p, c) : std::max<std::int64_t>(1, blocks_of_all(p, c) / most_tiles(p, c.tile_q))),
                 share = double(blocks_of_all(p, c)) / c.splits;
    return std::max(1.0, std::ceil(each / share));
}

SplitBytes split_bytes(const AttentionProblem& p, const AttentionConfig& c) {
    if (c.splits == 1) return {};
    const std::int64_t rows = std::min<std::int64_t>(rows_of_tile(c.tile_q, int(p.group)), p.queries), width = padded_to(p.dim_v, value_product_step);
    constexpr std::int64_t aligned = 256;
    // Each piece has a place, whatever lengths are read on the device; or each CTA two: for the tile that it goes on with, and for the one
    // that it begins.
    const std::int64_t pieces = most_tiles(p, c.tile_q) * most_pieces_up_to(int(most_blocks(p, c)), least_of_piece(p, c));
    const std::int64_t counters = c.batch_invariant ? pieces : c.splits, places = c.batch_invariant ? pieces : 2 * c.splits;
    return {padded_to(counters * c.consumer_warpgroups() * std::int64_t(sizeof(unsigned)), aligned),
            places * rows * (width + Sm90AttentionConfig::split_pair) * std::int64_t(sizeof(float))};
}

int registers_needed(const AttentionProblem& problem, const AttentionConfig& config) {
    const Sm90AttentionConfig k = kernel_config(problem, config);
    if (problem.latent) return k.accumulator_registers() + registers_beside_latent;
    constexpr int few_boxes = 2;
    // Whether the places of scores count: for a mask, a length, or the score itself; a score's functions take as much where they do not.
    const bool more = problem.mask != AttentionMask::none || !problem.alike()
                      || (problem.score && (problem.score->by_place || problem.score->calls_functions()));
    // One warpgroup that shares blocks out has as much beside them with a mask or without.
    const int plain = more ? registers_beside_masked : registers_beside, alone = std::max(plain, registers_beside_split - registers_of_split),
              beside = config.splits > 1 && config.consumer_warpgroups() == 1 ? alone : plain;
    return k.accumulator_registers() + beside
           + (Sm90AttentionConfig::boxes(k.dim) > few_boxes ? registers_of_long_rows : 0)
           + (problem.packed() ? registers_of_packed : 0) + (config.splits == 1 ? 0 : config.consumer_warpgroups() == 1 ? registers_of_split : Sm90AttentionConfig::boxes(k.dim) > few_boxes ? registers_of_long_shared_split : registers_of_shared_split) + (problem.score ? problem.score->registers() : 0);
}

double stages_max(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config) {
    AttentionConfig one = config;
    one.stages = 1;
    const Sm90AttentionConfig k = kernel_config(problem, one);
    const double stage = k.k_bytes() + k.v_bytes() + (k.latent ? 2 : 4) * Sm90AttentionConfig::barrier_bytes;
    return whole((shared_room(hw, config) - (k.shared_bytes() - stage)) / stage);
}

std::optional<AttentionWall> wall_of(const AttentionHardware& hw, const AttentionProblem& problem,
                                     const AttentionConfig& config) {
    const auto falls = [](Reason reason, double needed, double available) -> std::optional<AttentionWall> {
        if (needed > available) return AttentionWall{reason, needed, available};  // never where it is unknown
        return std::nullopt;
    };
    const Sm90AttentionConfig k = kernel_config(problem, config);
    if (config.tile_q % AttentionConfig::warpgroup_q != 0 || config.tile_q < AttentionConfig::warpgroup_q
        || config.consumer_warpgroups() > max_consumer_warpgroups || config.tile_kv % tile_kv_step != 0
        || config.tile_kv < tile_kv_step || config.tile_kv > max_tile_kv)
        return AttentionWall{Reason::instruction, 0, 0};
    if (config.combine_apart && !problem.latent) return AttentionWall{Reason::instruction, 0, 0};
    // Of latent rows a tile is a wgmma's, which two warpgroups share, and a block's halves are whole eights of scores a thread; all is shared out.
    if (problem.latent
        && (config.tile_q != AttentionConfig::warpgroup_q || config.tile_kv % latent_tile_kv_step != 0 || config.splits == 1 || config.ctas_per_sm > 1))
        return AttentionWall{Reason::instruction, 0, 0};
    // One warpgroup has nobody to take turns with.
    if (config.consumer_warpgroups() == 1 && config.schedule == Schedule::pingpong)
        return AttentionWall{Reason::instruction, 2, 1};
    if (rows_of_tile(config.tile_q, int(problem.group)) == 0) return AttentionWall{Reason::instruction, double(problem.group), double(config.tile_q)};
    if (config.ctas_per_sm > 1 && config.splits == 1) return AttentionWall{Reason::instruction, 2, 1};
    if (config.batch_invariant && config.splits == 1) return AttentionWall{Reason::instruction, 2, 1};
    if (problem.cached && config.splits == 1) return AttentionWall{Reason::instruction, 2, 1};  // whose tile is whose is found where blocks are shared out
    if (problem.paged() && config.tile_kv % problem.page != 0 && problem.page % config.tile_kv != 0)
        return AttentionWall{Reason::instruction, double(config.tile_kv), double(problem.page)};
    // Where bytes are what counts nobody waits for the tensor cores, and turns take registers.
    if (config.splits > 1 && config.schedule == Schedule::pingpong) return AttentionWall{Reason::instruction, 1, double(config.splits)};
    if (config.splits > 1) {
        constexpr double counted = 4294967296;  // share_of()'s products
        // Of latent rows a CTA may find nothing to do: there is no other form.
        const auto blocks = std::max(double(blocks_of_all(problem, config)), problem.latent ? 2.0 : 0.0);
        // Of a cache lengths are unlike those that are planned for: up to all that there is room for.
        const double room = problem.cached ? double(most_tiles(problem, config.tile_q)) * double(most_blocks(problem, config)) : blocks;
        const double most = may_split(problem) ? std::min(problem.cached || config.batch_invariant ? counted : blocks, counted / room) : 1;
        if (config.splits > most) return AttentionWall{Reason::instruction, double(config.splits), most};
        // A share may begin and end within a tile; of a cache one sequence may have all keys.
        const double parts = config.batch_invariant ? 1 : problem.cached ? config.splits : parts_of_a_tile(problem, config) + 1;
        if (parts > k.most_splits()) return AttentionWall{Reason::instruction, parts, double(k.most_splits())};
    }
    if (auto wall = falls(Reason::threads, k.threads(), hw.threads_per_cta)) return wall;
    if (auto wall = falls(Reason::registers, registers_needed(problem, config),
                          register_shares(hw, problem, config).consumer))
        return wall;
    return falls(Reason::shared, k.shared_bytes(), shared_room(hw, config));
}

const Rule* rule_of(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config) {
    static constexpr Rule long_code{"long_code", "an expression of scores is written out for every score of a thread's block: beyond 2048 instructions they "
                                                 "are more than the caches of instructions hold beside the loop, and take ptxas seconds"};
    static constexpr Rule narrow{"narrow_blocks", "below 64 keys two warpgroups in turns wait for each other more often than the model predicts: 1.05 to 1.08 of the "
                                                  "time of wider blocks where it says alike (docs/facts.md 346); below 32 nobody measured any"};
    constexpr int least_keys = 64, least_of_any = 32;
    constexpr double most_instructions = 2048;
    if (problem.score && config.tile_kv > least_keys && config.tile_kv / 2 * problem.score->cost.issue > most_instructions)
        return &long_code;
    if (config.tile_kv < (config.consumer_warpgroups() == 2 ? least_keys : least_of_any) && problem.most_seen_keys() > config.tile_kv) return &narrow;
    if (config.stages == 1 && std::isnan(hw.few_loads_latency())) return &one_stage;
    return nullptr;
}

std::vector<std::string> unchecked_walls(const AttentionHardware& hw) {
    std::vector<std::string> out;
    if (std::isnan(hw.threads_per_cta)) out.emplace_back("threads");
    if (std::isnan(hw.registers_per_sm)) out.emplace_back("registers");
    if (std::isnan(hw.shared_per_cta)) out.emplace_back("shared");
    return out;
}

AttentionRequest with_own_tiles(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionRequest& request) {
    AttentionConfig c{.stages = request.stages.value_or(2), .schedule = Schedule::cooperative, .splits = 2};
    c.batch_invariant = true;
    // Two warpgroups at most: three have no registers left for the parts of a split tile. 64 keys are what a ring of two stages wants of
    // rows of 128 (docs/facts.md 372), and below 32 nobody measured any.
    constexpr std::int64_t warpgroup = AttentionConfig::warpgroup_q, most_rows = 2 * warpgroup;
    constexpr int usual_keys = 64, few_keys = 32;
    const std::int64_t rows = padded_to(std::max(problem.group, std::min(most_rows, problem.queries)), warpgroup);
    std::optional<int> tile_q = request.tile_q;
    if (request.consumer_warpgroups && !problem.latent) tile_q = *request.consumer_warpgroups * AttentionConfig::warpgroup_q;
    for (const int least_keys : {few_keys, tile_kv_step})
        for (c.tile_q = tile_q.value_or(int(rows)); c.tile_q >= (tile_q ? *tile_q : int(warpgroup)); c.tile_q -= int(warpgroup))
            for (c.tile_kv = request.tile_kv.value_or(usual_keys); c.tile_kv >= request.tile_kv.value_or(least_keys);
                 c.tile_kv -= tile_kv_step)
                if (!wall_of(hw, problem, c)) {
                    AttentionRequest out = request;
                    out.tile_q = c.tile_q, out.tile_kv = c.tile_kv;
                    return out;
                }
    return request;  // nothing fits: the search says why
}

void for_each_config(const AttentionRequest& request, const AttentionProblem& p, double sms, const std::function<void(const AttentionConfig&)>& take) {
    // Parts of latent rows' tiles are added up either way.
    const auto visit = [&](AttentionConfig c) {
        for (const bool apart : {false, true}) {
            if (request.combine_apart ? apart != *request.combine_apart : apart && !p.latent) continue;
            c.combine_apart = apart;
            take(c);
        }
    };
    const auto open = [](const std::optional<int>& fixed, int first, int last, int step, const auto& take) {
        if (fixed) return take(*fixed);
        for (int value = first; value <= last; value += step) take(value);
    };
    std::optional<int> tile_q = request.tile_q;
    if (!tile_q && request.consumer_warpgroups && !p.latent) tile_q = *request.consumer_warpgroups * AttentionConfig::warpgroup_q;
    AttentionConfig c;
    c.batch_invariant = request.batch_invariant.value_or(false);
    c.ctas_per_sm = request.ctas_per_sm.value_or(1);
    constexpr int q = AttentionConfig::warpgroup_q;
    open(tile_q, q, max_consumer_warpgroups * q, q, [&](int rows) {
        c.tile_q = rows;
        if (request.consumer_warpgroups && *request.consumer_warpgroups != warpgroups_of(p, c)) return;
        open(request.tile_kv, tile_kv_step, max_tile_kv, tile_kv_step, [&](int keys) {
            c.tile_kv = keys;
            open(request.stages, 1, max_stages, 1, [&](int stages) {
                c.stages = stages;
                for (const Schedule schedule : {Schedule::pingpong, Schedule::cooperative}) {
                    if (request.schedule && *request.schedule != schedule) continue;
                    c.schedule = schedule;
                    c.splits = request.splits.value_or(1);
                    visit(c);
                    if (!may_split(p)) continue;
                    // Two CTAs an SM: where each has tiles to go on with. Of one long tile they were no sooner (docs/facts.md 372).
                    const std::int64_t turns = c.batch_invariant ? units_of_all(p, c) : most_tiles(p, c.tile_q);
                    if (!request.ctas_per_sm && c.tile_q == q && double(turns) > 2 * sms) {
                        AttentionConfig two = c;
                        two.ctas_per_sm = 2;
                        if (!request.splits) two.splits = 2 * int(sms);
                        visit(two);
                    }
                    if (request.splits) continue;
                    if (c.batch_invariant) {
                        visit((c.splits = std::isnan(sms) ? 2 : std::max(2, c.ctas_per_sm * int(sms)), c));
                        continue;
                    }
                    // All that run at once, or as many CTAs as give each of a tile as many blocks: each a quarter more than the ones before. Of a cache
                    // who has how many is not known.
                    const std::int64_t tiles = most_tiles(p, c.tile_q), blocks = std::max<std::int64_t>(1, blocks_of_all(p, c) / tiles);
                    const std::int64_t all = tiles * (p.cached ? most_blocks(p, c) : blocks),
                                       most = std::min(std::isnan(sms) ? 1 : c.ctas_per_sm * std::int64_t(sms), all);
                    // Of latent rows a tile a CTA is one of these.
                    for (std::int64_t parts = p.latent && tiles > 1 ? 1 : 2; !p.cached && parts <= blocks && tiles * parts < most; parts += std::max<std::int64_t>(1, parts / 4))
                        visit((c.splits = int(tiles * parts), c));
                    if (p.cached || p.latent || (most > 1 && (p.queries <= few_rows || tiles < most))) visit((c.splits = int(std::max<std::int64_t>(2, most)), c));
                }
            });
        });
    });
}

std::int64_t most_tiles(const AttentionProblem& p, int tile_q) {
    const std::int64_t rows = std::max(1, rows_of_tile(tile_q, int(p.group)));
    const std::int64_t of_a_head = p.packed() ? attention_place(int(p.query_rows()), int(p.batch), tile_q) : (p.queries + rows - 1) / rows;
    return of_a_head * p.heads_of_all();
}

std::int64_t section_heads(const AttentionHardware& hw, const AttentionProblem& p, int tile_q) {
    const std::int64_t all = p.heads_of_all(), shared_by = p.heads / p.kv_heads;
    constexpr double share = 0.5;  // the rest is the next section's, and Q's and O's
    const double head = double(p.most_seen_keys()) * double(p.key_elements()) * 2;
    const double fitting = hw.l2_bytes * share / head * double(shared_by);
    const double q_tiles = double(most_tiles(p, tile_q)) / double(all);
    const double needed = whole_up(hw.sms / q_tiles);
    const double heads = max_known(whole(fitting), needed);
    if (!(heads < double(all))) return all;  // NaN too
    return std::max<std::int64_t>(1, std::int64_t(heads));
}

}  // namespace rooftile
