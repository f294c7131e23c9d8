// The launch that packs operands, as it is compiled beside the GEMM that reads the copies.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "kernels/gemm/pack_arguments.hpp"
#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/runtime/nvrtc.hpp"

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

}  // namespace
}  // namespace rooftile
