#include "rooftile/core/random.hpp"
#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/problem.hpp"
#include "tests/roof_below.hpp"

namespace rooftile {
namespace {

TEST(GemmDemand, NoPredictionIsBelowItsRoof) {
    for (const GemmProblem& p : {gemm_problem(64, 4096, 4096), gemm_problem(300, 517, 4096), gemm_problem(1, 2112, 7168),
                                 gemm_problem(512, 512, 16384), gemm_problem(8192, 8192, 8192), gemm_problem(64, 64, 64),
                                 gemm_problem(16384, 256, 128), gemm_problem(128, 28672, 8192)})
        expect_roofs_below({&gemm_operation(), Own::of(p)});
}

// By every law: a type that the machine has no rate of by that name is no unit less.
TEST(GemmDemand, NoDrawnPredictionIsBelowItsRoof) {
    Random random(471001);
    for (const char* law : {"draw", "any", "fp8", "fp8_blocks", "epilogue", "batch", "group", "experts"})
        for (int i = 0; i < 3; ++i) {
            GemmProblem p;
            do p = drawn_gemm(random, {law});
            while (p.flops().value > 1e12);  // the largest take a tenth of a second each
            expect_roofs_below({&gemm_operation(), Own::of(p)});
        }
}

}  // namespace
}  // namespace rooftile
