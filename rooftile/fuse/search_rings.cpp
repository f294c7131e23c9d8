#include "rooftile/fuse/search_rings.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/fuse/arguments.hpp"
#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/warp.hpp"
#include "rooftile/fuse/registers.hpp"
#include "rooftile/fuse/ring_model.hpp"
#include "rooftile/fuse/row_vectors.hpp"
#include "rooftile/fuse/rules.hpp"
#include "rooftile/fuse/staging.hpp"

namespace rooftile {
namespace {

constexpr double ring_exchange = fuse::ring_exchange_bytes;

class RingSearch : FuseSearchContext {
  public:
    RingSearch(const FuseSearchContext& context, FuseSearch& out)
        : FuseSearchContext(context),
          slot_(slot_bytes(context.program)),
          has_epilogue_(slot_ < work.full_bytes),
          out_(out) {}

    /// Rows that one-shot CTAs hold badly: chunk after chunk through the shared memory of CTAs that stay.
    void all() {
        // Bytes of all full tensors. Shorter rows several CTAs of an SM hold at once, and what is read once
        // waits nowhere: wherever measured, launches without a ring were sooner. Sums of 128 KiB rows too on
        // an H200; those of 512 KiB took 133.3 us in a ring and 134.5 without (1024 rows).
        constexpr double min_row = 32768, min_usual_row = 65536, min_single_row = 262144;
        const double row_bytes = double(program.columns) * work.full_bytes;
        const double usual = work.readings > 1 ? min_usual_row : min_single_row;
        // Where some are epilogue operands, shorter rows gain, too.
        const bool unusual = !request.row_storage && (has_epilogue_ ? row_bytes < usual : row_bytes <= usual);
        const Rule* const short_row = rule_if(unusual || row_bytes <= min_row, fuse_rules::ring_row);
        if (!machine.has("tma") || !rows_by_bulk(program, vector_width, request.alignment)
            || !slots_by_bulk(program, vector_width) || slot_ == 0)
            return reject(Reason::instruction);
        for (int cluster : {1, 2, 4, 8, 16}) {
            if (!asked(request.cluster, cluster)) continue;
            const Rule* const short_part =
                first(short_row, cluster > 1 && row_bytes / cluster < min_row, fuse_rules::ring_part);
            for (Lanes& searched : lanes_) {
                if (cluster > hw.cluster_ctas) {
                    reject(Reason::cluster);
                    continue;
                }
                const RingChoice choice{.cluster = cluster, .threads_per_row = searched.threads_per_row};
                if (!short_part) {
                    rings_of(choice);
                    continue;
                }
                if (!searched.rings) searched.rings = rings_as_asked(choice);
                out_.rejected.add(*short_part, *searched.rings);
            }
        }
    }

  private:
    struct RingChoice {
        int cluster, threads_per_row, vectors_per_thread = 1, reduction_threads = 0;
        bool kept = false;
    };
    /// Threads of a CTA that compute, and how many rings of them are as asked for.
    struct Lanes {
        int threads_per_row;
        std::optional<std::int64_t> rings{};
    };
    static constexpr int searched_vectors_per_thread[] = {1, 2, 4},
                         searched_reduction_threads[] = {128, 0};
    static constexpr bool both[] = {true, false};
    static constexpr int producer = warp_threads;  // threads

    void reject(Reason reason) { out_.rejected.add(reason); }

    const Rule* rule_if(bool applies, const Rule& rule) const {
        return applies && !request.exhaustive ? &rule : nullptr;
    }
    const Rule* first(const Rule* before, bool applies, const Rule& rule) const {
        return before ? before : rule_if(applies, rule);
    }

    FuseConfig config_of(const RingChoice& choice) const {
        return {.form = program.form,
                .row_storage = RowStorage::pipelined,
                .vector_width = vector_width,
                .vectors_per_thread = choice.vectors_per_thread,
                .threads = choice.threads_per_row + choice.reduction_threads + producer,
                .threads_per_row = choice.threads_per_row,
                .reduction_threads = choice.reduction_threads,
                .cluster = choice.cluster,
                .persistent = true,
                .early_weights = choice.kept};
    }

    bool as_asked_of(const FuseConfig& c) const {
        return as_asked(request, c) && asked(request.ctas_per_sm, c.ctas_per_sm);
    }

    /// How many of rings_of() are as asked for, whichever cluster.
    std::int64_t rings_as_asked(RingChoice choice) const {
        std::int64_t count = 0;
        for (int vectors_per_thread : searched_vectors_per_thread)
            for (bool kept : both)
                for (int reduction_threads : searched_reduction_threads) {
                    choice.vectors_per_thread = vectors_per_thread, choice.kept = kept;
                    choice.reduction_threads = reduction_threads;
                    count += as_asked_of(config_of(choice));
                }
        return count;
    }

    void rings_of(RingChoice choice) {
        for (int vectors_per_thread : searched_vectors_per_thread)
            for (bool kept : both)
                for (int reduction_threads : searched_reduction_threads) {
                    choice.vectors_per_thread = vectors_per_thread, choice.kept = kept;
                    choice.reduction_threads = reduction_threads;
                    ring_of(choice);
                }
    }

