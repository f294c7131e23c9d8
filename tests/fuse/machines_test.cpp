// Every shipped machine says a time, and what-if moves it.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "rooftile/expression/expression.hpp"
#include "rooftile/fuse/hardware.hpp"
#include "rooftile/fuse/launch_model.hpp"
#include "rooftile/fuse/plan.hpp"
#include "rooftile/fuse/search.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/read.hpp"
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

TEST(FuseMachines, EveryShippedOneHasEveryFittedNumber) {
    for (const std::string& id : machine_ids()) {
        const Machine machine = machine_by_id(id);
        const FuseFit fit = fuse_fit(machine);
        for (const FuseFitKey& row : fuse_fit_keys()) {
            ASSERT_TRUE(match_key(row.key).key) << row.key;
            const Fact* fact = machine.find(row.key);
            ASSERT_TRUE(fact) << id << " " << row.key;
            EXPECT_EQ(fit.*row.number, fact->value) << id << " " << row.key;
        }
    }
}

/// Of every launch of a draw of problems the predicted time.
std::vector<double> times_of(const Machine& machine, const FuseHardware& hw) {
    std::vector<double> times;
    for (const char* text : {"y = gelu(layernorm(x, g) + r)", "y = softmax(tanh(sigmoid(exp(x * g + r))))",
                             "y = abs(tanh(sigmoid((x + g) * 0.5) - g) * x + 1.0) * 0.25 - r",
                             "y = gelu(gelu(gelu(gelu(x + g) * x) + r) * sigmoid(x)) - tanh(r)"})
        for (const std::string rows : {"[65536,", "[4096,", "[2048,", "[16,"})
            for (const std::string columns : {"256]", "4100]", "65536]", "1048576]"}) {
                const TensorDeclaration declared[] = {tensor_declaration("x:bf16" + rows + columns),
                                                      tensor_declaration("r:bf16" + rows + columns),
                                                      tensor_declaration("g:bf16[" + columns)};
                const ExpressionGraph graph = expression_graph(text, declared);
                const Program program = std::get<Program>(fuse_program(graph));
                for (const FuseCandidate& c :
                     search_launches(machine, hw, graph, program, {.top = 1000}).kept)
                    times.push_back(c.flow.time.seconds);
            }
    return times;
}

// A number that nobody reads would be changed by --set, and nothing with it.
TEST(FuseMachines, EveryFittedNumberIsRead) {
    size_t keys = 0;
    for (const Key& key : machine_keys()) keys += key.name.starts_with("stream.");
    EXPECT_EQ(keys, fuse_fit_keys().size());
    const Machine machine = machine_by_id("h200-sxm");
    std::vector<std::string> unknown;
    const FuseHardware hw = fuse_hardware(machine, unknown);
    const std::vector<double> before = times_of(machine, hw);
    for (const FuseFitKey& row : fuse_fit_keys()) {
        FuseHardware less = hw, more = hw;
        less.fit.*row.number *= 0.25;
        more.fit.*row.number *= 4;
        EXPECT_TRUE(times_of(machine, less) != before || times_of(machine, more) != before) << row.key;
    }
}

// Without an architecture nothing is fitted: physics alone, and the plan says so.
TEST(FuseMachines, AnUncalibratedOnePlansByPhysics) {
    Machine bare = machine_by_id("h200-sxm");
    std::erase_if(bare.facts, [](const auto& fact) { return !fact.second.calibration.empty(); });
    for (const char* text : {"y = gelu(x)", "y = softmax(x)", "y = layernorm(x)", "y = sum_all(x)"})
        for (const char* tensor :
             {"x:fp16[65536,256]", "x:fp16[4096,8192]", "x:fp16[1024,262144]", "x:fp16[16,1048576]"}) {
            const FusePlans plans = plans_on(bare, text, tensor, 200);
            ASSERT_EQ(plans.notes.size(), 1u);
            EXPECT_EQ(plans.notes[0], "uncalibrated: no number of this machine was fitted to runs");
            for (const FusePlan& plan : plans.plans) {
                ASSERT_TRUE(plan.prediction.time_us) << text << " " << tensor;
                EXPECT_TRUE(std::isfinite(*plan.prediction.time_us)) << text << " " << tensor;
                // No faster than DRAM.
                const double roof = double(*plan.prediction.moved_bytes) / 4.53e6;
                EXPECT_GE(*plan.prediction.time_us, roof) << text << " " << tensor;
            }
        }
    const Machine five = parse_machine(R"(schema = "rooftile/machine/1"
id = "five"
name = "Five numbers"
shared.per_cta = "100 KiB"
sm.registers = 65536
dram.bandwidth = "1 TB/s"
dram.latency = "500 clk"
rate.generic.bf16.fp32 = "1024 FLOP/clk/SM"
)",
                                       "five.toml");
    const FusePlans plans = plans_on(five, "y = softmax(x)", "x:fp16[4096,8192]");
    EXPECT_FALSE(plans.plans.empty());
    EXPECT_EQ(plans.notes.size(), 1u);
}

// 3 and 4 side by side: 5 where their squares add up, 4 where they overlap wholly; of an unknown one nothing is known.
TEST(FuseMachines, TimesOverlap) {
    EXPECT_DOUBLE_EQ(overlapped({3, 4}, 2), 5);
    EXPECT_EQ(overlapped({3, 4, 0}, FuseFit::whole_overlap), 4);
    EXPECT_TRUE(std::isnan(overlapped({3, NAN, 4}, FuseFit::whole_overlap)));
    EXPECT_TRUE(std::isnan(overlapped({NAN, 3}, 2)));
}

}  // namespace
}  // namespace rooftile
