#include "rooftile/gemm/device/ladder_kernel.hpp"

#include <gtest/gtest.h>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

void* ladder_at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

int grid(Rung rung, const GemmProblem& problem, int resident_ctas) {
    return rung_code(rung, problem, "sm_90")->grid(shape_of(problem), resident_ctas);
}

TEST(Ladder, SourcesNameFileAndKernel) {
    const Source source = ladder_source(Rung::tensor_sync, Type::fp16, "sm_80");
    EXPECT_EQ(source.text, "#include \"kernels/gemm/ladder/3_tensor_sync.cuh\"\n");
    EXPECT_EQ(source.name_expressions.front(), "rooftile::ladder::tensor_sync<rooftile::Type::fp16>");
    EXPECT_EQ(source.arch, "sm_80");
    EXPECT_EQ(ladder_source(Rung::full, Type::bf16, "sm_90").arch, "sm_90a");
}

TEST(Ladder, EveryRungKnowsItsGpus) {
    for (Rung rung : {Rung::naive, Rung::shared, Rung::tensor_sync}) {
        for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"})
            EXPECT_EQ(arch_obstacle(rung, arch), "") << arch;
        for (const char* arch : {"sm_70", "sm_75"}) EXPECT_NE(arch_obstacle(rung, arch), "") << arch;
    }
    for (Rung rung : {Rung::wgmma_tma, Rung::pipelined, Rung::full}) {
        EXPECT_EQ(arch_obstacle(rung, "sm_90"), "");
        for (const char* arch : {"sm_80", "sm_100"}) EXPECT_NE(arch_obstacle(rung, arch), "") << arch;
    }
}

TEST(Ladder, OneCtaATileUnlessTheGridStays) {
    const GemmProblem p = gemm_problem(257, 513, 64);
    EXPECT_EQ(grid(Rung::naive, p, 1056), 17 * 33);   // tiles of 16 x 16
    EXPECT_EQ(grid(Rung::shared, p, 264), 3 * 5);     // 128 x 128
    EXPECT_EQ(grid(Rung::pipelined, p, 132), 3 * 3);  // 128 x 256
    EXPECT_EQ(grid(Rung::full, p, 132), 2 * 3 * 2);   // clusters of 256 x 256, two CTAs each
    EXPECT_EQ(grid(Rung::full, gemm_problem(8192, 8192, 64), 131), 130);  // whole clusters
    // 2^31 / 16 tiles each way.
    EXPECT_THROW(grid(Rung::naive, gemm_problem(2147483647, 2147483647, 1), 1056), RequestError);
}

TEST(Ladder, TensorMapsHoldTheTilesBoxes) {
    const auto tensors = [](Rung rung) {
        const GemmPointers operands{ladder_at(1024), ladder_at(4096), ladder_at(8192), nullptr};
        return ladder_tensors(rung, Type::bf16, shape_of(gemm_problem(300, 200, 72)), operands);
    };
    const LadderTensors four = tensors(Rung::wgmma_tma);
    EXPECT_EQ(four.a.inner, 72);
    EXPECT_EQ(four.a.outer, 300);
    EXPECT_EQ(four.a.outer_stride_bytes, 144);
    EXPECT_EQ(four.a.box_inner, 64);
    EXPECT_EQ(four.a.box_outer, 128);
    EXPECT_EQ(four.b.outer, 200);
    EXPECT_EQ(four.b.box_outer, 128);
    const LadderTensors five = tensors(Rung::pipelined);
    EXPECT_EQ(five.b.box_outer, 256);
    EXPECT_EQ(five.c.inner, 200);
    EXPECT_EQ(five.c.outer, 300);
    EXPECT_EQ(five.c.box_inner, 64);
    EXPECT_EQ(five.c.box_outer, 64);
    // Two CTAs share B: each loads half of 256 rows.
    EXPECT_EQ(tensors(Rung::full).b.box_outer, 128);
}

}  // namespace
}  // namespace rooftile
