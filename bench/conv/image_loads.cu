// How long does the copy engine take for a box of an image (im2col), by its pixels, by how wide the image is, by strides, by how much of it lies outside,
// by axes, and by how many SMs load? Nanoseconds a box of 64 channels of 2 B, of an SM; all hits in L2. In each row of the table one thread a CTA keeps
// `stages` boxes in flight, tap after tap of a filter whose places are the image's own, as a product's producer does.
//
// nvcc -std=c++20 -O2 --expt-relaxed-constexpr -gencode arch=compute_90a,code=sm_90a -I. -o image_loads bench/conv/image_loads.cu && ./image_loads
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels/matrix/image_arguments.hpp"
#include "kernels/pipeline/ring.cuh"
#include "kernels/ptx/sync.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/tma_image.cuh"

using namespace rooftile;

constexpr int most_stages = 16;

struct Loads {
    int boxes, stages, box_bytes, box_pixels;
    unsigned blocks, rows;  ///< of K, and places of all images
    ImageArguments image;
};

/// `peers`: CTAs of a cluster, each of which loads its part of a box for all of them; with `weights` of a box of as many rows of a matrix, the same
/// ones for all SMs, which stands behind each box of pixels.
template <int axes, int peers, int weights>
__global__ void __launch_bounds__(64) load_boxes(const __grid_constant__ TensorMap map, const __grid_constant__ TensorMap map_b, const __grid_constant__ Loads p) {
    constexpr int a_peers = weights > 0 ? 1 : peers, b_bytes = weights * 128;
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ unsigned long long barriers[2 * most_stages];
    const unsigned stages = (ptx::shared_address(memory) + 1023u) & ~1023u;
    const Ring<most_stages> ring{ptx::shared_address(barriers)};
    if (threadIdx.x == 0) ring.init(1, peers), ptx::fence_mbarrier_init();
    if (peers > 1) ptx::cluster_sync();
    else __syncthreads();
    if (threadIdx.x == 32) {  // gives a stage back, to every CTA that loads into it, as soon as it is full
        RingPosition<most_stages> at;
        for (int i = 0; i < p.boxes; ++i, at.advance(p.stages)) {
            ptx::mbarrier_wait(ring.full(at.stage), at.parity);
            for (unsigned peer = 0; peer < peers; ++peer)
                if constexpr (peers > 1) ptx::mbarrier_arrive_remote(ring.empty(at.stage), peer);
                else ptx::mbarrier_arrive(ring.empty(at.stage));
        }
    }
    if (threadIdx.x == 0) {
        RingPosition<most_stages> at;
        const unsigned rank = blockIdx.x % peers, a_rank = blockIdx.x % a_peers, part = p.box_pixels / a_peers;
        unsigned place = blockIdx.x / a_peers * p.box_pixels % p.rows;
        ImageBlock<axes> block(p.image, 0, 64);
        int pixel[axes + 1];
        p.image.first_pixel<axes>(place + a_rank * part, pixel);
        unsigned left = p.blocks;
        for (int i = 0; i < p.boxes; ++i, at.advance(p.stages)) {
            ptx::mbarrier_wait(ring.empty(at.stage), at.parity ^ 1);
            ring.expect(at.stage, p.box_bytes + b_bytes);
            unsigned short offset[axes];
            block.offset(p.image, offset);
            const unsigned to = stages + at.stage * (p.box_bytes + b_bytes);
            ptx::tma_load_image<axes, (a_peers > 1), false>(to + a_rank * part * 128, map, block.channel, pixel, offset, ring.full(at.stage),
                                                            (1 << a_peers) - 1, 0);
            if constexpr (weights > 0) {
                const unsigned of_b = to + p.box_bytes + rank * (b_bytes / peers);
                const int x = static_cast<int>(p.blocks - left) * 64, y = static_cast<int>(rank) * weights / peers;
                if constexpr (peers > 1) ptx::tma_load_2d_multicast(of_b, map_b, x, y, ring.full(at.stage), (1 << peers) - 1);
                else ptx::tma_load_2d(of_b, map_b, x, y, ring.full(at.stage));
            }
            block.advance(p.image, 64);
            if (--left > 0) continue;
            left = p.blocks, block = {p.image, 0, 64};
            place = (place + gridDim.x / a_peers * p.box_pixels) % p.rows, p.image.first_pixel<axes>(place + a_rank * part, pixel);
        }
    }
    __syncwarp();
    if (peers > 1) ptx::cluster_sync();
}

