// Tiles of A from an image, tap by tap, and tiles of B into the ring by TMA: the load policy of filtered images.
//
// A row of A is a place of the result. Its columns are the filter's taps, one after the other, and of each tap all channels of the pixel
// that the tap meets there; what lies outside the image is zero. The copy engine finds the pixels by itself (im2col), so that padding,
// stride and the ends of rows and images take no instruction. A block of K is some channels of one tap: B's lines have an axis for taps,
// and the last block of a tap ends with zeros where channels are no multiple of it.
#pragma once

#include "kernels/matrix/image_arguments.hpp"
#include "kernels/matrix/load_tiled.cuh"
#include "kernels/ptx/tma_image.cuh"

namespace rooftile {

template <MatrixConfig C>
struct ImageLoad {
    static_assert(C.a_major == Major::k && C.b_major == Major::k && !C.batched && !C.pairs && !C.block_scales);
    static constexpr unsigned fills = 1;
    static constexpr bool whole_warpgroup = false;
    static constexpr int axes = C.image_axes;
    const TensorMap &map_a, &map_b;
    const MatrixArguments& args;
    const ImageArguments& image;
    const MatrixShared<C>& shared;

    /// The next block of K, and where a tile's places begin: found once a tile, and counted on from block to block. Divisions take longer than
    /// the rest of a block's loads do, and small tiles wait for this one thread.
    ImageBlock<axes> next{image, 0, C.tile_k};
    int pixel[axes + 1] = {};

    template <class Scheduler>
    __device__ void begin(const Scheduler& scheduler, const TileOrigin& at_c, int block) {
        next = {image, static_cast<unsigned>(block), C.tile_k};
        // A copy whose first pixel is outside the map's corners ends the kernel. Those of the result's places are inside; a cluster's tile behind
        // the last place, of which nothing is stored, takes the last one's.
        image.template first_pixel<axes>(static_cast<unsigned>(min(at_c.m + slice(scheduler) * slice_pixels, args.m - 1)), pixel);
    }
    __device__ void advance() { next.advance(image, C.tile_k); }

    template <class Scheduler>
    __device__ void operator()(const Scheduler& scheduler, int stage, const TileOrigin& at_c, int block) const {
        if constexpr (C.ablated == Ablation::loads) {  // the producer's arrival alone completes the phase
            ptx::mbarrier_arrive(shared.ring.full(stage));
            return;
        }
        expect(stage);
        load_a(scheduler, stage, at_c, block);
        load_b(scheduler, stage, at_c, block);
    }
    __device__ void expect(int stage) const { shared.ring.expect(stage, args.stage_bytes); }
    template <class Scheduler>
    __device__ void load_a(const Scheduler& scheduler, int stage, const TileOrigin&, int) const {
        if (slice(scheduler) >= args.a_slices) return;
        unsigned short offset[axes];
        next.offset(image, offset);
        ptx::tma_load_image<axes, (C.cluster_n > 1), C.load_policy>(shared.a(stage) + slice(scheduler) * slice_pixels * C.swizzle_bytes, map_a, next.channel,
                                                                    pixel, offset, shared.ring.full(stage),
                                                                    TiledLoad<C>::everyone(scheduler), args.a_policy);
    }
    template <class Scheduler>
    __device__ void load_b(const Scheduler& scheduler, int stage, const TileOrigin& at_c, int) const {
        constexpr int slice_extent = C.tile_n / C.cluster_m;
        const int slice = C.cluster_m == 1 ? 0 : scheduler.rank;
        if (slice >= args.b_slices) return;
        const unsigned to = shared.b(stage) + slice * slice_extent * C.swizzle_bytes, full = shared.ring.full(stage);
        const int tap = static_cast<int>(next.tap), n = at_c.n + slice * slice_extent;
        const unsigned short ctas = TiledLoad<C>::everyone(scheduler);
        if constexpr (C.cluster_m > 1 && C.load_policy) ptx::tma_load_3d_multicast(to, map_b, next.channel, tap, n, full, ctas, args.b_policy);
        else if constexpr (C.cluster_m > 1) ptx::tma_load_3d_multicast(to, map_b, next.channel, tap, n, full, ctas);
        else if constexpr (C.load_policy) ptx::tma_load_3d(to, map_b, next.channel, tap, n, full, args.b_policy);
        else ptx::tma_load_3d(to, map_b, next.channel, tap, n, full);
    }

  private:
    static constexpr int slice_pixels = C.tile_m / C.cluster_n;
    template <class Scheduler>
    static __device__ int slice(const Scheduler& scheduler) {
        return C.cluster_n == 1 ? 0 : scheduler.rank;
    }
};

}  // namespace rooftile
