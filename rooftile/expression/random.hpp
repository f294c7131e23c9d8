// Random expressions of the language that have a value: for properties that hold of all, and for draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rooftile {

struct RandomExpression {
    std::string text;                  ///< "y = ..."
    std::vector<std::string> tensors;  ///< declarations of those that it uses
};

/// Expressions over tensors of one space: full, of a row, of a column, and without axes. Row operations and
/// dropout now and then. The same for the same seed, with any compiler.
class RandomExpressions {
  public:
    explicit RandomExpressions(std::uint64_t seed) : random_(seed) {}
    RandomExpression next();

  private:
    std::size_t pick(std::size_t n) { return std::size_t(random_() % n); }
    std::string leaf();
    std::string tensor();
    std::string floating(int depth);
    std::string leaf_or_call(int depth);
    std::string function(int depth);
    std::string row(int depth);
    std::string dropped(int depth);

    std::mt19937_64 random_;
    std::vector<bool> used_;
};

}  // namespace rooftile
