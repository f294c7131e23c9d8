// What sm90_few_quantised's configuration says about itself holds in the code that is made of it: no spills, registers that a launch leaves,
// the instructions it is about.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/quantised_reference.hpp"
#include "rooftile/gemm/device/sm90_quantised_launch.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/quantised_model.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/compile/compiled.hpp"
#include "tests/gemm/draw_quantised.hpp"

namespace rooftile {
namespace {

/// Of 65536 registers an SM, in units of 8 a thread, 255 at most.
int left_by_launch(const Sm90QuantisedConfig& c) {
    return std::min(255, 65536 / ((c.threads() * c.ctas_per_sm + 127) / 128 * 128) / 8 * 8);
}

// Every tile that the search meets, of layouts drawn.
TEST(Sm90FewQuantised, CompilesWithoutSpills) {
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 3));
    std::vector<Sm90QuantisedConfig> all;
    for (int tile_m = 8; tile_m <= Sm90QuantisedConfig::most_rows; tile_m += 8)
        for (const int tile_n : {64, 128})
            for (const int tile_k : {128, 256, 512})
                for (const int warps : {8, 16})
                    for (const int ctas : {1, 2}) {
                        Sm90QuantisedConfig c{.tile_m = tile_m,
                                              .tile_n = tile_n,
                                              .tile_k = tile_k,
                                              .stages = 2,
                                              .consumer_warps = warps,
                                              .ctas_per_sm = ctas,
                                              .type = random.coin() ? Type::bf16 : Type::fp16,
                                              .layout = drawn_layout(random),
                                              .ragged_k = random.one_in(3)};
                        if (c.spans() % c.k_parts() == 0 && c.registers() <= left_by_launch(c))
                            all.push_back(c);
                    }
    const std::vector<Sm90QuantisedConfig> cases = drawn_few(all, 8, 24);
    std::vector<Source> sources;
    for (const Sm90QuantisedConfig& c : cases) sources.push_back(quantised_source(c));
    const std::vector<CompileOutcome> outcomes = compile_all(sources);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        SCOPED_TRACE(quantised_name_expression(cases[i]));
        expect_clean(outcomes[i], left_by_launch(cases[i]));
    }
}

