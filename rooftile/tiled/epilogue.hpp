// What is made of a product's sums before they are stored: d = f(alpha * A B + beta * C, operands), an expression of
// point-wise operators. In it `acc` is alpha * A B + beta * C.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/core/problem.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {

/// Numbers of device memory, scale_a and scale_b, that A B is multiplied by: one each, or one a row of A and column of B; or that
/// blocks of K are multiplied by before they are summed, which is none of the epilogue's own work.
enum class Scales : std::uint8_t { none, tensor, row, block };
std::string_view name_of(Scales scales);

/// What an expression sees of the sums: each column, or of pairs of columns the one as its gate, the other as its up, which lie side by
/// side or n / 2 apart.
enum class Pairs : std::uint8_t { none, interleaved, split };
std::string_view name_of(Pairs pairs);

/// How an operand lies over the result: whether its elements differ from row to row, and along a row.
struct EpilogueOperand {
    std::string name;
    Element element = Element::fp32;
    bool by_row = false, by_column = false;
    bool by_product = false;  ///< of a batch, or from group to group
    bool is_one() const { return !by_row && !by_column && !by_product; }  ///< one number for all
    /// Elements that one product has, and those of all.
    std::int64_t elements_of_a_product(std::int64_t m, std::int64_t n) const { return (by_row ? m : 1) * (by_column ? n : 1); }
    std::int64_t elements(std::int64_t batch, std::int64_t m, std::int64_t n) const {
        return (by_product ? batch : 1) * elements_of_a_product(m, n);
    }
};

/// Immutable once made. The graph is that of one product; its first input is the bare sum, [m,n] in fp32, or with pairs two of them, [m,n/2]:
/// gates, then ups; then the operands in their order.
struct Epilogue {
    std::string expression;            ///< as given; empty: alpha and beta alone
    Pairs pairs = Pairs::none;
    Scales scales = Scales::none;      ///< their tensors are the first operands; those of blocks are none
    std::vector<std::string> tensors;  ///< as given, M and N as numbers: "bias:bf16[4096]"
    std::vector<EpilogueOperand> operands;
    ExpressionGraph graph;
    double issue = 0;  ///< issue slots of a thread for one element
    std::int64_t batch = 1;   ///< or groups
    bool of_groups = false;
    double bytes = 0;  ///< of all operands, each read once

    /// Of the operands that have an element for each of the result, those of one.
    std::int64_t element_bytes() const;
    /// Of the graph's inputs, that are sums.
    std::size_t sums() const { return pairs == Pairs::none ? 1 : 2; }
    /// Of the result, where B has `n`.
    std::int64_t columns_of(std::int64_t n) const { return pairs == Pairs::none ? n : n / 2; }
    /// The first is D; the others are as large, dense, and of its type.
    std::size_t results() const { return graph.outputs.size(); }
    const std::string& output() const { return graph.outputs.front().name; }
    /// Neighbours along a row stand in one aligned word.
    bool paired() const;
    /// The first operand of 16 bits that has an element for each of the result and lies in whole 16 bytes a row; empty: none does.
    std::optional<std::size_t> staged_operand() const;
    /// Pairs of neighbours whose operands a thread loads before it uses the first. `staged`: staged_operand() is in shared memory.
    int pairs_in_flight(bool turned, bool staged) const;
    /// Of a pair's operands that come from global memory.
    int pair_registers(bool turned, bool staged) const;
    /// Registers of a thread beside those of a plain store: operands in flight, and the expression's own values.
    int registers(bool turned, bool staged) const;
    /// No operand with elements of its own, no function, no dropout: a chain of operators of the sums and of numbers.
    bool is_light() const;
};

/// Null: none. Equal where what was given is.
class SharedEpilogue {
  public:
    SharedEpilogue() = default;
    explicit SharedEpilogue(Epilogue epilogue)
        : own_(std::make_shared<const Epilogue>(std::move(epilogue))) {}
    explicit operator bool() const { return own_ != nullptr; }
    const Epilogue* operator->() const { return own_.get(); }
    const Epilogue& operator*() const { return *own_; }
    /// What was given, in one line; empty where there is none.
    std::string text() const;
    friend bool operator==(const SharedEpilogue& x, const SharedEpilogue& y) { return x.text() == y.text(); }

  private:
    std::shared_ptr<const Epilogue> own_;
};

/// Tensors as "bias:bf16[N]", in which M and N stand for the sizes and, of one that differs from product to product, B for the batch, or
/// from group to group, G for their number. None where alpha is 1, beta 0, the rest empty and none. `groups`: of the m rows, 0 where there
/// are none. Throws RequestError, one line that says what would work.
SharedEpilogue product_epilogue(std::int64_t m, std::int64_t n, Type result, double alpha, double beta,
                             std::string_view expression, const std::vector<std::string>& tensors, Scales scales = Scales::none,
                             std::int64_t batch = 1, std::int64_t groups = 0, Pairs pairs = Pairs::none);

/// Of groups: that of one of them, which has `rows`; operands in the same order.
SharedEpilogue epilogue_of_group(const Epilogue& groups, std::int64_t rows, std::int64_t n, Type result, double alpha, double beta);

/// An operand as a tensor of the problem, dense: [m,n], [m,1], [n] or one number; of a batch one for each product, [batch,m,n], too, of groups
/// [groups,1,n] or [groups,1,1]. `n`: columns of the result.
TensorInfo epilogue_tensor(const EpilogueOperand& operand, std::int64_t batch, std::int64_t m, std::int64_t n);

/// Sizes that tensors of an epilogue may have.
struct EpilogueSizes {
    std::int64_t m, n, k;
    std::int64_t groups = 0, batch = 0;  ///< how many matrices one may differ between
    bool pairs = false;                  ///< the result has n / 2 columns
    std::vector<std::int64_t> places{};  ///< axes of the result that are its m rows; empty: it has rows alone
    std::int64_t matrices() const { return groups > batch ? groups : batch; }
    std::int64_t columns() const { return pairs ? n / 2 : n; }
    std::string_view width() const { return pairs ? "N/2" : "N"; }
};

/// What an epilogue reads, as one would declare it: "bias:bf16[N]", of many products "bias:bf16[B,1,N]". Throws RequestError, one line that says
/// what would be accepted.
std::string declared_operand(const TensorInfo& tensor, const EpilogueSizes& sizes);

}  // namespace rooftile
