#include "rooftile/chain/one_kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "rooftile/chain/derive.hpp"
#include "rooftile/tiled/two_products.hpp"

namespace rooftile {
namespace {

/// A plan of a product beside others, with its time.
struct Candidate {
    PlannedProduct part;
    ProductTime time;
};

class PartsSearch {
  public:
    PartsSearch(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, const ChainProblem& problem, const PlannedProduct& first, const PlannedProduct& second, const OneKernelSearch& search)
        : coarse_(search.coarse), followed_(search.coarse ? 8 : 64), tried_(search.coarse ? 1 : 4), most_(search.most), machine_(machine), no_dram_(std::make_shared<const Machine>(without_dram(*machine))), hw_(hw), p_(problem), tile_k_{first.product.tile_k, second.product.tile_k},
          asked_{first_product(problem, first.with_epilogue), second_product(problem, second.with_epilogue && problem.residual)},
          epilogue_{first.with_epilogue, second.with_epilogue && problem.residual} {}

    std::vector<OneKernelParts> run() {
        for (const char* schedule : {"pingpong", "cooperative"}) offer(schedule);
        if (pairs_.empty()) offer(nullptr);  // another family of kernels
        std::erase_if(pairs_, [&](const Pair& pair) { return pair.seconds / double(candidates_[pair.first].part.product.clusters) > most_; });
        std::stable_sort(pairs_.begin(), pairs_.end(), faster);
        keep_built();
        std::vector<OneKernelParts> out;
        if (auto any = best_of([](const Pair&) { return true; }, 0)) out.push_back(std::move(*any));
        const auto low = [this](const Pair& pair) { return unit_of(pair) <= low_unit; };
        if (out.empty()) return out;
        if (chunk_unit(out[0].first.product, out[0].second.product) > low_unit)
            if (auto chunks = best_of(low, 0)) out.push_back(std::move(*chunks));
        // In chunks so low that L2 holds the room of some of them, narrower tiles keep more CTAs busy.
        const double rows = hw_.l2_bytes * hw_.l2_parts / (double(p_.ff) * ChainProblem::element_bytes);
        if (2 * rows < double(p_.m))
            if (auto chunks = best_of(low, rows)) out.push_back(std::move(*chunks));
        return out;
    }

  private:
    struct Pair {
        std::size_t first, second;
        double seconds;
    };
    static constexpr int kept = 8, kept_coarse = 3;  // plans of a product
    static constexpr std::int64_t low_unit = 256;
    static bool faster(const Pair& a, const Pair& b) { return a.seconds < b.seconds; }

    std::int64_t unit_of(const Pair& pair) const { return chunk_unit(candidates_[pair.first].part.product, candidates_[pair.second].part.product); }

    /// Of the pairs that `fit`, which stand in the order of their work, the one whose queue ends first: with all rows at once, or in the lowest
    /// chunks that there are, of which `room_rows` have room.
    template <class Fit>
    std::optional<OneKernelParts> best_of(Fit fit, double room_rows) const {
        std::vector<Pair> pairs;
        for (const Pair& pair : pairs_)
            if (pairs.size() < followed_ && fit(pair)) pairs.push_back(pair);
        for (Pair& pair : pairs) pair.seconds = known_or(seconds_of(candidates_[pair.first], candidates_[pair.second], room_rows), INFINITY);
        std::stable_sort(pairs.begin(), pairs.end(), faster);
        std::optional<OneKernelParts> best;
        double fastest = INFINITY;
        for (std::size_t i = 0; i < std::min(pairs.size(), tried_); ++i) {
            OneKernelParts parts{candidates_[pairs[i].first].part, candidates_[pairs[i].second].part};
            share_ring(parts);
            const double seconds = seconds_of(with_time(parts.first), with_time(parts.second), room_rows);
            if (best && !(seconds < fastest)) continue;
            fastest = seconds;
            best = std::move(parts);
        }
        return best;
    }

    /// Pairs that a kernel computes, where there are any.
    void keep_built() {
        const auto built = [&](const Pair& pair) {
            const Plan &first = *candidates_[pair.first].part.plan, &second = *candidates_[pair.second].part.plan;
            return two_products_kernel(*machine_, first, second, {.rows = p_.m}).why_not.empty();
        };
        std::vector<Pair> kept;
        std::copy_if(pairs_.begin(), pairs_.end(), std::back_inserter(kept), built);
        if (!kept.empty()) pairs_ = std::move(kept);
    }

