#include "rooftile/attention/score.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "rooftile/error.hpp"
#include "rooftile/expression/cost.hpp"
#include "rooftile/expression/registers.hpp"
#include "rooftile/expression/text.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view own_names[] = {"s", "i", "j"};
/// Extents that stand for queries and keys: what a value varies with is seen by the axes that it has.
constexpr std::int64_t queries = 2, keys = 3;

/// H of the extents as a number.
std::string with_heads(std::string_view text, std::int64_t heads) {
    const std::size_t open = text.find('[');
    std::string out(text.substr(0, open));
    if (open == text.npos) return out;
    for (const char c : text.substr(open)) {
        if (c == 'H' || c == 'h') out += std::to_string(heads);
        else if (c != ' ') out += c;
    }
    return out;
}

/// Whether the name of one letter stands in the text.
bool reads(std::string_view text, char name) {
    const auto of_a_name = [&](std::size_t i) { return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_'); };
    for (std::size_t i = 0; i < text.size(); ++i)
        if (text[i] == name && !of_a_name(i + 1) && (i == 0 || !of_a_name(i - 1))) return true;
    return false;
}

/// Whether the text's last statement is "NAME = ...": outside parentheses stands an equals sign that compares nothing.
bool names_its_result(std::string_view text) {
    constexpr std::string_view compares = "=<>!";
    int depth = 0;
    const std::size_t last = text.rfind(';');
    for (std::size_t i = last == text.npos ? 0 : last + 1; i < text.size(); ++i) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (text[i] != '=' || depth > 0) continue;
        if (i + 1 < text.size() && text[i + 1] == '=') ++i;
        else if (i == 0 || compares.find(text[i - 1]) == compares.npos) return true;
    }
    return false;
}

/// A letter that stands for nothing else in the text, nor for a tensor.
char free_letter(std::string_view text, std::span<const std::string> tensors) {
    for (char letter = 'Z'; letter >= 'A'; --letter)
        if (!reads(text, letter)
            && std::ranges::none_of(tensors, [&](const std::string& t) { return t.size() > 1 && t[0] == letter && t[1] == ':'; }))
            return letter;
    return 'S';  // 26 tensors of one letter: the language then says which name is given twice
}

/// The language gives a name once; a score is "s = ..." of s. Its last statement names a free letter what it calls s: as many characters.
std::string with_result_apart(std::string text, std::span<const std::string> tensors) {
    const std::size_t last = text.rfind(';'), begin = text.find_first_not_of(" \t", last == text.npos ? 0 : last + 1);
    if (begin == text.npos || text[begin] != 's') return text;
    const std::size_t equals = text.find_first_not_of(" \t", begin + 1);
    if (equals != text.npos && text[equals] == '=' && text.substr(equals, 2) != "==") text[begin] = free_letter(text, tensors);
    return text;
}

ScoreOperand operand_of(const TensorDeclaration& t, std::int64_t heads) {
    for (const std::string_view taken : own_names)
        if (t.name == taken)
            throw RequestError(fmt::format("the tensor {} of a score: the name is taken; s is the score, i and j are places; choose another", t.name));
    const std::int64_t count = t.shape.size() > 1 ? -1 : elements_of(t.shape);
    if ((count != 1 && count != heads) || !is_floating(t.element))
        throw RequestError(fmt::format("the tensor {} is {} {}; a score's tensor is [H], one number of bf16, fp16 or fp32 a head of "
                                       "Q ({}), or [1]",
                                       t.name, name_of(t.element), text_of(t.shape), heads));
    return {t.name, t.element, count == heads};
}

}  // namespace

int AttentionScore::registers() const {
    // From what ptxas needs (tests/attention/compile; docs/facts.md 292): of a value, of a function's constants and terms, of each
    // function more as long as that counts, of i and j.
    constexpr int of_a_value = 20, of_a_function = 16, of_functions = 2, most_of_functions = 8, of_places = 12;
    const int functions = functions_of(graph);
    return of_a_value + (functions > 0 ? of_a_function + std::min(most_of_functions, of_functions * (functions - 1)) : 0) + int(operands.size()) + (by_place ? of_places : 0);
}

