// The order that derive() chooses beside every order that can be simulated.
#include "rooftile/gemm/orders.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/suite.hpp"
#include "rooftile/gemm/simulate_orders.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

/// Simulated DRAM bytes of the chosen order over those of the best.
double chosen_over_best(const Machine& machine, const GemmProblem& p, std::string& text) {
    GemmRequest request;
    request.top = 1;
    const auto outcome = derive(machine, p, request);
    const GemmConfig& config = std::get<Plans>(outcome).plans.front().config;
    std::vector<std::string> unknown;
    const GemmHardware hw = gemm_hardware(machine, "wgmma", p.a_type, unknown);
    const auto bytes = [&](const TileOrder& order) {
        return double(lru_dram_bytes(*tile_schedule_of(hw, config, p, order.order, order.group),
                                     std::int64_t(hw.l2_bytes)));
    };
    const TileOrder chosen{config.order, has_groups(config.order) ? config.group : 1};
    double least = INFINITY;
    TileOrder best{};
    for (const TileOrder& order : all_orders())
        if (const double moved = bytes(order); moved < least) least = moved, best = order;
    text = std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + ": "
           + std::string(name_of(chosen.order)) + " " + std::to_string(chosen.group) + ", best "
           + std::string(name_of(best.order)) + " " + std::to_string(best.group);
    return bytes(chosen) / least;
}

TEST(ChosenOrder, IsWithinFourPerCentOfTheBestOfAll) {
    for (const char* id : {"h200-sxm", "h100-sxm"}) {
        const Machine machine = machine_by_id(id);
        int problems = 0;
        for (const char* name : {"gemm", "traffic"})
            for (const SuiteProblem& p :
                 read_suite(gemm_operation(), std::string(ROOFTILE_SOURCE_DIR "/bench/suites/") + name + ".toml").problems) {
                if (!one_in(4, std::size_t(problems++))) continue;
                std::string text;
                EXPECT_LE(chosen_over_best(machine, p.problem.own.as<GemmProblem>(), text), 1.04) << id << " " << text;
            }
        EXPECT_GT(problems, 200);
    }
}

}  // namespace
}  // namespace rooftile
