#include "rooftile/expression/expression.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "rooftile/expression/text.hpp"
#include "rooftile/expression/tree.hpp"
#include "rooftile/expression/graph_builder.hpp"

namespace rooftile {
namespace {

/// Traverses the tree in its own order, operands first.
class Translator {
  public:
    Translator(std::string_view text, std::span<const TensorDeclaration> tensors) : text_(text) {
        for (const TensorDeclaration& t : tensors) {
            if (names_.contains(t.name) || t.name == "inf")
                throw RequestError(
                    fmt::format("the tensor \"{}\" is declared twice, or its name is taken", t.name));
            names_[t.name] = builder_.input(t.name, t.element, t.shape);
        }
    }

    ExpressionGraph graph() {
        const ExpressionTree tree = parse_expression(text_);
        size_t next = 0;
        for (const Statement& s : tree.statements) {
            // A statement's nodes follow those of the one before it.
            for (; next <= size_t(s.value); ++next) {
                columns_.push_back(tree.nodes[next].column);
                values_.push_back(value_of(tree.nodes[next]));
            }
            assign(s);
        }
        for (const Statement& s : tree.statements)
            if (!read_.contains(s.name))
                builder_.output(std::string(s.name), names_.find(s.name)->second, s.column);
        return builder_.take();
    }

  private:
    void assign(const Statement& s) {
        if (names_.contains(s.name) || s.name == "inf")
            throw ExpressionError(fmt::format("the name \"{}\" is taken; choose another", s.name), s.column,
                                  text_);
        const int value = values_[size_t(s.value)];
        names_.emplace(std::string(s.name), value);
        if (builder_.node(value).op != Op::number && builder_.node(value).name.empty())
            builder_.name(value, std::string(s.name));
    }

    int value_of(const TreeNode& n) {
        switch (n.kind) {
            case TreeKind::integer:
                if (n.integer > 9007199254740992ull) return wide(n);
                return builder_.integer(std::int64_t(n.integer), n.column);
            case TreeKind::real:
                return builder_.number(n.value, n.column);
            case TreeKind::name:
                return named(n);
            case TreeKind::unary:
                return builder_.apply(Op::negate, {at(n, 0)}, {}, n.column);
            case TreeKind::binary:
                return builder_.apply(operator_of_sign(n.text)->op, {at(n, 0), at(n, 1)}, {}, n.column);
            case TreeKind::call:
                return call(n);
        }
        return -1;
    }

    /// An integer that an fp64 may not hold exactly: a seed keeps its bits.
    int wide(const TreeNode& n) {
        const int index = builder_.number(n.value, n.column);
        wide_[index] = n.integer;
        return index;
    }

    int at(const TreeNode& n, size_t i) const { return values_[size_t(n.operands[i])]; }

    int named(const TreeNode& n) {
        if (n.text == "inf") return builder_.number(std::numeric_limits<double>::infinity(), n.column);
        const auto found = names_.find(n.text);
        if (found != names_.end()) {
            read_.emplace(n.text);
            return found->second;
        }
        if (function_named(n.text))
            throw ExpressionError(fmt::format("\"{}\" is a function: expected \"(\" after it", n.text),
                                  n.column, text_);
        std::string known;
        for (const auto& [name, index] : names_) known += (known.empty() ? "" : ", ") + name;
        if (known.size() > 80) known = known.substr(0, 80) + " ...";
        throw ExpressionError(
            fmt::format("there is no tensor \"{}\"; {}", n.text,
                        known.empty() ? "declare it with --tensor \"NAME:TYPE[SHAPE]\"" : "known: " + known),
            n.column, text_);
    }

    [[noreturn]] void refuse(const TreeNode& n, const std::string& what) const {
        throw ExpressionError(what, n.column, text_);
    }

    /// At the argument itself.
    [[noreturn]] void refuse_argument(const TreeNode& n, size_t i, const std::string& what) const {
        throw ExpressionError(what, columns_[size_t(n.operands[i])], text_);
    }

    int call(const TreeNode& n) {
        const Operator* f = function_named(n.text);
        if (!f) {
            const std::string_view close = closest_function(n.text);
            refuse(n, fmt::format("there is no function \"{}\"{}", n.text,
                                  close.empty() ? "" : fmt::format("; did you mean {}?", close)));
        }
        std::vector<int> tensors;
        double values[3] = {f->attributes[0].preset, f->attributes[1].preset, f->attributes[2].preset};
        std::uint64_t whole[3] = {};
        bool given[3] = {};
        for (size_t i = 0; i < n.operands.size(); ++i) {
            if (n.keywords[i].empty() && int(tensors.size()) < f->max_operands && !is_attribute(*f, n, i)) {
                tensors.push_back(at(n, i));
                continue;
            }
            const int slot = attribute_slot(*f, n, i, int(tensors.size()));
            if (std::exchange(given[slot], true))
                refuse_argument(n, i,
                                fmt::format("{} of {} is given twice", f->attributes[slot].name, n.text));
            read_attribute(*f, n, i, slot, values[slot], whole[slot]);
        }
        if (int(tensors.size()) < f->min_operands)
            refuse(n, fmt::format("expected {}({})", n.text, f->arguments));
        for (int i = 0; i < 3; ++i)
            if (!f->attributes[i].name.empty() && std::isnan(values[i]))
                refuse(n, fmt::format("{} is missing: expected {}({})", f->attributes[i].name, n.text,
                                      f->arguments));
        if (f->op == Op::cast) return builder_.cast(*element_by_name(n.text), tensors[0], n.column);
        return builder_.apply(f->op, tensors, {values[0], whole[1], whole[2]}, n.column);
    }

