// An expression as it was written: a tree in the order in which it is computed, operands before what uses
// them, so that nothing that reads it needs recursion.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

enum class TreeKind : std::uint8_t { integer, real, name, call, unary, binary };

struct TreeNode {
    TreeKind kind = TreeKind::name;
    std::string_view text{};  ///< the name, the function or the sign, of the expression's text
    int column = 1;
    double value = 0;                          ///< of a number
    std::uint64_t integer = 0;                 ///< of an integer
    std::vector<int> operands{};               ///< indices of earlier nodes
    std::vector<std::string_view> keywords{};  ///< one an operand of a call; empty: by position
};

struct Statement {
    std::string_view name;
    int column = 1;
    int value = 0;  ///< index of a node
};

struct ExpressionTree {
    std::vector<TreeNode> nodes;
    std::vector<Statement> statements;
};

/// Reads "name = expression; ...". Precedence as Python's: ** over unary - over * / over + - over
/// comparisons, which do not chain. `text` outlives the tree. Throws ExpressionError.
ExpressionTree parse_expression(std::string_view text);

}  // namespace rooftile
