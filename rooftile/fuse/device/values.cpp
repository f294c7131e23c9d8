#include "rooftile/fuse/device/values.hpp"

#include <fmt/core.h>

#include <cassert>
#include <cmath>
#include <map>

namespace rooftile {
namespace {

std::string_view word_of(RowPart part) {
    constexpr std::string_view words[] = {"sum",         "mean",    "greatest",    "place",
                                          "inverse_sum", "log_sum", "log_sum_exp", "inverse_deviation",
                                          "inverse_root"};
    return words[int(part)];
}

/// Where a value is softmax's e^(x - greatest): that part of the row.
int differs_from(const Program& program, int exp) {
    const ProgramValue& v = program.values[size_t(exp)];
    if (v.kind != ValueKind::compute || v.op != Op::exp || v.node >= 0) return -1;
    const ProgramValue& difference = program.values[size_t(v.operands[0])];
    if (difference.kind != ValueKind::compute || difference.op != Op::subtract) return -1;
    const ProgramValue& greatest = program.values[size_t(difference.operands[1])];
    return greatest.kind == ValueKind::part && greatest.part == RowPart::greatest ? difference.operands[1]
                                                                                  : -1;
}

/// Whether a value is the difference of a product and a mean, which may be that product's.
bool is_product_less_mean(const Program& program, const ProgramValue& v) {
    if (v.kind != ValueKind::compute || v.op != Op::subtract) return false;
    const auto is = [&](int i, auto what) { return what(program.values[size_t(i)]); };
    const auto product = [](const ProgramValue& x) { return x.kind == ValueKind::compute && x.op == Op::multiply; };
    const auto mean = [](const ProgramValue& x) { return x.kind == ValueKind::part && x.part == RowPart::mean; };
    return (is(v.operands[0], product) && is(v.operands[1], mean)) || (is(v.operands[0], mean) && is(v.operands[1], product));
}

}  // namespace

FuseValues::FuseValues(const ExpressionGraph& graph, const Program& program)
    : graph_(graph), program_(program), precisions_(precisions_of(graph)), emitter_({}) {
    for (int i = 0; i < int(program.values.size()); ++i) {
        power_from_.push_back(shared_base_of(program, i));
        if (power_from_.back() >= 0) bases_of_powers_.insert(power_from_.back());
        else if (const int greatest = differs_from(program, i); greatest >= 0) greatests_.insert(greatest);
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
                                                                      : noun_of(v.op);
            base = fmt::format("{}_{}", word, i);
        }
        while (!taken.insert(base).second) base += fmt::format("_{}", i);
        bases_.push_back(base);
    }
    std::vector<CodeValue> values;
    for (int i = 0; i < int(program.values.size()); ++i) values.push_back(code_value(i));
    emitter_ = ValueEmitter(std::move(values));
}

CodeValue FuseValues::code_value(int i) const {
    const ProgramValue& v = program_.values[size_t(i)];
    CodeValue out{.name = name(i), .value = v.value, .keeps_name = !v.name.empty()};
    switch (v.kind) {
        case ValueKind::load:
            out.element = v.element == Element::boolean ? Element::boolean : Element::fp32;
            break;
        case ValueKind::number:
            out.kind = CodeKind::number;
            break;
        case ValueKind::compute:
            out.kind = CodeKind::computed;
            out.op = v.op;
            out.operands = v.operands;
            out.element = v.element;
            out.mask = keep(i);
            // Inside a row operation 16 bits are enough: what it gives is near 1 or below.
            out.precision = v.node < 0 ? precision_of(graph_) : precisions_[size_t(v.node)];
            if (v.node < 0 && out.precision == Element::fp32) out.precision = Element::fp16;
            if (is_product_less_mean(program_, v)) out.text = "apart";
            if (const int greatest = differs_from(program_, i); greatest >= 0)
                out.text = base(greatest) + "_powers.power";
            if (const int from = power_from_[size_t(i)]; from >= 0) {
                out.operands = program_.values[size_t(v.operands[0])].operands;
                out.text = power_base(from) + ".power";
            }
            break;
        case ValueKind::reduce:
            break;
        case ValueKind::part:
            out.kind = CodeKind::written;
            out.element = v.part == RowPart::place ? Element::int64 : Element::fp32;
            out.text = part(i);
            break;
    }
    return out;
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

std::string FuseValues::part(int value) const {
    const ProgramValue& v = program_.values[size_t(value)];
    const std::string from = name(v.operands[0]);
    const std::string share = float_literal(1.0 / double(v.count));
    const bool moments = program_.values[size_t(v.operands[0])].reduction == Reduction::moments;
    switch (v.part) {
        case RowPart::sum:
            return from + ".total";
        case RowPart::mean:
            if (moments) return from + ".mean";
            return fmt::format("mean_of({}, {}, {}, {})", from, float_literal(double(v.count)),
                               float_literal(double(v.count) - double(float(v.count))), share);
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
            return fmt::format("inverse_root({}.deviations * {} + {})", from, share, float_literal(v.value));
        case RowPart::inverse_root:
            return fmt::format("inverse_root({}.total * {} + {})", from, share, float_literal(v.value));
    }
    return "?";
}

}  // namespace rooftile
