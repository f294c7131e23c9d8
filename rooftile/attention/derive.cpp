#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/attention/derivation.hpp"
#include "rooftile/attention/model.hpp"
#include "rooftile/attention/plan.hpp"
#include "rooftile/attention/space.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/tiled/hardware.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

constexpr std::string_view kernel_arch = "sm_90";

struct Candidate {
    AttentionConfig config;
    AttentionTime time;
};

/// Why no kernel can be compiled for that machine; empty where one can.
std::string obstacle(const Machine& machine, const AttentionProblem& p, const AttentionConfig& c) {
    if (machine.arch != kernel_arch)
        return fmt::format("{} needs wgmma, TMA and setmaxnreg of sm_90; this machine is {}", kernel_name(p),
                           machine.arch.empty() ? "of no known architecture" : machine.arch);
    for (const char* feature : {"wgmma", "tma", "setmaxnreg"})
        if (machine.lacks(feature))
            return fmt::format(
                "{} needs wgmma, TMA and setmaxnreg of sm_90; this machine lacks {}", kernel_name(p), feature);
    const double tiles = double(most_tiles(p, c.tile_q));
    constexpr double max_tiles = 2147483647;
    if (tiles > max_tiles) return fmt::format("{:.0f} tiles are more than the kernel counts", tiles);
    return {};
}

/// The nearest wall of all that were met, as one line.
std::string wall_text(const AttentionWall& wall, const std::string& machine_id, bool latent) {
    switch (wall.reason) {
        case Reason::registers:
            return fmt::format("no tile fits: the least needs {:.0f} registers a thread, {} leaves {:.0f}; leave more of tile_q, "
                               "tile_kv and stages open",
                               wall.needed, machine_id, wall.available);
        case Reason::shared:
            return fmt::format("no tile fits: the least needs {:.0f} B of shared memory, {} has {:.0f}; leave more of tile_q, "
                               "tile_kv and stages open",
                               wall.needed, machine_id, wall.available);
        case Reason::threads:
            return fmt::format("a CTA of {:.0f} threads is needed, {} has at most {:.0f}", wall.needed, machine_id,
                               wall.available);
        default:
            if (latent)
                return "no kernel is as asked for: of latent rows tile_q is 64, consumer_warpgroups 2, tile_kv a multiple of 32 that a page divides or "
                       "fills, schedule cooperative, splits 2 or more and ctas_per_sm 1";
            return "no kernel is as asked for: tile_q is 64, 128 or 192, consumer_warpgroups a 64th of it, tile_kv a multiple of "
                   "16 up to 256, and one warpgroup takes no turns (schedule cooperative)";
    }
}

AttentionPlan plan_of(const std::shared_ptr<const Machine>& machine, const AttentionHardware& hw, const AttentionProblem& p,
                      const Candidate& candidate, const std::vector<std::string>& unknown) {
    const AttentionConfig& c = candidate.config;
    const AttentionTime& t = candidate.time;
    const Sm90AttentionConfig k = kernel_config(p, c);
    AttentionPlan plan;
    plan.arch = machine->arch;
    plan.problem = p;
    plan.config = c;
    plan.held_back = t.held_back;
    plan.why_not = obstacle(*machine, p, c);
    plan.buildable = plan.why_not.empty();
    plan.unknown = unknown;
    const RoleRegisters shares = register_shares(hw, p, c);
    AttentionResources& r = plan.resources;
    r.threads = k.threads();
    r.accumulator_registers = k.accumulator_registers();
    r.producer_registers = known_count(shares.producer);
    r.consumer_registers = known_count(shares.consumer);
    r.stages_max = known_count(stages_max(hw, p, c));
    r.stage_bytes = k.k_bytes() + k.v_bytes();
    r.shared_bytes = k.shared_bytes();
    r.ctas_per_sm = c.ctas_per_sm;
    AttentionPrediction& out = plan.prediction;
    out.time_us = known(t.seconds * 1e6);
    out.tflops = known(p.flops() / t.seconds / 1e12);
    out.clock_mhz = known(t.clock_hz / 1e6);
    if (out.time_us) out.bound = t.bound;
    out.overlap_ceiling = known(t.block.ceiling());
    out.overlap_gain = known(c.ctas_per_sm * (t.block.tensor + t.block.exponential) / t.block.all);
    out.tensor_cycles = known(t.block.tensor);
    out.exponential_cycles = known(t.block.exponential);
    out.block_cycles = known(t.block.all);
    out.balance = known(t.balance);
    out.tiles = known_count(t.work.tiles);
    out.blocks = known_count(t.work.blocks);
    out.dram_bytes = known_count(t.work.dram_bytes);
    out.dram_lower_bound_bytes = known_count(t.work.dram_lower_bound_bytes);
    out.l2_bytes = known_count(t.work.l2_bytes);
    out.unfused_moved_bytes = known_count(p.unfused_bytes());
    plan.derivation = Steps([machine, hw, p, c, t] { return attention_derivation(*machine, hw, p, c, t); });
    return plan;
}

