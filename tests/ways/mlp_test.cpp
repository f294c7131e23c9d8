// An MLP at many sizes: values as they are typed, curves, times and predictions from a recording, and why the time jumps.
#include "rooftile/ways/mlp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/picture/page.hpp"
#include "rooftile/picture/pictures.hpp"
#include "tests/golden.hpp"
#include "tests/json_schema.hpp"
#include "tests/ways/made_run.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MlpCurves, AlongTheParameterWithTheMostValues) {
    const auto curves = mlp_curves({{{1}, {2, 4}, {8, 16, 32}, {64}}});
    ASSERT_EQ(curves.size(), 2u);
    EXPECT_EQ(curves[0].parameter, 2u);
    EXPECT_THAT(curves[0].points, ElementsAre(MlpPoint{1, 2, 8, 64}, MlpPoint{1, 2, 16, 64}, MlpPoint{1, 2, 32, 64}));
    EXPECT_THAT(curves[1].points.front(), (MlpPoint{1, 4, 8, 64}));
    ASSERT_EQ(mlp_curves({{{1}, {2}, {8}, {64}}}).size(), 1u);
}

constexpr const char* gelu = "void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl, std::array<char*, 2ul> >";
constexpr const char* narrow = "nvjet_sm90_tst_64x64_64x9_2x1_v_bz_bias_TNT";
constexpr const char* wide = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_bias_TNT";

/// What a point's step is made of. Times in us.
struct MadePoint {
    const char* product;
    int product_us, ctas, gelu_us, gap_us, host_us;
};

/// A curve of one layer and two steps a run, three runs a point.
Json made_document(const MlpCurve& curve, const std::vector<MadePoint>& made, double l2_bytes = 60e6) {
    static const char* const ranges[] = {"run 0", "run 1", "run 2", "run 3", "run 4", "run 5", "run 6"};
    MadeRun run;
    Json points = Json::array();
    std::uint64_t at = 1000;
    for (std::size_t i = 0; i < made.size(); ++i) {
        const MadePoint& m = made[i];
        for (int repeat = 0; repeat < 3; ++repeat) {
            run.range(ranges[i], at, at + 2000 * std::uint64_t(m.host_us));
            std::uint64_t start = at + 5000;
            for (int step = 0; step < 2; ++step)
                for (const auto& [name, us] : {std::pair(m.product, m.product_us), {gelu, m.gelu_us}}) {
                    DeviceWork& work = run.kernel(name, at + 10, start, start + 1000 * std::uint64_t(us), name == gelu ? 500 : m.ctas);
                    if (name != gelu) work.dynamic_shared = 200 << 10;  // an SM has room for one CTA
                    start += 1000 * std::uint64_t(us + m.gap_us);
                }
            at += 10'000'000;
        }
        points.push_back({{"error", 0.004}, {"largest_difference", 0.02}, {"right", true}, {"wall_us", 2.0 * (m.product_us + m.gelu_us)}});
    }
    const Json report = {{"python", "3.12.3"}, {"torch", "2.11.0"},    {"gpu", "NVIDIA H200"},
                         {"device", "cuda"},   {"l2_bytes", l2_bytes}, {"points", points}};
    DocumentContext context = context_of("rooftile sweep mlp");
    context.version = "0";
    return mlp_document(context, {curve}, "bf16", report, run.recordings(), std::make_shared<Machine>(machine_by_id("h200-sxm")));
}

MlpCurve batch_curve(std::initializer_list<std::int64_t> batches) {
    MlpCurve out{2, {}};
    for (const std::int64_t batch : batches) out.points.push_back({2, 1, batch, 4096});
    return out;
}

