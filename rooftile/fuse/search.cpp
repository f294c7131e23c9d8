#include "rooftile/fuse/search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "kernels/fuse/arguments.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/error.hpp"
#include "rooftile/fuse/registers.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/rules.hpp"
#include "rooftile/fuse/column_tiles.hpp"
#include "rooftile/fuse/search_columns.hpp"
#include "rooftile/fuse/search_grid_resident.hpp"
#include "rooftile/fuse/search_rings.hpp"
#include "rooftile/fuse/stacks.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

// Registers of our own kernels beside what a thread holds, read off ptxas for the expressions of
// tests/fuse/compile/kernels_test.cpp: addresses, counters, the function's constants.
constexpr double base_registers = 16, register_step = 8, dropout_registers = 8, row_registers = 2;
constexpr int access_bytes = 16, register_bytes = 4, max_kept = 4;
constexpr double max_instructions = 1800;
constexpr std::int64_t max_searched_vectors = 256;  // of a row, that a thread has
constexpr double exchange_bytes = fuse::exchange_bytes;

/// The widest vectors that rows are a whole number of, if they have two elements or rows are short: nothing is left out then, and
/// what is stored ends with the row. Else `widest`.
int whole_row_vector(const Program& p, int widest) {
    if (p.form != FuseForm::row) return widest;
    int vector_width = widest;
    while (rows_off_vectors(p, vector_width)) vector_width /= 2;
    constexpr std::int64_t few = 8;
    return vector_width > 1 || p.columns <= few * widest ? vector_width : widest;
}

/// Seconds; where a machine's numbers say none, later than any.
double told_seconds(const FuseCandidate& c) {
    return std::isnan(c.flow.time.seconds) ? INFINITY : c.flow.time.seconds;
}

/// What goes first of launches that no predicted time tells apart; the least is the best.
auto preference(const FuseCandidate& candidate) {
    const FuseConfig& c = candidate.config;
    // More than enough in flight is as good as enough.
    constexpr double enough = 2, step = 0.05;
    const double given = std::floor(
        std::min(enough, candidate.flow.bytes_in_flight / candidate.flow.bytes_in_flight_needed) / step);
    // A CTA alone on its SM computes while nobody else does.
    const bool alone = c.ctas_per_sm < 2;
    // CTAs that wait for fewer others: sums of 262144 columns of two 131 us, of eight 135. Of fewer threads: smaller
    // pieces end together.
    return std::tuple(c.row_storage, c.cluster, -given, c.grid_reduction, c.persistent, alone,
                      c.threads, c.vectors_per_thread);
}

/// Best first. From the least time on to what is preferred and hardly later, as long as there is such: no order that
/// sorting may use, since "hardly" adds up. Behind the first `most` by time alone.
void put_in_order(std::vector<FuseCandidate>& all, size_t most) {
    constexpr double hardly = 1.0005, in_all = 1.001;
    std::ranges::stable_sort(all, {}, told_seconds);
    const auto enough = all.begin() + std::ptrdiff_t(std::min(most, all.size()));
    for (auto first = all.begin(); first != enough; ++first) {
        const double least = told_seconds(*first);
        auto best = first;
        for (auto next = best;; best = next) {
            const double latest = std::min(told_seconds(*best) * hardly, least * in_all);
            for (auto c = first; c != all.end() && !(told_seconds(*c) > latest); ++c)
                if (preference(*c) < preference(*next)) next = c;
            if (next == best) break;
        }
        std::rotate(first, best, best + 1);
    }
}

