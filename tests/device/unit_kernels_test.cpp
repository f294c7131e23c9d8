// Short kernels on a real GPU: right at small sizes, and the counters see the instructions that were read off the machine code.
#include "rooftile/measure/unit_kernels.hpp"

#include <algorithm>

#include "tests/device/device.hpp"

namespace rooftile {
namespace {

class UnitKernelsDeviceTest : public DeviceTest {
    bool is_alone() const override { return true; }
};

TEST_F(UnitKernelsDeviceTest, AreRightAndExecuteWhatWasCounted) {
    for (const Type type : {Type::bf16, Type::fp32}) {
        UnitRequest request;
        request.type = type;
        request.most_bytes = 4 << 20;
        const UnitOutcome outcome = run_units(request);
        ASSERT_EQ(outcome.run.code.size(), std::size_t(unit_kinds));
        int counted = 0;
        for (const UnitPoint& point : outcome.run.points) {
            const char* name = unit_words()[std::size_t(point.kind)].id;
            EXPECT_TRUE(point.right) << name << " " << point.x_bytes << " worst " << point.worst;
            EXPECT_LE(point.worst, 1) << name;
            EXPECT_GT(point.time_us, 0.3) << name << " " << point.x_bytes;
            if (point.counters.empty()) continue;
            const UnitCode& code = outcome.run.code[std::size_t(point.kind)];
            const double ctas = double(point.x_bytes) / double(unit_cta_bytes(point.kind, type));
            const double warps = std::max(1.0, ctas) * unit_cta_threads(point.kind, type) / 32;
            EXPECT_NEAR(point.counters.at("instructions"), warps * code.counts.instructions, 0.02 * warps * code.counts.instructions)
                << name;
            ++counted;
        }
        if (outcome.run.notes.empty()) { EXPECT_GT(counted, unit_kinds); }
    }
}

}  // namespace
}  // namespace rooftile
