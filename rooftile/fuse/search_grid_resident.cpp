#include "rooftile/fuse/search_grid_resident.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/fuse/arguments.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/grid_resident_model.hpp"
#include "rooftile/fuse/registers.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/rules.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

/// What the warps of a CTA tell each other, two reductions' words (Team::Exchange).
double cta_exchange_bytes(double threads) {
    constexpr double reductions = 2, word = 4, beside = 128;
    return reductions * fuse::reduction_words * word * threads / warp_threads + beside;
}

class GridResidentSearch : FuseSearchContext {
  public:
    GridResidentSearch(const FuseSearchContext& context, FuseSearch& out)
        : FuseSearchContext(context), out_(out) {}

    void all() {
        if (slot_bytes(program) == 0 || program.rows < 1) return;
        if (request.cluster == 1) return;  // a CTA alone reduces nothing across the grid
        for (const int cluster : team_sizes())
            for (int threads : {128, 256, 512, 1024})
                for (int vectors_per_thread : {1, 2, 4}) {
                    const FuseConfig c{.form = program.form,
                                       .row_storage = RowStorage::reload,
                                       .vector_width = vector_width,
                                       .vectors_per_thread = vectors_per_thread,
                                       .threads = threads,
                                       .threads_per_row = threads,
                                       .cluster = cluster,
                                       .grid_reduction = true,
                                       .grid = program.rows * cluster};
                    if (as_asked(request, c)) offer(c);
                }
        if (!request.exhaustive && !request.cluster) drop_ragged(), drop_single_resident();
        out_.kept.insert(out_.kept.end(), found_.begin(), found_.end());
    }

  private:
    void reject(Reason reason) { out_.rejected.add(reason); }

    /// CTAs a row: any number, since they are no cluster of the hardware. Few, and those of which all SMs have one, two or more; of a
    /// power of two rows may be whole iterations.
    std::vector<int> team_sizes() const {
        if (request.cluster) return {*request.cluster};
        std::vector<int> sizes;
        constexpr int max_ctas_per_sm = 4, few = 16;
        const double most = whole(hw.sms * max_ctas_per_sm / double(program.rows));
        for (int size = 2; size <= std::min<double>(few, most); ++size) sizes.push_back(size);
        for (int ctas = 1; ctas <= max_ctas_per_sm; ++ctas) {
            const double size = whole(hw.sms * ctas / double(program.rows));
            if (!(size >= 2)) continue;
            for (const double one : {std::exp2(std::floor(std::log2(size))), size})
                if (std::ranges::find(sizes, int(one)) == sizes.end()) sizes.push_back(int(one));
        }
        return sizes;
    }

    /// What guards of iterations that end behind the row cost no time tells: those that come near whole ones were slower.
    void drop_ragged() {
        constexpr double near = 1.05;
        const auto ragged = [&](const FuseCandidate& c) { return !in_whole_iterations(program, c.config); };
        double whole_seconds = INFINITY;
        for (const FuseCandidate& c : found_)
            if (!ragged(c)) whole_seconds = std::min(whole_seconds, c.flow.time.seconds);
        out_.rejected.add(fuse_rules::ragged_iterations,
                          std::int64_t(std::erase_if(found_, [&](const FuseCandidate& c) {
                              return ragged(c) && whole_seconds <= near * c.flow.time.seconds;
                          })));
    }

    /// While a CTA's row is reduced, nobody else of its SM works, which no time tells either (docs/facts.md 92, 156).
    void drop_single_resident() {
        constexpr double near = 1.05;
        double co_resident = INFINITY;
        for (const FuseCandidate& c : found_)
            if (c.config.ctas_per_sm > 1) co_resident = std::min(co_resident, c.flow.time.seconds);
        out_.rejected.add(fuse_rules::alone_on_sm,
                          std::int64_t(std::erase_if(found_, [&](const FuseCandidate& c) {
                              return c.config.ctas_per_sm == 1 && co_resident <= near * c.flow.time.seconds;
                          })));
    }

