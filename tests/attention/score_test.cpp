// Scores as expressions: however they are written they are the same, and what is read of them is what they say.
#include "rooftile/attention/score.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/expression/evaluate.hpp"

namespace rooftile {
namespace {

/// Of s, i, j and a tensor's value.
struct Form {
    const char* text;
    double (*value)(double s, double i, double j, double a);
};
constexpr Form forms[] = {{"s * 2", [](double s, double, double, double) { return s * 2; }},
                          {"s + a * (j - i)", [](double s, double i, double j, double a) { return s + a * (j - i); }},
                          {"where(j <= i, s, s - a)", [](double s, double i, double j, double a) { return j <= i ? s : s - a; }},
                          {"where(s >= 0, s, 0.5 * s)", [](double s, double, double, double) { return s >= 0 ? s : 0.5 * s; }},
                          {"where(i == j, 3, s)", [](double s, double i, double j, double) { return i == j ? 3 : s; }},
                          {"where(a != 0, s, s * j)", [](double s, double, double j, double a) { return a != 0 ? s : s * j; }},
                          {"where(s < a, a, s)", [](double s, double, double, double a) { return s < a ? a : s; }},
                          {"(s + i) * 0.5", [](double s, double i, double, double) { return (s + i) * 0.5; }}};

TEST(AttentionScore, IsTheSameHoweverItIsWritten) {
    Random random(471030);
    for (const Form& form : forms)
        for (const char* way :
             {"s = {}", "s={}", "  s  =  {}", "y = {}", "t = {}; y = t + 0", "t = 0 * s; y = {} + t", "t = {}; s = t + 0", "Z = {}"}) {
            const std::string_view body = form.text;
            const auto names = [&](char letter) { return body.find(letter) != body.npos; };
            const bool has_i = body.find("i)") != body.npos || body.find(" i") != body.npos || body.find("(i") != body.npos;
            std::vector<std::string> tensors;
            const std::int64_t heads = random.whole(1, 4);
            const bool by_head = random.coin(), wide = random.coin();
            const bool has_a = body.find("a,") != body.npos || body.find("a ") != body.npos || body.find("a)") != body.npos;
            if (has_a) tensors.push_back(fmt::format("a:{}[{}]", wide ? "fp32" : "bf16", by_head ? "H" : "1"));
            const std::string text = fmt::format(fmt::runtime(way), body);
            SCOPED_TRACE(text);
            const SharedScore score = attention_score(heads, text, tensors);
            ASSERT_TRUE(score);
            const bool has_j = names('j');
            EXPECT_EQ(score->by_place, has_i || has_j);
            EXPECT_EQ(score->bytes(heads), has_a ? (by_head ? heads : 1) * (wide ? 4 : 2) : 0);
            EXPECT_FALSE(score->calls_functions());
            // 20 registers, one of each tensor, 12 of places.
            EXPECT_EQ(score->registers(), 20 + int(has_a) + (has_i || has_j ? 12 : 0));
            std::vector<std::vector<double>> inputs(score->graph.inputs.size());
            std::vector<double> s, a;
            for (int k = 0; k < heads * 6; ++k) s.push_back(double(random.whole(-8, 8)));
            for (int k = 0; k < (by_head ? heads : 1); ++k) a.push_back(double(random.whole(-2, 2)));
            std::size_t next = 0;
            inputs[next++] = s;
            if (has_i) inputs[next++] = {0, 1};
            if (has_j) inputs[next++] = {0, 1, 2};
            if (has_a) inputs[next++] = a;
            ASSERT_EQ(next, inputs.size());
            const BoundedTensor result = evaluate(score->graph, inputs).at(0);
            for (std::size_t h = 0, k = 0; h < std::size_t(heads); ++h)
                for (int i = 0; i < 2; ++i)
                    for (int j = 0; j < 3; ++j, ++k)
                        EXPECT_DOUBLE_EQ(result[k].value, form.value(s[k], i, j, has_a ? a[by_head ? h : 0] : 0)) << k;
        }
}

TEST(AttentionScore, WhatNamesNoResultIsRefused) {
    for (const Form& form : forms)
        for (const char* way : {"{}", "t = s; {}", " ({})", "({}) == s", "s <= {}", "s >= {}", "s != {}"}) {
            const std::string text = fmt::format(fmt::runtime(way), form.text);
            try {
                attention_score(2, text, {"a:fp32[H]"});
                ADD_FAILURE() << text;
            } catch (const RequestError& error) { EXPECT_THAT(error.what(), testing::HasSubstr("names no result")) << text; }
        }
}

// 20, of the first function 16, of each further one 2, 8 at most.
TEST(AttentionScore, FunctionsTakeRegisters) {
    std::string text = "s";
    for (int functions = 1; functions < 9; ++functions) {
        text = (functions % 2 ? "tanh(" : "exp(") + text + ")";
        const SharedScore score = attention_score(1, "y = " + text, {});
        EXPECT_TRUE(score->calls_functions());
        EXPECT_EQ(score->registers(), 20 + 16 + std::min(8, 2 * (functions - 1))) << text;
    }
}

}  // namespace
}  // namespace rooftile
