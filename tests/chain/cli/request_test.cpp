// Requests for chains from outside: what is refused, what no plan fits, and documents that follow their schema.
#include <array>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "rooftile/core/random.hpp"
#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

TEST(ChainRequests, AreRefusedWhereTheyAreWrong) {
    expect_refused({"plan", "chain"}, {"missing --m"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "60", "--ff", "64"}, {"d is 60"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "64", "--ff", "64", "--act", "tanh"}, {"--act", "swiglu"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "64", "--ff", "64", "--form", "best"}, {"--form", "on_chip"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "64", "--ff", "64", "--form", "two_kernels", "--stages", "2"}, {"--stages", "on_chip"});
    expect_refused({"plan", "chain", "--m", "64", "--d", "64", "--ff", "64", "--form", "on_chip", "--chunk-rows", "64"}, {"--chunk-rows", "persistent"});
}

// Forms differ in why nobody builds them, and the one that is ahead is not the only one that a user may want.
TEST(ChainRequests, WhyNoPlanIsBuiltIsSaidOfEachForm) {
    const Outcome none = run({"build", "chain", "--m", "4096", "--d", "1024", "--ff", "4096", "--act", "swiglu", "--machine", "a100-80-sxm"});
    EXPECT_EQ(none.code, 2);
    EXPECT_EQ(none.error_lines(), 1);
    for (const char* part : {"none of the 3 plans", "persistent", "tiles of two products are sm90_gemm's alone", "two_kernels", "carry_over", "the first product: pairs split"})
        EXPECT_NE(none.err.find(part), std::string::npos) << part << " in " << none.err;
    // Of one reason no plan is named.
    const Outcome one = run({"build", "chain", "--m", "4096", "--d", "1024", "--ff", "4096", "--form", "persistent", "--machine", "a100-80-sxm"});
    EXPECT_NE(one.err.find("can be built: the first product is sm80_gemm's"), std::string::npos) << one.err;
}

