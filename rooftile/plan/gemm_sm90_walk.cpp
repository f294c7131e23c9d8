// The space of the sm90_gemm family and the walls in it.
#include <algorithm>
#include <vector>

#include "rooftile/plan/gemm_sm90.hpp"

namespace rooftile {
namespace {

using Config = Sm90GemmConfig;
constexpr int swizzle_span = Config::swizzle_bytes / Config::element_bytes;  // elements

int sharing_warpgroups(const GemmCandidate& c) { return c.schedule == Schedule::pingpong ? 1 : c.warpgroups; }

// The walls stand in three rows, by what they depend on. A search takes a row once for all candidates that it
// speaks of.

// First row, whatever the cluster and the parts of K. The instruction: 64 rows a wgmma, N in steps of 16 up
// to 256, one swizzle span along K.
Wall instruction_wall(const GemmCandidate& c) {
    const GemmTile& t = c.tile;
    const bool pingpong = c.schedule == Schedule::pingpong;
    const int rows = Config::wgmma_m * sharing_warpgroups(c);
    constexpr int widest_box = 256;  // elements of a TMA box's side, cuTensorMapEncodeTiled
    if (pingpong && t.split_k > 1)
        return Wall::at(
            Reason::instruction, t.split_k, 1,
            "split_k = {needed}: parts of K exchange their sums through the ring, which in pingpong "
            "the other warpgroup's tile is using; take cooperative");
    if (pingpong && c.warpgroups != 2)
        return Wall::at(Reason::instruction, 2, c.warpgroups,
                        "pingpong takes {needed} consumer warpgroups, not {available}");
    if (t.tile_m % rows != 0)
        return Wall::at(Reason::instruction, rows, t.tile_m,
                        "tile_m = {available} must be a multiple of {needed}: 64 rows a wgmma for each "
                        "warpgroup on the tile");
    if (t.tile_m > widest_box)
        return Wall::at(Reason::instruction, widest_box, t.tile_m,
                        "tile_m = {available} must be at most {needed}");
    if (t.tile_n % 16 != 0 || t.tile_n > widest_box)
        return Wall::at(Reason::instruction, 16, t.tile_n,
                        "tile_n = {available} must be a multiple of {needed} up to 256");
    if (t.tile_k != swizzle_span)
        return Wall::at(Reason::instruction, swizzle_span, t.tile_k,
                        "tile_k = {available} must be {needed}: one 128-byte swizzle span");
    return Wall::none();
}

// What the search knows of a tile before it chooses a schedule, a cluster and the parts of K.
struct TileFigures {
    GemmTile tile;
    TileGrid grid;  // of CTA tiles
    std::int64_t k_blocks;
    StepCycles step;
    double floor = 0;  // seconds, of one CTA an SM and K in one piece

    TileFigures(const GemmHardware& hw, const GemmProblem& problem, int tile_m, int tile_n, int tile_k)
        : tile{.tile_m = tile_m,
               .tile_n = tile_n,
               .tile_k = tile_k,
               .warp_m = Config::wgmma_m,
               .warp_n = tile_n,
               .store_depth = Config::slabs_in_flight},
          grid(cluster_grid(problem, tile_m, tile_n, 1, 1)),
          k_blocks(k_steps(tile, problem)),
          step(step_cycles(hw, tile, problem)) {}
};

// Stages that no ring of the tile exceeds, whatever else a CTA keeps in shared memory.
int most_stages_of(const GemmTile& t, const GemmRequest& request, double shared_limit) {
    const double fits =
        whole(shared_limit / (double(t.tile_m + t.tile_n) * t.tile_k * Config::element_bytes));
    return static_cast<int>(
        least_known(std::max(most_stages, request.stages.value_or(0)), most_known(fits, least_stages)));
}

// The request's tiles, or all, the most promising first: what is found early spares the search the rest.
std::vector<TileFigures> tiles_of(const GemmHardware& hw, const GemmProblem& problem,
                                  const GemmRequest& request) {
    std::vector<TileFigures> tiles;
    tiles.reserve(searched_tile_ms.size() * searched_tile_ns.size());
    const GemmTimeFloor floor(hw);
    const int tile_k = request.tile_k.value_or(swizzle_span);
    const double shared_limit = rooftile::shared_limit(hw, 1);
    for (int tile_m : choices(request.tile_m, searched_tile_ms))
        for (int tile_n : choices(request.tile_n, searched_tile_ns)) {
            TileFigures& figures = tiles.emplace_back(hw, problem, tile_m, tile_n, tile_k);
            figures.floor = most_known(
                floor.seconds(figures.tile, figures.grid,
                              {figures.k_blocks, figures.step,
                               streamed_cycles(hw, figures.tile, problem, figures.grid), 0, unknown_number},
                              most_stages_of(figures.tile, request, shared_limit)),
                0);
        }
    // Where a number is unknown no tile promises more than another.
    std::sort(tiles.begin(), tiles.end(), [](const auto& x, const auto& y) { return x.floor < y.floor; });
    return tiles;
}

struct Cluster {
    int m = 1, n = 1;
    double l2_cycles = 0, port_cycles = 0, streamed_bytes = 0;  // of a k-step

