// Which tiles a team of CTAs computes, one after the other, where the grid stays for all of them. A team is the
// `cluster` CTAs that work on one tile together; tiles are numbered, and a kernel's own order gives a number its
// place in the result.
#pragma once

#include "kernels/pipeline/ring.cuh"
#include "kernels/ptx/store_cluster_async.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// `rows` x `columns` tiles in fixed turns: of T teams team t takes tiles t, t + T, .. Every role advances its own copy.
template <int cluster>
struct StaticTileScheduler {
    int rows, columns;
    int index = static_cast<int>(blockIdx.x / cluster);
    int step = static_cast<int>(gridDim.x / cluster);

    __device__ bool more() const { return index < rows * columns; }
    __device__ bool more_after_this() const { return index + step < rows * columns; }
    __device__ void advance() { index += step; }
};

/// The same where tiles of unlike kinds follow each other in a fixed pattern: a team's place in its turn moves on from turn to turn, so
/// that no team meets one kind alone.
template <int cluster>
struct RotatingTileScheduler {
    int rows, columns;
    int step = static_cast<int>(gridDim.x / cluster);
    int first = 0;  // of this turn's tiles
    int place = static_cast<int>(blockIdx.x / cluster);
    int index = place;

    __device__ bool more() const { return index < rows * columns; }
    __device__ bool more_after_this() const { return first + step + next_place() < rows * columns; }
    __device__ void advance() {
        first += step;
        place = next_place();
        index = first + place;
    }

  private:
    /// Five eighths of a turn further on: near the golden ratio, whose multiples fill a circle most evenly; odd.
    __device__ int next_place() const {
        const int next = place + (step * 5 / 8 | 1);
        return next < step ? next : next - step;
    }
};

/// Where the roles of a CTA hear which tile follows: an 8-byte barrier and a number for each of the next `ahead`, from `at` on in shared
/// memory. Nobody gives a place back: whoever tells must not come `ahead` tiles before whoever hears.
template <int ahead>
struct TileSchedulerPipeline {
    static constexpr int bytes() { return 16 * ahead; }
    unsigned at;
    __device__ unsigned full(int place) const { return at + 8 * place; }
    __device__ unsigned number(int place) const { return at + 8 * ahead + 4 * place; }
    /// Of one thread, before any CTA of the cluster goes on.
    __device__ void init() const {
        for (int place = 0; place < ahead; ++place) ptx::mbarrier_init(full(place), 1);
    }
};

/// `rows` x `columns` tiles from a counter, as teams come for them: what begins at the same time are neighbours in the kernel's order,
/// whatever the tiles before took. Of the one thread of each CTA that brings tiles; it tells the others, which have a TileSchedulerConsumer. A
/// team begins with the tile of its own number; which one follows the first CTA learns from `counter`, 0 before the launch and after it.
template <int cluster, int ahead>
struct TileSchedulerProducer {
    int rows, columns;
    TileSchedulerPipeline<ahead> told{0};
    unsigned* counter = nullptr;
    unsigned index = blockIdx.x / cluster;
    unsigned coming = 0;
    RingPosition<ahead> at{};

    __device__ unsigned tiles() const { return static_cast<unsigned>(rows * columns); }
    __device__ bool more() const { return index < tiles(); }
    /// Once a tile, before advance(): the answer is on its way while copies are started.
    __device__ void ask() {
        // As many questions as there are tiles: the last one makes the counter 0 again.
        if (first()) coming = gridDim.x / cluster + atomicInc(counter, tiles() - 1);
    }
    __device__ void advance() {
        const unsigned full = told.full(at.stage), number = told.number(at.stage);
        if constexpr (cluster == 1) {
            index = coming;
            ptx::store_shared(number, index);
            ptx::mbarrier_arrive(full);
        } else {
            if (first())
                for (unsigned rank = 0; rank < cluster; ++rank)
                    ptx::store_cluster_async(ptx::map_to_rank(number, rank), coming, ptx::map_to_rank(full, rank));
            ptx::mbarrier_arrive_expect(full, sizeof(unsigned));
            ptx::mbarrier_wait(full, at.parity);
            index = ptx::load_shared(number);
        }
        at.advance();
    }

  private:
    __device__ static bool first() {
        if constexpr (cluster == 1) return true;
        else return ptx::cluster_rank() == 0;
    }
};

/// The same tiles, of a role that hears of them.
template <int cluster, int ahead>
struct TileSchedulerConsumer {
    int rows, columns;
    TileSchedulerPipeline<ahead> told{0};
    unsigned index = blockIdx.x / cluster;
    RingPosition<ahead> at{};

    __device__ bool more() const { return is_tile(index); }
    __device__ bool more_after_this() const { return is_tile(next()); }
    /// Behind the last tile it stays there.
    __device__ void advance() {
        if (!more()) return;
        index = next();
        at.advance();
    }

  private:
    __device__ bool is_tile(unsigned number) const { return number < static_cast<unsigned>(rows * columns); }
    __device__ unsigned next() const {
        ptx::mbarrier_wait(told.full(at.stage), at.parity);
        return ptx::load_shared(told.number(at.stage));
    }
};

