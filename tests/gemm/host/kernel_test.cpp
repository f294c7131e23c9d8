// From a derived plan to a cubin; needs libnvrtc, no GPU.
#include "rooftile/gemm/device/kernel.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/library.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

struct KernelTest : testing::Test {
    std::string folder;
    void SetUp() override {
        Library library = open_library(nvrtc_soname);
        if (!library) GTEST_SKIP() << "skipped: " << library.not_found();
        folder = testing::TempDir() + "rooftile-kernel-XXXXXX";
        ASSERT_NE(mkdtemp(folder.data()), nullptr);
        setenv("ROOFTILE_CACHE_DIR", folder.c_str(), 1);
    }
    void TearDown() override {
        unsetenv("ROOFTILE_CACHE_DIR");
        std::error_code ignored;
        if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
    }
    static GemmPlan plan(std::int64_t m, std::int64_t n, std::int64_t k) {
        GemmRequest request;
        request.tile_m = 128;
        request.tile_n = 128;
        request.buildable_only = true;
        auto derived = derive(machine_by_id("h100-sxm"), gemm_problem(m, n, k), request);
        return std::get<Plans>(derived).plans.at(0);
    }
};

TEST_F(KernelTest, APlanBecomesACubinWithItsNumbers) {
    Kernel kernel = compile(plan(4096, 4096, 4096));
    EXPECT_EQ(kernel.cubin().substr(1, 3), "ELF");
    EXPECT_EQ(kernel.plan().config.tile_m, 128);
    EXPECT_EQ(kernel.arch(), "sm_90a");
    EXPECT_NE(kernel.name_expression().find(".tile_m=128"), std::string::npos);
    EXPECT_NE(kernel.lowered_name().find("sm90_gemm"), std::string::npos);
    EXPECT_GT(kernel.entry().registers, 0);
    EXPECT_EQ(kernel.entry().spill_store_bytes, 0);
    EXPECT_FALSE(kernel.from_cache());
    EXPECT_EQ(kernel.hash().size(), 32u);
    EXPECT_NE(kernel.ptx().find("wgmma.mma_async"), std::string::npos);
}

TEST_F(KernelTest, TheSecondTimeItComesFromTheCacheWithTheSameBytes) {
    const GemmPlan one = plan(1024, 1024, 1024);
    std::string cubin, hash;
    {
        Kernel kernel = compile(one);
        cubin = kernel.cubin();
        hash = kernel.hash();
    }  // gone: the next one cannot share its memory
    Kernel again = compile(one);
    EXPECT_TRUE(again.from_cache());
    EXPECT_EQ(again.cubin(), cubin);
    EXPECT_EQ(again.hash(), hash);
    Kernel beside = compile(one);  // while `again` lives
    EXPECT_TRUE(beside.from_cache());
    EXPECT_FALSE(compile(one, {.cache = false}).from_cache());
}

TEST_F(KernelTest, OneCubinServesEveryShapeOfItsTypesAndMajors) {
    GemmPlan one = plan(1024, 1024, 1024), other = one;
    other.problem = gemm_problem(1000, 2000, 520);
    other.config.order = Order::column;
    EXPECT_EQ(compile(one).hash(), compile(other).hash());
}

TEST_F(KernelTest, AllAtOnceInOrder) {
    std::vector<GemmPlan> plans = {plan(1024, 1024, 1024), plan(1024, 1024, 1024)};
    plans[1].buildable = false;
    plans[1].why_not = "made so by this test";
    auto outcomes = compile_all(plans);
    ASSERT_EQ(outcomes.size(), 2u);
    EXPECT_TRUE(std::holds_alternative<Kernel>(outcomes[0]));
    ASSERT_TRUE(std::holds_alternative<Error>(outcomes[1]));
    EXPECT_EQ(std::get<Error>(outcomes[1]).code(), ExitCode::bad_request);
    EXPECT_NE(std::string(std::get<Error>(outcomes[1]).what()).find("made so by this test"),
              std::string::npos);
}

}  // namespace
}  // namespace rooftile
