// What of the expressions' reference on a GPU needs none: its parts, its special values, its source.
#include "rooftile/measure/expression_reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "rooftile/expression/element_bits.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/random.hpp"

namespace rooftile {
namespace {

ExpressionGraph made(std::string_view text, const std::vector<std::string>& tensors) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    return expression_graph(text, declared);
}

TEST(RowParts, AreWholeRows) {
    // 1000 elements are 9 rows of 100 and a bit; a row of 2000 is a part by itself.
    EXPECT_EQ(RowParts(made("y = softmax(x)", {"x:bf16[64,105]"}), 1000).rows_a_part(), 9);
    const RowParts long_rows(made("y = softmax(x + b)", {"x:bf16[6,5,2000]", "b:fp32[2000]"}), 1000);
    EXPECT_EQ(long_rows.rows(), 30);
    EXPECT_EQ(long_rows.rows_a_part(), 1);
    const ExpressionGraph part = long_rows.graph(4);
    EXPECT_EQ(part.nodes[size_t(part.inputs[0])].shape, (Shape{4, 2000}));
    EXPECT_TRUE(long_rows.has_rows(part.nodes[size_t(part.inputs[0])]));
    EXPECT_FALSE(long_rows.has_rows(part.nodes[size_t(part.inputs[1])]));
}

TEST(RowParts, ElementsThatNothingBringsTogetherAreRows) {
    const RowParts parts(made("y = x * s + z", {"x:bf16[5000]", "s:fp32[1]", "z:bf16[5000]"}), 1000);
    EXPECT_EQ(parts.rows(), 5000);
    EXPECT_EQ(parts.rows_a_part(), 1000);
    EXPECT_EQ(parts.graph(7).nodes.back().shape, (Shape{7, 1}));
}

TEST(RowParts, WhatIsNotAloneStaysWhole) {
    for (const auto& [text, tensors] :
         {std::pair<const char*, std::vector<std::string>>{"y = x - mean_all(x)", {"x:bf16[50,50]"}},
          {"y = softmax(x)", {"x:bf16[100000]"}},
          {"y = x * c", {"x:bf16[6,50,33]", "c:fp32[50,1]"}}}) {
        const ExpressionGraph graph = made(text, tensors);
        const RowParts parts(graph, 100);
        EXPECT_FALSE(parts.cut()) << text;
        EXPECT_EQ(parts.graph(1).nodes.back().shape, graph.nodes.back().shape) << text;
    }
}

TEST(SpecialValues, LeaveMostRowsOrdinary) {
    for (const std::int64_t rows : {8, 9, 63, 64, 500, 1024, 100000}) {
        const ExpressionGraph graph =
            made("y = softmax(x + z) * c + b",
                 {"x:bf16[" + std::to_string(rows) + ",17]", "z:fp16[" + std::to_string(rows) + ",17]",
                  "c:fp32[" + std::to_string(rows) + ",1]", "b:fp32[17]"});
        bool nan = false, infinite = false, large = false;
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            std::set<std::int64_t> special;
            for (const SpecialValue& v : special_values(graph, seed)) {
                ASSERT_LT(v.input, 3u) << "b is shared by all rows";
                const std::int64_t row = v.element / (v.input == 2 ? 1 : 17);
                ASSERT_GE(v.element, 0);
                ASSERT_LT(row, rows);
                EXPECT_TRUE(special.insert(row).second) << "one row twice";
                nan |= std::isnan(v.value);
                infinite |= std::isinf(v.value);
                large |= std::isfinite(v.value);
                EXPECT_FALSE(std::fabs(v.value) < (v.input == 1 ? 5e4 : 2e38)) << v.value;
            }
            EXPECT_GE(special.size(), 1u);
            EXPECT_LE(special.size() * 8, size_t(rows));
        }
        EXPECT_TRUE(nan && infinite) << rows;
        EXPECT_EQ(large, rows >= 1024) << rows;
    }
}

TEST(SpecialValues, OfOneRowIsOneInfinity) {
    const std::vector<SpecialValue> one = special_values(made("y = sum_all(x)", {"x:bf16[300,300]"}), 3);
    ASSERT_EQ(one.size(), 1u);
    EXPECT_TRUE(std::isinf(one[0].value));
    EXPECT_TRUE(special_values(made("y = where(f, 1.0, 2.0)", {"f:bool[64,64]"}), 3).empty());
}

