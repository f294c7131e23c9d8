// Random expressions of the language that have a value: for properties that hold of all, and for draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rooftile/core/random.hpp"
#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// How a tensor lies in a space of rows and columns.
enum class Extents : std::uint8_t {
    full,
    row,     ///< one row, for all
    column,  ///< one number a row
    number,  ///< one for all
};
Shape shape_of(Extents extents, std::int64_t rows, std::int64_t columns);

/// What is computed, and on what, before types and sizes are chosen.
struct ExpressionForm {
    std::string body;  ///< without "y = "
    std::vector<std::pair<std::string, Extents>> tensors;
};

struct RandomExpression {
    std::string text;                  ///< "y = ..."
    std::vector<std::string> tensors;  ///< declarations of those that it uses
};

/// Expressions over tensors of one space: full, of a row, of a column, and without axes. Row operations and
/// dropout now and then. The same for the same seed, with any compiler.
class RandomExpressions {
  public:
    explicit RandomExpressions(std::uint64_t seed) : random_(seed) {}
    ExpressionForm form();
    /// Of up to 40 rows, each tensor of a type of its own.
    RandomExpression next();

  private:
    std::size_t pick(std::size_t n) { return random_.pick(n); }
    std::string leaf();
    std::string tensor();
    std::string floating(int depth);
    std::string leaf_or_call(int depth);
    std::string function(int depth);
    std::string row(int depth);
    std::string dropped(int depth);

    Random random_;
    std::vector<bool> used_;
};

}  // namespace rooftile
