// The expression language: what it computes, which type and shape that has, and what it says of a mistake.
#include "rooftile/expression/expression.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "rooftile/expression/text.hpp"
#include "rooftile/expression/tree.hpp"
#include "rooftile/expression/tensor_value.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

ExpressionGraph made(std::string_view text, std::initializer_list<const char*> tensors) {
    std::vector<TensorDeclaration> declared;
    for (const char* t : tensors) declared.push_back(tensor_declaration(t));
    return expression_graph(text, declared);
}

/// "bf16[4,8]" of the first output.
std::string type_of(std::string_view text, std::initializer_list<const char*> tensors) {
    const ExpressionGraph p = made(text, tensors);
    const GraphNode& n = p.nodes[size_t(p.outputs[0].node)];
    return std::string(name_of(n.element)) + text_of(n.shape);
}

std::string refusal(std::string_view text, std::initializer_list<const char*> tensors) {
    try {
        made(text, tensors);
    } catch (const RequestError& error) { return error.what(); }
    return "accepted";
}

TEST(Expression, SignsBindAsInPython) {
    const auto written = [](std::string_view text) {
        return made(text, {"a:fp32[4]", "b:fp32[4]", "c:fp32[4]"}).text;
    };
    EXPECT_EQ(written("y = a + b * c"), "y = a + b * c");
    EXPECT_EQ(written("y = (a + b) * c"), "y = (a + b) * c");
    EXPECT_EQ(written("y = a - (b - c)"), "y = a - (b - c)");
    EXPECT_EQ(written("y = a - b - c"), "y = a - b - c");
    EXPECT_EQ(written("y = -a ** 2 + b*c"), "y = -a**2 + b * c");
    EXPECT_EQ(written("y = (-a) ** 2 + b*c"), "y = (-a)**2 + b * c");
    EXPECT_EQ(written("y = a ** b ** c"), "y = a**b**c");
    EXPECT_EQ(written("y = a ** -b * c"), "y = a**(-b) * c");
    EXPECT_EQ(written("y = where(a + b < c, a, -b)"), "y = where(a + b < c, a, -b)");
}

TEST(Expression, NumbersAloneAreFolded) {
    // 2**3 * 0.5 = 4; 7 / 2 = 3.5, a division as Python's.
    EXPECT_EQ(made("y = x * (2**3 * 0.5)", {"x:fp32[4]"}).text, "y = x * 4.0");
    EXPECT_EQ(made("y = x * (7 / 2)", {"x:fp32[4]"}).text, "y = x * 3.5");
    EXPECT_EQ(made("y = x * sqrt(2.25)", {"x:fp32[4]"}).text, "y = x * 1.5");
    EXPECT_THAT(refusal("y = x * sqrt(-1)", {"x:fp32[4]"}), HasSubstr("no value"));
}

TEST(Expression, StatementsShareValuesAndUnreadNamesAreOutputs) {
    const ExpressionGraph p = made("m = max(x); e = exp(x - m); y = e / sum(e)", {"x:bf16[4,8]"});
    ASSERT_EQ(p.outputs.size(), 1u);
    EXPECT_EQ(p.outputs[0].name, "y");
    // x, max, -, exp, sum, /: e stands once.
    EXPECT_EQ(p.nodes.size(), 6u);
    const ExpressionGraph two = made("h = x + r; y = layernorm(h); z = h", {"x:bf16[4,8]", "r:bf16[4,8]"});
    ASSERT_EQ(two.outputs.size(), 2u);
    EXPECT_EQ(two.outputs[1].name, "z");
}