    void time(const GemmHardware& hw, const GemmProblem& problem, const TileFigures& figures) {
        GemmTile tile = figures.tile;
        tile.cluster_m = m;
        tile.cluster_n = n;
        l2_cycles = l2_step_cycles(hw, tile, problem, figures.grid);
        port_cycles = port_step_cycles(hw, tile, problem);
        streamed_bytes = rooftile::streamed_bytes(hw, tile, problem, figures.grid);
    }
};

// One candidate on its way past the second row of walls, which depend on the parts of K, and the third, which
// depend on the cluster. Whoever changes either takes it past that row again.
class Passage {
  public:
    Passage(const GemmHardware& hw, const GemmProblem& problem, const TileFigures& figures,
            const Residency& residency, GemmCandidate& candidate)
        : hw_(hw),
          problem_(problem),
          figures_(figures),
          residency_(residency),
          c_(candidate),
          defers_(candidate.deferred_store.value_or(false)),
          config_(kernel_config(problem, candidate, 1, {})) {
        f_.tiles = figures.grid;
        f_.step = figures.step;
        f_.accumulators = config_.accumulator_registers();
        f_.registers = f_.accumulators + config_.working_registers();
        f_.threads = config_.threads();
        f_.stage_bytes = config_.stage_bytes();
        f_.stage_overhead = 2 * Config::barrier_bytes;
        f_.shared_limit = residency.shared_limit;
    }
    const Footprint& footprint() const { return f_; }
    /// What stopped it.
    const Wall& wall() const { return wall_; }

    bool second_row_stops(int split_k) {
        GemmTile& t = c_.tile;
        t.split_k = config_.split_k = split_k;
        if (parts_stop() || slabs_stop() || entry_stops()) return true;
        give_registers(config_, c_, residency_.registers.for_need(f_.registers));
        f_.deferred_store = config_.deferred_store;
        config_.store_n = f_.store_n = store_columns();
        f_.exchange = exchange_cycles(hw_, t);
        streaming_rate_ = streaming_rate(hw_, f_.tiles, split_k);
        f_.k_steps = split_k == 1 ? figures_.k_blocks : ceil_div(figures_.k_blocks, split_k);
        f_.reserved_bytes = config_.reserved_bytes() - f_.stage_overhead;  // config was made with one stage
        f_.stages_least =
            std::max(least_stages, static_cast<int>(ceil_div(config_.exchange_bytes(), f_.stage_bytes)));
        t.turn_overlapped = c_.schedule == Schedule::pingpong;
        t.epilogue_overlapped = t.turn_overlapped || f_.deferred_store;
        t.store_boxes = config_.tma_store ? config_.slabs() : 0;
        return false;
    }

