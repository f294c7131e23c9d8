// How a row operation is taken apart: reductions of the row, numbers that follow from them, and point-wise operations.
// Whoever makes a kernel of an expression implements RowSteps.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rooftile/expression/operators.hpp"

namespace rooftile {

/// Makes values, each named by an index of the maker's own.
class RowSteps {
  public:
    virtual ~RowSteps() = default;
    virtual int number(double x) = 0;
    virtual int compute(Op op, std::vector<int> operands) = 0;
    virtual int reduce(Reduction reduction, int x) = 0;
    /// `epsilon` is that of inverse_deviation and inverse_root.
    virtual int part(RowPart part, int reduction, double epsilon = 0) = 0;
};

/// A row operation on values of a RowSteps.
struct RowCall {
    int x = 0;
    std::vector<int> weights{};  ///< gamma, beta; as far as given
    double epsilon = 0;
};

int softmax_steps(RowSteps& to, const RowCall& call);
int log_softmax_steps(RowSteps& to, const RowCall& call);
int layernorm_steps(RowSteps& to, const RowCall& call);
int rmsnorm_steps(RowSteps& to, const RowCall& call);

/// The same of rows of one value, which need no reduction.
int softmax_of_one(RowSteps& to, const RowCall& call);
int log_softmax_of_one(RowSteps& to, const RowCall& call);
int layernorm_of_one(RowSteps& to, const RowCall& call);
int rmsnorm_of_one(RowSteps& to, const RowCall& call);
int argmax_of_one(RowSteps& to, const RowCall& call);
/// A sum, mean or greatest of one.
int itself_of_one(RowSteps& to, const RowCall& call);

}  // namespace rooftile