TEST(Expression, TypesAreThoseOfPyTorch) {
    EXPECT_EQ(type_of("y = x + b", {"x:bf16[4]", "b:fp16[4]"}), "fp32[4]");
    EXPECT_EQ(type_of("y = x + b", {"x:bf16[4]", "b:fp32[4]"}), "fp32[4]");
    EXPECT_EQ(type_of("y = x + b", {"x:bf16[4]", "b:fp32[]"}), "bf16[4]");  // no axes: does not promote
    EXPECT_EQ(type_of("y = x + b", {"x:bf16[4]", "b:fp32[1]"}), "fp32[4]");
    EXPECT_EQ(type_of("y = x * 0.5", {"x:fp16[4]"}), "fp16[4]");
    EXPECT_EQ(type_of("y = x + 1", {"x:bf16[4]"}), "bf16[4]");
    EXPECT_EQ(type_of("y = x > 0", {"x:bf16[4]"}), "bool[4]");
    EXPECT_EQ(type_of("y = (x > 0) * x", {"x:bf16[4]"}), "bf16[4]");
    EXPECT_EQ(type_of("y = (x > 0) * 0.5", {"x:bf16[4]"}), "fp32[4]");
    EXPECT_EQ(type_of("y = (x > 0) * (x < 1)", {"x:bf16[4]"}), "bool[4]");
    EXPECT_EQ(type_of("y = m + s", {"m:bool[4]", "s:fp16[]"}),
              "fp16[4]");  // a higher kind, whatever its rank
    EXPECT_EQ(type_of("y = sqrt(m)", {"m:bool[4]"}), "fp32[4]");
    EXPECT_EQ(type_of("y = where(x > 0, x, 0.0)", {"x:bf16[4]"}), "bf16[4]");
    EXPECT_EQ(type_of("y = fp16(x) + x", {"x:bf16[4]"}), "fp32[4]");
    EXPECT_EQ(type_of("y = argmax(x)", {"x:bf16[3,4]"}), "int64[3,1]");
    EXPECT_EQ(type_of("y = layernorm(x, g)", {"x:bf16[3,4]", "g:fp32[4]"}), "bf16[3,4]");
    EXPECT_EQ(type_of("y = sum_all(x)", {"x:fp16[3,4]"}), "fp16[]");
    EXPECT_EQ(type_of("y = column_sum(x)", {"x:fp16[2,3,4]"}), "fp16[4]");
    EXPECT_EQ(type_of("y = column_max(x) + column_mean(x) * w", {"x:bf16[3,1]", "w:fp32[1]"}), "fp32[1]");
}

TEST(Expression, ShapesStretchAsInPyTorch) {
    EXPECT_EQ(type_of("y = x + b", {"x:fp32[5,1,3]", "b:fp32[4,1]"}), "fp32[5,4,3]");
    EXPECT_EQ(type_of("y = x + b", {"x:fp32[0,3]", "b:fp32[3]"}), "fp32[0,3]");
    EXPECT_EQ(type_of("y = x - max(x)", {"x:fp32[2,3,4]"}), "fp32[2,3,4]");
    EXPECT_THAT(refusal("y = x + b", {"x:fp32[4,3]", "b:fp32[4]"}), HasSubstr("3 against 4"));
}

TEST(Expression, ReductionsOfColumnsNeedRows) {
    EXPECT_THAT(refusal("y = column_sum(x)", {"x:bf16[8]"}), HasSubstr("all axes but the last; bf16[8] has no other"));
    EXPECT_THAT(refusal("y = column_sum(x > 0)", {"x:bf16[8,8]"}), HasSubstr("needs a floating tensor"));
    EXPECT_THAT(refusal("y = column_max(x)", {"x:bf16[0,8]"}), HasSubstr("of nothing"));
    EXPECT_EQ(refusal("y = column_max(x)", {"x:bf16[8,0]"}), "accepted");  // no column is without a value
    EXPECT_EQ(refusal("y = column_sum(x)", {"x:bf16[0,8]"}), "accepted");
    EXPECT_EQ(refusal("y = column_sum(x, axes=2)", {"x:bf16[2,3,8]"}), "accepted");
    EXPECT_THAT(refusal("y = column_sum(x, axes=1)", {"x:bf16[2,3,8]"}), HasSubstr("along 1 axes of bf16[2,3,8]: it works along all but the last, which are 2"));
}

