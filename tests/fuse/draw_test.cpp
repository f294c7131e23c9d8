// The law of drawn expressions: its bounds, its shares, and the first draws of a seed.
#include "rooftile/fuse/draw.hpp"

#include <gtest/gtest.h>

#include "rooftile/error.hpp"
#include "rooftile/fuse/program.hpp"

namespace rooftile {
namespace {

constexpr int draws = 2000;

std::string problem_text(const ExpressionGraph& graph) {
    std::string out = graph.text;
    for (const int i : graph.inputs) {
        const GraphNode& n = graph.nodes[std::size_t(i)];
        out += " " + n.name + ":" + std::string(name_of(n.element)) + rooftile::text_of(n.shape);
    }
    return out;
}

/// Whether it is one of the law's list, its output cast or not.
bool is_named(const ExpressionGraph& graph) {
    static const char* forms[] = {"softmax(x)",
                                  "log_softmax(x * 0.5)",
                                  "layernorm(x, gamma, beta)",
                                  "rmsnorm(x, gamma)",
                                  "rmsnorm(x + z, gamma)",
                                  "sum(x * x)",
                                  "max(x)",
                                  "logsumexp(x)",
                                  "silu(g) * u",
                                  "gelu(x + b)",
                                  "gelu(layernorm(x, gamma, beta) + z)",
                                  "x * s + z"};
    std::string body = graph.text.substr(4);
    if (const std::size_t at = body.find(", eps="); at != body.npos)
        body.erase(at, std::string(", eps=1e-05").size());
    for (const std::string form : forms)
        for (const char* cast : {"", "bf16", "fp16", "fp32"})
            if (body == (*cast ? cast + ("(" + form + ")") : form)) return true;
    return false;
}

TEST(FuseDraw, ASeedKeepsItsDraws) {
    Random random(7);
    std::vector<std::string> out;
    for (int i = 0; i < 5; ++i) out.push_back(problem_text(drawn_expression(random)));
    EXPECT_EQ(
        out, (std::vector<std::string>{
                 "y = logsumexp(x * (s + z)) x:bf16[162098,72] z:bf16[162098,72] s:bf16[]",
                 "y = fp32(log_softmax(x * dropout(mean(z * c), p=0.25, seed=70, offset=0))) "
                 "x:fp16[18149,1416] z:fp16[18149,1416] c:fp16[18149,1]",
                 "y = bf16(where(x > 0.1, b - z + c - x, x)) x:fp16[54794,27] z:fp16[54794,27] b:fp16[27] "
                 "c:fp16[54794,1]",
                 "y = abs(x * dropout(z * x, p=0.25, seed=92, offset=0)) x:fp32[5,1010439] z:fp32[5,1010439]",
                 "y = logsumexp(x) x:fp16[10923,1848]"}));
}

TEST(FuseDraw, SharesAndBounds) {
    Random random(1);
    int named = 0, row = 0, two_rows = 0, broadcast = 0, mixed = 0, wide = 0, aligned = 0, programs = 0;
    for (int i = 0; i < draws; ++i) {
        const ExpressionGraph graph = drawn_expression(random);
        const ProblemTraits t = fuse_traits(graph);
        const auto has = [&](std::string_view name) {
            return std::any_of(t.features.begin(), t.features.end(),
                               [&](const auto& f) { return f.first == name && f.second; });
        };
        EXPECT_TRUE(t.x.value >= 2 && t.x.value <= 1 << 28) << problem_text(graph);
        EXPECT_LE(t.y.value, 1 << 28) << problem_text(graph);
        EXPECT_GE(t.y.value + t.x.value, 1 << 20) << problem_text(graph);
        wide += t.x.value > 1 << 20;
        aligned += std::int64_t(t.x.value) % 8 == 0;
        mixed += has("mixed types");
        programs += std::holds_alternative<Program>(fuse_program(graph));
        if (is_named(graph)) {
            ++named;
            continue;
        }
        int operators = 0;
        for (const GraphNode& n : graph.nodes) operators += n.op != Op::input && n.op != Op::number;
        EXPECT_TRUE(operators >= 2 && operators <= 13)
            << problem_text(graph);  // 12, and a cast of the output
        row += t.band == "along rows";
        two_rows += has("two or more row operations");
        broadcast += has("broadcast operand");
    }
    const int drawn = draws - named;
    EXPECT_NEAR(named, 0.5 * draws, 0.05 * draws);
    EXPECT_GE(row, 0.6 * drawn);
    EXPECT_GE(two_rows, 0.2 * drawn);
    EXPECT_GE(broadcast, 0.3 * drawn);
    EXPECT_NEAR(mixed, 0.2 * draws, 0.05 * draws);
    EXPECT_NEAR(wide, 0.03 * draws, 0.02 * draws);  // a tenth, of which 8 in 27 lie beyond
    EXPECT_NEAR(aligned, 0.56 * draws, 0.06 * draws);
    EXPECT_EQ(programs, draws);
}

TEST(FuseDraw, BaseAddressesAreRefused) {
    EXPECT_THROW(fuse_law({.law = "any"}), RequestError);
}

TEST(FuseDraw, ColumnsKeepTheirLaw) {
    Random random(7);
    int whole_vectors = 0;
    for (int i = 0; i < 200; ++i) {
        const ExpressionGraph graph = drawn_columns(random);
        const Shape& x = graph.nodes[size_t(graph.inputs[0])].shape;
        ASSERT_EQ(x.size(), 2u);
        EXPECT_GE(elements_of(x), 1 << 20);
        EXPECT_LE(elements_of(x), 1 << 27);
        EXPECT_EQ(graph.nodes[size_t(graph.outputs[0].node)].shape, Shape{x[1]});
        EXPECT_EQ(fuse_traits(graph).band, "along columns");
        whole_vectors += x[1] % 8 == 0;
    }
    EXPECT_GE(whole_vectors, 80);  // half of them and an eighth of the rest
    EXPECT_LE(whole_vectors, 150);
}

}  // namespace
}  // namespace rooftile
