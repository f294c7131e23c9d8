#include "rooftile/expression/operators.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "rooftile/expression/emit.hpp"
#include "rooftile/expression/evaluate_row.hpp"
#include "rooftile/expression/meaning.hpp"
#include "rooftile/expression/row_steps.hpp"

namespace rooftile {
namespace {

using Kind = OperatorKind;

constexpr double ulp4 = 4 * bounds::unit;  // 2^-22
constexpr double flushed = 7.6e-37;        // 2^-120: reciprocals below fp32's normal numbers
constexpr StatedError exact_to_2_ulp(double, Element) { return {2 * ulp4}; }
constexpr Attribute epsilon(double preset) { return {"eps", preset, 1e30, "at least 0"}; }
constexpr OpCost selection{1, 0, 1};  // one instruction of the integer and logic pipe

OpCost power_of_number(double exponent) {
    const double e = std::fabs(exponent);
    if (e == std::floor(e) && e <= 16)
        return {std::floor(std::log2(std::max(1.0, e))) + 2 + (exponent < 0 ? 8 : 0), 0};
    if (e == 0.5) return {6, 1};
    return {40, 2};
}

constexpr Operator comparison(Op op, std::string_view sign, double (*exact)(double, double)) {
    Operator row;
    row.op = op;
    row.name = sign;
    row.identifier = "compare";
    row.noun = "test";
    row.precedence = precedence::comparison;
    row.min_operands = row.max_operands = 2;
    row.result = ResultType::boolean;
    row.meaning = {.exact = exact, .bounded = bounded_comparison};
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
     .meaning = {.exact = [](double x, double y) { return x + y; }, .folds = true, .bounded = bounded_sum},
     .code = {.of_flags = "||"}},
    {.op = Op::subtract,
     .name = "-",
     .identifier = "sub",
     .noun = "difference",
     .precedence = precedence::additive,
     .min_operands = 2,
     .max_operands = 2,
     .meaning = {.exact = [](double x, double y) { return x - y; }, .folds = true, .bounded = bounded_sum}},
    {.op = Op::multiply,
     .name = "*",
     .identifier = "mul",
     .noun = "product",
     .precedence = precedence::product,
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_bool,
     .meaning = {.exact = [](double x, double y) { return x * y; },
                 .folds = true,
                 .bounded = bounded_product},
     .code = {.of_flags = "&&"}},
    {.op = Op::divide,
     .name = "/",
     .identifier = "div",
     .noun = "quotient",
     .precedence = precedence::product,
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_fp32,
     .meaning = {.exact = [](double x, double y) { return x / y; },
                 .folds = true,
                 .bounded = bounded_quotient},
     .cost = {.fp32 = {8, 1, 2}},
     .code = {.function = "divide"}},
    {.op = Op::power,
     .name = "**",
     .identifier = "pow",
     .noun = "power",
     .precedence = precedence::power,
     .min_operands = 2,
     .max_operands = 2,
     .meaning = {.exact = [](double x, double y) { return std::pow(x, y); },
                 .folds = true,
                 .bounded = bounded_power},
     .cost = {.fp32 = {91, 2, 33}, .of_number = power_of_number},
     .code = {.text = power_code}},
    comparison(Op::less, "<", [](double x, double y) { return double(x < y); }),
    comparison(Op::less_equal, "<=", [](double x, double y) { return double(x <= y); }),
    comparison(Op::greater, ">", [](double x, double y) { return double(x > y); }),
    comparison(Op::greater_equal, ">=", [](double x, double y) { return double(x >= y); }),
    comparison(Op::equal, "==", [](double x, double y) { return double(x == y); }),
    comparison(Op::not_equal, "!=", [](double x, double y) { return double(x != y); }),
    {.op = Op::negate,
     .name = "-",
     .identifier = "sub",
     .noun = "negative",
     .precedence = precedence::unary,
     .meaning = {.exact = [](double x, double) { return -x; }, .folds = true},
     .code = {.text = negation_code}},
    {.op = Op::exp,
     .name = "exp",
     .result = ResultType::floating_or_fp32,
     .meaning = {.exact = [](double x, double) { return std::exp(x); },
                 .folds = true,
                 .stated = [](double x, Element) -> StatedError { return {(2 + std::fabs(x)) * ulp4}; }},
     .cost = {.fp32 = {8, 1, 1}, .fp16 = OpCost{2, 1}, .bf16 = OpCost{2, 1}},
     .code = {.function = "exponential", .fp16 = "exponential_16", .bf16 = "exponential_16"}},
    {.op = Op::sqrt,
     .name = "sqrt",
     .result = ResultType::floating_or_fp32,
     .meaning = {.exact = [](double x, double) { return std::sqrt(x); },
                 .folds = true,
                 .stated = exact_to_2_ulp},
     .cost = {.fp32 = {4, 1, 1}},
     .code = {.function = "square_root"}},
    {.op = Op::rsqrt,
     .name = "rsqrt",
     .result = ResultType::floating_or_fp32,
     .meaning = {.exact = [](double x, double) { return 1 / std::sqrt(x); },
                 .folds = true,
                 .stated = exact_to_2_ulp},
     .cost = {.fp32 = {4, 1, 1}},
     .code = {.function = "inverse_root"}},
    {.op = Op::cast,
     .name = "cast",
     .aliases = {"fp32", "bf16", "fp16"},
     .meaning = {.bounded = bounded_cast},
     .code = {.text = cast_code}},
    {.op = Op::where,
     .name = "where",
     .arguments = "condition, x, y",
     .min_operands = 3,
     .max_operands = 3,
     .result = ResultType::floating_or_bool,
     .meaning = {.bounded = bounded_where},
     .cost = {.fp32 = selection},
     .code = {.text = where_code}},
    {.op = Op::dropout,
     .name = "dropout",
     .arguments = "x, p, seed=0, offset=0",
     .attributes = {{.name = "p", .most = 1, .domain = "0 .. 1"}, {"seed", 0}, {"offset", 0}},
     .meaning = {.bounded = bounded_dropout},
     // Seven rounds of Philox, each two products and two exclusive ors, make eight elements, of which a thread with
     // vectors of four takes half; folding every other word, comparison, select, product.
     .cost = {.fp32 = {10.5, 0, 5.5}, .fp16 = OpCost{7, 0, 3.75}, .bf16 = OpCost{7, 0, 3.75}},
     .code = {.text = dropout_code}},