    /// A number where a weight may be left out is the attribute behind it: layernorm(x, 1e-6).
    bool is_attribute(const Operator& f, const TreeNode& n, size_t i) const {
        return int(i) >= f.min_operands && !f.attributes[0].name.empty()
               && builder_.node(at(n, i)).op == Op::number;
    }

    int attribute_slot(const Operator& f, const TreeNode& n, size_t i, int tensors) const {
        if (n.keywords[i].empty()) {
            const int slot = int(i) - tensors;
            if (slot < 3 && !f.attributes[slot].name.empty()) return slot;
            refuse_argument(n, i,
                            fmt::format("{} takes {}({}); {} arguments found", n.text, n.text, f.arguments,
                                        n.operands.size()));
        }
        for (int slot = 0; slot < 3; ++slot)
            if (!f.attributes[slot].name.empty() && f.attributes[slot].name == n.keywords[i]) return slot;
        refuse_argument(n, i,
                        fmt::format("{} has no argument \"{}\": expected {}({})", n.text, n.keywords[i],
                                    n.text, f.arguments));
    }

    void read_attribute(const Operator& f, const TreeNode& n, size_t i, int slot, double& value,
                        std::uint64_t& whole) const {
        const int index = at(n, i);
        const GraphNode& number = builder_.node(index);
        if (number.op != Op::number)
            refuse_argument(n, i, fmt::format("{} of {} must be a number", f.attributes[slot].name, n.text));
        value = number.value;
        if (slot == 0) return;
        const auto found = wide_.find(index);
        if (found == wide_.end() && !(number.integer && number.value >= 0))
            refuse_argument(n, i,
                            fmt::format("{} of {} must be an integer from 0 to 2^64 - 1",
                                        f.attributes[slot].name, n.text));
        whole = found != wide_.end() ? found->second : std::uint64_t(number.value);
    }

    std::string_view text_;
    GraphBuilder builder_;
    std::map<std::string, int, std::less<>> names_;
    std::set<std::string, std::less<>> read_;
    std::map<int, std::uint64_t> wide_;
    std::vector<int> values_, columns_;  // of the tree's nodes
};

}  // namespace

TensorDeclaration tensor_declaration(std::string_view text) {
    const auto refuse = [&](const std::string& what) {
        throw RequestError(
            fmt::format("tensor \"{}\": {}; expected NAME:TYPE[EXTENT,...], as x:bf16[16384,4096]",
                        text.substr(0, 64), what));
    };
    const size_t colon = text.find(':'), open = text.find('[');
    if (colon == text.npos || open == text.npos || open < colon || !text.ends_with(']'))
        refuse("not of that form");
    TensorDeclaration tensor;
    const std::string_view name = text.substr(0, colon);
    bool good = false;
    try {
        const std::vector<Token> tokens = tokens_of(name);
        good = tokens.size() == 2 && tokens[0].kind == TokenKind::name && tokens[0].text == name;
    } catch (const ExpressionError&) {}
    if (!good) refuse("the name must be letters, digits and \"_\", at most 48, and begin with a letter");
    tensor.name = name;
    const std::string_view type = text.substr(colon + 1, open - colon - 1);
    const auto element = element_by_name(type);
    if (!element || *element == Element::int64) refuse("the type must be bf16, fp16, fp32 or bool");
    tensor.element = *element;
    std::string_view extents = text.substr(open + 1, text.size() - open - 2);
    while (!extents.empty()) {
        const size_t comma = extents.find(',');
        const std::string_view one = extents.substr(0, comma);
        std::int64_t extent = -1;
        const auto read = std::from_chars(one.data(), one.data() + one.size(), extent);
        if (read.ec == std::errc::result_out_of_range)
            refuse(fmt::format("extent \"{}\" is too large: 9223372036854775807 at most", one));
        if (read.ec != std::errc{} || read.ptr != one.data() + one.size() || extent < 0)
            refuse(fmt::format("extent \"{}\" is no whole number", one));
        tensor.shape.push_back(extent);
        if (comma == extents.npos) break;
        extents.remove_prefix(comma + 1);
        if (extents.empty()) refuse("an extent is missing after the last comma");
    }
    return tensor;
}

ExpressionGraph expression_graph(std::string_view text, std::span<const TensorDeclaration> tensors) {
    try {
        return Translator(text, tensors).graph();
    } catch (const ExpressionError& error) {
        // What the builder refused knows its column, not the text around it.
        if (error.column() > 0) throw ExpressionError(error.what_alone(), error.column(), text);
        throw;
    }
}

}  // namespace rooftile
