// Where a kernel waits for the one in front: B's first blocks are asked for before, and with early_weights alone; all else after.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "rooftile/core/random.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/compile/compiled.hpp"

namespace rooftile {
namespace {

struct Before {
    int waits, loads;  ///< in all; copies to shared memory that stand before the wait
};
Before before_the_wait(const std::string& text, const std::string& wait, const std::string& load) {
    return {mentions(text, wait), mentions(text.substr(0, text.find(wait)), load)};
}

std::vector<GemmPlan> plans_of(const GemmProblem& problem, const GemmRequest& request) {
    const auto derived = derive(machine_by_id("h200-sxm"), problem, request);
    if (const auto* none = std::get_if<Infeasible>(&derived)) ADD_FAILURE() << none->message;
    return std::holds_alternative<Plans>(derived) ? std::get<Plans>(derived).plans : std::vector<GemmPlan>{};
}

TEST(EarlyWeights, BoxesOfBStandBeforeTheWait) {
    const bool sass = find_disassembler().has_value();
    if (!sass) fmt::print("no disassembler: PTX alone is looked at\n");
    for (const bool swap_ab : {false, true})
        for (const bool early : {false, true}) {
            GemmRequest request;
            request.top = 1, request.buildable_only = true, request.swap_ab = swap_ab,
            request.early_weights = early;
            const std::vector<GemmPlan> plans = plans_of(gemm_problem(64, 4096, 4096), request);
            ASSERT_EQ(plans.size(), 1u);
            const Kernel kernel = compile(plans.front());
            const Before ptx = before_the_wait(kernel.ptx(), "griddepcontrol.wait", "complete_tx::bytes [");
            EXPECT_EQ(ptx.waits, 1);
            EXPECT_EQ(ptx.loads > 0, early) << kernel.name_expression();
            if (!sass) continue;
            const Before code = before_the_wait(*disassemble(kernel.cubin()), "ACQBULK", "UTMALDG");
            EXPECT_EQ(code.waits, 1);
            EXPECT_EQ(code.loads > 0, early) << kernel.name_expression();
        }
}

TEST(EarlyWeights, CopiesOfFewRowsStandBeforeTheWait) {
    for (const bool early : {false, true}) {
        GemmRequest request;
        request.kernel = find_gemm_kernel("sm80_few_gemm");
        request.top = 1, request.buildable_only = true, request.early_weights = early;
        const std::vector<GemmPlan> plans = plans_of(gemm_problem(9, 12676, 4230), request);
        ASSERT_EQ(plans.size(), 1u);
        const Before ptx =
            before_the_wait(compile(plans.front()).ptx(), "griddepcontrol.wait", "cp.async.cg.shared.global");
        EXPECT_EQ(ptx.waits, 1);
        EXPECT_EQ(ptx.loads > 0, early);
    }
}

// compile() refuses spills and whatever ptxas complains about.
TEST(EarlyWeights, PlansCompileClean) {
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 17));
    std::vector<GemmPlan> all;
    for (int i = 0; i < 6; ++i) {
        GemmProblem p =
            gemm_problem(random.whole(1, i % 2 == 0 ? 64 : 3000), 8 * random.whole(1, 1000),
                         8 * random.whole(1, 1000), random.coin() ? Type::bf16 : Type::fp16,
                         random.one_in(3) ? Major::mn : Major::k, random.one_in(3) ? Major::mn : Major::k);
        if (p.a_major == Major::mn) p.lda = (p.lda + 7) / 8 * 8;
        if (i == 5)
            p.batch = 3, p.a_stride = dense_stride(p, 'a'), p.b_stride = dense_stride(p, 'b'),
            p.c_stride = dense_stride(p, 'c');
        GemmRequest request;
        request.top = 8, request.buildable_only = true, request.early_weights = true;
        const std::vector<GemmPlan> plans = plans_of(p, request);
        ASSERT_FALSE(plans.empty());
        all.push_back(plans.front()), all.push_back(plans.back());
    }
    const std::vector<KernelOutcome> kernels = compile_all(all);
    for (std::size_t i = 0; i < kernels.size(); ++i)
        if (const auto* error = std::get_if<Error>(&kernels[i]))
            ADD_FAILURE() << fmt::format("{}x{}x{}: {}", all[i].problem.m, all[i].problem.n, all[i].problem.k,
                                         error->what());
}

}  // namespace
}  // namespace rooftile
