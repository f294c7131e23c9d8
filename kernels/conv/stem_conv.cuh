// Convolutions of few channels by mma.sync: the stems of networks, whose pixels are no whole 16 bytes.
//
// A CTA copies the rows of pixels that its places' windows meet into shared memory as they are in the image, channels innermost, zeros
// outside; two buffers, so that the next tile's rows come while these are multiplied. There the window of a place along a row of taps is
// contiguous, and a pair of its elements is one word: A's fragments are read from the rows themselves, by pairs, and no copy of a window is
// made. What a word has beside the window is masked out, whatever the weight there: it may be NaN. Weights are B's fragments, written into
// shared memory once a CTA; CTAs go over tiles. A warp multiplies 16 x warp_tiles places by warp_filters filters; fp32 sums leave through a
// caller's expression, the same class as of matrix kernels, eight neighbouring filters of a place to a lane.
#pragma once

#include "kernels/conv/neighbours.cuh"
#include "kernels/conv/stem_conv_config.hpp"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/few_bits.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

template <StemConvConfig C>
constexpr bool stem_obeys_the_hardware() {
    static_assert(C.warp_filters % 32 == 0 && C.cta_filters % C.warp_filters == 0, "four fragments of eight filters make whole 16 B of a lane");
    static_assert(C.tile_x % 8 == 0, "every tile's rows of pixels begin at a multiple of 16 B");
    static_assert(!C.odd_places() || C.apart == 2, "rows of a fragment's half are of one parity");
    static_assert(C.steps() <= C.most_steps, "written out");
    return true;
}

/// Its first place.
template <StemConvConfig C>
struct StemTile {
    unsigned image;
    int y, x;
    __device__ StemTile(const StemConvArguments& p, unsigned tile) {
        const unsigned row = p.tiles_x.quotient(tile);
        image = p.tiles_y.quotient(row);
        y = static_cast<int>(row - image * p.tiles_y.divisor) * C.tile_y, x = static_cast<int>(tile - row * p.tiles_x.divisor) * C.tile_x;
    }
};

template <StemConvConfig C>
__device__ __forceinline__ void copy_pixels(const StemConvArguments& p, const StemTile<C>& at, unsigned to) {
    constexpr unsigned together = C.copy_bytes / 2, copies = C.pitch() / together;
    const int first_row = at.y * C.stride_y - p.padding_y, first = at.x * (C.stride_x * C.channels) - p.lead;
    const unsigned short* image = p.x + static_cast<long long>(at.image) * p.height * p.row_elements;
    [[maybe_unused]] constexpr int at_once = C.copy_bytes > 2 ? 4 : 16;  // by registers each waits for its load
#pragma unroll at_once
    for (unsigned i = threadIdx.x; i < C.pixel_rows() * copies; i += C.threads()) {
        const int row = first_row + static_cast<int>(i / copies), element = first + static_cast<int>(i % copies * together);
        const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(p.height) && static_cast<unsigned>(element) < static_cast<unsigned>(p.row_elements);
        const unsigned short* from = inside ? image + static_cast<long long>(row) * p.row_elements + element : p.x;
        if constexpr (C.copy_bytes > 2) ptx::copy_async_filled<C.copy_bytes>(to + i * C.copy_bytes, from, inside ? C.copy_bytes : 0);
        else ptx::store_element(to + i * C.copy_bytes, inside ? __ldg(from) : 0);
    }
}

