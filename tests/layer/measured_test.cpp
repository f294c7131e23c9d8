// What a measured layer is shown as: sums, gaps, errors with their sign, the ratio to the best baseline.
#include "rooftile/layer/measured.hpp"

#include <cmath>
#include <sstream>

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
    LayerPlanner planner(machine);
    const Json document = measured_layer_document(context, made_up(), planner);
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
    const std::size_t planned = planner.planned();
    const Json other = measured_layer_document(context, untimed, planner);
    EXPECT_EQ(planner.planned(), planned) << "what is planned already is planned again";
    EXPECT_EQ(JsonSchema("layer-1.json").faults(other), "");
    EXPECT_EQ(other.at("cells").at(0).at("measured").at("gaps_us"), nullptr);
    MeasuredLayer prefilled = made_up();
    prefilled.step = {.decode = 0, .prefill = 4, .context = 1000};
    EXPECT_EQ(measured_layer_document(context, prefilled, planner).at("cells").at(0).at("tokens"), 4000);
}

TEST(MeasuredLayer, Counters) {
    MeasuredLayer layer = made_up();
    const auto counted = [](double read, double written) {
        CounterValues values;
        values.chip = "GH100", values.launches = 8, values.passes = 4, values.dram_read_bytes = read,
        values.dram_write_bytes = written;
        return values;
    };
    double read = 0;
    for (LayerKernelTime& kernel : layer.kernels) kernel.counters = counted(read += 1e6, 1e5);
    layer.counters = counted(30e6, 5e5);
    EXPECT_EQ(layer.dram_bytes(), 36e6 + 8e5);  // 1 + 2 + ... + 8 MB, and eight times 0.1
    LayerPlanner planner(std::make_shared<const Machine>(machine_by_id("h200-sxm")));
    const Json document =
        measured_layer_document(context_of(*planner.machine(), "rooftile measure layer"), layer, planner);
    EXPECT_EQ(JsonSchema("layer-1.json").faults(document), "");
    const Json& cell = document.at("cells").at(0);
    EXPECT_EQ(cell.at("kernels").at(2).at("counters").at("dram_read_bytes"), 3000000);
    EXPECT_EQ(cell.at("measured").at("kernels_dram_bytes"), 36800000);
    EXPECT_EQ(cell.at("measured").at("counters").at("dram_write_bytes"), 500000);
    const std::string text = measured_layer_text(context_of(""), layer, {});
    EXPECT_THAT(text, HasSubstr("36.8 MB"));
    EXPECT_THAT(text, HasSubstr("30.5 MB"));
    EXPECT_THAT(text, HasSubstr("the mean of 8 over all sets on GH100"));
    layer.kernels[3].counters->dram_write_bytes.reset();
    EXPECT_EQ(layer.dram_bytes(), std::nullopt) << "one that is not known is not nothing";
    EXPECT_THAT(measured_layer_text(context_of(""), made_up(), {}), Not(HasSubstr("DRAM")));
}

TEST(MeasuredLayer, KeepsToTheTerminal) {
    MeasuredLayer layer = made_up();
    CounterValues values;
    values.launches = 8, values.dram_read_bytes = 123.4e6, values.dram_write_bytes = 0;
    for (LayerKernelTime& kernel : layer.kernels) kernel.counters = values;
    layer.counters = values;
    layer.notes = {
        "PyTorch is not installed, so nothing is compared; --python names a Python that has it, --baseline "
        "none leaves it out"};
    for (const int width : {60, 80}) {
        std::istringstream lines(measured_layer_text(context_of(""), layer, Terminal{.width = width}));
        for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width) << line;
    }
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
