#include "rooftile/expression/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rooftile {
namespace {

constexpr int excerpt_columns = 72;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// One character for one byte, so that the caret stands under the column counted.
std::string shown(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c < ' ' || c > '~') c = is_blank(c) ? ' ' : '?';
    return out;
}

std::string message(const std::string& what, int column, std::string_view text) {
    if (column <= 0) return what;
    std::string out = fmt::format("column {}: {}", column, what);
    if (text.empty()) return out;
    const int at = std::min(column - 1, int(text.size()));
    const int first = at < excerpt_columns * 3 / 4 ? 0 : at - excerpt_columns / 2;
    std::string excerpt = shown(text.substr(size_t(first), excerpt_columns));
    return out + "\n  " + excerpt + "\n  " + std::string(size_t(at - first), ' ') + "^";
}

class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    std::vector<Token> all() {
        std::vector<Token> tokens;
        do tokens.push_back(next());
        while (tokens.back().kind != TokenKind::end);
        return tokens;
    }

  private:
    char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

    Token next() {
        while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
        Token token;
        token.column = int(at_) + 1;
        start_ = at_;
        if (at_ == text_.size()) return token;
        if (is_letter(peek())) return name(token);
        if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) return number(token);
        return sign(token);
    }

    Token name(Token token) {
        constexpr size_t max_letters = 48;
        while (is_letter(peek()) || is_digit(peek()) || peek() == '_') ++at_;
        token.kind = TokenKind::name;
        token.text = text_.substr(start_, at_ - start_);
        if (token.text.size() > max_letters)
            throw ExpressionError(
                fmt::format("a name of {} letters: at most {}", token.text.size(), max_letters), token.column,
                text_);
        return token;
    }

    Token number(Token token) {
        while (is_digit(peek())) ++at_;
        bool real = false;
        if (peek() == '.') {
            real = true;
            ++at_;
            while (is_digit(peek())) ++at_;
        }
        if ((peek() == 'e' || peek() == 'E')
            && (is_digit(peek(1)) || ((peek(1) == '+' || peek(1) == '-') && is_digit(peek(2))))) {
            real = true;
            at_ += 2;
            while (is_digit(peek())) ++at_;
        }
        token.text = text_.substr(start_, at_ - start_);
        if (is_letter(peek()) || peek() == '_' || peek() == '.')
            throw ExpressionError(fmt::format("\"{}\" is no number; expected digits, one point, one exponent",
                                              shown(text_.substr(start_, at_ + 1 - start_))),
                                  token.column, text_);
        const char *first = token.text.data(), *last = first + token.text.size();
        token.kind = real ? TokenKind::real : TokenKind::integer;
        const auto read = std::from_chars(first, last, token.value);
        if (read.ec != std::errc{} || !std::isfinite(token.value))
            throw ExpressionError("this number does not fit 64 bits", token.column, text_);
        if (!real && std::from_chars(first, last, token.integer).ec != std::errc{})
            throw ExpressionError("this integer does not fit 64 bits; write it with a point", token.column,
                                  text_);
        return token;
    }

    Token sign(Token token) {
        static constexpr std::string_view signs[] = {"**", "<=", ">=", "==", "!=", "+", "-", "*",
                                                     "/",  "(",  ")",  ",",  ";",  "=", "<", ">"};
        for (std::string_view s : signs)
            if (text_.substr(at_, s.size()) == s) {
                at_ += s.size();
                token.kind = TokenKind::sign;
                token.text = text_.substr(start_, s.size());
                return token;
            }
        throw ExpressionError(fmt::format("unexpected character \"{}\"", shown(text_.substr(at_, 1))),
                              token.column, text_);
    }

    std::string_view text_;
    size_t at_ = 0, start_ = 0;
};

}  // namespace

ExpressionError::ExpressionError(const std::string& what, int column, std::string_view text)
    : RequestError(message(what, column, text)), what_(what), column_(column) {}

std::vector<Token> tokens_of(std::string_view text) {
    if (text.size() > size_t(max_expression_characters))
        throw ExpressionError(fmt::format("the expression has {} characters: at most {}", text.size(),
                                          max_expression_characters),
                              0);
    return Lexer(text).all();
}

std::string described(const Token& token) {
    switch (token.kind) {
        case TokenKind::end:
            return "the end";
        case TokenKind::name:
            return fmt::format("the name \"{}\"", token.text);
        case TokenKind::integer:
        case TokenKind::real:
            return fmt::format("the number {}", token.text.substr(0, 24));
        case TokenKind::sign:
            return fmt::format("\"{}\"", token.text);
    }
    return "?";
}

}  // namespace rooftile
