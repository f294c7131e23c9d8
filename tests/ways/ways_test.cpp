// Operators in several ways: their data, times from a recording, the document, its text, picture and page.
#include "rooftile/ways/ways.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/picture/page.hpp"
#include "rooftile/picture/pictures.hpp"
#include "tests/golden.hpp"
#include "tests/json_schema.hpp"
#include "tests/ways/made_run.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

WaysRequest usual_request(const WayOperator& what) {
    WaysRequest out;
    out.what = &what, out.type = "bf16";
    for (const auto& [name, usual] : what.sizes) out.sizes[name] = usual;
    return out;
}

std::shared_ptr<const Machine> h200() { return std::make_shared<Machine>(machine_by_id("h200-sxm")); }

DocumentContext made_context() {
    DocumentContext context = context_of("rooftile measure ways gelu");
    context.version = "0", context.machine_id = "h200-sxm";
    context.gpu.emplace();
    context.gpu->gpu = "NVIDIA H200", context.gpu->date = "2026-11-28T00:00:00Z", context.gpu->seed = 1;
    return context;
}

bool is_embedded(const std::string& path) {
    return std::ranges::find(embedded_exports(), path, &EmbeddedFile::path) != embedded_exports().end();
}

TEST(WayOperators, AreAllOfThemWithTheirTexts) {
    std::vector<std::string> names;
    for (const WayOperator& each : way_operators()) {
        names.push_back(each.name);
        EXPECT_FALSE(each.meaning.empty());
        EXPECT_FALSE(each.sizes.empty()) << each.name;
        EXPECT_TRUE(is_embedded(each.folder + each.name + ".py")) << each.name;
        EXPECT_TRUE(is_embedded(each.folder + each.name + "_triton.py")) << each.name;
        EXPECT_EQ(with_sizes(each.shape, usual_request(each).sizes, "bf16").find('{'), std::string::npos) << each.name;
    }
    EXPECT_THAT(names, ElementsAre("gelu", "softmax", "layernorm", "matmul", "mlp", "attention"));
    try {
        way_operator("conv");
        FAIL();
    } catch (const RequestError& error) {
        EXPECT_THAT(error.what(), HasSubstr("there are gelu, softmax, layernorm, matmul, mlp, attention"));
    }
}

TEST(WayOperators, ArePlannedOnEveryMachineOrSayWhyNot) {
    for (const WayOperator& each : way_operators()) {
        const WaysPrediction here = ways_prediction(usual_request(each), h200());
        ASSERT_TRUE(here.possible && here.predicted) << each.name << here.why_not;
        EXPECT_GT(*here.possible, 1) << each.name;
        EXPECT_GT(*here.predicted, 0.9 * *here.possible) << each.name;
        EXPECT_LT(*here.predicted, 4 * *here.possible) << each.name;
        EXPECT_THAT(here.command, HasSubstr("--machine h200-sxm --explain"));
        for (const std::string& id : machine_ids()) {
            const WaysPrediction there = ways_prediction(usual_request(each), std::make_shared<Machine>(machine_by_id(id)));
            EXPECT_TRUE((there.possible && there.predicted) || !there.why_not.empty()) << each.name << " on " << id;
        }
    }
}

TEST(WayOperators, SizesAreReplacedInTexts) {
    EXPECT_EQ(with_sizes("x:{type}[{rows},{columns}] {rows}", {{"rows", 3}, {"columns", 40}}, "bf16"), "x:bf16[3,40] 3");
    EXPECT_EQ(with_sizes("{others}", {{"rows", 3}}, "bf16"), "{others}");
}

TEST(RangedWork, IsWhatARangeAskedForWheneverItRuns) {
    MadeRun run;
    run.range("way a", 100, 200);
    run.kernel("k1", 110, 1000, 1400);
    run.kernel("k2", 150, 1500, 1700);  // after a gap of 100
    run.range("way b", 300, 400);
    run.kernel("k3", 310, 1700, 1900);
    run.kernel("k4", 450, 1900, 2000);  // asked for outside
    run.range("way a", 500, 520);       // nothing is asked for in it
    run.range("way a", 600, 700);
    run.kernel("k1", 610, 3000, 3300);
    const std::vector<Recorded> recordings = run.recordings();
    const std::vector<RangedWork> a = ranged_work(recordings, "way a");
    ASSERT_EQ(a.size(), 2u);
    EXPECT_EQ(a[0].window, 700);
    EXPECT_EQ(a[0].kernels, 600);
    EXPECT_EQ(a[0].host, 100);
    EXPECT_EQ(a[0].work.size(), 2u);
    EXPECT_EQ(a[1].window, 300);
    ASSERT_EQ(ranged_work(recordings, "way b").size(), 1u);
    EXPECT_EQ(ranged_work(recordings, "way b")[0].window, 200);
    EXPECT_TRUE(ranged_work(recordings, "way").empty());
    EXPECT_TRUE(ranged_work({}, "way a").empty());
}