/// Zeros where a pair, its half or its filter is none.
template <StemConvConfig C>
__device__ __forceinline__ void write_weights(const StemConvArguments& p, unsigned to) {
    constexpr auto own = C;  // where the configuration is a variable of the host, its functions of a thread's numbers need it here
    constexpr unsigned row_pairs = C.row_pairs(), row_elements = C.row_elements(), pairs = C.steps() * 8;
#pragma unroll 8
    for (unsigned i = threadIdx.x; i < C.cta_filters * pairs; i += C.threads()) {
        const unsigned of_cta = i / pairs, pair = i % pairs, filter = blockIdx.y * C.cta_filters + of_cta;
        const int first = static_cast<int>(pair % row_pairs * 2) - C.front % 2;
        const unsigned short* row = p.w + (static_cast<long long>(filter) * C.taps_y + pair / row_pairs) * row_elements;
        const bool there = pair < C.pairs() && filter < static_cast<unsigned>(p.filters);
        const unsigned low = there && first >= 0 ? __ldg(row + first) : 0, high = there && first + 1 < C.row_elements() ? __ldg(row + first + 1) : 0;
        ptx::store_shared(to + 4 * own.weight_word(of_cta, pair), low | high << 16);
    }
}

/// window: of the lane's first pair of each of its places.
template <StemConvConfig C>
__device__ __forceinline__ void multiply_windows(float (&sums)[C.warp_tiles][C.warp_filters / 8][4], const unsigned (&window)[C.warp_tiles][2], unsigned weights) {
    constexpr auto own = C;
    const int turn = threadIdx.x % 4;
#pragma unroll
    for (int step = 0; step < C.steps(); ++step) {
        unsigned a[C.warp_tiles][4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pair = 8 * step + 4 * half;  // of four lanes the first's; where the next is not beside it there is a step or a mask
            unsigned offset = 4 * own.pair_word(pair), mask = own.pair_mask(pair);
#pragma unroll
            for (int i = 1; i < 4; ++i)
                if (turn >= i) offset += 4 * (own.pair_word(pair + i) - own.pair_word(pair + i - 1) - 1), mask = own.pair_mask(pair + i);
#pragma unroll
            for (int i = 0; i < C.warp_tiles; ++i)
#pragma unroll
                for (int lower = 0; lower < 2; ++lower) {
                    const unsigned at = window[i][lower] + offset;
                    const unsigned word = C.odd_places() && lower == 1 ? ptx::load_shared_half(at) | static_cast<unsigned>(ptx::load_shared_half(at + 2)) << 16
                                                                       : ptx::load_shared_word(at);
                    a[i][2 * half + lower] = word & mask;
                }
        }
#pragma unroll
        for (int two = 0; two < C.warp_filters / 16; ++two) {
            unsigned b[4];
            ptx::load_shared_words(b, weights + (step * (C.cta_filters / 16) + two) * 512);
#pragma unroll
            for (int i = 0; i < C.warp_tiles; ++i) {
                ptx::mma<C.type>(sums[i][2 * two], a[i], b[0], b[1]);
                ptx::mma<C.type>(sums[i][2 * two + 1], a[i], b[2], b[3]);
            }
        }
    }
}

/// Eight neighbouring filters of a place.
template <StemConvConfig C, class Epilogue>
__device__ __forceinline__ void store_filters(float (&sums)[8], const StemConvArguments& p, const Epilogue& epilogue, const auto& once, unsigned row, int filter) {
    finish<false>(sums, epilogue, once, p, static_cast<int>(row), filter);
    unsigned short* to = p.y + static_cast<long long>(row) * p.filters + filter;
    constexpr int bytes = C.store_bytes < 4 ? 4 : C.store_bytes;
#pragma unroll
    for (int first = 0; first < 8; first += bytes / 2) {
        ptx::Words<bytes> words;
#pragma unroll
        for (int i = 0; i < bytes / 4; ++i) words.word[i] = ptx::pack2<C.type>(sums[first + 2 * i], sums[first + 2 * i + 1]);
        if constexpr (C.store_bytes >= 4) {
            if (filter + first < p.filters) ptx::store_words(to + first, words);
        } else {
            if (filter + first < p.filters) to[first] = static_cast<unsigned short>(words.word[0]);
            if (filter + first + 1 < p.filters) to[first + 1] = static_cast<unsigned short>(words.word[0] >> 16);
        }
    }
}

