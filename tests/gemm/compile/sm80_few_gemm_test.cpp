// What sm80_few_gemm's configuration says about itself holds in the code that is made of it, on every architecture with cp.async and
// mma.sync: no spills, no more registers than it counts, the instructions it is about.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/core.h>

#include "rooftile/core/random.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/sm80_few_launch.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/compile/compiled.hpp"
#include "tests/gemm/draw_epilogue.hpp"

namespace rooftile {
namespace {

constexpr const char* few_archs[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};

struct FewCase {
    Sm80FewConfig config;
    const char* arch;
};

/// Registers of a thread that a launch of so many CTAs an SM leaves: of 65536 an SM, in units of 8 a thread, 255 at most.
int few_launch_registers(const Sm80FewConfig& c, int ctas) { return std::min(255, 65536 / (c.threads() * ctas) / 8 * 8); }

std::vector<FewCase> all_few_cases() {
    std::vector<FewCase> cases;
    for (int tile_m = 8; tile_m <= Sm80FewConfig::most_rows; tile_m += 8)
        for (const int tile_n : {128, 256, 56, 120})  // the latter along N
            for (const int tile_k : {64, 128, 256})
                for (int bits = 0; bits < 64; ++bits)
                    for (const int stages : {2, 5})
                        for (const char* arch : few_archs) {
                            Sm80FewConfig c{.tile_m = tile_m,
                                            .tile_n = tile_n,
                                            .tile_k = tile_k,
                                            .stages = stages,
                                            .ctas_per_sm = 1,
                                            .type = bits & 1 ? Type::fp16 : Type::bf16,
                                            .a_major = bits & 16 ? Major::mn : Major::k,
                                            .b_major = tile_n < 128 ? Major::mn : Major::k,
                                            .odd_rows = (bits & 2) != 0,
                                            .batched = (bits & 4) != 0,
                                            .in_pieces = (bits & 8) != 0,
                                            .early_weights = (bits & 32) != 0};
                            if (c.sums_bytes() > c.shared_bytes() || c.k_steps() == 0) continue;
                            if (c.a_words() > Sm80FewConfig::most_a_words) continue;
                            while (c.ctas_per_sm < 4 && c.registers() <= few_launch_registers(c, c.ctas_per_sm + 1)) ++c.ctas_per_sm;
                            if (c.registers() <= few_launch_registers(c, c.ctas_per_sm)) cases.push_back({c, arch});
                        }
    return cases;
}

TEST(Sm80FewGemm, CompilesWithTheRegistersItCounts) {
    const std::vector<FewCase> cases = drawn_few(all_few_cases(), 8, 36);
    std::vector<Source> sources;
    for (const FewCase& c : cases) sources.push_back(sm80_few_source(c.config, c.arch));
    const std::vector<CompileOutcome> outcomes = compile_all(sources);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} {}", cases[i].arch, sm80_few_name_expression(cases[i].config)));
        expect_clean(outcomes[i], few_launch_registers(cases[i].config, cases[i].config.ctas_per_sm));
    }
}

// Of a 16x128x64 tile: four k-steps, each of one ldmatrix of B and of two mma, 16 columns by 8 rows, in the main loop's body, which there is for
// each block of A on its way. 128 rows of 8 chunks of B are 4 a thread, before the main loop and in it, of whole blocks and of others; A comes
// otherwise. Words of A: 2 for each mma, twice as many where lines are odd; beside them four pairs of sums on their way out.
TEST(Sm80FewGemm, MultipliesAndCopiesAsItSays) {
    for (const bool odd : {false, true}) {
        const Sm80FewConfig config{
            .tile_m = 16, .tile_n = 128, .tile_k = 64, .stages = 4, .ctas_per_sm = 1, .type = Type::fp16, .odd_rows = odd};
        const std::string ptx = compile_to_ptx(sm80_few_source(config, "sm_80"));
        const int bodies = config.a_blocks();
        EXPECT_EQ(mentions(ptx, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), bodies * 4 * 2);
        EXPECT_EQ(mentions(ptx, "ldmatrix.sync.aligned.m8n8.x4"), bodies * 4);
        EXPECT_EQ(mentions(ptx, "cp.async.cg.shared.global.L2::128B"), 2 * (1 + bodies) * 4);
        EXPECT_EQ(mentions(ptx, "ld.shared::cta.u32"), bodies * 4 * 2 * 2 * (odd ? 2 : 1) + 4 * 2);
    }
}

