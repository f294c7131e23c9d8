// Depthwise convolutions by mma.sync, of stride 1: each channel's filter as banded matrices.
//
// Eight neighbouring places of a row meet, by a row of up to nine taps, 16 pixels: their sums are those 16 pixels times a band of 16 x 8, whose column j has the taps
// from its row j on, and zeros else. So of a channel B is a band for each row of taps, in registers; a row of A, a slot, is 16 pixels beginning at
// any block of eight places, in any row, of any image of the tile. A lane keeps the sums of `rows` places one below the other: a fragment of A is
// loaded once (ldmatrix), and multiplied by the band of each row of taps that is above one of them.
//
// A CTA loads its tile's pixels by 16 B, 8 channels, and writes them into shared memory a plane a channel, two neighbours of a row to a word, zeros
// outside the image. A warp has a channel at a time; its sums take the place of the channel's pixels and leave from there, 8 neighbouring
// channels of a place to a thread: in fp32 through a caller's expression, or, where there is none, rounded and two neighbours of a row to a word.
// A zero of a band times NaN or Inf is NaN, where the filter has no tap. Threads look at what they load: a tile that has one is summed by windows, by FMA,
// instead.
#pragma once

#include "kernels/conv/depthwise_conv_config.hpp"
#include "kernels/conv/neighbours.cuh"
#include "kernels/ptx/arrival.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/few_bits.cuh"
#include "kernels/ptx/matrix_store.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/stream.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

template <DepthwiseConvConfig C>
constexpr bool depthwise_obeys_the_hardware() {
    static_assert(C.taps_x <= C.most_taps, "a band is 16 deep");
    static_assert(C.pitch >= C.cells() && C.channels % 8 == 0, "a block's pixels are two cells, and a pixel's channels whole 16 B");
    return true;
}

/// Its first place and filter; neighbours in the grid are of the same pixels.
template <DepthwiseConvConfig C>
struct DepthwiseTile {
    int image, y, x, filter;
    __device__ DepthwiseTile(const DepthwiseConvArguments& p, unsigned tile) {
        const unsigned across = p.columns.quotient(tile), down = p.tiles_x.quotient(across), of_images = p.tiles_y.quotient(down);
        filter = static_cast<int>(tile - across * p.columns.divisor) * C.channels, x = static_cast<int>(across - down * p.tiles_x.divisor) * C.tile_x();
        y = static_cast<int>(down - of_images * p.tiles_y.divisor) * C.tile_y(), image = static_cast<int>(of_images) * C.images;
    }
};

/// Returns whether all are finite, of this thread.
template <DepthwiseConvConfig C>
__device__ __forceinline__ bool load_planes(const DepthwiseConvArguments& p, const DepthwiseTile<C>& at, unsigned planes) {
    constexpr auto own = C;  // where the configuration is a variable of the host, its functions of a thread's numbers need it here
    constexpr LinesOfVectors s = C.pixels();
    constexpr int items = s.items_at_once(), at_once = s.at_once(C.most_loads), vectors = C.vectors();
    const int lane = threadIdx.x % 32, warp = ptx::warp_uniform(static_cast<int>(threadIdx.x / 32)), line_of_lane = s.together() > 1 ? lane / s.width : 0;
    unsigned zeros = 0;
#pragma unroll 1
    for (int first = 0; first < s.items(); first += items) {
        int offset[items];
        unsigned to[items];
        bool there[items], inside[items][2];
#pragma unroll
        for (int i = 0; i < items; ++i) {
            const int column = (s.together() > 1 ? lane % s.width : lane) + 32 * (first + i), pair = column / vectors, channel = column % vectors * 8, x = at.x - p.padding_x + 2 * pair;
            there[i] = column < s.width && line_of_lane < s.together() && at.filter + channel < p.filters;
            inside[i][0] = there[i] && static_cast<unsigned>(x) < static_cast<unsigned>(p.width), inside[i][1] = there[i] && static_cast<unsigned>(x + 1) < static_cast<unsigned>(p.width);
            offset[i] = x * p.filters + at.filter + channel;
            to[i] = planes + own.plane(channel) + 4 * pair;
        }
#pragma unroll 1
        for (int group = warp; group < s.groups(); group += at_once * C.warps) {
            unsigned pixel[at_once][items][2][4];
#pragma unroll
            for (int turn = 0; turn < at_once; ++turn) {
                const int line = (group + turn * C.warps) * s.together() + line_of_lane, image = line / C.pixel_rows(), y = at.y - p.padding_y + line - image * C.pixel_rows(),
                          of = at.image + image;
                const bool line_there = line < s.lines && of < p.images && static_cast<unsigned>(y) < static_cast<unsigned>(p.height);
                const unsigned short* from = p.x + (static_cast<long long>(of) * p.height + y) * p.width * p.filters;
#pragma unroll
                for (int i = 0; i < items; ++i)
#pragma unroll
                    for (int half = 0; half < 2; ++half) load_channels<8, 16>(pixel[turn][i][half], from + offset[i] + half * p.filters, line_there && inside[i][half]);
            }
#pragma unroll
            for (int turn = 0; turn < at_once; ++turn) {
                const int line = (group + turn * C.warps) * s.together() + line_of_lane;
#pragma unroll
                for (int i = 0; i < items; ++i) {
                    if (line >= s.lines || !there[i]) continue;
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const unsigned left = pixel[turn][i][0][e], right = pixel[turn][i][1][e], word = to[i] + 16 * line * C.pitch + 2 * e * C.plane_bytes();
                        zeros = ptx::fma2<C.type>(left, 0, ptx::fma2<C.type>(right, 0, zeros));
                        ptx::store_shared(word, __byte_perm(left, right, 0x5410));
                        ptx::store_shared(word + C.plane_bytes(), __byte_perm(left, right, 0x7632));
                    }
                }
            }
        }
    }
    return (zeros & 0x7fff7fff) == 0;
}

