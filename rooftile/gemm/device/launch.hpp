// What the launches of all GEMM kernels share: sizes, the table of a tile schedule, checks of sizes and pointers.
#pragma once

#include <cstdint>
#include <vector>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// Sizes and leading dimensions of one launch, in elements, as in GemmProblem.
struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t lda = 0, ldb = 0, ldc = 0;
    std::int64_t batch = 1, a_stride = 0, b_stride = 0, c_stride = 0;
    std::int64_t groups = 0;  ///< of the m rows, each with a matrix of B; 0: none
    std::int64_t a_matrices() const { return a_stride == 0 ? 1 : batch; }
    std::int64_t b_matrices() const { return groups > 0 ? groups : b_stride == 0 ? 1 : batch; }
};
GemmShape shape_of(const GemmProblem& problem);

/// Tiles of C in units of a cluster's, which the tile schedule counts, and how many such Cs there are.
struct ClusterTiles {
    std::int64_t rows = 0, columns = 0, products = 1;
};

/// The tile schedule of an order that the kernel reads from a table (morton, hilbert), packed as the kernel reads it.
/// Throws RequestError where there are more rows or columns than the packing can count.
/// `reverse`: from its last tile to its first, and so of any order.
std::vector<std::uint32_t> schedule_table(Order order, const ClusterTiles& tiles, int group = 1, bool reverse = false);

// Each throws RequestError, one line that names the value.

inline constexpr std::int64_t max_gemm_size = INT32_MAX;
void check_gemm_size(const char* name, std::int64_t size);
/// `contiguous`: elements of a line; `multiple`: of so many elements.
void check_leading(const char* name, std::int64_t leading, std::int64_t contiguous, int multiple);
/// That the kernel can count `tiles` in an int and step past the last by `step`.
void check_tiles(const GemmShape& shape, const ClusterTiles& tiles, std::int64_t step, int tile_m, int tile_n);

}  // namespace rooftile
