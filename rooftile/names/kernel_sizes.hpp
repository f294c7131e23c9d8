// What a launch worked on, as far as it can be told: from its parameters, whose places nothing documents and which are taken only where
// they agree with themselves and with the grid, or from the shapes that a framework's range around the launch holds.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rooftile/names/kernel_name.hpp"

namespace rooftile {

/// Of a product C = A B, as its kernel was told; C's rows are those of a row-major reader.
struct ProductSizes {
    std::int64_t batch = 1, m = 0, n = 0, k = 0;
    std::int64_t tiles = 0;  ///< pieces of work, a cluster's each, K's parts counted; 0: not told
    friend auto operator<=>(const ProductSizes&, const ProductSizes&) = default;
};

/// Of queries that look at keys.
struct HeadSizes {
    std::int64_t batch = 1, heads = 0, kv_heads = 0, queries = 0, keys = 0, dim = 0, dim_v = 0;
    std::optional<bool> causal{};  ///< whether a query sees no later key; empty: nothing says it
    friend auto operator<=>(const HeadSizes&, const HeadSizes&) = default;
};

/// Of a kernel that goes over its tensors and mostly moves them.
struct PassSizes {
    struct Tensor {
        std::string type{};                   ///< of an element; empty: not told
        std::int64_t bytes = 0;               ///< of the whole tensor, each element once; 0 where it is one that is read anyway
        std::vector<std::int64_t> extents{};  ///< as many as the loop has; 1 where it is shared along that axis
        friend auto operator<=>(const Tensor&, const Tensor&) = default;
    };
    std::vector<std::int64_t> extents{};  ///< of the loop, outermost first
    std::vector<Tensor> read{}, written{};
    bool again = false;                        ///< two that are read are one
    bool alike = true;                         ///< each tensor is dense in the order of the loop
    bool scattered = false;                    ///< neighbours of the loop are not neighbours of some tensor
    int divided_axes = 0;                      ///< along which each element's place is worked out by a division
    bool plain_division = false;               ///< by numbers that come with the launch, and no multiplication stands for them
    bool types_at_run_time = false;            ///< each element is converted by what its tensor's type is found to be
    int vector_width = 1;                      ///< elements that a thread moves at once
    int thread_elements = 1, row_threads = 0;  ///< elements of a thread; threads of a row; 0: of no row

    std::int64_t elements() const;
    std::int64_t read_bytes() const;
    std::int64_t written_bytes() const;
    friend auto operator<=>(const PassSizes&, const PassSizes&) = default;
};

using KernelSizes = std::variant<ProductSizes, HeadSizes, PassSizes>;

/// The parameters of a launch, as the kernel sees them.
struct ParameterBytes {
    struct Place {
        std::uint32_t offset, size;
    };
    std::vector<Place> places;  ///< of each parameter; empty: they came as one block
    std::string bytes;

    /// The 32-bit number at that offset; `otherwise` where there is none.
    std::int64_t word(std::size_t offset, std::int64_t otherwise = -1) const;
    /// The 64-bit one; 0 where there is none.
    std::uint64_t address(std::size_t offset) const;
};

struct LaunchExtents {
    std::array<std::int32_t, 3> grid{}, block{};
};

/// Empty: no kernel that is known here, or parameters that do not agree.
std::optional<KernelSizes> sizes_of_launch(std::string_view kernel, const KernelName& name, const ParameterBytes& parameters,
                                           const LaunchExtents& launch);

/// From the name of a range that PyTorch opens around an operator with its tensors' shapes: "aten::mm, seq = 3, sizes = [[8, 4], [4, 2]]".
/// Empty: no such operator, or one that asks for several kernels of this role.
std::optional<KernelSizes> sizes_of_range(std::string_view range, const KernelName& name);

}  // namespace rooftile
