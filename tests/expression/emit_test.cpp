// Values as C++, without a kernel around them: what an epilogue or a score function needs.
#include "rooftile/expression/emit.hpp"

#include <gtest/gtest.h>

#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

/// Of a point-wise graph: inputs stand in variables of their names.
ValueEmitter emitter_of(const ExpressionGraph& graph) {
    std::vector<CodeValue> values;
    for (const GraphNode& n : graph.nodes) {
        CodeValue v{.name = n.name.empty() ? "v" + std::to_string(values.size()) : n.name,
                    .op = n.op,
                    .operands = n.operands,
                    .element = n.element == Element::boolean ? n.element : Element::fp32,
                    .value = n.value,
                    .precision = precision_of(graph),
                    .keeps_name = !n.name.empty(),
                    .mask = "keep"};
        v.kind = n.op == Op::input    ? CodeKind::named
                 : n.op == Op::number ? CodeKind::number
                                      : CodeKind::computed;
        if (n.op == Op::cast) v.element = n.element;
        values.push_back(std::move(v));
    }
    return ValueEmitter(std::move(values));
}

std::string emitted_text(const char* expression, const char* type = "fp32") {
    std::vector<TensorDeclaration> tensors;
    for (const char* name : {"acc", "bias"})
        tensors.push_back(tensor_declaration(std::string(name) + ":" + type + "[64,64]"));
    const ExpressionGraph graph = expression_graph(expression, tensors);
    std::set<int> known(graph.inputs.begin(), graph.inputs.end());
    std::vector<std::string> results;
    const std::string statements =
        emitter_of(graph).statements({graph.outputs[0].node}, known, "", "[k]", &results);
    return statements + results[0];
}

TEST(Emit, AnEpilogueNeedsNamesAlone) {
    EXPECT_EQ(emitted_text("d = gelu(acc + bias)"), "gelu(acc + bias)");
    EXPECT_EQ(emitted_text("d = gelu(acc + bias)", "bf16"), "gelu_16<Type::bf16>(acc + bias)");
    EXPECT_EQ(emitted_text("d = relu(acc) ** 2 - bias / 3"), "power<2>(relu(acc)) - divide(bias, 3.0f)");
    EXPECT_EQ(emitted_text("h = acc + bias; d = h * sigmoid(h)"), "const float h = acc + bias;\nh * sigmoid(h)");
    EXPECT_EQ(emitted_text("d = dropout(acc, 0.5) + bf16(bias)"),
              "acc * (keep[k] ? 2.0f : 0.0f) + rounded<bf16>(bias)");
}

TEST(Emit, SignsKeepTheirOperands) {
    EXPECT_EQ(emitted_text("d = acc - (bias - acc)"), "acc - (bias - acc)");
    EXPECT_EQ(emitted_text("d = acc - bias - acc"), "acc - bias - acc");
    EXPECT_EQ(emitted_text("d = (acc + bias) * -acc"), "(acc + bias) * -acc");
    EXPECT_EQ(emitted_text("d = -(acc * bias)"), "-(acc * bias)");
    EXPECT_EQ(emitted_text("d = where((acc > 0) * (bias <= acc), acc, bias) + 1.0"),
              "((acc > 0.0f && bias <= acc) ? acc : bias) + 1.0f");
    EXPECT_EQ(emitted_text("d = (acc < bias) * acc"), "float(acc < bias) * acc");
}

}  // namespace
}  // namespace rooftile
