#include <fmt/core.h>

#include "kernels/gemm/tile_order.cuh"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/gemm/derivation.hpp"
#include "rooftile/gemm/sm80_space.hpp"
#include "rooftile/gemm/sm90_family.hpp"

namespace rooftile {
namespace {

constexpr int most_plans = 64;

// Which kernel family a machine gets, and the matrix instruction whose rate it is planned with.
struct Choice {
    GemmKernel kernel = GemmKernel::generic;
    std::string family = "generic";
    bool async_copy = true;
};

Choice choose(const Machine& machine, Type type) {
    const bool hopper =
        machine.has("wgmma") && machine.has("tma") && machine.has("mbarrier") && machine.has("setmaxnreg");
    if (hopper) return {GemmKernel::sm90_gemm, "wgmma", true};
    if (machine.has("mma_sync")) return {GemmKernel::sm80_gemm, "mma_sync", !machine.lacks("cp_async")};
    for (const char* family : {"wgmma", "mma_sync"})
        if (machine.find(rate_key(family, name_of(type), "fp32"))) return {GemmKernel::generic, family, true};
    return {};
}

// Everything about one search that messages need.
struct Request {
    const Machine& machine;
    const GemmProblem& problem;
    const GemmRequest& fixed;
    const GemmHardware& hw;
};

Infeasible infeasible(const Request& r, Reason reason, std::string message, double needed, double available) {
    return {reason, std::move(message), needed, available, r.machine.id, r.machine.name, r.problem, {}};
}

std::string tile_text(const GemmCandidate& c) {
    return fmt::format("tile {}x{}x{}, {} {} consumer warpgroup{}{}", c.tile.tile_m, c.tile.tile_n,
                       c.tile.tile_k, c.warpgroups, name_of(c.schedule), c.warpgroups == 1 ? "" : "s",
                       c.tile.split_k > 1 ? fmt::format(", split_k {}", c.tile.split_k) : "");
}

// One line for the wall that stopped the candidate which got furthest: needed, available, what to change.
template <class Family>
std::string wall_text(const Request& r, const Family& family, const SearchResult& result) {
    GemmCandidate c = result.last_candidate;
    const Wall& wall = result.last;
    const auto rule = [&] {
        return fmt::format(
            "{}: {}", tile_text(c),
            fmt::format(fmt::runtime(wall.rule), fmt::arg("needed", shortest_text(std::round(wall.needed))),
                        fmt::arg("available", shortest_text(std::round(wall.available)))));
    };
    if (wall.reason != Reason::shared) return rule();
    Footprint f;
    family.examine(r.hw, r.problem, c, f);
    const int fit = f.stages_max(1 << 20);
    const int stages = r.fixed.stages.value_or(std::max(fit + 1, least_stages));
    if (stages <= fit) return rule();  // too few to hold the sums of parts of K
    return fmt::format(
        "{}: {} stages: {} x {} = {} B + {} B for C slabs and barriers > {:.0f} B of shared "
        "memory "
        "on {}; {} fit{}",
        tile_text(c), stages, stages, f.stage_bytes, std::int64_t{stages} * f.stage_bytes,
        f.reserved_bytes + stages * f.stage_overhead, f.shared_limit, r.machine.id, std::max(fit, 0),
        fit < f.stages_least && c.tile.split_k > 1
            ? fmt::format(", and the sums that parts of K exchange take {}", f.stages_least)
            : "");
}

// Families that are named in the contract but not built yet.
std::string not_built_yet(const GemmProblem& p, const GemmConfig& c, const GemmHardware& hw) {
    if (c.kernel == GemmKernel::sm80_gemm) return "the cp.async + mma.sync kernel is not written yet";
    if (c.kernel == GemmKernel::generic)
        return "the machine names no architecture, so no kernel is known for it";
    if (std::isnan(hw.registers_per_sm) || std::isnan(hw.registers_per_thread))
        return "sm.registers or sm.max_registers_per_thread is unknown, so setmaxnreg cannot be chosen";
    const auto [rows, columns] = cluster_grid(p, c.tile_m, c.tile_n, c.cluster_m, c.cluster_n);
    if ((c.order == Order::hilbert || c.order == Order::morton)
        && std::max(rows, columns) > most_table_extent)
        return fmt::format("order {} on {} x {} tiles: its table counts up to {} either way",
                           name_of(c.order), rows, columns, most_table_extent);
    return {};
}

std::vector<std::string> unchecked_walls(const GemmHardware& hw) {
    std::vector<std::string> walls;
    const auto unchecked = [&](bool is, const char* wall) {
        if (is) walls.emplace_back(wall);
    };
    unchecked(std::isnan(hw.registers_per_sm) || std::isnan(hw.registers_per_thread), "registers");
    unchecked(std::isnan(hw.shared_per_cta), "shared memory");
    unchecked(std::isnan(hw.dram_latency) || std::isnan(hw.flops_per_cycle), "latency");
    unchecked(std::isnan(hw.threads_per_sm), "threads");
    unchecked(std::isnan(hw.shared_bandwidth), "instruction against shared memory");
    unchecked(std::isnan(hw.l2_port), "CTA tile against the SM's port");
    unchecked(std::isnan(hw.l2_share), "cluster tile against L2");
    unchecked(std::isnan(hw.dram_share), "wave against DRAM");
    unchecked(std::isnan(hw.sms), "waves");
    return walls;
}

template <class Family>
std::variant<Plans, Infeasible> run(const Request& r, const Family& family, GemmContext context,
                                    const std::vector<std::string>& unknown) {
    SearchResult result = search(family, r.hw, r.problem, r.fixed);
    if (result.best.empty()) {
        const bool any = bool(result.last);
        Infeasible out =
            infeasible(r, any ? result.last.reason : Reason::instruction,
                       any ? wall_text(r, family, result) : "no candidate has the values that were fixed",
                       result.last.needed, result.last.available);
        out.rejected = result.rejected;
        return out;
    }
    context.kept = std::move(result.best);
    const auto shared = std::make_shared<const GemmContext>(std::move(context));
    Plans plans;
    plans.machine_id = r.machine.id;
    plans.machine_name = r.machine.name;
    plans.problem = r.problem;
    plans.rejected = result.rejected;
    std::string first_why_not;
    plans.plans.reserve(shared->kept.size());
    for (std::size_t i = 0; i < shared->kept.size(); ++i) {
        GemmPlan plan = write_plan(shared, i);
        plan.rank = static_cast<int>(plans.plans.size()) + 1;
        plan.unknown = unknown;
        plan.why_not = not_built_yet(r.problem, plan.config, r.hw);
        plan.buildable = plan.why_not.empty();
        if (r.fixed.buildable_only && !plan.buildable) {
            ++plans.rejected.reasons[static_cast<int>(Reason::instruction)];
            if (first_why_not.empty()) first_why_not = plan.why_not;
            continue;
        }
        plans.plans.push_back(std::move(plan));
    }
    if (plans.plans.empty()) {
        Infeasible out = infeasible(r, Reason::instruction, first_why_not, 0, 0);
        out.rejected = plans.rejected;
        return out;
    }
    return plans;
}

// Every candidate of the space falls at once where the problem itself cannot be loaded.
template <class Family>
Infeasible all_fall(const Request& r, const Family& family, Reason reason, std::string message, double needed,
                    double available) {
    Infeasible out = infeasible(r, reason, std::move(message), needed, available);
    struct Count final : GemmVisitor {
        std::int64_t candidates = 0;
        void fall(const Wall&, const GemmCandidate&, std::int64_t how_many) override {
            candidates += how_many;
        }
        void stand(const GemmCandidate&, const Footprint&) override { ++candidates; }
    } count;
    family.walk(r.hw, r.problem, r.fixed, count);
    out.rejected.reasons[static_cast<int>(reason)] = count.candidates * inner_space(r.fixed).size();
    return out;
}

// What a request fixes that only one kernel has; null where it fixes nothing of the kind.
const char* only_of_sm90(const GemmRequest& request) {
    if (request.deferred_store.value_or(false)) return "deferred_store = 1";
    if (request.store_n) return "store_n";
    if (request.programmatic_launch.value_or(false)) return "programmatic_launch = 1";
    const EvictFirst first = request.evict_first.value_or(EvictFirst{});
    return first.a || first.b || first.c ? "evict_first" : nullptr;
}

// Of an operand whose rows do not begin at whole sectors of L2 (docs/facts.md 46); empty where they do, and where
// there is not more than one row of tiles: nothing is read again.
std::string pitch_note(const char* name, std::int64_t pitch, std::int64_t rows) {
    constexpr int sector = Sm90GemmConfig::sector_columns;
    if (pitch % sector == 0 || rows <= Sm90GemmConfig::wgmma_m) return {};
    return fmt::format(
        "{} = {} is no multiple of {} elements: rows begin amid a 32-byte sector. Where that was counted, on "
        "an H200, operands that are read again cost 16 to 64 % more bytes from DRAM than padded ones, which "
        "this plan does not count; pad it to {}",
        name, pitch, sector, ceil_div(pitch, sector) * sector);
}

std::vector<std::string> notes(const Machine& machine, const GemmProblem& problem, const Choice& choice,
                               const GemmHardware& hw) {
    std::vector<std::string> out;
    if (choice.kernel == GemmKernel::sm90_gemm)
        for (const auto& note :
             {pitch_note("lda", problem.lda, problem.m), pitch_note("ldb", problem.ldb, problem.n)})
            if (!note.empty()) out.push_back(note);
    if (machine.has("tcgen05"))
        out.emplace_back("tcgen05 is not modelled yet: planned at the rate of mma.sync");
    if (choice.kernel == GemmKernel::sm80_gemm && !choice.async_copy)
        out.emplace_back("cp.async is infeasible here: the next tile waits in registers, two stages at most");
    if (std::isnan(hw.launch_seconds))
        out.emplace_back("times leave out the launch: launch.gap_stream is unknown");
    if (std::string note = calibration_note(machine); !note.empty()) out.push_back(std::move(note));
    return out;
}

}  // namespace

std::variant<Plans, Infeasible> derive(const Machine& machine, const GemmProblem& problem,
                                       const GemmRequest& asked) {
    return derive(std::make_shared<const Machine>(machine), problem, asked);
}

std::variant<Plans, Infeasible> derive(std::shared_ptr<const Machine> shared, const GemmProblem& problem,
                                       const GemmRequest& asked) {
    const Machine& machine = *shared;
    check(problem);
    check(asked);
    GemmRequest request = asked;
    request.top = std::clamp(request.top, 1, most_plans);
    const Choice choice = choose(machine, problem.a_type);
    std::vector<std::string> unknown;
    const GemmHardware hw = gemm_hardware(machine, choice.family, problem.a_type, unknown);
    const Request r{machine, problem, request, hw};

    const auto with = [&](const auto& family) -> std::variant<Plans, Infeasible> {
        const std::string type(name_of(problem.a_type));
        if (machine.lacks(type))
            return all_fall(r, family, Reason::instruction,
                            fmt::format("{} has no {} matrix instruction; take {}", machine.id, type,
                                        problem.a_type == Type::bf16 ? "fp16" : "bf16"),
                            1, 0);
        if (choice.kernel != GemmKernel::sm90_gemm && request.split_k.value_or(1) != 1)
            return all_fall(
                r, family, Reason::instruction,
                fmt::format("split_k = {} takes clusters and the kernel made for them; 1 does not",
                            *request.split_k),
                *request.split_k, 1);
        if (choice.kernel != GemmKernel::sm90_gemm)
            if (const char* what = only_of_sm90(request))
                return all_fall(
                    r, family, Reason::instruction,
                    fmt::format("{} is of the Hopper kernel alone; {} has none", what, machine.id), 1, 0);
        if (choice.kernel != GemmKernel::generic)
            if (const std::string why = copy_problem(problem); !why.empty())
                return all_fall(r, family, Reason::alignment, why, copy_elements, 0);
        return run(r, family, {shared, problem, hw, choice.family, choice.kernel, request, {}}, unknown);
    };

    std::variant<Plans, Infeasible> out;
    switch (choice.kernel) {
        case GemmKernel::sm90_gemm:
            out = with(Sm90GemmFamily(hw, problem));
            break;
        case GemmKernel::sm80_gemm:
            out = with(Sm80GemmFamily{choice.async_copy});
            break;
        case GemmKernel::generic:
            out = with(GenericGemmFamily{});
            break;
    }
    std::visit(
        [&](auto& result) {
            result.unknown = unknown;
            result.unchecked_walls = unchecked_walls(hw);
            result.notes = notes(machine, problem, choice, hw);
        },
        out);
    return out;
}

}  // namespace rooftile
