// Tiles of an image, tap by tap, and of the other operand into the ring by TMA: the load policy of filtered images, in three kinds that
// the operands' majors tell apart.
//
// A k-major: a row of A is a place of the result. Its columns are the filter's taps, one after the other, and of each tap all channels of
// the pixel that the tap meets there; what lies outside the image is zero. The copy engine finds the pixels by itself (im2col), so that
// padding, stride and the ends of rows and images take no instruction. A block of K is some channels of one tap: B's lines have an axis for
// taps, and the last block of a tap ends with zeros where channels are no multiple of it.
//
// And B n-major: filters lie [channels][taps][n], and their taps are met in reverse.
//
// A m-major: the image is B. K goes over places, a column is a channel of one tap, and 64 columns by a block of places are one box.
#pragma once

#include "kernels/matrix/image_arguments.hpp"
#include "kernels/matrix/load_tiled.cuh"
#include "kernels/ptx/tma_image.cuh"

namespace rooftile {

template <MatrixConfig C>
struct ImageLoad {
    static_assert((C.a_major == Major::k || C.b_major == Major::mn) && !C.batched && !C.pairs && !C.block_scales);
    static constexpr unsigned fills = 1;
    static constexpr bool whole_warpgroup = false;
    static constexpr int axes = C.image_axes;
    static constexpr bool image_is_b = C.a_major == Major::mn;
    const TensorMap &map_a, &map_b;
    const MatrixArguments& args;
    const ImageArguments& image;
    const MatrixShared<C>& shared;

    /// The next block of K, and where a tile's places begin: found once a tile, and counted on from block to block. Divisions take longer than
    /// the rest of a block's loads do, and small tiles wait for this one thread. Where the image is B, a tile's first columns, and the next block's
    /// first place.
    ImageBlock<axes> next{image, 0, C.tile_k};
    int pixel[axes + 1] = {};
    [[maybe_unused]] ImagePlace<axes> place{image, 0};

    template <class Scheduler>
    __device__ void begin(const Scheduler& scheduler, const TileOrigin& at_c, int block) {
        // A copy whose first pixel is outside the map's corners ends the kernel. Those of the result's places are inside; a cluster's tile behind
        // the last place, of which nothing is stored, takes the last one's; so does the block beyond the end that a short part of K takes, of
        // channels behind the last: both operands are zeros there, as B is in columns behind the last.
        if constexpr (image_is_b) {
            const unsigned first = static_cast<unsigned>(block) * C.tile_k, all = static_cast<unsigned>(args.k);
            const bool inside = first < all;
            place = {image, inside ? first : all - 1};
            next = {image, static_cast<unsigned>(inside ? at_c.n + b_slice(scheduler) * slice_columns : args.n) / box_columns, box_columns};
        } else {
            next = {image, static_cast<unsigned>(block), C.tile_k};
            image.template first_pixel<axes>(static_cast<unsigned>(min(at_c.m + a_slice(scheduler) * slice_pixels, args.m - 1)), pixel);
        }
    }
    __device__ void advance() {
        if constexpr (image_is_b) place.advance(image);
        else next.advance(image, C.tile_k);
    }

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
    __device__ void load_a(const Scheduler& scheduler, int stage, const TileOrigin& at_c, int block) const {
        const unsigned short ctas = TiledLoad<C>::everyone(scheduler);
        if constexpr (image_is_b) {
            load_operand<C, Major::mn, C.tile_m, C.cluster_n>(map_a, shared.a(stage), shared.ring.full(stage), at_c.m, block * C.tile_k, 0, scheduler.rank,
                                                              args.a_slices, ctas, args.a_policy);
        } else {
            if (a_slice(scheduler) >= args.a_slices) return;
            unsigned short offset[axes];
            next.offset(image, offset);
            ptx::tma_load_image<axes, (C.cluster_n > 1), C.load_policy>(shared.a(stage) + a_slice(scheduler) * slice_pixels * C.swizzle_bytes, map_a,
                                                                        next.channel, pixel, offset, shared.ring.full(stage), ctas, args.a_policy);
        }
    }
    template <class Scheduler>
    __device__ void load_b(const Scheduler& scheduler, int stage, const TileOrigin& at_c, int) const {
        const int slice = b_slice(scheduler), n = at_c.n + slice * slice_columns;
        if constexpr (image_is_b) {
            int first[axes + 1];
            place.pixel(image, first);
            ImageBlock<axes> box = next;
#pragma unroll 1
            for (int i = 0; i < slice_columns / box_columns; ++i, box.advance(image, box_columns)) {  // [64 k][64 n]
                unsigned short offset[axes];
                box.offset(image, offset);
                ptx::tma_load_image<axes, (C.cluster_m > 1), C.load_policy>(shared.b(stage) + (slice * slice_columns / box_columns + i) * C.mn_box_bytes(), map_b,
                                                                            box.channel, first, offset, shared.ring.full(stage),
                                                                            TiledLoad<C>::everyone(scheduler), args.b_policy);
            }
        } else if constexpr (C.b_major == Major::mn) {
            const int tap = static_cast<int>(image.taps() - 1 - next.tap);
#pragma unroll 1
            for (int i = 0; i < slice_columns / box_columns; ++i)  // [64 channels][64 n]
                load_filters(scheduler, stage, (slice * slice_columns / box_columns + i) * C.mn_box_bytes(), n + i * box_columns, tap, next.channel);
        } else {
            if (slice >= args.b_slices) return;
            load_filters(scheduler, stage, slice * slice_columns * C.swizzle_bytes, next.channel, static_cast<int>(next.tap), n);
        }
    }

  private:
    static constexpr int slice_pixels = C.tile_m / C.cluster_n, slice_columns = C.tile_n / C.cluster_m, box_columns = 64;
    template <class Scheduler>
    static __device__ int a_slice(const Scheduler& scheduler) {
        return C.cluster_n == 1 ? 0 : scheduler.rank;
    }
    template <class Scheduler>
    static __device__ int b_slice(const Scheduler& scheduler) {
        return C.cluster_m == 1 ? 0 : scheduler.rank;
    }
    template <class Scheduler>
    __device__ void load_filters(const Scheduler& scheduler, int stage, int at, int x, int tap, int z) const {
        const unsigned to = shared.b(stage) + at, full = shared.ring.full(stage);
        const unsigned short ctas = TiledLoad<C>::everyone(scheduler);
        if constexpr (C.cluster_m > 1 && C.load_policy) ptx::tma_load_3d_multicast(to, map_b, x, tap, z, full, ctas, args.b_policy);
        else if constexpr (C.cluster_m > 1) ptx::tma_load_3d_multicast(to, map_b, x, tap, z, full, ctas);
        else if constexpr (C.load_policy) ptx::tma_load_3d(to, map_b, x, tap, z, full, args.b_policy);
        else ptx::tma_load_3d(to, map_b, x, tap, z, full);
    }
};

}  // namespace rooftile