    {.name = "abs",
     .noun = "magnitude",
     .meaning = {.exact = [](double x, double) { return std::fabs(x); }, .folds = true},
     .code = {.function = "fabsf"}},
    {.name = "log",
     .result = ResultType::floating_or_fp32,
     .meaning = {.exact = [](double x, double) { return std::log(x); },
                 .folds = true,
                 .stated = exact_to_2_ulp},
     .cost = {.fp32 = {26, 0, 10}},
     .code = {.function = "logarithm"}},
    {.name = "tanh",
     .result = ResultType::floating_or_fp32,
     .meaning = {.exact = [](double x, double) { return std::tanh(x); },
                 .folds = true,
                 .stated = stated_tanh},
     .cost = {.fp32 = {15, 2, 2}, .bf16 = OpCost{1, 1}},
     .code = {.function = "hyperbolic_tangent", .bf16 = "hyperbolic_tangent_bf16"}},
    {.name = "erf",
     .result = ResultType::floating_or_fp32,
     .meaning = {.exact = [](double x, double) { return std::erf(x); },
                 .folds = true,
                 .stated = exact_to_2_ulp},
     .cost = {.fp32 = {22, 1, 11}},
     .code = {.function = "error_function"}},
    {.name = "sigmoid",
     .result = ResultType::floating_or_fp32,
     .meaning = {.exact = [](double x, double) { return exact_sigmoid(x); },
                 .stated = [](double x, Element) -> StatedError {
                     return {(4 + std::fabs(x)) * ulp4, flushed};
                 }},
     .cost = {.fp32 = {4, 2}},
     .code = {.function = "sigmoid"}},
    {.name = "silu",
     .meaning = {.exact = [](double x, double) { return x * exact_sigmoid(x); },
                 .stated = [](double x, Element) -> StatedError {
                     return {(4 + std::fabs(x)) * ulp4, 1.6e-36};  // 2^-119
                 }},
     .cost = {.fp32 = {5, 2}},
     .code = {.function = "silu"}},
    {.name = "relu",
     .meaning = {.exact = [](double x, double) { return std::isnan(x) ? x : std::max(x, 0.0); }},
     .cost = {.fp32 = selection},
     .code = {.function = "relu"}},
    {.name = "softplus",
     .meaning = {
         .exact = [](double x, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); },
         .stated = [](double x, Element) -> StatedError { return {(4 + std::fabs(x)) * ulp4}; }},
     .cost = {.fp32 = {12, 1, 1}},
     .code = {.function = "softplus"}},
    {.name = "gelu",  // by erf
     .meaning = {.exact = [](double x, double) { return exact_gelu(x); }, .stated = stated_gelu},
     .cost = {.fp32 = {16, 2}, .fp16 = OpCost{11, 1}, .bf16 = OpCost{11, 1}},
     .code = {.function = "gelu", .fp16 = "gelu_16<Type::fp16>", .bf16 = "gelu_16<Type::bf16>"}},
    {.name = "gelu_tanh",
     .meaning = {.exact = [](double x, double) { return exact_gelu_tanh(x); }, .stated = stated_gelu_tanh},
     .cost = {.fp32 = {7, 2}},
     .code = {.function = "gelu_tanh"}},
    {.name = "minimum",
     .arguments = "x, y",
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_bool,
     .meaning = {.exact = [](double x, double y) { return std::fmin(x, y); },
                 .folds = true,
                 .bounded = bounded_choice},
     .cost = {.fp32 = selection},
     .code = {.function = "minimum", .of_flags = "&&"}},
    {.name = "maximum",
     .arguments = "x, y",
     .min_operands = 2,
     .max_operands = 2,
     .result = ResultType::floating_or_bool,
     .meaning = {.exact = [](double x, double y) { return std::fmax(x, y); },
                 .folds = true,
                 .bounded = bounded_choice},
     .cost = {.fp32 = selection},
     .code = {.function = "maximum", .of_flags = "||"}},

