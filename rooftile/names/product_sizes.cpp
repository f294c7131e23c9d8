#include "rooftile/names/product_sizes.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernels/matrix/matrix_arguments.hpp"
#include "rooftile/names/reading.hpp"

namespace rooftile {
namespace {

using Grid = std::array<std::int32_t, 3>;

/// Empty where no GPU's memory holds such matrices.
std::optional<ProductSizes> checked(const ProductSizes& s) {
    constexpr double most_elements = 1e13;
    const double batch = double(s.batch), m = double(s.m), n = double(s.n), k = double(s.k);
    if (s.batch <= 0 || s.m <= 0 || s.n <= 0 || s.k <= 0) return std::nullopt;
    return batch * std::max({m * n, m * k, n * k}) < most_elements ? std::optional(s) : std::nullopt;
}

std::int64_t parts_of(std::int64_t extent, std::int64_t part) { return (extent + part - 1) / part; }

/// Whether so many tiles cover the extent. Tiles of these libraries are powers of two.
bool in_tiles(std::int64_t extent, std::int64_t tiles) {
    constexpr std::int64_t least_tile = 4, most_tile = 1024;
    for (std::int64_t tile = least_tile; tile <= most_tile; tile *= 2)
        if (extent > 0 && parts_of(extent, tile) == tiles) return true;
    return false;
}

bool same_two(const std::pair<std::int64_t, std::int64_t>& x, std::int64_t a, std::int64_t b) {
    return (x.first == a && x.second == b) || (x.first == b && x.second == a);
}

/// What the copy engine's descriptors hold is an extent less one.
std::int64_t extent(const ParameterBytes& p, std::size_t offset) { return p.word(offset) + 1; }
std::pair<std::int64_t, std::int64_t> extents(const ParameterBytes& p, std::size_t offset) {
    return {extent(p, offset), extent(p, offset + 4)};
}

/// cuBLAS's kernels for Hopper hold descriptors of both operands and, twice, of C, and how many pieces of work there are. K is the
/// extent of both operands that is none of C's.
std::optional<ProductSizes> of_nvjet(const ParameterBytes& p) {
    constexpr std::size_t work = 4, a = 208, b = 272, c = 416, c_again = 592, bytes = 1720;
    if (p.bytes.size() != bytes || p.word(work) <= 0 || extents(p, c) != extents(p, c_again)) return std::nullopt;
    const auto [rows, columns] = extents(p, c);
    const std::int64_t batch = extent(p, a + 8);
    if (batch != extent(p, b + 8) || batch != extent(p, c_again + 8)) return std::nullopt;
    const std::int64_t first[] = {extent(p, a), extent(p, a + 4)}, second[] = {extent(p, b), extent(p, b + 4)};
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            if (first[i] == second[j] && same_two({rows, columns}, first[1 - i], second[1 - j]))
                return checked({batch, columns, rows, first[i], p.word(work)});
    return std::nullopt;
}

/// CUTLASS 2: after M, N and K the grid in tiles, how rows of it are laid beside each other, what its third side means, and
/// how much of K a CTA takes.
std::optional<ProductSizes> of_cutlass_2(const ParameterBytes& p, const Grid& grid) {
    enum Mode : std::int64_t { one, parts_of_k, batch };
    const std::int64_t m = p.word(0), n = p.word(4), k = p.word(8), tiles_m = p.word(12), tiles_n = p.word(16), third = p.word(20),
                       beside = p.word(24), mode = p.word(28), k_a_cta = p.word(36);
    if (beside < 0 || beside > 8 || k_a_cta <= 0 || !in_tiles(m, tiles_m) || !in_tiles(n, tiles_n)) return std::nullopt;
    const std::int64_t rows = std::int64_t{1} << beside;
    if (grid[0] != tiles_m * rows || grid[1] != parts_of(tiles_n, rows) || grid[2] != third) return std::nullopt;
    if (mode == batch) return k_a_cta == k ? checked({third, m, n, k, 0}) : std::nullopt;
    return (mode == one || mode == parts_of_k) && parts_of(k, k_a_cta) == third ? checked({1, m, n, k, 0}) : std::nullopt;
}

/// xmma's kernels for Hopper hold descriptors too.
std::optional<ProductSizes> of_sm90_xmma(const ParameterBytes& p) {
    constexpr std::size_t a = 1296, b = 1360, c = 1424;
    const std::int64_t m = p.word(64), n = p.word(68), k = p.word(72), batch = extent(p, a + 8);
    if (!same_two(extents(p, a), m, k) || !same_two(extents(p, b), n, k) || !same_two(extents(p, c), m, n)) return std::nullopt;
    return batch == extent(p, b + 8) && batch == extent(p, c + 8) ? checked({batch, m, n, k, 0}) : std::nullopt;
}

/// xmma's older kernels hold the grid of one product, the parts of K and the batch. The launch of the same name that adds the parts has
/// another grid.
std::optional<ProductSizes> of_sm80_xmma(const ParameterBytes& p, const Grid& grid) {
    constexpr std::size_t parts = 352, batch = 616, grid_x = 632, grid_y = 636, grid_z = 640;
    const std::int64_t m = p.word(156), n = p.word(160), k = p.word(164);
    if (k != p.word(168) || p.word(grid_z) != p.word(parts)) return std::nullopt;
    if (grid[0] != p.word(grid_x) || grid[1] != p.word(grid_y) || grid[2] != p.word(grid_z) * p.word(batch)) return std::nullopt;
    return in_tiles(m, grid[0]) && in_tiles(n, grid[1]) ? checked({p.word(batch), m, n, k, 0}) : std::nullopt;
}

/// Plain kernels, C's columns along the grid's first side. Where a batch would be is not known.
std::optional<ProductSizes> of_plain(const ParameterBytes& p, const Grid& grid, std::size_t m, std::size_t n, std::size_t k) {
    if (grid[2] != 1 || !in_tiles(p.word(m), grid[1]) || !in_tiles(p.word(n), grid[0])) return std::nullopt;
    return checked({1, p.word(m), p.word(n), p.word(k), 0});
}

/// Ours: descriptors of A, B and C, then a struct that both sides share. A kernel that computes C transposed, or groups of rows, is
/// left out.
std::optional<ProductSizes> of_ours(std::string_view kernel, const ParameterBytes& p) {
    constexpr std::size_t descriptors = 3, swapped = 6;  // swap_ab's place among the members of MatrixConfig
    if (p.places.size() != descriptors + 1 || p.places.back().size != sizeof(MatrixArguments)) return std::nullopt;
    const std::string plain = names::demangled(kernel);
    const auto arguments = names::signature_of(plain).arguments;
    const std::size_t open = arguments.empty() ? std::string_view::npos : arguments[0].find('{');
    if (open == std::string_view::npos) return std::nullopt;
    const auto members = names::split(arguments[0].substr(open + 1), ',');
    if (members.size() <= swapped || names::number(members[swapped]) != 0) return std::nullopt;
    const std::size_t at = p.places.back().offset;
    if (p.word(at + offsetof(MatrixArguments, groups)) > 0) return std::nullopt;
    const std::int64_t batch = std::max<std::int64_t>(1, p.word(at + offsetof(MatrixArguments, batch)));
    return checked({batch, p.word(at + offsetof(MatrixArguments, m)), p.word(at + offsetof(MatrixArguments, n)),
                    p.word(at + offsetof(MatrixArguments, k)), 0});
}

}  // namespace

std::optional<ProductSizes> product_sizes(std::string_view kernel, const ParameterBytes& parameters, const Grid& grid) {
    const auto has = [&](std::string_view part) { return kernel.find(part) != kernel.npos; };
    if (kernel.starts_with("nvjet")) return of_nvjet(parameters);
    if (has("cutlass7Kernel2I")) return of_cutlass_2(parameters, grid);
    if (kernel.starts_with("sm90_xmma_gemm")) return of_sm90_xmma(parameters);
    if (kernel.starts_with("sm80_xmma_gemm")) return of_sm80_xmma(parameters, grid);
    if (has("rooftile9sm90_gemmI") || has("rooftile::sm90_gemm<")) return of_ours(kernel, parameters);
    if (has("magma_sgemmEx_kernel")) return of_plain(parameters, grid, 4, 0, 8);
    if (has("gemmSN_TN_kernel") || has("gemmSN_NN_kernel")) return of_plain(parameters, grid, 96, 92, 100);
    return std::nullopt;
}

}  // namespace rooftile