class Search {
  public:
    Search(const Machine& machine, const FuseHardware& hw, const ExpressionGraph& graph,
           const Program& program, const FuseRequest& request)
        : machine_(machine),
          hw_(hw),
          p_(program),
          request_(request),
          graph_(graph),
          bytes_(fused_bytes(graph)) {
        width_ = widest_vector(graph, program, program_work(graph, program), request.alignment);
        narrow_ = whole_row_vector(program, width_);
        widest_ = width_;
        if (!vector_fits(graph, program, request.alignment, 1))
            throw RequestError(fmt::format(
                "an alignment of {} B is no whole number of elements of every tensor: kernels read "
                "whole elements at multiples of their size",
                request.alignment));
        if (!request.vector_width) return;
        if (const int w = *request.vector_width;
            (w & (w - 1)) != 0 || !vector_fits(graph, program, request.alignment, w))
            throw RequestError(
                fmt::format("vectors of {} elements fit neither rows of {} elements nor alignments of {} B; "
                            "at most {} do, and "
                            "powers of two",
                            w, program.columns, request.alignment, width_));
        widest_ = width_ = *request.vector_width;
        narrow_ = width_;
    }

    FuseSearch all() {
        work_ = program_work(graph_, p_, width_);
        if (p_.form == FuseForm::columns) search_columns(context(), out_);
        else if (p_.form != FuseForm::row) pointwise();
        else rows();
        if (narrow_ != width_) {
            width_ = narrow_;
            work_ = program_work(graph_, p_, width_);
            rows();
        }
        const size_t most = size_t(std::max(1, request_.top));
        put_in_order(out_.kept, most);
        if (out_.kept.size() > most) {
            out_.rejected.add(Reason::dominated, std::int64_t(out_.kept.size() - most));
            out_.kept.resize(most);
        }
        if (std::isnan(hw_.registers_per_sm)) out_.unchecked_constraints.emplace_back("registers");
        return std::move(out_);
    }

  private:
    void reject(Reason reason) { out_.rejected.add(reason); }

    /// What is offered while it lives is left out by `rule`, if it `applies` and none before it does. Such launches take
    /// the same way as all others up to offer(), and are counted there: the space does not depend on the rules.
    class LeavingOut {
      public:
        LeavingOut(Search& search, const Rule& rule, bool applies) : search_(search), before_(search.rule_) {
            if (applies && !before_ && !search.request_.exhaustive) search.rule_ = &rule;
        }
        ~LeavingOut() { search_.rule_ = before_; }
        LeavingOut(const LeavingOut&) = delete;

      private:
        Search& search_;
        const Rule* before_;
    };

    void pointwise() {
        const std::vector<int> searched = request_.threads ? std::vector{*request_.threads} : std::vector{128, 256, 512};
        for (const int threads : searched)
            for (int vectors_per_thread : {1, 2, 4, 8}) {
                // One wave goes through everything where its CTAs meet but once, at the end; else they drift apart.
                const bool whole = p_.form == FuseForm::whole;
                const LeavingOut many(*this, fuse_rules::pointwise_vectors,
                                      vectors_per_thread > 2 && !whole
                                          && request_.vectors_per_thread != vectors_per_thread);
                offer({.form = p_.form,
                       .vector_width = width_,
                       .vectors_per_thread = vectors_per_thread,
                       .threads = threads,
                       .persistent = whole});
            }
    }