constexpr double alike = 1e-6;  // of two times: one
/// Bytes that an SM's share of DRAM's rate asks for beyond those in the ring, of a load amid others. What is more in flight than that only waits longer:
/// 33.6 MB of keys take 13.6 us with 64 KB in the ring, 14.9 with 192 (docs/facts.md 372).
double missing_in_flight(const AttentionHardware& hw, const AttentionProblem& p, const Candidate& c) {
    const Sm90AttentionConfig k = kernel_config(p, c.config);
    const double wanted = hw.load_latency / c.time.clock_hz * hw.dram_bandwidth / hw.sms;
    return max_known(wanted - c.config.ctas_per_sm * c.config.stages * double(k.k_bytes() + k.v_bytes()), 0);
}
/// Cycles of a load amid others that the blocks in flight beside it do not hide: times are told by the latency of a load alone, which is the
/// usual one, and a ring that is as deep as the longer one asks for costs shared memory that nobody else wants.
double unhidden(const AttentionHardware& hw, const Candidate& c) {
    const BlockCycles& block = c.time.block;
    return max_known(hw.load_latency + max_known(block.port, block.l2) - (c.config.stages - 1) * block.all, 0);
}

/// Fastest first; what has no time last. Of equals the one whose ring hides more of a slow load, then what takes less shared memory, then
/// fewer threads.
bool before(const AttentionHardware& hw, const AttentionProblem& p, const Candidate& a, const Candidate& b) {
    const double ta = a.time.seconds, tb = b.time.seconds;
    if (std::isnan(ta) != std::isnan(tb)) return std::isnan(tb);
    if (std::fabs(ta - tb) > alike * std::min(ta, tb)) return ta < tb;
    if (a.config.splits > 1 && b.config.splits > 1) {
        if (const double wa = missing_in_flight(hw, p, a), wb = missing_in_flight(hw, p, b); wa != wb) return wa < wb;
    } else if (const double wa = unhidden(hw, a), wb = unhidden(hw, b); std::fabs(wa - wb) > alike * std::max(wa, wb)) return wa < wb;
    const Sm90AttentionConfig ka = kernel_config(p, a.config), kb = kernel_config(p, b.config);
    if (ka.shared_bytes() != kb.shared_bytes()) return ka.shared_bytes() < kb.shared_bytes();
    return ka.threads() < kb.threads();
}

