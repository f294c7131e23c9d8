// The sm90_gemm family: its candidates, its walls, and the kernel configuration of a plan.
#pragma once

#include "kernels/gemm/sm90_gemm_config.hpp"
#include "rooftile/plan/gemm_search.hpp"

namespace rooftile {

/// setmaxnreg of the two roles, 0 where a thread keeps what it has at launch.
struct RegisterSplit {
    int launch = -1;  ///< registers a thread has at launch; -1 unknown
    int producer = 0, consumer = 0;
};
/// An SM's registers among `ctas` CTAs of one producer and `consumers` consumer warpgroups. The producer
/// keeps a comfortable 40, or the least it can do with.
struct RegisterSplits {
    RegisterSplit roomy, tight;  ///< for the producer

    RegisterSplits() = default;
    RegisterSplits(double registers_per_sm, double registers_per_thread, int consumers, int ctas);
    /// The one that gives a consumer thread `need` registers, if any does.
    RegisterSplit for_need(int need) const { return need > roomy.consumer ? tight : roomy; }
};

/// Parts of K tried: what divides the larger tiles, up to the portable cluster.
inline constexpr std::array<int, 6> searched_splits{1, 2, 3, 4, 6, 8};

class Sm90GemmFamily {
  public:
    Sm90GemmFamily(const GemmHardware& hw, const GemmProblem& problem);

    /// Visits every candidate, fixed values of the request included even where the search would skip them.
    template <class Visit>
    void for_each(const GemmRequest& request, Visit visit) const;
    /// Walls of the instruction, threads, registers, alignment and cluster.
    Wall examine(const GemmHardware& hw, const GemmProblem& problem, const GemmCandidate& candidate,
                 Footprint& footprint) const;

  private:
    static constexpr int most_warpgroups = 3, most_ctas = 2;
    /// With W full waves of tiles the last one costs at most 1 / W of the time: beyond four an exchange costs
    /// more.
    static constexpr int most_waves_split = 4;
    RegisterSplits splits_[most_warpgroups]
                          [most_ctas];  // worked out once: the search asks thousands of times
    std::int64_t m_, n_, k_;
    double sms_;

    /// False where splitting K cannot pay, so that the search need not look: tiles fill several waves as it
    /// is, or K has fewer steps than parts.
    bool may_pay(const GemmCandidate& c) const {
        const double tiles = double(ceil_div(m_, c.tile_m)) * double(ceil_div(n_, c.tile_n));
        return tiles < most_waves_split * sms_ * c.ctas_per_sm && ceil_div(k_, c.tile_k) >= c.split_k;
    }
    RegisterSplit split(const GemmHardware& hw, const GemmCandidate& c, int need) const;
};

/// Why a finished tile cannot wait until the next one's products run, however many registers there are; null
/// where it can.
const char* bars_deferred_store(const Sm90GemmConfig& config);

/// Whether C goes out by TMA: rows of whole 16-byte pieces, and as far apart.
bool stores_by_tma(const GemmProblem& problem);

/// The kernel's template parameter for a candidate or a finished plan of this family.
Sm90GemmConfig kernel_config(const GemmProblem& problem, const GemmCandidate& candidate, int stages,
                             const RegisterSplit& registers);
Sm90GemmConfig kernel_config(const GemmPlan& plan);

template <class Visit>
void Sm90GemmFamily::for_each(const GemmRequest& request, Visit visit) const {
    constexpr int tile_ms[] = {64, 128, 192, 256};
    constexpr int clusters[][2] = {{1, 1}, {2, 1}, {1, 2}};
    const auto splits = [&](GemmCandidate c) {
        if (request.split_k) {
            c.split_k = *request.split_k;
            return visit(c);
        }
        for (int split_k : searched_splits) {
            c.split_k = split_k;
            if (split_k == 1 || may_pay(c)) visit(c);
        }
    };
    const int tile_k = request.tile_k.value_or(Sm90GemmConfig::swizzle_bytes / Sm90GemmConfig::element_bytes);
    const auto inner = [&](int tile_m, int tile_n, int cluster_m, int cluster_n) {
        const int warpgroups_low = request.consumer_warpgroups.value_or(1);
        const int warpgroups_high = request.consumer_warpgroups.value_or(most_warpgroups);
        for (int warpgroups = warpgroups_low; warpgroups <= warpgroups_high; ++warpgroups)
            for (int ctas = request.ctas_per_sm.value_or(1); ctas <= request.ctas_per_sm.value_or(most_ctas);
                 ++ctas) {
                GemmCandidate c{tile_m,    tile_n,    tile_k, warpgroups, Schedule::cooperative,
                                cluster_m, cluster_n, ctas};
                c.deferred_store = request.deferred_store;
                splits(c);
                c.schedule = Schedule::pingpong;  // two take turns; a request for another number is told so
                c.split_k = request.split_k.value_or(1);
                if (warpgroups == 2 || request.schedule) visit(c);
            }
    };
    const auto middle = [&](int tile_m, int tile_n) {
        if (request.cluster_m || request.cluster_n)
            return inner(tile_m, tile_n, request.cluster_m.value_or(1), request.cluster_n.value_or(1));
        for (const auto& cluster : clusters) inner(tile_m, tile_n, cluster[0], cluster[1]);
    };
    const auto outer = [&](int tile_m) {
        if (request.tile_n) return middle(tile_m, *request.tile_n);
        for (int tile_n = 16; tile_n <= 256; tile_n += 16) middle(tile_m, tile_n);
    };
    if (request.tile_m) return outer(*request.tile_m);
    for (int tile_m : tile_ms) outer(tile_m);
}

}  // namespace rooftile
