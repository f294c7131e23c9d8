// What point-wise operators mean: each in fp64 with a bound on what fp32 arithmetic by kernels/expression may make of it
// (running error analysis). The rows of the operators name these.
#pragma once

#include <cstdint>
#include <span>

#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// One element of a point-wise node.
struct ElementCall {
    const GraphNode& node;
    std::span<const Bounded> x;  ///< of the operands
    std::int64_t index = 0;      ///< of the node's tensor: dropout is keyed on it
    Element precision = Element::fp32;
};

/// By the row of the node's operator.
Bounded bounded_element(const ElementCall& call);

double exact_sigmoid(double x);
double exact_gelu(double x);
double exact_gelu_tanh(double x);

StatedError stated_tanh(double x, Element precision);
StatedError stated_gelu(double x, Element precision);
StatedError stated_gelu_tanh(double x, Element precision);

Bounded bounded_sum(const Operator& row, const ElementCall& call);
Bounded bounded_product(const Operator& row, const ElementCall& call);
Bounded bounded_quotient(const Operator& row, const ElementCall& call);
Bounded bounded_power(const Operator& row, const ElementCall& call);
/// Of a minimum or maximum: one of its operands.
Bounded bounded_choice(const Operator& row, const ElementCall& call);
Bounded bounded_comparison(const Operator& row, const ElementCall& call);
Bounded bounded_cast(const Operator& row, const ElementCall& call);
Bounded bounded_where(const Operator& row, const ElementCall& call);
Bounded bounded_dropout(const Operator& row, const ElementCall& call);

}  // namespace rooftile
