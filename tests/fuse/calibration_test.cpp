// How many numbers of the time model were settled by runs of our own kernels: at most ten.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "rooftile/core/random.hpp"
#include "rooftile/fuse/draw.hpp"
#include "rooftile/fuse/plan.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/calibrated_keys.hpp"

namespace rooftile {
namespace {

constexpr std::size_t most_calibrated = 10;

std::set<std::string> calibrated_keys(const Machine& machine) {
    constexpr int problems = 60;
    Random random(20261125);
    std::vector<ExpressionGraph> drawn;
    for (int i = 0; i < problems; ++i) drawn.push_back(drawn_expression(random));
    // What comes of one: of every plan its time.
    return calibrated_keys(machine, drawn.size(), [&](const Machine& m, std::size_t i) {
        std::ostringstream text;
        text.precision(17);
        const auto result = derive(m, drawn[i], {.top = 1000});
        if (const auto* plans = std::get_if<FusePlans>(&result))
            for (const FusePlan& plan : plans->plans) text << plan.prediction.time_us.value_or(-1) << '\n';
        else text << std::get<FuseInfeasible>(result).message << '\n';
        return text.str();
    });
}

TEST(FuseCalibratedNumbers, AreAtMostTen) {
    for (const char* gpu : {"h200-sxm", "h100-sxm"}) {
        const std::set<std::string> keys = calibrated_keys(machine_by_id(gpu));
        EXPECT_LE(keys.size(), most_calibrated) << testing::PrintToString(keys);
        // The count sees them: these are.
        for (const char* key : {"stream.reduction", "stream.overlap_exponent", "cta.interval"})
            EXPECT_TRUE(keys.contains(key)) << key;
        RecordProperty(std::string("calibrated_") + gpu, testing::PrintToString(keys));
    }
}

// A number fitted anywhere else counts too.
TEST(FuseCalibratedNumbers, AreFoundByTheirSource) {
    Machine machine = machine_by_id("h200-sxm");
    const std::size_t before = calibrated_keys(machine).size();
    machine.facts.at("l2.latency").source = "fitted to times of rows";
    EXPECT_EQ(calibrated_keys(machine).size(), before + 1);
}

}  // namespace
}  // namespace rooftile
