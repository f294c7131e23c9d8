// The document of a layer, what a terminal and a page show of it, and its pictures.
#include "rooftile/layer/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "rooftile/core/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/picture/page.hpp"
#include "rooftile/picture/pictures.hpp"
#include "tests/golden.hpp"
#include "tests/json_schema.hpp"
#include "tests/layer/models.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

class LayerText : public testing::Test {
  protected:
    void SetUp() override {
        for (const char* name : {"gemm", "fuse", "attention"})
            if (!find_operation(name)) GTEST_SKIP() << "skipped: this build has no operation " << name;
    }
    static Json document(const std::string& name, LayerRequest request, const std::vector<std::vector<std::string>>& settings = {{}}) {
        return document_of({name + "/config.json", public_model(name)}, std::move(request), settings);
    }
    static Json document_of(const LayerModel& model, LayerRequest request, const std::vector<std::vector<std::string>>& settings = {{}}) {
        request.layer = model.config.usual_layer();
        const Machine machine = machine_by_id("h200-sxm");
        DocumentContext context = context_of(machine, "rooftile plan layer");
        Json out = layer_document(context, model, request, machine);
        for (const auto& setting : settings) {
            Machine changed = machine;
            if (!setting.empty()) set_numbers(changed, setting);
            LayerPlanner planner(std::make_shared<const Machine>(changed));
            add_layer_cells(out, planner, setting, model, request);
        }
        return out;
    }
    static std::vector<std::string> pictures(const Json& d) {
        std::vector<std::string> out;
        for (const Picture& picture : pictures_of(d)) {
            out.push_back(picture.id);
            EXPECT_THAT(svg_text(picture), HasSubstr("</svg>"));
        }
        return out;
    }
};

TEST_F(LayerText, OneStep) {
    const Json d = document("Meta-Llama-3-8B", {.batches = {16}, .contexts = {2048}});
    EXPECT_EQ(JsonSchema("layer-1.json").faults(d), "");
    expect_golden("layer.txt", layer_text(d, Terminal{.width = 160}));
    EXPECT_THAT(pictures(d), testing::ElementsAre("layer_kernels"));
    EXPECT_THAT(layer_text(d, Terminal{.utf8 = false, .width = 80}), Not(HasSubstr("µ")));
}

TEST_F(LayerText, AGrid) {
    const Json d = document("Mixtral-8x7B-v0.1", {.batches = {1, 16}, .contexts = {2048, 8192}, .prefill_shares = {0, 0.5}});
    EXPECT_EQ(JsonSchema("layer-1.json").faults(d), "");
    EXPECT_EQ(d.at("cells").size(), 8u);
    EXPECT_EQ(d.at("ends").size(), 2u + 4u) << "decoding asks for as many ends at every context";
    const std::string text = layer_text(d, Terminal{.width = 100});
    EXPECT_THAT(text, HasSubstr("decode: one new token a sequence"));
    EXPECT_THAT(text, HasSubstr("mixed: all tokens of 50.0 % of the sequences, rounded to whole ones, one of the others"));
    EXPECT_THAT(text, HasSubstr("cache of bytes"));
    EXPECT_THAT(pictures(d), testing::ElementsAre("layer_time", "layer_attention", "layer_cache", "layer_gaps", "layer_time_2",
                                                  "layer_attention_2", "layer_cache_2", "layer_gaps_2"));
    const std::string page = page_html({PageDocument{"layer", d}}, "rooftile plan layer");
    EXPECT_THAT(page, HasSubstr("experts_gate_up"));
    EXPECT_THAT(page, HasSubstr("What a token needs of intermediates"));
}

TEST_F(LayerText, KeepsToTheTerminal) {
    const Json one = document("Meta-Llama-3-8B", {.batches = {16}, .contexts = {2048}}),
               grid = document("Mixtral-8x7B-v0.1",
                               {.batches = {1, 16}, .contexts = {1024, 2048, 4096, 8192, 16384, 131072}}),
               swept = document("Meta-Llama-3-8B", {.batches = {16}, .contexts = {8192}},
                                {{"sm.count=33"}, {"sm.count=66"}});
    for (const Json& d : {one, grid, swept})
        for (const int width : {60, 80, 120}) {
            std::istringstream lines(layer_text(d, Terminal{.width = width}));
            for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), width) << line;
        }
    // What does not fit beside goes below: every context is there, once a figure.
    const std::string narrow = layer_text(grid, Terminal{.width = 60}),
                      wide = layer_text(grid, Terminal{.width = 200});
    const auto count = [](const std::string& text, const std::string& what) {
        int found = 0;
        for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
        return found;
    };
    for (const char* context : {"1024", "131072"})
        EXPECT_EQ(count(narrow, context), count(wide, context)) << context;
    EXPECT_EQ(count(wide, "time in a graph"), 1);
    EXPECT_EQ(count(narrow, "time in a graph"), 2);
}

TEST_F(LayerText, SumsOfTheDocumentAreThoseOfItsKernels) {
    const Json d = document("Qwen3-8B", {.batches = {4}, .contexts = {1024, 4096}});
    for (const Json& cell : d.at("cells")) {
        double time = 0, least = 0, cache = 0;
        for (const Json& k : cell.at("kernels")) {
            time += k.at("time_us").get<double>(), least += k.at("least_us").get<double>();
            cache += k.at("bytes").at("cache").get<double>();
        }
        EXPECT_DOUBLE_EQ(cell.at("kernels_us").get<double>(), time);
        EXPECT_DOUBLE_EQ(cell.at("least_us").get<double>(), least);
        EXPECT_DOUBLE_EQ(cell.at("bytes").at("cache").get<double>(), cache);
        EXPECT_DOUBLE_EQ(cell.at("time_us").get<double>(), time + cell.at("gaps_us").at("graph").get<double>());
    }
}

TEST_F(LayerText, MachinesThatDoNotExist) {
    const Json d =
        document("Meta-Llama-3-8B", {.batches = {16}, .contexts = {8192}}, {{"dram.bandwidth=2.4 TB/s"}, {"dram.bandwidth=4.8 TB/s"}});
    EXPECT_EQ(JsonSchema("layer-1.json").faults(d), "");
    EXPECT_EQ(d.at("cells").at(0).at("set"), Json({{"dram.bandwidth", "2.4 TB/s"}}));
    EXPECT_GT(d.at("cells").at(0).at("time_us"), d.at("cells").at(1).at("time_us"));
    EXPECT_THAT(layer_text(d, Terminal{.width = 100}), HasSubstr("dram.bandwidth=2.4 TB/s"));
    EXPECT_THAT(pictures(d), testing::ElementsAre("layer_steps"));
}

TEST_F(LayerText, RefusedKernelsSayWhy) {
    LayerModel eight{"Llama-2-7B-GPTQ/config.json", public_model("Llama-2-7B-GPTQ")};
    eight.config.quantization->bits = 8;
    const Json d = document_of(eight, {.batches = {1}, .contexts = {4096}});
    EXPECT_EQ(JsonSchema("layer-1.json").faults(d), "");
    EXPECT_TRUE(d.at("cells").at(0).at("time_us").is_null());
    EXPECT_THAT(layer_text(d, Terminal{.width = 120}), HasSubstr("weights of 8 bits (gptq): no operation"));
    const Json grid = document_of(eight, {.batches = {1, 2}, .contexts = {4096, 8192}});
    EXPECT_THAT(layer_text(grid, Terminal{.width = 120}), HasSubstr("is refused"));
    EXPECT_EQ(pictures(grid).size(), 4u);
}

}  // namespace
}  // namespace rooftile