TEST(MlpDocument, TimesAreThoseOfAStep) {
    const Json d = made_document(batch_curve({1024}), {{narrow, 40, 132, 10, 2, 20}});
    EXPECT_EQ(JsonSchema("mlp-1.json").faults(d), "");
    const Json& point = d.at("curves")[0].at("points")[0];
    EXPECT_EQ(point.at("runs"), 3);
    EXPECT_DOUBLE_EQ(point.at("step_us").get<double>(), (2 * 50 + 3 * 2) / 2.0);  // two products, two gelus, three gaps
    EXPECT_DOUBLE_EQ(point.at("kernel_us").get<double>(), 50);
    EXPECT_DOUBLE_EQ(point.at("host_us").get<double>(), 20);
    EXPECT_FALSE(point.at("host_bound").get<bool>());
    EXPECT_DOUBLE_EQ(point.at("tflops").get<double>(), 2.0 * 1024 * 4096 * 4096 / 53 / 1e6);
    ASSERT_EQ(point.at("kernels").size(), 2u);
    EXPECT_EQ(point.at("kernels")[0].at("calls"), 1);
    EXPECT_EQ(point.at("kernels")[0].at("mean_us"), 40);
    // gelu: 1024 x 4096 values of 2 B read and written, 16.8 MB, which L2 holds, take 1.69 us at 9.9 TB/s; 46 issue slots each
    // 5.77 us of 132 x 4 schedulers at 1.98 GHz. With a launch (0.555) and a trip to L2 (271 clk):
    const double slots = 1024 * 4096 / 32. * 46 / (132 * 4 * 1980.);
    EXPECT_NEAR(point.at("kernels")[1].at("predicted_us").get<double>(), 0.555 + 271 / 1980. + slots, 1e-6);
    EXPECT_NEAR(point.at("gap_us").get<double>(), 2 * 1.41, 1e-9);
    EXPECT_NEAR(point.at("asking_us").get<double>(), 20, 1e-9);  // the one point's own pace
    // The recording has no parameters: the product's sizes are unknown, and so is what it should take.
    EXPECT_TRUE(point.at("predicted_us").is_null());
    EXPECT_THAT(point.at("why_not").get<std::string>(), HasSubstr("64x64"));
}

TEST(MlpDocument, LargeGeluComesFromDram) {
    const Json d = made_document(batch_curve({65536}), {{wide, 4000, 132, 250, 2, 20}});
    const double slots = 65536 * 4096. / 32 * 46 / (132 * 4 * 1980.), bytes = 4.0 * 65536 * 4096 / 4.32e6;
    ASSERT_GT(slots, bytes);
    EXPECT_NEAR(d.at("curves")[0].at("points")[0].at("kernels")[1].at("predicted_us").get<double>(), 0.555 + 690 / 1980. + slots, 1e-5);
    // A GPU of twice the SMs waits for bytes.
    Machine more = machine_by_id("h200-sxm");
    set_number(more, "sm.count=264 SMs");
    Json again = d;
    predict_mlp(again, more);
    EXPECT_NEAR(again.at("curves")[0].at("points")[0].at("kernels")[1].at("predicted_us").get<double>(), 0.555 + 690 / 1980. + bytes, 1e-5);
    more.facts.erase("launch.gap_graph");
    predict_mlp(again, more);
    EXPECT_TRUE(again.at("curves")[0].at("points")[0].at("kernels")[1].at("predicted_us").is_null());
}

/// Recorded products, as a recording with their launches' parameters would have them.
Json with_predicted_products(Json document, const std::vector<double>& us) {
    Json& points = document.at("curves")[0].at("points");
    for (std::size_t i = 0; i < us.size(); ++i) points[i].at("kernels")[0].at("predicted_us") = us[i];
    predict_mlp(document, machine_by_id("h200-sxm"));
    return document;
}

