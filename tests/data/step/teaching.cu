// Kernels in the manner of teaching repositories: what such text uses of CUDA. Each is stepped as the line above it says, and is right.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cassert>
#include <algorithm>
#include <limits>
#include <array>
#include <vector>
namespace cg = cooperative_groups;
#define WARP_SIZE 32
#define CEIL(a, b) (((a) + (b) - 1) / (b))
#define FETCH_FLOAT4(pointer) (reinterpret_cast<float4*>(&(pointer))[0])
#define LDST128BITS(value) (reinterpret_cast<float4 *>(&(value))[0])
#define INT4(value) (reinterpret_cast<int4 *>(&(value))[0])

template <const int kWarpSize = WARP_SIZE>
__device__ __forceinline__ float warp_reduce_sum_f32(float val) {
#pragma unroll
  for (int mask = kWarpSize >> 1; mask >= 1; mask >>= 1) val += __shfl_xor_sync(0xffffffff, val, mask);
  return val;
}
template <const int NUM_THREADS = 256>
__device__ float block_reduce_sum_f32(float val) {
  constexpr int NUM_WARPS = (NUM_THREADS + WARP_SIZE - 1) / WARP_SIZE;
  int warp = threadIdx.x / WARP_SIZE;
  int lane = threadIdx.x % WARP_SIZE;
  static __shared__ float shared[NUM_WARPS];
  val = warp_reduce_sum_f32<WARP_SIZE>(val);
  if (lane == 0) shared[warp] = val;
  __syncthreads();
  val = (lane < NUM_WARPS) ? shared[lane] : 0.0f;
  val = warp_reduce_sum_f32<NUM_WARPS>(val);
  return val;
}
// step: --entry rms_norm_f32x4<64> --tensor x:fp32[16,256] --tensor y:fp32[16,256] --arg fp32:1 --arg int32:16 --arg int32:256 --grid 16 --block 64 --reference "y = rmsnorm(x)"
template <const int NUM_THREADS = 256 / 4>
__global__ void rms_norm_f32x4(float *x, float *y, float g, int N, int K) {
  int tid = threadIdx.x, bid = blockIdx.x;
  int idx = (bid * blockDim.x + threadIdx.x) * 4;
  const float epsilon = 1e-6f;
  __shared__ float s_variance;
  float4 reg_x = FETCH_FLOAT4(x[idx]);
  float variance = (idx < N * K) ? (reg_x.x * reg_x.x + reg_x.y * reg_x.y + reg_x.z * reg_x.z + reg_x.w * reg_x.w) : 0.0f;
  variance = block_reduce_sum_f32<NUM_THREADS>(variance);
  if (tid == 0) s_variance = rsqrtf(variance / (float)K + epsilon);
  __syncthreads();
  float4 reg_y;
  reg_y.x = reg_x.x * s_variance * g;
  reg_y.y = reg_x.y * s_variance * g;
  reg_y.z = reg_x.z * s_variance * g;
  reg_y.w = reg_x.w * s_variance * g;
  if (idx < N * K) FETCH_FLOAT4(y[idx]) = reg_y;
}
// packed half8
// step: --entry relu_f16x8_pack --tensor x:fp16[4096] --tensor y:fp16[4096] --arg int32:4096 --grid 2 --reference "y = relu(x)"
__global__ void relu_f16x8_pack(half *x, half *y, int N) {
  int idx = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
  const half2 z2 = {__float2half(0.0f), __float2half(0.0f)};
  half pack_x[8], pack_y[8];
  LDST128BITS(pack_x[0]) = LDST128BITS(x[idx]);
#pragma unroll
  for (int i = 0; i < 8; i += 2) reinterpret_cast<half2&>(pack_y[i]) = __hmax2(reinterpret_cast<half2&>(pack_x[i]), z2);
  if ((idx + 7) < N) LDST128BITS(y[idx]) = LDST128BITS(pack_y[0]);
}
// constant memory, device globals, struct by template
__constant__ float coeffs[4] = {1.f, 2.f, 3.f, 4.f};
__device__ int launches;
struct Params { float a; int b; __device__ float f(float x) const { return a * x + b; } };
template <typename T, int N>
struct Vec { T v[N]; __device__ T& operator[](int i) { return v[i]; } };
// step: --entry misc --tensor x:fp32[3000] --tensor y:fp32[3000] --arg int32:3000 --grid 2 --reference "y = 2*x + 4"
__global__ void misc(const float* __restrict__ x, float* __restrict__ y, int n) {
  const auto grid = cg::this_grid();
  Params p{2.f, 1};
  Vec<float, 4> v;
  for (int i = 0; i < 4; ++i) v[i] = coeffs[i];
  auto f = [&](float t) { return p.f(t) + v[2]; };
  for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = f(x[i]);
  if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd(&launches, 1);
}
__device__ float atomicMaxFloat(float* address, float val) {
  int* address_as_i = (int*)address;
  int old = *address_as_i, assumed;
  do {
    assumed = old;
    old = ::atomicCAS(address_as_i, assumed, __float_as_int(::fmaxf(val, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}
// step: --entry max_all --tensor x:fp32[1000] --tensor y:fp32[] --fill y=-1 --arg int32:1000 --grid 4 --reference "y = max_all(x)"
__global__ void max_all(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMaxFloat(y, x[i]);
}
// last block pattern
__device__ unsigned int count = 0;
// step: --entry sum_last --tensor x:fp32[1000] --tensor p:fp32[4] --tensor y:fp32[] --arg int32:1000 --grid 4
__global__ void sum_last(const float* x, float* partial, float* y, int n) {
  __shared__ bool last;
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int k = 128; k; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
  if (t == 0) {
    partial[blockIdx.x] = s[0];
    __threadfence();
    last = atomicAdd(&count, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += partial[b];
    *y = sum;
    count = 0;
  }
}
// dynamic shared typed by template, matmul with tiles in 2D
// step: --entry "matmul<float, 16>" --tensor A:fp32[40,50] --tensor B:fp32[50,30] --tensor C:fp32[40,30] --arg int32:40 --arg int32:30 --arg int32:50 --grid 2x3 --block 16x16
// step: --entry "matmul<half, 16>" --tensor A:fp16[40,50] --tensor B:fp16[50,30] --tensor C:fp16[40,30] --arg int32:40 --arg int32:30 --arg int32:50 --grid 2x3 --block 16x16
// step: --entry "matmul<__nv_bfloat16, 16>" --tensor A:bf16[40,50] --tensor B:bf16[50,30] --tensor C:bf16[40,30] --arg int32:40 --arg int32:30 --arg int32:50 --grid 2x3 --block 16x16
// step: --entry "matmul<double, 16>" --tensor A:fp64[40,50] --tensor B:fp64[50,30] --tensor C:fp64[40,30] --arg int32:40 --arg int32:30 --arg int32:50 --grid 2x3 --block 16x16
template <typename scalar_t, int T>
__global__ void matmul(const scalar_t* A, const scalar_t* B, scalar_t* C, int M, int N, int K) {
  __shared__ scalar_t As[T][T], Bs[T][T];
  int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float acc = 0;
  for (int k = 0; k < CEIL(K, T); ++k) {
    As[threadIdx.y][threadIdx.x] = (row < M && k * T + threadIdx.x < K) ? A[row * K + k * T + threadIdx.x] : scalar_t(0);
    Bs[threadIdx.y][threadIdx.x] = (col < N && k * T + threadIdx.y < K) ? B[(k * T + threadIdx.y) * N + col] : scalar_t(0.f);
    __syncthreads();
    for (int j = 0; j < T; ++j) acc += (float)As[threadIdx.y][j] * (float)Bs[j][threadIdx.x];
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = static_cast<scalar_t>(acc);
}
// step: --entry dynshared<float> --tensor x:fp32[64] --tensor y:fp32[64] --arg int32:64 --grid 1 --block 64 --shared 768
template <typename T> __global__ void dynshared(const T* x, T* y, int n) {
  extern __shared__ char smem_raw[];
  T* smem = reinterpret_cast<T*>(smem_raw);
  float2* pairs = (float2*)(smem + blockDim.x);
  smem[threadIdx.x] = x[threadIdx.x];
  pairs[threadIdx.x] = make_float2(smem[threadIdx.x], 1.f);
  __syncthreads();
  y[threadIdx.x] = T(pairs[blockDim.x - 1 - threadIdx.x].x) + smem[(threadIdx.x + 1) % blockDim.x];
}
// step: --entry tiles --tensor x:fp32[64] --tensor y:fp32[4] --arg int32:64 --grid 1 --block 64
__global__ void tiles(const float* x, float* y, int n) {
  cg::thread_block cta = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(cta);
  float v = x[cta.thread_rank()];
  float s = cg::reduce(tile, v, cg::plus<float>());
  cg::sync(cta);
  if (tile.thread_rank() == 0) y[tile.meta_group_rank()] = s;
  unsigned m = __match_any_sync(0xffffffff, threadIdx.x / 4);
  if (__popc(m) != 4) __trap();
  int pred; __match_all_sync(0xffffffff, 1, &pred);
  if (!pred) __trap();
  if (__syncthreads_count(threadIdx.x < 10) != 10) __trap();
  if (!__syncthreads_or(threadIdx.x == 3) || __syncthreads_and(threadIdx.x == 3)) __trap();
  assert(__reduce_add_sync(0xffffffff, 1) == 32);
  assert(__shfl_up_sync(0xffffffff, int(threadIdx.x % 32), 1) == max(0, int(threadIdx.x % 32) - 1));
  assert(__brev(1u) == 0x80000000u && __clz(1) == 31 && __ffs(8) == 4);
  half h = __float2half(1.5f); h += half(2.f); assert(__half2float(h * h) == 12.25f && h > half(3) && (float)__hneg(h) == -3.5f);
  __nv_bfloat16 b = __float2bfloat16(3.0f); assert(float(b + b) == 6.f); assert(__half2float(__float2half(65504.f)) == 65504.f); assert(isinf(__half2float(__float2half(65520.f))));
  assert(__half2float(__float2half(5.9604645e-08f)) == 5.9604645e-08f); 
}
// step: --entry bytes --tensor y:uint32[16] --grid 1 --block 64
__global__ void bytes(unsigned char* y) { y[threadIdx.x] = threadIdx.x + 1; }
#include <cuda_pipeline.h>
__device__ __forceinline__ void copy_16(void* to, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from));
#else
  *reinterpret_cast<int4*>(to) = *reinterpret_cast<const int4*>(from);
#endif
}
// step: --entry staged --tensor x:fp16[512] --tensor y:fp16[512] --arg int32:512 --grid 1 --block 64 --reference "y = -x"
__global__ void __launch_bounds__(64, 2) staged(const half* __restrict__ x, half* __restrict__ y, int n) {
  __shared__ __align__(16) half tile[2][8 * 32];
  for (int s = 0; s < 2; ++s)
    if (threadIdx.x < 32) {
      half* to = &tile[s][8 * threadIdx.x];
      if (s == 0) __pipeline_memcpy_async(to, x + 8 * threadIdx.x, 16);
      else copy_16(to, x + 256 + 8 * threadIdx.x);
      __pipeline_commit();
    }
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int s = 0; s < 2; ++s)
    for (int i = threadIdx.x; i < 256; i += blockDim.x) y[256 * s + i] = __hneg(tile[s][i]);
}
// Histograms of warps, merged.
// step: --entry "Counts_ns::count<int, 8>" --tensor c:int32[8] --fill c=0 --tensor v:int32[200] --fill v=below:8 --arg int32:200 --grid 2 --block 96
template <typename T, int bins>
struct Merge {
  static __device__ void run(T* into, volatile const T* from) {
    for (int b = threadIdx.x; b < bins; b += blockDim.x) atomicAdd(&into[b], from[b]);
  }
};
namespace Counts_ns {
template <typename T, int bins>
__global__ void count(T* c, const T* v, int n) {
  __shared__ T own[3][bins];
  const int warp = threadIdx.y ? 0 : threadIdx.x / warpSize, lane = threadIdx.x & 31;
  if (lane < bins) own[warp][lane] = 0;
  __syncwarp();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd_block(&own[warp][v[i]], T(1));
  __syncthreads();
  for (int w = 0; w < 3; ++w) Merge<T, bins>::run(c, own[w]);
}
}  // namespace Counts_ns
// Structs and unions in shared memory, a block of three axes, enums, bools and functors.
struct __align__(16) Node { float4 pos; int next; };
enum class Mode : int { add = 0, mul = 1 };
union Bits { float f; uint32_t u; };
template <Mode mode> struct Functor { __device__ float operator()(float a, float b) const { if constexpr (mode == Mode::add) return a + b; else return a * b; } };
template <class F> __device__ float fold(F f, const float* p, int n) { float r = p[0]; for (int i = 1; i < n; ++i) r = f(r, p[i]); return r; }
// step: --entry mixture --tensor x:fp32[64] --tensor f:bool[64] --tensor b:uint8[64] --tensor y:fp32[64] --arg int32:0 --arg int32:64 --arg int32:3 --arg int32:1 --arg fp64:0.5 --grid 1 --block 4x4x4
__global__ void mixture(const float* x, bool* flags, uint8_t* bytes, float* y, Mode mode, int n, short tiny, bool on, double eps) {
  __shared__ Node nodes[32];
  __shared__ union { float f[64]; int i[64]; } both;
  const unsigned tid = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  if (tid < 32) { nodes[tid].pos = make_float4(x[tid], 0, 0, 1); nodes[tid].next = (tid + 1) % 32; }
  both.f[tid] = 0.f;
  __syncthreads();
  int at = tid % 32;
  for (int k = 0; k < 3; ++k) at = nodes[at].next;
  Bits b; b.f = nodes[at].pos.x; b.u &= 0x7fffffffu;
  switch (mode) {
    case Mode::add: y[tid] = fold(Functor<Mode::add>{}, x, 4) + b.f; break;
    default: y[tid] = fold(Functor<Mode::mul>{}, x, 4);
  }
  flags[tid] = y[tid] > 0 && on;
  bytes[tid] = static_cast<uint8_t>(min(255, max(0, int(y[tid] * 10 + eps)))) + tiny;
  atomicMax(&both.i[0], int(tid));
  __syncthreads();
  if (tid == 0 && both.i[0] != 63) __trap();
  int4 packed = *(reinterpret_cast<const int4*>(x) + tid % 4);
  half2 h = __floats2half2_rn(__int_as_float(packed.x), 2.f);
  float2 back = __half22float2(__hmul2(h, h));
  y[tid] += back.y;
#pragma unroll 4
  for (int i = 0; i < 4; i++) { if (i == 2) continue; y[tid] += i; }
  float a[2][3] = {{1, 2, 3}, {4, 5, 6}}; 
  y[tid] += a[tid & 1][tid % 3] + __saturatef(2.f) + fmaf(1.f, 2.f, 3.f) + rsqrt(4.0f) + __fdividef(4.f, 2.f) + powf(2.f, 3.f) + exp2f(1.f) + norm3df(1,2,2);
  unsigned lane; lane = tid & 31; unsigned m = __activemask(); (void)m; (void)lane;
  long long t0 = clock64(); (void)t0;
}
// Half a warp adds up; what its upper lanes get from beyond the mask is not used.
// step: --entry half_warp --tensor x:fp32[16] --tensor y:fp32[] --grid 1 --block 64 --reference "y = sum_all(x)"
__global__ void half_warp(const float* x, float* y) {
  if (threadIdx.x >= 16) return;
  float v = x[threadIdx.x];
  for (int o = 8; o > 0; o >>= 1) v += __shfl_down_sync(0xffffu, v, o);
  if (threadIdx.x == 0) *y = v;
}
