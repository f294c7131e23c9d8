// What sm90_many_quantised's configuration says about itself holds in the code that is made of it: no spills, registers that its roles have, the
// instructions it is about.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/sm90_many_quantised_launch.hpp"
#include "rooftile/gemm/many_quantised_model.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/tiled/registers.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/compile/compiled.hpp"
#include "tests/gemm/draw_quantised.hpp"

namespace rooftile {
namespace {

Sm90ManyQuantisedConfig of_many(int tile_m, int warpgroups, QuantisedLayout layout, Type type = Type::bf16, bool ragged_k = false) {
    const RegisterSplit split = split_registers(65536, 255, warpgroups, 1, layout.zeros == ZeroType::real ? 40 : tight_producer);
    return {.tile_m = tile_m,
            .tile_n = 64 * warpgroups,
            .stages = 2,
            .producer_registers = split.producer,
            .consumer_registers = split.consumer,
            .type = type,
            .layout = layout,
            .ragged_k = ragged_k};
}

/// Of 65536 registers an SM, as the launch deals them before the roles do.
int at_launch(const Sm90ManyQuantisedConfig& c) { return std::min(255, 65536 / c.threads() / 8 * 8); }

// Every tile that the search meets, by every layout.
TEST(Sm90ManyQuantised, CompilesWithoutSpills) {
    std::vector<Sm90ManyQuantisedConfig> all;
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 3));
    for (int type = 1; type <= int(WeightType::nf4); ++type)
        for (const int group : {32, 64, 128, 0})
            for (const ZeroType zeros : {ZeroType::none, ZeroType::integer, ZeroType::real})
                for (int tile_m = 32; tile_m <= 256; tile_m += 32)
                    for (const int warpgroups : {2, 3}) {
                        QuantisedLayout layout{WeightType(type), group, random.coin() ? Type::bf16 : Type::fp16, zeros};
                        if (layout.bits() == 8 && zeros == ZeroType::integer) continue;
                        if (!layout.is_whole() && zeros != ZeroType::none) continue;
                        if (layout.power_scales() && group != QuantisedLayout::power_group) continue;
                        if (layout.power_scales()) layout.scale = Type::bf16;
                        auto c = of_many(tile_m, warpgroups, layout, random.coin() ? Type::bf16 : Type::fp16, random.one_in(3));
                        if (random.one_in(3)) c.group_slots = random.coin() ? 32 : 256;
                        if (c.registers() <= c.consumer_registers && (tile_m <= 160 || c.scales_last())) all.push_back(c);
                    }
    const std::vector<Sm90ManyQuantisedConfig> cases = drawn_few(all, 6, 24);
    std::vector<Source> sources;
    for (const Sm90ManyQuantisedConfig& c : cases) sources.push_back(many_quantised_source(c));
    const std::vector<CompileOutcome> outcomes = compile_all(sources);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        SCOPED_TRACE(many_quantised_name_expression(cases[i]));
        expect_clean(outcomes[i], at_launch(cases[i]));
    }
}

// Of a stage a warp has 8 words of 4 bits, loaded by 2 times 16 B: a word is unpacked by 4 masks, 4 FMAs and a shift and is one product. The stage's first
// burst is unpacked twice in the text, before the loop and for the next stage.
TEST(Sm90ManyQuantised, UnpacksAndMultipliesAsItCounts) {
    for (const auto& [group, zeros] :
         {std::pair{128, ZeroType::none}, {32, ZeroType::integer}, {64, ZeroType::real}, {0, ZeroType::none}}) {
        const auto c = of_many(96, 2, {.weights = WeightType::int4, .group = group, .zeros = zeros});
        SCOPED_TRACE(many_quantised_name_expression(c));
        const std::string ptx = compile_to_ptx(many_quantised_source(c));
        const int words = 8 + c.burst_steps();
        EXPECT_EQ(mentions(ptx, "wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16"), 8);
        EXPECT_EQ(mentions(ptx, "wgmma.commit_group"), c.bursts());
        EXPECT_EQ(mentions(ptx, "ld.shared.v4.u32"), 2 * c.weight_loads() + 1);
        EXPECT_EQ(mentions(ptx, "fma.rn.bf16x2"), words * 4 + (zeros == ZeroType::integer ? 2 * (c.groups() + 1) : 0));
        EXPECT_EQ(mentions(ptx, "mma.sync.aligned.m16n8k16"), zeros == ZeroType::real ? 8 : 0);
        // Sums times scales, and where zero points are numbers as many again.
        const int sums = c.accumulator_registers() * (c.scales_last() ? 0 : c.groups()) * (c.sums_rows() ? 2 : 1);
        EXPECT_EQ(mentions(ptx, "fma.rn.f32"), sums);
        EXPECT_EQ(c.unpack_instructions(), 4 + 4 + 1);
    }
}

TEST(Sm90ManyQuantised, PlansSpillNothing) {
    Random random(from_environment("ROOFTILE_FUZZ_SEED", test_seed()));
    std::vector<GemmPlan> plans;
    for (const char* id : {"h100-sxm", "h200-sxm"})
        for (std::size_t i = 0; i < test_count(4, 12); ++i) {
            GemmRequest request;
            request.top = 2;
            const auto derived = derive(machine_by_id(id), drawn_quantised_expressed(random, 30000, 16000, 4096), request);
            ASSERT_TRUE(std::holds_alternative<Plans>(derived)) << id << ' ' << std::get<Infeasible>(derived).message;
            plans.push_back(std::get<Plans>(derived).plans.back());
        }
    for (const KernelOutcome& kernel : compile_all(plans))
        if (const Error* error = std::get_if<Error>(&kernel)) ADD_FAILURE() << error->what() << error->detail();
}

// An expression is evaluated where a tile is stored, and the next tile's first fragments are there already.
TEST(Sm90ManyQuantised, ExpressionsSpillNothing) {
    struct Form {
        const char* text;
        std::vector<std::string> tensors;
    };
    const Form forms[] = {{"d = acc + bias", {"bias:bf16[N]"}},
                          {"d = silu(acc) * r", {"r:bf16[M,N]"}},
                          {"d = dropout(gelu(acc * s + bias), 0.1, seed=1) + r", {"s:fp32[M,1]", "bias:bf16[N]", "r:fp32[M,N]"}}};
    std::vector<GemmPlan> plans;
    for (const int tile_m : drawn_few(std::vector{32, 96, 128, 160}, 1))
        for (const Form& form : forms)
            for (const int group : drawn_few(std::vector{32, 64, 128, 0}, 1)) {
                GemmProblem p = gemm_problem(2048, 4096, 4096);
                p.quantised = {.weights = WeightType::int4, .group = group, .zeros = group == 32 ? ZeroType::real : ZeroType::integer};
                p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, form.text, form.tensors);
                GemmRequest request;
                request.tile_m = tile_m;
                const auto derived = derive(machine_by_id("h200-sxm"), p, request);
                if (std::holds_alternative<Plans>(derived)) plans.push_back(std::get<Plans>(derived).plans.front());
            }
    ASSERT_FALSE(plans.empty());
    for (const KernelOutcome& kernel : compile_all(plans))
        if (const Error* error = std::get_if<Error>(&kernel)) ADD_FAILURE() << error->what() << error->detail();
}

}  // namespace
}  // namespace rooftile
