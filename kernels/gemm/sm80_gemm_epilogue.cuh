// A caller's expression on a warp's sums, in their registers, before they are stored. The class is the one that sm90_gemm takes.
#pragma once

#include "kernels/matrix/epilogue_pair.cuh"
#include "kernels/gemm/sm80_gemm_products.cuh"

namespace rooftile {

/// `sums` become what is stored; the first are of row m and column n of that product.
template <Sm80GemmConfig C, class Epilogue>
__device__ void finish(Sm80Sums<C>& sums, const Epilogue& epilogue, const Sm80GemmArguments& args, int m, int n, int product) {
    constexpr int across = C.warp_n() / C.mma_n, most = Epilogue::template pairs_in_flight<false>, in_flight = most < across ? most : across;
    const typename Epilogue::Once once = epilogue.once();
    const int row = m + threadIdx.x % 32 / 4, column = n + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < C.warp_m() / C.mma_m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const auto place = [&](int j) {
                EpiloguePair at{row, column, C.mma_m * i + 8 * half, C.mma_n * j, args.m, args.n, product, false, false};
                const int down = args.m - row - at.down, right = args.n - column - at.right;  // beyond the last tile below 0
                at.first = down > 0 && right > 0;
                at.second = down > 0 && right > 1;
                return at;
            };
#pragma unroll
            for (int first = 0; first < across; first += in_flight) {
                const int end = first + in_flight < across ? first + in_flight : across;
                if (!place(first).first) continue;  // the others lie further right; outside nobody stores
                typename Epilogue::Operands operands[in_flight];
#pragma unroll
                for (int j = first; j < end; ++j)  // all loads before the first use
                    epilogue.template load<false>(operands[j - first], place(j));
#pragma unroll
                for (int j = first; j < end; ++j) {
                    float x[2];
                    epilogue.template apply<false>(x, sums[i][j][2 * half], sums[i][j][2 * half + 1], operands[j - first], once, place(j));
                    sums[i][j][2 * half] = x[0], sums[i][j][2 * half + 1] = x[1];
                }
            }
        }
}

}  // namespace rooftile
