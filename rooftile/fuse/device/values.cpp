#include "rooftile/fuse/device/values.hpp"

#include <fmt/core.h>

#include <cassert>
#include <cmath>
#include <map>

namespace rooftile {
namespace {

constexpr size_t longest_inline = 60;
// How strongly C++ binds: ?: and && below comparisons below + below * below unary - below names and calls.
constexpr int loose = 0, comparison = 1, additive = 2, product = 3, unary = 4, atom = 9;

std::string_view word_of(Op op) {
    switch (op) {
        case Op::add:
            return "sum";
        case Op::subtract:
            return "difference";
        case Op::multiply:
            return "product";
        case Op::divide:
            return "quotient";
        case Op::power:
            return "power";
        case Op::negate:
            return "negative";
        case Op::absolute:
            return "magnitude";
        default:
            break;
    }
    return is_comparison(op) ? "test" : name_of(op);
}

std::string_view word_of(RowPart part) {
    constexpr std::string_view words[] = {"sum",         "mean",    "greatest",    "place",
                                          "inverse_sum", "log_sum", "log_sum_exp", "inverse_deviation",
                                          "inverse_root"};
    return words[int(part)];
}

std::string_view function_of(Op op) {
    switch (op) {
        case Op::log:
            return "logarithm";
        case Op::erf:
            return "error_function";
        case Op::sqrt:
            return "square_root";
        case Op::rsqrt:
            return "inverse_root";
        case Op::absolute:
            return "fabsf";
        default:
            return name_of(op);  // sigmoid, silu, relu, gelu_tanh, minimum, maximum
    }
}

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

/// Values that stand where they are used, and what is written after a dropout's flags.
struct FuseValues::Scope {
    std::map<int, Text> inlined;
    std::string keep_index;
};

FuseValues::FuseValues(const ExpressionGraph& graph, const Program& program)
    : graph_(graph), program_(program), precision_(precision_of(graph)) {
    for (int i = 0; i < int(program.values.size()); ++i) {
        power_from_.push_back(shared_base_of(program, i));
        if (power_from_.back() >= 0) bases_of_powers_.insert(power_from_.back());
    }
    std::set<std::string> taken;
    for (size_t i = 0; i < program.values.size(); ++i) {
        const ProgramValue& v = program.values[i];
        std::string base =
            v.kind == ValueKind::load ? graph.nodes[size_t(graph.inputs[size_t(v.input)])].name : v.name;
        if (base.empty()) {
            const std::string_view word = v.kind == ValueKind::reduce ? name_of(v.reduction)
                                          : is_power_base(int(i))     ? "reference"
                                          : v.kind == ValueKind::part ? word_of(v.part)
                                                                      : word_of(v.op);
            base = fmt::format("{}_{}", word, i);
        }
        while (!taken.insert(base).second) base += fmt::format("_{}", i);
        bases_.push_back(base);
    }
}

std::string FuseValues::base(int value) const { return bases_[size_t(value)]; }
std::string FuseValues::input(int load) const { return base(load) + "_in"; }
std::string FuseValues::output(int store) const {
    return graph_.outputs[size_t(program_.stores[size_t(store)].output)].name + "_out";
}
std::string FuseValues::key(int value) const { return base(value) + "_key"; }
std::string FuseValues::keep(int value) const { return base(value) + "_keep"; }

std::string FuseValues::name(int value) const {
    constexpr const char* suffixes[] = {"_all", "_row", "_k"};
    return base(value) + suffixes[int(program_.values[size_t(value)].level)];
}

bool FuseValues::is_bool(int value) const {
    const ProgramValue& v = program_.values[size_t(value)];
    return (v.kind == ValueKind::load || v.kind == ValueKind::compute) && v.element == Element::boolean;
}

bool FuseValues::is_index(int value) const {
    const ProgramValue& v = program_.values[size_t(value)];
    return v.kind == ValueKind::part && v.part == RowPart::place;
}

std::vector<int> FuseValues::needed(const std::vector<int>& targets, const std::set<int>& known) const {
    std::set<int> found(targets.begin(), targets.end());
    for (int known_value : known) found.erase(known_value);
    std::vector<int> out;
    // Operands come before what uses them: one walk backwards reaches everything.
    for (int i = int(program_.values.size()); i-- > 0;) {
        if (!found.contains(i)) continue;
        out.insert(out.begin(), i);
        for (int operand : named_by(i))
            if (!known.contains(operand)) found.insert(operand);
    }
    return out;
}

/// What the text of a computed value names: its operands, or of a power from a shared base the exponent's.
std::vector<int> FuseValues::named_by(int value) const {
    const ProgramValue& v = program_.values[size_t(value)];
    if (v.kind != ValueKind::compute) return {};
    return power_from_[size_t(value)] < 0 ? v.operands : program_.values[size_t(v.operands[0])].operands;
}

std::string FuseValues::use(int value, bool as_float) const {
    const ProgramValue& v = program_.values[size_t(value)];
    if (v.kind == ValueKind::number) return float_literal(v.value);
    if (as_float && (is_bool(value) || is_index(value))) return fmt::format("float({})", name(value));
    return name(value);
}

FuseValues::Text FuseValues::operand(int value, const Scope& scope, bool as_float) const {
    const auto found = scope.inlined.find(value);
    if (found == scope.inlined.end()) {
        const std::string text = use(value, as_float);
        return {text, text.starts_with('-') ? unary : atom};
    }
    if (as_float && is_bool(value)) return {fmt::format("float({})", found->second.text), atom};
    return found->second;
}

std::string FuseValues::bracketed(int value, const Scope& scope, int least, bool as_float) const {
    const Text t = operand(value, scope, as_float);
    return t.strength < least ? "(" + t.text + ")" : t.text;
}

FuseValues::Text FuseValues::compute(const ProgramValue& v, int index, const Scope& scope) const {
    const auto arg = [&](size_t i) { return operand(v.operands[i], scope, true).text; };
    const auto side = [&](size_t i, int least) { return bracketed(v.operands[i], scope, least); };
    const auto number_at = [&](size_t i) { return program_.values[size_t(v.operands[i])]; };
    const bool precise = precision_ == Element::fp32;
    const bool flags = v.element == Element::boolean && !is_comparison(v.op);
    if (flags && v.op != Op::where) {  // of flags: and, or
        const bool both = v.op == Op::multiply || v.op == Op::minimum;
        return {fmt::format("{} {} {}", bracketed(v.operands[0], scope, comparison, false),
                            both ? "&&" : "||", bracketed(v.operands[1], scope, comparison, false)),
                loose};
    }
    switch (v.op) {
        case Op::add:
        case Op::subtract:
            return {fmt::format("{} {} {}", side(0, additive), name_of(v.op), side(1, product)), additive};
        case Op::multiply:
            return {fmt::format("{} * {}", side(0, product), side(1, unary)), product};
        case Op::divide:
            return {fmt::format("divide({}, {})", arg(0), arg(1)), atom};
        case Op::negate:
            return {"-" + side(0, atom), unary};
        case Op::exp:
            if (const int from = power_from_[size_t(index)]; from >= 0)
                return {fmt::format("{}.power({})", power_base(from),
                                    operand(named_by(index)[0], scope, true).text),
                        atom};
            return {fmt::format("exponential{}({})", precise && v.node >= 0 ? "" : "_16", arg(0)), atom};
        case Op::gelu:
            if (precise) return {fmt::format("gelu({})", arg(0)), atom};
            return {fmt::format("gelu_16<Type::{}>({})", kernel_type(precision_), arg(0)), atom};
        case Op::tanh:
            return {
                fmt::format("hyperbolic_tangent{}({})", precision_ == Element::bf16 ? "_bf16" : "", arg(0)),
                atom};
        case Op::power: {
            const ProgramValue exponent = number_at(1);
            if (exponent.kind == ValueKind::number) {
                const double e = exponent.value;
                if (e == std::floor(e) && std::fabs(e) <= 16)
                    return {fmt::format("power<{}>({})", int(e), arg(0)), atom};
                if (e == 0.5) return {fmt::format("square_root({})", arg(0)), atom};
                if (e == -0.5) return {fmt::format("inverse_root({})", arg(0)), atom};
            }
            return {fmt::format("powf({}, {})", arg(0), arg(1)), atom};
        }
        case Op::minimum:
        case Op::maximum:
            return {fmt::format("{}({}, {})", function_of(v.op), arg(0), arg(1)), atom};
        case Op::where:
            return {fmt::format("{} ? {} : {}", bracketed(v.operands[0], scope, comparison, false),
                                bracketed(v.operands[1], scope, comparison, !flags),
                                bracketed(v.operands[2], scope, comparison, !flags)),
                    loose};
        case Op::cast:
            if (v.element == Element::fp32 || is_bool(v.operands[0]))
                return operand(v.operands[0], scope, true);
            return {fmt::format("rounded<{}>({})", kernel_type(v.element), arg(0)), atom};
        case Op::dropout: {
            const double scale = v.value < 1 ? 1 / (1 - v.value) : 0;
            return {fmt::format("{} * ({}{} ? {} : 0.0f)", side(0, product), keep(index), scope.keep_index,
                                float_literal(scale)),
                    product};
        }
        default:
            if (is_comparison(v.op))
                return {fmt::format("{} {} {}", side(0, additive), name_of(v.op), side(1, additive)),
                        comparison};
            return {fmt::format("{}({})", function_of(v.op), arg(0)), atom};
    }
}

std::string FuseValues::part(int value) const {
    const ProgramValue& v = program_.values[size_t(value)];
    const std::string from = name(v.operands[0]);
    const std::string share = float_literal(1.0 / double(v.count));
    const bool moments = program_.values[size_t(v.operands[0])].reduction == Reduction::moments;
    switch (v.part) {
        case RowPart::sum:
            return from + ".total";
        case RowPart::mean:
            return moments ? from + ".mean" : fmt::format("{}.total * {}", from, share);
        case RowPart::greatest:
            return from + (is_power_base(value) ? ".reference" : ".greatest");
        case RowPart::place:
            return from + ".place";
        case RowPart::inverse_sum:
            return fmt::format("divide(1.0f, {}.total)", from);
        case RowPart::log_sum:
            return fmt::format("logarithm({}.total)", from);
        case RowPart::log_sum_exp:
            return from + ".log_sum_exp()";
        case RowPart::inverse_deviation:
            return fmt::format("inverse_deviation({}.deviations * {}, {})", from, share,
                               float_literal(v.value));
        case RowPart::inverse_root:
            return fmt::format("inverse_root({}.total * {} + {})", from, share, float_literal(v.value));
    }
    return "?";
}

FuseValues::Text FuseValues::text_of(int value, const Scope& scope) const {
    const ProgramValue& v = program_.values[size_t(value)];
    if (v.kind == ValueKind::part) return {part(value), product};
    return compute(v, value, scope);
}

std::string FuseValues::statements(const std::vector<int>& targets, std::set<int>& known,
                                   const std::string& indent, const std::string& keep_index,
                                   std::vector<std::string>* results) const {
    const std::vector<int> values = needed(targets, known);
    std::map<int, int> uses;
    const std::set<int> wanted(targets.begin(), targets.end());
    for (int target : targets) uses[target] += results ? 1 : 2;  // two: has a name of its own
    for (int i : values)
        for (int operand : named_by(i)) ++uses[operand];
    Scope scope{{}, keep_index};
    std::string out;
    for (int i : values) {
        const ProgramValue& v = program_.values[size_t(i)];
        if (v.kind != ValueKind::compute && v.kind != ValueKind::part) continue;
        Text text = text_of(i, scope);
        const bool last = results && wanted.contains(i);
        const bool here = uses[i] == 1 && (last || (v.name.empty() && text.text.size() <= longest_inline));
        if (here) {
            scope.inlined[i] = std::move(text);
            continue;
        }
        const char* type = is_bool(i) ? "bool" : is_index(i) ? "long long" : "float";
        out += fmt::format("{}const {} {} = {};\n", indent, type, name(i), text.text);
        known.insert(i);
    }
    if (results)
        for (int target : targets)
            results->push_back(operand(target, scope, !is_bool(target) && !is_index(target)).text);
    return out;
}

}  // namespace rooftile
