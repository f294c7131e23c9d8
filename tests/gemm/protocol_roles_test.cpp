// Whatever a plan chooses of how roles meet is gone through by protocol_test.cpp.
#include "tests/gemm/protocol_roles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include <fmt/core.h>

#include "rooftile/gemm/draw.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/plan.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

TEST(GemmProtocolRoles, OfDrawnPlansAreAllGoneThrough) {
    static constexpr const char* laws[] = {"draw", "any", "fp8", "fp8_blocks", "epilogue", "batch", "group", "experts"};
    Random random(test_seed());
    std::map<std::string, int> found;
    for (std::size_t i = 0, count = test_count(120, 1000); i < count; ++i) {
        GemmProblem p;
        do p = drawn_gemm(random, {laws[i % std::size(laws)]});
        while (p.flops().value > 5e12);  // the largest take a tenth of a second each
        GemmRequest request;
        request.top = 8, request.buildable_only = true;
        const auto derived = derive(machine_by_id(i % 2 ? "h100-sxm" : "h200-sxm"), p, request);
        const auto* plans = std::get_if<Plans>(&derived);
        if (!plans) continue;
        for (const GemmPlan& plan : plans->plans) {
            const GemmConfig& c = plan.config;
            if (name_of(c.kernel) != "sm90_gemm") continue;
            const protocol::GemmRoles roles{c.schedule == Schedule::pingpong, c.consumer_warpgroups, c.overlapped_epilogue, c.dynamic_scheduler,
                                            std::min(2, c.cluster_m * c.cluster_n), std::min(2, c.split_k)};
            const std::string text = fmt::format("{} {} consumers{}{}, cluster of {}, K in {}", roles.pingpong ? "ping-pong" : "cooperative", roles.warpgroups,
                                                 roles.overlapped ? ", overlapped" : "", roles.dynamic ? ", dynamic" : "", roles.sharing, roles.split_k);
            ++found[text];
            EXPECT_TRUE(std::ranges::find(protocol::gemm_roles, roles) != std::end(protocol::gemm_roles)) << text << ", " << c.stages << " stages";
        }
    }
    EXPECT_GE(found.size(), 8u);
    for (const auto& [text, times] : found) fmt::print("{:4} {}\n", times, text);
}

}  // namespace
}  // namespace rooftile
