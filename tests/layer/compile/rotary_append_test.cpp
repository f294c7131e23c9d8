// The kernel that turns and appends, without a GPU: every size compiles cleanly, and refusals are one line.
#include <gtest/gtest.h>

#include "rooftile/layer/device/rotary_append.hpp"

namespace rooftile {
namespace {

TEST(RotaryAppendKernel, EverySizeCompilesWithoutSpills) {
    for (const int dim : {64, 96, 128, 256, 512})
        for (const int rotated : {dim, dim / 2 / 16 * 16})
            for (const bool normed : {false, true})
                for (const bool paged : {false, true}) {
                    const RotaryConfig config{
                        .dim = dim, .rotated = rotated, .type = paged ? Type::fp16 : Type::bf16, .normed = normed, .paged = paged};
                    SCOPED_TRACE(testing::Message()
                                 << dim << " rotated " << rotated << (normed ? " normed" : "") << (paged ? " paged" : ""));
                    const RotaryAppend kernel(config, "sm_90");
                    const EntryInfo& entry = kernel.compiled().entries.front();
                    EXPECT_EQ(entry.spill_store_bytes, 0);
                    EXPECT_EQ(entry.stack_bytes, 0);
                    EXPECT_LE(entry.registers, 64);  // 1024 threads an SM at least
                    // A head's lanes are within a warp: shuffles of a butterfly stay within the head.
                    EXPECT_EQ(32 % config.lanes(), 0);
                    EXPECT_GE(config.lanes(), config.busy_lanes());
                }
}

TEST(RotaryAppendKernel, SizesThatItDoesNotTake) {
    const auto refused = [](const RotaryConfig& config) -> std::string {
        try {
            rotary_source(config, "sm_90");
        } catch (const RequestError& error) { return error.what(); }
        return "";
    };
    EXPECT_EQ(refused({.dim = 72, .rotated = 64}), "a head of 72 elements: rotary embedding takes multiples of 16 up to 512");
    EXPECT_EQ(refused({.dim = 128, .rotated = 144}), "144 of 128 elements are rotated: rotary embedding takes multiples of 16 up to all");
    EXPECT_EQ(refused({.dim = 64, .rotated = 64, .type = Type::fp32}), "rotary embedding takes bf16 and fp16");
}

}  // namespace
}  // namespace rooftile
