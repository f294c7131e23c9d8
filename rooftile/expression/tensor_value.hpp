// Expressions written in C++: values with operators, which build the same graph as the language.
//
//     ExpressionBuilder f;
//     auto x = f.tensor("x", Element::bf16, {16384, 4096}), r = f.tensor("r", Element::bf16, {16384, 4096});
//     auto gamma = f.tensor("gamma", Element::bf16, {4096}), beta = f.tensor("beta", Element::bf16, {4096});
//     f.output("y", gelu(layernorm(x, gamma, beta) + r));
//     const ExpressionGraph graph = f.graph();
#pragma once

#include <string>

#include "rooftile/expression/graph_builder.hpp"

namespace rooftile {

/// A tensor of an expression; belongs to its ExpressionBuilder, which outlives it. What cannot be computed throws
/// ExpressionError.
class TensorValue {
  public:
    const Shape& shape() const { return builder_->node(node_).shape; }
    Element element() const { return builder_->node(node_).element; }

    /// Any function of the language that takes `x` alone, by its name: function("gelu", x).
    friend TensorValue function(std::string_view name, TensorValue x) { return operation(op_named(name), x); }
    friend TensorValue operation(Op op, TensorValue x) { return x.made(x.builder_->apply(op, {x.node_})); }
    friend TensorValue operation(Op op, TensorValue x, TensorValue y) {
        return x.made(x.builder_->apply(op, {x.node_, y.node_}));
    }
    friend TensorValue operation(Op op, TensorValue x, double y) {
        return operation(op, x, x.made(x.builder_->number(y)));
    }
    friend TensorValue operation(Op op, double x, TensorValue y) {
        return operation(op, y.made(y.builder_->number(x)), y);
    }
    friend TensorValue where(TensorValue condition, TensorValue x, TensorValue y) {
        return x.made(x.builder_->apply(Op::where, {condition.node_, x.node_, y.node_}));
    }
    friend TensorValue where(TensorValue condition, TensorValue x, double y) {
        return where(condition, x, x.made(x.builder_->number(y)));
    }
    friend TensorValue cast(Element to, TensorValue x) { return x.made(x.builder_->cast(to, x.node_)); }
    friend TensorValue layernorm(TensorValue x, TensorValue gamma, TensorValue beta, double epsilon = 1e-5) {
        return x.made(
            x.builder_->apply(op_named("layernorm"), {x.node_, gamma.node_, beta.node_}, {.value = epsilon}));
    }
    friend TensorValue layernorm(TensorValue x, double epsilon = 1e-5) {
        return x.made(x.builder_->apply(op_named("layernorm"), {x.node_}, {.value = epsilon}));
    }
    friend TensorValue rmsnorm(TensorValue x, TensorValue gamma, double epsilon = 1e-6) {
        return x.made(x.builder_->apply(op_named("rmsnorm"), {x.node_, gamma.node_}, {.value = epsilon}));
    }
    friend TensorValue dropout(TensorValue x, double p, std::uint64_t seed, std::uint64_t offset = 0) {
        return x.made(
            x.builder_->apply(Op::dropout, {x.node_}, {.value = p, .seed = seed, .offset = offset}));
    }

  private:
    friend class ExpressionBuilder;
    TensorValue(GraphBuilder* builder, int node) : builder_(builder), node_(node) {}
    TensorValue made(int node) const { return {builder_, node}; }
    GraphBuilder* builder_;
    int node_;
};

#define ROOFTILE_BINARY(name, op)                                                             \
    inline TensorValue name(TensorValue x, TensorValue y) { return operation(Op::op, x, y); } \
    inline TensorValue name(TensorValue x, double y) { return operation(Op::op, x, y); }      \
    inline TensorValue name(double x, TensorValue y) { return operation(Op::op, x, y); }
ROOFTILE_BINARY(operator+, add)
ROOFTILE_BINARY(operator-, subtract)
ROOFTILE_BINARY(operator*, multiply)
ROOFTILE_BINARY(operator/, divide)
ROOFTILE_BINARY(operator<, less)
ROOFTILE_BINARY(operator<=, less_equal)
ROOFTILE_BINARY(operator>, greater)
ROOFTILE_BINARY(operator>=, greater_equal)
ROOFTILE_BINARY(equal, equal)
ROOFTILE_BINARY(not_equal, not_equal)
ROOFTILE_BINARY(power, power)
#undef ROOFTILE_BINARY

#define ROOFTILE_BINARY_FUNCTION(name)                                                                 \
    inline TensorValue name(TensorValue x, TensorValue y) { return operation(op_named(#name), x, y); } \
    inline TensorValue name(TensorValue x, double y) { return operation(op_named(#name), x, y); }      \
    inline TensorValue name(double x, TensorValue y) { return operation(op_named(#name), x, y); }
ROOFTILE_BINARY_FUNCTION(minimum)
ROOFTILE_BINARY_FUNCTION(maximum)
#undef ROOFTILE_BINARY_FUNCTION

inline TensorValue operator-(TensorValue x) { return operation(Op::negate, x); }
#define ROOFTILE_UNARY(name, written) \
    inline TensorValue name(TensorValue x) { return function(written, x); }
ROOFTILE_UNARY(absolute, "abs")
ROOFTILE_UNARY(exp, "exp")
ROOFTILE_UNARY(log, "log")
ROOFTILE_UNARY(tanh, "tanh")
ROOFTILE_UNARY(erf, "erf")
ROOFTILE_UNARY(sqrt, "sqrt")
ROOFTILE_UNARY(rsqrt, "rsqrt")
ROOFTILE_UNARY(sigmoid, "sigmoid")
ROOFTILE_UNARY(silu, "silu")
ROOFTILE_UNARY(relu, "relu")
ROOFTILE_UNARY(gelu, "gelu")
ROOFTILE_UNARY(gelu_tanh, "gelu_tanh")
ROOFTILE_UNARY(softmax, "softmax")
ROOFTILE_UNARY(log_softmax, "log_softmax")
ROOFTILE_UNARY(row_sum, "sum")
ROOFTILE_UNARY(row_mean, "mean")
ROOFTILE_UNARY(row_max, "max")
ROOFTILE_UNARY(row_argmax, "argmax")
ROOFTILE_UNARY(row_logsumexp, "logsumexp")
ROOFTILE_UNARY(all_sum, "sum_all")
ROOFTILE_UNARY(all_mean, "mean_all")
ROOFTILE_UNARY(all_max, "max_all")
#undef ROOFTILE_UNARY

/// Collects the tensors and outputs of one expression.
class ExpressionBuilder {
  public:
    TensorValue tensor(std::string name, Element element, Shape shape) {
        return {&builder_, builder_.input(std::move(name), element, std::move(shape))};
    }
    void output(std::string name, TensorValue value) { builder_.output(std::move(name), value.node_); }
    ExpressionGraph graph() { return builder_.take(); }

  private:
    GraphBuilder builder_;
};

}  // namespace rooftile
