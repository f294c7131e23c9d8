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

}  // namespace
}  // namespace rooftile
