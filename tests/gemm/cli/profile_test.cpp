// The program profiles itself while it measures, on the driver without a GPU.
#include "tests/gemm/cli/fake_gpu.hpp"

#include <gmock/gmock.h>

#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

class ProfiledMeasurement : public FakeGpuTest {
  protected:
    ProfiledMeasurement() : FakeGpuTest("profiled", "256,256,256") {}
};

TEST_F(ProfiledMeasurement, HasTheKernelsThatWereMeasured) {
    const Outcome got = run({"profile", "--json", "-o", out(), "--", program(), "measure", "gemm", "--shape", "256,256,256", "--top", "1",
                             "--mode", "burst", "--baseline", "none"},
                            environment_);
    ASSERT_EQ(got.code, 0) << got.err;
    std::ifstream file(out());
    const auto document = nlohmann::json::parse(file);
    EXPECT_EQ(JsonSchema("profile-1.json").faults(document), "");
    std::size_t measured = 0, in_graphs = 0;
    for (const auto& kernel : document.at("kernels"))
        if (kernel.at("decoded").at("role") == "gemm" && kernel.at("decoded").at("library") == "rooftile") {
            measured += kernel.at("calls").get<std::size_t>(), in_graphs += kernel.at("in_graphs").get<std::size_t>();
            EXPECT_GT(kernel.at("decoded").at("tile_m").get<int>(), 0);
        } else EXPECT_THAT(kernel.at("short").get<std::string>(), testing::StartsWith("rooftile: "));
    EXPECT_GT(measured, 20u);
    EXPECT_GT(in_graphs, 0u);
    EXPECT_LT(in_graphs, measured);
}

}  // namespace
}  // namespace rooftile
