// C[M x N] = A[M x K] * B[K x N] from Ampere on: bf16 or fp16 in and out, fp32 sums; or a batch of such products, and a caller's
// expression of the sums.
//
// Every warp does everything. A ring of `stages` tiles of A and B is filled by cp.async, past the registers,
// stages - 1 blocks of K ahead of the products. A warp owns warp_m x warp_n of the tile of C: ldmatrix brings
// the fragments of one k-step of 16 to registers while mma.sync multiplies those of the step before. One barrier
// a block says both that its successor is in shared memory and that the stage before is free.
//
// Persistent: a CTA goes over tiles of C in a given order, and the ring runs on: the next tile's first blocks
// arrive while this one is finished and stored. Else one tile a CTA, which a second CTA on the SM overlaps.
//
// Here stands the kernel. _layout: shared memory, scheduler; _load: copies into the ring; _products: fragments and
// mma; _store: C on its way out; _epilogue: a caller's expression between.
#pragma once

#include "kernels/gemm/sm80_gemm_epilogue.cuh"
#include "kernels/gemm/sm80_gemm_load.cuh"
#include "kernels/gemm/sm80_gemm_store.cuh"

namespace rooftile {

/// The stages of the ring: one that is read, and the one that is filled next. By their addresses: with the numbers
/// of a RingPosition (kernels/pipeline) a kernel is 3 to 19 instructions longer. There are no mbarriers.
template <Sm80GemmConfig C>
struct Sm80Ring {
    unsigned base;
    unsigned read, write;
    __device__ explicit Sm80Ring(unsigned shared)
        : base(shared), read(shared), write(shared + (C.stages - 1) * C.stage_bytes()) {}
    __device__ unsigned after(unsigned stage) const {
        return stage == base + (C.stages - 1) * C.stage_bytes() ? base : stage + C.stage_bytes();
    }
};

/// What a warp holds of a tile: its place in the grid of warps, and fragments of two k-steps.
template <Sm80GemmConfig C>
struct Sm80Warp {
    int m, n;  // of its first element in the tile
    Sm80Reader<C, true> a_reader;
    Sm80Reader<C, false> b_reader;
    Sm80Fragments<C, true> a[2];
    Sm80Fragments<C, false> b[2];

    __device__ explicit Sm80Warp(int warp)
        : m(warp / C.warps_n * C.warp_m()),
          n(warp % C.warps_n * C.warp_n()),
          a_reader(warp / C.warps_n),
          b_reader(warp % C.warps_n) {}
    __device__ void load(unsigned stage, int k_step) {
        a_reader.load(a[k_step % 2], stage, k_step);
        b_reader.load(b[k_step % 2], stage + C.a_bytes(), k_step);
    }
    __device__ void multiply(Sm80Sums<C>& sums, int k_step) const {
        rooftile::multiply<C>(sums, a[k_step % 2], b[k_step % 2]);
    }
};

/// The next block is in shared memory, and nobody reads the stage of the block before this one any more.
template <Sm80GemmConfig C>
__device__ void await_block() {
    ptx::copy_async_wait<C.stages - 2>();  // as far as this thread copied it
    __syncthreads();                       // and all of it
}

/// One block of K, whose first fragments are loaded already; loads the first of the next block. The last k-step's
/// products stand behind the barrier: they run while those fragments come.
template <Sm80GemmConfig C, class Loader>
__device__ void step(Sm80Sums<C>& sums, Sm80Warp<C>& warp, Sm80Ring<C>& ring, Loader& loader) {
#pragma unroll
    for (int k = 0; k < C.k_steps(); ++k) {
        if (k == C.k_steps() - 1) {
            await_block<C>();
            ring.read = ring.after(ring.read);
        }
        warp.load(ring.read, (k + 1) % C.k_steps());
        if (k == 0) {  // all copies in one place: before each group of them sm_90 waits for loads in flight
            loader.fill(ring.write);
            loader.follow();
            ring.write = ring.after(ring.write);
        }
        warp.multiply(sums, k);
    }
}

/// What every thread of a CTA does. `left`: copies A's tiles.
template <Sm80GemmConfig C, class Epilogue, class Left = Sm80Copier<C, true>>
__device__ __forceinline__ void run_cta(const Sm80GemmArguments& args, const Epilogue& epilogue, const Left& left = {}) {
    static_assert(obeys_the_hardware<C>());
    extern __shared__ __align__(C.tile_alignment) unsigned char memory[];
    Sm80Ring<C> ring(ptx::shared_address(memory));
    Sm80Loader<C, Left> loader(args, left);
#pragma unroll 1
    for (int s = 0; s < C.stages - 1; ++s) {
        loader.fill(ring.base + s * C.stage_bytes());
        loader.follow();
    }
    Sm80Warp<C> warp(ptx::warp_uniform(threadIdx.x / 32));
    await_block<C>();
    warp.load(ring.read, 0);

    Sm80TileScheduler<C> scheduler;
    do {
        Sm80Sums<C> sums = {};
        for (int block = sm80_ceil_div(args.k, C.tile_k); block > 0; --block)
            step<C>(sums, warp, ring, loader);
        int m, n, product;
        scheduler.origin(args, m, n, product);
        if constexpr (!is_plain<Epilogue>()) finish<C>(sums, epilogue, args, m + warp.m, n + warp.n, product);
        store<C>(sums, matrix_of<C>(static_cast<unsigned short*>(args.c), product, args.c_stride), args, m + warp.m, n + warp.n);
        scheduler.advance();
    } while (C.persistent && scheduler.more(args));
    ptx::copy_async_wait<0>();  // none but empty groups
}

template <Sm80GemmConfig C>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm80_gemm(const __grid_constant__ Sm80GemmArguments args) {
    run_cta<C>(args, NoEpilogue{});
}

/// The same, and what is stored is an expression of the sums.
template <Sm80GemmConfig C, class Epilogue>
__global__ void __launch_bounds__(C.threads(), C.ctas_per_sm)
    sm80_gemm_epilogue(const __grid_constant__ Sm80GemmArguments args, const __grid_constant__ Epilogue epilogue) {
    run_cta<C>(args, epilogue);
}

}  // namespace rooftile
