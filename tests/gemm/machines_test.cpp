// Every shipped machine says a time, and what-if moves it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rooftile/gemm/plan.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {
namespace {

Type type_of(const Machine& machine) { return machine.has("bf16") ? Type::bf16 : Type::fp16; }

Plans plans_on(const Machine& machine, std::int64_t m, std::int64_t n, std::int64_t k,
               const GemmRequest& request = {}) {
    return std::get<Plans>(derive(machine, gemm_problem(m, n, k, type_of(machine)), request));
}

GemmRequest tile_64x64() {
    GemmRequest request;
    request.tile_m = request.tile_n = 64;
    return request;
}

/// `machine` with each of `keys` that it knows as so large a share of what it is.
Machine with_share(Machine machine, const std::vector<std::string>& keys, double share) {
    std::vector<std::string> settings;
    for (const std::string& key : keys)
        if (const Fact* fact = machine.find(key))
            settings.push_back(key + "=" + std::to_string(std::stod(fact->text) * share)
                               + fact->text.substr(fact->text.find(' ')));
    EXPECT_FALSE(settings.empty()) << machine.id;
    set_numbers(machine, settings);
    return machine;
}

/// How many times as long the best plan takes once `keys` are half of what they are.
double with_half(const Machine& machine, const std::vector<std::string>& keys, std::int64_t m,
                 const GemmRequest& request = {}) {
    const auto time = [&](const Machine& on) {
        return *plans_on(on, m, 4096, 4096, request).plans[0].prediction.time_us;
    };
    return time(with_share(machine, keys, 0.5)) / time(machine);
}

TEST(GemmMachines, EveryShippedOneSaysATime) {
    for (const std::string& id : machine_ids())
        for (std::int64_t m : {1, 64, 1000, 8192})
            for (const GemmPlan& plan : plans_on(machine_by_id(id), m, 4096, 4096).plans)
                EXPECT_TRUE(plan.prediction.time_us) << id << " " << m;
}

TEST(GemmMachines, HalfOfWhatBindsTakesLonger) {
    for (const std::string& id : machine_ids()) {
        const Machine machine = machine_by_id(id);
        const std::string type = machine.has("bf16") ? "bf16" : "fp16";
        // A quarter of these bandwidths binds on every machine, whatever its matrix units do.
        const std::vector<std::string> dram{"dram.bandwidth"}, l2{"l2.bandwidth"};
        EXPECT_GT(with_half(with_share(machine, dram, 0.25), dram, 64), 1.4) << id;
        EXPECT_GT(with_half(with_share(machine, l2, 0.25), l2, 4096, tile_64x64()), 1.4) << id;
        EXPECT_GT(with_half(machine, {"clock.boost"}, 4096), 1.2) << id;
        EXPECT_GT(
            with_half(machine, {rate_key("wgmma", type, "fp32"), rate_key("mma_sync", type, "fp32")}, 4096),
            1.2)
            << id;
    }
}

TEST(GemmMachines, AnUnknownTimeRanksBehindEveryKnownOne) {
    // Without these, parts of K that are summed in a cluster have no time, and others have.
    for (const char* key :
         {"dsmem.bandwidth", "dsmem.latency", "barrier.cluster", "dram.latency", "l2.bandwidth"})
        for (std::int64_t m : {16, 256}) {
            Machine machine = machine_by_id("h200-sxm");
            set_number(machine, std::string(key) + "=unknown");
            GemmRequest request;
            request.top = 64;
            bool known = true;
            for (const GemmPlan& plan : plans_on(machine, m, 512, 8192, request).plans) {
                EXPECT_TRUE(known || !plan.prediction.time_us) << key << " " << m;
                known = plan.prediction.time_us.has_value();
            }
        }
}

}  // namespace
}  // namespace rooftile