    void ring_of(const RingChoice& choice) {
        constexpr double min_chunk = 16384, max_chunk = 32768;  // B of all full tensors
        constexpr double min_kept_chunk = 8192;                 // beside weights
        constexpr double min_ring = 131072;                     // B of an SM
        constexpr int min_slots = 4, max_slots = 24;
        FuseConfig c = config_of(choice);
        if (!as_asked_of(c)) return;
        // Every CTA of a cluster has vectors of every row, wherever it begins (docs/facts.md 189).
        if (c.cluster > 1 && rows_off_vectors(program, c.vector_width)
            && program.columns < std::int64_t(c.cluster) * (c.cluster - 1) * c.vector_width)
            return reject(Reason::instruction);
        // Forms that no kernel has.
        if (c.reduction_threads > 0 && !reduction_can_specialise(program, c))
            return reject(Reason::instruction);
        const double chunk_elements = double(choice.threads_per_row) * c.vectors_per_thread * vector_width;
        const double all = chunk_elements * work.full_bytes, chunk = chunk_elements * slot_;
        // What comes a chunk ahead has registers beside this chunk's: of one or two vectors the compiler asks
        // for it when this one is used up, of four it spills.
        constexpr int max_ahead = 2;
        if (all > chunk && c.vectors_per_thread > max_ahead) return reject(Reason::registers);
        // Larger chunks come late, smaller ones are more barriers than they need be.
        const double min_all = choice.kept ? min_kept_chunk : min_chunk;
        if (const Rule* rule = rule_if((all < min_all || (chunk >= max_chunk && c.vectors_per_thread > 1))
                                           && !request.vectors_per_thread,
                                       fuse_rules::ring_chunk))
            return out_.rejected.add(*rule);
        const double kept_bytes = double(staged_rows(program, c).kept_bytes);
        // What is read but a few times need not be kept.
        constexpr double min_rows = 4;
        const double clusters = whole(cluster_sms(machine, c.cluster) / c.cluster);
        if (c.early_weights && (kept_bytes == 0 || !kept_by_bulk(program, c)))
            return reject(Reason::instruction);
        if (const Rule* rule = rule_if(c.early_weights && double(program.rows) < min_rows * clusters,
                                       fuse_rules::kept_weights))
            return out_.rejected.add(*rule);
        // Two rows of slots are as good as more, but for what is on its way while short parts are reduced.
        const int chunks = int(ring_chunks(program, c));
        const double shared =
            std::min(hw.shared_per_cta, hw.shared_per_sm - hw.shared_reserved) - ring_exchange;
        const double fit = whole((shared - kept_bytes) / chunk);
        const double wanted = std::max({double(min_slots), 2.0 * chunks, whole_up(min_ring / chunk)});
        c.stages = request.stages.value_or(int(std::min({double(max_slots), wanted, fit})));
        // Slots for the row alone would run dry while its values are reduced. Kept weights are asked for behind the first
        // row's chunks, which therefore need slots before anyone gives one back.
        int least = 1;
        if (work.readings > 1) least = chunks + (request.stages ? 0 : 1);
        else if (c.early_weights) least = chunks;
        if (c.stages > max_slots || !asked(request.stages, c.stages)) return reject(Reason::shared);
        if (!(c.stages <= fit) || c.stages < least) return reject(Reason::shared);
        ring(c, chunks);
    }

    void ring(FuseConfig c, int chunks) {
        FuseCandidate candidate;
        candidate.registers = registers_needed(program, c);
        // The producer warps make one partition hold a warp more than the others.
        if (candidate.registers > hw.registers_per_thread
            || candidate.registers * even_threads(hw, c.threads) > hw.registers_per_sm)
            return reject(Reason::registers);
        candidate.shared_bytes = double(staged_rows(program, c).bytes);
        const double clusters = ring_clusters(machine, program, c);
        const double chunk_elements = double(c.vectors_per_thread) * c.threads_per_row * c.vector_width;
        const RingLaunch launch{.threads_per_row = double(c.threads_per_row),
                                .vectors_per_thread = double(c.vectors_per_thread),
                                .cluster = double(c.cluster),
                                .slots = double(c.stages),
                                .chunks = double(chunks),
                                .chunk_bytes = chunk_elements * slot_,
                                .epilogue_bytes = chunk_elements * (work.full_bytes - slot_),
                                .kept = c.early_weights,
                                .clusters = clusters,
                                .reduction_threads = double(c.reduction_threads),
                                .dynamic = schedules_dynamically(program, c)};
        candidate.launch = launch;
        candidate.flow = ring_flow(hw, program, work, bytes, launch);
        c.grid = std::isnan(clusters) ? 0 : std::int64_t(clusters) * c.cluster;
        candidate.config = c;
        out_.kept.push_back(candidate);
    }

    double slot_;        // bytes of an element of all tensors in the slots
    bool has_epilogue_;  // not all tensors are
    Lanes lanes_[2] = {{256}, {512}};
    FuseSearch& out_;
};

}  // namespace

double ring_clusters(const Machine& machine, const Program& program, const FuseConfig& c) {
    const double resident = whole(cluster_sms(machine, c.cluster) / c.cluster);
    return resident >= 1 ? std::min(resident, std::max(1.0, double(program.rows))) : unknown_number;
}

void search_rings(const FuseSearchContext& context, FuseSearch& out) { RingSearch(context, out).all(); }

}  // namespace rooftile