    void rows() {
        const std::int64_t vectors = std::max<std::int64_t>(1, max_row_vectors(p_, width_));
        for (RowStorage row_storage : {RowStorage::registers, RowStorage::reload}) {
            if (request_.row_storage.value_or(row_storage) != row_storage) continue;
            if (row_storage == RowStorage::reload && width_ != widest_) continue;  // a guard a vector
            const LeavingOut again(*this, fuse_rules::read_again,
                                   row_storage == RowStorage::reload && work_.readings > 1
                                       && !out_.kept.empty() && !request_.row_storage);
            for (int threads_per_row : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}) {
                if (threads_per_row > hw_.threads_per_cta) {
                    reject(Reason::threads);
                    continue;
                }
                rows_stored(row_storage, threads_per_row, vectors);
            }
        }
        if (width_ != widest_) return;
        if (request_.row_storage.value_or(RowStorage::shared) == RowStorage::shared) rows_in_shared();
        if (request_.row_storage.value_or(RowStorage::pipelined) == RowStorage::pipelined)
            search_rings(context(), out_);
        if (request_.row_storage.value_or(RowStorage::reload) == RowStorage::reload)
            search_grid_resident(context(), out_);
    }

    FuseSearchContext context() const { return {machine_, hw_, p_, request_, work_, bytes_, width_}; }

    void rows_stored(RowStorage row_storage, int threads_per_row, std::int64_t vectors) {
        FuseConfig c{.form = p_.form,
                     .row_storage = row_storage,
                     .vector_width = width_,
                     .threads_per_row = threads_per_row};
        const std::int64_t all = threads_per_row, vectors_per_thread = ceil_div(vectors, all);
        c.vectors_per_thread = int(std::min(vectors_per_thread, max_searched_vectors));
        if (all >= 2 * vectors && all > 1) return reject(Reason::threads);  // half of them would have nothing
        const std::int64_t min_vectors_per_thread = threads_per_row >= 512 ? 4
                                                    : threads_per_row >= 256              ? 2
                                                                                          : 1;
        const LeavingOut parts(*this, fuse_rules::parts_of_lines,
                               threads_per_row < warp_threads && stores_elements(p_)
                                   && (rows_off_vectors(p_, width_) || touches_parts_of_lines(p_, c))
                                   && !request_.row_storage);
        const LeavingOut few(*this, fuse_rules::few_vectors,
                             vectors_per_thread < min_vectors_per_thread
                                 && request_.threads_per_row.value_or(0) != threads_per_row);
        for (int threads : cta_threads(threads_per_row)) {
            c.threads = threads;
            if (row_storage == RowStorage::registers) rows_in_registers(c, vectors_per_thread);
            else rows_in_rounds(c, vectors_per_thread);
        }
    }

    /// Several short rows share a CTA: of one warp each comes and goes by itself, of more there are fewer CTAs to
    /// start, and weights in L1 serve more of them.
    static std::vector<int> cta_threads(int threads_per_row) {
        if (threads_per_row > warp_threads) return {threads_per_row};
        return {warp_threads, 2 * warp_threads, 4 * warp_threads, 8 * warp_threads};
    }

    /// Short rows, element by element, whatever vectors they begin and end in.
    void rows_in_shared() {
        constexpr std::int64_t most_elements = 32;  // of a row that a thread holds
        // A power of two of whole vectors takes a lane each, and lines are whole; sums of whole vectors have nothing to store.
        const auto vectors = std::uint64_t(max_row_vectors(p_, width_));
        const bool ragged = rows_off_vectors(p_, width_) || (stores_elements(p_) && !std::has_single_bit(vectors));
        const LeavingOut whole(*this, fuse_rules::whole_vectors, !ragged && !request_.row_storage);
        const ProgramWork in_vectors = std::exchange(work_, program_work(graph_, p_, width_, true));
        for (int threads_per_row : {1, 2, 4, 8, 16, 32}) {
            FuseConfig c{.form = p_.form,
                         .row_storage = RowStorage::shared,
                         .vector_width = width_,
                         .threads_per_row = threads_per_row};
            if (threads_per_row >= 2 * p_.columns || p_.columns > most_elements * threads_per_row) {
                reject(Reason::threads);
                continue;
            }
            for (c.rows_per_thread = 1; c.rows_per_thread <= 8; c.rows_per_thread *= 2) {
                // Threads that have rows alone may have several.
                if (c.rows_per_thread > 1 && (threads_per_row > 1 || c.rows_per_thread * p_.columns > most_elements)) break;
                for (int threads : cta_threads(threads_per_row)) {
                    c.threads = threads;
                    c.vectors_per_thread = int(ceil_div(gathered_vectors(p_, c), std::int64_t(warp_threads)));
                    if (c.vectors_per_thread > 0) offer(c);
                    else reject(Reason::shared);
                }
            }
        }
        work_ = in_vectors;
    }

    void rows_in_registers(FuseConfig c, std::int64_t vectors_per_thread) {
        constexpr int max_held = 8;
        // Each vector takes a register.
        if (vectors_per_thread > max_searched_vectors) return reject(Reason::registers);
        const LeavingOut many(
            *this, fuse_rules::held_vectors,
            vectors_per_thread
                > (c.threads_per_row < warp_threads && work_.readings > 1 ? max_held / 2 : max_held));
        c.vectors_per_thread = int(vectors_per_thread);
        // Weights in registers beside a warp's row cost CTAs, which from 64 registers of both on is more than their wait
        // (docs/facts.md 92). Where several warps share the row another launch was as fast.
        const double beside =
            c.vectors_per_thread * c.vector_width * (work_.full_bytes + work_.shared_bytes) / register_bytes;
        if (work_.shared_loads > 0 && c.threads_per_row <= warp_threads) {
            c.early_weights = true;
            const LeavingOut early(*this, fuse_rules::early_weights, beside > 48);
            offer(c);
        }
        c.early_weights = false;
        offer(c);
    }

    void rows_in_rounds(FuseConfig c, std::int64_t vectors_per_thread) {
        for (int round : {2, 4, 8})
            if (vectors_per_thread >= round) {
                c.vectors_per_thread = round;
                offer(c);
            }
    }

    void offer(FuseConfig c) {
        const FuseRequest& r = request_;
        if (!as_asked(r, c) || !asked(r.stages, c.stages)) return;
        if (rule_) return out_.rejected.add(*rule_);
        FuseCandidate candidate;
        candidate.registers = registers_needed(p_, c);
        if (candidate.registers > hw_.registers_per_thread
            || candidate.registers * even_threads(hw_, c.threads) > hw_.registers_per_sm) {
            if (candidate.registers > hw_.registers_per_thread
                && (out_.register_need == 0 || candidate.registers < out_.register_need))
                out_.register_need = candidate.registers;
            return reject(Reason::registers);
        }
        if (c.threads > hw_.threads_per_cta) return reject(Reason::threads);
        const double gathered = double(gathered_bytes(graph_, p_, c));
        constexpr double max_static = 49152;  // B of a CTA, that code may declare
        if (gathered + exchange_bytes > max_static) return reject(Reason::shared);
        const FuseConfig of_row = c.row_storage == RowStorage::shared ? config_by_element(c, p_) : c;
        if (of_row.vectors_per_thread > 1
            && of_row.vectors_per_thread * of_row.vector_width * work_.first.issue > max_instructions && !r.exhaustive)
            return out_.rejected.add(fuse_rules::unrolled_code);
        const double shared = gathered > 0 ? gathered + exchange_bytes : 0;
        double ctas = resident_ctas(hw_, c, candidate.registers, shared);
        if (std::isnan(ctas)) ctas = 1;
        c.ctas_per_sm = r.ctas_per_sm.value_or(int(ctas));
        if (c.ctas_per_sm > ctas || c.ctas_per_sm < 1) return reject(Reason::registers);
        // The compiler may take what this many CTAs leave a thread, and mostly takes less: then more fit. Half way between what
        // is sure and what is likely, a launch that would lose much by a register too many does not come first.
        const double bound = min_known(
            hw_.registers_per_thread,
            whole(hw_.registers_per_sm / even_threads(hw_, c.ctas_per_sm * c.threads) / register_step)
                * register_step);
        double resident = resident_ctas(hw_, c, registers_likely(p_, work_, c, bound), shared);
        if (std::isnan(resident) || r.ctas_per_sm) resident = c.ctas_per_sm;
        FuseLaunch l{.vectors_per_thread = double(of_row.vectors_per_thread),
                     .vector_width = double(of_row.vector_width),
                     .threads = double(c.threads),
                     .threads_per_row = double(std::max(1, c.threads_per_row)),
                     .rows_per_thread = double(c.rows_per_thread),
                     .ctas_per_sm = (c.ctas_per_sm + std::max(double(c.ctas_per_sm), resident)) / 2,
                     .reload = c.row_storage == RowStorage::reload,
                     .persistent = c.persistent,
                     .early_weights = c.early_weights};
        if (c.row_storage == RowStorage::shared) {
            for (const ProgramValue& v : p_.values) {
                if (v.kind == ValueKind::load && v.level == Level::element && v.access.full())
                    l.shared_turns += bank_turns(p_.columns, c.threads_per_row, bytes_of(v.element));
                if (shares_masks(v)) l.shared_turns += bank_turns(p_.columns, c.threads_per_row, 1);
            }
            for (const ProgramStore& s : p_.stores)
                if (s.level == Level::element)
                    l.shared_turns += bank_turns(
                        p_.columns, c.threads_per_row,
                        bytes_of(graph_.nodes[size_t(graph_.outputs[size_t(s.output)].node)].element));
        }
        candidate.shared_bytes = gathered;
        candidate.launch = l;
        candidate.flow =
            fuse_flow(hw_, p_, work_, bytes_, l);
        // An unknown number of SMs leaves a persistent grid without a size; then a piece a CTA.
        constexpr double max_ctas = 2147483647;
        c.grid = std::isnan(candidate.flow.ctas) ? 0 : std::int64_t(std::min(candidate.flow.ctas, max_ctas));
        if (candidate.flow.ctas > max_ctas && !c.persistent) return reject(Reason::threads);
        candidate.config = c;
        out_.kept.push_back(candidate);
    }

    const Machine& machine_;
    const FuseHardware& hw_;
    const Program& p_;
    const FuseRequest& request_;
    const ExpressionGraph& graph_;
    ProgramWork work_;  ///< in vectors of width_
    FusedBytes bytes_;
    int widest_ = 1;
    int width_ = 1, narrow_ = 1;  ///< of vectors; another one that short rows are searched with
    const Rule* rule_ = nullptr;  ///< that leaves out what is offered now
    FuseSearch out_;
};

}  // namespace

