// Random expressions: the same ones from the same seed, whichever compiler made the program.
#include "rooftile/expression/random.hpp"

#include <gtest/gtest.h>

#include "rooftile/expression/expression.hpp"

namespace rooftile {
namespace {

TEST(RandomExpressions, ASeedKeepsItsExpressions) {
    RandomExpressions random(7);
    const RandomExpression first = random.next(), second = random.next();
    EXPECT_EQ(first.text, "y = gelu(z * tanh(x * 3)) * erf(x * log_softmax(x * z))");
    EXPECT_EQ(first.tensors, (std::vector<std::string>{"x:fp32[2,32]", "z:fp16[2,32]"}));
    EXPECT_EQ(second.text, "y = abs(x * s / (z ** 2 + 1.0))");
}

TEST(RandomExpressions, AreExpressions) {
    RandomExpressions random(1);
    for (int i = 0; i < 500; ++i) {
        const RandomExpression e = random.next();
        std::vector<TensorDeclaration> tensors;
        for (const std::string& t : e.tensors) tensors.push_back(tensor_declaration(t));
        const ExpressionGraph graph = expression_graph(e.text, tensors);
        EXPECT_EQ(graph.inputs.size(), tensors.size()) << e.text;
    }
}

}  // namespace
}  // namespace rooftile
