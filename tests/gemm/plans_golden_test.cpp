#include "tests/core/plans_golden.hpp"

#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/problem.hpp"

namespace rooftile {
namespace {

BestOfModel::Values golden_values(Random& random, const Problem&) {
    const auto number = [&](std::int64_t least, std::int64_t most) { return std::to_string(random.whole(least, most)); };
    const auto either = [&] { return std::string(random.coin() ? "on" : "off"); };
    static constexpr const char *kernels[] = {"sm90_gemm", "sm80_gemm", "simt_gemm"},
                                *orders[] = {"row", "column", "grouped", "serpentine", "morton", "hilbert"};
    return {{"kernel", random.one_of(kernels)},
            {"tile", fmt::format("{}x{}x{}", 64 * random.whole(1, 4), 32 * random.whole(1, 8), 64)},
            {"stages", number(1, 8)},
            {"consumer_warpgroups", number(1, 3)},
            {"schedule", random.coin() ? "pingpong" : "cooperative"},
            {"cluster", fmt::format("{}x{}", random.whole(1, 2), random.whole(1, 2))},
            {"order", random.one_of(orders)},
            {"split_k", number(1, 8)},
            {"swap_ab", either()}};
}

TEST(GemmPlansGolden, AreAsBefore) {
    static constexpr const char* laws[] = {"draw", "draw", "any", "fp8", "fp8_blocks", "epilogue", "batch", "group", "experts"};
    const auto problem = [](Random& random) {
        GemmProblem p;
        do p = drawn_gemm(random, {random.one_of(laws)});
        while (p.flops().value > 1e12);  // the largest take a tenth of a second each
        return Problem{&gemm_operation(), Own::of(p)};
    };
    expect_plans_as_before({gemm_operation(), golden_values, problem}, 470103, 100);
}

}  // namespace
}  // namespace rooftile