FuseSearch search_launches(const Machine& machine, const FuseHardware& hw, const ExpressionGraph& graph,
                           const Program& program, const FuseRequest& request) {
    return Search(machine, hw, graph, program, request).all();
}

int widest_vector(const ExpressionGraph& graph, const Program& p, const ProgramWork& work, int alignment) {
    int vector_width = access_bytes / work.narrow_bytes;
    while (vector_width > 1 && !vector_fits(graph, p, alignment, vector_width)) vector_width /= 2;
    return vector_width;
}

bool vector_fits(const ExpressionGraph& graph, const Program& p, int alignment, int vector_width) {
    // Rows that begin and end within vectors have columns, and places along the row, of 31 bits. Reductions of everything have
    // no such form, nor masks that rows share without a row of their own to go along.
    constexpr std::int64_t max_columns = 2147483632;
    constexpr int max_width = 8;
    const auto shares_mask = [](const ProgramValue& v) { return v.op == Op::dropout && !v.access.full(); };
    if (rows_off_vectors(p, vector_width)
        && (p.form == FuseForm::whole || p.columns > max_columns || vector_width > max_width
            || (p.form == FuseForm::pointwise && std::ranges::any_of(p.values, shares_mask))))
        return false;
    // Of what rows share a vector has one row's.
    if (p.form == FuseForm::columns && column_period(p, vector_width) > 1
        && std::ranges::any_of(p.values, [](const ProgramValue& v) {
               return v.kind == ValueKind::load && v.level != Level::uniform && !v.access.full() && !v.access.only_row();
           }))
        return false;
    const auto aligned = [&](Element e) { return alignment % vector_alignment(p, vector_width, e) == 0; };
    for (int i : graph.inputs)
        if (elements_of(graph.nodes[size_t(i)].shape) > 1 && !aligned(graph.nodes[size_t(i)].element))
            return false;
    for (const GraphOutput& o : graph.outputs)
        if (!aligned(graph.nodes[size_t(o.node)].element)) return false;
    return true;
}

