// What a measured layer is shown as: sums, gaps, errors with their sign, the ratio to the best baseline.
#include "rooftile/layer/measured.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "rooftile/machine/registry.hpp"
#include "tests/json_schema.hpp"
#include "tests/layer/small_model.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

MedianInterval took(double us) { return {.median = us, .low = us - 1, .high = us + 1, .coverage = 0.95, .samples = 8}; }

/// Eight kernels of 10 to 80 us by themselves, 400 us in their order; the first two are predicted 10 % longer and shorter, the others
/// right.
MeasuredLayer made_up() {
    MeasuredLayer layer{.model = {"config.json", small_model(false)},
                        .step = {.decode = 4, .prefill = 0, .context = 1000},
                        .sets = 3,
                        .set_bytes = 5000000,
                        .kernels = {},
                        .errors = {}};
    double us = 0;
    for (const LayerPart& part : layer_parts(layer.model.config, layer.model.config.layers.front(), layer.step)) {
        us += 10;
        const double predicted = us == 10 ? 11 : us == 20 ? 18 : us;
        layer.kernels.push_back(
            {.name = part.name, .plan = "64x48x64", .predicted_us = predicted, .least_us = us / 2, .measured_us = took(us)});
    }
    layer.errors = {{.tensor = "x_out", .row = 0.004, .element = 0.03, .all = 0.0035, .bound = 0.0124}};
    layer.layer_us = took(400);
    layer.same_bits = true;
    layer.baseline_program = "PyTorch 2.9";
    layer.baselines = {{.name = "eager, flash", .time_us = 500},
                       {.name = "compiled, flash", .time_us = 480},
                       {.name = "eager, cuDNN", .absent = "no kernel"}};
    return layer;
}

TEST(MeasuredLayer, SumsAndTheBestBaseline) {
    const MeasuredLayer layer = made_up();
    ASSERT_EQ(layer.kernels.size(), 8U);
    EXPECT_EQ(layer.sum_us(), 360);
    EXPECT_EQ(layer.predicted_us(), 359);
    EXPECT_EQ(layer.least_us(), 180);
    ASSERT_NE(layer.best_baseline(), nullptr);
    EXPECT_EQ(layer.best_baseline()->name, "compiled, flash");
    MeasuredLayer unknown = layer;
    unknown.kernels[0].predicted_us.reset();
    EXPECT_EQ(unknown.predicted_us(), std::nullopt);
    EXPECT_EQ(unknown.sum_us(), 360);
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
    layer = made_up(), layer.errors[0].all = std::nan("");
    EXPECT_FALSE(layer.right()) << "zeros were compared with zeros";
}

TEST(MeasuredLayer, TheDocument) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const DocumentContext context = context_of(*machine, "rooftile measure layer --config config.json --batch 4 --context 1000");
    const Json document = measured_layer_document(context, made_up(), machine);
    EXPECT_EQ(JsonSchema("layer-1.json").faults(document), "");
    const Json &cell = document.at("cells").at(0), &measured = cell.at("measured");
    EXPECT_EQ(cell.at("batch"), 4);
    EXPECT_EQ(measured.at("gaps_us"), 40);
    EXPECT_EQ(measured.at("kernels_us"), 360);
    EXPECT_EQ(measured.at("time_us").at("median"), 400);
    EXPECT_EQ(cell.at("kernels").at(1).at("measured_us").at("low"), 19);
    EXPECT_EQ(cell.at("kernels").at(1).at("ran"), "64x48x64");
    EXPECT_EQ(measured.at("ratio"), 1.2);
    EXPECT_EQ(measured.at("verified"), true);
    EXPECT_EQ(measured.at("baselines").at(2).at("time_us"), nullptr);
    MeasuredLayer untimed = made_up();
    untimed.layer_us.reset(), untimed.same_bits.reset();
    const Json other = measured_layer_document(context, untimed, machine);
    EXPECT_EQ(JsonSchema("layer-1.json").faults(other), "");
    EXPECT_EQ(other.at("cells").at(0).at("measured").at("gaps_us"), nullptr);
    MeasuredLayer prefilled = made_up();
    prefilled.step = {.decode = 0, .prefill = 4, .context = 1000};
    EXPECT_EQ(measured_layer_document(context, prefilled, machine).at("cells").at(0).at("tokens"), 4000);
}

TEST(MeasuredLayer, TheText) {
    const std::string text = measured_layer_text(context_of(""), made_up(), {});
    EXPECT_THAT(text, HasSubstr("one llama layer, 4 sequences decode a token each over 1000 keys"));
    EXPECT_THAT(text, HasSubstr("+10.0 %"));  // 11 of 10
    EXPECT_THAT(text, HasSubstr("-10.0 %"));  // 18 of 20
    EXPECT_THAT(text, HasSubstr("40.00 us more than that sum (11.1 %)"));
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
