// Convolutions of few channels a group, directly: depthwise filters, thin groups, images of a few channels. Bytes set their pace, so the
// kernel is about reading each pixel once: no matrix units, no shared memory for pixels.
//
// A thread has a vector of filters, neighbouring channels of the result, at `strip` places along x and `rows` along y. It goes down the rows of
// pixels that these meet; of each row it loads the pixels of its strip, 16 bytes or what a pixel has, and adds each to all sums that have a tap
// on it. One row is on its way while the row before is multiplied. Code is unrolled over a row and the loop over rows is a loop: unrolled as
// well, loads of all rows moved to the front, took what registers there were and more, and 7 x 7 filters took 0.8 s to compile.
// Lanes are on neighbouring channels, so that a warp reads whole lines; what strips share L1 has. Weights are in shared memory, in fp32.
// A caller's expression, the same class as of matrix kernels, takes the sums of a place two by two on their way out.
#pragma once

#include "kernels/conv/direct_conv_config.hpp"
#include "kernels/conv/neighbours.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/sync.cuh"

namespace rooftile {

template <DirectConvConfig C, class Epilogue>
__device__ __forceinline__ void convolve(const DirectConvArguments& p, const Epilogue& epilogue) {
    alignas(16) extern __shared__ float weights[];
    constexpr auto own = C;  // where the configuration is a variable of the host, its functions of a thread's numbers need it here
    const int lane = threadIdx.x % C.lanes, slot = threadIdx.x / C.lanes;
    const int first_filter = blockIdx.y * C.cta_filters(), filter = first_filter + lane * C.vector;
    for (int i = threadIdx.x; i < C.weights(); i += C.threads()) {
        const int of_cta = i % C.cta_filters(), tap_channel = i / C.cta_filters(), channel = tap_channel % C.group_channels,
                  tap = tap_channel / C.group_channels, of = first_filter + of_cta;
        const float weight =
            of < p.filters ? ptx::widen<C.type>(p.w[(static_cast<long long>(of) * C.taps() + tap) * C.group_channels + channel]) : 0;
        weights[tap_channel * C.cta_filters() + own.weight_place(of_cta / C.vector, of_cta % C.vector)] = weight;
    }
    __syncthreads();
    if (filter >= p.filters) return;
    struct alignas(4 * C.together()) Weights {
        float of[C.together()];
    };
    constexpr int channels = C.thread_channels(), words = (channels + 1) / 2;
    const int first_channel = filter / C.group_filters * C.group_channels;
    for (unsigned strip = blockIdx.x * C.slots + slot; strip < p.strips; strip += gridDim.x * C.slots) {
        const unsigned row_of_strips = p.strips_x.quotient(strip), image = p.strips_y.quotient(row_of_strips);
        const int first_x = static_cast<int>(strip - row_of_strips * p.strips_x.divisor) * C.strip,
                  first_y = static_cast<int>(row_of_strips - image * p.strips_y.divisor) * C.rows;
        const unsigned short* pixels = p.x + static_cast<long long>(image) * p.height * p.width * p.channels + first_channel;
        const int from_x = first_x * C.stride_x - p.padding_x, from_y = first_y * C.stride_y - p.padding_y;
        unsigned next[C.pixels_x()][words];
        const auto load_row = [&](int down) {
            const bool row_there = down < C.pixels_y() && own.met_y(down) && static_cast<unsigned>(from_y + down) < static_cast<unsigned>(p.height);
            const unsigned short* row = pixels + (static_cast<long long>(from_y + down) * p.width + from_x) * p.channels;
#pragma unroll
            for (int right = 0; right < C.pixels_x(); ++right) {
                const bool there = row_there && static_cast<unsigned>(from_x + right) < static_cast<unsigned>(p.width);
                if (own.met_x(right)) load_channels<channels, C.load_bytes>(next[right], row + static_cast<long long>(right) * p.channels, there);
            }
        };
        float sums[C.rows][C.strip][C.vector] = {};
        load_row(0);
#pragma unroll 1
        for (int down = 0; down < C.pixels_y(); ++down) {
            float pixel[C.pixels_x()][channels];
#pragma unroll
            for (int right = 0; right < C.pixels_x(); ++right)
#pragma unroll
                for (int i = 0; i < channels; ++i) {
                    if (!own.met_x(right)) continue;
                    pixel[right][i] = i % 2 == 0 ? ptx::widen<C.type>(next[right][i / 2] & 0xffffu) : ptx::widen_upper<C.type>(next[right][i / 2]);
                    ptx::keep(pixel[right][i]);  // else it is made again for every row of places, and the packed row is copied to be kept for that
                }
            load_row(down + 1);
#pragma unroll
            for (int place_y = 0; place_y < C.rows; ++place_y) {
                const int from_first = down - place_y * C.stride_y, tap_y = from_first / C.dilation_y;
                if (from_first < 0 || from_first % C.dilation_y != 0 || tap_y >= C.taps_y) continue;
                const float* of_row = weights + tap_y * C.taps_x * C.group_channels * C.cta_filters();
#pragma unroll
                for (int tap_x = 0; tap_x < C.taps_x; ++tap_x)
#pragma unroll
                    for (int channel = 0; channel < C.group_channels; ++channel)
#pragma unroll
                        for (int first = 0; first < C.vector; first += C.together()) {
                            const float* of_tap = of_row + (tap_x * C.group_channels + channel) * C.cta_filters();
                            const Weights weight = *reinterpret_cast<const Weights*>(of_tap + own.weight_place(lane, first));
#pragma unroll
                            for (int i = first; i < first + C.together(); ++i) {
                                const int of_pixel = i / C.filters_together() * C.group_channels + channel;
#pragma unroll
                                for (int place_x = 0; place_x < C.strip; ++place_x)
                                    sums[place_y][place_x][i] += pixel[place_x * C.stride_x + tap_x * C.dilation_x][of_pixel] * weight.of[i - first];
                            }
                        }
            }
        }
        [[maybe_unused]] const auto once = once_of(epilogue);
        const unsigned first_row = (image * p.places_y + first_y) * p.places_x + first_x;
        unsigned short* to = p.y + static_cast<long long>(first_row) * p.filters + filter;
#pragma unroll
        for (int place_y = 0; place_y < C.rows; ++place_y)
#pragma unroll
            for (int place_x = 0; place_x < C.strip; ++place_x) {
                const bool there = first_y + place_y < p.places_y && first_x + place_x < p.places_x;
                const unsigned on = place_y * static_cast<unsigned>(p.places_x) + place_x;
                if constexpr (!is_plain<Epilogue>()) {
                    if (!there) continue;
                    finish(sums[place_y][place_x], epilogue, once, p, static_cast<int>(first_row + on), filter);
                }
                struct alignas(2 * C.vector) Vector {
                    unsigned short element[C.vector];
                } out;
#pragma unroll
                for (int i = 0; i < C.vector; ++i) out.element[i] = ptx::narrow<C.type>(sums[place_y][place_x][i]);
                if (there) *reinterpret_cast<Vector*>(to + static_cast<unsigned long long>(on) * static_cast<unsigned>(p.filters)) = out;
            }
    }
}

// One CTA an SM is asked for, so that ptxas takes the registers that the code needs. With no such word it looks for the next number of CTAs that fits,
// and spills to get there.
template <DirectConvConfig C>
__global__ void __launch_bounds__(C.threads(), 1) direct_conv(const __grid_constant__ DirectConvArguments p) {
    convolve<C>(p, NoEpilogue{});
}

template <DirectConvConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), 1) direct_conv_epilogue(const __grid_constant__ DirectConvArguments p, const __grid_constant__ Epilogue epilogue) {
    convolve<C>(p, epilogue);
}

}  // namespace rooftile