    bool third_row_stops(const Cluster& cluster) {
        GemmTile& t = c_.tile;
        t.cluster_m = cluster.m;
        t.cluster_n = cluster.n;
        if (box_stops() || cluster_stops()) return true;
        // A producer that multicasts a part of K holds more than the tight one has registers for.
        const bool roomy = t.split_k > 1 && t.cluster_m * t.cluster_n > 1;
        const RegisterSplit& split =
            roomy ? residency_.registers.roomy : residency_.registers.for_need(f_.registers);
        f_.producer_registers = split.producer;
        f_.consumer_registers = split.consumer;
        f_.registers_limit = split.consumer > 0  ? split.consumer
                             : split.launch >= 0 ? split.launch
                                                 : std::nan("");
        f_.step.l2 = cluster.l2_cycles;
        f_.step.port = cluster.port_cycles;
        f_.streamed = cluster.streamed_bytes / streaming_rate_;
        f_.slots = cta_slots(hw_, t.cluster_m * t.cluster_n * t.split_k, t.ctas_per_sm);
        return registers_stop();
    }

  private:
    bool stop(const Wall& wall) {
        wall_ = wall;
        return true;
    }

    bool parts_stop() {
        const GemmTile& t = c_.tile;
        if (t.tile_n % (8 * t.split_k) != 0)
            return stop(Wall::at(
                Reason::instruction, 8 * t.split_k, t.tile_n,
                "tile_n = {available} must be a multiple of {needed}: each part of K stores its share of "
                "the columns, eight at a time"));
        const char* bar = defers_ ? bars_deferred_store(config_) : nullptr;
        return bar && stop(Wall::at(Reason::instruction, 1, 0, bar));
    }

    // Slabs that the kernel can write.
    bool slabs_stop() {
        const int share = config_.share_n(), odd = 2 * Config::sector_columns;
        if (c_.store_n == 0) return false;
        if (!config_.tma_store)
            return stop(Wall::at(Reason::alignment, 8, c_.store_n,
                                 "store_n = {available}, but C leaves by TMA only where N and ldc are "
                                 "multiples of {needed}"));
        if (c_.store_n == Config::swizzled_columns(share)) return false;
        if (config_.split_k == 1 && share % c_.store_n == 0 && c_.store_n % odd == Config::sector_columns)
            return false;
        return stop(
            Wall::at(Reason::instruction, Config::swizzled_columns(share), c_.store_n,
                     "store_n = {available} must be {needed}, or, with K in one piece, sixteen times an "
                     "odd number that divides tile_n"));
    }

    // Wide slabs mean fewer stores to wait for; but not with a store that nobody waits for, and not at the
    // price of a stage. The ring has as many stages as fit.
    int store_columns() const {
        if (!config_.tma_store) return 0;
        if (c_.store_n > 0) return c_.store_n;
        const int share = config_.share_n(), narrow = Config::swizzled_columns(share),
                  wide = Config::odd_columns(share);
        if (wide <= narrow || config_.deferred_store || config_.split_k > 1) return narrow;
        const auto stages = [&](int columns) {
            Config config = config_;
            config.store_n = columns;
            return whole((f_.shared_limit - config.reserved_bytes() + f_.stage_overhead)
                         / (f_.stage_bytes + f_.stage_overhead));
        };
        return stages(wide) >= stages(narrow) ? wide : narrow;
    }

    // Threads an SM holds; and one m64nN must fit the registers a thread has at entry, whatever setmaxnreg
    // gives later (ptxas C7602): 512 threads leave 128, which holds N = 192 and no more.
    bool entry_stops() {
        if (residency_.wall) return stop(residency_.wall);
        constexpr int beside_one_wgmma = 32;
        const int at_entry = c_.tile.tile_n / 2 + beside_one_wgmma,
                  launch = residency_.registers.tight.launch;
        return launch >= 0 && at_entry > launch
               && stop(Wall::at(
                   Reason::instruction, at_entry, launch,
                   "one wgmma of this tile_n needs {needed} registers a thread at entry, and so many "
                   "threads leave {available}"));
    }

