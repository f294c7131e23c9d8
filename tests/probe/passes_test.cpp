// Short probes are made twice, so that a spread holds what drifts between neighbouring samples and a minute later.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/probe/one.hpp"

namespace rooftile {
namespace {

ProbeValue value(const char* name, double value, double spread) {
    return {name, "", value, "us", spread, 9, ""};
}

TEST(ProbePasses, ASpreadHoldsWhatLiesBetweenBoth) {
    ProbeResult first, again;
    first.values = {value("drifts", 10, 0.1), value("scatters", 5, 2), value("once", 1, 0)};
    again.values = {value("scatters", 6, 3), value("drifts", 10.5, 0.2)};
    first.seconds = 1, again.seconds = 2;
    take_again(first, again);
    EXPECT_DOUBLE_EQ(first.values[0].value, 10.25);
    EXPECT_DOUBLE_EQ(first.values[0].spread, 0.5);
    EXPECT_EQ(first.values[0].samples, 18);
    EXPECT_DOUBLE_EQ(first.values[1].value, 5.5);
    EXPECT_DOUBLE_EQ(first.values[1].spread, 3);
    EXPECT_DOUBLE_EQ(first.values[2].value, 1);
    EXPECT_DOUBLE_EQ(first.seconds, 3);
    again.failure = "left out";
    again.values.clear();
    take_again(first, again);
    EXPECT_EQ(first.notes, std::vector<std::string>{"not made again: left out"});
}

TEST(ProbePasses, LongOnesAreMadeOnceAndAllAreTold) {
    std::vector<std::string> made, told;
    ProbeOptions options;
    options.only = {"launch", "energy", "tma"};
    options.done = [&](const ProbeResult& r) { told.push_back(r.probe); };
    int calls = 0;
    const auto results = in_passes(options, machine_by_id("h200-sxm"), [&](const Probe& probe) {
        made.emplace_back(probe.name);
        ProbeResult r;
        r.probe = probe.name;
        r.values = {value("x", ++calls, 0)};
        return r;
    });
    EXPECT_EQ(made, (std::vector<std::string>{"tma", "energy", "launch", "tma", "launch"}));
    EXPECT_EQ(told, (std::vector<std::string>{"energy", "tma", "launch"}));
    ASSERT_EQ(results.size(), 3u);
    EXPECT_DOUBLE_EQ(results[0].values[0].value, 2.5);  // of 1 and 4
    EXPECT_DOUBLE_EQ(results[1].values[0].value, 2);
    EXPECT_DOUBLE_EQ(results[2].values[0].spread, 2);  // 3 and 5
    options.only = {"tmaa"};
    EXPECT_THROW(in_passes(options, machine_by_id("h200-sxm"), [](const Probe&) { return ProbeResult(); }),
                 RequestError);
}

TEST(ProbePasses, OneThatFailedIsNotMadeAgain) {
    ProbeOptions options;
    options.only = {"launch"};
    int calls = 0;
    const auto results = in_passes(options, machine_by_id("h200-sxm"), [&](const Probe&) {
        ++calls;
        ProbeResult r;
        r.failure = "no";
        return r;
    });
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(results[0].failure, "no");
}

}  // namespace
}  // namespace rooftile
