// Every rung of the ladder compiles clean, uses the instructions it is about, and leaves an SM as
// many CTAs as its configuration says: what the model counts on.
#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/gemm/device/ladder_kernel.hpp"
#include "rooftile/gemm/ladder_model.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {
namespace {

struct Case {
    Rung rung;
    const char* arch;
};
class LadderCompiles : public testing::TestWithParam<Case> {};

/// CTAs that 65536 registers hold: a warp's are rounded up to 256, and a quarter of the warps stands on each
/// partition.
int ctas_by_registers(int registers, int threads) {
    const int warp = (registers * 32 + 255) / 256 * 256;
    return 65536 / 4 / warp * 4 / (threads / 32);
}

TEST_P(LadderCompiles, Clean) {
    const auto [rung, arch] = GetParam();
    const LadderConfig config = ladder_config(rung);
    for (Type type : {Type::bf16, Type::fp16}) {
        const Compiled compiled = compile_source(ladder_source(rung, type, arch));
        EXPECT_EQ(unclean(compiled).value_or(""), "") << name_of(type) << compiled.log;
        const EntryInfo& entry = compiled.entries.front();
        EXPECT_EQ(std::min(ctas_by_registers(entry.registers, config.threads()), 2048 / config.threads()),
                  config.ctas_per_sm)
            << entry.registers << " registers";
        EXPECT_EQ(entry.static_shared_bytes, rung == Rung::shared ? config.stage_bytes() : 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Hopper, LadderCompiles,
                         testing::Values(Case{Rung::naive, "sm_90"}, Case{Rung::shared, "sm_90"},
                                         Case{Rung::tensor_sync, "sm_90"}, Case{Rung::wgmma_tma, "sm_90"},
                                         Case{Rung::pipelined, "sm_90"}, Case{Rung::full, "sm_90"}));
INSTANTIATE_TEST_SUITE_P(Ampere, LadderCompiles,
                         testing::Values(Case{Rung::naive, "sm_80"}, Case{Rung::shared, "sm_80"},
                                         Case{Rung::tensor_sync, "sm_80"}));

TEST(LadderInstructions, EachRungAddsItsOwn) {
    struct Mark {
        Rung first;
        const char* text;
    };
    constexpr Mark marks[] = {{Rung::tensor_sync, "mma.sync.aligned.m16n8k16"},
                              {Rung::tensor_sync, "cp.async.cg.shared.global"},
                              {Rung::tensor_sync, "ldmatrix.sync"},
                              {Rung::wgmma_tma, "wgmma.mma_async"},
                              {Rung::wgmma_tma, "cp.async.bulk.tensor.2d.shared::cluster"},
                              {Rung::pipelined, "setmaxnreg.inc"},
                              {Rung::pipelined, "cp.async.bulk.tensor.2d.global.shared::cta"},
                              {Rung::full, "multicast::cluster"},
                              {Rung::full, "barrier.cluster.arrive"}};
    for (int i = 0; i < rung_count; ++i) {
        const Rung rung = static_cast<Rung>(i);
        const std::string ptx = compile_to_ptx(ladder_source(rung, Type::bf16, "sm_90"));
        for (const Mark& mark : marks) {
            const bool there = ptx.find(mark.text) != std::string::npos;
            // What rung 3 adds, rung 4 replaces; what later rungs add stays.
            const bool expected = mark.first == Rung::tensor_sync ? rung == mark.first : rung >= mark.first;
            EXPECT_EQ(there, expected) << name_of(rung) << ' ' << mark.text;
        }
    }
}

}  // namespace
}  // namespace rooftile
