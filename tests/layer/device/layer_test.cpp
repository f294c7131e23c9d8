// A model's layer on a GPU: every part launched behind the other, in a graph, against fp64 of the whole; and layers that are wired wrongly,
// each of which must be seen.
#include <gtest/gtest.h>

#include <algorithm>

#include "rooftile/layer/device/run.hpp"
#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"
#include "tests/layer/small_model.hpp"

namespace rooftile {
namespace {

constexpr LayerStep decoding{.decode = 5, .prefill = 0, .context = 700}, prefilling{.decode = 0, .prefill = 3, .context = 200};

class LayerTest : public DeviceTest {
  protected:
    static std::vector<LayerPart> parts_of(const ModelConfig& model, const LayerStep& step) {
        return layer_parts(model, model.layers.front(), step);
    }
    static LayerRun run_of(const ModelConfig& model, const LayerStep& step, const std::vector<LayerPart>& parts) {
        const auto machine = std::make_shared<const Machine>(live_machine().machine);
        return {compile_layer(machine, model, step, parts), model, model.layers.front(), step, 2, 7};
    }
    static void expect_right(const ModelConfig& model, const LayerStep& step) {
        const LayerRun run = run_of(model, step, parts_of(model, step));
        for (const LayerError& error : run.verify()) {
            EXPECT_TRUE(error.ok()) << error.tensor << ": row " << error.row << ", element " << error.element << ", bound " << error.bound
                                    << ", " << error.changed << " changed";
            if (error.tensor == "choices") continue;
            EXPECT_GT(error.all, error.bound / 100) << error.tensor << ": nothing was rounded, so nothing was compared";
        }
    }
    /// Of the result whose name that is.
    static LayerError error_of(const LayerRun& run, std::string_view tensor) {
        for (const LayerError& error : run.verify())
            if (error.tensor == tensor) return error;
        ADD_FAILURE() << "no error of " << tensor;
        return {};
    }
    /// The layer whose part of that name has another request.
    static void expect_seen(const ModelConfig& model, const LayerStep& step, std::string_view name, std::string_view key,
                            std::string_view value) {
        std::vector<LayerPart> parts = parts_of(model, step);
        const auto part = std::ranges::find(parts, name, &LayerPart::name);
        ASSERT_NE(part, parts.end());
        ASSERT_TRUE(part->request.has(key)) << name << " has no " << key;
        ASSERT_NE(part->request.text(key), value);
        part->request.replace(key, std::string(value));
        EXPECT_FALSE(error_of(run_of(model, step, parts), "x_out").ok()) << name << ", " << key << " " << value;
    }
};

TEST_F(LayerTest, DecodingIsRight) {
    expect_right(small_model(false), decoding);
    expect_right(small_model(true), decoding);
    expect_right(small_model(false), {.decode = 1, .prefill = 0, .context = 1});
    expect_right(small_model(false), {.decode = 70, .prefill = 0, .context = 129});
}

TEST_F(LayerTest, PrefillingIsRight) {
    expect_right(small_model(false), prefilling);
    expect_right(small_model(true), prefilling);
}

TEST_F(LayerTest, OtherHeadsWindowsAndTypes) {
    ModelConfig model = small_model(true);
    model.head_dim = 96, model.heads = 6, model.kv_heads = 6, model.rotary_share = 0.5;
    expect_right(model, decoding);
    model = small_model(false);
    model.layers.front().window = 100;
    expect_right(model, decoding);
    expect_right(model, prefilling);
    model = small_model(false), model.type = "fp16";
    expect_right(model, decoding);
}

TEST_F(LayerTest, AnglesOfEveryScaling) {
    ModelConfig model = small_model(false);
    for (const char* kind : {"linear", "dynamic", "llama3", "yarn"}) {
        model.rope_scaling = {.kind = kind, .factor = 4, .positions = 150};
        if (model.rope_scaling.kind == "yarn") model.rope_scaling.amplitude = 1.2;
        expect_right(model, decoding);
        expect_right(model, prefilling);
    }
}

TEST_F(LayerTest, ExpertsAreRight) {
    for (const bool shared : {false, true}) {
        expect_right(small_experts(shared), decoding);
        expect_right(small_experts(shared), {.decode = 1, .prefill = 0, .context = 64});
        expect_right(small_experts(shared), prefilling);
    }
    ModelConfig many = small_experts(false);
    many.experts->count = 128, many.experts->per_token = 8;
    expect_right(many, {.decode = 200, .prefill = 0, .context = 64});
}

TEST_F(LayerTest, WeightsOfExpertsThatDoNotSumUpAreSeen) {
    ModelConfig other = small_experts(false);
    other.experts->renormalized = false;
    const auto machine = std::make_shared<const Machine>(live_machine().machine);
    const ModelConfig model = small_experts(false);
    const LayerRun run(compile_layer(machine, other, decoding, parts_of(other, decoding)), model, model.layers.front(), decoding, 2, 7);
    EXPECT_TRUE(error_of(run, "choices").ok());
    EXPECT_FALSE(error_of(run, "x_out").ok());
}

TEST_F(LayerTest, AResidualLeftOutIsSeen) {
    expect_seen(small_model(false), decoding, "o", "epilogue", "d = acc + 0 * r");
    expect_seen(small_model(false), decoding, "down", "epilogue", "d = acc + 0 * r");
    expect_seen(small_model(false), prefilling, "down", "epilogue", "d = acc + 0 * r");
}

TEST_F(LayerTest, GatesAndUpsSwappedAreSeen) { expect_seen(small_model(false), decoding, "gate_up", "epilogue", "d = silu(up) * gate"); }

TEST_F(LayerTest, KeysThatNobodyHidAreSeen) { expect_seen(small_model(false), prefilling, "attention", "mask", "window:50"); }

TEST_F(LayerTest, TensorsWiredWronglyAreSeen) {
    std::vector<LayerPart> parts = parts_of(small_model(false), decoding);
    const auto norm = std::ranges::find(parts, "norm_mlp", &LayerPart::name);
    ASSERT_NE(norm, parts.end());
    ASSERT_EQ(norm->reads.front().name, "x_attention");
    norm->reads.front().name = "x";
    EXPECT_FALSE(error_of(run_of(small_model(false), decoding, parts), "x_out").ok());
}

// The token before: its place in the cache is another's, which is written; its own keeps what was there.
TEST_F(LayerTest, APositionOffByOneIsSeen) {
    const ModelConfig model = small_model(false);
    const LayerRun run = run_of(model, decoding, parts_of(model, decoding));
    ASSERT_TRUE(error_of(run, "k_cache").ok());
    run.set_lengths(int(decoding.context) - 1);
    const LayerError keys = error_of(run, "k_cache");
    EXPECT_GT(keys.row, keys.bound);
    EXPECT_GT(keys.changed, std::uint64_t(decoding.decode * model.kv_heads * model.head_dim / 2));  // a few happen to be the same
    EXPECT_FALSE(error_of(run, "x_out").ok());
    // A length that leaves the token no place writes nothing at all.
    run.set_lengths(int(decoding.context) + 1);
    EXPECT_EQ(error_of(run, "v_cache").changed, 0U);
    run.set_lengths(0);
    EXPECT_EQ(error_of(run, "v_cache").changed, 0U);
}

// Launches overlap where they may: the bits are those of launches that do not.
TEST_F(LayerTest, OverlappedLaunchesLeaveTheSameBits) {
    for (const LayerStep& step : {decoding, prefilling}) {
        const ModelConfig model = small_model(true);
        const LayerRun run = run_of(model, step, parts_of(model, step));
        const StreamOwner stream;
        for (std::size_t kernel = 0; kernel < run.kernels().size(); ++kernel) {
            run.launch(kernel, stream, 1);
            stream.synchronize();
        }
        const std::vector<unsigned char> apart = run.result();
        begin_capture(stream);
        for (int i = 0; i < 50; ++i) run.launch(stream, i % 2);
        const Graph graph = end_capture(stream);
        for (int i = 0; i < 20; ++i) graph.launch(stream);
        stream.synchronize();
        EXPECT_EQ(run.result(), apart);
    }
}

}  // namespace
}  // namespace rooftile