// Three points of two launches a step: the host takes 40, 44 and 60 us for a step, so 22 us a launch in the median.
TEST(MlpPrediction, TheHostsPaceIsWhatTakesLonger) {
    const Json d = with_predicted_products(made_document(batch_curve({64, 128, 4096}), {{narrow, 10, 66, 2, 15, 40},
                                                                                        {narrow, 10, 66, 2, 17, 44},
                                                                                        {wide, 200, 132, 20, 1, 60}}),
                                           {9, 9.5, 190});
    const Json& points = d.at("curves")[0].at("points");
    for (const Json& point : points) EXPECT_NEAR(point.at("asking_us").get<double>(), 44, 1e-9);
    EXPECT_NEAR(points[0].at("predicted_us").get<double>(), 44, 1e-9);
    EXPECT_EQ(points[0].at("predicted_bound"), "host");
    EXPECT_EQ(points[2].at("predicted_bound"), "device");
    const double gelu_us = points[2].at("kernels")[1].at("predicted_us").get<double>();
    EXPECT_NEAR(points[2].at("predicted_us").get<double>(), 190 + gelu_us + 2 * 1.41, 1e-9);
    EXPECT_TRUE(points[0].at("why_not").is_null());
    EXPECT_EQ(JsonSchema("mlp-1.json").faults(d), "");
    EXPECT_THAT(mlp_text(d, Terminal{.width = 120}), HasSubstr("44.00 us*"));
}

std::vector<std::string> kinds_of(const Json& change) {
    std::vector<std::string> out;
    for (const Json& reason : change.at("reasons")) out.push_back(reason.at("kind"));
    return out;
}

TEST(MlpChanges, AnotherKernelWavesAndTheHost) {
    // 32 -> 64: the host asks too slowly, then no longer. 64 -> 128: twice the work, twice the time: nothing to say. 128 -> 256: another
    // kernel, level. 256 -> 272: a second wave begins. 272 -> 544: it is filled: work grows, time does not.
    const Json d = made_document(batch_curve({32, 64, 128, 256, 272, 544}), {{narrow, 10, 66, 2, 30, 40},
                                                                              {narrow, 20, 66, 4, 1, 20},
                                                                              {narrow, 40, 66, 8, 1, 20},
                                                                              {wide, 80, 132, 16, 1, 20},
                                                                              {wide, 150, 140, 17, 1, 20},
                                                                              {wide, 155, 264, 34, 1, 20}});
    const Json& points = d.at("curves")[0].at("points");
    EXPECT_TRUE(points[0].at("host_bound").get<bool>());
    EXPECT_FALSE(points[1].at("host_bound").get<bool>());
    const Json& changes = d.at("curves")[0].at("changes");
    ASSERT_EQ(changes.size(), 4u) << changes.dump(1);
    EXPECT_EQ(changes[0].at("to"), 64);
    EXPECT_THAT(kinds_of(changes[0]), ElementsAre("host"));
    EXPECT_EQ(changes[1].at("to"), 256);
    EXPECT_THAT(kinds_of(changes[1]), ElementsAre("kernel"));
    EXPECT_FALSE(changes[1].at("jump").get<bool>());
    EXPECT_EQ(changes[2].at("to"), 272);
    EXPECT_THAT(kinds_of(changes[2]), ElementsAre("waves"));
    EXPECT_TRUE(changes[2].at("jump").get<bool>());
    EXPECT_THAT(changes[2].at("reasons").at(0).at("text").get<std::string>(), HasSubstr("1 -> 2"));
    EXPECT_THAT(kinds_of(changes[3]), ElementsAre("waves"));
    EXPECT_TRUE(changes[3].at("jump").get<bool>());
}

TEST(MlpChanges, WeightsThatLeaveL2AndAJumpThatNobodyKnows) {
    MlpCurve curve{3, {}};
    for (const std::int64_t dim : {1024, 4096, 8192}) curve.points.push_back({2, 1, 512, dim});
    // 4096 x 4096 x 2 B are 33.6 MB, 8192 x 8192 x 2 B are 134 MB. 1024 -> 4096: 16 times the work in 32 times the time.
    const Json d = made_document(curve, {{wide, 10, 132, 1, 1, 2}, {wide, 320, 132, 32, 1, 2}, {wide, 1300, 132, 64, 1, 2}});
    const Json& changes = d.at("curves")[0].at("changes");
    ASSERT_EQ(changes.size(), 2u) << changes.dump(1);
    EXPECT_TRUE(changes[0].at("jump").get<bool>());
    EXPECT_TRUE(changes[0].at("reasons").empty());
    EXPECT_THAT(kinds_of(changes[1]), ElementsAre("L2"));
    EXPECT_THAT(mlp_text(d, Terminal{.width = 80}), HasSubstr("why is not known"));
}

