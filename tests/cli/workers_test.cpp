// Two workers of one CTA as a document, and what is refused.
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

const std::string invented = ROOFTILE_SOURCE_DIR "/machines/invented/async-units.toml";

TEST(SimulateWorkers, DocumentsFollowTheirSchema) {
    for (const std::string& machine : {std::string("a100-80-sxm"), std::string("h100-sxm"), invented})
        for (const char* work : {"softmax", "silu"}) {
            const Outcome got = run({"simulate", "workers", "--machine", machine, "--work", work, "--json"});
            ASSERT_EQ(got.code, 0) << got.err;
            const auto document = nlohmann::json::parse(got.out);
            EXPECT_EQ(JsonSchema("workers-1.json").faults(document), "") << machine;
            EXPECT_EQ(document.at("runs").size(), 3u);
            EXPECT_NEAR(document.at("runs").at(0).at("gain").get<double>(), 1, 1e-12);
        }
    const Outcome text = run({"simulate", "workers", "--machine", invented});
    EXPECT_EQ(text.code, 0) << text.err;
    for (const char* part : {"two a stage apart", "goes on", "ceiling", "1.5"}) EXPECT_NE(text.out.find(part), std::string::npos) << part;
}

TEST(SimulateWorkers, RefusesInOneLine) {
    expect_refused({"simulate", "workers", "--work", "sideways"}, {"--work", "softmax, silu"});
    expect_refused({"simulate", "workers", "--tile", "128"}, {"--tile", "MxN"});
    expect_refused({"simulate", "workers", "--in-flight", "0"}, {"--in-flight", "1 .. 64"});
    expect_refused({"simulate", "workers", "--machine", "h100-sxm", "--set", "rate.mufu=unknown"}, {"rate.mufu of h100-sxm is unknown", "--set"});
}

}  // namespace
}  // namespace rooftile