TEST(ChainRequests, ALawIsRefusedByTheFlagThatWasGiven) {
    for (const char* operation : {"chain", "fuse"}) {
        const std::vector<std::string> rest = {"sweep", operation, "--draw", "2", "--plan-only", "--machine", "h200-sxm"};
        const auto with = [&](std::initializer_list<const char*> more) {
            std::vector<std::string> all = rest;
            all.insert(all.end(), more.begin(), more.end());
            return run(all);
        };
        const Outcome law = with({"--law", "any"}), any = with({"--any-alignment"});
        EXPECT_EQ(law.code, 2);
        EXPECT_EQ(law.error_lines(), 1);
        EXPECT_NE(law.err.find("--law any: "), std::string::npos) << law.err;
        EXPECT_EQ(law.err.find("--any-alignment"), std::string::npos) << law.err;
        EXPECT_EQ(any.code, 2);
        EXPECT_NE(any.err.find("--any-alignment: "), std::string::npos) << any.err;
        EXPECT_NE(any.err.find("draw"), std::string::npos) << any.err << "what works";
    }
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
            const Outcome plan = run({"plan", "chain", "--machine", machine, "--m", "3000", "--d", "128", "--ff", "520", "--act", act, "--residual", "--type", "fp16", "--json"});
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

TEST(ChainRequests, SimulationsAddUpAndAreDrawn) {
    const std::string picture = testing::TempDir() + "chain_hits.svg";
    const Outcome simulated = run({"simulate", "chain", "--machine", "a40", "--m", "20000", "--d", "512", "--ff", "1024", "--form", "carry_over", "--svg", picture, "--json"});
    EXPECT_EQ(simulated.code, 0) << simulated.err;
    const auto document = nlohmann::json::parse(simulated.out);
    EXPECT_EQ(JsonSchema("chain_simulation-1.json").faults(document), "");
    EXPECT_GT(document.at("samples").size(), 20u);
    // The last sample is of nearly all that was asked.
    const auto& last = document.at("samples").back().at("tensors").at("H");
    EXPECT_GT(last.at("asked_bytes").get<double>(), 0.95 * document.at("tensors").at("H").at("asked_bytes").get<double>());
    EXPECT_EQ(document.at("tensors").at("H").at("written_bytes").get<std::int64_t>(), 20000 * 1024 * 2) << "6 MiB hold none of 41 MB until the next launch";
    EXPECT_EQ(run({"simulate", "chain", "--machine", "a40", "--m", "2000", "--d", "512", "--ff", "1024"}).code, 0);
    EXPECT_FALSE(document.contains("energy"));
    const Outcome energy = run({"simulate", "chain", "--machine", "h200-sxm", "--m", "20000", "--d", "512", "--ff", "1024", "--energy", "--json"});
    const auto joules = nlohmann::json::parse(energy.out);
    EXPECT_EQ(JsonSchema("chain_simulation-1.json").faults(joules), "");
    EXPECT_GT(joules.at("energy").at("total_j").get<double>(), joules.at("energy").at("dram_j").get<double>());
    expect_refused({"simulate", "chain", "--machine", "a40", "--set", "l2.size=unknown", "--m", "2000", "--d", "512", "--ff", "1024"}, {"l2.size"});
}

// One definition of a hit: what a chain's simulation says of its first product, from an L2 that holds nothing, is what a product's says.
TEST(ChainRequests, AHitIsWhatItIsOfAProductAlone) {
    Random random(47);
    for (int i = 0; i < 12; ++i) {
        const std::string m = std::to_string(random.whole(2000, 30000)), d = std::to_string(64 * random.whole(2, 24)), ff = std::to_string(64 * random.whole(8, 60));
        const char* machine = std::array{"a40", "h200-sxm", "b200", "rtx4090"}[random.pick(4)];
        SCOPED_TRACE(m + "x" + d + "x" + ff + " " + machine);
        const Outcome chain = run({"simulate", "chain", "--machine", machine, "--m", m, "--d", d, "--ff", ff, "--act", "relu", "--form", "two_kernels", "--json"});
        ASSERT_EQ(chain.code, 0) << chain.err;
        const auto tensors = nlohmann::json::parse(chain.out).at("tensors");
        double asked = 0, read = 0;
        for (const char* name : {"X", "W1"}) asked += tensors.at(name).at("asked_bytes").get<double>(), read += tensors.at(name).at("read_bytes").get<double>();
        const Outcome product = run({"simulate", "gemm", "--machine", machine, "--m", m, "--n", ff, "--k", d, "--epilogue", "h = relu(acc)", "--json"});
        ASSERT_EQ(product.code, 0) << product.err;
        const auto document = nlohmann::json::parse(product.out);
        const auto& config = document.at("config");
        bool found = false;
        for (const auto& row : document.at("rows"))
            if (row.at("order") == config.at("order") && row.at("group") == config.at("group")) {
                found = true;
                EXPECT_NEAR(1 - read / asked, row.at("l2_hit_rate").get<double>(), 0.02);
            }
        EXPECT_TRUE(found);
    }
}

// Both kernels of a plan of two are shown, and each has its machine code.
TEST(ChainRequests, BuildShowsBothKernels) {
    const std::vector<std::string> request = {"build", "chain", "--machine", "h200-sxm", "--m", "3000", "--d", "512", "--ff", "1024", "--form", "two_kernels"};
    const std::string file = testing::TempDir() + "chain_kernel.cubin";
    std::vector<std::string> json = request;
    json.insert(json.end(), {"--json", "--cubin", file});
    const Outcome built = run(json);
    ASSERT_EQ(built.code, 0) << built.err;
    const auto document = nlohmann::json::parse(built.out);
    EXPECT_EQ(JsonSchema("build-1.json").faults(document), "");
    const auto& kernels = document.at("kernels");
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_NE(kernels[0].at("hash"), kernels[1].at("hash"));
    EXPECT_EQ(std::filesystem::file_size(file), kernels[0].at("cubin_bytes").get<std::uintmax_t>());
    EXPECT_EQ(std::filesystem::file_size(testing::TempDir() + "chain_kernel.2.cubin"), kernels[1].at("cubin_bytes").get<std::uintmax_t>());
    const Outcome text = run(request);
    EXPECT_NE(text.out.find("kernel 2"), std::string::npos) << text.out;
}

TEST(ChainRequests, EnergyOfEachForm) {
    const Outcome plan = run({"plan", "chain", "--machine", "h200-sxm", "--m", "65536", "--d", "128", "--ff", "512", "--energy", "--json"});
    ASSERT_EQ(plan.code, 0) << plan.err;
    std::map<std::string, double> joules;
    const auto document = nlohmann::json::parse(plan.out);
    for (const auto& p : document.at("plans")) joules[p.at("config").at("form")] = p.at("energy").at("dram_j");
    // H through DRAM takes 2 x 65536 x 512 x 2 B x 45 pJ/B = 6 mJ more, less what the other's higher clock adds to its own bytes.
    EXPECT_GT(joules.at("two_kernels"), joules.at("on_chip") + 0.005);
    EXPECT_LT(joules.at("two_kernels"), joules.at("on_chip") + 0.00605);
}

TEST(ChainRequests, TwoPlansSideBySide) {
    const std::string one = "chain --m 65536 --d 128 --ff 512 --residual", other = "chain --m 65536 --d 512 --ff 2048";
    const Outcome beside = run({"plan", "beside", one, other, "--machine", "h200-sxm", "--json"});
    EXPECT_EQ(beside.code, 0) << beside.err;
    const auto document = nlohmann::json::parse(beside.out);
    EXPECT_EQ(document.at("first").at("sms").get<int>() + document.at("second").at("sms").get<int>(), 132);
    EXPECT_EQ(JsonSchema("beside-1.json").faults(document), "");
    EXPECT_LE(document.at("gain").get<double>(), document.at("ceiling").get<double>() * 1.02);
    expect_refused({"plan", "beside", one}, {"second"});
    expect_refused({"plan", "beside", one, "nonesuch --m 3"}, {"nonesuch"});
    expect_refused({"plan", "beside", one, "chain --m 65536 --sideways 3"}, {"--sideways"});
    expect_refused({"plan", "beside", one, "chain --m"}, {"second", "--m has no value"});
    expect_refused({"plan", "beside", "fuse \"y = gelu(x)", one}, {"first", "quote"});
    const Outcome none = run({"plan", "beside", one, "chain --m 64 --d 1024 --ff 64 --form on_chip", "--machine", "h200-sxm", "--json"});
    EXPECT_EQ(none.code, 10);
    EXPECT_NE(none.err.find("second"), std::string::npos) << none.err;
    const auto refusal = nlohmann::json::parse(none.out);
    EXPECT_EQ(JsonSchema("beside-1.json").faults(refusal), "");
    EXPECT_FALSE(refusal.at("advised").get<bool>());
    EXPECT_EQ(run({"plan", "beside", one, other, "--machine", "h200-sxm", "--set", "sm.count=unknown", "--json"}).code, 10);
}

TEST(ChainRequests, PlansAreSweptByTheirLaw) {
    const Outcome sweep = run({"sweep", "chain", "--machine", "h200-sxm", "--draw", "5", "--seed", "3", "--plan-only", "--jsonl"});
    EXPECT_EQ(sweep.code, 0) << sweep.err;
}

}  // namespace
}  // namespace rooftile