TEST(Expression, RefusalsPointAtTheColumn) {
    EXPECT_EQ(refusal("y = gelux(x)", {"x:bf16[4]"}),
              "column 5: there is no function \"gelux\"; did you mean gelu?\n  y = gelux(x)\n      ^");
    struct Case {
        const char* text;
        int column;
        const char* says;
    };
    const Case cases[] = {
        {"", 1, "expected a statement"},
        {"gelu(x)", 5, "expected \"=\""},
        {"y = x +", 8, "expected an operand"},
        {"y = x x", 7, "expected an operator"},
        {"y = (x", 7, "expected an operator or \")\""},
        {"y = x # 1", 7, "unexpected character"},
        {"y = 1.2.3 * x", 5, "is no number"},
        {"y = 1e999 * x", 5, "does not fit"},
        {"y = x < 1 < 2", 11, "do not chain"},
        {"y = gelu", 5, "is a function"},
        {"y = gelu(x, x)", 13, "takes"},
        {"y = gelu()", 5, "expected gelu(x)"},
        {"y = dropout(x)", 5, "p is missing"},
        {"y = dropout(x, 1.5)", 5, "must be 0 .. 1"},
        {"y = dropout(x, 0.5, seed=0.5)", 26, "must be an integer"},
        {"y = layernorm(x, epsilon=1)", 26, "no argument \"epsilon\""},
        {"y = dropout(x, p=0.5, p=0.6)", 25, "p of dropout is given twice"},
        {"y = dropout(x, 0.1, p=0.6)", 23, "p of dropout is given twice"},
        {"y = layernorm(x, 1e-6, eps=1e-3)", 28, "eps of layernorm is given twice"},
        {"h = x * 0.5; y = dropout(x, h)", 29, "must be a number"},
        {"h = gelu(x) * 2; y = relu(x, h)", 30, "takes"},
        {"y = gleu(x)", 5, "did you mean gelu?"},
        {"y = x; y = x", 8, "is taken"},
        {"y = z", 5, "no tensor \"z\""},
        {"y = where(x, x, x)", 5, "must be bool"},
        {"y = 2", 1, "is a number"},
        {"y = argmax(x) + 1", 15, "int64"},
        {"y = (x > 0) - (x < 0)", 13, "floating type"},
    };
    for (const Case& c : cases) {
        const std::string said = refusal(c.text, {"x:bf16[4]"});
        EXPECT_THAT(said, HasSubstr("column " + std::to_string(c.column) + ":")) << c.text << '\n' << said;
        EXPECT_THAT(said, HasSubstr(c.says)) << c.text;
        EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 2) << c.text;
    }
    EXPECT_THAT(refusal("y = x", {"x:bf16[4]", "z:bf16[4]"}), HasSubstr("\"z\" is not used"));
}

TEST(Expression, TensorsSayWhatWasExpected) {
    EXPECT_EQ(tensor_declaration("x:bf16[16384,4096]").shape, (Shape{16384, 4096}));
    EXPECT_EQ(tensor_declaration("s:fp32[]").shape, Shape{});
    for (const char* wrong :
         {"x", "x:bf16", "x:bf16[4", "x:int8[4]", "1x:bf16[4]", "x:bf16[4,]", "x:bf16[-1]", "x:bf16[a]",
          "x[4]:bf16", ":bf16[4]", "x y:bf16[4]", "x:bf16[99999999999999999999]"})
        EXPECT_THROW(tensor_declaration(wrong), RequestError) << wrong;
    EXPECT_THAT(refusal("y = x", {"x:bf16[16777216,16777216]"}), HasSubstr("2^48"));
}

