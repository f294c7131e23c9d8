#include "rooftile/expression/operators.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/expression/meaning.hpp"
#include "kernels/expression/row_meaning.hpp"
#include "rooftile/expression/emit.hpp"
#include "rooftile/expression/host_row.hpp"
#include "rooftile/expression/row_steps.hpp"

namespace rooftile {
namespace {

using Kind = OperatorKind;
using namespace meaning;

// The function and its name, so that both stand once.
#define ROOFTILE_ELEMENT(...) {__VA_ARGS__, #__VA_ARGS__}
#define ROOFTILE_ROW(function) {function<HostRow>, #function}

/// How many axes a reduction of columns is told to leave out, which must be all but the last; 0: it is not told.
constexpr Attribute reduced_axes{"axes", 0, 7, "0 .. 7"};
constexpr Attribute epsilon(double preset) { return {"eps", preset, 1e30, "at least 0"}; }
constexpr OpCost selection{1, 0, 1};  // one instruction of the integer and logic pipe

OpCost power_of_number(double exponent) {
    const double e = std::fabs(exponent);
    if (e == std::floor(e) && e <= 16)
        return {std::floor(std::log2(std::max(1.0, e))) + 2 + (exponent < 0 ? 8 : 0), 0};
    if (e == 0.5) return {6, 1};
    return {40, 2};
}

constexpr Operator compares(Op op, std::string_view sign, Meaning<Bounded(const ElementCall&)> element) {
    Operator row;
    row.op = op;
    row.name = sign;
    row.identifier = "compare";
    row.noun = "test";
    row.precedence = precedence::comparison;
    row.min_operands = row.max_operands = 2;
    row.result = ResultType::boolean;
    row.meaning.element = element;
    row.cost.fp32 = selection;
    return row;
}

// First the rows that Op names, in its order; behind them those that it does not.
constexpr Operator rows[] = {
    {.op = Op::input, .kind = Kind::leaf, .name = "input", .cost = {.fp32 = {}}},
    {.op = Op::number, .kind = Kind::leaf, .name = "number", .cost = {.fp32 = {}}},
    {.op = Op::add,
     .name = "+",
     .identifier = "add",
     .noun = "sum",
     .precedence = precedence::additive,
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_bool,
     .meaning = {.folded = exact_sum, .element = ROOFTILE_ELEMENT(sum<exact_sum>)},
     .code = {.of_flags = "||"}},
    {.op = Op::subtract,
     .name = "-",
     .identifier = "sub",
     .noun = "difference",
     .precedence = precedence::additive,
     .min_operands = 2,
     .max_operands = 2,
     .meaning = {.folded = exact_difference, .element = ROOFTILE_ELEMENT(sum<exact_difference>)}},
    {.op = Op::multiply,
     .name = "*",
     .identifier = "mul",
     .noun = "product",
     .precedence = precedence::product,
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_bool,
     .scales = true,
     .meaning = {.folded = exact_product, .element = ROOFTILE_ELEMENT(product)},
     .code = {.of_flags = "&&"}},
    {.op = Op::divide,
     .name = "/",
     .identifier = "div",
     .noun = "quotient",
     .precedence = precedence::product,
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_fp32,
     .scales = true,
     .meaning = {.folded = exact_quotient, .element = ROOFTILE_ELEMENT(quotient)},
     .cost = {.fp32 = {8, 1, 2}},
     .code = {.function = "divide"}},
    {.op = Op::power,
     .name = "**",
     .identifier = "pow",
     .noun = "power",
     .precedence = precedence::power,
     .min_operands = 2,
     .max_operands = 2,
     .meaning = {.folded = exact_power, .element = ROOFTILE_ELEMENT(power)},
     .cost = {.fp32 = {91, 2, 33}, .of_number = power_of_number},
     .code = {.text = power_code}},
    compares(Op::less, "<", ROOFTILE_ELEMENT(comparison<exact_less>)),
    compares(Op::less_equal, "<=", ROOFTILE_ELEMENT(comparison<exact_less_equal>)),
    compares(Op::greater, ">", ROOFTILE_ELEMENT(comparison<exact_greater>)),
    compares(Op::greater_equal, ">=", ROOFTILE_ELEMENT(comparison<exact_greater_equal>)),
    compares(Op::equal, "==", ROOFTILE_ELEMENT(comparison<exact_equal>)),
    compares(Op::not_equal, "!=", ROOFTILE_ELEMENT(comparison<exact_not_equal>)),
    {.op = Op::negate,
     .name = "-",
     .identifier = "sub",
     .noun = "negative",
     .precedence = precedence::unary,
     .scales = true,
     .meaning = {.folded = exact_negative, .element = ROOFTILE_ELEMENT(function<exact_negative>)},
     .code = {.text = negation_code}},
    {.op = Op::exp,
     .name = "exp",
     .result = ResultType::floating_or_fp32,
     .meaning = {.folded = exact_exponential, .element = ROOFTILE_ELEMENT(function<exact_exponential, stated_exponential>)},
     .cost = {.fp32 = {8, 1, 1}, .fp16 = OpCost{2, 1}, .bf16 = OpCost{3, 1}},
     .code = {.function = "exponential", .fp16 = "exponential_16", .bf16 = "exponential_bf16"}},
    {.op = Op::sqrt,
     .name = "sqrt",
     .result = ResultType::floating_or_fp32,
     .scales = true,
     .meaning = {.folded = exact_root, .element = ROOFTILE_ELEMENT(function<exact_root, stated_2_ulp>)},
     .cost = {.fp32 = {4, 1, 1}},
     .code = {.function = "square_root"}},
    {.op = Op::rsqrt,
     .name = "rsqrt",
     .result = ResultType::floating_or_fp32,
     .scales = true,
     .meaning = {.folded = exact_inverse_root, .element = ROOFTILE_ELEMENT(function<exact_inverse_root, stated_2_ulp>)},
     .cost = {.fp32 = {4, 1, 1}},
     .code = {.function = "inverse_root"}},
    {.op = Op::cast,
     .name = "cast",
     .aliases = {"fp32", "bf16", "fp16"},
     .scales = true,
     .meaning = {.element = ROOFTILE_ELEMENT(cast)},
     .code = {.text = cast_code}},
    {.op = Op::where,
     .name = "where",
     .arguments = "condition, x, y",
     .min_operands = 3,
     .max_operands = 3,
     .result = ResultType::floating_or_bool,
     .scales = true,
     .meaning = {.element = ROOFTILE_ELEMENT(where)},
     .cost = {.fp32 = selection},
     .code = {.text = where_code}},
    {.op = Op::dropout,
     .name = "dropout",
     .arguments = "x, p, seed=0, offset=0",
     .attributes = {{.name = "p", .most = 1, .domain = "0 .. 1"}, {"seed", 0}, {"offset", 0}},
     .scales = true,
     .meaning = {.element = ROOFTILE_ELEMENT(dropout)},
     // Of fp32 a thread with vectors of four takes half of a block of eight.
     .cost = {.fp32 = dropout_cost(1.0 / 4, 4), .fp16 = dropout_cost(1.0 / 8, 8), .bf16 = dropout_cost(1.0 / 8, 8)},
     .code = {.text = dropout_code}},

    {.name = "abs",
     .noun = "magnitude",
     .scales = true,
     .meaning = {.folded = exact_magnitude, .element = ROOFTILE_ELEMENT(function<exact_magnitude>)},
     .code = {.function = "fabsf"}},
    {.name = "log",
     .result = ResultType::floating_or_fp32,
     .meaning = {.folded = exact_logarithm, .element = ROOFTILE_ELEMENT(function<exact_logarithm, stated_2_ulp>)},
     .cost = {.fp32 = {26, 0, 10}},
     .code = {.function = "logarithm"}},
    {.name = "tanh",
     .result = ResultType::floating_or_fp32,
     .meaning = {.folded = exact_tanh, .element = ROOFTILE_ELEMENT(function<exact_tanh, stated_tanh>)},
     .cost = {.fp32 = {15, 2, 2}, .fp16 = OpCost{11, 2, 2}, .bf16 = OpCost{1, 1}, .score = OpCost{12, 1, 2}},
     .code = {.function = "hyperbolic_tangent",
              .fp16 = "hyperbolic_tangent_16",
              .bf16 = "hyperbolic_tangent_bf16",
              .score = "hyperbolic_tangent_of_score"}},
    {.name = "erf",
     .result = ResultType::floating_or_fp32,
     .meaning = {.folded = exact_erf, .element = ROOFTILE_ELEMENT(function<exact_erf, stated_2_ulp>)},
     .cost = {.fp32 = {22, 1, 11}},
     .code = {.function = "error_function"}},
    {.name = "sigmoid",
     .result = ResultType::floating_or_fp32,
     .meaning = {.element = ROOFTILE_ELEMENT(function<exact_sigmoid, stated_sigmoid>)},
     .cost = {.fp32 = {5, 2}},
     .code = {.function = "sigmoid"}},
    {.name = "silu",
     .meaning = {.element = ROOFTILE_ELEMENT(function<exact_silu, stated_sigmoid>)},
     .cost = {.fp32 = {6, 2}},
     .code = {.function = "silu"}},
    {.name = "relu",
     .scales = true,
     .meaning = {.element = ROOFTILE_ELEMENT(function<exact_relu>)},
     .cost = {.fp32 = selection},
     .code = {.function = "relu"}},
    {.name = "softplus",
     .meaning = {.element = ROOFTILE_ELEMENT(function<exact_softplus, stated_softplus>)},
     .cost = {.fp32 = {13, 1, 1}},
     .code = {.function = "softplus"}},
    {.name = "gelu",  // by erf
     .meaning = {.element = ROOFTILE_ELEMENT(function<exact_gelu, stated_gelu>)},
     .cost = {.fp32 = {16, 2}, .fp16 = OpCost{11, 1}, .bf16 = OpCost{11, 1}},
     .code = {.function = "gelu", .fp16 = "gelu_16<Type::fp16>", .bf16 = "gelu_16<Type::bf16>"}},
    {.name = "gelu_tanh",
     .meaning = {.element = ROOFTILE_ELEMENT(function<exact_gelu_tanh, stated_gelu_tanh>)},
     .cost = {.fp32 = {8, 2}},
     .code = {.function = "gelu_tanh"}},
    {.name = "minimum",
     .arguments = "x, y",
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_bool,
     .scales = true,
     .meaning = {.folded = exact_minimum, .element = ROOFTILE_ELEMENT(choice<exact_minimum>)},
     .cost = {.fp32 = selection},
     .code = {.function = "minimum", .of_flags = "&&"}},
    {.name = "maximum",
     .arguments = "x, y",
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_bool,
     .scales = true,
     .meaning = {.folded = exact_maximum, .element = ROOFTILE_ELEMENT(choice<exact_maximum>)},
     .cost = {.fp32 = selection},
     .code = {.function = "maximum", .of_flags = "||"}},

    {.kind = Kind::keeps_row,
     .name = "softmax",
     .meaning = {.row = ROOFTILE_ROW(softmax)},
     .cost = {.fp32 = {12, 2}},
     .steps = {.steps = softmax_steps, .of_one = softmax_of_one}},
    {.kind = Kind::keeps_row,
     .name = "log_softmax",
     .meaning = {.row = ROOFTILE_ROW(log_softmax)},
     .cost = {.fp32 = {12, 2}},
     .steps = {.steps = log_softmax_steps, .of_one = log_softmax_of_one}},
    {.kind = Kind::keeps_row,
     .name = "layernorm",
     .arguments = "x, gamma, beta, eps=1e-5",
     .max_operands = 3,
     .attributes = {epsilon(1e-5)},
     .meaning = {.row = ROOFTILE_ROW(layernorm)},
     .cost = {.fp32 = {4}, .issue_per_operand = 1},
     .steps = {.steps = layernorm_steps, .of_one = layernorm_of_one}},
    {.kind = Kind::keeps_row,
     .name = "rmsnorm",
     .arguments = "x, gamma, eps=1e-6",
     .max_operands = 2,
     .attributes = {epsilon(1e-6)},
     .meaning = {.row = ROOFTILE_ROW(rmsnorm)},
     .cost = {.fp32 = {2}, .issue_per_operand = 1},
     .steps = {.steps = rmsnorm_steps, .of_one = rmsnorm_of_one}},

    {.kind = Kind::reduces_row,
     .name = "sum",
     .meaning = {.row = ROOFTILE_ROW(row_sum)},
     .steps = {Reduction::sum, RowPart::sum, nullptr, itself_of_one}},
    {.kind = Kind::reduces_row,
     .name = "mean",
     .meaning = {.row = ROOFTILE_ROW(row_mean)},
     .steps = {Reduction::sum, RowPart::mean, nullptr, itself_of_one}},
    {.kind = Kind::reduces_row,
     .name = "max",
     .needs_elements = true,
     .meaning = {.row = ROOFTILE_ROW(row_max)},
     .cost = {.fp32 = {2, 0, 1}},
     .steps = {Reduction::max, RowPart::greatest, nullptr, itself_of_one}},
    {.kind = Kind::reduces_row,
     .name = "argmax",
     .result = ResultType::index,
     .needs_elements = true,
     .meaning = {.row = ROOFTILE_ROW(row_argmax)},
     .cost = {.fp32 = {4, 0, 4}},
     .steps = {Reduction::argmax, RowPart::place, nullptr, argmax_of_one}},
    {.kind = Kind::reduces_row,
     .name = "logsumexp",
     .meaning = {.row = ROOFTILE_ROW(row_logsumexp)},
     .cost = {.fp32 = {12, 2}},
     .steps = {Reduction::exponentials, RowPart::log_sum_exp, nullptr, itself_of_one}},

    {.kind = Kind::reduces_columns,
     .name = "column_sum",
     .arguments = "x, axes=0",
     .attributes = {reduced_axes},
     .meaning = {.row = ROOFTILE_ROW(column_sum)},
     .steps = {Reduction::sum, RowPart::sum}},
    {.kind = Kind::reduces_columns,
     .name = "column_mean",
     .arguments = "x, axes=0",
     .attributes = {reduced_axes},
     .meaning = {.row = ROOFTILE_ROW(column_mean)},
     .steps = {Reduction::sum, RowPart::mean}},
    {.kind = Kind::reduces_columns,
     .name = "column_max",
     .arguments = "x, axes=0",
     .attributes = {reduced_axes},
     .needs_elements = true,
     .meaning = {.row = ROOFTILE_ROW(row_max)},
     .cost = {.fp32 = {2, 0, 1}},
     .steps = {Reduction::max, RowPart::greatest}},

    {.kind = Kind::reduces_all,
     .name = "sum_all",
     .meaning = {.row = ROOFTILE_ROW(row_sum)},
     .steps = {Reduction::sum, RowPart::sum}},
    {.kind = Kind::reduces_all,
     .name = "mean_all",
     .meaning = {.row = ROOFTILE_ROW(row_mean)},
     .steps = {Reduction::sum, RowPart::mean}},
    {.kind = Kind::reduces_all,
     .name = "max_all",
     .needs_elements = true,
     .meaning = {.row = ROOFTILE_ROW(row_max)},
     .cost = {.fp32 = {2, 0, 1}},
     .steps = {Reduction::max, RowPart::greatest}},
};

/// A row's operator is its place.
constexpr auto numbered() {
    std::array<Operator, std::size(rows)> table = std::to_array(rows);
    for (std::size_t i = 0; i < table.size(); ++i) {
        // What Op names must stand where Op says: no compiler takes a throw in a constant.
        if (i < named_operators ? table[i].op != Op(i) : table[i].op != Op::input) throw "out of order";
        table[i].op = Op(i);
    }
    return table;
}
constexpr auto table = numbered();

}  // namespace

std::span<const Operator> operators() { return table; }

const Operator& operator_of(Op op) { return table[std::size_t(op)]; }

}  // namespace rooftile
