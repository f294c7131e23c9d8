// Mean and deviations of 16-bit elements, added up by the matrix unit: two instructions for eight elements of a
// lane, which stay packed, where fp32 takes six an element.
#pragma once

#include "kernels/fuse/reduce.cuh"
#include "kernels/ptx/mma.cuh"

namespace rooftile::fuse {

/// Sums of all that a warp's lanes read, and of its squares. Row g of A is what lanes 4 g to 4 g + 3 hold, B the
/// same transposed: the diagonal of their product has each row's squares. Rows 8 to 15 of A are ones: there the
/// product has each row's sum. Products are exact in fp32, their sums are cut off rather than rounded.
template <class T>
struct MatrixMoments {
    static constexpr int chains = 2;  ///< instructions that need not wait for one another
    float product[chains][4] = {};
    float count = 0;  ///< of a row of A

    /// Of all lanes of a warp at once.
    template <int width>
    __device__ void add(const Pack<T, width>& v) {
        static_assert(sizeof(T) == 2 && width % 4 == 0);
        constexpr unsigned ones = T::type == Type::bf16 ? 0x3f803f80u : 0x3c003c00u;
        const unsigned* words = reinterpret_cast<const unsigned*>(&v);
#pragma unroll
        for (int i = 0; i < width / 4; ++i) {
            const unsigned a[4] = {words[2 * i], ones, words[2 * i + 1], ones};
            ptx::mma<T::type>(product[i % chains], a, words[2 * i], words[2 * i + 1]);
        }
        count += 4 * width;
    }
    /// Each row's in the lane that has its place on the diagonal. Where squares are so much larger than what they
    /// leave that the cut digits count, deviations are NaN: then they must be added up again, around the mean.
    __device__ Moments moments() const {
        constexpr float most_cancelled = 6;
        float sum[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] = product[0][i] + product[1][i];
        const unsigned row = threadIdx.x % 32 / 4, columns = threadIdx.x % 4;
        if (row / 2 != columns) return {};
        const float squares = row % 2 ? sum[1] : sum[0], total = row % 2 ? sum[3] : sum[2];
        const float mean = total * ptx::reciprocal_approx(fmaxf(count, 1.0f));
        const float deviations = fmaf(-total, mean, squares);
        const bool kept = squares < infinity && squares <= most_cancelled * deviations;
        return {count, mean, kept ? deviations : not_a_number};
    }
};

/// Where squares cancel for any of the row's lanes; the same for all of them.
__device__ inline bool cancelled(const Moments& moments) {
    return __any_sync(0xffffffffu, !(moments.deviations >= 0.0f));
}

}  // namespace rooftile::fuse
