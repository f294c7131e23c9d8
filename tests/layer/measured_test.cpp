// What a measured layer is shown as: sums, gaps, errors with their sign, the ratio to the best baseline.
#include "rooftile/layer/measured.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/layer/small_model.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

MedianInterval took(double us) { return {.median = us, .low = us - 1, .high = us + 1, .coverage = 0.95, .samples = 8}; }

/// 30 and 60 us by themselves, 100 in their order.
MeasuredLayer made_up() {
    MeasuredLayer layer{.model = small_model(false),
                        .step = {.decode = 4, .prefill = 0, .context = 1000},
                        .sets = 3,
                        .set_bytes = 5000000,
                        .kernels = {},
                        .errors = {}};
    layer.kernels = {{.name = "qkv",
                      .operation = "gemm",
                      .problem = "4x768x512",
                      .plan = "64x48x64",
                      .predicted_us = 33,
                      .least_us = 20,
                      .measured_us = took(30)},
                     {.name = "down",
                      .operation = "gemm",
                      .problem = "4x512x1024",
                      .plan = "64x32x64",
                      .predicted_us = 54,
                      .least_us = 50,
                      .measured_us = took(60)}};
    layer.errors = {{.tensor = "x_out", .row = 0.004, .element = 0.03, .all = 0.0035, .bound = 0.0124}};
    layer.layer_us = took(100);
    layer.same_bits = true;
    layer.baseline_program = "PyTorch 2.9";
    layer.baselines = {{.name = "eager, flash", .time_us = 150},
                       {.name = "compiled, flash", .time_us = 120},
                       {.name = "eager, cuDNN", .absent = "no kernel"}};
    return layer;
}

TEST(MeasuredLayer, SumsAndTheBestBaseline) {
    const MeasuredLayer layer = made_up();
    EXPECT_EQ(layer.sum_us(), 90);
    EXPECT_EQ(layer.predicted_us(), 87);
    EXPECT_EQ(layer.least_us(), 70);
    ASSERT_NE(layer.best_baseline(), nullptr);
    EXPECT_EQ(layer.best_baseline()->name, "compiled, flash");
    MeasuredLayer unknown = layer;
    unknown.kernels[0].predicted_us.reset();
    EXPECT_EQ(unknown.predicted_us(), std::nullopt);
    EXPECT_EQ(unknown.sum_us(), 90);
}

TEST(MeasuredLayer, IsRightOnlyWhereAllOfItIs) {
    EXPECT_TRUE(made_up().right());
    MeasuredLayer layer = made_up();
    layer.errors.push_back({.tensor = "k_cache", .row = 0.02, .element = 0.03, .all = 0.01, .bound = 0.0068});
    EXPECT_FALSE(layer.right());
    layer = made_up(), layer.same_bits = false;
    EXPECT_FALSE(layer.right());
    layer = made_up(), layer.errors.clear();
    EXPECT_FALSE(layer.right()) << "nothing was compared";
    layer = made_up(), layer.errors[0].element = std::nan("");
    EXPECT_FALSE(layer.right());
}

TEST(MeasuredLayer, TheDocument) {
    const Json document = measured_layer_document(context_of("rooftile measure layer"), made_up());
    EXPECT_EQ(document.at("schema"), "rooftile/layer/1");
    const Json& cell = document.at("cells").at(0);
    EXPECT_EQ(cell.at("batch"), 4);
    EXPECT_EQ(cell.at("gaps_us"), 10);
    EXPECT_EQ(cell.at("kernels_us"), 90);
    EXPECT_EQ(cell.at("measured_us").at("median"), 100);
    EXPECT_EQ(cell.at("kernels").at(1).at("measured_us").at("low"), 59);
    EXPECT_EQ(cell.at("ratio"), 1.2);
    EXPECT_EQ(cell.at("verified"), true);
    EXPECT_EQ(cell.at("baselines").at(2).at("time_us"), nullptr);
    MeasuredLayer untimed = made_up();
    untimed.layer_us.reset(), untimed.same_bits.reset();
    EXPECT_EQ(measured_layer_document(context_of(""), untimed).at("cells").at(0).at("gaps_us"), nullptr);
}

TEST(MeasuredLayer, TheText) {
    const std::string text = measured_layer_text(context_of(""), made_up(), {});
    EXPECT_THAT(text, HasSubstr("one llama layer, 4 sequences decode a token each over 1000 keys"));
    EXPECT_THAT(text, HasSubstr("+10.0 %"));  // 33 of 30
    EXPECT_THAT(text, HasSubstr("-10.0 %"));  // 54 of 60
    EXPECT_THAT(text, HasSubstr("10.00 us more than that sum (11.1 %)"));
    EXPECT_THAT(text, HasSubstr("1.200 times as fast as its best, compiled, flash"));
    EXPECT_THAT(text, HasSubstr("absent: no kernel"));
    EXPECT_THAT(text, Not(HasSubstr("WRONG")));
    MeasuredLayer wrong = made_up();
    wrong.errors[0].row = 0.3, wrong.errors[0].changed = 64;
    EXPECT_THAT(measured_layer_text(context_of(""), wrong, {}), HasSubstr("WRONG: 30.00 %"));
    EXPECT_THAT(measured_layer_text(context_of(""), wrong, {}), HasSubstr("64 elements"));
}

}  // namespace
}  // namespace rooftile