// The banks of ldmatrix's eight rows and of a warp's words of A, by the kernel's own arithmetic.
TEST(Sm80FewGemm, RowsLieInDifferentBanks) {
    for (const int tile_k : {64, 128, 256}) {
        const Sm80FewConfig c{.tile_m = 8, .tile_n = 128, .tile_k = tile_k, .stages = 2, .ctas_per_sm = 1, .type = Type::bf16};
        for (int warp = 0; warp < 8; ++warp)
            for (int chunk = 0; chunk < c.row_chunks(); ++chunk)
                for (const int half : {0, 8}) {
                    unsigned groups = 0;
                    for (int i = 0; i < 8; ++i) groups |= 1u << few_b_place(c, few_b_line(warp, 0, half + i), chunk) / 16 % 8;
                    EXPECT_EQ(groups, 0xffu);
                }
        unsigned banks = 0;  // of rows that begin alike
        for (int lane = 0; lane < 32; ++lane) banks |= 1u << (lane / 4 * c.a_pitch_chunks() * 4 + lane % 4) % 32;
        EXPECT_EQ(banks, 0xffffffffu);
    }
}

// As planned, with epilogues and in batches, parts of K among them.
TEST(Sm80FewGemm, PlansSpillNothing) {
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 21));
    std::vector<GemmPlan> plans;
    for (const char* id : {"a100-80-sxm", "l40s", "rtx4090", "h100-sxm", "h200-sxm"})
        for (int i = 0; i < 4; ++i) {
            GemmProblem p =
                gemm_problem(random.whole(1, 64), random.whole(1, 9000), random.whole(1, 9000), random.coin() ? Type::bf16 : Type::fp16,
                             random.one_in(3) ? Major::mn : Major::k);
            p.lda += random.whole(0, 3), p.ldb += random.whole(0, 3);
            if (i == 3)
                p.batch = 3, p.a_stride = dense_stride(p, 'a'), p.b_stride = dense_stride(p, 'b'), p.c_stride = dense_stride(p, 'c');
            if (i != 0 && !give_epilogue(p, drawn_epilogue(random, p.batch > 1))) continue;
            if (p.pairs() != Pairs::none || p.results() > 1) continue;
            GemmRequest request;
            request.top = 4, request.buildable_only = true;
            request.kernel = find_gemm_kernel("sm80_few_gemm");
            const auto derived = derive(machine_by_id(id), p, request);
            ASSERT_TRUE(std::holds_alternative<Plans>(derived)) << id << ' ' << std::get<Infeasible>(derived).message;
            const auto& found = std::get<Plans>(derived).plans;
            plans.push_back(found.front()), plans.push_back(found.back());
        }
    EXPECT_GT(plans.size(), 20u);
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < kernels.size(); ++i)
        if (const auto* error = std::get_if<Error>(&kernels[i]))
            ADD_FAILURE() << fmt::format("{} tile {}x{}x{} {}: {}", plans[i].arch, plans[i].config.tile_m, plans[i].config.tile_n,
                                         plans[i].config.tile_k, plans[i].problem.epilogue.text(), error->what());
}

static_assert(few_shift(0x7f0000000000) == 0 && few_shift(0x7f000000000e) == 7);
// A row of 10 elements that begins 3 past a multiple of 16 B: 13 from there on, of which a second chunk has 5.
static_assert(few_copy_bytes(10, 3, -1) == 0 && few_copy_bytes(10, 3, 0) == 16 && few_copy_bytes(10, 3, 1) == 10
              && few_copy_bytes(10, 3, 2) == 0);
constexpr Sm80FewConfig few_plain{.tile_m = 8, .tile_n = 128, .tile_k = 64, .stages = 2, .ctas_per_sm = 1, .type = Type::bf16};
// 57 elements from the 8th place of a chunk on end in the 64th; one more is in another block.
static_assert(few_blocks(few_plain, 57, 7) == 1 && few_blocks(few_plain, 58, 7) == 2);

}  // namespace
}  // namespace rooftile