TEST(RangedWork, ALaunchThatStartsBeforeItsPredecessorEndsCountsOnce) {
    MadeRun run;
    run.range("way a", 100, 200);
    run.kernel("k1", 110, 1000, 1400);
    run.range("way a", 210, 300);
    run.kernel("k1", 220, 1350, 1800);  // waits for 50 ns
    run.range("way a", 310, 400);
    run.kernel("k1", 320, 1790, 2200);
    run.kernel("k2", 330, 2150, 2300);  // of the same call
    run.range("way a", 410, 500);
    run.kernel("k1", 420, 2400, 2800);  // after a gap
    run.range("way a", 510, 600);
    run.kernel("k1", 520, 2500, 2700);  // of another stream, inside the one before
    const std::vector<RangedWork> calls = ranged_work(run.recordings(), "way a");
    ASSERT_EQ(calls.size(), 5u);
    const double windows[] = {400, 400, 500, 400, 0}, kernels[] = {400, 400, 500, 400, 0};
    for (std::size_t i = 0; i < calls.size(); ++i) {
        EXPECT_EQ(calls[i].window, windows[i]) << i;
        EXPECT_EQ(calls[i].kernels, kernels[i]) << i;
    }
}

/// Six ways of gelu: three times each, one absent, one wrong.
Json made_document() {
    MadeRun run;
    std::uint64_t at = 1000;
    const auto call = [&](const char* range, std::initializer_list<std::pair<const char*, int>> kernels) {
        for (int i = 0; i < 3; ++i) {
            run.range(range, at, at + 900);
            std::uint64_t start = at + 100'000;
            for (const auto& [name, us] : kernels) {
                run.kernel(name, at + 5, start, start + std::uint64_t(us) * 1000);
                start += std::uint64_t(us) * 1000 + 1500;
            }
            at += 1'000'000;
        }
    };
    const char* pointwise =
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >";
    call("way manual", {{pointwise, 80}, {pointwise, 80}, {pointwise, 80}});
    call("way operator",
         {{"void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl, std::array<char*, 2ul> >", 78}});
    call("way compiled", {{"triton_poi_fused_add_erf_mul_0", 75}});
    call("way cuda", {{"gelu", 90}});
    call("way derived", {{"rooftile_gelu", 70}});
    const Json report = {{"python", "3.12.3"},
                         {"torch", "2.11.0"},
                         {"triton", nullptr},
                         {"gpu", "NVIDIA H200"},
                         {"device", "cuda"},
                         {"operand_sets", 3},
                         {"operand_bytes", 134217728},
                         {"ways",
                          {{"manual", {{"error", 0.0052}, {"largest_difference", 0.017}, {"right", true}}},
                           {"operator", {{"error", 0.0031}, {"largest_difference", 0.015}, {"right", true}}},
                           {"compiled", {{"error", 0.0031}, {"largest_difference", 0.015}, {"right", true}}},
                           {"triton", {{"absent", "triton is not importable: No module named 'triton'"}}},
                           {"cuda", {{"error", 0.4}, {"largest_difference", 3.1}, {"right", false}}},
                           {"derived", {{"error", 0.0031}, {"largest_difference", 0.015}, {"right", true}}}}}};
    return ways_document(made_context(), usual_request(way_operator("gelu")), report, run.recordings(), h200(),
                         {"a100-80-sxm", "v100-sxm2"});
}

TEST(WaysDocument, HasTheRecordingsTimes) {
    const Json d = made_document();
    EXPECT_EQ(JsonSchema("ways-1.json").faults(d), "");
    ASSERT_EQ(d.at("ways").size(), 6u);
    const Json& manual = d.at("ways")[0];
    EXPECT_EQ(manual.at("id"), "manual");
    EXPECT_DOUBLE_EQ(manual.at("time_us").get<double>(), 243);  // three of 80 us and two gaps of 1.5
    EXPECT_DOUBLE_EQ(manual.at("kernel_us").get<double>(), 240);
    EXPECT_DOUBLE_EQ(manual.at("host_us").get<double>(), 0.9);
    EXPECT_EQ(manual.at("launches"), 3);
    EXPECT_EQ(manual.at("calls"), 3);
    EXPECT_EQ(manual.at("kernels").size(), 1u);
    EXPECT_THAT(manual.at("kernels")[0].get<std::string>(), testing::StartsWith("3 x "));
    const double possible = d.at("prediction").at("possible_us").get<double>();
    // 8192 x 8192 values of 2 B read and written at 4.8 TB/s.
    EXPECT_NEAR(possible, 4.0 * 8192 * 8192 / 4.8e6, 0.1);
    EXPECT_DOUBLE_EQ(d.at("ways")[5].at("roof_fraction").get<double>(), possible / 70);
    EXPECT_TRUE(d.at("ways")[3].at("time_us").is_null());
    EXPECT_EQ(d.at("ways")[3].at("calls"), 0);
    EXPECT_EQ(d.at("elsewhere").size(), 2u);
}

