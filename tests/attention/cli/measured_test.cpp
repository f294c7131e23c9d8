// What `measure attention` adds to a row, on a driver without a GPU.
#include "tests/gemm/cli/fake_gpu.hpp"

namespace rooftile {
namespace {

class AttentionMeasured : public FakeGpuTest {
  protected:
    AttentionMeasured() : FakeGpuTest("attention-measured", "256x256x256") {}
};

// The costs of the way from the roof add up to the measured time; without --explain there is none of it.
TEST_F(AttentionMeasured, IsExplainedFromTheRoofToTheMeasuredTime) {
    const std::vector<std::string> words = {"measure", "attention", "--heads", "2", "--q", "256", "--dim", "64", "--rounds", "1", "--json"};
    const Outcome plain = run(words, environment_), explained = run(rooftile::with(words, {"--explain"}), environment_);
    ASSERT_EQ(plain.code, 0) << plain.err;
    ASSERT_EQ(explained.code, 0) << explained.err;
    EXPECT_FALSE(nlohmann::json::parse(plain.out).at("rows").at(0).contains("attainability"));
    const auto document = nlohmann::json::parse(explained.out);
    const auto& row = document.at("rows").at(0);
    std::int64_t sum = 0;
    for (const auto& step : row.at("attainability")) sum += step.at("cost_ns").get<std::int64_t>();
    ASSERT_EQ(row.at("attainability").back().at("step"), "measured");
    EXPECT_NEAR(double(sum) / 1e3, row.at("time_us").get<double>(), 0.01);
    EXPECT_GT(row.at("pipeline").at("steps"), 0);
}

}  // namespace
}  // namespace rooftile
