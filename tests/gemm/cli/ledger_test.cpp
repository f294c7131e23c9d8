// `ledger` from outside, on a driver without a GPU: what it writes, goes on with and finds wrong.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/gemm/cli/fake_gpu.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class LedgerTest : public FakeGpuTest {
  protected:
    LedgerTest() : FakeGpuTest("ledger", "64x256x128") {}

    /// One problem of few rows, whose space is small.
    Outcome ledger(const char* seed = "38", const Environment& more = {}) const {
        return run({"ledger", "gemm", "--draw", "1", "--seed", seed, "--out", out()}, with(more));
    }
};

TEST_F(LedgerTest, EveryMemberIsTimedAndValidateReadsThem) {
    const Outcome outcome = ledger();
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const std::vector<json> all = lines();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].at("schema"), "rooftile/ledger/1");
    const json& entry = all[1];
    const std::size_t members = entry.at("members").size();
    EXPECT_GT(members, 40u);
    EXPECT_EQ(entry.at("configurations").size(), members);
    for (const json& us : entry.at("first_us")) EXPECT_TRUE(us.is_number());
    EXPECT_EQ(entry.at("wrong"), json::array());
    EXPECT_EQ(entry.at("not_compared"), json::array());
    EXPECT_GE(entry.at("again").size(), 8u);
    EXPECT_TRUE(entry.at("duplicate").is_array());

    const Outcome again = ledger();
    EXPECT_EQ(again.code, 0);
    EXPECT_THAT(again.err, HasSubstr("nothing left to do"));
    EXPECT_EQ(lines(), all);
    const Outcome other = ledger("37");
    EXPECT_EQ(other.code, 2);
    EXPECT_THAT(other.err, HasSubstr("another program, machine, operation or seed"));

    const Outcome validated = run({"validate", "--ledger", out(), "--json"}, environment_);
    ASSERT_EQ(validated.code, 0) << validated.err;
    const json judged = json::parse(validated.out).at("operations").at(0);
    EXPECT_EQ(judged.at("rows").at(0).at("members"), members);
    EXPECT_GE(judged.at("regret").at("mean").get<double>(), 1);
    const Outcome required =
        run({"validate", "--ledger", out(), "--require", "regret.mean=0.5"}, environment_);
    EXPECT_EQ(required.code, 8);
    EXPECT_THAT(required.err, HasSubstr("missed: regret.mean"));
}

TEST_F(LedgerTest, AWrongResultIsNamedAndNoMemberOfTheRace) {
    const Outcome outcome = ledger("38", {{"FAKE_WRONG_TILE", "64x32x"}});
    ASSERT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("WRONG"));
    const json entry = lines().at(1);
    EXPECT_GT(entry.at("wrong").size(), 0u);
    EXPECT_LT(entry.at("wrong").size(), entry.at("members").size() / 2);
    const json configurations = entry.at("configurations");
    for (const json& wrong : entry.at("wrong")) {
        const json& config = configurations.at(wrong.at(0).get<std::size_t>());
        EXPECT_EQ(config.at(1), 64);
        EXPECT_EQ(config.at(2), 32);
    }
}

}  // namespace
}  // namespace rooftile
