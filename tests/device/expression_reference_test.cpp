// The expressions' reference on a GPU is the one on the host: values, bounds, verdicts.
#include "rooftile/measure/expression_reference.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rooftile/expression/element_bits.hpp"
#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/random.hpp"
#include "tests/device/device.hpp"

namespace rooftile {
namespace {

class ExpressionReferenceTest : public DeviceTest {
  protected:
    static ExpressionGraph made(std::string_view text, const std::vector<std::string>& tensors) {
        std::vector<TensorDeclaration> declared;
        for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
        return expression_graph(text, declared);
    }

    /// Inputs in device memory, and their values.
    struct Inputs {
        std::vector<DeviceBuffer> buffers;
        std::vector<const void*> pointers;
        std::vector<std::vector<double>> values;
    };
    static Inputs filled(const ExpressionReference& reference, VerifyCase which, std::uint64_t seed) {
        Inputs in;
        std::vector<void*> to;
        const ExpressionGraph& graph = reference.graph();
        for (int i : graph.inputs) {
            in.buffers.emplace_back(
                std::size_t(std::max<std::int64_t>(16, bytes_of(graph.nodes[std::size_t(i)]))));
            to.push_back(in.buffers.back().data());
            in.pointers.push_back(to.back());
        }
        reference.fill(nullptr, which, seed, to);
        synchronize(Stream(nullptr));
        for (std::size_t i = 0; i < to.size(); ++i) {
            const GraphNode& n = graph.nodes[std::size_t(graph.inputs[i])];
            std::vector<char> bytes(std::size_t(bytes_of(n)));
            if (!bytes.empty()) copy_to_host(bytes.data(), in.buffers[i].address(), bytes.size());
            in.values.push_back(values_of_elements(bytes.data(), elements_of(n.shape), n.element));
        }
        return in;
    }

    /// Values within 1e-12 of the tensor's largest, errors within 1e-6 of themselves.
    static void expect_same(const BoundedTensor& got, const BoundedTensor& expected,
                            const std::string& what) {
        ASSERT_EQ(got.size(), expected.size()) << what;
        double scale = 0;
        for (const Bounded& e : expected)
            if (std::isfinite(e.value) && std::isfinite(e.error)) scale = std::max(scale, std::fabs(e.value));
        int told = 0;
        for (std::size_t i = 0; i < got.size() && told < 3; ++i) {
            const Bounded &g = got[i], &e = expected[i];
            bool same = std::isinf(g.error) == std::isinf(e.error);
            if (same && !std::isinf(e.error)) {
                const bool finite = std::isfinite(e.value);
                same = finite                ? std::fabs(g.value - e.value) <= 1e-12 * scale
                       : std::isnan(e.value) ? std::isnan(g.value)
                                             : g.value == e.value;
                same &= std::fabs(g.error - e.error)
                        <= 1e-6 * e.error + 1e-14 * (finite ? std::fabs(e.value) : 0);
            }
            if (same) continue;
            ++told;
            ADD_FAILURE() << what << "\nelement " << i << ": " << fmt::format("{} +- {}", g.value, g.error)
                          << " on the GPU, " << fmt::format("{} +- {}", e.value, e.error) << " on the host";
        }
    }

