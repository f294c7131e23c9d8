// entry: block_tiled<64, 64, 8, 8>
#include "blocktiled.cuh"
#include <ctime>
#include <fstream>
#include <iomanip>

void cudaCheck(cudaError_t error, const char *file, int line) {
  if (error != cudaSuccess) {
    printf("[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
};

void randomize_matrix(float *mat, int N) {
  for (int i = 0; i < N; i++) mat[i] = (float)(rand() % 5) + 0.01 * (rand() % 5);
}

void run_block_tiled(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C, cublasHandle_t handle) {
  dim3 gridDim(CEIL_DIV(N, 64), CEIL_DIV(M, 64));
  dim3 blockDim((64 * 64) / 8);
  block_tiled<64, 64, 8, 8><<<gridDim, blockDim>>>(M, N, K, alpha, A, B, beta, C);
}

int main(int argc, char **argv) {
  cublasHandle_t handle;
  if (cublasCreate(&handle)) { std::cerr << "Create cublas handle error." << std::endl; exit(EXIT_FAILURE); };
  cudaEvent_t beg, end;
  return 0;
}