TEST(MlpText, FitsTheTerminalAndThePictureMarksReasons) {
    const Json d =
        made_document(batch_curve({128, 256, 272}), {{narrow, 40, 66, 8, 1, 20}, {wide, 80, 132, 16, 1, 20}, {wide, 150, 140, 17, 1, 20}});
    expect_golden("mlp.txt", mlp_text(d, Terminal{.width = 80}));
    std::istringstream lines(mlp_text(d, Terminal{.width = 80}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 80) << line;
    const std::vector<Picture> pictures = pictures_of(d);
    ASSERT_EQ(pictures.size(), 1u);
    EXPECT_EQ(pictures[0].id, "mlp_batch");
    EXPECT_THAT(svg_text(pictures[0]), testing::AllOf(HasSubstr(">waves!<"), HasSubstr(">kernel<")));
    EXPECT_THAT(page_html({{"mlp.json", d}}, "x"), HasSubstr("data-at=\"d1/curves/0/points/2/step_us\""));
}

// Recorded sweeps hold the predictions of today's model, but for a product's, which needs the launch. ROOFTILE_REGENERATE=1 rewrites them.
TEST(MlpRecords, HoldThePredictionsOfTodaysModel) {
    const std::filesystem::path folder = ROOFTILE_SOURCE_DIR "/bench/results/ways";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "skipped: no records here";
    const char* regenerate = std::getenv("ROOFTILE_REGENERATE");
    int sweeps = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream file(entry.path());
        const Json recorded = Json::parse(file);
        if (recorded.at("schema") != "rooftile/mlp/1") continue;
        SCOPED_TRACE(entry.path().filename().string());
        ++sweeps;
        Json again = recorded;
        predict_mlp(again, machine_by_id(recorded.at("predicted_for").get<std::string>()));
        if (regenerate && *regenerate == '1') {
            std::ofstream(entry.path()) << again.dump(2) << '\n';
            continue;
        }
        EXPECT_EQ(JsonSchema("mlp-1.json").faults(nlohmann::json::parse(recorded.dump())), "");
        for (std::size_t c = 0; c < again.at("curves").size(); ++c)
            for (std::size_t i = 0; i < again.at("curves")[c].at("points").size(); ++i) {
                const Json &a = recorded.at("curves")[c].at("points")[i], &b = again.at("curves")[c].at("points")[i];
                EXPECT_EQ(a.at("predicted_bound"), b.at("predicted_bound")) << c << " " << i;
                const double us = b.at("predicted_us").get<double>();
                EXPECT_NEAR(a.at("predicted_us").get<double>(), us, 1e-6 * us) << c << " " << i;
            }
    }
    EXPECT_GT(sweeps, 0);
}

TEST(MlpDocument, PointsThatCouldNotRun) {
    const Json report = {{"gpu", "NVIDIA H200"}, {"device", "cuda"}, {"points", {{{"absent", "OutOfMemoryError: CUDA out of memory"}}}}};
    const Json d = mlp_document(context_of("x"), {batch_curve({1024, 2048})}, "bf16", report, {},
                                std::make_shared<Machine>(machine_by_id("h200-sxm")));
    EXPECT_EQ(JsonSchema("mlp-1.json").faults(d), "");
    EXPECT_THAT(mlp_text(d, Terminal{.width = 80}), HasSubstr("batch 1024: OutOfMemoryError"));
    EXPECT_TRUE(pictures_of(d).empty());
}

}  // namespace
}  // namespace rooftile
