// The launch that packs operands, as it is compiled beside the GEMM that reads the copies.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kernels/gemm/pack_arguments.hpp"
#include "kernels/gemm/unpack_weights_arguments.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/quantised_operands.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/runtime/nvrtc.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/compile/compiled.hpp"

namespace rooftile {
namespace {

GemmPlan plan_of(std::int64_t k) {
    GemmRequest request;
    request.top = 1;
    request.buildable_only = true;
    return std::get<Plans>(derive(machine_by_id("h200-sxm"), gemm_problem(300, 200, k), request)).plans.front();
}

std::size_t count(const std::string& text, const std::string& piece) {
    std::size_t found = 0;
    for (std::size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + 1)) ++found;
    return found;
}

TEST(GemmPack, StandsBesideTheGemmOnlyWhereItIsPlanned) {
    const Source plain = gemm_code(plan_of(512), Ablation::nothing)->source();
    EXPECT_EQ(plain.name_expressions.size(), 1u);
    const Source packed = gemm_code(plan_of(511), Ablation::nothing)->source();
    ASSERT_EQ(packed.name_expressions.size(), 2u);
    EXPECT_EQ(packed.name_expressions[1], "rooftile::pack_operands<false>");
}

// Four CTAs an SM, nothing spilled, and 16 bytes an access but for the elements at a tensor's ends.
TEST(GemmPack, MovesSixteenBytesAnAccess) {
    Source source;
    source.name = "pack";
    source.text = "#include \"kernels/gemm/pack.cuh\"\n";
    source.name_expressions = {"rooftile::pack_operands<false>"};
    source.arch = nvrtc_arch("sm_90");
    const Compiled compiled = compile_source(source);
    if (const auto why = unclean(compiled)) ADD_FAILURE() << *why;
    ASSERT_EQ(compiled.entries.size(), 1u);
    EXPECT_LE(compiled.entries[0].registers, 65536 / (4 * pack_threads));
    EXPECT_EQ(compiled.entries[0].static_shared_bytes, 0);
    const std::string ptx = compile_to_ptx(source);
    EXPECT_GE(count(ptx, "st.global.v4.u32"), 1u);
    EXPECT_EQ(count(ptx, "st.global"), count(ptx, "st.global.v4.u32"));
    EXPECT_GE(count(ptx, "ld.global.v4.u32"), 2u * pack_vectors_per_thread);
    const auto sass = disassemble(compiled.cubin);
    if (!sass) GTEST_SKIP() << "skipped: no disassembler";
    EXPECT_GE(count(*sass, "STG.E.128"), 1u);
    EXPECT_EQ(count(*sass, "STG.E"), count(*sass, "STG.E.128"));
    EXPECT_GE(count(*sass, "LDG.E.128"), 2u * pack_vectors_per_thread);
}

TEST(GemmPack, OfABatchAndOfBytesSpillsNothing) {
    for (const auto& [header, name] : {std::pair{"pack.cuh", "rooftile::pack_operands<true>"}, {"pack_bytes.cuh", "rooftile::pack_bytes"}}) {
        Source source;
        source.name = "pack";
        source.text = fmt::format("#include \"kernels/gemm/{}\"\n", header);
        source.name_expressions = {name};
        source.arch = nvrtc_arch("sm_90");
        if (const auto why = unclean(compile_source(source))) ADD_FAILURE() << name << ": " << *why;
    }
}

// Of every layout: nothing spilled, as many CTAs an SM as hide the loads' latency, and 16 bytes a store.
TEST(GemmPack, UnpacksWeightsWithoutSpills) {
    std::vector<Source> sources;
    for (int type = 1; type <= int(WeightType::nf4); ++type)
        for (const int group : {32, 128, 0})
            for (const ZeroType zeros : {ZeroType::none, ZeroType::integer, ZeroType::real})
                for (const Type scale : {Type::bf16, Type::fp16}) {
                    const QuantisedLayout layout{WeightType(type), group, scale, zeros};
                    if (layout.bits() == 8 && zeros == ZeroType::integer) continue;
                    if (!layout.is_whole() && zeros != ZeroType::none) continue;
                    if (layout.power_scales() && (group != QuantisedLayout::power_group || scale != Type::bf16)) continue;
                    for (const Type activations : {Type::bf16, Type::fp16})
                        for (const char* arch : {"sm_80", "sm_89", "sm_90"}) {
                            Source source;
                            source.name = "unpack_weights";
                            source.text = "#include \"kernels/gemm/unpack_weights.cuh\"\n";
                            source.name_expressions = {unpack_name_expression(layout, activations)};
                            source.arch = nvrtc_arch(arch);
                            sources.push_back(std::move(source));
                        }
                }
    const std::vector<Source> cases = drawn_few(sources, 8, 24);
    const std::vector<CompileOutcome> outcomes = compile_all(cases);
    constexpr int least_ctas = 4;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        SCOPED_TRACE(cases[i].name_expressions.front());
        expect_clean(outcomes[i], 65536 / (least_ctas * unpack_threads));
    }
    const std::string ptx = compile_to_ptx(cases.front());
    EXPECT_EQ(count(ptx, "st.global"), 4u);
    EXPECT_EQ(count(ptx, "st.global.v4.u32"), 4u);
}

