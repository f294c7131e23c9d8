// Requests for attention from outside: what is refused, what no plan fits, and documents that follow their schema.
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

TEST(AttentionRequests, AreRefusedWhereTheyAreWrong) {
    expect_refused({"plan", "attention"}, {"missing --heads"});
    expect_refused({"plan", "attention", "--heads", "8", "--q", "64", "--dim", "60"}, {"multiples of 8"});
    expect_refused({"plan", "attention", "--heads", "8", "--kv-heads", "3", "--q", "64", "--dim", "64"}, {"divide heads"});
    expect_refused({"plan", "attention", "--heads", "8", "--q", "64", "--dim", "64", "--mask", "window:"}, {"--mask"});
    expect_refused({"plan", "attention", "--heads", "8", "--q", "64", "--dim", "64", "--energy"}, {"--energy", "not modelled"});
    expect_refused({"measure", "attention", "--heads", "8", "--q", "64", "--dim", "64", "--baseline", "cudnn"},
                   {"--baseline cudnn", "copy, none"});
    expect_refused({"build", "attention", "--machine", "a100-80-sxm", "--heads", "8", "--q", "64", "--dim", "64"}, {"sm_90"});
}

TEST(AttentionRequests, WhatFitsNowhereIsTenAndADocument) {
    const Outcome none = run({"plan", "attention", "--machine", "h200-sxm", "--heads", "8", "--q", "64", "--dim", "256", "--tile-q",
                              "192", "--tile-kv", "256", "--json"});
    EXPECT_EQ(none.code, 10);
    EXPECT_EQ(none.error_lines(), 1);
    const auto document = nlohmann::json::parse(none.out);
    EXPECT_TRUE(document.at("plans").empty());
    EXPECT_EQ(JsonSchema("plan-1.json").faults(document), "");
}

TEST(AttentionRequests, DocumentsFollowTheirSchemas) {
    for (const char* machine : {"h200-sxm", "b200", "v100-sxm2"}) {
        const Outcome plan = run({"plan", "attention", "--machine", machine, "--batch", "2", "--heads", "8", "--kv-heads", "2", "--q",
                                  "300", "--kv", "500", "--dim", "96", "--mask", "window:64", "--log-sum-exp", "on", "--json"});
        EXPECT_EQ(plan.code, 0) << plan.err;
        const auto document = nlohmann::json::parse(plan.out);
        EXPECT_EQ(JsonSchema("plan-1.json").faults(document), "") << machine;
    }
    const Outcome build =
        run({"build", "attention", "--machine", "h200-sxm", "--heads", "8", "--q", "256", "--dim", "64", "--json"});
    EXPECT_EQ(build.code, 0) << build.err;
    EXPECT_EQ(JsonSchema("build-1.json").faults(nlohmann::json::parse(build.out)), "");
}

}  // namespace
}  // namespace rooftile
