#include "rooftile/gemm/device/launch.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/core.h>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/error.hpp"

namespace rooftile {
namespace {

// Of two bytes each: lines are less than 2^40 B apart (cuTensorMapEncodeTiled).
constexpr std::int64_t max_leading = (std::int64_t(1) << 39) - 1;


}  // namespace

GemmShape shape_of(const GemmProblem& problem) {
    return {problem.m,   problem.n,     problem.k,        problem.lda,      problem.ldb,
            problem.ldc, problem.batch, problem.a_stride, problem.b_stride, problem.c_stride,
            problem.groups ? problem.groups->count() : 0};
}

std::vector<std::uint32_t> schedule_table(Order order, const ClusterTiles& tiles, int group, bool reverse) {
    const auto [rows, columns, products] = tiles;
    if (std::max(rows, columns) > max_table_extent)
        throw RequestError(
            fmt::format("order {} on {} x {} tiles: its table counts up to {} either way; take another order "
                        "or larger tiles",
                        name_of(order), rows, columns, max_table_extent));
    assert(rows <= max_gemm_size / columns);  // as check_tiles() has it
    std::vector<std::uint32_t> table(std::size_t(rows * columns));
    for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = packed(order == Order::hilbert  ? hilbert_at(int(i), int(rows), int(columns))
                          : order == Order::morton ? morton_at(int(i), int(rows), int(columns))
                                                   : tile_at(int(i), int(rows), int(columns), order, group));
    if (reverse) std::reverse(table.begin(), table.end());
    return table;
}

void check_gemm_size(const char* name, std::int64_t size) {
    if (size < 1 || size > max_gemm_size)
        throw RequestError(fmt::format("{} is {}; 1 to {} are accepted", name, size, max_gemm_size));
}

void check_leading(const char* name, std::int64_t leading, std::int64_t contiguous, int multiple) {
    if (leading < contiguous)
        throw RequestError(
            fmt::format("{} is {}, less than the {} elements of a line", name, leading, contiguous));
    if (leading % multiple != 0)
        throw RequestError(fmt::format("{} is {}; the kernel needs a multiple of {} elements", name, leading,
                                       multiple));
    if (leading > max_leading)
        throw RequestError(fmt::format("{} is {}; lines must be less than 2^40 B apart", name, leading));
}

void check_tiles(const GemmShape& shape, const ClusterTiles& tiles, std::int64_t step, int tile_m, int tile_n) {
    const auto [rows, columns, products] = tiles;
    if (rows > (max_gemm_size - step) / columns / products)
        throw RequestError(fmt::format("{}{} x {} has {} x {} tiles of {}x{}{}, 2^31 or more; take larger tiles",
                                       products > 1 ? fmt::format("a batch of {}, ", products) : "", shape.m, shape.n, rows,
                                       columns, tile_m, tile_n, products > 1 ? " each" : ""));
}

}  // namespace rooftile