TEST(GemmPack, WidensRowsWithoutSpills) {
    std::vector<Source> sources;
    for (const char* arch : {"sm_80", "sm_90"})
        for (const char* narrow : {"fp8_e4m3", "fp8_e5m2"})
            for (const char* wide : {"bf16", "fp16"}) {
                Source source;
                source.name = "widen_rows";
                source.text = "#include \"kernels/gemm/widen_rows.cuh\"\n";
                source.name_expressions = {fmt::format("rooftile::widen_rows<rooftile::Type::{}, rooftile::Type::{}>", narrow, wide)};
                source.arch = nvrtc_arch(arch);
                sources.push_back(std::move(source));
            }
    constexpr int most_registers = 32;  // as many CTAs as an SM has threads for
    for (const CompileOutcome& outcome : compile_all(sources)) expect_clean(outcome, most_registers);
}

// One launch in front of whichever kernel: A is widened, and weights are unpacked where the kernel is no one of theirs.
TEST(GemmPack, WidensInFrontOfProductsByPackedWeights) {
    std::vector<GemmPlan> plans;
    for (const auto& [id, kernel, m] : {std::tuple{"h200-sxm", "sm90_few_quantised", 7}, {"h200-sxm", "sm90_many_quantised", 300}, {"h200-sxm", "sm90_gemm", 300},
                                        {"a100-80-sxm", "sm80_gemm", 300}, {"l40s", "sm80_few_gemm", 7}}) {
        GemmProblem p = gemm_problem(m, 1000, 4000);
        p.quantised.weights = WeightType::int4, p.a_type = Type::fp8_e4m3;
        GemmRequest request;
        request.top = 1, request.kernel = find_gemm_kernel(kernel);
        plans.push_back(std::get<Plans>(derive(machine_by_id(id), p, request)).plans.front());
    }
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        SCOPED_TRACE(plans[i].config.kernel->name());
        if (const Error* error = std::get_if<Error>(&kernels[i])) {
            ADD_FAILURE() << error->what() << error->detail();
            continue;
        }
        const Source source = gemm_code(plans[i], Ablation::nothing)->source();
        ASSERT_EQ(source.name_expressions.size(), 2u);
        EXPECT_EQ(source.name_expressions[1], i < 2 ? "rooftile::widen_rows<rooftile::Type::fp8_e4m3, rooftile::Type::bf16>"
                                                    : unpack_name_expression(plans[i].problem.quantised, Type::bf16, Type::fp8_e4m3));
        const Kernel& kernel = std::get<Kernel>(kernels[i]);
        EXPECT_EQ(std::int64_t(kernel.workspace_bytes()), plans[i].resources.workspace_bytes);
        EXPECT_EQ(unclean(compile_source(source)).value_or(""), "");
        EXPECT_TRUE(kernel.with_rows(plans[i].problem.m - 1).has_value());
    }
}

