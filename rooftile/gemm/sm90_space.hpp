// What a search of the sm90_gemm family enumerates: tiles, and for each of them clusters, residencies, schedules
// and parts of K, with what the search knows of each before any constraint is checked.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "rooftile/gemm/sm90_family.hpp"

namespace rooftile::sm90 {

/// Of a row of an operand in shared memory, in elements.
constexpr int k_span(Type type) { return Sm90GemmConfig::swizzle_bytes / bytes_of(type); }
/// The same of an operand whose rows do not run along K: of 16 bits.
inline constexpr int swizzle_span = k_span(Type::bf16);

/// What the search knows of a tile before it chooses a schedule, a cluster and the parts of K.
struct TileFigures {
    GemmCandidate tile;  ///< one CTA an SM, without a cluster, K in one piece
    double floor = 0;    ///< seconds
    const Rule* left_out = nullptr;  ///< the rule that does; null: none

    TileFigures(const GemmHardware& hw, const GemmProblem& problem, const GemmCandidate& of) : tile(of) {
        tile.cluster_m = tile.cluster_n = tile.split_k = tile.grid_split_k = tile.ctas_per_sm = 1;
        tile.warp_m = tile.swap_ab ? tile.tile_m : Sm90GemmConfig::wgmma_m;
        tile.warp_n = tile.swap_ab ? Sm90GemmConfig::wgmma_m : tile.tile_n;
        tile.store_depth = Sm90GemmConfig::epilogue_tiles_in_flight;
        tile.set_work(hw, problem);
    }
};

/// Stages that no ring of the tile exceeds, whatever else a CTA keeps in shared memory.
int max_stages_of(const GemmConfig& tile, const GemmRequest& request, double shared_limit);

/// The request's tiles, or all, the most promising first: what is found early spares the search the rest. Those
/// with A and B swapped that a rule leaves out come last, not promising at all.
std::vector<TileFigures> tiles_of(const GemmHardware& hw, const GemmProblem& problem,
                                  const GemmRequest& request);

struct Cluster {
    int m = 1, n = 1;
    double l2_cycles = 0, port_cycles = 0, streamed_bytes = 0;  // of a k-step
    bool fits = true;                                           // in the grid of tiles

    void time(const GemmHardware& hw, const GemmProblem& problem, const TileFigures& figures) {
        const TileGrid& tiles = figures.tile.tiles;
        GemmConfig tile = figures.tile;
        tile.cluster_m = m;
        tile.cluster_n = n;
        l2_cycles = l2_step_cycles(hw, tile, problem, tiles);
        port_cycles = port_step_cycles(hw, tile, problem);
        streamed_bytes = rooftile::streamed_bytes(tile, problem, tiles);
        fits = m <= tiles.rows && n <= tiles.columns;
    }
};
/// Whichever takes least of those `clusters` that fit, by resource; the first where none does.
inline Cluster min_of(std::span<const Cluster> clusters) {
    Cluster least = clusters.front();
    for (const Cluster& cluster : clusters.subspan(1)) {
        if (!cluster.fits) continue;
        least.l2_cycles = std::min(least.l2_cycles, cluster.l2_cycles);
        least.port_cycles = std::min(least.port_cycles, cluster.port_cycles);
        least.streamed_bytes = std::min(least.streamed_bytes, cluster.streamed_bytes);
    }
    return least;
}

/// The tile whose k-steps take what those of `cluster` do.
inline GemmCandidate least_of(const TileFigures& figures, const Cluster& cluster) {
    GemmCandidate least = figures.tile;
    least.step.l2 = cluster.l2_cycles;
    least.step.port = cluster.port_cycles;
    return least;
}

/// What a request leaves free, dimension by dimension, but for the tiles.
class Space {
  public:
    Space(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request)
        : residencies(choices(request.ctas_per_sm, searched_ctas)),
          hw_(hw),
          request_(request),
          groups_(bool(problem.groups)),
          max_ctas_(*std::max_element(residencies.begin(), residencies.end())) {
        if (request.cluster_m || request.cluster_n)
            clusters = {{request.cluster_m.value_or(1), request.cluster_n.value_or(1)}};
        GemmConfig c;
        for_each_kind(c, [&] { ++(c.schedule == Schedule::pingpong ? pingpongs_ : cooperatives_); });
        list_all_parts(problem.k_blocks(request.tile_k.value_or(k_span(problem.a_type))));
        for (const PartsOfK& p : std::span(parts_).subspan(1)) in_parts_ += p.candidates;
        slots_.reserve(residencies.size() * parts_.size());
        for (int ctas_per_sm : residencies)
            for (const PartsOfK& p : parts_) slots_.push_back(max_slots(p.split_k, ctas_per_sm));
    }

    std::vector<Cluster> clusters{{1, 1}, {2, 1}, {1, 2}};
    std::span<const int> residencies;  // CTAs an SM

    /// Visits every choice beside those of tile, residency, parts of K and cluster, which is set in `c` meanwhile.
    void for_each_kind(GemmConfig& c, const std::function<void()>& visit) const;

    // On K in one piece; a request for anything else is told so.
    bool pingpong_takes(int split_k) const { return split_k == request_.split_k.value_or(1); }
    bool pingpong_takes(const PartsOfK& p) const {
        return pingpong_takes(p.split_k) && p.grid_split_k == request_.grid_split_k.value_or(1);
    }