    void offer(const char* schedule) {
        std::vector<std::size_t> of[2];
        for (std::size_t i = 0; i < 2; ++i) {
            const auto take = [&](const Given& asked, int most) {
                for (PlannedProduct& part : planned_several(no_dram_, hw_, asked, most)) {
                    of[i].push_back(candidates_.size());
                    candidates_.push_back(with_time(std::move(part)));
                }
            };
            take(alone(i, schedule), coarse_ ? kept_coarse : kept);
            for (const int tile_n : {64, 128, 192, 256}) {  // of one height, for low chunks
                if (coarse_ && tile_n % 128 != 0) continue;
                Given given = alone(i, schedule);
                given.add("tile", fmt::format("128x{}x{}", tile_n, tile_k_[i]));
                take(given, 1);
            }
        }
        for (const std::size_t first : of[0])
            for (const std::size_t second : of[1])
                if (tiles_of(candidates_[first].part.product) + tiles_of(candidates_[second].part.product) <= most_tiles) pairs_.push_back({first, second, known_or(work_of(candidates_[first], candidates_[second]), INFINITY)});
    }

    /// One tile a CTA, one CTA an SM, one launch.
    Given alone(std::size_t i, const char* schedule) const {
        Given given = asked_[i];
        given.add("cluster", "1x1");
        given.add("split_k", "1");
        if (coarse_) given.add("order", "row");
        if (!schedule) return given;
        given.add("grid_split_k", "1");
        given.add("ctas_per_sm", "1");
        given.add("consumer_warpgroups", "2");
        given.add("schedule", schedule);
        add_one_launch(given, i);
        return given;
    }
    void add_one_launch(Given& given, std::size_t i) const {
        given.add("overlapped_epilogue", "off");
        given.add("pack_a", "off");
        given.add("pack_b", "off");
        if (epilogue_[i]) given.add("epilogue_apart", "off");
    }

    Candidate with_time(PlannedProduct part) const {
        const std::vector<Plan> one = {*part.plan};
        const ProductTime time = time_of(*machine_, *no_dram_, one.front(), part_predictors(*machine_, one).front());
        return {std::move(part), time};
    }

    ChainConfig config_of(const Candidate& first, const Candidate& second, double room_rows = 0) const {
        ChainConfig config;
        config.form = ChainForm::persistent;
        config.products = {first.part.product, second.part.product};
        config.chunk_rows = p_.m;
        if (room_rows > 0) {
            config.chunk_rows = chunk_unit(first.part.product, second.part.product);
            config.room_chunks = std::max(2, int(room_rows / double(config.chunk_rows)));
            for (ChainProduct& p : config.products) p.order = Order::column, p.group = 1;
        }
        return config;
    }

    static double tiles_of(const ChainProduct& p) { return std::ceil(double(p.m) / p.tile_m) * std::ceil(double(p.n) / p.tile_n); }
    static constexpr double most_tiles = 2147483647;  // of a queue: ChunkedOrder counts them in an int

    /// All tiles' seconds: the queue takes no less of all CTAs together.
    double work_of(const Candidate& first, const Candidate& second) const {
        const ChainConfig config = config_of(first, second);
        const QueueTimes times = queue_times(hw_, p_, config, first.time, second.time);
        return tiles_of(config.products[0]) * times.first_tile + tiles_of(config.products[1]) * times.second_tile;
    }

    double seconds_of(const Candidate& first, const Candidate& second, double room_rows) const {
        const ChainConfig config = config_of(first, second, room_rows);
        ChainTraffic own;
        own.of_kernel = {std::int64_t(known_or(first.time.dram_bytes, 0)), std::int64_t(known_or(second.time.dram_bytes, 0))};
        return persistent_time(hw_, p_, config, first.time, second.time, own).seconds;
    }

    /// Both with as many stages as the kernel of both has.
    void share_ring(OneKernelParts& parts) const {
        const Plan& first = *parts.first.plan;
        const TwoProductsKernel kernel = two_products_kernel(*machine_, first, *parts.second.plan, {.rows = p_.m});
        if (!kernel.why_not.empty()) return;
        for (std::size_t i = 0; PlannedProduct* part : {&parts.first, &parts.second}) {
            const auto own = find_as<std::int64_t>(part->plan->operation->config_record(*part->plan), "stages");
            if (own != kernel.stages) {
                Given given = asked_[i];
                add_one_launch(given, i);
                PlannedProduct again = planned_again(no_dram_, hw_, *part->plan, given, {{"stages", std::int64_t{kernel.stages}}});
                if (again.plan) *part = std::move(again);
            }
            ++i;
        }
    }

    const bool coarse_;
    const std::size_t followed_, tried_;
    const double most_;
    std::shared_ptr<const Machine> machine_, no_dram_;
    const ChainHardware& hw_;
    const ChainProblem& p_;
    int tile_k_[2];
    Given asked_[2];
    bool epilogue_[2];
    std::vector<Candidate> candidates_;
    std::vector<Pair> pairs_;
};

}  // namespace

std::vector<OneKernelParts> parts_of_one_kernel(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, const ChainProblem& problem,
                                                const PlannedProduct& first, const PlannedProduct& second, const OneKernelSearch& search) {
    return PartsSearch(machine, hw, problem, first, second, search).run();
}

}  // namespace rooftile
