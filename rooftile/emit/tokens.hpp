// CUDA C++ text in pieces, as far as one must know it to take parts of it away: words, brackets, comments, and the declarations of a
// scope. No compiler: what is not understood stays as it is.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile::emit {

enum class TokenKind : unsigned char { space, comment, directive, word, number, text, mark };

struct Token {
    TokenKind kind;
    std::string text;
    bool is(std::string_view other) const { return text == other && kind != TokenKind::comment; }
    /// Neither space nor comment.
    bool counts() const { return kind != TokenKind::space && kind != TokenKind::comment; }
};
using Tokens = std::vector<Token>;
using TokenSpan = std::span<const Token>;

Tokens tokens_of(std::string_view text);
std::string text_of(TokenSpan tokens);
/// Without comments, blanks one each.
std::string plain_text(TokenSpan tokens);
/// The first of `tokens` from `at` on that counts; their number where there is none.
std::size_t next_counting(TokenSpan tokens, std::size_t at);
/// The bracket that closes the one at `open`.
std::size_t closing(TokenSpan tokens, std::size_t open);
/// Behind a template's `<...>` that begins at `open`.
std::size_t behind_angles(TokenSpan tokens, std::size_t open);

/// A declaration of a namespace or class, a directive, or a namespace.
struct Item {
    enum class Kind : unsigned char { declaration, function, type, data, directive, name_space, fixed };
    Kind kind = Kind::declaration;
    Tokens lead;                     ///< spaces and comments above it
    Tokens head;                     ///< all of it; of a class or namespace to its brace
    std::vector<Item> members;       ///< of a class or namespace
    Tokens tail;                     ///< from the brace that closes it, or a comment behind it
    std::vector<std::string> names;  ///< that it declares; none: it is never taken away
    bool has_members = false;
};

std::vector<Item> items_of(TokenSpan tokens, bool in_class = false);
std::string text_of(const std::vector<Item>& items);

}  // namespace rooftile::emit
