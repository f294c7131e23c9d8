// Requests for chains from outside: what is refused, what no plan fits, and documents that follow their schema.
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

TEST(ChainRequests, AreRefusedWhereTheyAreWrong) {
    expect_refused({"plan", "chain"}, {"missing --m"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "60", "--ff", "64"}, {"d is 60"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "64", "--ff", "64", "--act", "tanh"}, {"--act", "swiglu"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "64", "--ff", "64", "--form", "best"}, {"--form", "on_chip"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "64", "--ff", "64", "--energy"}, {"--energy", "not modelled"});
}

TEST(ChainRequests, WhatFitsNowhereIsTenAndADocument) {
    const Outcome none = run({"plan", "chain", "--machine", "h200-sxm", "--m", "64", "--d", "1024", "--ff", "64", "--form", "on_chip", "--json"});
    EXPECT_EQ(none.code, 10);
    EXPECT_EQ(none.error_lines(), 1);
    const auto document = nlohmann::json::parse(none.out);
    EXPECT_TRUE(document.at("plans").empty());
    EXPECT_EQ(JsonSchema("plan-1.json").faults(document), "");
}

TEST(ChainRequests, DocumentsFollowTheirSchemas) {
    for (const char* machine : {"h200-sxm", "a40", "b200", "v100-sxm2"})
        for (const char* act : {"gelu", "swiglu"}) {
            const Outcome plan = run({"plan", "chain", "--machine", machine, "--m", "3000", "--d", "128", "--ff", "520", "--act", act, "--residual", "--json"});
            EXPECT_EQ(plan.code, 0) << plan.err;
            const auto document = nlohmann::json::parse(plan.out);
            EXPECT_EQ(JsonSchema("plan-1.json").faults(document), "") << machine;
            for (const auto& p : document.at("plans")) {
                std::int64_t sum = 0;
                for (const auto& [name, bytes] : p.at("prediction").at("dram_bytes_by_tensor").items()) sum += bytes.get<std::int64_t>();
                EXPECT_EQ(sum, p.at("prediction").at("dram_bytes").get<std::int64_t>());
            }
        }
    const Outcome unknown = run({"plan", "chain", "--machine", "h200-sxm", "--set", "l2.size=unknown", "--m", "3000", "--d", "128", "--ff", "520", "--json"});
    EXPECT_EQ(unknown.code, 0) << unknown.err;
    EXPECT_EQ(JsonSchema("plan-1.json").faults(nlohmann::json::parse(unknown.out)), "");
    const Outcome build = run({"build", "chain", "--machine", "h200-sxm", "--m", "3000", "--d", "128", "--ff", "520", "--json"});
    EXPECT_EQ(build.code, 0) << build.err;
    EXPECT_EQ(JsonSchema("build-1.json").faults(nlohmann::json::parse(build.out)), "");
}

TEST(ChainRequests, PlansAreSweptByTheirLaw) {
    const Outcome sweep = run({"sweep", "chain", "--machine", "h200-sxm", "--draw", "5", "--seed", "3", "--plan-only", "--jsonl"});
    EXPECT_EQ(sweep.code, 0) << sweep.err;
}

}  // namespace
}  // namespace rooftile