    // A box of an mn-major operand is one swizzle span, 64 elements, wide; a cluster cuts it in whole boxes.
    bool box_stops() {
        const GemmTile& t = c_.tile;
        if (problem_.a_major == Major::mn && t.tile_m % (swizzle_span * t.cluster_n) != 0)
            return stop(
                Wall::at(Reason::alignment, swizzle_span * t.cluster_n, t.tile_m,
                         "with A m-major tile_m = {available} must be a multiple of {needed} elements"));
        return problem_.b_major == Major::mn && t.tile_n % (swizzle_span * t.cluster_m) != 0
               && stop(
                   Wall::at(Reason::alignment, swizzle_span * t.cluster_m, t.tile_n,
                            "with B n-major tile_n = {available} must be a multiple of {needed} elements"));
    }

    bool cluster_stops() {
        const GemmTile& t = c_.tile;
        const int peers = t.cluster_m * t.cluster_n, size = peers * t.split_k;
        if (size == 1) return false;
        if (peers > 2)
            return stop(Wall::at(Reason::cluster, peers, 2,
                                 "a cluster of {needed} CTAs; this kernel takes {available}"));
        if (size > hw_.cluster_ctas)
            return stop(Wall::at(Reason::cluster, size, hw_.cluster_ctas,
                                 "a cluster of {needed} CTAs; the machine takes {available}"));
        if (f_.tiles.rows < t.cluster_m)
            return stop(Wall::at(Reason::cluster, t.cluster_m, double(f_.tiles.rows),
                                 "cluster_m = {needed}, but there is {available} row of tiles"));
        return f_.tiles.columns < t.cluster_n
               && stop(Wall::at(Reason::cluster, t.cluster_n, double(f_.tiles.columns),
                                "cluster_n = {needed}, but there is {available} column of tiles"));
    }

    bool registers_stop() {
        if (f_.registers > f_.registers_limit)
            return stop(
                Wall::at(Reason::registers, f_.registers, f_.registers_limit,
                         "accumulators and the rest are {needed} registers a thread > {available}; take a "
                         "smaller tile or more warpgroups"));
        return defers_ && !f_.deferred_store
               && stop(
                   Wall::at(Reason::registers, config_.deferring_registers(), f_.consumer_registers,
                            "with its store deferred a tile needs {needed} registers a thread > {available}; "
                            "take a smaller tile or more warpgroups"));
    }

    const GemmHardware& hw_;
    const GemmProblem& problem_;
    const TileFigures& figures_;
    const Residency& residency_;
    GemmCandidate& c_;
    bool defers_;  // because the request says so
    Footprint f_{};
    Config config_;
    Wall wall_{};
    double streaming_rate_ = unknown_number;
};

// Takes all candidates of one tile, schedule and residency past the rows, each row once for all it speaks of.
void pass(Passage& passage, const GemmCandidate& c, std::span<const int> parts,
          std::span<const Cluster> clusters, GemmVisitor& visitor) {
    for (int split_k : parts) {
        if (passage.second_row_stops(split_k)) {
            visitor.fall(passage.wall(), c, std::int64_t(clusters.size()));
            continue;
        }
        for (const Cluster& cluster : clusters)
            if (passage.third_row_stops(cluster)) visitor.fall(passage.wall(), c, 1);
            else visitor.stand(c, passage.footprint());
    }
}

// What a request leaves free, dimension by dimension, but for the tiles.
class Space {
  public:
    Space(const GemmHardware& hw, const GemmRequest& request)
        : residencies(choices(request.ctas_per_sm, searched_ctas)),
          counts(choices(request.consumer_warpgroups, searched_warpgroups)),
          cooperative(request.schedule != Schedule::pingpong),
          hw_(hw),
          request_(request),
          splits_(choices(request.split_k, searched_splits)) {
        if (request.cluster_m || request.cluster_n)
            clusters = {{request.cluster_m.value_or(1), request.cluster_n.value_or(1)}};
        pingpongs_ = std::count_if(counts.begin(), counts.end(), [&](int count) { return pingpong(count); });
        slots_.reserve(residencies.size() * splits_.size());
        for (int ctas_per_sm : residencies)
            for (int split_k : splits_) slots_.push_back(most_slots(split_k, ctas_per_sm));
    }

