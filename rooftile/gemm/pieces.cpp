#include "rooftile/gemm/pieces.hpp"

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {

PiecesWorkspace pieces_workspace(const GemmConfig& c, std::int64_t m, std::int64_t n, std::int64_t products) {
    if (c.grid_split_k == 1) return {c.dynamic_scheduler ? std::int64_t{PackedCopy::alignment} : 0, 0};
    constexpr int counter_bytes = 4, sum_bytes = 4;
    const std::int64_t rows = ceil_div(m, std::int64_t{c.tile_m} * c.cluster_m) * c.cluster_m * products,
                       columns = ceil_div(n, std::int64_t{c.tile_n} * c.cluster_n) * c.cluster_n;
    const std::int64_t counters = rows * columns * c.split_k * c.consumer_warpgroups * counter_bytes;
    return {ceil_div(counters, std::int64_t{PackedCopy::alignment}) * PackedCopy::alignment,
            rows * columns * c.tile_m * c.tile_n * sum_bytes * c.grid_split_k};
}

}  // namespace rooftile
