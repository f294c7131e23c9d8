// Profiles with something of everything, from recordings made in memory.
#pragma once

#include <fstream>
#include <sstream>

#include "rooftile/profile/document.hpp"
#include "tests/profile/recording_writer.hpp"

namespace rooftile {

inline Json document_of(const std::vector<Recorded>& recordings, const std::string& range = "",
                        const std::string& command = "python3 train.py") {
    Profile profile = profile_of(recordings, range);
    profile.command = command, profile.wall = 2e9;
    return profile_document(context_of("rooftile profile -- " + command), profile, explained(profile, nullptr));
}

template <class... More>
std::vector<Recorded> recorded(const RecordingWriter& first, const More&... more) {
    std::vector<Recorded> out;
    out.push_back(first.read());
    (out.push_back(more.read()), ...);
    return out;
}

/// Two steps of a model on one GPU, in ns: kernels one by one and a graph, two streams, copies, a wait, nested ranges and another thread.
inline RecordingWriter made_training() {
    constexpr std::uint64_t ms = 1000000, us = 1000;
    RecordingWriter w;
    w.begin(10 * ms, 31);
    w.device();
    for (std::uint64_t step = 0; step < 2; ++step) {
        const std::uint64_t at = (100 + 10 * step) * ms;
        w.range("forward; of <layer>", at + 10 * us, at + 400 * us);
        w.range("step", at, at + 4000 * us);
        w.launched(at + 20 * us, at + 25 * us,
                   {.start = at + 100 * us,
                    .end = at + 300 * us,
                    .name = "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvv",
                    .grid = {1024, 1, 1},
                    .registers = 40});
        w.launched(at + 30 * us, at + 36 * us,
                   {.start = at + 310 * us,
                    .end = at + 360 * us,
                    .name = "my_kernel(float*)",
                    .grid = {66, 1, 1},
                    .block = {32, 4, 2},
                    .static_shared = 2048});
        w.launched(at + 40 * us, at + 45 * us,
                   {.start = at + 320 * us,
                    .end = at + 500 * us,
                    .name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                    .stream = 20,
                    .grid = {24, 1, 1},
                    .block = {544, 1, 1}},
                   2);
        w.call("cuGraphLaunch", at + 600 * us, at + 620 * us, std::uint32_t(500 + step));
        w.kernel({.start = at + 700 * us,
                  .end = at + 900 * us,
                  .correlation = std::uint32_t(500 + step),
                  .name = "triton_poi_fused_add_mul_0",
                  .graph = 3,
                  .node = 1});
        w.kernel({.start = at + 910 * us,
                  .end = at + 950 * us,
                  .correlation = std::uint32_t(500 + step),
                  .name = "triton_poi_fused_add_mul_0",
                  .graph = 3,
                  .node = 2,
                  .grid = {7, 3, 1}});
        w.call("cuMemcpyDtoHAsync_v2", at + 960 * us, at + 965 * us, std::uint32_t(600 + step));
        w.copy(at + 1000 * us, at + 1100 * us, 1 << 20, 2, std::uint32_t(600 + step));
        w.call("cuStreamSynchronize", at + 970 * us, at + 1200 * us);
        w.call("cuMemsetD8Async", at + 3000 * us, at + 3010 * us, std::uint32_t(700 + step));
        w.copy(at + 3100 * us, at + 3110 * us, 4096, 0, std::uint32_t(700 + step));
        w.call("cuMemAlloc_v2", at + 3200 * us, at + 3300 * us, 0, 1, step == 0 ? 2 : 0);
    }
    w.notice("a line of the collector");
    w.end(130 * ms);
    return w;
}

/// Products of an H200 as PyTorch's libraries launched them, each in a range "shape KIND BATCH M N K" (bench/profile/sample_products.py).
inline Recorded recorded_products() {
    std::ifstream file(ROOFTILE_TEST_DATA "/profile/products.rec", std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return read_recording(bytes.str(), "products.rec");
}

/// PyTorch's kernels that mostly move tensors, and those of attention, on an H200 (bench/profile/sample_passes.py).
inline Recorded recorded_passes() {
    std::ifstream file(ROOFTILE_TEST_DATA "/profile/passes.rec", std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return read_recording(bytes.str(), "passes.rec");
}

}  // namespace rooftile