struct Case {
    const char* what;
    int axes, pixels, width, height, depth, channels, taps, taps_z, stride, padding, dilation;
};

void* encode(const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
    return found;
}

template <int axes, int peers, int weights>
double nanoseconds(const Case& c, int ctas, void* data) {
    const int taps_z = c.axes == 3 ? c.taps_z : 1, reach = (c.taps - 1) * c.dilation, reach_z = (taps_z - 1) * c.dilation;
    const auto places = [&](int extent, int r) { return (extent + 2 * c.padding - r - 1) / c.stride + 1; };
    const int px = places(c.width, reach), py = places(c.height, reach), pz = c.axes == 3 ? places(c.depth, reach_z) : 1;
    const long long pixels = 1ll * c.width * c.height * (c.axes == 3 ? c.depth : 1);
    const int images = static_cast<int>(std::max(1ll, (12ll << 20) / (pixels * c.channels * 2)));
    TensorMap map;
    const cuuint64_t extents3[] = {cuuint64_t(c.channels), cuuint64_t(c.width), cuuint64_t(c.height), cuuint64_t(c.depth), cuuint64_t(images)};
    const cuuint64_t extents2[] = {cuuint64_t(c.channels), cuuint64_t(c.width), cuuint64_t(c.height), cuuint64_t(images)};
    const cuuint64_t e = 2ull * c.channels;
    const cuuint64_t strides3[] = {e, e * c.width, e * c.width * c.height, e * c.width * c.height * c.depth};
    const cuuint64_t strides2[] = {e, e * c.width, e * c.width * c.height};
    const int lower[] = {-c.padding, -c.padding, -c.padding}, upper[] = {c.padding - reach, c.padding - reach, c.padding - reach_z};
    const cuuint32_t steps[] = {1, cuuint32_t(c.stride), cuuint32_t(c.stride), cuuint32_t(c.axes == 3 ? c.stride : 1), 1};
    const auto encoded = reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(encode("cuTensorMapEncodeIm2col"))(
        reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, c.axes + 2, data, c.axes == 3 ? extents3 : extents2,
        c.axes == 3 ? strides3 : strides2, lower, upper, 64, c.pixels / (weights > 0 ? 1 : peers), steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (encoded != CUDA_SUCCESS) return -1;
    Loads p{};
    p.box_pixels = c.pixels, p.box_bytes = c.pixels * 128, p.stages = std::min(most_stages, 192 * 1024 / (p.box_bytes + weights * 128));
    p.image.channel_blocks = divider((c.channels + 63) / 64);
    const int extents[] = {px, py, pz}, taps[] = {c.taps, c.taps, taps_z};
    for (int i = 0; i < 3; ++i)
        p.image.axes[i] = {divider(extents[i]), divider(taps[i]), i < c.axes ? c.stride : 1, i < c.axes ? c.padding : 0, c.dilation};
    p.rows = unsigned(px) * py * pz * images - c.pixels, p.blocks = c.taps * c.taps * taps_z * ((c.channels + 63) / 64);
    p.boxes = 4000;
    TensorMap map_b;
    const cuuint64_t extents_b[] = {cuuint64_t(p.blocks) * 64, 64}, strides_b[] = {cuuint64_t(p.blocks) * 128};
    const cuuint32_t box_b[] = {64, cuuint32_t(std::max(weights, 8) / peers)}, ones[] = {1, 1};
    if (reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode("cuTensorMapEncodeTiled"))(
            reinterpret_cast<CUtensorMap*>(&map_b), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, data, extents_b, strides_b, box_b, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
            CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        return -1;
    const auto run = [&] {
        cudaLaunchAttribute cluster{.id = cudaLaunchAttributeClusterDimension};
        cluster.val.clusterDim = {peers, 1, 1};
        cudaLaunchConfig_t config{.gridDim = dim3(ctas), .blockDim = dim3(64), .dynamicSmemBytes = 200 * 1024, .attrs = &cluster, .numAttrs = 1};
        cudaFuncSetAttribute(load_boxes<axes, peers, weights>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);
        cudaLaunchKernelEx(&config, load_boxes<axes, peers, weights>, map, map_b, p);
    };
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    run();
    float best = 1e9f;
    for (int i = 0; i < 3; ++i) {
        cudaEventRecord(begin), run(), cudaEventRecord(end), cudaEventSynchronize(end);
        float ms = 0;
        cudaEventElapsedTime(&ms, begin, end);
        best = std::min(best, ms);
    }
    if (cudaGetLastError() != cudaSuccess) std::printf("failed\n"), std::exit(1);
    return best * 1e6 / p.boxes;
}

int main() {
    void* data;
    cudaMalloc(&data, 512 << 20);
    cudaMemset(data, 0, 512 << 20);
    int sms = 0;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    std::vector<Case> cases;
    for (const int pixels : {16, 32, 64, 96, 128, 192, 256}) cases.push_back({"pixels", 2, pixels, 56, 56, 1, 64, 3, 1, 1, 1, 1});
    for (const int width : {4, 7, 9, 14, 28, 112, 256}) cases.push_back({"width", 2, 128, width, width < 14 ? 56 : 28, 1, 64, 3, 1, 1, 1, 1});
    for (const int channels : {8, 16, 32, 48, 96, 128, 256, 512, 1280}) cases.push_back({"channels", 2, 128, 28, 28, 1, channels, 3, 1, 1, 1, 1});
    for (const int stride : {1, 2, 3}) cases.push_back({"stride", 2, 128, 112, 112, 1, 64, 7, 1, stride, 3, 1});
    for (const int dilation : {1, 2, 4, 6}) cases.push_back({"dilation", 2, 128, 14, 14, 1, 256, 7, 1, 1, 3 * dilation, dilation});
    cases.push_back({"no padding", 2, 128, 56, 56, 1, 64, 3, 1, 1, 0, 1});
    cases.push_back({"1x1", 2, 128, 56, 56, 1, 64, 1, 1, 1, 0, 1});
    cases.push_back({"1x1 stride", 2, 128, 56, 56, 1, 64, 1, 1, 2, 0, 1});
    cases.push_back({"1x1", 2, 128, 14, 14, 1, 1024, 1, 1, 1, 0, 1});
    for (const int width : {7, 14, 28, 96}) cases.push_back({"3 axes", 3, 128, width, width, 8, 64, 3, 3, 1, 1, 1});
    cases.push_back({"3 axes, flat", 3, 128, 28, 28, 1, 64, 3, 1, 1, 0, 1});
    cases.push_back({"3 axes 7x7x7", 3, 256, 35, 82, 8, 64, 7, 7, 1, 3, 1});
    cases.push_back({"pixels", 2, 256, 14, 14, 1, 256, 7, 1, 1, 3, 1}), cases.push_back({"pixels", 2, 256, 14, 14, 1, 256, 7, 1, 1, 9, 3});
    for (const int pixels : {24, 48, 96, 200}) cases.push_back({"7 wide", 2, pixels, 7, 7, 1, 512, 3, 1, 1, 1, 1});
    std::printf("%-13s axes pixels width height channels taps stride dilation     1 SM 33 SMs   all  pairs  with 64 rows: all  pairs\n", "");
    for (const Case& c : cases) {
        const auto row = [&]<int axes>() {
            std::printf("%-13s %4d %6d %5d %6d %8d %4d %6d %8d %8.1f %6.1f %6.1f %6.1f %6.1f %6.1f\n", c.what, c.axes, c.pixels, c.width, c.height, c.channels, c.taps, c.stride,
                        c.dilation, nanoseconds<axes, 1, 0>(c, 1, data), nanoseconds<axes, 1, 0>(c, sms / 4, data), nanoseconds<axes, 1, 0>(c, sms, data),
                        nanoseconds<axes, 2, 0>(c, sms / 2 * 2, data), nanoseconds<axes, 1, 64>(c, sms, data), nanoseconds<axes, 2, 64>(c, sms / 2 * 2, data));
            std::fflush(stdout);
        };
        c.axes == 3 ? row.operator()<3>() : row.operator()<2>();
    }
}
