// Plans of products whose epilogue is of pairs of columns.
#include <gtest/gtest.h>

#include <array>

#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/search.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

GemmProblem swiglu(std::int64_t m, std::int64_t n, std::int64_t k, std::string_view text = "d = silu(gate) * up") {
    GemmProblem p = gemm_problem(m, n, k);
    p.epilogue = product_epilogue(m, n, p.c_type, 1, 0, text, {}, Scales::none, 1, 0, Pairs::split);
    p.ldc = n / 2;
    return p;
}

TEST(GemmPairs, PlansStoreWholeSectors) {
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{4096, 28672, 4096}, {2048, 14336, 4096}, {8192, 8192, 2048}, {333, 1040, 200}, {16, 4096, 4096}}) {
        for (const char* text : {"d = silu(gate) * up", "d = gelu(gate) * up; g = gate; u = up"}) {
            const auto derived = derive(machine_by_id("h200-sxm"), swiglu(m, n, k, text));
            ASSERT_TRUE(std::holds_alternative<Plans>(derived)) << m << "x" << n << "x" << k;
            for (const GemmPlan& plan : std::get<Plans>(derived).plans) {
                EXPECT_EQ(plan.config.tile_n % 32, 0);
                const Sm90GemmConfig config = kernel_config(plan);
                if (config.swap_ab) {  // 32 columns a wgmma, of two bytes half a swizzle span
                    EXPECT_EQ(config.epilogue_columns(), 32);
                    EXPECT_EQ(config.epilogue_swizzle_bytes(), 64);
                    EXPECT_EQ(config.epilogue_tile_bytes() % 512, 0);
                    continue;
                }
                EXPECT_EQ(config.stored_n(), plan.config.tile_n / 2 / plan.config.split_k);
                EXPECT_EQ(config.stored_n() % config.epilogue_columns(), 0);
                EXPECT_TRUE(!config.wide_epilogue_tiles() || config.epilogue_columns() % 32 == 16);
            }
        }
    }
}

TEST(GemmPairs, SaysWhatWouldWork) {
    const Machine machine = machine_by_id("h200-sxm");
    const auto refused = [&](const GemmProblem& p, const GemmRequest& request) {
        const auto derived = derive(machine, p, request);
        const auto* none = std::get_if<Infeasible>(&derived);
        return none ? none->message : std::string();
    };
    GemmRequest fixed;
    fixed.tile_n = 144;
    EXPECT_NE(refused(swiglu(512, 1024, 512), fixed).find("must be a multiple of 32 with pairs"), std::string::npos) << refused(swiglu(512, 1024, 512), fixed);
    GemmRequest swapped;
    swapped.swap_ab = true;
    GemmProblem apart = swiglu(512, 1024, 512);
    apart.ldc = 516;
    EXPECT_NE(refused(apart, swapped).find("leave swap_ab off"), std::string::npos) << refused(apart, swapped);
    EXPECT_NE(refused(swiglu(512, 1032, 512), {}).find("must be a multiple of 16"), std::string::npos);
    GemmProblem by_n = gemm_problem(512, 1024, 512, Type::bf16, Major::k, Major::mn);
    by_n.epilogue = swiglu(512, 1024, 512).epilogue, by_n.ldc = 512;
    EXPECT_NE(refused(by_n, {}).find("give B k-major"), std::string::npos);
}

// Rows that fill no 64 of wgmma's stand on the side that goes by eights.
TEST(GemmPairs, FewRowsAreSwapped) {
    for (const std::int64_t m : {152, 304}) {
        const auto derived = derive(machine_by_id("h200-sxm"), swiglu(m, 28672, 8192));
        const GemmPlan& plan = std::get<Plans>(derived).plans.front();
        EXPECT_TRUE(plan.config.swap_ab) << m;
        EXPECT_TRUE(plan.buildable);
    }
}

// One line that names the kernel which has them, whatever the first tile of the others would be refused for.
TEST(GemmPairs, AreSm90GemmsAsSeveralResultsAre) {
    for (const char* id : {"a100-80-sxm", "rtx4090", "b200", "v100-sxm2"}) {
        const auto why = [&](const GemmProblem& p) {
            const auto derived = derive(machine_by_id(id), p);
            const auto* none = std::get_if<Infeasible>(&derived);
            return none ? none->message : std::string();
        };
        GemmProblem two = gemm_problem(512, 1024, 512, Type::fp16);
        two.epilogue = product_epilogue(512, 1024, two.c_type, 1, 0, "d = gelu(acc); z = acc", {});
        GemmProblem pairs = gemm_problem(512, 1024, 512, Type::fp16);
        pairs.epilogue = product_epilogue(512, 1024, pairs.c_type, 1, 0, "d = silu(gate) * up", {}, Scales::none, 1, 0, Pairs::split), pairs.ldc = 512;
        EXPECT_EQ(why(pairs).rfind("pairs split: sm90_gemm's so far", 0), 0u) << id << ' ' << why(pairs);
        EXPECT_EQ(why(two).rfind("2 results: several are sm90_gemm's so far", 0), 0u) << id << ' ' << why(two);
    }
}

// Half of the result's bytes: what is stored, and what DRAM takes of it.
TEST(GemmPairs, CountWhatIsStored) {
    const Machine machine = machine_by_id("h200-sxm");
    const auto best = [&](const GemmProblem& p) { return std::get<Plans>(derive(machine, p)).plans.front(); };
    const GemmPlan plain = best(gemm_problem(4096, 4096, 1024)), pairs = best(swiglu(4096, 4096, 1024));
    EXPECT_EQ(*plain.prediction.moved_bytes - *pairs.prediction.moved_bytes, 4096 * 4096);  // 2 B of every second column
    EXPECT_LT(*pairs.prediction.dram_lower_bound_bytes, *plain.prediction.dram_lower_bound_bytes);
}

}  // namespace
}  // namespace rooftile