TEST(Expression, DepthAndLengthAreLimited) {
    const auto repeated = [](const char* part, int n) {
        std::string s;
        for (int i = 0; i < n; ++i) s += part;
        return s;
    };
    EXPECT_THAT(refusal("y = " + repeated("(", 5000) + "x" + repeated(")", 5000), {"x:bf16[4]"}),
                HasSubstr("characters"));
    EXPECT_THAT(refusal("y = " + repeated("(", 1000) + "x" + repeated(")", 1000), {"x:bf16[4]"}),
                HasSubstr("levels deep"));
    EXPECT_THAT(refusal("y = " + repeated("-", 3000) + "x", {"x:bf16[4]"}), HasSubstr("levels deep"));
    EXPECT_THAT(refusal("y = x" + repeated("+x", 3000), {"x:bf16[4]"}), HasSubstr("parts"));
    EXPECT_THAT(refusal("y = x" + repeated("**x", 200), {"x:bf16[4]"}), HasSubstr("levels deep"));
    EXPECT_EQ(refusal("y = x" + repeated("+x", 400), {"x:bf16[4]"}), "accepted");
}

TEST(Expression, AnyBytesAreReadOrRefused) {
    // Pieces that mean something, in any order, and bytes that mean nothing.
    const char* pieces[] = {"x",    "y",    "=",       "(",   ")",     ",",       ";",         "+",
                            "-",    "*",    "**",      "/",   "<",     ">=",      "1",         "2.5",
                            "1e-5", "gelu", "softmax", "sum", "where", "dropout", "layernorm", "fp32",
                            "p",    " ",    "\xff",    "\n",  "\""};
    std::mt19937 random(7);
    const std::vector<TensorDeclaration> tensors = {tensor_declaration("x:bf16[4,8]"),
                                                    tensor_declaration("b:fp32[8]")};
    int accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string text = i % 2 ? "y = " : "";
        for (int n = int(random() % 24); n-- > 0;) text += pieces[random() % std::size(pieces)];
        try {
            expression_graph(text, tensors);
            ++accepted;
        } catch (const RequestError& error) { EXPECT_LT(std::string(error.what()).size(), 500u); }
    }
    EXPECT_EQ(accepted, 0) << "b is never used, so nothing can be accepted";
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (int n = int(random() % 40); n-- > 0;) text += char(random());
        EXPECT_THROW(expression_graph(text, tensors), RequestError);
    }
}

TEST(Expression, CppBuildsTheSameProblem) {
    ExpressionBuilder f;
    const auto x = f.tensor("x", Element::bf16, {64, 32}), r = f.tensor("r", Element::bf16, {64, 32});
    const auto gamma = f.tensor("gamma", Element::bf16, {32}), beta = f.tensor("beta", Element::bf16, {32});
    f.output("y", gelu(dropout(layernorm(x, gamma, beta) + r * 0.5, 0.1, 7, 3)));
    const ExpressionGraph built = f.graph();
    const ExpressionGraph read = made("y = gelu(dropout(layernorm(x, gamma, beta) + r * 0.5, 0.1, 7, 3))",
                                      {"x:bf16[64,32]", "r:bf16[64,32]", "gamma:bf16[32]", "beta:bf16[32]"});
    EXPECT_EQ(built.text, read.text);
    EXPECT_EQ(built.nodes.size(), read.nodes.size());
    ExpressionBuilder g;
    const auto a = g.tensor("a", Element::bf16, {4});
    EXPECT_THROW(g.tensor("int x", Element::bf16, {4}), ExpressionError);
    EXPECT_THROW(a + g.tensor("z", Element::bf16, {5}), ExpressionError);
}

TEST(Expression, WrittenTextReadsBackAsItself) {
    for (const char* text : {"y = gelu(x) + -x**2 * 3", "y = where(x > 0, x, -1.5)", "y = softmax(x * 0.125)",
                             "y = dropout(x, p=0.1, seed=5, offset=6)", "y = bf16(exp(x) / (1 + exp(x)))"}) {
        const std::string once = made(text, {"x:fp32[4,8]"}).text;
        EXPECT_EQ(made(once, {"x:fp32[4,8]"}).text, once);
    }
}

}  // namespace
}  // namespace rooftile
