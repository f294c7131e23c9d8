#include "rooftile/profile/product_sizes.hpp"

#include <algorithm>

namespace rooftile {
namespace {

bool plausible(const ProductSizes& s) { return s.m > 0 && s.n > 0 && s.k > 0 && s.batch > 0; }

std::optional<ProductSizes> checked(const ProductSizes& sizes) { return plausible(sizes) ? std::optional(sizes) : std::nullopt; }

/// cuBLAS's kernels for Hopper hold the extents less one that the copy engine's descriptors hold: of its row-long side, its
/// columns and the batch of C twice, and of both operands; and how many pieces of work there are. K is the extent of both that is none of C's.
std::optional<ProductSizes> of_nvjet(const ParameterBytes& p) {
    constexpr std::size_t work = 4, a = 208, b = 272, c = 416, c_again = 592, batch = 216, bytes = 1720;
    if (p.bytes.size() != bytes) return std::nullopt;
    const std::int64_t rows = p.word(c) + 1, columns = p.word(c + 4) + 1, batches = p.word(batch) + 1;
    if (p.word(c_again) + 1 != rows || p.word(c_again + 4) + 1 != columns) return std::nullopt;
    const std::int64_t first[] = {p.word(a) + 1, p.word(a + 4) + 1}, second[] = {p.word(b) + 1, p.word(b + 4) + 1};
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            const std::int64_t k = first[i], side = first[1 - i], other = second[1 - j];
            if (second[j] == k && ((side == rows && other == columns) || (side == columns && other == rows)))
                return checked({batches, columns, rows, k, p.word(work)});
        }
    return std::nullopt;
}

/// Where a family's parameters hold M, N and K. Of a batch the place varies: one product is told.
struct SizePlaces {
    std::string_view name;
    bool prefix;  // of the name; else somewhere in it
    std::size_t m, n, k;
};
constexpr SizePlaces families[] = {
    {"cutlass7Kernel2I", false, 0, 4, 8},
    {"sm90_xmma_gemm", true, 64, 68, 72},
    {"sm80_xmma_gemm", true, 156, 160, 164},
    {"magma_sgemmEx_kernel", false, 4, 0, 8},
    {"gemmSN_TN_kernel", false, 96, 92, 100},
    {"gemmSN_NN_kernel", false, 96, 92, 100},
};

}  // namespace

std::optional<ProductSizes> product_sizes(std::string_view kernel, const ParameterBytes& parameters) {
    if (kernel.starts_with("nvjet")) return of_nvjet(parameters);
    for (const SizePlaces& at : families)
        if (at.prefix ? kernel.starts_with(at.name) : kernel.find(at.name) != kernel.npos)
            return checked({1, parameters.word(at.m), parameters.word(at.n), parameters.word(at.k), 0});
    return std::nullopt;
}

}  // namespace rooftile