/// B's fragments of a filter: element (k, j) of a row's band is tap k - j. Of up to seven taps a lane has some in one half of K alone.
template <DepthwiseConvConfig C>
__device__ __forceinline__ void load_bands(unsigned (&bands)[C.taps_y][2], const unsigned short* filter) {
    constexpr bool in_one_half = C.taps_x < 8;
    const int first = static_cast<int>(threadIdx.x % 4 * 2) - static_cast<int>(threadIdx.x % 32 / 4);
    const bool upper = in_one_half && first < -1;
#pragma unroll
    for (int half = 0; half < (in_one_half ? 1 : 2); ++half) {
        const int tap = first + 8 * (upper ? 1 : half);
        long long address = reinterpret_cast<long long>(filter + tap);
        ptx::keep(address);  // or each load has an address of its own
        const auto* at = reinterpret_cast<const unsigned short*>(address);
#pragma unroll
        for (int row = 0; row < C.taps_y; ++row) {
            const unsigned low = static_cast<unsigned>(tap) < C.taps_x ? __ldg(at + row * C.taps_x) : 0, high = static_cast<unsigned>(tap + 1) < C.taps_x ? __ldg(at + row * C.taps_x + 1) : 0;
            bands[row][half] = low | high << 16;
        }
    }
    if constexpr (in_one_half)
#pragma unroll
        for (int row = 0; row < C.taps_y; ++row) {
            const unsigned band = bands[row][0];
            bands[row][0] = upper ? 0 : band, bands[row][1] = upper ? band : 0;
        }
}

/// The sums of a channel, from its plane and into it.
template <DepthwiseConvConfig C>
__device__ __forceinline__ void multiply_plane(unsigned plane, const unsigned (&bands)[C.taps_y][2]) {
    constexpr auto own = C;
    unsigned lane = threadIdx.x % 32;
    if (C.parts() > 1) ptx::keep(lane);  // or addresses are kept over all channels, in registers that sums need
    unsigned pixels[C.parts()];
#pragma unroll
    for (int part = 0; part < C.parts(); ++part) {
        const unsigned slot = 16 * part + lane % 16;
        pixels[part] = plane + 16 * (own.first_cell(slot < C.slots() ? slot : C.slots() - 1) + lane / 16);  // there are no more: their sums are not stored
    }
    float sums[C.parts()][C.rows][4] = {};
#pragma unroll
    for (int down = 0; down < C.rows + C.taps_y - 1; ++down) {
#pragma unroll
        for (int part = 0; part < C.parts(); ++part) {
            unsigned a[4];
            ptx::load_matrix_x4(a, pixels[part] + 16 * down * C.pitch);
#pragma unroll
            for (int row = 0; row < C.rows; ++row)
                if (down - row >= 0 && down - row < C.taps_y) ptx::mma<C.type>(sums[part][row], a, bands[down - row][0], bands[down - row][1]);
        }
    }
    __syncwarp();  // all of its pixels are in fragments
#pragma unroll
    for (int i = 0; i < 2 * C.parts(); ++i) {
        const unsigned slot = 8 * i + lane / 4;
        if (slot >= C.slots()) break;
        const unsigned to = plane + C.sum_bytes * (own.first_sum(slot) + lane % 4 * 2);
#pragma unroll
        for (int row = 0; row < C.rows; ++row) {
            const float* two = &sums[i / 2][row][i % 2 * 2];
            if constexpr (C.sum_bytes == 2) ptx::store_shared(to + 2 * row * C.tile_x(), ptx::pack2<C.type>(two[0], two[1]));
            else ptx::store_shared_2(to + 4 * row * C.tile_x(), two);
        }
    }
}

/// Of eight channels, from the first one's plane of pixels: only taps meet pixels.
template <DepthwiseConvConfig C>
__device__ __forceinline__ void sum_windows(float (&sums)[8], unsigned pixels, const unsigned short* filters) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = 0;
#pragma unroll 1
    for (int tap = 0; tap < C.taps_y * C.taps_x; ++tap)
#pragma unroll
        for (int i = 0; i < 8; ++i)
            sums[i] += ptx::widen<C.type>(ptx::load_shared_half(pixels + i * C.plane_bytes() + 2 * (tap / C.taps_x * (8 * C.pitch) + tap % C.taps_x)))
                       * ptx::widen<C.type>(__ldg(filters + i * (C.taps_y * C.taps_x) + tap));
}

