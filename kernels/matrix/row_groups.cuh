// Groups of rows: A and C are one behind the other, group g has rows offsets[g] .. offsets[g + 1] of both and a matrix of B of
// its own. The offsets are read on the device, so that a captured launch serves other counts.
//
// Every CTA counts the groups' rows of tiles once: shared memory then says which group a tile is of, by a search of halves
// that stands beside the copies or products of the tile before. A tile at a group's end reads rows of the next group, which
// meet nothing but sums that nobody stores; of a box of C that would reach into the next group the rows before it go out
// by ordinary stores, and what lies wholly behind the end does not.
#pragma once

#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

/// In shared memory, from `at` on. Groups are visited in two rows: those of several rows of cluster tiles, whose products reuse
/// weights, and the rest, which wait for theirs; tiles are taken from both in turns, so that both end together and neither the
/// matrix units nor DRAM waits for the other.
template <auto C>  // a configuration: group_slots, tile_m, cluster_m
struct RowGroups {
    unsigned at;

    /// Of the `i`-th group that is visited: rows of cluster tiles up to its end, and its number.
    __device__ int tiles_up_to(int i) const { return word(i); }
    __device__ int group(int i) const { return ptx::load_shared_half(number(i)); }
    __device__ int first_row(int group) const { return word(C.group_slots + group); }
    /// Of those with several; and how many in 2^32 tiles.
    __device__ int tiles_of_tall() const { return word(2 * C.group_slots + 1); }
    __device__ unsigned share_of_tall() const { return unsigned(word(2 * C.group_slots + 2)); }
    __device__ int tiles() const { return tiles_up_to(C.group_slots - 1); }

    /// By the first warp, before anyone asks. What the offsets say beyond A's rows is not taken.
    template <class Arguments>
    __device__ void count(const Arguments& args) const {
        constexpr int of_a_lane = C.group_slots / 32, cluster_rows = C.cluster_m * C.tile_m;
        const int lane = threadIdx.x % 32, first = lane * of_a_lane;
        int begin[of_a_lane + 1];
#pragma unroll
        for (int i = 0; i <= of_a_lane; ++i)  // all on their way before the first is used
            begin[i] = args.offsets[min(first + i, args.groups)];
#pragma unroll
        for (int i = 0; i <= of_a_lane; ++i) begin[i] = max(0, min(begin[i], args.m));
        const auto tiles_of = [&](int i) { return (max(0, begin[i + 1] - begin[i]) + cluster_rows - 1) / cluster_rows; };
        int tall = 0, tall_tiles = 0, low_tiles = 0;  // of this lane, then of the lanes up to it
#pragma unroll
        for (int i = 0; i < of_a_lane; ++i) {
            const int tiles = tiles_of(i);
            tall += tiles > 1, (tiles > 1 ? tall_tiles : low_tiles) += tiles;
        }
        const int own_tall = tall, own_tall_tiles = tall_tiles, own_low_tiles = low_tiles;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int x = __shfl_up_sync(0xffffffffu, tall, step), y = __shfl_up_sync(0xffffffffu, tall_tiles, step),
                      z = __shfl_up_sync(0xffffffffu, low_tiles, step);
            if (lane >= step) tall += x, tall_tiles += y, low_tiles += z;
        }
        const int all_tall = __shfl_sync(0xffffffffu, tall, 31), all_tall_tiles = __shfl_sync(0xffffffffu, tall_tiles, 31);
        const int all_tiles = all_tall_tiles + __shfl_sync(0xffffffffu, low_tiles, 31);
        tall -= own_tall, tall_tiles -= own_tall_tiles, low_tiles -= own_low_tiles;
#pragma unroll
        for (int i = 0; i < of_a_lane; ++i) {
            const int tiles = tiles_of(i), place = tiles > 1 ? tall : all_tall + first + i - tall;
            const int up_to = tiles > 1 ? tall_tiles += tiles : all_tall_tiles + (low_tiles += tiles);
            tall += tiles > 1;
            set(place, up_to), set(C.group_slots + first + i, begin[i]);
            ptx::store_shared_half(number(place), static_cast<unsigned short>(first + i));
        }
        if (lane != 31) return;
        set(2 * C.group_slots, begin[of_a_lane]);
        set(2 * C.group_slots + 1, all_tall_tiles);
        // Rounded up: of all tiles exactly those. Where all are of one kind there is nothing to mix.
        const unsigned long long whole = 1ull << 32;
        const bool mixed = all_tall_tiles > 0 && all_tall_tiles < all_tiles;
        set(2 * C.group_slots + 2, mixed ? int((whole * all_tall_tiles + all_tiles - 1) / all_tiles) : 0);
    }
    /// Which of `columns` columns of all rows of cluster tiles is the `index`-th to compute.
    __device__ int visited(int index, int columns) const {
        const unsigned share = share_of_tall();
        const int tall = int(__umulhi(unsigned(index), share)), next = int(__umulhi(unsigned(index) + 1, share));
        return share == 0 ? index : next > tall ? tall : tiles_of_tall() * columns + index - tall;
    }
    /// The place among those visited of the group that has row `tile` of all cluster tiles, which are more than that.
    __device__ int place_of(int tile) const {
        int place = 0;
#pragma unroll
        for (int step = C.group_slots / 2; step > 0; step /= 2)
            if (tiles_up_to(place + step - 1) <= tile) place += step;
        return place;
    }

  private:
    __device__ unsigned number(int i) const { return at + 4 * (2 * C.group_slots + 4) + 2 * i; }
    __device__ int word(int i) const { return int(ptx::load_shared_word(at + 4 * i)); }
    __device__ void set(int i, int x) const { ptx::store_shared(at + 4 * i, unsigned(x)); }
};

}  // namespace rooftile