    std::vector<Cluster> clusters{{1, 1}, {2, 1}, {1, 2}};
    std::span<const int> residencies, counts;  // CTAs an SM, warpgroups
    bool cooperative;

    // Two warpgroups take turns in pingpong, on K in one piece; a request for anything else is told so.
    bool pingpong(int count) const {
        return request_.schedule ? request_.schedule == Schedule::pingpong : count == 2;
    }
    bool pingpong_takes(int split_k) const { return split_k == request_.split_k.value_or(1); }

    // Splitting K cannot pay where tiles fill several waves as it is, or K has fewer steps than parts.
    std::span<const int> parts(const TileFigures& tile, int ctas_per_sm) const {
        // With W full waves of tiles the last one costs at most 1 / W of the time: beyond four an exchange
        // costs more.
        constexpr int most_waves = 4;
        std::size_t count = 1;
        if (double(tile.grid.rows) * double(tile.grid.columns) < most_waves * hw_.sms * ctas_per_sm)
            while (count < splits_.size() && splits_[count] <= tile.k_blocks) ++count;
        return splits_.first(count);
    }
    // By parts of K: CTAs at once of whichever cluster has most.
    std::span<const double> slots(std::size_t residency) const {
        return std::span(slots_).subspan(residency * splits_.size(), splits_.size());
    }

    // Of one tile and residency and as many parts of K.
    std::int64_t candidates(int split_k) const {
        const std::int64_t schedules =
            (cooperative ? std::int64_t(counts.size()) : 0) + (pingpong_takes(split_k) ? pingpongs_ : 0);
        return schedules * std::int64_t(clusters.size());
    }
    std::int64_t candidates(const TileFigures& tile) const {
        std::int64_t all = 0;
        for (int ctas_per_sm : residencies)
            for (int split_k : parts(tile, ctas_per_sm)) all += candidates(split_k);
        return all;
    }

  private:
    static constexpr int searched_warpgroups[] = {1, 2, 3}, searched_ctas[] = {1, 2};

    double most_slots(int split_k, int ctas_per_sm) const {
        double most = unknown_number;
        for (const Cluster& c : clusters)
            most = most_known(most, cta_slots(hw_, c.m * c.n * split_k, ctas_per_sm));
        return most;
    }

