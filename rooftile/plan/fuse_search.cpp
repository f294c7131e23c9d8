#include "rooftile/plan/fuse_search.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/fuse/arguments.hpp"
#include "rooftile/model/arithmetic.hpp"
#include "rooftile/plan/fuse_staging.hpp"

namespace rooftile {
namespace {

// Registers of our own kernels beside what a thread holds, read off ptxas for the expressions of
// tests/compile/fuse_kernels_test.cpp: addresses, counters, the function's constants.
constexpr double base_registers = 26, register_step = 8, dropout_registers = 10;
constexpr int access_bytes = 16;
constexpr double most_instructions = 1800;
constexpr double exchange_bytes = fuse::exchange_bytes;

class Search {
  public:
    Search(const Machine& machine, const FuseHardware& hw, const FuseProblem& graph, const Program& program,
           const FuseRequest& request)
        : machine_(machine),
          hw_(hw),
          p_(program),
          request_(request),
          work_(program_work(graph, program)),
          bytes_(fused_bytes(graph)) {
        width_ = request.width.value_or(widest_vector(graph, program, work_, request.alignment));
    }

    FuseSearch all() {
        if (p_.form == FuseForm::row) rows();
        else pointwise();
        std::stable_sort(out_.kept.begin(), out_.kept.end(), better);
        const size_t most = size_t(std::max(1, request_.top));
        if (out_.kept.size() > most) {
            out_.rejected.reasons[size_t(Reason::dominated)] += std::int64_t(out_.kept.size() - most);
            out_.kept.resize(most);
        }
        if (std::isnan(hw_.registers_per_sm)) out_.unchecked_walls.emplace_back("registers");
        return std::move(out_);
    }

  private:
    /// Less time; where the model sees none, more than enough in flight, then fewer threads a CTA: smaller
    /// pieces end together.
    static bool better(const FuseCandidate& x, const FuseCandidate& y) {
        const double tx = x.flow.time.seconds, ty = y.flow.time.seconds;
        if (std::fabs(tx - ty) > 0.002 * std::min(tx, ty)) return tx < ty;
        constexpr double enough = 2;
        const double mx = std::min(enough, x.flow.given / x.flow.needed);
        const double my = std::min(enough, y.flow.given / y.flow.needed);
        if (x.config.home != y.config.home) return x.config.home < y.config.home;  // M21's order
        if (std::fabs(mx - my) > 0.05) return mx > my;
        if (x.config.cluster != y.config.cluster) return x.config.cluster < y.config.cluster;
        if (x.config.persistent != y.config.persistent) return x.config.persistent;
        // A CTA alone on its SM computes while nobody else does.
        const int cx = std::min(2, x.config.ctas_per_sm), cy = std::min(2, y.config.ctas_per_sm);
        if (cx != cy) return cx > cy;
        if (x.config.items != y.config.items) return x.config.items < y.config.items;
        return x.config.threads < y.config.threads;
    }

    template <class T>
    static bool asked(const std::optional<T>& wanted, T value) {
        return !wanted || *wanted == value;
    }
    void reject(Reason reason) { ++out_.rejected.reasons[size_t(reason)]; }

    void pointwise() {
        for (int threads : {128, 256, 512})
            for (int items : {1, 2, 4, 8})
                for (bool persistent : {true, false}) {
                    FuseConfig c{.form = p_.form,
                                 .width = width_,
                                 .items = items,
                                 .threads = threads,
                                 .persistent = persistent};
                    if (p_.form == FuseForm::whole && !persistent) continue;  // a part of the sum a CTA
                    offer(c);
                }
    }

    void rows() {
        const std::int64_t vectors = std::max<std::int64_t>(1, p_.columns / width_);
        for (int lanes : {8, 16, 32, 64, 128, 256, 512, 1024}) {
            if (lanes > hw_.threads_per_cta) {
                reject(Reason::threads);
                continue;
            }
            for (int cluster : {1, 2, 4, 8}) {
                if (cluster > 1 && lanes < 128) continue;
                if (cluster > hw_.cluster_ctas) {
                    reject(Reason::cluster);
                    continue;
                }
                row_homes(lanes, cluster, vectors);
            }
        }
    }

    void row_homes(int lanes, int cluster, std::int64_t vectors) {
        constexpr int small_cta = 128, most_items = 32;
        FuseConfig c{.form = p_.form,
                     .width = width_,
                     .threads = std::max(lanes, small_cta),
                     .threads_per_row = lanes,
                     .cluster = cluster};
        if (lanes > 32) c.threads = lanes;
        const std::int64_t items = ceil_div(vectors, std::int64_t(lanes) * cluster);
        for (bool persistent : {false, true}) {
            c.persistent = persistent;
            c.home = FuseHome::registers;
            if (items <= most_items) {
                c.items = int(items);
                c.early_weights = work_.shared_loads > 0;
                offer(c);
                c.early_weights = false;
                if (work_.shared_loads > 0) offer(c);
            } else {
                reject(Reason::registers);
            }
            if (persistent) staged(c, items);
            c.early_weights = false;
            c.home = FuseHome::twice;
            for (int chunk : {2, 4, 8})
                if (items >= chunk) {
                    c.items = chunk;
                    offer(c);
                }
        }
    }