template <DepthwiseConvConfig C, class Epilogue>
__device__ __forceinline__ void convolve_depthwise(const DepthwiseConvArguments& p, const Epilogue& epilogue) {
    static_assert(depthwise_obeys_the_hardware<C>() && C.sum_bytes == (is_plain<Epilogue>() ? 2 : 4));
    extern __shared__ __align__(16) unsigned char memory[];  // planes
    constexpr auto own = C;
    constexpr int taps = C.taps_y * C.taps_x;
    const unsigned planes = ptx::shared_address(memory);
    const DepthwiseTile<C> at(p, blockIdx.x);
    const int channels = min(C.channels, p.filters - at.filter);
    int channel = ptx::warp_uniform(static_cast<int>(threadIdx.x / 32));
    const unsigned short* filter = p.w + static_cast<long long>(at.filter) * taps;
    unsigned bands[C.taps_y][2];
    load_bands<C>(bands, filter + min(channel, channels - 1) * taps);  // while pixels come
    const bool by_windows = ptx::named_barrier_any(0, C.threads(), !load_planes<C>(p, at, planes));
    if (!by_windows) {
#pragma unroll 1
        for (; channel < channels; channel += C.warps) {
            multiply_plane<C>(planes + own.plane(channel), bands);
            if (channel + C.warps < channels) load_bands<C>(bands, filter + (channel + C.warps) * taps);
        }
        __syncthreads();
    }
    [[maybe_unused]] const auto once = once_of(epilogue);
    constexpr LinesOfVectors s = C.places();
    constexpr int items = s.items_at_once(), vectors = C.vectors(), neighbours = C.neighbours();
    const int lane = threadIdx.x % 32, line_of_lane = s.together() > 1 ? lane / s.width : 0;
#pragma unroll 1
    for (int group = ptx::warp_uniform(static_cast<int>(threadIdx.x / 32)); group < s.groups(); group += C.warps) {
        const int line = group * s.together() + line_of_lane, of_image = line / C.tile_y(), image = at.image + of_image, y = at.y + line - of_image * C.tile_y();
        const unsigned row = (static_cast<unsigned>(image) * p.places_y + y) * p.places_x;
        const bool line_there = line_of_lane < s.together() && line < s.lines && image < p.images && y < p.places_y;
#pragma unroll 1
        for (int first = 0; first < s.items(); first += items) {
            ptx::Words<16> words[items][neighbours];
#pragma unroll
            for (int store = 0; store < 2; ++store)  // of all after the loads of all
#pragma unroll
                for (int i = 0; i < items; ++i) {
                    const int column = (s.together() > 1 ? lane % s.width : lane) + 32 * (first + i), x = column / vectors * neighbours, of = column % vectors * 8;
                    if (!line_there || column >= s.width || at.x + x >= p.places_x || of >= channels) continue;
                    const unsigned to = row + at.x + x, plane = planes + own.plane(of), sums_at = plane + C.sum_bytes * (line * C.tile_x() + x);
                    unsigned both[8];
                    if (C.sum_bytes == 2 && !by_windows && store == 0)
#pragma unroll
                        for (int e = 0; e < 8; ++e) both[e] = ptx::load_shared_word(sums_at + e * C.plane_bytes());
#pragma unroll
                    for (int next = 0; next < neighbours; ++next) {
                        if (store == 1) {
                            if (at.x + x + next < p.places_x) ptx::store_words(p.y + static_cast<long long>(to + next) * p.filters + at.filter + of, words[i][next]);
                            continue;
                        }
                        if (C.sum_bytes == 2 && !by_windows) {
#pragma unroll
                            for (int e = 0; e < 4; ++e)
                                words[i][next].word[e] = __byte_perm(both[2 * e], both[2 * e + 1], next == 0 ? 0x5410 : 0x7632);
                            continue;
                        }
                        float sums[8];
                        if (by_windows) sum_windows<C>(sums, plane + 2 * ((line + of_image * (C.taps_y - 1)) * (8 * C.pitch) + x + next), filter + of * taps);
                        else
#pragma unroll
                            for (int e = 0; e < 8; ++e) sums[e] = ptx::load_shared_float(sums_at + e * C.plane_bytes());
                        finish(sums, epilogue, once, p, static_cast<int>(to), at.filter + of);
#pragma unroll
                        for (int e = 0; e < 4; ++e) words[i][next].word[e] = ptx::pack2<C.type>(sums[2 * e], sums[2 * e + 1]);
                    }
                }
        }
    }
}

template <DepthwiseConvConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm) depthwise_conv(const __grid_constant__ DepthwiseConvArguments p) {
    convolve_depthwise<C>(p, NoEpilogue{});
}

template <DepthwiseConvConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm) depthwise_conv_epilogue(const __grid_constant__ DepthwiseConvArguments p, const __grid_constant__ Epilogue epilogue) {
    convolve_depthwise<C>(p, epilogue);
}

}  // namespace rooftile