    const GemmHardware& hw_;
    const GemmRequest& request_;
    std::span<const int> splits_;
    std::int64_t pingpongs_ = 0;  // counts of warpgroups that it takes
    std::vector<double> slots_;   // by residency and parts of K
};

// Whichever of `clusters` takes least, by resource.
Footprint least_footprint(const TileFigures& figures, std::span<const Cluster> clusters) {
    Footprint least;
    least.tiles = figures.grid;
    least.k_steps = figures.k_blocks;
    least.step = figures.step;
    least.step.l2 = clusters.front().l2_cycles;
    least.step.port = clusters.front().port_cycles;
    for (const Cluster& cluster : clusters.subspan(1)) {
        least.step.l2 = std::min(least.step.l2, cluster.l2_cycles);
        least.step.port = std::min(least.step.port, cluster.port_cycles);
    }
    return least;
}

// Bytes of a k-step.
double least_streamed(std::span<const Cluster> clusters) {
    double least = clusters.front().streamed_bytes;
    for (const Cluster& cluster : clusters) least = std::min(least, cluster.streamed_bytes);
    return least;
}

}  // namespace

Sm90GemmFamily::Sm90GemmFamily(const GemmHardware& hw, const GemmProblem&) {
    for (int warpgroups = 1; warpgroups <= most_warpgroups; ++warpgroups)
        for (int ctas = 1; ctas <= most_ctas; ++ctas)
            residencies_[warpgroups - 1][ctas - 1] = Residency(hw, warpgroups, ctas);
}

const Residency& Sm90GemmFamily::residency_of(const GemmHardware& hw, int warpgroups, int ctas_per_sm,
                                              Residency& other) const {
    if (warpgroups <= most_warpgroups && ctas_per_sm <= most_ctas)
        return residencies_[warpgroups - 1][ctas_per_sm - 1];
    return other = Residency(hw, warpgroups, ctas_per_sm);
}

Wall Sm90GemmFamily::examine(const GemmHardware& hw, const GemmProblem& problem, GemmCandidate& c,
                             Footprint& f) const {
    if (const Wall wall = instruction_wall(c)) return wall;
    Residency other;
    const Residency& residency = residency_of(hw, c.warpgroups, c.tile.ctas_per_sm, other);
    const TileFigures figures(hw, problem, c.tile.tile_m, c.tile.tile_n, c.tile.tile_k);
    Cluster cluster{c.tile.cluster_m, c.tile.cluster_n};
    cluster.time(hw, problem, figures);
    c.tile.warp_m = figures.tile.warp_m;
    c.tile.warp_n = figures.tile.warp_n;
    c.tile.store_depth = figures.tile.store_depth;
    Passage passage(hw, problem, figures, residency, c);
    const bool stopped = passage.second_row_stops(c.tile.split_k) || passage.third_row_stops(cluster);
    f = passage.footprint();
    return stopped ? passage.wall() : Wall::none();
}

void Sm90GemmFamily::walk(const GemmHardware& hw, const GemmProblem& problem, const GemmRequest& request,
                          GemmVisitor& visitor) const {
    Space space(hw, request);
    GemmCandidate c{.deferred_store = request.deferred_store, .store_n = request.store_n.value_or(0)};
    GemmTile& t = c.tile;
    Residency other;
    std::vector<int> parts;  // of K, worth a look
    parts.reserve(searched_splits.size());

    const auto visit = [&](const TileFigures& figures, Schedule schedule, std::span<const int> splits) {
        if (splits.empty()) return;
        c.schedule = schedule;
        t.split_k = splits.front();
        t.cluster_m = space.clusters.front().m;
        t.cluster_n = space.clusters.front().n;
        if (const Wall wall = instruction_wall(c))
            return visitor.fall(wall, c, std::int64_t(splits.size() * space.clusters.size()));
        Passage passage(hw, problem, figures, residency_of(hw, c.warpgroups, t.ctas_per_sm, other), c);
        pass(passage, c, splits, space.clusters, visitor);
    };
    for (const TileFigures& figures : tiles_of(hw, problem, request)) {
        for (Cluster& cluster : space.clusters) cluster.time(hw, problem, figures);
        Footprint least = least_footprint(figures, space.clusters);
        if (visitor.beyond(figures.tile, least, space.candidates(figures))) continue;
        const double streamed = least_streamed(space.clusters);
        for (std::size_t residency = 0; residency < space.residencies.size(); ++residency) {
            t = figures.tile;
            t.ctas_per_sm = space.residencies[residency];
            const int stages = most_stages_of(t, request, rooftile::shared_limit(hw, t.ctas_per_sm));
            const auto slots = space.slots(residency);
            const auto tried = space.parts(figures, t.ctas_per_sm);
            parts.clear();
            for (std::size_t i = 0; i < tried.size(); ++i) {
                const int split_k = t.split_k = tried[i];
                least.k_steps = ceil_div(figures.k_blocks, split_k);
                least.exchange = exchange_cycles(hw, t);
                least.streamed = streamed / streaming_rate(hw, figures.grid, split_k);
                least.slots = slots[i];
                if (!visitor.beyond(t, least, stages, space.candidates(split_k))) parts.push_back(split_k);
            }
            const auto whole = std::span<const int>(parts).first(
                !parts.empty() && space.pingpong_takes(parts.front()) ? 1 : 0);
            for (int count : space.counts) {
                c.warpgroups = count;
                if (space.cooperative) visit(figures, Schedule::cooperative, parts);
                if (space.pingpong(count)) visit(figures, Schedule::pingpong, whole);
            }
        }
    }
}

}  // namespace rooftile
