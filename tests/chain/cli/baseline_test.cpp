// What a chain is timed beside, on a driver without a GPU.
#include "tests/gemm/cli/fake_gpu.hpp"

namespace rooftile {
namespace {

class ChainBaseline : public FakeGpuTest {
  protected:
    ChainBaseline() : FakeGpuTest("chain-baseline", "256x256x256") {}
};

// The library has neither function; its two calls have a kernel of the function between them, and a note says so.
TEST_F(ChainBaseline, FunctionsThatTheLibraryLacksStandBetweenItsCalls) {
    for (const std::string act : {"relu", "silu", "swiglu"}) {
        const Outcome got = run({"measure", "chain", "--m", "1024", "--d", "128", "--ff", "256", "--act", act, "--form", "two_kernels", "--rounds", "1", "--explain", "--json"}, environment_);
        ASSERT_EQ(got.code, 0) << got.err;
        const auto document = nlohmann::json::parse(got.out);
        const auto& baselines = document.at("rows").at(0).at("baselines");
        EXPECT_TRUE(baselines.at("missing").is_null()) << act << ' ' << baselines;
        EXPECT_TRUE(baselines.at("two_calls_us").is_number()) << act << ' ' << baselines;
        EXPECT_FALSE(document.at("rows").at(0).at("attainability").empty());
        const std::string notes = document.at("notes").dump();
        EXPECT_EQ(notes.find("the library has no " + act) != std::string::npos, act != "relu") << notes;
    }
}

}  // namespace
}  // namespace rooftile
