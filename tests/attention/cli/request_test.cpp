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
    expect_refused({"measure", "attention", "--heads", "8", "--q", "64", "--dim", "64", "--baseline", "cudnn"},
                   {"--baseline cudnn", "copy, none"});
    expect_refused({"build", "attention", "--machine", "a100-80-sxm", "--heads", "8", "--q", "64", "--dim", "64"}, {"sm_90"});
}

// The energy of a plan is the one that sets its clock: at the power limit it draws that power.
TEST(AttentionRequests, EnergyOfAPlan) {
    const Outcome plan = run({"plan", "attention", "--batch", "4", "--heads", "16", "--q", "8192", "--dim", "128", "--machine", "h200-sxm", "--energy", "--json"});
    ASSERT_EQ(plan.code, 0) << plan.err;
    const auto document = nlohmann::json::parse(plan.out);
    for (const auto& one : document.at("plans")) {
        const auto& energy = one.at("energy");
        EXPECT_NEAR(energy.at("average_w").get<double>(), 690, 0.05 * 690) << one.at("config");
        EXPECT_GT(energy.at("instruction_j").get<double>(), 0.05 * energy.at("matrix_j").get<double>());
        EXPECT_GT(energy.at("joules_per_tflop").get<double>(), 0.51);
    }
    const Outcome text = run({"plan", "attention", "--batch", "4", "--heads", "16", "--q", "8192", "--dim", "128", "--machine", "h200-sxm", "--energy"});
    for (const char* words : {"Energy of one launch", "products", "instructions", "shared memory", "plans kept"})
        EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
}

// One line each: what, which values, what to do.
TEST(AttentionRequests, SayWhatToDo) {
    const auto with = [](std::vector<std::string> rest) {
        std::vector<std::string> all = {"plan", "attention", "--machine", "h200-sxm", "--heads", "8"};
        all.insert(all.end(), rest.begin(), rest.end());
        return all;
    };
    const auto refused = [&](const std::vector<std::string>& rest, const std::vector<std::string>& words) {
        expect_refused(with(rest), words);
        EXPECT_EQ(run(with(rest)).error_lines(), 1) << rest.back();
    };
    const auto of = [](std::vector<std::string> rest) {
        std::vector<std::string> all = {"--q", "64", "--dim", "64"};
        all.insert(all.end(), rest.begin(), rest.end());
        return all;
    };
    refused(of({"--mask", "window:0"}), {"--mask window:W", "W = 0", "1 .. 1073741824"});
    refused(of({"--mask", "diagonal"}), {"\"diagonal\"", "none, causal, window:W"});
    refused({"--q", "64", "--dim", "264"}, {"dim is 264", "multiples of 8 from 8 to 256"});
    refused({"--q", "64", "--dim", "4"}, {"dim is 4", "pad them with zeros to 8", "Q times 1.41421"});  // the root of 8 / 4
    refused(of({"--dim-v", "7"}), {"dim_v is 7", "rows of V and O", "pad them with zeros to 8"});
    refused({"--dim", "64", "--lengths", "3x100000"}, {"--lengths", "3x100000", "3x[100000..100000]"});
    refused({"--dim", "64", "--lengths", "three"}, {"--lengths", "three", "no such file", "Bx[LO..HI]", "3x[512..512]"});
    refused(of({"--score", "s = bf16(s)"}), {"the result is bf16", "fp32(...)"});
    refused(of({"--score", "s > 0"}), {"s > 0", "names no result", "s = ..."});
    refused(of({"--score", "where(s == 0, s, 1)"}), {"names no result"});
    refused(of({"--score", "s = s > 0"}), {"true or false", "where(CONDITION, s, 0)"});
    refused(of({"--score", "column_sum(s)"}), {"names no result"});
    refused(of({"--score", "s = column_sum(s)"}), {"column_sum takes more scores than one", "point-wise"});
    refused(of({"--score", "s = softmax(s)"}), {"softmax takes more scores than one"});
    refused(of({"--score", "s = i - j"}), {"does not read s"});
    refused(of({"--score", "s = s * s", "--tensor", "s:fp32[1]"}), {"the tensor s", "the name is taken"});
}

// What the result is called inside is no name of the caller's: S is free.
TEST(AttentionRequests, TensorsMayHaveAnyOtherLetter) {
    for (const char* tensor : {"S", "Z"}) {
        const Outcome plan = run({"plan", "attention", "--machine", "h200-sxm", "--heads", "8", "--q", "64", "--dim", "64", "--score",
                                  std::string("s = s * ") + tensor, "--tensor", std::string(tensor) + ":fp32[1]"});
        EXPECT_EQ(plan.code, 0) << plan.err;
    }
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
                                  "300", "--kv", "500", "--dim", "96", "--mask", "window:64", "--log-sum-exp", "on", "--type", "fp16", "--json"});
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
