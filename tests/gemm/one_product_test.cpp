// Batches that are one product: B shared, rows that lie evenly.
#include <gtest/gtest.h>

#include "rooftile/gemm/evaluate_plan.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

/// Products that share B, their matrices of A and C behind each other.
GemmProblem sharing(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, Major a_major = Major::k) {
    GemmProblem p = gemm_problem(m, n, k, Type::bf16, a_major);
    p.batch = batch, p.a_stride = dense_stride(p, 'a'), p.c_stride = dense_stride(p, 'c');
    return p;
}

TEST(OneProduct, RowsBehindEachOther) {
    const GemmProblem all = as_one_product(sharing(180, 17, 768, 1280));
    EXPECT_EQ(all.batch, 1);
    EXPECT_EQ(all.m, 3060);
    EXPECT_EQ(all.lda, 1280);
    EXPECT_EQ(all.ldc, 768);
    EXPECT_EQ(all.a_stride + all.b_stride + all.c_stride, 0);
    EXPECT_EQ(all.flops(), sharing(180, 17, 768, 1280).flops());
    check(all);
}

TEST(OneProduct, RowsSideBySide) {
    GemmProblem p = sharing(12, 40, 64, 128);
    p.lda = 12 * 128, p.a_stride = 128, p.ldc = 12 * 64, p.c_stride = 64;
    const GemmProblem all = as_one_product(p);
    EXPECT_EQ(all.m, 480);
    EXPECT_EQ(all.lda, 128);
    EXPECT_EQ(all.ldc, 64);
    p.c_stride = 40 * 64, p.ldc = 64;  // A side by side, C behind each other: no one distance
    EXPECT_EQ(as_one_product(p), p);
}

TEST(OneProduct, OneRowEachLiesAnyhow) {
    GemmProblem p = sharing(32, 1, 512, 256);
    p.a_stride = 1000, p.c_stride = 520;
    const GemmProblem all = as_one_product(p);
    EXPECT_EQ(all.m, 32);
    EXPECT_EQ(all.lda, 1000);
    EXPECT_EQ(all.ldc, 520);
}

TEST(OneProduct, AlongM) {
    GemmProblem p = sharing(4, 64, 128, 96, Major::mn);
    EXPECT_EQ(as_one_product(p), p);  // a matrix of 96 lines behind the other
    p.lda = 256, p.a_stride = 64;
    EXPECT_EQ(as_one_product(p).m, 256);
    EXPECT_EQ(as_one_product(p).lda, 256);
    p.lda = 248;  // lines that begin in each other
    EXPECT_EQ(as_one_product(p), p);
}

TEST(OneProduct, NotWhereSomethingTellsProductsApart) {
    GemmProblem own = sharing(8, 16, 64, 64);
    own.b_stride = dense_stride(own, 'b');
    EXPECT_EQ(as_one_product(own), own);
    GemmProblem gap = sharing(8, 16, 64, 64);
    gap.a_stride += 8;
    EXPECT_EQ(as_one_product(gap), gap);
    GemmProblem shared_a = sharing(8, 16, 64, 64);
    shared_a.a_stride = 0;
    EXPECT_EQ(as_one_product(shared_a), shared_a);
    GemmProblem many = sharing(std::int64_t{1} << 20, 4096, 8, 8);
    EXPECT_EQ(as_one_product(many), many);  // 2^32 rows
    const auto with = [](std::string_view text, const std::vector<std::string>& tensors) {
        GemmProblem p = sharing(8, 16, 64, 64);
        p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, text, tensors, Scales::none, p.batch);
        return as_one_product(p);
    };
    EXPECT_EQ(with("d = gelu(acc + bias)", {"bias:bf16[N]"}).m, 128);
    EXPECT_EQ(with("d = acc + r", {"r:bf16[M,N]"}).m, 16);
    EXPECT_EQ(with("d = acc + r", {"r:bf16[B,M,N]"}).m, 16);
    EXPECT_EQ(with("d = acc * s", {"s:fp32[M,1]"}).m, 16);
}

// Plans keep the problem that was asked for, say what they make of it, and are of the one product, with its time.
TEST(OneProduct, IsWhatIsPlanned) {
    const Machine machine = machine_by_id("h100-sxm");
    const GemmProblem p = sharing(180, 17, 768, 1280);
    const Plans plans = std::get<Plans>(derive(machine, p)), one = std::get<Plans>(derive(machine, gemm_problem(3060, 768, 1280)));
    EXPECT_EQ(plans.problem, p);
    const GemmPlan& plan = plans.plans.front();
    EXPECT_EQ(plan.problem, as_one_product(p));
    EXPECT_EQ(plan.config.tile_m, one.plans.front().config.tile_m);
    EXPECT_EQ(plan.config.tile_n, one.plans.front().config.tile_n);
    EXPECT_EQ(plan.config.stages, one.plans.front().config.stages);
    EXPECT_EQ(plan.prediction.time_us, one.plans.front().prediction.time_us);
    EXPECT_FALSE(kernel_config(plan).batched);
    EXPECT_NE(plans.notes.back().find("one product of 3060 rows"), std::string::npos);
    EXPECT_NEAR(evaluate_plan(machine, plan)->time.seconds * 1e6, *plan.prediction.time_us, 1e-6 * *plan.prediction.time_us);
}

}  // namespace
}  // namespace rooftile