bool AttentionScore::calls_functions() const { return functions_of(graph) > 0; }

std::int64_t AttentionScore::bytes(std::int64_t heads) const {
    std::int64_t all = 0;
    for (const ScoreOperand& o : operands) all += (o.by_head ? heads : 1) * bytes_of(o.element);
    return all;
}

std::string SharedScore::text() const {
    if (!own_) return {};
    std::string out = own_->expression;
    for (const std::string& tensor : own_->tensors) out += " | " + tensor;
    return out;
}

SharedScore attention_score(std::int64_t heads, std::string_view expression, const std::vector<std::string>& tensors) {
    if (expression.empty() || expression == "none") {
        if (!tensors.empty())
            throw RequestError(fmt::format("tensor {}: there is no score that reads it; give --score \"s = ...\"", tensors.front()));
        return {};
    }
    if (!names_its_result(expression))
        throw RequestError(fmt::format("score \"{}\" names no result; write \"s = ...\", as in \"s = 30 * tanh(s / 30)\"", printable(expression, 80)));
    const std::string text = with_result_apart(std::string(expression), tensors);
    if (!reads(text, 's'))
        throw RequestError(fmt::format("score \"{}\" does not read s, the score; write \"s = ...\" of s, as in \"s = 30 * tanh(s / 30)\"", printable(expression, 80)));
    AttentionScore out;
    out.expression = expression;
    std::vector<TensorDeclaration> declared = {{std::string(own_names[0]), Element::fp32, {heads, queries, keys}}};
    // The language refuses what is declared and not read.
    if (reads(expression, 'i')) declared.push_back({std::string(own_names[1]), Element::fp32, {queries, 1}});
    if (reads(expression, 'j')) declared.push_back({std::string(own_names[2]), Element::fp32, {keys}});
    out.by_place = declared.size() > 1;
    for (const std::string& given : tensors) {
        out.tensors.push_back(with_heads(given, heads));
        declared.push_back(tensor_declaration(out.tensors.back()));
        out.operands.push_back(operand_of(declared.back(), heads));
        declared.back().shape = Shape{out.operands.back().by_head ? heads : 1, 1, 1};
    }
    try {
        out.graph = expression_graph(text, declared);
    } catch (const ExpressionError& error) {
        throw ExpressionError("score: " + error.what_alone(), error.column(), expression);
    }
    const auto& nodes = out.graph.nodes;
    for (const GraphNode& node : nodes) {
        if (is_row_operation(node.op) || reduces_all(node.op) || reduces_columns(node.op))
            throw RequestError(fmt::format("score: {} takes more scores than one; a score is made by point-wise operators, of s, i, j and tensors",
                                           name_of(node.op)));
        if (node.op == Op::dropout) throw RequestError("score: dropout is not supported; leave it out");
    }
    if (out.graph.outputs.size() != 1)
        throw RequestError(fmt::format("score: {} results, {} and {}; one is the score: the last statement, which reads the others", out.graph.outputs.size(),
                                       out.graph.outputs[0].name, out.graph.outputs[1].name));
    const GraphNode& result = nodes[std::size_t(out.graph.outputs.front().node)];
    if (result.shape != Shape{heads, queries, keys})
        throw RequestError("score: the result does not vary with query, key and head; write \"s = ...\" of s");
    if (result.element != Element::fp32)
        throw RequestError(result.element == Element::boolean
                               ? std::string("score: the result is true or false; a score is a number: \"s = where(CONDITION, s, 0)\"")
                               : fmt::format("score: the result is {}; a score is fp32: \"s = fp32(...)\" of it", name_of(result.element)));
    for (const GraphNode& node : nodes)
        // What does not vary with the key costs next to nothing.
        if (node.op != Op::input && node.op != Op::number && !node.shape.empty() && node.shape.back() == keys)
            out.cost += score_cost_of(node);
    return SharedScore(std::move(out));
}

}  // namespace rooftile