// The launch that unpacks and the product behind it are one program; the product's sums are expressed as those of any other.
TEST(GemmPack, UnpacksInFrontOfTheProduct) {
    const QuantisedLayout layouts[] = {{.weights = WeightType::int4},
                                       {.weights = WeightType::uint4, .group = 32, .scale = Type::fp16, .zeros = ZeroType::integer},
                                       {.weights = WeightType::int8, .group = 0, .zeros = ZeroType::real},
                                       {.weights = WeightType::fp8_e4m3},
                                       {.weights = WeightType::mxfp4, .group = 32}};
    std::vector<GemmPlan> plans;
    for (const QuantisedLayout& layout : layouts) {
        GemmProblem p = gemm_problem(2048, 4096, 4096);
        p.quantised = layout;
        if (layout.bits() == 8)
            p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "d = silu(acc + bias) * r", {"bias:bf16[N]", "r:bf16[M,N]"});
        plans.push_back(std::get<Plans>(derive(machine_by_id("h200-sxm"), p)).plans.front());
    }
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (const Error* error = std::get_if<Error>(&kernels[i])) {
            ADD_FAILURE() << error->what() << error->detail();
            continue;
        }
        const Kernel& kernel = std::get<Kernel>(kernels[i]);
        const Source source = gemm_code(plans[i], Ablation::nothing)->source();
        ASSERT_EQ(source.name_expressions.size(), 2u);
        EXPECT_EQ(source.name_expressions[1], unpack_name_expression(layouts[i], Type::bf16));
        EXPECT_EQ(std::int64_t(kernel.workspace_bytes()), plans[i].resources.workspace_bytes);
        EXPECT_EQ(kernel.workspace_bytes(), 2u * 4096 * 4096);
        const auto more = kernel.with_rows(3000);
        EXPECT_EQ(more.has_value(), !plans[i].problem.epilogue);
    }
}

// The same in front of kernels without TMA, of every machine that has them; on sm_80 to sm_89 nothing of it is sm_90's.
TEST(GemmPack, UnpacksInFrontOfKernelsWithoutTma) {
    std::vector<GemmPlan> plans;
    for (const auto& [id, m, kernel] : {std::tuple{"a100-80-sxm", 300, "sm80_gemm"}, {"l40s", 2000, "sm80_gemm"}, {"h200-sxm", 70, "sm80_gemm"},
                                        {"a100-80-sxm", 20, "sm80_few_gemm"}, {"h200-sxm", 3, "sm80_few_gemm"}})
        for (const WeightType weights : {WeightType::uint4, WeightType::fp8_e4m3, WeightType::nf4}) {
            GemmProblem p = gemm_problem(m, 1000, 4000, weights == WeightType::nf4 ? Type::fp16 : Type::bf16);
            p.quantised = {.weights = weights, .zeros = weights == WeightType::uint4 ? ZeroType::integer : ZeroType::none};
            if (weights == WeightType::fp8_e4m3) p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "d = silu(acc + bias)", {"bias:bf16[N]"});
            GemmRequest request;
            request.top = 1, request.kernel = find_gemm_kernel(kernel);
            plans.push_back(std::get<Plans>(derive(machine_by_id(id), p, request)).plans.front());
        }
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} {}", plans[i].arch, plans[i].config.kernel->name()));
        if (const Error* error = std::get_if<Error>(&kernels[i])) {
            ADD_FAILURE() << error->what() << error->detail();
            continue;
        }
        const Kernel& kernel = std::get<Kernel>(kernels[i]);
        const Source source = gemm_code(plans[i], Ablation::nothing)->source();
        ASSERT_EQ(source.name_expressions.size(), 2u);
        EXPECT_EQ(source.name_expressions[1], unpack_name_expression(plans[i].problem.quantised, plans[i].problem.a_type));
        EXPECT_EQ(std::int64_t(kernel.workspace_bytes()), plans[i].resources.workspace_bytes);
        EXPECT_GE(kernel.workspace_bytes(), 2u * 1000 * 4032);
        const Compiled compiled = compile_source(source);
        EXPECT_EQ(unclean(compiled).value_or(""), "") << compiled.log;
    }
}

}  // namespace
}  // namespace rooftile
