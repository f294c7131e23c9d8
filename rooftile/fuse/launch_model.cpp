#include "rooftile/fuse/launch_model.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

// Of our own code, counted in its machine code: instructions that a reduction spends on one element of a row
// that is held, or of one that passes by.
OpCost accumulate_cost(const Program& p, int reduce, bool held) {
    // Greatest, two or three words an instruction; times and minus in one, e^, plus.
    if (gives_shared_base(p, reduce)) return held ? OpCost{3.5, 1} : OpCost{3.8, 1};
    switch (p.values[size_t(reduce)].reduction) {
        case Reduction::sum:  // plus; plus, plus, minus, minus with its rest
            return {only_for_means(p, reduce) ? 4.0 : 1.0, 0};
        case Reduction::square_sum:
            return {1.5, 0};
        case Reduction::max:
            return {1, 0, 1};
        case Reduction::argmax:
            return {5, 0, 5};
        case Reduction::
            exponentials:  // greatest, two an instruction; minus, times, e^, plus; rescaled a vector
            return held ? OpCost{3.5, 1} : OpCost{3.5, 1.125};
        case Reduction::moments:  // plus; minus, plus, times and plus
            return held ? OpCost{4, 0} : OpCost{4, 0.125};
    }
    return {};
}

/// Whether a sum or difference takes a product that nothing else does.
bool adds_product(const Program& p, const ProgramValue& sum) {
    if (sum.op != Op::add && sum.op != Op::subtract) return false;
    return std::any_of(sum.operands.begin(), sum.operands.end(), [&](int i) {
        const ProgramValue& v = p.values[size_t(i)];
        if (v.kind != ValueKind::compute || v.op != Op::multiply || v.level != Level::element) return false;
        const bool stored = std::any_of(p.stores.begin(), p.stores.end(),
                                        [&](const ProgramStore& s) { return s.value == i; });
        return !stored && users_of(p, i).size() == 1;
    });
}

// Instructions of a vector on its way into shared memory, and from there to its tensor with the question whether neighbours have some
// of it: counted in the machine code of sums and of rows less their sum.
constexpr double brought = 8, returned = 14;

/// How a program's elements lie in vectors.
struct Vectors {
    int width;
    bool off;      ///< rows begin and end within them
    int shared;    ///< of vectors that bring a warp's rows into shared memory, of which elements are taken; else 0
};

/// Instructions of an element where its vector may reach over an end of the row, a pass: counted in machine code, sums of rows
/// of 41 and 40 elements and longer ones differ by 4 to 5, half of them behind a branch.
OpCost span_cost(const Vectors& v) { return {v.off ? 2.5 : 0.0, 0}; }

/// Instructions of an element of a tensor that lies beside the rows' own vectors: one word more than it fills, each with its
/// place held inside the row, then shifted by half a word, a quarter and, of 16 bits, the rest (load_beside()).
OpCost beside_cost(int element_bytes, int vector_width) {
    const double words = std::ceil(vector_width * element_bytes / 16.0);
    const double shifts = (4 * words + 2) + (4 * words + 1) + (element_bytes < 4 ? 4 * words : 0);
    const double places = 3 * (words + 1);
    return {(shifts + places + access_cost) / vector_width, 0, places / vector_width};
}

/// A dropout's cost an element of its result: how many blocks of eight masks are made for it depends on how vectors lie.
OpCost cost_of_masks(const ProgramValue& v, const Vectors& vectors) {
    constexpr int block = 8;
    const int width = std::min(vectors.width, block);
    if (vectors.shared && v.access.full()) {
        OpCost cost = dropout_cost(1.0 / vectors.shared, vectors.shared);
        cost += OpCost{4, 0, 3};  // a flag: chosen, packed with others, loaded, asked
        return cost;
    }
    // Beside the rows' own vectors lie two blocks, from both of which is drawn.
    if (vectors.off && !v.access.plain_rows()) return dropout_cost(2.0 / width, width);
    return dropout_cost(1.0 / width, width);
}

