// Kernels of a source as functions on a GPU: they compute what they say, and a graph keeps their code.
#include "rooftile/measure/source_module.hpp"

#include <algorithm>
#include <optional>
#include <random>

#include "rooftile/error.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

using SourceModuleTest = DeviceTest;

constexpr const char* scaling_kernels = R"(
#include <vector>
__global__ void scale(float* y, const float* x, float s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * s;
}
__global__ void reversed(float* y, const float* x, int n) {
    extern __shared__ float kept[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) kept[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = kept[n - 1 - i];
}
int main() { std::vector<float> x(1); scale<<<1, 1>>>(x.data(), x.data(), 1, 1); }
)";

std::vector<float> values_to_scale(std::size_t count) {
    std::mt19937 random{unsigned(test_seed())};
    std::vector<float> out(count);
    for (float& value : out) value = float(int(random() % 2001) - 1000) / 8;
    return out;
}

TEST_F(SourceModuleTest, ComputesAndIsCaptured) {
    constexpr int n = 16'001;  // 64 KB, for which shared memory has to be asked for
    const std::vector<float> x = values_to_scale(n);
    std::vector<float> back(n);
    const DeviceBuffer from(n * sizeof(float)), to(n * sizeof(float));
    copy_to_device(from.address(), x.data(), from.bytes());
    const StreamOwner stream;
    const Launch wide{.grid_x = (n + 255) / 256, .block_x = 256, .stream = stream};
    auto module = std::make_optional(load(scaling_kernels));
    const auto read = [&] {
        stream.synchronize();
        copy_to_host(back.data(), to.address(), to.bytes());
    };
    module->launch("scale", wide, to.data(), from.data(), 2.0f, n);
    read();
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(back[i], 2 * x[i]) << i;
    module->launch("reversed", Launch{.block_x = 1024, .shared_bytes = unsigned(n * sizeof(float)), .stream = stream}, to.data(),
                   from.data(), n);
    read();
    EXPECT_TRUE(std::equal(x.rbegin(), x.rend(), back.begin()));

    begin_capture(stream);
    for (const float s : {3.0f, 4.0f}) module->launch("scale", wide, to.data(), from.data(), s, n);
    const Graph graph = end_capture(stream);
    module.reset();  // the graph has the code
    load("__global__ void other(int* p) { *p = 1; }").load();
    fill_bytes(to.address(), 0xff, to.bytes(), stream);
    graph.launch(stream);
    read();
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(back[i], 4 * x[i]) << i;
}

TEST_F(SourceModuleTest, RefusesWhatNoGpuCanLaunch) {
    const SourceModule module = load(scaling_kernels);
    void* null = nullptr;
    EXPECT_THROW(module.launch("scale", Launch{.block_x = 2048}, null, null, 1.0f, 0), RequestError);
    EXPECT_THROW(module.launch("scale", Launch{.block_x = 32, .shared_bytes = 1 << 19}, null, null, 1.0f, 0), RequestError);
    EXPECT_THROW(module.launch("scale", Launch{.grid_x = 3, .block_x = 32, .cluster_x = 2}, null, null, 1.0f, 0), RequestError);
    module.launch("scale", Launch{.grid_x = 0, .block_x = 32}, null, null, 1.0f, 0);
    module.launch("scale", Launch{.grid_x = 4, .block_x = 32, .cluster_x = 2}, null, null, 1.0f, 0);
    synchronize();
}

}  // namespace
}  // namespace rooftile