    // All that a residency may take, for k-steps that take what those of `cluster` do; slots left out.
    std::span<const PartsOfK> list_parts(const TileFigures& tile, const Cluster& cluster) {
        GemmConfig t = tile.tile;
        listed_.assign(parts_.begin(), parts_.begin() + std::ptrdiff_t(count_parts(tile, max_ctas_)));
        for_each_pieces(tile, [&](const PartsOfK& p) { listed_.push_back(p); });
        for (PartsOfK& p : listed_) {
            t.split_k = p.split_k, t.grid_split_k = p.grid_split_k;
            p.work.streamed = cluster.streamed_bytes / streaming_rate(hw_, tile.tile.tiles, cluster.m * cluster.n, t.k_parts());
            p.work.exchange = exchange_cycles(hw_, t);
        }
        return listed_;
    }
    // Those of `all` that one takes.
    void take_parts(const TileFigures& tile, std::size_t residency, std::span<const PartsOfK> all,
                    std::vector<PartsOfK>& parts) const {
        const auto taken = all.first(count_parts(tile, residencies[residency]));
        parts.assign(taken.begin(), taken.end());
        const double* slots = &slots_[residency * parts_.size()];
        for (PartsOfK& p : parts) p.work.slots = *slots++;
        if (residencies[residency] != 1) return;
        const auto pieces = all.subspan(count_parts(tile, max_ctas_));  // their slots are known
        parts.insert(parts.end(), pieces.begin(), pieces.end());
    }

    // Of one tile: those in parts that count_parts() leaves out.
    std::int64_t ablated(const TileFigures& tile) const {
        std::int64_t all = 0;
        for (int ctas_per_sm : residencies)
            if (count_parts(tile, ctas_per_sm) < parts_.size()) all += in_parts_;
        return all;
    }

    // Of one tile.
    std::int64_t candidates(const TileFigures& tile) const {
        std::int64_t all = 0;
        for (int ctas_per_sm : residencies) {
            for (const PartsOfK& p : std::span(parts_).first(count_parts(tile, ctas_per_sm)))
                all += p.candidates;
            if (ctas_per_sm == 1) for_each_pieces(tile, [&](const PartsOfK& p) { all += p.candidates; });
        }
        return all;
    }

  private:
    static constexpr int searched_ctas[] = {1, 2, 3, 4};

    // Those that K has steps for, and always the first; what changes with the tile is left out.
    void list_all_parts(std::int64_t k_blocks) {
        const auto searched = choices(request_.split_k, searched_splits);
        parts_.reserve(searched.size());
        for (int split_k : searched) {
            if (!parts_.empty() && split_k > k_blocks) break;
            const std::int64_t kinds = cooperatives_ + (pingpong_takes(split_k) ? pingpongs_ : 0);
            const int pieces = request_.grid_split_k.value_or(1);
            parts_.push_back({split_k, pieces,
                              {ceil_div(k_blocks, std::int64_t{split_k} * pieces), unknown_number, unknown_number, unknown_number},
                              kinds * std::int64_t(clusters.size())});
        }
    }

    // Splitting K cannot pay where tiles fill several waves as it is: with W of them the last one costs at most
    // 1 / W of the time, and beyond four an exchange costs more: gemm_rules::parts_of_few_waves.
    std::size_t count_parts(const TileFigures& tile, int ctas_per_sm) const {
        constexpr int max_waves = 4;
        if (request_.exhaustive) return parts_.size();
        const double tiles = tile.tile.tiles.count();
        return tiles < max_waves * hw_.sms * ctas_per_sm ? parts_.size() : 1;
    }

    // K in pieces besides, where the tiles in parts leave half of what runs at once idle: as many pieces as fill it, and half
    // of them, and so on. One CTA an SM, of one tile: who wants the next one from a counter wants no pieces.
    template <class Visit>
    void for_each_pieces(const TileFigures& tile, Visit visit) const {
        if (request_.grid_split_k || request_.dynamic_scheduler == true || cooperatives_ == 0 || groups_) return;
        const double tiles = tile.tile.tiles.count();
        for (const PartsOfK& p : parts_) {
            const double slots = max_slots(p.split_k, 1), fill = whole(slots / (tiles * p.split_k));
            const std::int64_t deep = tile.tile.k_steps / p.split_k;
            if (!(fill >= 2)) continue;
            for (int pieces = int(fill); pieces >= 2; pieces /= 2)
                if (pieces <= deep)
                    visit(PartsOfK{p.split_k, pieces,
                                   {ceil_div(tile.tile.k_steps, std::int64_t{p.split_k} * pieces), unknown_number, unknown_number, slots},
                                   cooperatives_ * std::int64_t(clusters.size())});
        }
    }

    // CTAs at once of whichever cluster has most.
    double max_slots(int split_k, int ctas_per_sm) const {
        double most = unknown_number;
        for (const Cluster& c : clusters)
            most = max_known(most, cta_slots(hw_, c.m * c.n * split_k, ctas_per_sm));
        return most;
    }

    const GemmHardware& hw_;
    const GemmRequest& request_;
    bool groups_;  // whose tiles are known on the device alone: no pieces of K
    int max_ctas_;
    std::int64_t cooperatives_ = 0, pingpongs_ = 0;  // kinds of each schedule
    std::vector<PartsOfK> parts_;
    std::vector<PartsOfK> listed_;  // of one tile
    std::int64_t in_parts_ = 0;  // candidates of a tile and residency with K in more than one
    std::vector<double> slots_;  // by residency and parts of K
};

}  // namespace rooftile::sm90
