// Two probes of one GPU: what agrees within the spreads they state, and what does not.
#include "rooftile/probe/compare.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/probe/document.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

Json document(const std::vector<ProbeValue>& values, const char* gpu = "NVIDIA Made-up") {
    ProbeRun run;
    ProbeResult& result = run.results.emplace_back();
    result.probe = "tma";
    result.values = values;
    DocumentContext context = context_of("rooftile machine probe");
    context.gpu = GpuContext{gpu, "1.2", "13.0", "2026-01-02T03:04:05Z", 1};
    return probe_document(context, run, {});
}

const std::vector<ProbeValue> first = {{"tma.latency.dram", "tma.latency_dram", 680, "ns", 3, 9, ""},
                                       {"cluster.sms_4", "cluster.sms_4", 120, "SMs", 0, 1, ""},
                                       {"tma.rate.all", "", 4200, "GB/s", 1, 9, ""}};

std::vector<ProbedTwice> against(const std::vector<ProbeValue>& second) {
    return compare_probes(document(first), document(second));
}

TEST(ProbedTwice, AgreesWithinBothSpreads) {
    auto second = first;
    second[0].value = 686, second[0].spread = 3;  // 6 apart, 3 + 3 stated
    EXPECT_TRUE(disagreements(against(second)).empty());
    second[0].value = 687;  // 7 apart; the figures are written to 0.34
    ASSERT_EQ(disagreements(against(second)).size(), 1u);
    EXPECT_EQ(disagreements(against(second))[0].name, "tma.latency.dram");
    EXPECT_THAT(compared_text(against(second), Terminal{}), HasSubstr("1 of 2 numbers"));
    second = first;
    second[1].value = 124;  // a count has no spread
    EXPECT_EQ(disagreements(against(second)).size(), 1u);
    second = first;
    second[2].value = 5000;  // of no machine file: shown, decides nothing
    EXPECT_TRUE(disagreements(against(second)).empty());
    EXPECT_THAT(compared_text(against(second), Terminal{}), HasSubstr("in no machine file"));
}

TEST(ProbedTwice, ANumberThatOneHasNotIsNoAgreement) {
    auto second = first;
    second.pop_back(), second.pop_back();
    EXPECT_EQ(disagreements(against(second)).size(), 1u);
    second = first;
    second.push_back({"l2.port", "l2.port", 100, "GB/s/SM", 1, 9, ""});
    EXPECT_EQ(disagreements(against(second)).size(), 1u);
    EXPECT_TRUE(std::isnan(against(second).back().first));
    second = first;
    second[0].value = std::nan("");
    EXPECT_EQ(disagreements(against(second)).size(), 1u);
}

TEST(ProbedTwice, OnlyProbesOfOneGpuAreCompared) {
    EXPECT_THROW(against({}), RequestError);  // and none without a number
    EXPECT_THROW(compare_probes(document(first), document(first, "Another")), RequestError);
    EXPECT_THROW(compare_probes(document(first), Json::object()), RequestError);
    EXPECT_THROW(compare_probes(Json(3), document(first)), RequestError);
}

}  // namespace
}  // namespace rooftile