    {.kind = Kind::keeps_row,
     .name = "softmax",
     .meaning = {.of_row = bounded_softmax},
     .cost = {.fp32 = {12, 2}},
     .steps = {.steps = softmax_steps, .of_one = softmax_of_one}},
    {.kind = Kind::keeps_row,
     .name = "log_softmax",
     .meaning = {.of_row = bounded_log_softmax},
     .cost = {.fp32 = {12, 2}},
     .steps = {.steps = log_softmax_steps, .of_one = log_softmax_of_one}},
    {.kind = Kind::keeps_row,
     .name = "layernorm",
     .arguments = "x, gamma, beta, eps=1e-5",
     .max_operands = 3,
     .attributes = {epsilon(1e-5)},
     .meaning = {.of_row = bounded_layernorm},
     .cost = {.fp32 = {4}, .issue_per_operand = 1},
     .steps = {.steps = layernorm_steps, .of_one = layernorm_of_one}},
    {.kind = Kind::keeps_row,
     .name = "rmsnorm",
     .arguments = "x, gamma, eps=1e-6",
     .max_operands = 2,
     .attributes = {epsilon(1e-6)},
     .meaning = {.of_row = bounded_rmsnorm},
     .cost = {.fp32 = {2}, .issue_per_operand = 1},
     .steps = {.steps = rmsnorm_steps, .of_one = rmsnorm_of_one}},

    {.kind = Kind::reduces_row,
     .name = "sum",
     .meaning = {.of_row = bounded_row_sum},
     .steps = {Reduction::sum, RowPart::sum, nullptr, itself_of_one}},
    {.kind = Kind::reduces_row,
     .name = "mean",
     .meaning = {.of_row = bounded_row_mean},
     .steps = {Reduction::sum, RowPart::mean, nullptr, itself_of_one}},
    {.kind = Kind::reduces_row,
     .name = "max",
     .needs_elements = true,
     .meaning = {.of_row = bounded_row_max},
     .cost = {.fp32 = {2, 0, 1}},
     .steps = {Reduction::max, RowPart::greatest, nullptr, itself_of_one}},
    {.kind = Kind::reduces_row,
     .name = "argmax",
     .result = ResultType::index,
     .needs_elements = true,
     .meaning = {.of_row = bounded_row_argmax},
     .cost = {.fp32 = {4, 0, 4}},
     .steps = {Reduction::argmax, RowPart::place, nullptr, argmax_of_one}},
    {.kind = Kind::reduces_row,
     .name = "logsumexp",
     .meaning = {.of_row = bounded_row_logsumexp},
     .cost = {.fp32 = {12, 2}},
     .steps = {Reduction::exponentials, RowPart::log_sum_exp, nullptr, itself_of_one}},

    {.kind = Kind::reduces_all,
     .name = "sum_all",
     .meaning = {.of_row = bounded_row_sum},
     .steps = {Reduction::sum, RowPart::sum}},
    {.kind = Kind::reduces_all,
     .name = "mean_all",
     .meaning = {.of_row = bounded_row_mean},
     .steps = {Reduction::sum, RowPart::mean}},
    {.kind = Kind::reduces_all,
     .name = "max_all",
     .needs_elements = true,
     .meaning = {.of_row = bounded_row_max},
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
