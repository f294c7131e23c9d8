// entry: reduce6<512u>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>

struct Deleter {
    void operator()(float* p) const { cudaFree(p); }
};

class Result {
  public:
    explicit Result(const std::string& name) : name_(name) {}
    ~Result() { std::cout << name_ << "\n"; }
    void add(double value) { values_.push_back(value); }

  private:
    std::string name_;
    std::vector<double> values_{1.0, 2.0};
};
static const std::vector<int> sizes = {1 << 10, 1 << 20};
std::unique_ptr<float, Deleter> buffer(nullptr);

template <unsigned int blockSize>
__device__ void warpReduce(volatile float *sdata, unsigned int tid) {
    if (blockSize >= 64) sdata[tid] += sdata[tid + 32];
    if (blockSize >= 32) sdata[tid] += sdata[tid + 16];
    if (blockSize >= 16) sdata[tid] += sdata[tid + 8];
    if (blockSize >= 8) sdata[tid] += sdata[tid + 4];
    if (blockSize >= 4) sdata[tid] += sdata[tid + 2];
    if (blockSize >= 2) sdata[tid] += sdata[tid + 1];
}

template <unsigned int blockSize>
__global__ void reduce6(float *g_idata, float *g_odata, unsigned int n) {
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x, i = blockIdx.x * (blockSize * 2) + tid, gridSize = blockSize * 2 * gridDim.x;
    sdata[tid] = 0;
    while (i < n) { sdata[tid] += g_idata[i] + g_idata[i + blockSize]; i += gridSize; }
    __syncthreads();
    if (blockSize >= 512) { if (tid < 256) { sdata[tid] += sdata[tid + 256]; } __syncthreads(); }
    if (blockSize >= 256) { if (tid < 128) { sdata[tid] += sdata[tid + 128]; } __syncthreads(); }
    if (blockSize >= 128) { if (tid < 64) { sdata[tid] += sdata[tid + 64]; } __syncthreads(); }
    if (tid < 32) warpReduce<blockSize>(sdata, tid);
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

bool close_to(double a, double b) { return std::abs(a - b) < 1e-5 * std::max(1.0, std::abs(b)); }
