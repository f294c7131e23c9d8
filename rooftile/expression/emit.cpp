#include "rooftile/expression/emit.hpp"

#include <fmt/core.h>

#include <cmath>

namespace rooftile {
namespace {

constexpr std::size_t longest_inline = 60;
constexpr int loose = 0;  // ?: and && bind less than every sign of the language
constexpr int atom = precedence::call;

}  // namespace

std::string_view kernel_type(Element element) {
    switch (element) {
        case Element::bf16:
            return "bf16";
        case Element::fp16:
            return "fp16";
        case Element::fp32:
            return "float";
        case Element::boolean:
            return "boolean";
        case Element::int64:
            return "long long";
    }
    return "?";
}

std::string float_literal(double value) {
    const float x = float(value);
    if (std::isnan(x)) return "not_a_number";
    if (std::isinf(x)) return x > 0 ? "infinity" : "-infinity";
    std::string text = fmt::format("{:.9g}", x);
    if (text.find_first_of(".e") == text.npos) text += ".0";
    return text + "f";
}

CodeText CodeOperands::text(std::size_t i, bool as_float) const {
    return emitter_.operand(value_.operands[i], scope_, as_float);
}

std::string CodeOperands::bracketed(std::size_t i, int least, bool as_float) const {
    const CodeText t = text(i, as_float);
    return t.strength < least ? "(" + t.text + ")" : t.text;
}

CodeText CodeOperands::call(std::string_view function) const {
    std::string arguments;
    for (std::size_t i = 0; i < std::size_t(operator_of(value_.op).max_operands); ++i)
        arguments += (i ? ", " : "") + text(i).text;
    return {fmt::format("{}({})", function, arguments), atom};
}

CodeText negation_code(const CodeOperands& o) { return {"-" + o.bracketed(0, atom), precedence::unary}; }

CodeText power_code(const CodeOperands& o) {
    const CodeValue& exponent = o.operand(1);
    const std::string base = o.text(0).text;
    if (exponent.kind == CodeKind::number) {
        const double e = exponent.value;
        if (e == std::floor(e) && std::fabs(e) <= 16)
            return {fmt::format("power<{}>({})", int(e), base), atom};
        if (e == 0.5) return {fmt::format("square_root({})", base), atom};
        if (e == -0.5) return {fmt::format("inverse_root({})", base), atom};
    }
    return o.call("powf");
}

CodeText cast_code(const CodeOperands& o) {
    const Element to = o.value().element;
    if (to == Element::fp32 || o.operand(0).element == Element::boolean) return o.text(0);
    return o.call(fmt::format("rounded<{}>", kernel_type(to)));
}

CodeText where_code(const CodeOperands& o) {
    const bool floats = o.value().element != Element::boolean;
    return {fmt::format("{} ? {} : {}", o.bracketed(0, precedence::comparison, false),
                        o.bracketed(1, precedence::comparison, floats),
                        o.bracketed(2, precedence::comparison, floats)),
            loose};
}

CodeText dropout_code(const CodeOperands& o) {
    const double p = o.value().value, scale = p < 1 ? 1 / (1 - p) : 0;
    return {fmt::format("{} * ({} ? {} : 0.0f)", o.bracketed(0, precedence::product), o.mask(),
                        float_literal(scale)),
            precedence::product};
}

std::vector<int> ValueEmitter::needed(const std::vector<int>& targets, const std::set<int>& known) const {
    std::set<int> found(targets.begin(), targets.end());
    for (int known_value : known) found.erase(known_value);
    std::vector<int> out;
    // Operands come before what uses them: one pass backwards reaches everything.
    for (int i = int(values_.size()); i-- > 0;) {
        if (!found.contains(i)) continue;
        out.insert(out.begin(), i);
        for (int operand : value(i).operands)
            if (!known.contains(operand)) found.insert(operand);
    }
    return out;
}

std::string ValueEmitter::use(int i, bool as_float) const {
    const CodeValue& v = value(i);
    if (v.kind == CodeKind::number) return float_literal(v.value);
    if (as_float && (is_flag(i) || is_index(i))) return fmt::format("float({})", v.name);
    return v.name;
}

CodeText ValueEmitter::operand(int i, const CodeScope& scope, bool as_float) const {
    const auto found = scope.inlined.find(i);
    if (found == scope.inlined.end()) {
        const std::string text = use(i, as_float);
        return {text, text.starts_with('-') ? precedence::unary : atom};
    }
    if (as_float && is_flag(i)) return {fmt::format("float({})", found->second.text), atom};
    return found->second;
}

CodeText ValueEmitter::text_of(int i, const CodeScope& scope) const {
    const CodeValue& v = value(i);
    if (v.kind == CodeKind::written) return {v.text, precedence::product};
    const Operator& row = operator_of(v.op);
    const CodeOperands operands(*this, v, scope);
    if (!v.text.empty()) return operands.call(v.text);
    if (is_flag(i) && !row.code.of_flags.empty())
        return {fmt::format("{} {} {}", operands.bracketed(0, precedence::comparison, false),
                            row.code.of_flags, operands.bracketed(1, precedence::comparison, false)),
                loose};
    if (row.code.text) return row.code.text(operands);
    if (row.code.function.empty())
        return {fmt::format("{} {} {}", operands.bracketed(0, row.precedence), row.name,
                            operands.bracketed(1, row.precedence + 1)),
                row.precedence};
    std::string_view function = row.code.function;
    if (v.precision == Element::fp16 && !row.code.fp16.empty()) function = row.code.fp16;
    if (v.precision == Element::bf16 && !row.code.bf16.empty()) function = row.code.bf16;
    return operands.call(function);
}

std::string ValueEmitter::statements(const std::vector<int>& targets, std::set<int>& known,
                                     const std::string& indent, const std::string& mask_index,
                                     std::vector<std::string>* results) const {
    const std::vector<int> values = needed(targets, known);
    std::map<int, int> uses;
    const std::set<int> wanted(targets.begin(), targets.end());
    for (int target : targets) uses[target] += results ? 1 : 2;  // two: has a variable of its own
    for (int i : values)
        for (int operand : value(i).operands) ++uses[operand];
    CodeScope scope{{}, mask_index};
    std::string out;
    for (int i : values) {
        const CodeValue& v = value(i);
        if (v.kind != CodeKind::computed && v.kind != CodeKind::written) continue;
        CodeText text = text_of(i, scope);
        const bool last = results && wanted.contains(i);
        const bool here = uses[i] == 1 && (last || (!v.keeps_name && text.text.size() <= longest_inline));
        if (here) {
            scope.inlined[i] = std::move(text);
            continue;
        }
        const char* type = is_flag(i) ? "bool" : is_index(i) ? "long long" : "float";
        out += fmt::format("{}const {} {} = {};\n", indent, type, v.name, text.text);
        known.insert(i);
    }
    if (results)
        for (int target : targets)
            results->push_back(operand(target, scope, !is_flag(target) && !is_index(target)).text);
    return out;
}

}  // namespace rooftile