    void compare(const ExpressionGraph& graph, std::uint64_t seed) {
        const std::string arch = Driver::instance().device(0).arch();
        const ExpressionReference whole(graph, arch), cut(graph, arch, 999);
        for (const VerifyCase which : {VerifyCase::random, VerifyCase::special}) {
            const Inputs in = filled(whole, which, seed);
            const std::vector<BoundedTensor> expected = rooftile::evaluate(graph, in.values);
            std::size_t most = 0;
            for (const BoundedTensor& t : expected) most = std::max(most, t.size());
            for (const ExpressionReference* reference : {&whole, &cut}) {
                if (reference == &cut && most > 100000) continue;  // a launch a row would take long
                const std::vector<BoundedTensor> got = reference->evaluate(nullptr, in.pointers);
                for (std::size_t o = 0; o < got.size(); ++o)
                    expect_same(got[o], expected[o],
                                graph.text + (which == VerifyCase::special ? ", special" : "")
                                    + (reference == &cut ? ", in parts" : ""));
            }
        }
    }
};

TEST_F(ExpressionReferenceTest, EvaluatesRandomExpressionsAsTheHost) {
    RandomExpressions random(20251);
    for (std::uint64_t i = 0; i < 220; ++i) {
        const RandomExpression e = random.next();
        compare(made(e.text, e.tensors), i);
        if (HasFailure()) return;
    }
}

// A thread a row, lanes of a warp, a CTA, several CTAs.
TEST_F(ExpressionReferenceTest, EvaluatesRowsOfAnyLengthAsTheHost) {
    struct Rows {
        const char* text;
        bool weighted;  ///< by g and b
    };
    for (const auto& [rows, columns] :
         {std::pair{1, 1}, {300, 1}, {300, 7}, {3, 130}, {40, 1024}, {9, 4097}, {3, 1 << 20}})
        for (const Rows& r :
             {Rows{"y = softmax(x)", false}, Rows{"y = log_softmax(x * 3)", false},
              Rows{"y = layernorm(x, g, b)", true}, Rows{"y = rmsnorm(x + b, g)", true},
              Rows{"s = sum(x * x); m = mean(x); t = max(x); p = argmax(x); l = logsumexp(x)", false}}) {
            std::vector<std::string> tensors = {fmt::format("x:bf16[{},{}]", rows, columns)};
            if (r.weighted)
                for (const char* weight : {"g:fp32", "b:fp16"})
                    tensors.push_back(fmt::format("{}[{}]", weight, columns));
            compare(made(r.text, tensors), 4);
            if (HasFailure()) return;
        }
}

TEST_F(ExpressionReferenceTest, EvaluatesEveryOtherFormAsTheHost) {
    const std::pair<const char*, std::vector<std::string>> problems[] = {
        {"y = x - mean_all(x)", {"x:bf16[300,1003]"}},
        {"y = sum_all(x * x); z = max_all(x)", {"x:fp32[1000,333]"}},
        {"y = sum_all(x * dropout(c, 0.5, 9))", {"x:bf16[300,100]", "c:fp32[300,1]"}},
        {"y = column_sum(x * x); z = column_max(x); m = column_mean(x) * w", {"x:fp32[1000,333]", "w:bf16[333]"}},
        {"y = column_sum(x)", {"x:bf16[3,40,7]"}},
        {"y = column_mean(x)", {"x:fp16[100003,2]"}},
        {"y = column_max(x)", {"x:bf16[2,100003]"}},
        {"y = a * b + c", {"a:fp32[2,1,3,1]", "b:bf16[5,1,4]", "c:fp16[2,5,3,4]"}},
        {"y = softmax(x) * dropout(c, 0.5, 3)", {"x:bf16[6,50,64]", "c:fp32[50,1]"}},
        {"y = dropout(x, 0.25, 7, 3) + dropout(c, 0.5, 1) * dropout(b, 0.5, 2)",
         {"x:bf16[301,100]", "c:fp32[301,1]", "b:bf16[100]"}},
        {"y = where(f, x, z) + 1.0; w = f * (x > z)", {"f:bool[64,65]", "x:bf16[64,65]", "z:fp32[64,65]"}},
        {"y = minimum(f, g) + f", {"f:bool[64,65]", "g:bool[65]"}},
        {"y = bf16(x) * fp16(z) / fp32(x); w = abs(-x) ** z", {"x:fp32[50,70]", "z:fp32[50,70]"}},
        {"y = exp(x) - log(z ** 2) + sqrt(abs(x)) * rsqrt(z * z + 1) + x ** -0.5 + x ** 3",
         {"x:fp32[5003]", "z:fp32[5003]"}},
        {"y = softplus(x) + maximum(x, s) + (x <= s) * 1.0", {"x:bf16[777]", "s:fp32[1]"}},
    };
    for (const auto& [text, tensors] : problems) compare(made(text, tensors), 11);
}

TEST_F(ExpressionReferenceTest, JudgesEveryElement) {
    const std::string arch = Driver::instance().device(0).arch();
    const ExpressionGraph graph =
        made("y = layernorm(x) + b; m = max(x)", {"x:bf16[1500,130]", "b:fp32[130]"});
    const ExpressionReference reference(graph, arch, 10000);
    const Inputs in = filled(reference, VerifyCase::random, 5);
    const std::vector<BoundedTensor> expected = rooftile::evaluate(graph, in.values);
    // Nine results, so that they do not fit in one launch, each a copy of the first.
    std::vector<DeviceBuffer> buffers;
    std::vector<std::vector<void*>> pointers(9);
    std::vector<std::span<void* const>> results;
    for (std::vector<void*>& of_one : pointers) {
        for (std::size_t o = 0; o < expected.size(); ++o) {
            std::vector<double> values;
            for (const Bounded& e : expected[o]) values.push_back(e.value);
            const std::vector<char> bytes =
                elements_of_values(values, graph.nodes[std::size_t(graph.outputs[o].node)].element);
            buffers.emplace_back(bytes.size());
            copy_to_device(buffers.back().address(), bytes.data(), bytes.size());
            of_one.push_back(buffers.back().data());
        }
        results.emplace_back(of_one);
    }
    for (const CaseOutcome& outcome : reference.judge(nullptr, in.pointers, results)) {
        EXPECT_TRUE(outcome.right) << outcome.failure;
        EXPECT_EQ(outcome.checked, 1500 * 131);
        EXPECT_EQ(outcome.undecided, 0);
        // Rounded to nearest: half a unit, of a bound that has a whole one.
        EXPECT_GT(outcome.ratio, 0);
        EXPECT_LE(outcome.ratio, 0.5);
    }
    // y is fp32 (bf16 + fp32), m bf16. One element of the third result's last row, one of the last result's first.
    const float nothing = 0;
    const std::uint16_t nan = 0x7fff;
    copy_to_device(buffers[4].address() + (1500 * 130 - 1) * sizeof(float), &nothing, sizeof(nothing));
    copy_to_device(buffers[17].address(), &nan, sizeof(nan));
    const std::vector<CaseOutcome> outcomes = reference.judge(nullptr, in.pointers, results);
    for (std::size_t r = 0; r < outcomes.size(); ++r) {
        EXPECT_EQ(outcomes[r].right, r != 2 && r != 8) << r;
        EXPECT_EQ(outcomes[r].wrong, r == 2 || r == 8 ? 1 : 0) << r;
    }
    EXPECT_EQ(outcomes[2].failure.find("y[1499,129]: got 0, expected "), 0u) << outcomes[2].failure;
    EXPECT_EQ(outcomes[8].failure.find("m[0,0]: got nan, expected "), 0u) << outcomes[8].failure;
    EXPECT_TRUE(std::isinf(outcomes[8].ratio));
}

TEST_F(ExpressionReferenceTest, TooManyUndecidedAreNotRight) {
    const std::string arch = Driver::instance().device(0).arch();
    const ExpressionReference reference(made("y = softmax(x) * 0.0 + 1.0 > 1.0", {"x:fp32[40,50]"}), arch);
    const Inputs in = filled(reference, VerifyCase::random, 5);
    const DeviceBuffer out(2000);
    void* const outputs[] = {out.data()};
    const std::span<void* const> results[] = {outputs};
    const CaseOutcome outcome = reference.judge(nullptr, in.pointers, results)[0];
    EXPECT_FALSE(outcome.right);
    EXPECT_EQ(outcome.undecided, 2000);
    EXPECT_EQ(outcome.failure, "y: 2000 of 2000 elements undecided, at most 20 may be");
    EXPECT_TRUE(reference.judge(nullptr, in.pointers, results, {.share = 1})[0].right);
}

TEST_F(ExpressionReferenceTest, TooLittleMemoryIsNotRight) {
    const ExpressionReference reference(made("y = sum_all(x * x)", {"x:bf16[1048576,1048576]"}),
                                        Driver::instance().device(0).arch());
    const void* const inputs[] = {nullptr};
    void* const outputs[] = {nullptr};
    const std::span<void* const> results[] = {outputs};
    const CaseOutcome outcome = reference.judge(nullptr, inputs, results)[0];
    EXPECT_FALSE(outcome.right);
    EXPECT_EQ(outcome.checked, 0);
    // 2^40 products of 16 B and a sum.
    EXPECT_EQ(outcome.failure.find("not compared: the fp64 reference takes 17592186044432 B, "), 0u)
        << outcome.failure;
}

TEST_F(ExpressionReferenceTest, FillsWithNormalNumbers) {
    const ExpressionReference reference(
        made("y = x + z + f", {"x:bf16[1000,1001]", "z:fp32[1000,1001]", "f:bool[1000,1001]"}),
        Driver::instance().device(0).arch());
    const Inputs in = filled(reference, VerifyCase::random, 7),
                 again = filled(reference, VerifyCase::random, 7),
                 other = filled(reference, VerifyCase::random, 8);
    EXPECT_EQ(in.values, again.values);
    EXPECT_NE(in.values[1], other.values[1]);
    const double n = 1001000;
    for (int i = 0; i < 3; ++i) {
        double sum = 0, squares = 0;
        for (double v : in.values[std::size_t(i)]) sum += v, squares += v * v;
        EXPECT_NEAR(sum / n, i == 2 ? 0.5 : 0, 5 / std::sqrt(n));  // five deviations
        EXPECT_NEAR(squares / n, i == 2 ? 0.5 : 1, 5 * std::sqrt(2 / n));
    }
    double together = 0;
    for (std::size_t i = 0; i < in.values[0].size(); ++i) together += in.values[0][i] * in.values[1][i];
    EXPECT_NEAR(together / n, 0, 5 / std::sqrt(n));
    // Specials are where they are said to be, and all else is as it was.
    const Inputs special = filled(reference, VerifyCase::special, 7);
    const std::vector<SpecialValue> put = special_values(reference.graph(), 7);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t at = 0; at < in.values[i].size(); ++at)
            differ += in.values[i][at] != special.values[i][at];
    EXPECT_EQ(differ, put.size());
    for (const SpecialValue& v : put) {
        const double there = special.values[v.input][std::size_t(v.element)];
        EXPECT_TRUE(std::isnan(v.value) ? std::isnan(there) : there == v.value);
    }
}

}  // namespace
}  // namespace rooftile
