#include "rooftile/attention/space.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {
namespace {

constexpr int max_consumer_warpgroups = 3;
constexpr int tile_kv_step = 16, max_tile_kv = 256;  // k-steps of the product with V; wgmma's width and a TMA box's rows
constexpr int max_stages = 4;

}  // namespace

RoleRegisters register_shares(const AttentionHardware& hw, int consumer_warpgroups) {
    return role_registers(hw, consumer_warpgroups, hw.moves_registers);
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
    return k;
}

AttentionProblem heads_as_queries(const AttentionProblem& problem) {
    const bool sees_all = problem.mask == AttentionMask::none || problem.mask == AttentionMask::causal;  // the one query stands at the last key
    if (problem.queries != 1 || problem.packed() || problem.score || problem.heads == problem.kv_heads || !sees_all || problem.keys == 0) return problem;
    AttentionProblem out = problem;
    const std::int64_t shared_by = problem.heads / problem.kv_heads;
    for (const AttentionOperand operand : attention_operands) {
        AttentionPitch pitch = pitch_of(problem, operand);
        if (operand == AttentionOperand::q || operand == AttentionOperand::o) pitch = {pitch.head, pitch.head * shared_by, pitch.batch};
        out.strides[std::size_t(operand)] = pitch;
    }
    out.mask = AttentionMask::none;
    out.heads = problem.kv_heads, out.queries = shared_by;
    return out;
}

int most_splits_of(const AttentionProblem& p, int tile_kv) {
    const bool plain = p.mask == AttentionMask::none && !p.packed() && !p.score && p.queries > 0;
    return plain ? int(std::clamp<std::int64_t>((p.keys + tile_kv - 1) / tile_kv, 1, Sm90AttentionConfig::most_splits)) : 1;
}

SplitBytes split_bytes(const AttentionProblem& p, const AttentionConfig& c) {
    if (c.splits == 1) return {};
    const std::int64_t tiles = most_tiles(p, c.tile_q), rows = std::min<std::int64_t>(c.tile_q, p.queries), width = padded_to(p.dim_v, value_product_step);
    constexpr std::int64_t aligned = 256;
    return {padded_to(tiles * c.consumer_warpgroups() * std::int64_t(sizeof(unsigned)), aligned), tiles * c.splits * rows * (width + Sm90AttentionConfig::split_pair) * std::int64_t(sizeof(float))};
}

int registers_needed(const AttentionProblem& problem, const AttentionConfig& config) {
    const Sm90AttentionConfig k = kernel_config(problem, config);
    constexpr int few_boxes = 2;
    // Whether the places of scores count: for a mask, a length, or the score itself; a score's functions take as much where they do not.
    const bool more = problem.mask != AttentionMask::none || problem.packed()
                      || (problem.score && (problem.score->by_place || problem.score->calls_functions()));
    return k.accumulator_registers() + (more ? registers_beside_masked : registers_beside)
           + (Sm90AttentionConfig::boxes(k.dim) > few_boxes ? registers_of_long_rows : 0)
           + (problem.packed() ? registers_of_packed : 0) + (config.splits == 1 ? 0 : config.consumer_warpgroups() == 1 ? registers_of_split : registers_of_shared_split) + (problem.score ? problem.score->registers() : 0);
}

double stages_max(const AttentionHardware& hw, const AttentionProblem& problem, const AttentionConfig& config) {
    AttentionConfig one = config;
    one.stages = 1;
    const Sm90AttentionConfig k = kernel_config(problem, one);
    const double stage = k.k_bytes() + k.v_bytes() + 4 * Sm90AttentionConfig::barrier_bytes;
    return whole((hw.shared_per_cta - (k.shared_bytes() - stage)) / stage);
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
    // One warpgroup has nobody to take turns with.
    if (config.consumer_warpgroups() == 1 && config.schedule == Schedule::pingpong)
        return AttentionWall{Reason::instruction, 2, 1};
    if (config.splits > most_splits_of(problem, config.tile_kv)) return AttentionWall{Reason::instruction, double(config.splits), double(most_splits_of(problem, config.tile_kv))};
    if (auto wall = falls(Reason::threads, k.threads(), hw.threads_per_cta)) return wall;
    if (auto wall = falls(Reason::registers, registers_needed(problem, config),
                          register_shares(hw, config.consumer_warpgroups()).consumer))
        return wall;
    return falls(Reason::shared, k.shared_bytes(), hw.shared_per_cta);
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

void for_each_config(const AttentionRequest& request, int most_splits, const std::function<void(const AttentionConfig&)>& visit) {
    const auto open = [](const std::optional<int>& fixed, int first, int last, int step, const auto& take) {
        if (fixed) return take(*fixed);
        for (int value = first; value <= last; value += step) take(value);
    };
    std::optional<int> tile_q = request.tile_q;
    if (!tile_q && request.consumer_warpgroups) tile_q = *request.consumer_warpgroups * AttentionConfig::warpgroup_q;
    AttentionConfig c;
    constexpr int q = AttentionConfig::warpgroup_q;
    open(tile_q, q, max_consumer_warpgroups * q, q, [&](int rows) {
        c.tile_q = rows;
        if (request.consumer_warpgroups && *request.consumer_warpgroups != c.consumer_warpgroups()) return;
        open(request.tile_kv, tile_kv_step, max_tile_kv, tile_kv_step, [&](int keys) {
            c.tile_kv = keys;
            open(request.stages, 1, max_stages, 1, [&](int stages) {
                c.stages = stages;
                for (const Schedule schedule : {Schedule::pingpong, Schedule::cooperative}) {
                    if (request.schedule && *request.schedule != schedule) continue;
                    c.schedule = schedule;
                    c.splits = request.splits.value_or(1);
                    visit(c);
                    if (request.splits) continue;
                    // Each a quarter more than the one before, at least: between two such nothing is far off.
                    for (c.splits = 2; c.splits <= most_splits; c.splits += std::max(1, c.splits / 4)) visit(c);
                }
            });
        });
    });
}

std::int64_t most_tiles(const AttentionProblem& p, int tile_q) {
    const std::int64_t of_a_head = p.packed() ? attention_place(int(p.query_rows()), int(p.batch), tile_q)
                                              : (p.queries + tile_q - 1) / tile_q;
    return of_a_head * p.heads_of_all();
}

std::int64_t section_heads(const AttentionHardware& hw, const AttentionProblem& p, int tile_q) {
    const std::int64_t all = p.heads_of_all(), shared_by = p.heads / p.kv_heads;
    constexpr double share = 0.5;  // the rest is the next section's, and Q's and O's
    const double head = double(p.most_seen_keys()) * double(p.dim + p.dim_v) * 2;
    const double fitting = hw.l2_bytes * share / head * double(shared_by);
    const double q_tiles = double(most_tiles(p, tile_q)) / double(all);
    const double needed = whole_up(hw.sms / q_tiles);
    const double heads = max_known(whole(fitting), needed);
    if (!(heads < double(all))) return all;  // NaN too
    return std::max<std::int64_t>(1, std::int64_t(heads));
}

}  // namespace rooftile
