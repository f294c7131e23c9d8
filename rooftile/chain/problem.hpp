// Y = act(X W1^T) W2^T, or X more: two products in a row, whose intermediate H nobody wants but the second one. X is m x d, W1
// ff x d, W2 d x ff, all row-major, as linear layers have them; of swiglu W1 is 2 ff x d, gates above ups.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/problem.hpp"

namespace rooftile {

enum class ChainAct : std::uint8_t { gelu, silu, relu, swiglu };
std::string_view name_of(ChainAct act);

inline constexpr std::int64_t max_chain_extent = std::int64_t{1} << 30;
inline constexpr std::int64_t chain_step = 8;  ///< of d and ff: rows begin at multiples of 16 bytes

struct ChainProblem {
    std::int64_t m = 1, d = 64, ff = 256;
    ChainAct act = ChainAct::gelu;
    bool residual = false;  ///< Y = X + ...
    Type type = Type::bf16;

    static constexpr std::int64_t element_bytes = 2;
    /// Rows of W1.
    std::int64_t first_width() const { return act == ChainAct::swiglu ? 2 * ff : ff; }
    double flops() const { return 2.0 * double(m) * double(d) * (double(first_width()) + double(ff)); }
    std::int64_t x_bytes() const { return m * d * element_bytes; }
    std::int64_t w1_bytes() const { return first_width() * d * element_bytes; }
    std::int64_t w2_bytes() const { return ff * d * element_bytes; }
    std::int64_t h_bytes() const { return m * ff * element_bytes; }
    std::int64_t y_bytes() const { return x_bytes(); }
    /// Everything but H once: no schedule moves less between DRAM and the chip. More than that is proven of single products, and no
    /// sum of their bounds is a bound of the chain, whose intermediate need not move [M33; Saha and Ye 2024 for attention].
    std::int64_t compulsory_bytes() const { return x_bytes() + w1_bytes() + w2_bytes() + y_bytes(); }

    friend bool operator==(const ChainProblem&, const ChainProblem&) = default;
};

std::string_view chain_type_name(Type type);
/// Throws RequestError, one line, where no such problem can be had.
void check(const ChainProblem& problem);
/// X, W1, W2 and Y.
std::vector<TensorInfo> chain_tensors(const ChainProblem& problem);

}  // namespace rooftile
