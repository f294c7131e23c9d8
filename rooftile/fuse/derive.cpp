#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "rooftile/fuse/column_tiles.hpp"
#include "rooftile/fuse/derivation.hpp"
#include "rooftile/fuse/plan.hpp"
#include "rooftile/fuse/search.hpp"
#include "rooftile/fuse/staging.hpp"
#include "rooftile/fuse/unfused_plans.hpp"
#include "rooftile/machine/query.hpp"

namespace rooftile {
namespace {

constexpr int min_arch = 80;  // bf16 conversions, max.NaN, asynchronous copies

/// Why no kernel can be compiled for that program there; empty where one can.
std::string obstacle(const Machine& machine, const Program& p, const FuseConfig& c) {
    if (machine.arch.empty()) return "the machine file names no architecture to compile for";
    int number = 0;
    const size_t at = machine.arch.find('_') + 1;
    std::from_chars(machine.arch.data() + at, machine.arch.data() + machine.arch.size(), number);
    if (number < min_arch) return fmt::format("needs sm_80 or later; this machine is {}", machine.arch);
    constexpr double max_vectors = 2147483648.0, max_places = 4294967295.0;
    if (!p.flat && double(p.columns) / c.vector_width >= max_vectors)
        return fmt::format("a row of {} elements has 2^31 vectors or more", p.columns);
    for (const ProgramValue& v : p.values) {
        if (v.kind == ValueKind::reduce && v.reduction == Reduction::argmax
            && double(p.columns) >= max_places)
            return "argmax counts columns in 32 bits";
    }
    return {};
}

FuseTotals totals_of(double moved, double dram, double seconds, std::int64_t kernels) {
    return {known_count(moved), known_count(dram), known(seconds * 1e6), kernels};
}

std::vector<FuseOperator> operators_of(const ExpressionGraph& graph, const std::vector<UnfusedOp>& ops,
                                       const UnfusedTime& time) {
    constexpr size_t max_text = 48;
    std::vector<FuseOperator> out;
    for (size_t i = 0; i < ops.size(); ++i) {
        const GraphNode& n = graph.nodes[size_t(ops[i].node)];
        FuseOperator op;
        // An operation's own text: what it takes stands under a name where it has one.
        op.text = expression_of(graph, ops[i].node, max_text);
        op.type = fmt::format("{}{}", name_of(n.element), text_of(n.shape));
        op.totals = totals_of(double(ops[i].bytes()), ops[i].dram_read_bytes + ops[i].dram_written_bytes,
                              time.kernels[i].seconds, 1);
        if (op.totals.time_us) op.bound = time.kernels[i].bound;
        out.push_back(std::move(op));
    }
    return out;
}

FusePlan plan_of(const Machine& machine, const FuseHardware& hw, const ExpressionGraph& graph,
                 const Program& program, const FuseCandidate& candidate, const std::vector<UnfusedOp>& ops,
                 double unfused_seconds, int rank) {
    FusePlan plan;
    plan.rank = rank;
    plan.arch = machine.arch;
    plan.problem = graph;
    plan.program = program;
    plan.config = candidate.config;
    plan.launch = candidate.launch;
    plan.held_back = candidate.held_back;
    plan.why_not = obstacle(machine, program, candidate.config);
    plan.buildable = plan.why_not.empty();
    const FuseFlow& f = candidate.flow;
    plan.resources = {candidate.config.threads,
                      known_count(candidate.registers),
                      program.form == FuseForm::columns ? column_shared_bytes(program, candidate.config)
                                                        : staged_rows(program, candidate.config).bytes,
                      candidate.config.ctas_per_sm,
                      known_count(f.bytes_in_flight),
                      known_count(f.bytes_in_flight_needed)};
    FusePrediction& p = plan.prediction;
    p.time_us = known(f.time.seconds * 1e6);
    if (p.time_us) p.bound = f.time.bound;
    const double moved = double(fused_bytes(graph).sum());
    p.moved_bytes = known_count(moved);
    p.dram_bytes = known_count(f.dram_bytes);
    p.gbytes_per_s = known(moved / f.time.seconds / 1e9);
    p.issue_share = known(f.time.issue / f.time.dram);
    p.waves = known(f.waves);
    p.speedup = known(unfused_seconds / f.time.seconds);
    plan.derivation = fuse_derivation(machine, hw, graph, program, candidate, ops, unfused_seconds);
    return plan;
}

bool fixes_something(const FuseRequest& r) {
    return r.vector_width || r.vectors_per_thread || r.threads || r.threads_per_row || r.cluster || r.stages || r.ctas_per_sm || r.reduction_threads
           || r.rows_per_cta || r.row_splits || r.row_storage || r.persistent || r.grid_reduction || r.early_weights || r.reduce_scope
           || r.alignment != FuseRequest().alignment;
}

/// None sooner than `least` seconds, of the best that the search takes where it is free.
void hold_back(std::vector<FuseCandidate>& kept, double least) {
    for (FuseCandidate& c : kept)
        if (double& seconds = c.flow.time.seconds; seconds < least) {
            c.held_back = least / seconds;
            seconds *= c.held_back;
        }
}

}  // namespace

std::string_view name_of(RowStorage row_storage) {
    constexpr std::string_view names[] = {"none", "registers", "reload", "pipelined", "shared"};
    return names[int(row_storage)];
}

std::variant<FusePlans, FuseInfeasible> derive(const Machine& machine, const ExpressionGraph& graph,
                                               const FuseRequest& request) {
    FusePlans plans;
    plans.machine_id = machine.id;
    plans.machine_name = machine.name;
    plans.machine_hash = machine.hash();
    plans.problem = graph;
    const FuseHardware hw = fuse_hardware(machine, plans.unknown);
    if (std::string note = calibration_note(machine); !note.empty()) plans.notes.push_back(std::move(note));
    std::vector<UnfusedOp> ops = unfused_ops(graph, hw.l2_bytes);
    const UnfusedTime unfused = launched_time(machine, hw, graph, ops);
    double moved = 0, dram = 0;
    for (const UnfusedOp& op : ops) {
        moved += double(op.bytes());
        dram += op.dram_read_bytes + op.dram_written_bytes;
    }
    plans.unfused = totals_of(moved, dram, unfused.seconds, std::int64_t(ops.size()));
    plans.operators = operators_of(graph, ops, unfused);

    const auto infeasible = [&](Reason reason, std::string message) {
        FuseInfeasible none;
        none.reason = reason;
        none.message = std::move(message);
        none.machine_id = plans.machine_id;
        none.machine_name = plans.machine_name;
        none.machine_hash = plans.machine_hash;
        none.problem = graph;
        none.unfused = plans.unfused;
        none.operators = plans.operators;
        none.rejected = plans.rejected;
        none.unknown = plans.unknown;
        return none;
    };
    const auto lowered = fuse_program(graph);
    if (const auto* none = std::get_if<NoProgram>(&lowered))
        return infeasible(Reason::instruction, none->why);
    const Program& program = std::get<Program>(lowered);

    FuseSearch search = search_launches(machine, hw, graph, program, request);
    plans.rejected = search.rejected;
    plans.unchecked_constraints = std::move(search.unchecked_constraints);
    if (search.kept.empty()) {
        std::string open =
            "leave more of vector_width, vectors_per_thread, threads, cluster, row_splits, stages and row_storage open";
        if (const auto left_out = plans.rejected.reasons[size_t(Reason::rule)]; left_out > 0)
            open += fmt::format(", or search the {} that rules left out by --exhaustive", left_out);
        if (search.register_need > 0)
            return infeasible(
                Reason::registers,
                fmt::format("no launch fits: the least needs {:.0f} registers a thread, {} has {:.0f}; {}",
                            search.register_need, machine.id, hw.registers_per_thread, open));
        return infeasible(Reason::instruction, "no launch is as asked for; " + open);
    }
    if (fixes_something(request) && !request.exhaustive) {
        const FuseSearch open = search_launches(machine, hw, graph, program, {.top = 1});
        if (!open.kept.empty()) hold_back(search.kept, open.kept.front().flow.time.seconds);
    }
    int rank = 0;
    for (const FuseCandidate& candidate : search.kept)
        plans.plans.push_back(plan_of(machine, hw, graph, program, candidate, ops, unfused.seconds, ++rank));
    const FuseCandidate& best = search.kept.front();
    plans.fused =
        totals_of(double(fused_bytes(graph).sum()), best.flow.dram_bytes, best.flow.time.seconds, 1);
    return plans;
}

}  // namespace rooftile
