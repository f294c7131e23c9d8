// The table of operators: what every row must say, so that a new one is complete.
#include "rooftile/expression/operators.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "rooftile/expression/row_steps.hpp"

namespace rooftile {
namespace {

TEST(Operators, StandAtTheirPlaces) {
    for (std::size_t i = 0; i < operators().size(); ++i) {
        EXPECT_EQ(operators()[i].op, Op(i));
        EXPECT_EQ(&operator_of(Op(i)), &operators()[i]);
    }
    EXPECT_EQ(name_of(Op::add), "+");
    EXPECT_EQ(name_of(Op::dropout), "dropout");
    EXPECT_EQ(operator_of_sign("-")->op, Op::subtract);  // not the sign of one operand
    EXPECT_EQ(operator_of_sign("("), nullptr);
}

TEST(Operators, FunctionsAreFoundByAllTheirNames) {
    std::set<std::string_view> seen;
    for (const Operator& row : operators()) {
        if (row.kind == OperatorKind::leaf || row.precedence != precedence::call) continue;
        EXPECT_TRUE(seen.insert(row.name).second) << row.name;
        const Operator* by_name = row.aliases[0].empty() ? &row : nullptr;
        EXPECT_EQ(function_named(row.name), by_name) << row.name;
    }
    EXPECT_EQ(function_named("bf16"), &operator_of(Op::cast));
    EXPECT_EQ(function_named("cast"), nullptr);
    EXPECT_EQ(function_named("+"), nullptr);
    EXPECT_EQ(closest_function("gleu"), "gelu");
}

TEST(Operators, HaveMeaningCostAndCode) {
    for (const Operator& row : operators()) {
        const std::string what(row.name);
        if (row.kind == OperatorKind::leaf) continue;
        EXPECT_GE(row.max_operands, row.min_operands) << what;
        EXPECT_GT(row.cost.fp32.issue + row.cost.issue_per_operand, 0) << what;
        EXPECT_LE(row.cost.fp32.mufu + row.cost.fp32.alu, row.cost.fp32.issue) << what;
        if (row.kind == OperatorKind::pointwise) {
            EXPECT_TRUE(row.meaning.element) << what;
            EXPECT_FALSE(row.meaning.element.name.empty()) << what;
            EXPECT_TRUE(!row.code.function.empty() || row.code.text || row.precedence < precedence::unary)
                << what;
        } else {
            EXPECT_TRUE(row.meaning.row) << what;
            EXPECT_FALSE(row.meaning.row.name.empty()) << what;
            EXPECT_EQ(row.steps.steps != nullptr, row.kind == OperatorKind::keeps_row) << what;
            EXPECT_EQ(row.steps.of_one != nullptr, row.kind == OperatorKind::keeps_row || row.kind == OperatorKind::reduces_row)
                << what;
        }
    }
}

}  // namespace
}  // namespace rooftile
