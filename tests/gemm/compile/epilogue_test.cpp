// What the planner calls feasible with an epilogue compiles as planned: nothing spills.
//
// ROOFTILE_TEST_COUNT sets how many, ROOFTILE_FUZZ_SEED draws others.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/draw_epilogue.hpp"

namespace rooftile {
namespace {

TEST(GemmEpilogues, OfTheSearchCompileWithoutASpill) {
    const std::size_t count = test_count(8, 24);
    Random random(from_environment("ROOFTILE_FUZZ_SEED", test_seed()));
    const Machine machine = machine_by_id("h200-sxm");
    std::vector<GemmPlan> plans;
    while (plans.size() < count) {
        GemmProblem p = drawn_product(random, random.coin() ? Type::bf16 : Type::fp16, 9000);
        p.k = 1 + std::int64_t(random.pick(8000));
        p = [&] {  // dense again, of the other depth
            GemmProblem deep = gemm_problem(p.m, p.n, p.k, p.a_type, p.a_major, p.b_major);
            deep.ldc = p.ldc, deep.c_offset = p.c_offset;
            return deep;
        }();
        if (!give_epilogue(p, drawn_epilogue(random))) continue;
        GemmRequest request;
        request.top = 4, request.buildable_only = true;
        request.kernel = find_gemm_kernel("sm90_gemm");
        const auto derived = derive(machine, p, request);
        const auto* found = std::get_if<Plans>(&derived);
        ASSERT_TRUE(found) << p.epilogue.text();
        // The best, and one of those that are hardly slower.
        plans.push_back(found->plans.front());
        if (plans.size() < count) plans.push_back(found->plans[random.pick(found->plans.size())]);
    }
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < count; ++i) {
        const auto* error = std::get_if<Error>(&kernels[i]);
        if (!error) continue;
        const GemmProblem& p = plans[i].problem;
        const GemmConfig& c = plans[i].config;
        const Sm90GemmConfig k = kernel_config(plans[i]);
        ADD_FAILURE() << fmt::format("{} {}x{}x{} {} tile {}x{} {}{} split {}, {} sums, {} beside them, {} of those the epilogue's, of {}: {}\n  {}", i, p.m, p.n, p.k,
                                     name_of(p.a_type), c.tile_m, c.tile_n, c.schedule == Schedule::pingpong ? "pingpong" : "cooperative", c.swap_ab ? " swapped" : "",
                                     c.split_k, k.accumulator_registers(), k.working_registers(), k.epilogue_registers, k.consumer_registers, p.epilogue.text(), error->what());
    }
    fmt::print("{} products with epilogues\n", count);
}

// What is counted beside the operands in flight is enough: with so many registers ptxas spills nothing.
TEST(GemmEpilogues, ValuesNeedNoMoreRegistersThanCounted) {
    struct Form {
        const char* text;
        std::vector<std::string> tensors;
    };
    const Form forms[] = {{"d = acc + bias", {"bias:bf16[N]"}},
                          {"d = gelu(acc + bias)", {"bias:bf16[N]"}},
                          {"d = gelu_tanh(acc + bias) * r", {"bias:bf16[N]", "r:bf16[M,N]"}},
                          {"d = silu(acc) * r", {"r:bf16[M,N]"}},
                          {"d = dropout(gelu(acc + bias), 0.1, seed=1) + r", {"bias:bf16[N]", "r:bf16[M,N]"}},
                          {"d = (acc + bias) * s + r * t", {"bias:bf16[N]", "r:bf16[M,N]", "s:fp32[M,1]", "t:fp32[M,N]"}}};
    for (const Form& form : drawn_few(std::vector(std::begin(forms), std::end(forms)), 2)) {
        GemmProblem p = gemm_problem(3000, 7168, 1024);
        p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, form.text, form.tensors);
        GemmRequest request;
        request.tile_m = 128, request.tile_n = 128, request.swap_ab = false, request.schedule = Schedule::pingpong;
        request.top = 1, request.buildable_only = true;
        const auto derived = derive(machine_by_id("h200-sxm"), p, request);
        ASSERT_TRUE(std::holds_alternative<Plans>(derived)) << form.text;
        const GemmPlan& plan = std::get<Plans>(derived).plans.front();
        const Sm90GemmConfig config = kernel_config(plan);
        const int needed = (config.accumulator_registers() + config.working_registers() + 7) / 8 * 8;
        CompileOptions options;
        options.alter = [&](Source& source) {
            std::string& kernel = source.name_expressions.front();
            const std::string given = fmt::format(".consumer_registers={}", config.consumer_registers);
            const std::size_t at = kernel.find(given);
            ASSERT_NE(at, std::string::npos) << kernel;
            kernel.replace(at, given.size(), fmt::format(".consumer_registers={}", needed));
        };
        EXPECT_NO_THROW(compile(plan, options)) << form.text << " with " << needed << " registers";
    }
}

// The kernel of mma.sync has them too, and batches; on every architecture that it is made for.
TEST(GemmEpilogues, Sm80SpillsNothing) {
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 12));
    std::vector<GemmPlan> plans;
    for (const char* id : {"a100-80-sxm", "a40", "rtx4090", "h100-sxm"})
        for (int i = 0; i < 6; ++i) {
            GemmProblem p = drawn_product(random, random.coin() ? Type::bf16 : Type::fp16, 9000);
            if (i % 2 == 1) {
                p.batch = 16;
                p.a_stride = dense_stride(p, 'a'), p.b_stride = random.coin() ? 0 : dense_stride(p, 'b'), p.c_stride = dense_stride(p, 'c');
            }
            if (i != 1 && !give_epilogue(p, drawn_epilogue(random, p.batch > 1))) continue;
            if (p.pairs() != Pairs::none || p.results() > 1) continue;  // sm90_gemm's alone
            GemmRequest request;
            request.top = 4, request.buildable_only = true;
            request.kernel = find_gemm_kernel("sm80_gemm");
            const auto derived = derive(machine_by_id(id), p, request);
            ASSERT_TRUE(std::holds_alternative<Plans>(derived)) << id << ' ' << std::get<Infeasible>(derived).message;
            const auto& found = std::get<Plans>(derived).plans;
            plans.push_back(found.front()), plans.push_back(found.back());
        }
    EXPECT_GT(plans.size(), 24u);
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < kernels.size(); ++i)
        if (const auto* error = std::get_if<Error>(&kernels[i]))
            ADD_FAILURE() << fmt::format("{} tile {}x{} {}: {}", plans[i].arch, plans[i].config.tile_m, plans[i].config.tile_n, plans[i].problem.epilogue.text(), error->what());
}

}  // namespace
}  // namespace rooftile