/// Tiles 0 to `tiles` - 1 from a counter, every one of them, the first too: a CTA that does not run yet has none, so that a tile which
/// waits for tiles of smaller numbers waits for running CTAs alone, whatever else the GPU is doing. Of the one thread of each CTA that
/// brings tiles; it tells the others, which have a TileQueueConsumer.
template <int ahead>
struct TileQueueProducer {
    unsigned tiles;
    TileSchedulerPipeline<ahead> told;
    unsigned* counter;  ///< 0 before the launch and after it
    unsigned index = 0, coming = 0;
    RingPosition<ahead> at{};

    __device__ bool more() const { return index < tiles; }
    /// Once a tile, and once before the first; the answer is on its way while copies are started. As many questions as there are tiles and
    /// CTAs: the last one makes the counter 0 again.
    __device__ void ask() { coming = atomicInc(counter, tiles + gridDim.x - 1); }
    __device__ void advance() {
        index = coming;
        ptx::store_shared(told.number(at.stage), index);
        ptx::mbarrier_arrive(told.full(at.stage));
        at.advance();
    }
};

/// The same tiles, of a role that hears of them: begin() before anything else. Each place is read before the tile of it begins and no more
/// behind it: by then the teller may have told another one there.
template <int ahead>
struct TileQueueConsumer {
    unsigned tiles;
    TileSchedulerPipeline<ahead> told;
    unsigned index = 0;
    RingPosition<ahead> at{};  // of the next tile's place

    __device__ void begin() {
        index = heard();
        at.advance();
    }
    __device__ bool more() const { return index < tiles; }
    __device__ bool more_after_this() const { return heard() < tiles; }
    /// Behind the last tile it stays there.
    __device__ void advance() {
        if (more()) begin();
    }

  private:
    __device__ unsigned heard() const {
        ptx::mbarrier_wait(told.full(at.stage), at.parity);
        return ptx::load_shared(told.number(at.stage));
    }
};

/// Stands for the tile behind the last one. No constexpr: that would be a variable of every module.
enum : unsigned { no_tile = 0xffffffffu };

/// Where the producers of a team hear of its next tile.
template <int cluster, int ahead>
struct ScheduleSlots {
    unsigned long long told[ahead];
    unsigned tile[ahead];
};
template <int ahead>
struct ScheduleSlots<1, ahead> {};

/// Tiles from a counter, as teams come for them. SMs that do the same are not equally fast: in fixed turns the
/// slowest of 131 ended 4 % behind their mean (docs/facts.md 95).
///
/// Of the one thread of each CTA that brings tiles. A team begins with the tile of its own number; which one
/// follows the first CTA learns from `counter`, 0 before the launch and after it, and tells the others. Without a
/// counter turns are fixed. `ahead`: tiles that the first CTA may tell of while another has not yet heard of the
/// first of them.
template <int cluster, int ahead>
class DynamicTileScheduler {
  public:
    using Places = ScheduleSlots<cluster, ahead>;

    /// Of thread 0, before any CTA of the cluster goes on.
    __device__ static void init(Places& places) {
        if constexpr (cluster > 1) told(places).init_full(1);
    }
    __device__ DynamicTileScheduler(Places& places, unsigned* counter, unsigned tiles)
        : places_(places), counter_(counter), tiles_(tiles), index_(known(blockIdx.x / cluster)) {}

    __device__ unsigned index() const { return index_; }
    __device__ bool more() const { return index_ != no_tile; }
    /// Asks for the tile behind this one; the answer is on its way while this one's copies are started.
    __device__ void ask() {
        const unsigned teams = gridDim.x / cluster;
        if (!first()) return;
        // As many questions as there are tiles: the last one makes the counter 0 again.
        coming_ = counter_ ? teams + atomicInc(counter_, tiles_ - 1) : index_ + teams;
    }
    /// When all copies of the tile are started. Telling the others a tile earlier was no sooner.
    __device__ void advance() {
        if constexpr (cluster == 1) {
            index_ = known(coming_);
        } else {
            const unsigned full = told(places_).full(at_.stage);
            if (first()) tell_all(ptx::shared_address(&places_.tile[at_.stage]), full);
            told(places_).expect(at_.stage, sizeof(unsigned));
            told(places_).wait(at_);
            index_ = *const_cast<volatile unsigned*>(&places_.tile[at_.stage]);
            at_.advance();
        }
    }

  private:
    __device__ static Ring<ahead> told(Places& places) { return {ptx::shared_address(places.told)}; }
    __device__ unsigned known(unsigned tile) const { return tile < tiles_ ? tile : no_tile; }
    __device__ static bool first() {
        if constexpr (cluster == 1) return true;
        else return ptx::cluster_rank() == 0;
    }
    __device__ void tell_all(unsigned place, unsigned full) const {
        for (unsigned rank = 0; rank < cluster; ++rank)
            ptx::store_cluster_async(ptx::map_to_rank(place, rank), known(coming_),
                                     ptx::map_to_rank(full, rank));
    }

    Places& places_;
    unsigned* counter_;
    unsigned tiles_, index_, coming_ = no_tile;
    RingPosition<ahead> at_;
};

}  // namespace rooftile
