// The operators of expressions, as one table: how each is written, which type it gives, what it means in fp64 and how
// far a kernel may lie from that, what it costs, and its text in a kernel. Whoever needs to know an operator reads its
// row; a new point-wise one is a row here, its meaning in kernels/expression/meaning.hpp, and a device function beside that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "rooftile/expression/bounded.hpp"
#include "rooftile/expression/cost.hpp"

namespace rooftile {

/// An operator: the place of its row in operators(). Those that code puts together or tells apart have a name here;
/// every other one stands behind them and is known by its row alone.
enum class Op : std::uint8_t {
    input,
    number,
    add,
    subtract,
    multiply,
    divide,
    power,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    not_equal,
    negate,
    exp,
    sqrt,
    rsqrt,
    cast,
    where,
    dropout,
};
inline constexpr std::size_t named_operators = std::size_t(Op::dropout) + 1;

enum class OperatorKind : std::uint8_t {
    leaf,         ///< a tensor in memory, or a number
    pointwise,    ///< of elements
    keeps_row,    ///< along the last axis, shape kept
    reduces_row,  ///< along the last axis, which is then 1
    reduces_columns,  ///< along all axes but the last, which alone is left
    reduces_all,      ///< of the whole tensor, which is then one number without axes
};

/// What an operator takes besides tensors: a number, by place or by name.
struct Attribute {
    std::string_view name{};
    double preset = std::numeric_limits<double>::quiet_NaN();  ///< NaN: must be given
    double most = 0;                                           ///< from 0 to this
    std::string_view domain{};                                 ///< in words; empty: an integer of 64 bits
};

/// The element type of a result; `mixed` is PyTorch's mixture of the operands', of a row operation the first one's.
enum class ResultType : std::uint8_t {
    floating,          ///< mixed, which must be floating
    floating_or_fp32,  ///< mixed where that is floating, else fp32
    floating_or_bool,  ///< mixed, which must be floating or bool
    boolean,
    index,  ///< int64
};

/// How the values of a row, or of everything, come together.
enum class Reduction : std::uint8_t {
    sum,
    square_sum,
    max,
    argmax,
    exponentials,  ///< greatest value, and the sum of exp(value - greatest): online softmax
    moments,       ///< mean and the sum of squared deviations, by Chan's formula
};
std::string_view name_of(Reduction reduction);

/// What a reduction gives. `inverse`s exist so that a row divides once.
enum class RowPart : std::uint8_t {
    sum,                ///< of sum and square_sum
    mean,               ///< sum / columns; of square_sum and moments likewise
    greatest,           ///< of max, argmax and exponentials
    place,              ///< column, of argmax
    inverse_sum,        ///< of exponentials
    log_sum,            ///< log of exponentials' sum
    log_sum_exp,        ///< greatest + log_sum; +Inf where the greatest is
    inverse_deviation,  ///< rsqrt(variance + epsilon), of moments
    inverse_root,       ///< rsqrt(mean of squares + epsilon), of square_sum
};

struct Operator;
struct ElementCall;
struct HostRow;
class RowSteps;
struct RowCall;
struct CodeText;
class CodeOperands;

/// A function of kernels/expression/meaning.hpp or row_meaning.hpp: for the host, and by its name for device code that is
/// compiled from the same lines.
template <class Function>
struct Meaning {
    Function* host = nullptr;
    std::string_view name{};
    constexpr explicit operator bool() const { return host != nullptr; }
};

/// What an operator means in fp64.
struct OperatorMeaning {
    /// Numbers alone become the number that this gives of them; of one operand the second is 0. None: they stay.
    double (*folded)(double x, double y) = nullptr;
    Meaning<Bounded(const ElementCall& call)> element{};  ///< of a point-wise operator
    Meaning<void(HostRow& row)> row{};                    ///< of one of rows, or of everything
};

/// An operator's text in a kernel. Where nothing else is said it is a C++ sign of the operator's own name.
struct OperatorCode {
    std::string_view function{};  ///< a device function of kernels/expression, or CUDA's
    /// Cheaper ones for results of that type; empty: `function`.
    std::string_view fp16{}, bf16{};
    std::string_view score{};  ///< as precise as that for fp16, of scores before a softmax; empty: that
    std::string_view of_flags{};  ///< the sign between flags
    CodeText (*text)(const CodeOperands& operands) = nullptr;
};

/// How a row operation is taken apart (row_steps.hpp).
struct OperatorSteps {
    Reduction reduction = Reduction::sum;                       ///< of one that reduces
    RowPart part = RowPart::sum;                                ///< and what it takes of that
    int (*steps)(RowSteps& to, const RowCall& call) = nullptr;  ///< of one that keeps the row
    int (*of_one)(RowSteps& to, const RowCall& call) = nullptr;
};

/// How strongly signs bind, in the language and in C++ alike.
namespace precedence {
inline constexpr int comparison = 1, additive = 2, product = 3, unary = 4, power = 5, call = 9;
}

struct Operator {
    Op op = Op::input;  ///< given where Op has a name for it, else the row's place
    OperatorKind kind = OperatorKind::pointwise;
    std::string_view name{};           ///< as written in an expression: "+", "gelu_tanh", "sum"
    std::string_view aliases[3]{};     ///< written instead of it
    std::string_view arguments = "x";  ///< of a function, for messages: "x, gamma, beta, eps=1e-5"
    std::string_view identifier{};     ///< in names of kernels; empty: `name`
    std::string_view noun{};           ///< in names of its values in kernels; empty: `name`
    int precedence = precedence::call;
    int min_operands = 1, max_operands = 1;
    Attribute attributes[3]{};
    ResultType result = ResultType::floating;
    bool needs_elements = false;  ///< of nothing it has no value
    bool scales = false;          ///< an operand's relative error is the result's: no sum in which it could grow
    OperatorMeaning meaning{};
    OperatorCost cost{};
    OperatorCode code{};
    OperatorSteps steps{};
};

std::span<const Operator> operators();
const Operator& operator_of(Op op);
/// The operator of that sign between two operands; null where it is none.
const Operator* operator_of_sign(std::string_view sign);
/// A function of the language, by name or alias; null where there is none.
const Operator* function_named(std::string_view name);
/// The same, of a function that there is.
Op op_named(std::string_view name);
/// The function's name closest to `name`; empty where none is close.
std::string_view closest_function(std::string_view name);

/// As written in an expression.
std::string_view name_of(Op op);
/// In names of kernels; in names of its values there.
std::string_view identifier_of(Op op);
std::string_view noun_of(Op op);
bool is_comparison(Op op);
bool keeps_row(Op op);
bool reduces_row(Op op);
bool is_row_operation(Op op);
bool reduces_columns(Op op);
bool reduces_all(Op op);

}  // namespace rooftile
