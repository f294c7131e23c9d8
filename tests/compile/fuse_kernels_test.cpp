// Generated kernels compile clean and fast for Ampere and Hopper, load and store whole vectors, and need no
// more registers than their plans count on.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <regex>

#include "rooftile/kernel/fuse_kernel.hpp"
#include "rooftile/kernel/fuse_source.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/problem/expression.hpp"
#include "tests/random_expression.hpp"

namespace rooftile {
namespace {

FuseProblem made(std::string_view text, const std::vector<std::string>& tensors) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    return expression_graph(text, declared);
}

struct Case {
    const char* text;
    std::vector<std::string> tensors;
};
const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {"y = gelu(x)", {"x:bf16[16384,16384]"}},
        {"y = gelu_tanh(x)", {"x:fp32[16384,16384]"}},
        {"y = gelu(x + b)", {"x:bf16[16384,16384]", "b:bf16[16384]"}},
        {"y = 0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x**3)))", {"x:bf16[16384,16384]"}},
        {"y = softmax(x)", {"x:bf16[32768,256]"}},
        {"y = softmax(x)", {"x:bf16[16384,4096]"}},
        {"y = softmax(x)", {"x:bf16[2048,65536]"}},
        {"y = softmax(x)", {"x:bf16[16,1048576]"}},
        {"y = layernorm(x, g, b)", {"x:bf16[8192,16384]", "g:bf16[16384]", "b:bf16[16384]"}},
        {"y = rmsnorm(x, g)", {"x:bf16[1024,262144]", "g:bf16[262144]"}},
        {"y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7))",
         {"x:bf16[16384,4096]", "g:bf16[4096]", "b:bf16[4096]", "r:bf16[16384,4096]"}},
        {"y = where(m, x, -inf); z = argmax(x); w = logsumexp(x)", {"x:fp16[100,1024]", "m:bool[100,1024]"}},
        {"y = softmax(x)", {"x:bf16[100,1009]"}},
        {"y = x + z", {"x:fp32[2,3,5,8]", "z:fp32[2,1,5,8]"}},
        {"s = max_all(x); t = mean_all(x * x)", {"x:bf16[1000,1001]"}},
        {"y = log(x) * rsqrt(x) + erf(x) / (1 + exp(-z)) + x**2.5",
         {"x:fp32[1000,1001]", "z:fp16[1000,1001]"}},
    };
    return all;
}

/// The largest number after any match of `pattern` in `text`, or -1.
std::int64_t greatest_after(const std::string& text, const std::string& pattern) {
    std::int64_t greatest = -1;
    const std::regex numbered(pattern + "(\\d+)");
    for (std::sregex_iterator i(text.begin(), text.end(), numbered), end; i != end; ++i)
        greatest = std::max(greatest, std::int64_t(std::stoll((*i)[1])));
    return greatest;
}

/// Bytes of dynamic shared memory up to which `text` reaches, read off the text alone.
std::int64_t dynamic_shared_of(const std::string& text) {
    std::int64_t end = 0;
    const std::regex tensor(R"(reinterpret_cast<Pack<(\w+), width>\*>\(staged \+ (\d+)\))");
    for (std::sregex_iterator i(text.begin(), text.end(), tensor), last; i != last; ++i) {
        const std::string type = (*i)[1];
        const std::int64_t bytes = type == "float" ? 4 : type == "boolean" ? 1 : 2;
        std::int64_t vectors = 1;  // place < stages * items * threads
        for (const char* factor : {"int stages = ", "int items = ", "unsigned threads = ", "int width = "})
            vectors *= greatest_after(text, std::string("constexpr ") + factor);
        end = std::max(end, std::int64_t(std::stoll((*i)[2])) + vectors * bytes);
    }
    return end;
}

class FuseCompiles : public testing::TestWithParam<const char*> {};

