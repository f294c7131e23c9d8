#include "rooftile/attention/device/score_source.hpp"

#include <fmt/core.h>

#include <set>

#include "rooftile/expression/emit.hpp"

namespace rooftile {
namespace {

/// Nothing that a person wrote becomes text but names, each with a suffix that no keyword or library name has.
std::string operand_name(const ScoreOperand& o) { return o.name + "_k"; }

std::string members(const AttentionScore& score) {
    std::string out;
    for (const ScoreOperand& o : score.operands)
        out += fmt::format("    const {}* {}_in;  // {}\n", kernel_type(o.element), o.name, o.by_head ? "[H]" : "[1]");
    return out;
}

std::string of_head(const AttentionScore& score, std::string_view number) {
    std::string fields, values;
    for (const ScoreOperand& o : score.operands) {
        fields += fmt::format("        {} {};\n", number, operand_name(o));
        values += fmt::format("{}widened({}_in[{}])", values.empty() ? "" : ", ", o.name, o.by_head ? "head" : "0");
    }
    return fmt::format("    /// What a head's scores share.\n    struct OfHead {{\n{}    }};\n"
                       "    __device__ OfHead of_head([[maybe_unused]] int head) const {{ return {{{}}}; }}\n",
                       fields, values);
}

std::vector<CodeValue> code_values(const AttentionScore& score) {
    std::vector<CodeValue> out;
    const ExpressionGraph& graph = score.graph;
    for (int i = 0; i < int(graph.nodes.size()); ++i) {
        const GraphNode& n = graph.nodes[std::size_t(i)];
        CodeValue v{.name = n.op == Op::input ? n.name + "_k" : fmt::format("{}_{}_v", n.name.empty() ? std::string(noun_of(n.op)) : n.name, i),
                    .op = n.op,
                    .operands = n.operands,
                    .element = n.element,
                    .value = n.value,
                    .precision = score.precision,
                    .text = std::string(operator_of(n.op).code.score)};
        v.kind = n.op == Op::input ? CodeKind::named : n.op == Op::number ? CodeKind::number : CodeKind::computed;
        if (n.op == Op::input) v.element = Element::fp32;
        out.push_back(std::move(v));
    }
    return out;
}

/// "c.x = a_k" of a node's operands, and its meaning's call.
std::string judged_node(const AttentionScore& score, int i, std::string_view name) {
    const ExpressionGraph& graph = score.graph;
    const GraphNode& n = graph.nodes[std::size_t(i)];
    const Operator& row = operator_of(n.op);
    const auto value = [&](int operand) {
        const GraphNode& of = graph.nodes[std::size_t(operand)];
        if (of.op == Op::number) return fmt::format("Bounded{{{}, 0}}", float_literal(of.value));
        return of.op == Op::input ? of.name + "_k" : fmt::format("v{}", operand);
    };
    const auto element = [](Element e) { return fmt::format("static_cast<Element>({})", int(e)); };
    constexpr const char* places[] = {"x", "y", "z"};
    std::string out = fmt::format("        ElementCall c{}{{}};\n", i);
    for (std::size_t k = 0; k < n.operands.size(); ++k) out += fmt::format("        c{}.{} = {};\n", i, places[k], value(n.operands[k]));
    out += fmt::format("        c{0}.element = {1}, c{0}.precision = {2}, c{0}.value = {3};\n", i, element(n.element),
                       element(score.precision), float_literal(n.value));
    const bool of_flags = row.result == ResultType::floating_or_bool && !row.code.of_flags.empty() && n.element == Element::boolean;
    out += fmt::format("        c{}.of_flags = {};\n", i, of_flags);
    return out + fmt::format("        const Bounded {0} = meaning::as_flag(c{1}, {2}(c{1}));\n", name, i, row.meaning.element.name);
}

}  // namespace

std::string score_text(const AttentionScore& score) {
    const ExpressionGraph& graph = score.graph;
    std::string out = "#include \"kernels/expression/element.cuh\"\n#include \"kernels/expression/math.cuh\"\n"
                      "#include \"kernels/attention/sm90_attention.cuh\"\n\nnamespace rooftile::score {\n\nusing namespace expression;\n\n";
    out += fmt::format("/// {}\nstruct Score {{\n", graph.text) + members(score);
    out += fmt::format("    static constexpr bool is_plain = false, by_place = {};\n", score.by_place) + of_head(score, "float");
    out += "    __device__ static float of([[maybe_unused]] const OfHead& head, float s_k, [[maybe_unused]] float i_k, [[maybe_unused]] float j_k) {\n";
    for (const ScoreOperand& o : score.operands) out += fmt::format("        [[maybe_unused]] const float {0} = head.{0};\n", operand_name(o));
    const ValueEmitter emitter(code_values(score));
    std::set<int> known(graph.inputs.begin(), graph.inputs.end());
    std::vector<std::string> results;
    const int target = graph.outputs.front().node;
    if (known.contains(target)) results = {emitter.use(target, true)};
    else out += emitter.statements({target}, known, "        ", "", &results);
    return out + fmt::format("        return {};\n    }}\n}};\n\n}}  // namespace rooftile::score\n", results.front());
}

std::string judged_score_text(const AttentionScore& score) {
    const ExpressionGraph& graph = score.graph;
    std::string out = "#include \"kernels/expression/element.cuh\"\n#include \"kernels/expression/meaning.hpp\"\n"
                      "#include \"kernels/attention/reference.cuh\"\n\nnamespace rooftile::score {\n\nusing namespace meaning;\nusing namespace expression;\n\n";
    out += fmt::format("/// {}\nstruct JudgedScore {{\n", graph.text) + members(score) + "    static constexpr bool is_plain = false;\n"
           + of_head(score, "float");
    out += "    __device__ static Bounded of([[maybe_unused]] const OfHead& head, Bounded s_k, [[maybe_unused]] double i, [[maybe_unused]] double j) {\n"
           "        [[maybe_unused]] const Bounded i_k{i, 0}, j_k{j, 0};\n";
    for (const ScoreOperand& o : score.operands)
        out += fmt::format("        [[maybe_unused]] const Bounded {0}{{static_cast<double>(head.{0}), 0}};\n", operand_name(o));
    for (int i = 0; i < int(graph.nodes.size()); ++i) {
        const Op op = graph.nodes[std::size_t(i)].op;
        if (op != Op::input && op != Op::number) out += judged_node(score, i, fmt::format("v{}", i));
    }
    const int target = graph.outputs.front().node;
    const GraphNode& last = graph.nodes[std::size_t(target)];
    return out + fmt::format("        return {};\n    }}\n}};\n\n}}  // namespace rooftile::score\n",
                             last.op == Op::input ? last.name + "_k" : fmt::format("v{}", target));
}

}  // namespace rooftile
