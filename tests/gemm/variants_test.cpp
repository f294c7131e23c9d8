// Plans beside the best one: the same in other orders, and drawn ones.
#include "rooftile/gemm/json.hpp"
#include "rooftile/gemm/knobs.hpp"
#include "rooftile/gemm/variants.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "rooftile/core/random.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {
namespace {

GemmRequest buildable() {
    GemmRequest request;
    request.buildable_only = true;
    return request;
}

std::string text_of(const GemmPlan& plan) { return config_json(plan.config).dump(); }

TEST(Sample, SpreadsOverTimeFromTheBestToTwiceThat) {
    const Machine h200 = machine_by_id("h200-sxm");
    for (const auto& p : {gemm_problem(4096, 4096, 4096), gemm_problem(64, 8192, 8192),
                          gemm_problem(1, 4096, 4096), gemm_problem(5000, 9000, 7000)}) {
        const auto outcome = derive_sample(h200, p, buildable(), 9, 11);
        const Plans& plans = std::get<Plans>(outcome);
        const auto best = derive(h200, p, buildable());
        ASSERT_EQ(plans.plans.size(), 9u);
        EXPECT_EQ(text_of(plans.plans[0]), text_of(std::get<Plans>(best).plans[0]));
        const double first = *plans.plans[0].prediction.time_us;
        std::set<std::string> configs;
        std::set<int> parts;
        for (std::size_t i = 0; i < plans.plans.size(); ++i) {
            const GemmPlan& plan = plans.plans[i];
            EXPECT_EQ(plan.rank, int(i) + 1);
            EXPECT_TRUE(plan.buildable) << plan.why_not;
            EXPECT_TRUE(configs.insert(text_of(plan)).second);
            const double over = *plan.prediction.time_us / first;
            // The tile schedule of what is drawn is simulated afterwards, which may add to the time it was drawn for.
            EXPECT_LE(over, 1.1 * drawn_within);
            parts.insert(int(8 * std::log2(over)));
            if (i > 1) { EXPECT_GE(*plan.prediction.time_us, *plans.plans[i - 1].prediction.time_us); }
        }
        EXPECT_GE(parts.size(), 4u);
    }
}

TEST(Sample, EachTakesTheTimeThatItWasDrawnFor) {
    const Machine h200 = machine_by_id("h200-sxm");
    Random random(490001);
    constexpr int drawn = 8;
    for (int i = 0; i < 6; ++i) {
        // L2 holds everything: no simulation adds to a time. K is parted, and cut into pieces.
        const GemmProblem p = gemm_problem(random.whole(30, 300), random.whole(64, 1000) * 8, random.whole(30, 120) * 64);
        const Plans plans = std::get<Plans>(derive_sample(h200, p, {}, drawn + 1, std::uint64_t(i)));
        for (std::size_t at = 1; at < plans.plans.size(); ++at) {
            const double over = *plans.plans[at].prediction.time_us / *plans.plans[0].prediction.time_us;
            EXPECT_EQ(int(drawn * std::log(over) / std::log(drawn_within)), int(at) - 1) << p.m << "x" << p.n << "x" << p.k;
        }
    }
}

TEST(Sample, TheSeedDecides) {
    const Machine h200 = machine_by_id("h200-sxm");
    const GemmProblem p = gemm_problem(2048, 7168, 2048);
    const auto text = [&](std::uint64_t seed) {
        const auto outcome = derive_sample(h200, p, {}, 6, seed);
        std::string all;
        for (const GemmPlan& plan : std::get<Plans>(outcome).plans) all += text_of(plan);
        return all;
    };
    EXPECT_EQ(text(3), text(3));
    EXPECT_NE(text(3), text(4));
}

TEST(Sample, KeepsWhatIsFixedAndSaysWhereThereAreFew) {
    const Machine h200 = machine_by_id("h200-sxm");
    GemmRequest request = buildable();
    request.tile_m = 128, request.tile_n = 256, request.tile_k = 64, request.cluster_m = 2;
    const auto outcome = derive_sample(h200, gemm_problem(8192, 8192, 8192), request, 4, 1);
    for (const GemmPlan& plan : std::get<Plans>(outcome).plans) {
        EXPECT_EQ(plan.config.tile_n, 256);
        EXPECT_EQ(plan.config.cluster_m, 2);
    }
    const auto one = derive(h200, gemm_problem(8192, 8192, 8192), request);
    const GemmRequest fixed = fixed_to(std::get<Plans>(one).plans[0].config);
    const auto few = derive_sample(h200, gemm_problem(8192, 8192, 8192), fixed, 4, 1);
    EXPECT_EQ(std::get<Plans>(few).plans.size(), 1u);
    ASSERT_EQ(std::get<Plans>(few).notes.size(), 1u);
    EXPECT_NE(std::get<Plans>(few).notes[0].find("1 of 4 plans"), std::string::npos);
}

TEST(Sample, OfOtherFamiliesToo) {
    for (const char* id : {"a100-80-sxm", "v100-sxm2"}) {
        const auto outcome =
            derive_sample(machine_by_id(id), gemm_problem(4096, 4096, 4096, Type::fp16), {}, 5, 1);
        EXPECT_EQ(std::get<Plans>(outcome).plans.size(), 5u) << id;
    }
    GemmRequest none;
    none.tile_m = 7;
    EXPECT_TRUE(std::holds_alternative<Infeasible>(
        derive_sample(machine_by_id("h200-sxm"), gemm_problem(512, 512, 512), none, 4, 1)));
}

TEST(Orders, OneTilingInEach) {
    const Machine h200 = machine_by_id("h200-sxm");
    const GemmProblem p = gemm_problem(8192, 8192, 8192);
    constexpr OrderChoice orders[] = {{Order::row, 1},        {Order::column, 1}, {Order::grouped, 3},
                                      {Order::serpentine, 5}, {Order::morton, 1}, {Order::hilbert, 1}};
    const auto outcome = derive_in_orders(h200, p, buildable(), orders);
    const Plans& plans = std::get<Plans>(outcome);
    ASSERT_EQ(plans.plans.size(), 7u);
    EXPECT_TRUE(plans.notes.empty());
    Json first = config_json(plans.plans[0].config);
    for (std::size_t i = 1; i < plans.plans.size(); ++i) {
        const GemmConfig& config = plans.plans[i].config;
        EXPECT_EQ(config.order, orders[i - 1].order);
        EXPECT_EQ(config.group, orders[i - 1].group);
        Json other = config_json(config);
        other["order"] = first["order"], other["group"] = first["group"];
        EXPECT_EQ(other, first);
        EXPECT_EQ(plans.plans[i].rank, int(i) + 1);
        EXPECT_GE(*plans.plans[i].prediction.dram_bytes, *plans.plans[i].prediction.dram_lower_bound_bytes);
    }
}

TEST(Orders, TheChosenOneStandsOnce) {
    const Machine h200 = machine_by_id("h200-sxm");
    const GemmProblem p = gemm_problem(8192, 8192, 8192);
    const auto best = derive(h200, p, buildable());
    const GemmConfig& c = std::get<Plans>(best).plans[0].config;
    const OrderChoice orders[] = {{c.order, c.group}, {Order::hilbert, 1}};
    EXPECT_EQ(std::get<Plans>(derive_in_orders(h200, p, buildable(), orders)).plans.size(), 2u);
}

}  // namespace
}  // namespace rooftile