double registers_needed(const Program& p, const FuseConfig& config) {
    // What brings a warp's rows is free again when they are taken element by element.
    const bool brought = config.row_storage == RowStorage::shared;
    const FuseConfig c = brought ? config_by_element(config, p) : config;
    // Of one vector: what is read at the loop's own place, and what rows or columns share.
    LoadWords words = load_words(p, c.vector_width);
    // Where a row in registers is reduced without a barrier, its mask and its next weights take what the reductions leave.
    // LayerNorm + residual + dropout + GELU of 1024 columns with 80 registers 54.3 us, with 96 55.4 (docs/facts.md 96).
    const bool in_warp = c.row_storage == RowStorage::registers && c.threads_per_row <= warp_threads;
    const double mask = in_warp                             ? 0
                        : c.row_storage == RowStorage::none ? 2 * dropout_registers
                                                            : dropout_registers;
    double extra = mask * masks_of_vectors(p), computed = 0, shared_loads = 0;
    for (const ProgramValue& v : p.values) {
        if (v.kind == ValueKind::load && v.level == Level::element && !v.access.full()) ++shared_loads;
        if (v.kind == ValueKind::load && v.level == Level::row && c.row_storage == RowStorage::none)
            ++words.shared;
        if (v.kind == ValueKind::compute && v.level == Level::element) ++computed;
        if (v.kind != ValueKind::reduce) continue;
        if (c.form == FuseForm::columns) extra += 2.0 * c.vector_width;  // of all turns, and of one
        // What is computed for the reduction and again for the result, the compiler likes to keep.
        else if (p.values[size_t(v.operands[0])].kind == ValueKind::compute)
            extra += c.vector_width * std::min(max_kept, c.vectors_per_thread);
        // New values of an accumulator beside its old ones.
        if (v.reduction == Reduction::exponentials
            && (c.row_storage == RowStorage::reload || c.row_storage == RowStorage::pipelined))
            extra += 2.0 * c.vector_width;
    }
    // One vector at a time in fp32, and what becomes of it.
    const bool copies = c.row_storage == RowStorage::none && computed == 0;
    double need =
        base_registers + (copies ? 0 : std::max(2.0 * c.vector_width, std::min(16.0, computed))) + extra;
    if (c.row_storage != RowStorage::none) need += row_registers;
    const double full = words.full, shared = words.shared;
    if (c.row_storage == RowStorage::none)
        need += c.vectors_per_thread * full + words.shared_of(c.vectors_per_thread, stacks(p, c))
                + (c.vectors_per_thread > 4 ? register_step : 0);
    else if (c.row_storage == RowStorage::reload || c.row_storage == RowStorage::pipelined || c.early_weights)
        need += c.vectors_per_thread * (full + shared);
    else need += c.vectors_per_thread * full + (in_warp ? 1 : std::min(2, c.vectors_per_thread)) * shared;
    // Two words beside a vector that is shifted into place, and where the row lies; of what rows share an access more for each of
    // two vectors, of all that a pass from memory has in flight.
    if (rows_off_vectors(p, c.vector_width)) {
        constexpr double access_words = access_bytes / register_bytes;
        need += register_step + (words.shared > 0 ? c.vector_width : 0)
                + access_words * std::min(2, c.vectors_per_thread)
                      * (c.row_storage == RowStorage::reload ? shared_loads : std::min(1.0, words.shared));
    }
    // What many functions of an element take, ptxas takes twice: it begins the next element beside this one. What brings a warp's rows
    // there is done before.
    constexpr double many = 8;
    if (brought)
        need = std::max(need + (computed >= many ? 2 * computed : 0),
                        base_registers + config.vectors_per_thread * load_words(p, config.vector_width).full);
    // Sums of other CTAs that are on their way, and those that they are added to.
    if (c.row_splits > 1)
        need = std::max(need, base_registers + 2 * register_step + (fuse::gathered_splits + 1.0) * 4);
    // Chunks that are short are guarded, vector by vector.
    if (c.row_storage == RowStorage::pipelined && !in_whole_iterations(p, c)) need += register_step;
    constexpr double least = 32;
    return std::max(least, whole_up(need / register_step) * register_step);
}

}  // namespace rooftile
