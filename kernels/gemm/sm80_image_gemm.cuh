// C[M x N] = A[M x K] * B[K x N] from Ampere on, where A's rows are places of an image and its columns the taps of a filter, of
// each tap all channels of the pixel that it meets. sm80_gemm has all else; here is how A's tiles are copied.
//
// A block of K is as wide as any other and takes several taps where channels are few. Each piece of 16 bytes, 8 channels of one
// pixel, is a copy of its own; outside the image it is zeros and nothing is read. A thread copies one piece of each of its rows, the
// same channels of the same tap in all of them: a block's tap is found once, and a row adds where its first tap is and has a bit for
// each tap that is inside the image.
#pragma once

#include "kernels/gemm/sm80_gemm.cuh"
#include "kernels/gemm/sm80_image_arguments.hpp"

namespace rooftile {

template <Sm80GemmConfig C>
struct Sm80Gatherer {
    static_assert(C.a_major == Major::k && C.a_copy_bytes == 16 && !C.batched && !C.partial_copies);
    static_assert(C.image_axes == 2 || C.image_axes == 3);
    using Pieces = Sm80Pieces<C, true>;
    using Tile = typename Pieces::Tile;
    static_assert(Pieces::columns == 1, "a thread's pieces are of one tap");
    static constexpr int axes = C.image_axes, rows = Pieces::rows;
    /// Threads of a warp, side by side, that copy other pieces of the same rows: each finds one of as many rows.
    static constexpr int peers = (Pieces::across & -Pieces::across) < 32 ? Pieces::across & -Pieces::across : 32;

    const Sm80ImageArguments& image;
    const unsigned short* from;
    unsigned piece;         // of a row: the next that this thread copies
    int first[rows];        // piece of the image that a row's first tap begins with; outside the image it may be less than 0
    unsigned inside[rows];  // a bit for each tap along each axis whose pixel is in the image

    __device__ explicit Sm80Gatherer(const Sm80ImageArguments& arguments) : image(arguments) {}

    __device__ void begin(const unsigned short* pixels, long long, int row, int extent, int) {
        from = pixels;
        piece = threadIdx.x % Pieces::across;
        const unsigned of_peers = threadIdx.x % peers;
#pragma unroll
        for (int r = 0; r < rows; r += peers) {
            int at;
            unsigned taps;
            find(static_cast<unsigned>(row) + threadIdx.x / Pieces::across + (r + of_peers) * Pieces::down, extent, at, taps);
#pragma unroll
            for (int peer = 0; peer < peers && r + peer < rows; ++peer) {
                const int lane = static_cast<int>(threadIdx.x % 32 - of_peers) + peer;
                first[r + peer] = static_cast<int>(__shfl_sync(0xffffffff, static_cast<unsigned>(at), lane));
                inside[r + peer] = __shfl_sync(0xffffffff, taps, lane);
            }
        }
    }
    /// What a row has; `place` is unsigned: rows of the last tile may pass 2^31. Those beyond the last place have its pixels, and are
    /// not stored.
    __device__ void find(unsigned place, int extent, int& at, unsigned& taps) const {
        int pixel[axes + 1];
        image.image.template first_pixel<axes>(min(place, static_cast<unsigned>(extent - 1)), pixel);
        at = pixel[axes] * image.pitch[Sm80ImageArguments::axes];
        taps = 0;
#pragma unroll
        for (int axis = 0; axis < axes; ++axis) {
            at += pixel[axis] * image.pitch[axis];
            taps |= image.taps_inside(axis, pixel[axis]);
        }
    }

    __device__ void advance(long long) { piece += C.tile_k / C.chunk_elements; }

    /// Begins to copy a block to the tile at `shared`.
    __device__ void copy(unsigned shared, long long) const {
        const ImageArguments& walk = image.image;
        unsigned tap = walk.channel_blocks.quotient(piece);
        int at = static_cast<int>(piece - tap * walk.channel_blocks.divisor);
        unsigned met = piece < image.pieces ? 0 : 1u << Sm80ImageArguments::most_taps;
#pragma unroll
        for (int axis = 0; axis < axes; ++axis) {
            const unsigned next = walk.axes[axis].taps.quotient(tap), along = tap - next * walk.axes[axis].taps.divisor;
            at += static_cast<int>(along) * walk.axes[axis].dilation * image.pitch[axis];
            met |= image.first_bit[axis] << along;
            tap = next;
        }
        const unsigned to = shared + Tile::place(threadIdx.x / Pieces::across, threadIdx.x % Pieces::across);
#pragma unroll
        for (int r = 0; r < rows; ++r)
            ptx::copy_async_filled<16>(Sm80Copier<C, true>::place(to, r, 0),
                                       from + static_cast<long long>(first[r] + at) * C.chunk_elements,
                                       (inside[r] & met) == met ? 16 : 0);
    }
};

template <Sm80GemmConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm80_image_gemm(const __grid_constant__ Sm80GemmArguments args, const __grid_constant__ Sm80ImageArguments image) {
    run_cta<C>(args, NoEpilogue{}, Sm80Gatherer<C>(image));
}

/// The same, and what is stored is an expression of the sums.
template <Sm80GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm80_image_gemm_epilogue(const __grid_constant__ Sm80GemmArguments args, const __grid_constant__ Sm80ImageArguments image,
                             const __grid_constant__ Epilogue epilogue) {
    run_cta<C>(args, epilogue, Sm80Gatherer<C>(image));
}

}  // namespace rooftile