TEST(WaysDocument, WithoutAGpuHasNoTimes) {
    const Json report = {{"device", "cpu"}, {"ways", {{"manual", {{"error", 0.005}, {"largest_difference", 0.01}, {"right", true}}}}}};
    const Json d = ways_document(made_context(), usual_request(way_operator("softmax")), report, {}, h200(), {});
    EXPECT_EQ(JsonSchema("ways-1.json").faults(d), "");
    for (const Json& way : d.at("ways")) EXPECT_TRUE(way.at("time_us").is_null());
    EXPECT_TRUE(pictures_of(d).empty());
    EXPECT_THAT(ways_text(d, Terminal{.width = 80}), HasSubstr("on the CPU: no device times"));
}

TEST(WaysText, FitsTheTerminal) {
    const Json d = made_document();
    expect_golden("ways.txt", ways_text(d, Terminal{.width = 80}));
    for (const int width : {80, 100, 160}) {
        std::istringstream lines(ways_text(d, Terminal{.width = width}));
        for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width) << line;
    }
    const std::string text = ways_text(d, Terminal{.width = 120});
    EXPECT_THAT(text, HasSubstr("wrong"));
    EXPECT_THAT(text, HasSubstr("triton is not importable"));
}

TEST(WaysPicture, ABarAWayAndThePage) {
    const Json d = made_document();
    const std::vector<Picture> pictures = pictures_of(d);
    ASSERT_EQ(pictures.size(), 1u);
    EXPECT_EQ(pictures[0].id, "ways");
    EXPECT_THAT(pictures[0].y.names,
                ElementsAre("operators one by one", "framework's operator", "torch.compile", "CUDA by hand", "Rooftile"));
    EXPECT_THAT(svg_text(pictures[0]), HasSubstr("243.0 us"));
    const std::string page = page_html({{"ways.json", d}}, "rooftile report page ways.json");
    EXPECT_THAT(page, HasSubstr("Who decides"));
    EXPECT_THAT(page, HasSubstr("data-at=\"d1/ways/0/time_us\">243.0 us"));
    EXPECT_THAT(page, Not(HasSubstr("<script src")));
}

// Recorded documents hold the predictions of today's planner; ROOFTILE_REGENERATE=1 rewrites them. What was measured stays.
TEST(WaysRecords, HoldThePredictionsOfTodaysPlanner) {
    const std::filesystem::path folder = ROOFTILE_SOURCE_DIR "/bench/results/ways";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: no records here";
    const char* regenerate = std::getenv("ROOFTILE_REGENERATE");
    int records = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream file(entry.path());
        const Json recorded = Json::parse(file);
        if (recorded.at("schema") != "rooftile/ways/1") continue;
        SCOPED_TRACE(entry.path().filename().string());
        ++records;
        EXPECT_EQ(JsonSchema("ways-1.json").faults(nlohmann::json::parse(recorded.dump())), "");
        WaysRequest request;
        request.what = &way_operator(recorded.at("operator").get<std::string>());
        request.type = recorded.at("type").get<std::string>();
        for (const auto& [name, value] : recorded.at("sizes").items()) request.sizes[name] = value.get<std::int64_t>();
        Json again = recorded;
        const auto predict = [&](Json& prediction) {
            const WaysPrediction p =
                ways_prediction(request, std::make_shared<Machine>(machine_by_id(prediction.at("machine").get<std::string>())));
            prediction["possible_us"] = json_number(p.possible), prediction["predicted_us"] = json_number(p.predicted);
            prediction["plan"] = text_or_null(p.plan), prediction["why_not"] = text_or_null(p.why_not);
        };
        predict(again["prediction"]);
        for (Json& each : again["elsewhere"]) predict(each);
        if (regenerate && *regenerate == '1') std::ofstream(entry.path()) << again.dump(2) << '\n';
        else {
            const Json &was = recorded.at("prediction"), &is = again.at("prediction");
            EXPECT_EQ(was.at("plan"), is.at("plan"));
            for (const char* key : {"possible_us", "predicted_us"})
                EXPECT_NEAR(was.at(key).get<double>(), is.at(key).get<double>(), 1e-6 * is.at(key).get<double>()) << key;
            for (std::size_t i = 0; i < again.at("elsewhere").size(); ++i)
                EXPECT_EQ(recorded.at("elsewhere")[i].at("plan"), again.at("elsewhere")[i].at("plan")) << i;
        }
    }
    EXPECT_GT(records, 0);
}

}  // namespace
}  // namespace rooftile