// 40 columns of 300: as many as 5 of them may be special, each in a row of its own choice.
TEST(SpecialValues, OfColumnsStayInFewOfThem) {
    const ExpressionGraph graph = made("y = column_sum(x * r) * w", {"x:bf16[300,40]", "r:fp32[300,1]", "w:fp32[40]"});
    bool nan = false, infinite = false;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        std::set<std::int64_t> special;
        for (const SpecialValue& v : special_values(graph, seed)) {
            ASSERT_EQ(v.input, 0u) << "the others are shared";
            ASSERT_LT(v.element, 300 * 40);
            EXPECT_TRUE(special.insert(v.element % 40).second) << "one column twice";
            nan |= std::isnan(v.value);
            infinite |= std::isinf(v.value);
        }
        EXPECT_GE(special.size(), 1u);
        EXPECT_LE(special.size(), 5u);
    }
    EXPECT_TRUE(nan && infinite);
    EXPECT_EQ(undecided_limit(graph, VerifyCase::special).of(4000), 500);
    EXPECT_EQ(special_values(made("y = column_sum(x)", {"x:bf16[300,7]"}), 3).size(), 1u);
}

// Standard normal inputs leave nothing undecided, special ones no more than the rows that they are put into.
TEST(UndecidedLimit, RandomExpressionsKeepIt) {
    RandomExpressions random(99);
    for (std::uint64_t i = 0; i < 200; ++i) {
        const RandomExpression e = random.next();
        const ExpressionGraph graph = made(e.text, e.tensors);
        std::vector<std::vector<double>> inputs;
        for (int input : graph.inputs) {
            const GraphNode& n = graph.nodes[size_t(input)];
            inputs.push_back(random_values(elements_of(n.shape), n.element, i * 10 + inputs.size()));
        }
        for (const VerifyCase which : {VerifyCase::random, VerifyCase::special}) {
            if (which == VerifyCase::special)
                for (const SpecialValue& v : special_values(graph, i))
                    inputs[v.input][size_t(v.element)] = v.value;
            for (const BoundedTensor& out : evaluate(graph, inputs)) {
                const auto undecided =
                    std::ranges::count_if(out, [](const Bounded& b) { return std::isinf(b.error); });
                EXPECT_LE(undecided, undecided_limit(graph, which).of(std::int64_t(out.size())))
                    << graph.text;
            }
        }
    }
}

TEST(UndecidedLimit, IsAShareButNeverFewerThanAHandful) {
    EXPECT_EQ(UndecidedLimit().of(1), 0);  // of an output of few, one at least is decided
    EXPECT_EQ(UndecidedLimit().of(16), 15);
    EXPECT_EQ(UndecidedLimit().of(0), 0);
    EXPECT_EQ(UndecidedLimit().of(1600), 16);
    EXPECT_EQ(UndecidedLimit().of(1'000'000), 10'000);
    // Of eight rows one may be special; of fewer, whose rows a reduction may bring together, all.
    const ExpressionGraph rows = made("y = softmax(x)", {"x:bf16[800,10]"});
    EXPECT_EQ(undecided_limit(rows, VerifyCase::special).of(8000), 1000);
    EXPECT_EQ(undecided_limit(rows, VerifyCase::random).of(8000), 80);
    EXPECT_EQ(undecided_limit(made("y = sum_all(x) - x", {"x:bf16[800,10]"}), VerifyCase::special).of(8000),
              8000);
}

// Every operator has a kernel of its meaning, by the name that its row gives it.
TEST(ExpressionReferenceSource, HasEveryOperator) {
    const Source source = expression_reference_source("sm_90");
    for (const Operator& row : operators()) {
        if (row.kind == OperatorKind::leaf) continue;
        const std::string meaning(row.meaning.row ? row.meaning.row.name : row.meaning.element.name);
        EXPECT_NE(source.text.find(", " + meaning + ")"), std::string::npos) << row.name;
    }
}

}  // namespace
}  // namespace rooftile