/// Computed values that `targets` need, through all levels above the uniform one, and `loads` times their loads
/// and widening.
OpCost cost_of_targets(const ExpressionGraph& graph, const Program& p, const Vectors& vectors,
                       std::set<int> found, double loads = 1) {
    const std::vector<Element> precisions = precisions_of(graph);
    OpCost cost;
    for (int i = int(p.values.size()); i-- > 0;) {
        if (!found.contains(i)) continue;
        const ProgramValue& v = p.values[size_t(i)];
        if (v.level == Level::element) {
            if (v.kind == ValueKind::load) {
                // Rows: the lower half of each word goes by a product.
                OpCost conversion = conversion_cost(v.element);
                if (p.form == FuseForm::row && v.element == Element::bf16) conversion.alu /= 2;
                cost += loads * conversion;
                const bool beside = !v.access.full();
                // An element's place in shared memory is a constant beside its row's; a vector is loaded, and stored there.
                const double access = !vectors.shared || beside ? access_cost / vectors.width
                                                                : 1 + brought / vectors.shared;
                cost += loads * OpCost{access, 0};
                if (vectors.off && beside) cost += loads * beside_cost(bytes_of(v.element), vectors.width);
            }
            if (v.kind == ValueKind::compute) {
                GraphNode n = v.node >= 0 ? graph.nodes[size_t(v.node)] : GraphNode{};
                if (is_row_operation(n.op) || n.op == Op::number) n = GraphNode{};
                n.op = v.op;
                OpCost one = cost_of(n, v.node >= 0 ? precisions[size_t(v.node)] : precision_of(graph));
                if (v.op == Op::power) one = {3, 0};
                if (v.op == Op::exp) one = {2, 1};
                if (v.op == Op::dropout) one = cost_of_masks(v, vectors);
                if (adds_product(p, v)) one = {};  // one instruction with its product
                cost += one;
            }
        }
        if (v.kind != ValueKind::compute) continue;
        // Of a power from a shared base the difference is in the exponent's product.
        const auto& operands =
            shared_base_of(p, i) < 0 ? v.operands : p.values[size_t(v.operands[0])].operands;
        found.insert(operands.begin(), operands.end());
    }
    return cost;
}

/// What is computed of rows, not of their elements: masks of rows and what else has one value a row, in each thread of the row.
OpCost cost_of_row(const ExpressionGraph& graph, const Program& p) {
    OpCost cost;
    for (const ProgramValue& v : p.values) {
        if (v.level != Level::row || v.kind != ValueKind::compute) continue;
        GraphNode n = v.node >= 0 ? graph.nodes[size_t(v.node)] : GraphNode{};
        if (is_row_operation(n.op) || n.op == Op::number) n = GraphNode{};
        n.op = v.op;
        cost += v.op == Op::dropout ? dropout_cost(1, 1) : cost_of(n, Element::fp32);
    }
    return cost;
}

}  // namespace

bool reduced_in_two_rounds(const ExpressionGraph& graph, const Program& p, int reduce, bool shared) {
    const ProgramValue& v = p.values[size_t(reduce)];
    if (v.reduction != Reduction::exponentials && v.reduction != Reduction::moments) return false;
    if (shared) return true;
    const OpCost again = cost_of_targets(graph, p, {8, false, 0}, {v.operands[0]}, 0);
    return again.mufu == 0 && again.issue <= accumulate_cost(p, reduce, true).issue;
}

