// What a recorded run is not read from: other kinds of rows, and configurations that no GPU has.
#include "rooftile/gemm/recorded_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "rooftile/error.hpp"
#include "rooftile/report/measurement.hpp"
#include "tests/gemm/sample.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

Json line_of_sample() {
    return measurement_lines(sample::gpu_context(), {sample::measurement()}, {}).front();
}

RecordedRun read(const std::vector<Json>& lines) {
    std::string text = json_text(context_line(measurement_document(sample::gpu_context(), {})), -1);
    for (const Json& line : lines) text += json_text(line, -1);
    return read_recorded_run(text, "x.jsonl");
}

std::string read_refusal(const std::vector<Json>& lines) {
    try {
        read(lines);
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

TEST(RecordedRun, RowsWithoutAConfigurationAreCounted) {
    const Json none =
        infeasible_line(sample::gpu_context(), sample::refused(), {{"a", "b"}}, Mode::sustained);
    const RecordedRun run = read({line_of_sample(), none, none});
    EXPECT_EQ(run.rows.size(), 1u);
    EXPECT_EQ(run.without_config, 2);
    EXPECT_THAT(read_refusal({none}), HasSubstr("no measured configuration"));
}

TEST(RecordedRun, OtherOperationsAreNamed) {
    Json line = line_of_sample();
    line["problem"] = {{"op", "fuse"}};
    const std::string why = read_refusal({line});
    EXPECT_THAT(why, HasSubstr("x.jsonl:2:"));
    EXPECT_THAT(why, HasSubstr("op \"fuse\", accepted: gemm"));
}

TEST(RecordedRun, NonsenseIsRefused) {
    const auto with = [](const char* key, const Json& value) {
        Json line = line_of_sample();
        line["config"][key] = value;
        return read_refusal({line});
    };
    EXPECT_EQ(with("tile_m", 128), "");
    EXPECT_THAT(with("tile_m", 0), HasSubstr("config.tile_m is 0, accepted: 1 .. 4096"));
    EXPECT_THAT(with("stages", -3), HasSubstr("config.stages is -3"));
    EXPECT_THAT(with("cluster_m", 5'000'000'000), HasSubstr("config.cluster_m is 5000000000"));
    EXPECT_THAT(with("evict_first", "bx"), HasSubstr("letters of abc"));
    EXPECT_THAT(with("order", "spiral"), HasSubstr("no name known here"));
    Json line = line_of_sample();
    line["problem"]["a_major"] = "n";
    EXPECT_THAT(read_refusal({line}), HasSubstr("problem.a_major is \"n\""));
}

}  // namespace
}  // namespace rooftile
