#include "rooftile/model/fuse_launch.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "rooftile/model/arithmetic.hpp"

namespace rooftile {
namespace {

// Of our own code, counted in its machine code: instructions that a reduction spends on one element, and
// cycles from the last element to the result.
OpCost accumulate_cost(Reduction reduction) {
    switch (reduction) {
        case Reduction::sum:
            return {1, 0};
        case Reduction::square_sum:
            return {2, 0};
        case Reduction::max:
            return {1, 0};
        case Reduction::argmax:
            return {5, 0};
        case Reduction::exponentials:
            return {6, 1.25};
        case Reduction::moments:
            return {5, 0.125};
    }
    return {};
}
constexpr double shuffle_steps = 5, shuffle_cycles = 30, barrier_cycles = 60, cta_start_cycles = 600;

/// The share of its bandwidth that DRAM reaches with `given` times what Little's law needs in flight. The two
/// straight lines of the law meet in a bend: on an H800 16 KiB of 18.6 needed reach 0.88, 32 KiB 0.98
/// (hardware notes on bytes in flight).
double filled(double given) {
    if (!(given > 0)) return 1;  // unknown, or nothing to read
    constexpr double sharpness = 4;
    return given / std::pow(1 + std::pow(given, sharpness), 1 / sharpness);
}

/// Computed values that `targets` need, through all levels above the uniform one.
OpCost cost_of_targets(const FuseProblem& graph, const Program& p, std::set<int> found) {
    OpCost cost;
    for (int i = int(p.values.size()); i-- > 0;) {
        if (!found.contains(i)) continue;
        const ProgramValue& v = p.values[size_t(i)];
        if (v.level == Level::element) {
            if (v.kind == ValueKind::load) cost += OpCost{conversion_cost(v.element) + access_cost / 8, 0};
            if (v.kind == ValueKind::compute) {
                GraphNode n = v.node >= 0 ? graph.nodes[size_t(v.node)] : GraphNode{};
                if (is_row_operation(n.op) || n.op == Op::number) n = GraphNode{};
                n.op = v.op;
                OpCost one = cost_of(n);
                if (v.op == Op::power) one = {3, 0};
                if (v.op == Op::exp) one = {2, 1};
                cost += one;
            }
        }
        if (v.kind == ValueKind::compute) found.insert(v.operands.begin(), v.operands.end());
    }
    return cost;
}

}  // namespace

ProgramWork program_work(const FuseProblem& graph, const Program& p) {
    ProgramWork work;
    for (const ProgramValue& v : p.values) {
        if (v.kind != ValueKind::load) continue;
        const double bytes = bytes_of(v.element);
        if (v.access.full() && v.level == Level::element) {
            work.full_bytes += bytes;
            ++work.full_loads;
            work.least_copy_bytes = std::min(work.least_copy_bytes, bytes_of(v.element));
            if (is_floating(v.element)) work.narrow_bytes = std::min(work.narrow_bytes, bytes_of(v.element));
        } else {
            work.other_bytes += double(bytes_of(graph.nodes[size_t(graph.inputs[size_t(v.input)])]));
            if (v.level == Level::element) {
                ++work.shared_loads;
                work.shared_bytes += bytes;
            }
        }
    }
    std::set<int> stored;
    for (const ProgramStore& s : p.stores) {
        const GraphNode& n = graph.nodes[size_t(graph.outputs[size_t(s.output)].node)];
        work.written_bytes += double(bytes_of(n));
        if (s.level != Level::element) continue;
        stored.insert(s.value);
        work.first += OpCost{conversion_cost(n.element) / 2 + access_cost / 8, 0};
        if (is_floating(n.element)) work.narrow_bytes = std::min(work.narrow_bytes, bytes_of(n.element));
    }
    work.first += cost_of_targets(graph, p, stored);
    work.readings = stored.empty() ? 0 : 1;
    for (int pass = 0; pass < p.passes; ++pass) {
        std::set<int> reduced;
        for (const ProgramValue& v : p.values) {
            if (v.kind != ValueKind::reduce || v.pass != pass) continue;
            reduced.insert(v.operands[0]);
            work.first += accumulate_cost(v.reduction);
            ++work.reductions;
        }
        work.first += cost_of_targets(graph, p, reduced);
        work.readings += !reduced.empty();
    }
    return work;
}

FuseFlow fuse_flow(const FuseHardware& hw, const Program& p, const ProgramWork& work, const FusedBytes& bytes,
                   const FuseLaunch& l, double usable_sms) {
    FuseFlow f;
    const bool rows = p.form == FuseForm::row;
    const double elements = double(p.rows) * double(p.columns);
    const double read_share = bytes.sum() > 0 ? double(bytes.read_bytes) / double(bytes.sum()) : 0;
    // Reads take their share of what DRAM moves.
    const double rate = (read_share > 0.9 ? hw.read_bandwidth : hw.copy_bandwidth * read_share) / hw.sms;
    const double piece =
        rows ? l.threads / l.threads_per_row / l.cluster * double(p.columns)  // elements of a CTA
             : l.threads * l.items * l.width;
    const double pieces = std::max(1.0, std::ceil(elements / std::max(1.0, piece)));
    f.ctas = l.persistent ? std::min(pieces, usable_sms * l.ctas_per_sm) : pieces;
    if (rows) f.ctas = std::ceil(f.ctas / l.cluster) * l.cluster;
    const double resident = std::min(l.ctas_per_sm, f.ctas / hw.sms);
    // Of elements that a CTA has on their way at once.
    const double held =
        l.twice ? l.threads * l.items * l.width : std::min(piece, l.threads * l.items * l.width);
    // With rows copied ahead all but the one in work are on their way, whatever the work takes.
    const bool ahead = l.stages > 1;
    f.given = resident * held * work.full_bytes * (ahead ? l.stages - 1 : 1);

    // What a CTA's loads wait for before their bytes make place for others.
    double work_cycles = held * work.first.issue / hw.issue_lanes * resident / 2;  // others issue beside it
    if (rows) {
        double barrier = shuffle_steps * shuffle_cycles;
        if (l.threads_per_row > 32) barrier += barrier_cycles + shuffle_steps * shuffle_cycles;
        if (l.cluster > 1) barrier += most_known(hw.cluster_barrier, 0) + most_known(hw.dsmem_latency, 0);
        // Read again, a row comes in several chunks, and from L2 at best.
        const double taken = l.threads_per_row * l.cluster * l.items * l.width;
        const double chunks = l.twice ? std::max(1.0, std::ceil(double(p.columns) / taken)) : 1;
        work_cycles += (work.reductions * barrier + (l.persistent ? 0 : cta_start_cycles)) / chunks;
        if (l.twice) work_cycles += (work.readings - 1) * most_known(hw.l2_latency, 0);
    }
    const double loaded = hw.loaded_latency * hw.loaded_factor;
    const double round = ahead ? loaded : loaded + work_cycles;
    f.round_cycles = round;
    f.needed = round / hw.clock_hz * rate;
    f.waves = pieces / (usable_sms * l.ctas_per_sm);

    FuseWork w;
    w.dram_read_bytes = double(bytes.read_bytes);
    w.dram_written_bytes = double(bytes.written_bytes);
    if (l.twice) {
        const double again = elements * work.full_bytes * (work.readings - 1);
        const double live = resident * hw.sms / l.cluster * double(p.columns) * work.full_bytes
                            * (l.threads / l.threads_per_row);
        if (live <= hw.l2_bytes) w.l2_read_bytes = again;
        else w.dram_read_bytes += again;
    }
    w.cost = elements * work.first;
    // A CTA works on one row after the other: work that takes longer than the row's bytes is what counts.
    if (ahead) w.rounds_seconds = std::ceil(pieces / f.ctas) * work_cycles / hw.clock_hz;
    w.efficiency = filled(f.given / f.needed);
    f.dram_bytes = w.dram_read_bytes + w.dram_written_bytes;
    f.time = fuse_time(hw, w);
    if (f.given < f.needed && f.time.bound == Bound::dram) f.time.bound = Bound::latency;
    // The last CTAs' reductions and stores overlap with no loads.
    if (rows) f.time.seconds += most_known(work_cycles / 2 / hw.clock_hz, 0);
    return f;
}

}  // namespace rooftile
