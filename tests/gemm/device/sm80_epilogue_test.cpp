// sm80_gemm with random epilogues and in batches: every element against fp64.
//
// ROOFTILE_FUZZ_SHAPES sets how many (60), ROOFTILE_FUZZ_SEED repeats a run.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "rooftile/core/random.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/device/gemm_verifier.hpp"
#include "tests/gemm/draw_epilogue.hpp"

namespace rooftile {
namespace {

class Sm80EpilogueTest : public DeviceTest {};

struct Sm80Way {
    int tile_m, tile_n, tile_k, warpgroups, ctas_per_sm;
};
// One CTA an SM is persistent; wide and narrow warps.
constexpr Sm80Way sm80_ways[] = {{128, 128, 32, 2, 1}, {64, 64, 32, 1, 2}, {128, 64, 64, 2, 1}, {16, 128, 64, 1, 1}, {64, 128, 32, 1, 3}, {32, 32, 64, 1, 4}};

/// A batch in every other; its matrices one behind the other, apart, or side by side within their lines.
GemmProblem drawn(Random& random, int index) {
    for (;;) {
        GemmProblem p = drawn_product(random, index % 2 == 0 ? Type::bf16 : Type::fp16, 900);
        if (index % 2 == 1) {
            p.batch = 2 + std::int64_t(random.pick(5));
            p.a_stride = random.coin() ? 0 : dense_stride(p, 'a') + std::int64_t(random.pick(9));
            p.b_stride = random.one_in(4) ? 0 : dense_stride(p, 'b');
            p.c_stride = dense_stride(p, 'c') + std::int64_t(random.pick(3)) * 8;
        }
        if (index % 4 == 1) return p;  // a batch alone
        if (give_epilogue(p, drawn_epilogue(random, p.batch > 1))) return p;
    }
}

TEST_F(Sm80EpilogueTest, EveryElementIsRight) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", 1);
    const int count = int(from_environment("ROOFTILE_FUZZ_SHAPES", 60));
    const Machine machine = live_machine().machine;
    Random random(seed);
    const std::vector<GemmPlan> plans = drawn_plans(count, [&](int i) {
        const Sm80Way& way = sm80_ways[std::size_t(i) % std::size(sm80_ways)];
        GemmRequest r;
        r.kernel = find_gemm_kernel("sm80_gemm");
        if (i % 5 != 4) r.tile_m = way.tile_m, r.tile_n = way.tile_n, r.tile_k = way.tile_k, r.consumer_warpgroups = way.warpgroups, r.ctas_per_sm = way.ctas_per_sm;
        r.top = 1, r.buildable_only = true;
        return derive(machine, drawn(random, i), r);
    });
    ASSERT_EQ(plans.size(), std::size_t(count)) << "no problem suits a way";
    expect_every_element_right(plans, seed, "sm80_gemm", [&](const GemmProblem& p, std::size_t i) {
        return fmt::format("ROOFTILE_FUZZ_SEED={} case {}: {} of {}x{}x{} strides {} {} {} {}", seed, i, p.batch, p.m, p.n, p.k, p.a_stride,
                           p.b_stride, p.c_stride, p.epilogue.text());
    });
}

}  // namespace
}  // namespace rooftile
