// How many numbers of the time model were settled by runs of our own kernels: at most ten.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "rooftile/core/random.hpp"
#include "rooftile/fuse/draw.hpp"
#include "rooftile/fuse/plan.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

constexpr std::size_t most_calibrated = 10;

/// What comes of a draw of problems: of every plan its time.
std::string outcome(const Machine& machine) {
    constexpr int problems = 60;
    Random random(20261125);
    std::ostringstream text;
    text.precision(17);
    for (int i = 0; i < problems; ++i) {
        const auto result = derive(machine, drawn_expression(random), {.top = 1000});
        if (const auto* plans = std::get_if<FusePlans>(&result))
            for (const FusePlan& plan : plans->plans) text << plan.prediction.time_us.value_or(-1) << '\n';
        else text << std::get<FuseInfeasible>(result).message << '\n';
    }
    return text.str();
}

/// Whether a number's source says that it was chosen so that predictions come right, in calibration or out of it.
bool calibrated(const Fact& fact) {
    for (const char* word : {"fitted", "calibrated", "settled by"})
        if (fact.source.find(word) != std::string::npos) return true;
    return !fact.calibration.empty();
}

std::set<std::string> calibrated_keys(const Machine& machine) {
    const std::string with = outcome(machine);
    std::set<std::string> keys;
    for (const auto& [key, fact] : machine.facts) {
        if (!calibrated(fact)) continue;
        Machine without = machine;
        without.facts.erase(key);
        if (outcome(without) != with) keys.insert(key);
    }
    return keys;
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
