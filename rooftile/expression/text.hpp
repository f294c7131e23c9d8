// The text of an expression as tokens, and refusals that point into it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/error.hpp"

namespace rooftile {

/// What a text may hold at most; more is refused, so that no input costs more than a moment.
inline constexpr int max_expression_characters = 8192;
inline constexpr int max_expression_depth = 100;
inline constexpr int max_expression_nodes = 1024;

/// A refusal of an expression. The message is one line, then the text around the fault and a caret under it.
class ExpressionError : public RequestError {
  public:
    /// `column` counts characters from 1; 0: the fault has no place in the text.
    ExpressionError(const std::string& what, int column, std::string_view text = {});
    int column() const { return column_; }
    const std::string& what_alone() const { return what_; }

  private:
    std::string what_;
    int column_;
};

enum class TokenKind : std::uint8_t { end, name, integer, real, sign };

struct Token {
    TokenKind kind = TokenKind::end;
    std::string_view text;  ///< as written; of the expression's text
    int column = 1;
    double value = 0;           ///< of a number
    std::uint64_t integer = 0;  ///< of an integer
};

/// The tokens of `text`, the last of kind end. `text` outlives them. Throws ExpressionError.
std::vector<Token> tokens_of(std::string_view text);

/// "a number", "name \"x\"", "\"+\"", "the end": what stands there, for messages.
std::string described(const Token& token);

}  // namespace rooftile
