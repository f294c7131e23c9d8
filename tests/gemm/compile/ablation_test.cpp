// A kernel compiled without a part has none of that part's instructions and all of the others'.
#include <gtest/gtest.h>

#include <iostream>

#include "rooftile/runtime/disassemble.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/sm90_launch.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/compile/compiled.hpp"

namespace rooftile {
namespace {

/// Loads, products and stores of C that stand in a text.
struct Counts {
    int loads = 0, products = 0, stores = 0, waits = 0;
};

Counts of_ptx(const std::string& ptx) {
    return {mentions(ptx, "complete_tx::bytes"), mentions(ptx, "wgmma.mma_async"),
            mentions(ptx, "global.shared::cta.bulk_group") + mentions(ptx, "st.global"),
            mentions(ptx, "mbarrier.try_wait")};
}

Counts of_sass(const std::string& sass) {
    return {mentions(sass, "UTMALDG"), mentions(sass, "HGMMA"),
            mentions(sass, "UTMASTG") + mentions(sass, "STG."), mentions(sass, "SYNCS.PHASECHK")};
}

void expect_ablated(Ablation part, const Counts& whole, const Counts& counts, int line) {
    SCOPED_TRACE(line);
    ASSERT_GT(whole.loads, 0);
    ASSERT_GT(whole.products, 0);
    ASSERT_GT(whole.stores, 0);
    // Copies may be laid out once or twice by the compiler: what is not left out is there, not how often.
    EXPECT_EQ(counts.loads == 0, part == Ablation::loads) << counts.loads;
    EXPECT_EQ(counts.products, part == Ablation::products ? 0 : whole.products);
    EXPECT_EQ(counts.stores, part == Ablation::store ? 0 : whole.stores);
    EXPECT_EQ(counts.waits == 0, whole.waits == 0);
}

/// Every way in which the kernel takes turns, shares and stores.
std::vector<Sm90GemmConfig> configs() {
    std::vector<Sm90GemmConfig> out;
    const auto add = [&](const GemmRequest& request, std::int64_t n = 4096) {
        GemmRequest one = request;
        one.top = 1;
        one.buildable_only = true;
        const auto outcome = derive(machine_by_id("h100-sxm"), gemm_problem(1024, n, 4096), one);
        const auto* plans = std::get_if<Plans>(&outcome);
        if (!plans) {
            ADD_FAILURE() << std::get<Infeasible>(outcome).message;
            return;
        }
        out.push_back(kernel_config(plans->plans.front()));
    };
    const GemmRequest plain{.tile_m = 128,
                            .tile_n = 128,
                            .schedule = Schedule::cooperative,
                            .cluster_m = 1,
                            .cluster_n = 1,
                            .split_k = 1};
    GemmRequest r = plain;
    r.overlapped_epilogue = false;
    add(r);
    r.overlapped_epilogue = true;
    add(r);
    r = plain;
    r.schedule = Schedule::pingpong, r.consumer_warpgroups = 2;
    add(r);
    r = plain;
    r.cluster_m = 2;
    add(r);
    r = plain;
    r.split_k = 2;
    add(r);
    add(plain, 4096 + 3);  // by predicated stores
    return out;
}

TEST(Ablation, TheWholeKernelIsNamedAsEver) {
    Sm90GemmConfig config = configs().front();
    const std::string whole = sm90_name_expression(config);
    EXPECT_EQ(whole.find("ablated"), whole.npos);
    config.ablated = Ablation::products;
    EXPECT_NE(sm90_name_expression(config).find(".ablated=rooftile::Ablation::products"), whole.npos);
}

TEST(Ablation, NothingOfThePartIsLeftAndAllOfTheOthers) {
    const bool sass = find_disassembler().has_value();
    if (!sass) std::cout << "no disassembler: PTX alone is looked at\n";
    for (Sm90GemmConfig config : drawn_few(configs(), 2)) {
        const Source source = gemm_source(config);
        const Counts whole = of_ptx(compile_to_ptx(source));
        const Compiled whole_code = compile_source(source);
        for (Ablation part : {Ablation::loads, Ablation::products, Ablation::store}) {
            config.ablated = part;
            SCOPED_TRACE(sm90_name_expression(config));
            const Source source = gemm_source(config);
            expect_ablated(part, whole, of_ptx(compile_to_ptx(source)), __LINE__);
            std::cerr << sm90_name_expression(config) << std::endl;
            const Compiled compiled = compile_source(source);
            EXPECT_FALSE(unclean(compiled)) << unclean(compiled).value_or("");
            if (sass)
                expect_ablated(part, of_sass(*disassemble(whole_code.cubin)),
                               of_sass(*disassemble(compiled.cubin)), __LINE__);
        }
    }
}

}  // namespace
}  // namespace rooftile