/// The best as many as are asked for. Sections of heads are searched where no other is ahead whatever its sections.
std::vector<Candidate> fastest_of(const AttentionHardware& hw, const AttentionProblem& p, const std::vector<AttentionConfig>& open, const AttentionRequest& request) {
    struct Begun {
        AttentionConfig config;
        TimedAttention timed;
        double least;
    };
    std::vector<Begun> begun;
    for (const AttentionConfig& config : open) {
        TimedAttention timed(hw, p, config);
        const double least = timed.least().seconds;
        begun.push_back({config, std::move(timed), std::isnan(least) ? 0 : least});
    }
    std::ranges::stable_sort(begun, {}, &Begun::least);
    std::vector<Candidate> best;
    const auto sooner = [&](const Candidate& a, const Candidate& b) { return before(hw, p, a, b); };
    for (Begun& b : begun) {
        const bool full = best.size() == std::size_t(request.top);
        if (full && b.least > best.back().time.seconds * (1 + alike)) break;
        const std::int64_t usual = section_heads(hw, p, b.config.tile_q);
        b.config.section_heads = request.section_heads ? std::min(*request.section_heads, p.heads_of_all()) : b.timed.fastest_sections(usual);
        const Candidate candidate{b.config, b.timed.in_sections(b.config.section_heads)};
        best.insert(std::upper_bound(best.begin(), best.end(), candidate, sooner), candidate);
        if (full) best.pop_back();
    }
    return best;
}

/// Plans of one CTA an SM; and of two where the best of these is sooner by a tenth: told 3 % sooner, two were 19 % slower (docs/facts.md 372).
std::vector<Candidate> fastest_of_all(const AttentionHardware& hw, const AttentionProblem& p, std::vector<AttentionConfig> open,
                                      const AttentionRequest& request) {
    constexpr double clearly = 0.9;
    const auto more = std::ranges::stable_partition(open, [](const AttentionConfig& c) { return c.ctas_per_sm == 1; });
    const std::vector<AttentionConfig> of_two(more.begin(), more.end());
    open.erase(more.begin(), more.end());
    std::vector<Candidate> best = fastest_of(hw, p, open, request), two = fastest_of(hw, p, of_two, request);
    if (!best.empty() && (two.empty() || !(two.front().time.seconds < clearly * best.front().time.seconds))) return best;
    best.insert(best.end(), two.begin(), two.end());
    std::ranges::stable_sort(best, [&](const Candidate& a, const Candidate& b) { return before(hw, p, a, b); });
    best.resize(std::min(best.size(), std::size_t(request.top)));
    return best;
}

/// What a rule speaks of and a request fixes: none sooner than the best that the search takes where it is free.
void hold_back(const std::shared_ptr<const Machine>& machine, const AttentionHardware& hw, const AttentionProblem& asked, const AttentionProblem& p,
               const AttentionRequest& request, std::vector<Candidate>& candidates) {
    const bool fixes = request.tile_q || request.tile_kv || request.stages || request.consumer_warpgroups || request.schedule;
    const auto behind_a_rule = [&](const Candidate& c) { return rule_of(hw, p, c.config) != nullptr; };
    if (request.exhaustive || !fixes || std::ranges::none_of(candidates, behind_a_rule)) return;
    const auto open = derive(machine, asked, {.top = 1});
    const auto* plans = std::get_if<AttentionPlans>(&open);
    if (!plans) return;
    const double least = plans->plans.front().prediction.time_us.value_or(0) * 1e-6;
    for (Candidate& c : candidates)
        if (behind_a_rule(c) && c.time.seconds < least) {
            c.time.held_back = least / c.time.seconds;
            c.time.seconds = least;
        }
}

/// What the same bits whatever else is in the batch cost.
std::string price_text(const std::shared_ptr<const Machine>& machine, const AttentionProblem& asked, AttentionRequest request,
                       double seconds) {
    request.batch_invariant.reset(), request.top = 1;
    const auto outcome = derive(machine, asked, request);
    const auto* free = std::get_if<AttentionPlans>(&outcome);
    const std::optional<double> us = free ? free->plans.front().prediction.time_us : std::nullopt;
    if (!us || std::isnan(seconds)) return "batch_invariant: what it costs is not known";
    return fmt::format("batch_invariant: predicted {} us, without it {} us ({:+.0f} %)", number_text(seconds * 1e6, 3), number_text(*us, 3),
                       (seconds * 1e6 / *us - 1) * 100);
}

}  // namespace