template <StemConvConfig C, class Epilogue>
__device__ __forceinline__ void convolve_stem(const StemConvArguments& p, const Epilogue& epilogue) {
    static_assert(stem_obeys_the_hardware<C>());
    extern __shared__ __align__(16) unsigned char memory[];  // weights, then two buffers of pixels
    constexpr auto own = C;
    const unsigned lane = threadIdx.x % 32;
    const unsigned weights = ptx::shared_address(memory);
    unsigned pixels = weights + C.weight_bytes(), others = pixels + C.pixel_bytes();
    if (blockIdx.x < p.tiles) copy_pixels<C>(p, StemTile<C>(p, blockIdx.x), pixels);
    ptx::copy_async_commit();
    write_weights<C>(p, weights);
    [[maybe_unused]] const auto once = once_of(epilogue);
    constexpr unsigned columns = C.cta_filters / C.warp_filters, parts = (C.places() - 1) / (16 * C.warp_tiles) + 1;
    for (unsigned tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
        if (tile + gridDim.x < p.tiles) copy_pixels<C>(p, StemTile<C>(p, tile + gridDim.x), others);
        ptx::copy_async_commit();
        ptx::copy_async_wait<1>();
        __syncthreads();
        const StemTile<C> at(p, tile);
        for (unsigned part = threadIdx.x / 32; part < parts * columns; part += C.warps) {
            __syncwarp();  // lanes whose places are outside come from elsewhere
            unsigned first_place = part / columns * (16 * C.warp_tiles);
            const unsigned column = part % columns;
            ptx::keep(first_place);  // or what follows from it is kept over all tiles, in registers that sums need
            unsigned window[C.warp_tiles][2];
#pragma unroll
            for (int i = 0; i < 2 * C.warp_tiles; ++i) {
                unsigned place = first_place + i / 2 * 16 + own.place_of(lane / 4, i % 2);
                if (place >= C.places()) place = 0;  // there is none; its sums are not stored
                const unsigned element = place / C.tile_x * C.stride_y * C.pitch() + place % C.tile_x * (C.stride_x * C.channels) + C.front / 2 * 2;
                window[i / 2][i % 2] = pixels + 2 * element + 4 * (lane % 4);
            }
            float sums[C.warp_tiles][C.warp_filters / 8][4] = {};
            multiply_windows<C>(sums, window, weights + column * (C.warp_filters / 16) * 512 + 16 * lane);
#pragma unroll
            for (int i = 0; i < 2 * C.warp_tiles; ++i) {
                const unsigned place = first_place + i / 2 * 16 + own.place_of(lane / 4, i % 2);
                const int y = at.y + static_cast<int>(place / C.tile_x), x = at.x + static_cast<int>(place % C.tile_x);
                if (place >= C.places() || y >= p.places_y || x >= p.places_x) continue;
#pragma unroll
                for (int block = 0; block < C.warp_filters / 32; ++block) {
                    float eight[8];
#pragma unroll
                    for (int e = 0; e < 8; ++e) eight[e] = sums[i / 2][block * 4 + e / 2][i % 2 * 2 + e % 2];
                    store_filters<C>(eight, p, epilogue, once, (at.image * p.places_y + y) * p.places_x + x,
                                     blockIdx.y * C.cta_filters + column * C.warp_filters + block * 32 + lane % 4 * 8);
                }
            }
        }
        __syncthreads();  // the buffer is free
        const unsigned next = others;
        others = pixels, pixels = next;
    }
}

template <StemConvConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm) stem_conv(const __grid_constant__ StemConvArguments p) {
    convolve_stem<C>(p, NoEpilogue{});
}

template <StemConvConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm) stem_conv_epilogue(const __grid_constant__ StemConvArguments p, const __grid_constant__ Epilogue epilogue) {
    convolve_stem<C>(p, epilogue);
}

}  // namespace rooftile