ProgramWork program_work(const ExpressionGraph& graph, const Program& p, int vector_width, bool shared) {
    const int staged = shared ? std::exchange(vector_width, 1) : 0;
    const Vectors vectors{vector_width, rows_off_vectors(p, vector_width), staged};
    ProgramWork work;
    for (const ProgramValue& v : p.values) {
        if (v.kind != ValueKind::load) continue;
        const double bytes = bytes_of(v.element);
        if (v.access.full() && v.level == Level::element) {
            work.full_bytes += bytes;
            ++work.full_loads;
            work.min_copy_bytes = std::min(work.min_copy_bytes, bytes_of(v.element));
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
        if (s.level != Level::element || p.form == FuseForm::columns) continue;  // of columns alone: next to nothing
        stored.insert(s.value);
        work.first += 0.5 * conversion_cost(n.element);  // two an instruction
        work.first += OpCost{staged ? 1 + returned / staged : access_cost / vector_width, 0};
        if (is_floating(n.element)) work.narrow_bytes = std::min(work.narrow_bytes, bytes_of(n.element));
    }
    work.first += cost_of_targets(graph, p, vectors, stored);
    work.result = work.first;
    if (!stored.empty()) work.span += span_cost(vectors), work.result += span_cost(vectors);
    OpCost online_extra, held_only;
    work.readings = stored.empty() ? 0 : 1;
    for (int pass = 0; pass < p.passes; ++pass) {
        std::set<int> reduced, again;
        for (int i = 0; i < int(p.values.size()); ++i) {
            const ProgramValue& v = p.values[size_t(i)];
            if (v.kind != ValueKind::reduce || v.pass != pass) continue;
            reduced.insert(v.operands[0]);
            const bool two = reduced_in_two_rounds(graph, p, i, shared);
            const OpCost own = accumulate_cost(p, i, two);
            work.first += own;
            online_extra += accumulate_cost(p, i, false);
            held_only += own;
            ++work.reductions;
            work.reduction_rounds += 1 + two;
            if (two) again.insert(v.operands[0]);
        }
        const OpCost second = cost_of_targets(graph, p, vectors, again, 0);
        work.first += second, held_only += second;
        // A row that passes by is loaded and widened once for its reduction and once for its result. One that is
        // held is widened again as well, but no trace of it is in the times.
        const bool held = !stored.empty() || pass > 0;
        const OpCost once = cost_of_targets(graph, p, vectors, reduced, held ? 0 : 1);
        work.first += once;
        if (!reduced.empty()) work.span += span_cost(vectors);
        online_extra += cost_of_targets(graph, p, vectors, reduced);
        online_extra += -1 * once;
        work.readings += !reduced.empty();
    }
    if (p.form == FuseForm::row) work.row = cost_of_row(graph, p);
    work.online = work.first;
    work.online += online_extra;
    work.online += work.span;
    work.online += -1 * held_only;
    return work;
}

namespace {

/// What one CTA works on between its start and its end.
struct Piece {
    double elements = 0;
    double rounds = 1;    ///< in which its loads come
    double readings = 1;  ///< of each element
    double count = 0;     ///< of pieces
};

Piece piece_of(const Program& p, const ProgramWork& work, const FuseLaunch& l) {
    Piece piece;
    const double taken = l.threads * l.vectors_per_thread * l.vector_width;
    piece.elements = p.form == FuseForm::row
                         ? l.threads / l.threads_per_row * l.rows_per_thread * double(p.columns)
                         : taken;
    if (l.reload) {
        piece.rounds = std::max(1.0, std::ceil(piece.elements / taken));
        piece.readings = std::max(1, work.readings);
    }
    const double all = double(p.rows) * double(p.columns);
    piece.count = std::max(1.0, std::ceil(all / std::max(1.0, piece.elements)));
    return piece;
}

/// The share of DRAM's rate that rows cost which are read side by side for many rounds.
double lost_share(const FuseHardware& hw, const Program& p, const FuseLaunch& l, const Piece& piece) {
    if (p.form != FuseForm::row || piece.rounds <= 1) return 0;
    constexpr double stated_for = 64;
    const double streams = std::max(1.0, l.ctas_per_sm * l.threads / l.threads_per_row);
    return max_known(hw.streams_derate, 0) * std::min(1.0, streams / stated_for);
}

/// In which nothing of a row can be computed: its threads are reducing.
double joint_cycles(const FuseHardware& hw, const ProgramWork& work, const FuseLaunch& l) {
    // A reduction ends with its result in every thread.
    double cycles = 0;  // a thread alone merges nothing
    if (l.threads_per_row > 1)
        cycles = (l.reload ? work.reductions : work.reduction_rounds) * hw.fit.reduction;
    return cycles;
}

/// Cycles in which a CTA neither computes nor stands in DRAM's queue.
double waiting_cycles(const FuseHardware& hw, const Program& p, const ProgramWork& work, const FuseLaunch& l,
                      const Piece& piece) {
    double cycles = max_known(hw.dram_latency, 0) + max_known(hw.l2_latency, 0);
    cycles *= (1 + piece.rounds * piece.readings) / 2;
    cycles += max_known(piece.elements * work.full_bytes / hw.sm_bandwidth, 0);
    if (p.form != FuseForm::row) return cycles;
    cycles += joint_cycles(hw, work, l);
    // In machine code the load of each vector's weights stands behind the store of the vector before.
    if (!l.early_weights && work.shared_loads > 0)
        cycles += l.vectors_per_thread * max_known(hw.l2_latency, 0);
    return cycles;
}

/// Elements that the lanes of a row's warps go over beside one that the row has: lanes without a vector wait for the others, and
/// neighbours' elements in the first and last vector are computed, too.
double lanes_an_element(const Program& p, const FuseLaunch& l) {
    if (p.form != FuseForm::row || p.columns == 0) return 1;
    const int vector_width = int(l.vector_width);
    const auto together = std::int64_t(min_known(warp_threads, l.threads_per_row));
    const std::int64_t lanes = ceil_div(max_row_vectors(p, vector_width), together) * together;
    return double(lanes) * vector_width / double(p.columns);
}

/// Of a thread's vectors of a row that it holds the share that is asked whether the row begins or ends in it: its first one and
/// those behind which some row ends.
double asked_share(const Program& p, const FuseLaunch& l) {
    if (p.form != FuseForm::row) return 1;
    const double before_end = whole(double(min_row_vectors(p, int(l.vector_width)) - 1) / l.threads_per_row);
    return 1 - std::clamp(before_end - 1, 0.0, l.vectors_per_thread - 1) / l.vectors_per_thread;
}

/// Instructions a row of its two vectors that are cut, in which all lanes wait for one. A store is looked for half by half, by
/// rows that share a warp, and are cut in as many ways, through all halves; what is reduced is asked element by element.
OpCost cut_cost(const Program& p, const ProgramWork& work, const FuseLaunch& l) {
    const int vector_width = int(l.vector_width);
    if (p.form != FuseForm::row || !rows_off_vectors(p, vector_width)) return {};
    constexpr double half = 6, element = 4.5;  // instructions, counted in machine code
    const double halves = l.threads_per_row < warp_threads ? 4.0 * vector_width : std::log2(2.0 * vector_width);
    const double stores = stores_elements(p) ? half * halves : 0;
    const double cuts = 2 * (stores + work.reduction_rounds * element * vector_width);
    return {cuts * min_known(warp_threads, l.threads_per_row), 0};
}

/// Cycles of all waves, `cycles` a piece of an SM in the long run; in one wave alone, with `alone_cycles`,
/// what is read and written comes before and after what is computed.
double waves_cycles(double waves, double resident, double cycles, double alone_cycles) {
    const double all = std::max(1.0, waves);
    const double alone = std::pow(1 / all, 2);
    return all * resident * ((1 - alone) * cycles + alone * alone_cycles);
}

FuseWork work_of(const FuseHardware& hw, const Program& p, const ProgramWork& work, const FusedBytes& bytes,
                 const FuseLaunch& l, const Piece& piece, double resident) {
    FuseWork w;
    const double elements = double(p.rows) * double(p.columns);
    w.dram_read_bytes = double(bytes.read_bytes);
    w.dram_written_bytes = double(bytes.written_bytes);
    if (piece.readings > 1) {
        const double again = elements * work.full_bytes * (piece.readings - 1);
        const double live = resident * hw.sms * piece.elements * work.full_bytes;
        (live <= hw.l2_bytes ? w.l2_read_bytes : w.dram_read_bytes) += again;
    }
    OpCost each = l.reload ? work.online : work.first;
    if (!l.reload) each += asked_share(p, l) * work.span;
    w.cost = elements * lanes_an_element(p, l) * each;
    w.cost += double(p.rows) * cut_cost(p, work, l);
    w.cost += double(p.rows) * l.threads_per_row * work.row;
    // What a thread does beside its elements, over all that it has.
    if (p.form == FuseForm::row) w.cost.issue += piece.count * l.threads * hw.fit.thread_instructions;
    w.efficiency = 1 - lost_share(hw, p, l, piece);
    return w;
}

}  // namespace

int bank_turns(std::int64_t columns, int threads_per_row, int bytes) {
    constexpr int banks = 32, word = 4;
    std::set<std::int64_t> words[banks];
    int most = 1;
    for (int lane = 0; lane < warp_threads; ++lane) {
        const std::int64_t at = (lane / threads_per_row * columns + lane % threads_per_row) * bytes / word;
        auto& bank = words[at % banks];
        bank.insert(at);
        most = std::max(most, int(bank.size()));
    }
    return most;
}

double mva_throughput(double population, double think_time, double first_demand, double second_demand) {
    double rate = 0, first_queue = 0, second_queue = 0;
    double before = 0;
    for (int n = 1; n < population + 1; ++n) {
        const double first_residence = first_demand * (1 + first_queue);
        const double second_residence = second_demand * (1 + second_queue);
        before = rate;
        rate = n / (think_time + first_residence + second_residence);
        first_queue = rate * first_residence;
        second_queue = rate * second_residence;
    }
    const double part = population - std::floor(population);
    return part > 0 ? before + part * (rate - before) : rate;
}

double overlapped(std::initializer_list<double> times, double exponent) {
    double sum = 0, longest = 0;
    for (double time : times) {
        sum += std::pow(time, exponent);
        if (!std::isnan(longest) && !(time <= longest)) longest = time;
    }
    return std::isinf(exponent) ? longest : std::pow(sum, 1 / exponent);
}

FuseFlow fuse_flow(const FuseHardware& hw, const Program& p, const ProgramWork& work, const FusedBytes& bytes,
                   const FuseLaunch& l) {
    FuseFlow f;
    const bool rows = p.form == FuseForm::row;
    const Piece piece = piece_of(p, work, l);
    f.ctas = l.persistent ? std::min(piece.count, hw.sms * l.ctas_per_sm) : piece.count;
    const double resident = std::min(l.ctas_per_sm, std::max(1.0, f.ctas / hw.sms));
    const double held = piece.elements / piece.rounds;
    f.resident = resident;
    f.bytes_in_flight = std::min(resident, f.ctas / hw.sms) * held * work.full_bytes;
    const FuseWork w = work_of(hw, p, work, bytes, l, piece, resident);
    f.dram_bytes = w.dram_read_bytes + w.dram_written_bytes;
    f.time = fuse_time(hw, w);

    // Cycles of a piece: of DRAM's time an SM's share, or of what less than a wave asks; and what the SM
    // itself takes.
    const double waves = piece.count / hw.sms / resident;
    const double dram = f.time.dram * hw.clock_hz * hw.sms / piece.count * std::min(1.0, waves);
    const double lanes = double(p.rows) * double(p.columns) * lanes_an_element(p, l);
    const double shared = lanes / warp_threads * l.shared_turns;  // one turn a cycle
    const double issue = std::max(max_known(issue_cycles(hw, w.cost), 0), shared) / piece.count;
    const double mufu = max_known(w.cost.mufu / hw.mufu_rate, 0) / piece.count;
    const double waiting = waiting_cycles(hw, p, work, l, piece);
    const double local = 1 / mva_throughput(resident, waiting, issue, mufu);
    const double exponent = rows ? hw.fit.overlap_exponent : FuseFit::whole_overlap;
    const double start = l.persistent ? 0 : max_known(hw.cta_interval, 0);
    const double cycles = overlapped({dram, local, start}, exponent);
    f.round_cycles = resident * local;
    f.bytes_in_flight_needed =
        f.round_cycles * double(bytes.read_bytes) / (f.time.dram * hw.clock_hz * hw.sms);
    f.waves = piece.count / (hw.sms * l.ctas_per_sm);
    // Instructions are the roof where they take longer than the bytes at DRAM's full rate.
    if (max_known(f.time.issue, f.time.mufu) > f.time.dram * w.efficiency) f.time.bound = Bound::issue;
    if (local > dram && f.time.bound == Bound::dram) {
        constexpr double mostly = 0.7;
        f.time.bound = std::max(issue, mufu) > mostly * local ? Bound::issue : Bound::latency;
    }
    const bool in_one_round = rows && piece.rounds == 1, in_passes = in_one_round || piece.readings > 1;
    const double all = waves_cycles(waves, resident, cycles, in_passes ? local + dram : cycles) / hw.clock_hz;
    // The first CTAs' start and loads and the last stores overlap with nothing.
    const double ends = max_known(2 * hw.loaded_latency + hw.dram_latency, 0);
    if (f.time.launch > all) f.time.bound = Bound::launch;
    f.ends = max_known(ends / hw.clock_hz, 0);
    f.time.seconds = std::max(all, f.time.l2) + f.time.launch + f.ends;
    return f;
}

}  // namespace rooftile
