// A chain taken apart is the chain: its kernels, run one by one, give its results, and each is what its text says.
#include "rooftile/fuse/unfuse.hpp"

#include <gtest/gtest.h>

#include <map>

#include "rooftile/core/random.hpp"
#include "rooftile/expression/evaluate.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/random.hpp"

namespace rooftile {
namespace {

std::vector<double> values_of(const BoundedTensor& tensor) {
    std::vector<double> values;
    for (const Bounded& b : tensor) values.push_back(b.value);
    return values;
}

void expect_apart_as_together(const ExpressionGraph& chain, Random& random) {
    std::map<int, std::vector<double>> known;  // by node of the chain
    std::vector<std::vector<double>> inputs;
    for (const int input : chain.inputs) {
        inputs.emplace_back();
        for (std::int64_t i = elements_of(chain.nodes[std::size_t(input)].shape); i > 0; --i)
            inputs.back().push_back(double(random.whole(1, 64)) / 64);
        known[input] = inputs.back();
    }
    const std::vector<BoundedTensor> together = evaluate(chain, inputs);
    std::vector<bool> copied(chain.outputs.size(), false);
    for (const UnfusedKernel& kernel : unfused_kernels(chain)) {
        std::vector<std::vector<double>> operands;
        std::vector<TensorDeclaration> tensors;
        ASSERT_EQ(kernel.operands.size(), kernel.problem.inputs.size());
        for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
            ASSERT_TRUE(known.contains(kernel.operands[i])) << "read before it is there";
            operands.push_back(known.at(kernel.operands[i]));
            const GraphNode& input = kernel.problem.nodes[std::size_t(kernel.problem.inputs[i])];
            tensors.push_back({input.name, input.element, input.shape});
        }
        const std::vector<double> result = values_of(evaluate(kernel.problem, operands).at(0));
        const ExpressionGraph read = expression_graph(kernel.problem.text, tensors);
        EXPECT_EQ(values_of(evaluate(read, operands).at(0)), result) << kernel.problem.text;
        if (kernel.output >= 0) {
            copied[std::size_t(kernel.output)] = true;
            EXPECT_EQ(chain.outputs[std::size_t(kernel.output)].node, kernel.node);
            EXPECT_EQ(result, known.at(kernel.node));
        } else EXPECT_TRUE(known.emplace(kernel.node, result).second) << "computed twice";
    }
    for (std::size_t i = 0; i < chain.outputs.size(); ++i) {
        EXPECT_EQ(copied[i], is_copy(chain, i)) << i;
        const std::vector<double>& apart = known.at(chain.outputs[i].node);
        ASSERT_EQ(apart.size(), together[i].size());
        for (std::size_t j = 0; j < apart.size(); ++j) {
            const Bounded& b = together[i][j];
            if (!std::isfinite(b.value)) continue;
            EXPECT_NEAR(apart[j], b.value, b.error + 1e-6 * std::abs(b.value)) << chain.text;
        }
    }
}

TEST(Unfuse, KernelsOneByOneAreTheChain) {
    Random random(471020);
    RandomExpressions expressions(471021);
    for (int i = 0; i < 150; ++i) {
        const RandomExpression e = expressions.next();
        std::vector<TensorDeclaration> tensors;
        for (const std::string& t : e.tensors) tensors.push_back(tensor_declaration(t));
        SCOPED_TRACE(e.text);
        expect_apart_as_together(expression_graph(e.text, tensors), random);
    }
    // Outputs that are inputs, and one value twice.
    const TensorDeclaration x = tensor_declaration("x:fp32[3,8]"), z = tensor_declaration("z:fp32[3,8]");
    for (const char* text : {"y = x; w = x + z", "w = x + z; y = w; v = w", "y = x; v = x; w = z", "w = (x + z) * (x + z); y = z"})
        expect_apart_as_together(expression_graph(text, std::vector{x, z}), random);
}

}  // namespace
}  // namespace rooftile
