// What is made of a score before its exponential: s = f(s, i, j, tensors), an expression of point-wise operators. In it `s` is the
// score, Q K^T / sqrt(dim); `i` and `j` are the places of its query and its key among the keys, as numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/expression/cost.hpp"
#include "rooftile/expression/expression.hpp"

namespace rooftile {

/// A tensor that the expression reads: one number a head of Q, or one for all.
struct ScoreOperand {
    std::string name;
    Element element = Element::fp32;
    bool by_head = false;
};

/// Immutable once made. The graph's inputs are s, then i and j where it reads them, then the operands in their order.
struct AttentionScore {
    std::string expression;            ///< as given
    std::vector<std::string> tensors;  ///< as given, H as a number: "slope:fp32[32]"
    std::vector<ScoreOperand> operands;
    ExpressionGraph graph;
    /// Of its functions, whatever probabilities are rounded to: what a score is off by is a share of its probability.
    static constexpr Element precision = Element::fp16;
    OpCost cost;             ///< of a thread for one score
    bool by_place = false;   ///< it reads i or j
    /// Of a consumer thread, beside those of plain scores: operands, places, and what one score's value is made of.
    int registers() const;
    bool calls_functions() const;
    std::int64_t bytes(std::int64_t heads) const;
};

/// Null: scores stay as they are. Equal where what was given is.
class SharedScore {
  public:
    SharedScore() = default;
    explicit SharedScore(AttentionScore score) : own_(std::make_shared<const AttentionScore>(std::move(score))) {}
    explicit operator bool() const { return own_ != nullptr; }
    const AttentionScore* operator->() const { return own_.get(); }
    const AttentionScore& operator*() const { return *own_; }
    /// What was given, in one line; empty where there is none.
    std::string text() const;
    friend bool operator==(const SharedScore& x, const SharedScore& y) { return x.text() == y.text(); }

  private:
    std::shared_ptr<const AttentionScore> own_;
};

/// Tensors as "slope:fp32[H]", in which H stands for the heads. None where `expression` is empty. Throws RequestError, one line that
/// says what would work.
SharedScore attention_score(std::int64_t heads, std::string_view expression, const std::vector<std::string>& tensors);

}  // namespace rooftile
