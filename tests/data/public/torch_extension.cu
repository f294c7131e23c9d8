// entry: row_max<__nv_bfloat16>
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <cstdint>
#include <cfloat>
#include <cmath>
#include <limits>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define DEVICE_INLINE __device__ __forceinline__
DEVICE_INLINE float warp_max(float v) { for (int o = 16; o > 0; o >>= 1) v = max(v, __shfl_xor_sync(0xffffffff, v, o)); return v; }
static constexpr int kThreads = 256;
template <typename scalar_t>
__global__ void __launch_bounds__(kThreads) row_max(const scalar_t* __restrict__ x, float* y, int64_t n) {
    float m = std::numeric_limits<float>::lowest();
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, float(x[blockIdx.x * n + i]));
    m = warp_max(m);
    if (threadIdx.x == 0) y[blockIdx.x] = m + float(M_PI) * 0.f;
}
inline unsigned int cdiv(unsigned int a, unsigned int b) { return (a + b - 1) / b; }
torch::Tensor row_max_cuda(torch::Tensor x) {
    CHECK_CUDA(x);
    auto y = torch::empty({x.size(0)}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "row_max", ([&] { row_max<scalar_t><<<x.size(0), kThreads>>>(x.data_ptr<scalar_t>(), y.data_ptr<float>(), x.size(1)); }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
torch::Tensor declared_only(torch::Tensor a, std::vector<int64_t> sizes = {1, 2});
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("row_max", &row_max_cuda, "row max"); }
