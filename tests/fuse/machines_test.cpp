// Every shipped machine says a time, and what-if moves it.
#include <gtest/gtest.h>

#include <string>

#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/plan.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {
namespace {

FusePlans plans_on(const Machine& machine, std::string_view text, const char* tensor, int top = 8) {
    const TensorDeclaration declared[] = {tensor_declaration(tensor)};
    return std::get<FusePlans>(derive(machine, expression_graph(text, declared), {.top = top}));
}

TEST(FuseMachines, EveryShippedOneSaysATime) {
    for (const std::string& id : machine_ids())
        for (const char* text : {"y = gelu(x)", "y = softmax(x)", "y = sum_all(x)"})
            for (const char* tensor : {"x:fp16[4096,8192]", "x:fp16[16,1048576]"})
                for (const FusePlan& plan : plans_on(machine_by_id(id), text, tensor).plans)
                    EXPECT_TRUE(plan.prediction.time_us) << id << " " << text << " " << tensor;
}

TEST(FuseMachines, HalfTheBandwidthTakesLonger) {
    for (const std::string& id : machine_ids()) {
        const Machine machine = machine_by_id(id);
        Machine half = machine;
        const double rated = machine.find("dram.bandwidth")->value;
        set_number(half, "dram.bandwidth=" + std::to_string(rated / 2e9) + " GB/s");
        const auto time = [](const Machine& m) {
            return *plans_on(m, "y = gelu(x)", "x:fp16[16384,8192]").plans[0].prediction.time_us;
        };
        EXPECT_GT(time(half) / time(machine), 1.6) << id;
    }
}

TEST(FuseMachines, AnUnknownTimeRanksBehindEveryKnownOne) {
    for (const char* key : {"barrier.cluster", "dsmem.latency", "dram.latency", "l2.latency", "l2.bandwidth"})
        for (const char* tensor : {"x:bf16[16384,4096]", "x:bf16[16,1048576]"}) {
            Machine machine = machine_by_id("h200-sxm");
            set_number(machine, std::string(key) + "=unknown");
            bool known = true;
            for (const FusePlan& plan : plans_on(machine, "y = softmax(x)", tensor, 64).plans) {
                EXPECT_TRUE(known || !plan.prediction.time_us) << key << " " << tensor;
                known = plan.prediction.time_us.has_value();
            }
        }
}

}  // namespace
}  // namespace rooftile