TEST_P(FuseCompiles, CleanAndFastWithinPlannedRegisters) {
    for (const Case& c : cases()) {
        const auto outcome = derive(machine_by_id(GetParam()), made(c.text, c.tensors), {.top = 2});
        for (const FusePlan& plan : std::get<FusePlans>(outcome).plans) {
            ASSERT_TRUE(plan.buildable) << plan.why_not;
            const std::string what = fmt::format("{} plan {}", c.text, plan.rank);
            Compiled compiled;
            double fastest = 1e9;
            // 0.3 s on an idle machine; the best of three, as others may work on this one.
            for (int i = 0; i < 3 && fastest > 0.5; ++i) {
                compiled = compile_source(fuse_source(plan));
                fastest = std::min(fastest, compiled.seconds);
            }
            EXPECT_LE(fastest, 0.5) << what;
            EXPECT_EQ(unclean(compiled).value_or(""), "") << what << '\n' << compiled.log;
            const double per_cta = double(compiled.entries[0].registers) * plan.config.threads;
            EXPECT_LE(per_cta * plan.config.ctas_per_sm, 65536) << what;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, FuseCompiles, testing::Values("h200-sxm", "a100-80-sxm"));

TEST(FuseCode, AlignedTensorsMoveInSixteenBytes) {
    const auto ptx = [](const Case& c, FuseRequest request = {}) {
        request.top = 1;
        const auto outcome = derive(machine_by_id("h200-sxm"), made(c.text, c.tensors), request);
        return compile_to_ptx(fuse_source(std::get<FusePlans>(outcome).plans[0]));
    };
    const std::string gelu = ptx(cases()[0]);
    EXPECT_THAT(gelu, testing::HasSubstr("ld.global.nc.L1::no_allocate.v4.u32"));
    EXPECT_THAT(gelu, testing::HasSubstr("st.global.cs.v4.u32"));
    // All of a thread's loads stand before its first store.
    const size_t last_load = gelu.rfind("v4.u32 {", gelu.find("st.global.cs.v4"));
    EXPECT_LT(gelu.find("ld.global.nc.L1::no_allocate.v4.u32"), last_load);
    EXPECT_THAT(ptx(cases()[5], {.home = FuseHome::shared}), testing::HasSubstr("cp.async.cg.shared.global"));
    EXPECT_THAT(ptx(cases()[6], {.cluster = 4}), testing::HasSubstr("barrier.cluster.arrive"));
    EXPECT_THAT(ptx(cases()[0], {.alignment = 4}), testing::Not(testing::HasSubstr("v4.u32")));
}

TEST(FuseCode, LaunchesAskForTheSharedMemoryThatTheTextUses) {
    int staged = 0;
    for (const Case& c : cases())
        for (FuseHome home : {FuseHome::nowhere, FuseHome::registers, FuseHome::shared, FuseHome::twice}) {
            const auto outcome =
                derive(machine_by_id("h200-sxm"), made(c.text, c.tensors), {.home = home, .top = 64});
            const auto* plans = std::get_if<FusePlans>(&outcome);
            if (!plans) continue;
            for (const FusePlan& plan : plans->plans) {
                const std::string what = fmt::format("{} plan {} {}", c.text, plan.rank, name_of(home));
                const Launch launch = fuse_launch(plan, 8);
                const Source source = fuse_source(plan);
                EXPECT_EQ(dynamic_shared_of(source.text), std::int64_t(launch.shared_bytes)) << what;
                EXPECT_EQ(launch.shared_bytes > 0, home == FuseHome::shared) << what;
                EXPECT_EQ(launch.cluster_x, unsigned(plan.config.cluster)) << what;
                EXPECT_EQ(launch.block_x, unsigned(plan.config.threads)) << what;
                staged += launch.shared_bytes > 0;
                if (plan.rank > 1) continue;
                const bool dynamic = compile_to_ptx(source).find(".extern .shared") != std::string::npos;
                EXPECT_EQ(dynamic, launch.shared_bytes > 0) << what;
                const EntryInfo entry = compile_source(source).entries[0];
                EXPECT_LE(entry.static_shared_bytes, fuse::exchange_bytes) << what;
            }
        }
    EXPECT_GE(staged, 100);
}

TEST(FuseCode, NamesOfAPersonNeverBreakTheText) {
    for (const char* name : {"int", "asm", "float", "exp", "threadIdx", "row", "t", "size", "Pack", "vectors",
                             "k", "i", "NULL", "infinity", "main", "bf16", "and", "x__y"}) {
        const std::string text = fmt::format("out = softmax({} * 2); template = {} + 1", name, name);
        const auto outcome =
            derive(machine_by_id("h200-sxm"), made(text, {fmt::format("{}:bf16[64,64]", name)}), {.top = 1});
        EXPECT_NO_THROW(compile_source(fuse_source(std::get<FusePlans>(outcome).plans[0]))) << name;
    }
}

TEST(FuseRandom, AnyExpressionIsReadCountedPlannedAndGenerated) {
    RandomExpressions random(20261121);
    int planned = 0, compiled = 0;
    for (int i = 0; i < 10000; ++i) {
        const RandomExpression e = random.next();
        const FuseProblem p = made(e.text, e.tensors);
        const auto outcome = derive(machine_by_id(i % 2 ? "h200-sxm" : "a100-80-sxm"), p, {.top = 1});
        const auto* plans = std::get_if<FusePlans>(&outcome);
        if (!plans) continue;
        ++planned;
        ASSERT_GE(*plans->unfused.moved_bytes, *plans->fused.moved_bytes) << e.text;
        const FusePlan& plan = plans->plans[0];
        ASSERT_TRUE(plan.buildable || !plan.why_not.empty());
        if (!plan.buildable) continue;
        const Source source = fuse_source(plan);
        if (i % 200) continue;
        const Compiled code = compile_source(source);
        EXPECT_EQ(unclean(code).value_or(""), "") << e.text;
        ++compiled;
    }
    EXPECT_GE(planned, 7000);
    EXPECT_GE(compiled, 25);
}

}  // namespace
}  // namespace rooftile