    void offer(FuseConfig c) {
        // Some threads would have nothing, and all of them have time for two iterations.
        const std::int64_t iteration = std::int64_t(c.threads) * c.vectors_per_thread * c.cluster;
        constexpr std::int64_t min_iterations = 2;
        if (min_row_vectors(program, vector_width) < min_iterations * iteration)
            return reject(Reason::threads);
        FuseCandidate candidate;
        candidate.registers = registers_needed(program, c);
        const double an_sm = whole_up(double(c.grid) / hw.sms);  // CTAs of the busiest
        if (c.threads > hw.threads_per_cta || !(an_sm <= hw.ctas_per_sm)
            || !(an_sm * c.threads <= hw.threads_per_sm))
            return reject(Reason::threads);
        if (candidate.registers > hw.registers_per_thread
            || !(an_sm <= resident_ctas(hw, c, candidate.registers, 0)))
            return reject(Reason::registers);
        c.ctas_per_sm = int(an_sm);
        const auto iterations = double(iterations_of_row(program, c));
        if (!holds_iterations(program, c)) {
            if (!asked(request.ctas_per_sm, c.ctas_per_sm) || !asked(request.stages, c.stages)) return;
            candidate.launch = launch_of(c, iterations);
            candidate.flow = flow(candidate);
            candidate.config = c;
            found_.push_back(candidate);
            return;
        }
        // As many iterations wait in shared memory as fit; the others are read again.
        const double iteration_bytes =
            double(c.threads) * c.vectors_per_thread * vector_width * slot_bytes(program);
        const double shared = std::min(hw.shared_per_cta, hw.shared_per_sm / an_sm - hw.shared_reserved);
        const double room = whole((shared - cta_exchange_bytes(c.threads)) / iteration_bytes);
        if (!(room >= 1) || std::isnan(hw.shared_per_sm)) return reject(Reason::shared);
        const double fit = std::min(iterations, room);
        c.stages = request.stages.value_or(int(fit));
        if (c.stages < 1 || c.stages > fit) return reject(Reason::shared);
        if (!asked(request.ctas_per_sm, c.ctas_per_sm)) return;
        candidate.launch = launch_of(c, iterations);
        candidate.flow = flow(candidate);
        if (!request.stages) {
            // No more than the threads ask for, or than gets into an SM.
            const double into_sm = min_known(candidate.flow.bytes_in_flight_needed,
                                             hw.sm_bandwidth * candidate.flow.round_cycles);
            c.stages = leaving_l1(c, min_known(into_sm, candidate.flow.bytes_in_flight), iteration_bytes);
            candidate.launch = launch_of(c, iterations);
            candidate.flow = flow(candidate);
        }
        candidate.shared_bytes = double(staged_rows(program, c).bytes);
        candidate.config = c;
        found_.push_back(candidate);
    }

    GridResidentLaunch launch_of(const FuseConfig& c, double iterations) const {
        return {.vectors_per_thread = double(c.vectors_per_thread),
                .vector_width = double(c.vector_width),
                .threads = double(c.threads),
                .cluster = double(c.cluster),
                .again_bytes = slot_bytes(program),
                .held_share = c.stages / iterations,
                .rows_an_sm = double(rows_gathered(program, c)),
                .together = double(unrolled_iterations(c))};
    }
    FuseFlow flow(const FuseCandidate& candidate) const {
        return grid_resident_flow(hw, program, work, bytes, std::get<GridResidentLaunch>(candidate.launch));
    }

    /// As many iterations, up to those of `c`, as leave L1 room for the bytes that must be in flight: what an iteration gains by
    /// waiting in shared memory is less than all loads lose (docs/facts.md 89). All where no number of them does.
    int leaving_l1(const FuseConfig& c, double in_flight, double iteration_bytes) const {
        for (int stages = c.stages; stages > 0; --stages) {
            const double cta = stages * iteration_bytes + cta_exchange_bytes(c.threads) + hw.shared_reserved;
            if (!(l1_beside(hw, c.ctas_per_sm * cta) < in_flight)) return stages;
        }
        return c.stages;
    }

    FuseSearch& out_;
    std::vector<FuseCandidate> found_;
};

}  // namespace

void search_grid_resident(const FuseSearchContext& context, FuseSearch& out) {
    GridResidentSearch(context, out).all();
}

}  // namespace rooftile