std::string_view kernel_name(const AttentionProblem& p) { return p.latent ? "sm90_latent_attention" : "sm90_attention"; }

std::variant<AttentionPlans, AttentionInfeasible> derive(std::shared_ptr<const Machine> machine,
                                                         const AttentionProblem& asked, const AttentionRequest& request) {
    check(asked);
    const AttentionProblem problem = heads_as_rows(asked);
    AttentionPlans plans;
    plans.machine_id = machine->id;
    plans.machine_name = machine->name;
    plans.problem = asked;
    const AttentionHardware hw = attention_hardware(*machine, problem.type, plans.unknown);
    plans.unchecked_constraints = unchecked_walls(hw);
    const auto infeasible = [&](Reason reason, std::string message) {
        AttentionInfeasible none;
        none.machine_id = plans.machine_id;
        none.machine_name = plans.machine_name;
        none.problem = asked;
        none.rejected = plans.rejected;
        none.unknown = plans.unknown;
        none.reason = reason;
        none.message = std::move(message);
        return none;
    };
    if (std::string missing = missing_matrix_type(*machine, attention_type_name(problem.type)); !missing.empty())
        return infeasible(Reason::instruction, std::move(missing));
    if (request.batch_invariant.value_or(false) && !may_split(problem))
        return infeasible(Reason::instruction,
                          fmt::format("batch_invariant is of few queries over keys, and {}; leave batch_invariant off",
                                      problem.packed() ? "these are packed sequences"
                                      : problem.queries == 0 || problem.keys == 0
                                          ? "here is nothing to compute"
                                          : fmt::format("here are {} rows a head of K; with a mask 256 are the most", problem.queries)));
    const AttentionRequest searched = request.batch_invariant.value_or(false) ? with_own_tiles(hw, problem, request) : request;
    std::vector<AttentionConfig> open;
    // Who fixes what a rule speaks of gets it.
    const auto asked_for = [&](const Rule& rule) {
        return rule.name == one_stage.name ? searched.stages.has_value() : searched.tile_kv.has_value();
    };
    std::optional<AttentionWall> nearest;
    std::vector<std::pair<AttentionConfig, const Rule*>> behind_rules;  // taken where nothing else is left
    for_each_config(searched, problem, hw.sms, [&](AttentionConfig config) {
        if (const auto wall = wall_of(hw, problem, config)) {
            plans.rejected.add(wall->reason);
            const auto over = [](const AttentionWall& w) { return w.reason == Reason::instruction ? INFINITY : w.needed / w.available; };
            if (!nearest || over(*wall) < over(*nearest)) nearest = wall;
            return;
        }
        const Rule* rule = request.exhaustive ? nullptr : rule_of(hw, problem, config);
        if (rule && !asked_for(*rule)) behind_rules.emplace_back(config, rule);
        else open.push_back(config);
    });
    if (open.empty())
        for (const auto& [config, rule] : behind_rules) open.push_back(config);
    else
        for (const auto& [config, rule] : behind_rules) plans.rejected.add(*rule);
    std::vector<Candidate> candidates = fastest_of_all(hw, problem, open, request);
    if (candidates.empty()) {
        const AttentionWall wall = nearest.value_or(AttentionWall{Reason::instruction, 0, 0});
        AttentionInfeasible none = infeasible(wall.reason, wall_text(wall, machine->id, problem.latent));
        if (wall.reason != Reason::instruction) none.needed = wall.needed, none.available = wall.available;
        return none;
    }
    plans.rejected.add(Reason::dominated, std::int64_t(open.size() - candidates.size()));
    hold_back(machine, hw, asked, problem, request, candidates);
    if (request.batch_invariant.value_or(false))
        plans.notes.push_back(price_text(machine, asked, request, candidates.front().time.seconds));
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        plans.plans.push_back(plan_of(machine, hw, problem, candidates[i], plans.unknown));
        plans.plans.back().rank = int(i + 1);
    }
    return plans;
}

}  // namespace rooftile
