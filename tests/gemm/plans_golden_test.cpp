#include "tests/core/plans_golden.hpp"

#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {
namespace {

TEST(GemmPlansGolden, AreAsBefore) {
    static constexpr const char* laws[] = {"draw", "draw", "any", "fp8", "fp8_blocks", "epilogue", "batch", "group", "experts"};
    const auto problem = [](Random& random) {
        GemmProblem p;
        do p = drawn_gemm(random, {random.one_of(laws)});
        while (p.flops().value > 1e12);  // the largest take a tenth of a second each
        return Problem{&gemm_operation(), Own::of(p)};
    };
    expect_plans_as_before(gemm_operation(), problem, 470103, 100);
}

}  // namespace
}  // namespace rooftile