// A warp of a 64x256 stage has 16 rows of W by 2 spans of 64 of K: a load of 16 B each, 4 words of it; a word is unpacked by 4 LOP3 and 4
// subtractions, and multiplied once for each 8 rows of A, whose fragments are 2 ldmatrix a span. Zero points that are no whole numbers take
// a product with ones beside each.
TEST(Sm90FewQuantised, UnpacksAndMultipliesAsItCounts) {
    for (const auto& [tile_m, zeros] : {std::pair{8, ZeroType::none}, {24, ZeroType::none}, {8, ZeroType::real}}) {
        const Sm90QuantisedConfig c{.tile_m = tile_m,
                                    .tile_n = 64,
                                    .tile_k = 256,
                                    .stages = 3,
                                    .consumer_warps = 8,
                                    .ctas_per_sm = 1,
                                    .type = Type::bf16,
                                    .layout = {.weights = WeightType::int4, .zeros = zeros}};
        ASSERT_EQ(c.own_spans(), 2);
        const std::string ptx = compile_to_ptx(quantised_source(c));
        const int loops = c.runs_ahead() ? 2 : 1;  // of few rows one of whole stages, and one of those that end with K
        const int words = loops * c.own_spans() * 4;
        EXPECT_EQ(mentions(ptx, "ld.shared.v4.u32"), loops * c.own_spans());
        EXPECT_EQ(mentions(ptx, "fma.rn.bf16x2"), words * 4);
        EXPECT_EQ(mentions(ptx, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"), words * tile_m / 8 * c.products());
        EXPECT_EQ(mentions(ptx, "ldmatrix.sync.aligned.m8n8.x4"), loops * c.own_spans() * 2 * tile_m / 8);
        EXPECT_EQ(c.unpack_instructions(), 4 + 4 + 1);  // masks, FMAs and a shift
        EXPECT_EQ(c.span_instructions(), 4 * 9 + 1 + (2 + 4 * c.products()) * tile_m / 8);
    }
}

// A warp of a 64x256 stage has 2 spans of 4 fragments of 4 words. Of floats half of the words are upper bytes, the others by a PRMT; each is two masks and a
// shift, but for e5m2 in fp16, and a product in bf16. Of tables each word is a shift, a mask and a load.
TEST(Sm90FewQuantised, UnpacksEachTypeAsItCounts) {
    for (const Type type : {Type::bf16, Type::fp16})
        for (const WeightType weights : {WeightType::fp8_e4m3, WeightType::fp8_e5m2, WeightType::mxfp4, WeightType::nf4}) {
            const QuantisedLayout layout{.weights = weights, .group = weights == WeightType::mxfp4 ? 32 : 128};
            const Sm90QuantisedConfig c{.tile_m = 8, .tile_n = 64, .tile_k = 256, .stages = 3, .consumer_warps = 8, .ctas_per_sm = 1, .type = type, .layout = layout};
            SCOPED_TRACE(quantised_name_expression(c));
            const std::string ptx = compile_to_ptx(quantised_source(c));
            const int loops = c.runs_ahead() ? 2 : 1, words = loops * c.own_spans() * 4 * 4;
            const bool shifted = layout.is_float() && !(type == Type::fp16 && weights == WeightType::fp8_e5m2);
            EXPECT_EQ(mentions(ptx, "prmt.b32"), layout.is_float() ? words / 2 : 0);
            EXPECT_EQ(mentions(ptx, "fma.rn.bf16x2"), layout.is_float() && type == Type::bf16 ? words : 0);
            EXPECT_EQ(mentions(ptx, ", -2147450880;"), shifted ? words + (type == Type::bf16 ? loops : 0) : 0);  // the sign, 0x80008000, and what a product is added to
            EXPECT_EQ(mentions(ptx, ", 32640;"), layout.is_table() ? words : 0);  // the pair, 0x7f80
            EXPECT_EQ(mentions(ptx, "ld.shared::cta.u32"), layout.is_table() ? words : 0);
            const int of_float = 2 + (type == Type::bf16 ? 16 : 12);
            EXPECT_EQ(c.unpack_instructions(), layout.is_table() ? 4 + 4 + 4 : shifted ? of_float : 2 + 2);
        }
}

TEST(Sm90FewQuantised, PlansSpillNothing) {
    Random random(from_environment("ROOFTILE_FUZZ_SEED", test_seed()));
    std::vector<GemmPlan> plans;
    for (const char* id : {"h100-sxm", "h200-sxm"})
        for (std::size_t i = 0; i < test_count(5, 15); ++i) {
            GemmRequest request;
            request.top = 2;
            request.kernel = find_gemm_kernel("sm90_few_quantised");
            const auto derived = derive(machine_by_id(id), drawn_quantised_expressed(random, 30000, 16000), request);
            ASSERT_TRUE(std::holds_alternative<Plans>(derived))
                << id << ' ' << std::get<Infeasible>(derived).message;
            plans.push_back(std::get<Plans>(derived).plans.back());
        }
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const auto* kernel = std::get_if<Kernel>(&kernels[i]);
        ASSERT_TRUE(kernel) << std::get<Error>(kernels[i]).what() << std::get<Error>(kernels[i]).detail();
        EXPECT_LE(kernel->entry().registers,
                  left_by_launch(quantised_config(plans[i].problem, plans[i].config)))
            << kernel->name_expression();
    }
}

// An expression is evaluated where a tile is stored: of every tile that the search meets ptxas finds room for its values and operands.
TEST(Sm90FewQuantised, ExpressionsSpillNothing) {
    struct Form {
        const char* text;
        std::vector<std::string> tensors;
    };
    const Form forms[] = {{"d = acc + bias", {"bias:bf16[N]"}},
                          {"d = gelu(acc + bias)", {"bias:fp32[N]"}},
                          {"d = silu(acc) * r", {"r:bf16[M,N]"}},
                          {"d = dropout(gelu(acc * s + bias), 0.1, seed=1) + r", {"s:fp32[M,1]", "bias:bf16[N]", "r:fp32[M,N]"}}};
    std::vector<GemmPlan> plans;
    for (const int m : drawn_few(std::vector{1, 9, 24, 40, 64}, 2))
        for (const Form& form : forms) {
            GemmProblem p = gemm_problem(m, 4096, 4096);
            p.quantised = {.weights = WeightType::int4, .group = 32, .zeros = ZeroType::real};
            p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, form.text, form.tensors);
            GemmRequest request;
            request.kernel = find_gemm_kernel("sm90_few_quantised");
            const auto derived = derive(machine_by_id("h200-sxm"), p, request);
            ASSERT_TRUE(std::holds_alternative<Plans>(derived)) << std::get<Infeasible>(derived).message;
            plans.push_back(std::get<Plans>(derived).plans.front());
        }
    for (const KernelOutcome& kernel : compile_all(plans))
        if (const Error* error = std::get_if<Error>(&kernel)) ADD_FAILURE() << error->what() << error->detail();
}

TEST(Sm90FewQuantised, ItsReferenceCompiles) {
    const CompileOutcome outcome = compile_all(std::vector{quantised_reference_source("sm_90")}).front();
    if (const Error* error = std::get_if<Error>(&outcome)) FAIL() << error->what() << error->detail();
    EXPECT_EQ(std::get<Compiled>(outcome).entries.size(), 6u);
    EXPECT_EQ(unclean(std::get<Compiled>(outcome)).value_or(""), "");
}

}  // namespace
}  // namespace rooftile
