#include "rooftile/expression/tree.hpp"

#include <fmt/core.h>

#include "rooftile/expression/operators.hpp"
#include "rooftile/expression/text.hpp"

namespace rooftile {
namespace {

/// How strongly a sign holds its operands; `right` is what its right operand must exceed or reach.
struct Binding {
    int left = 0, right = 0;
};
constexpr int left_of(int precedence) { return 2 * precedence - 1; }
constexpr int comparison = left_of(precedence::comparison), unary_minus = left_of(precedence::unary);

Binding binding_of(const Token& token) {
    if (token.kind != TokenKind::sign) return {};
    const Operator* row = operator_of_sign(token.text);
    if (!row) return {};
    const int left = left_of(row->precedence);
    // Powers associate to the right, and -x in an exponent needs no brackets.
    return {left, row->op == Op::power ? unary_minus : left + 1};
}

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text), tokens_(tokens_of(text)) {}

    ExpressionTree all() {
        for (;;) {
            statement();
            if (is_sign(";")) take();
            if (here().kind == TokenKind::end) break;
        }
        return std::move(tree_);
    }

  private:
    const Token& here() const { return tokens_[at_]; }
    const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
    bool is_sign(std::string_view sign) const {
        return here().kind == TokenKind::sign && here().text == sign;
    }
    [[noreturn]] void refuse(const std::string& what, int column) const {
        throw ExpressionError(what, column, text_);
    }
    [[noreturn]] void unexpected(std::string_view expected) const {
        refuse(fmt::format("expected {}, found {}", expected, described(here())), here().column);
    }
    void expect(std::string_view sign, std::string_view expected) {
        if (!is_sign(sign)) unexpected(expected);
        take();
    }

    void statement() {
        if (here().kind != TokenKind::name) unexpected("a statement, as in y = gelu(x)");
        const Token name = take();
        if (!is_sign("="))
            refuse(
                fmt::format("expected \"=\" after the name \"{}\", found {}", name.text, described(here())),
                here().column);
        take();
        const int value = expression(0);
        if (!is_sign(";") && here().kind != TokenKind::end) unexpected("an operator, \";\" or the end");
        tree_.statements.push_back({name.text, name.column, value});
    }

    int add(TreeNode node) {
        if (int(tree_.nodes.size()) >= max_expression_nodes)
            refuse(fmt::format("the expression has more than {} parts", max_expression_nodes), node.column);
        tree_.nodes.push_back(std::move(node));
        return int(tree_.nodes.size()) - 1;
    }

    /// What binds more strongly than `least` [Pratt 1973].
    int expression(int least) {
        if (++depth_ > max_expression_depth)
            refuse(fmt::format("more than {} levels deep", max_expression_depth), here().column);
        int left = prefix();
        for (;;) {
            const Token& sign = here();
            const Binding binding = binding_of(sign);
            if (binding.left == 0 || binding.left < least) break;
            take();
            const int right = expression(binding.right);
            if (binding.left == comparison && binding_of(here()).left == comparison)
                refuse("comparisons do not chain; combine two with where() or \"*\"", here().column);
            left = add({.kind = TreeKind::binary,
                        .text = sign.text,
                        .column = sign.column,
                        .operands = {left, right}});
        }
        --depth_;
        return left;
    }

    int prefix() {
        const Token& token = here();
        switch (token.kind) {
            case TokenKind::integer:
            case TokenKind::real:
                take();
                return add({.kind = token.kind == TokenKind::integer ? TreeKind::integer : TreeKind::real,
                            .text = token.text,
                            .column = token.column,
                            .value = token.value,
                            .integer = token.integer});
            case TokenKind::name:
                take();
                if (is_sign("(")) return call(token);
                return add({.kind = TreeKind::name, .text = token.text, .column = token.column});
            case TokenKind::sign:
                break;
            case TokenKind::end:
                unexpected("an operand");
        }
        if (is_sign("-")) {
            take();
            const int operand = expression(unary_minus);
            return add(
                {.kind = TreeKind::unary, .text = token.text, .column = token.column, .operands = {operand}});
        }
        if (!is_sign("(")) unexpected("an operand: a number, a name, a function or \"(\"");
        take();
        const int inner = expression(0);
        expect(")", "an operator or \")\"");
        return inner;
    }

    int call(const Token& name) {
        constexpr size_t max_arguments = 8;
        take();
        TreeNode node{.kind = TreeKind::call, .text = name.text, .column = name.column};
        while (!is_sign(")")) {
            if (!node.operands.empty()) expect(",", "an operator, \",\" or \")\"");
            std::string_view keyword;
            const Token& next = tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
            if (here().kind == TokenKind::name && next.kind == TokenKind::sign && next.text == "=") {
                keyword = take().text;
                take();
            } else if (!node.keywords.empty() && !node.keywords.back().empty()) {
                refuse("an argument without a name after one with a name", here().column);
            }
            if (node.operands.size() == max_arguments)
                refuse(fmt::format("more than {} arguments", max_arguments), here().column);
            node.operands.push_back(expression(0));
            node.keywords.push_back(keyword);
        }
        take();
        return add(std::move(node));
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    int depth_ = 0;
    ExpressionTree tree_;
};

}  // namespace

ExpressionTree parse_expression(std::string_view text) { return Parser(text).all(); }

}  // namespace rooftile
