// sm80_few_gemm on random problems of few rows: rows that begin anywhere, parts of K, batches, epilogues; every element against fp64.
//
// ROOFTILE_FUZZ_SHAPES sets how many (80), ROOFTILE_FUZZ_SEED repeats a run.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

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

class Sm80FewTest : public DeviceTest {};

struct FewWay {
    int tile_n, tile_k, ctas_per_sm, pieces, stages;  ///< 0: the planner's choice
};
// Lines of B along K or, in tiles of 56 and 120, along N.
constexpr FewWay few_ways[] = {{0, 0, 0, 0, 0},     {56, 128, 2, 1, 0}, {120, 128, 1, 3, 0}, {120, 256, 1, 1, 0}, {128, 64, 1, 1, 2},
                               {128, 128, 1, 3, 0}, {256, 64, 1, 1, 0}, {256, 128, 1, 2, 0}, {128, 256, 1, 5, 2}, {128, 64, 2, 1, 3}};

GemmProblem drawn_few(Random& random, int index, Major b_major) {
    for (;;) {
        const auto size = [&random](std::int64_t most) { return random.whole(1, random.one_in(4) ? 150 : most); };
        GemmProblem p =
            gemm_problem(random.whole(1, 64), size(3000), size(4000), index % 2 == 0 ? Type::bf16 : Type::fp16,
                         random.one_in(3) ? Major::mn : Major::k, b_major);
        if (random.one_in(4)) p = gemm_problem(p.m, p.n, (p.k + 7) / 8 * 8, p.a_type, p.a_major, p.b_major);
        for (std::int64_t* pitch : {&p.lda, &p.ldb, &p.ldc})
            if (random.coin()) *pitch += random.whole(1, 64);
        for (std::int64_t* offset : {&p.a_offset, &p.b_offset, &p.c_offset})
            if (random.coin()) *offset = random.whole(0, 7);
        if (index % 3 == 1) {
            p.batch = random.whole(2, 6);
            p.a_stride = random.one_in(4) ? 0 : dense_stride(p, 'a') + random.whole(0, 9);
            p.b_stride = dense_stride(p, 'b') + random.whole(0, 9);
            p.c_stride = dense_stride(p, 'c') + random.whole(0, 9);
        }
        if (index % 4 != 3) return p;
        if (give_epilogue(p, drawn_epilogue(random, p.batch > 1)) && p.pairs() == Pairs::none && p.results() == 1) return p;
    }
}

TEST_F(Sm80FewTest, EveryElementIsRight) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", 1);
    const int count = int(from_environment("ROOFTILE_FUZZ_SHAPES", 80));
    const Machine machine = live_machine().machine;
    Random random(seed);
    const std::vector<GemmPlan> plans = drawn_plans(count, [&](int i) {
        const FewWay& way = few_ways[std::size_t(i) % std::size(few_ways)];
        const bool along_n = way.tile_n == 0 ? random.coin() : way.tile_n < 128;
        GemmRequest r;
        r.kernel = find_gemm_kernel("sm80_few_gemm");
        const auto fix = [](std::optional<int>& knob, int value) {
            if (value > 0) knob = value;
        };
        fix(r.tile_n, way.tile_n), fix(r.tile_k, way.tile_k), fix(r.ctas_per_sm, way.ctas_per_sm), fix(r.grid_split_k, way.pieces),
            fix(r.stages, way.stages);
        r.top = 1, r.buildable_only = true;
        return derive(machine, drawn_few(random, i, along_n ? Major::mn : Major::k), r);
    });
    ASSERT_EQ(plans.size(), std::size_t(count)) << "no problem suits a way";
    expect_every_element_right(plans, seed, "sm80_few_gemm", [&](const GemmProblem& p, std::size_t i) {
        return fmt::format(
            "ROOFTILE_FUZZ_SEED={} case {}: {} of {}x{}x{} A {}-major ld {} {} {} offsets {} {} {} strides {} {} {} {}", seed, i, p.batch, p.m, p.n,
            p.k, p.a_major == Major::k ? 'k' : 'm', p.lda, p.ldb, p.ldc, p.a_offset, p.b_offset, p.c_offset, p.a_stride, p.b_stride, p.c_stride, p.epilogue.text());
    });
}

}  // namespace
}  // namespace rooftile