    /// Rows in shared memory, copied ahead.
    void staged(FuseConfig c, std::int64_t items) {
        constexpr int most_items = 32;
        c.home = FuseHome::shared;
        if (items > most_items || work_.full_loads == 0 || work_.least_copy_bytes * c.width < 4) return;
        c.items = int(items);
        for (int stages : {2, 3, 4, 6}) {
            c.stages = stages;
            offer(c);
        }
    }

    void offer(FuseConfig c) {
        const FuseRequest& r = request_;
        if (!asked(r.items, c.items) || !asked(r.threads, c.threads) || !asked(r.cluster, c.cluster)
            || !asked(r.home, c.home) || !asked(r.persistent, c.persistent) || !asked(r.stages, c.stages)
            || (c.threads_per_row > 0 && !asked(r.threads_per_row, c.threads_per_row)))
            return;
        FuseCandidate candidate;
        candidate.registers = registers_needed(work_, p_, c);
        if (candidate.registers > hw_.registers_per_thread
            || candidate.registers * c.threads > hw_.registers_per_sm) {
            if (out_.register_need == 0) out_.register_need = candidate.registers;
            return reject(Reason::registers);
        }
        if (c.threads > hw_.threads_per_cta) return reject(Reason::threads);
        candidate.shared_bytes = double(staged_rows(p_, c).bytes);
        if (candidate.shared_bytes + exchange_bytes > hw_.shared_per_cta) return reject(Reason::shared);
        // Everything a thread holds is unrolled: longer code compiles too slowly.
        const bool unrolled = c.items > 1 && c.home != FuseHome::shared;
        if (unrolled && c.items * c.width * work_.first.issue > most_instructions)
            return reject(Reason::instruction);
        double ctas = least_known(hw_.ctas_per_sm, whole(hw_.threads_per_sm / c.threads));
        ctas = least_known(ctas, whole(hw_.registers_per_sm / (candidate.registers * c.threads)));
        if (candidate.shared_bytes > 0)
            ctas = least_known(
                ctas,
                whole(hw_.shared_per_sm / (candidate.shared_bytes + exchange_bytes + hw_.shared_reserved)));
        if (std::isnan(ctas)) ctas = 1;
        c.ctas_per_sm = r.ctas_per_sm.value_or(int(ctas));
        if (c.ctas_per_sm > ctas || c.ctas_per_sm < 1) return reject(Reason::registers);
        FuseLaunch l{.items = double(c.items),
                     .width = double(c.width),
                     .threads = double(c.threads),
                     .threads_per_row = double(std::max(1, c.threads_per_row)),
                     .cluster = double(c.cluster),
                     .ctas_per_sm = double(c.ctas_per_sm),
                     .stages = double(c.stages),
                     .twice = c.home == FuseHome::twice,
                     .persistent = c.persistent};
        candidate.flow = fuse_flow(hw_, p_, work_, bytes_, l, cluster_sms(machine_, c.cluster));
        // An unknown number of SMs leaves a persistent grid without a size; then a piece a CTA.
        constexpr double most_ctas = 2147483647;
        c.grid = std::isnan(candidate.flow.ctas) ? 0 : std::int64_t(std::min(candidate.flow.ctas, most_ctas));
        if (candidate.flow.ctas > most_ctas && !c.persistent) return reject(Reason::threads);
        candidate.config = c;
        out_.kept.push_back(candidate);
    }

    const Machine& machine_;
    const FuseHardware& hw_;
    const Program& p_;
    const FuseRequest& request_;
    ProgramWork work_;
    FusedBytes bytes_;
    int width_ = 1;
    FuseSearch out_;
};

}  // namespace

FuseSearch search_launches(const Machine& machine, const FuseHardware& hw, const FuseProblem& graph,
                           const Program& program, const FuseRequest& request) {
    return Search(machine, hw, graph, program, request).all();
}

int widest_vector(const FuseProblem& graph, const Program& p, const ProgramWork& work, int alignment) {
    int width = access_bytes / work.narrow_bytes;
    const auto fits = [&](int w) {
        // Every row must begin with a whole vector, or all of it be one long row.
        if (!p.flat && p.columns % w != 0) return false;
        const auto aligned = [&](Element e) {
            return alignment % std::min(access_bytes, w * bytes_of(e)) == 0;
        };
        for (int i : graph.inputs)
            if (elements_of(graph.nodes[size_t(i)].shape) > 1 && !aligned(graph.nodes[size_t(i)].element))
                return false;
        for (const GraphOutput& o : graph.outputs)
            if (!aligned(graph.nodes[size_t(o.node)].element)) return false;
        return true;
    };
    while (width > 1 && !fits(width)) width /= 2;
    return width;
}

double registers_needed(const ProgramWork& work, const Program& p, const FuseConfig& c) {
    const double words =
        work.full_bytes * c.width / 4 + (c.early_weights ? work.shared_bytes * c.width / 4 : 0);
    // One vector at a time: its values in fp32, an intermediate, what is stored, what rows share.
    const double arithmetic = 2.0 * c.width + (c.early_weights ? 0 : work.shared_bytes * c.width / 4);
    double need = base_registers + (c.home == FuseHome::shared ? 2 : c.items) * words + arithmetic;
    if (c.home == FuseHome::nowhere) need += c.items * (work.shared_bytes * c.width / 4);
    for (const ProgramValue& v : p.values)
        if (v.kind == ValueKind::compute && v.op == Op::dropout) need += dropout_registers;
    need = whole_up(need / register_step) * register_step;
    constexpr double least = 32;
    return std::max(least, need);
}

}  // namespace rooftile
