// Times of a layer's kernels: sums, shares, gaps, refusals, and what changes with the machine.
#include "rooftile/layer/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "tests/from_environment.hpp"
#include "tests/layer/models.hpp"

namespace rooftile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<const Machine> shared_machine(const std::string& id) { return std::make_shared<const Machine>(machine_by_id(id)); }

class LayerPlan : public testing::Test {
  protected:
    void SetUp() override {
        for (const char* name : {"gemm", "fuse", "attention"})
            if (!find_operation(name)) GTEST_SKIP() << "skipped: this build has no operation " << name;
    }
    static std::vector<LayerCell> cells(LayerPlanner& planner, const std::string& model, LayerRequest request) {
        const ModelConfig config = public_model(model);
        request.layer = config.usual_layer();
        return layer_cells(planner, config, request);
    }
};

TEST_F(LayerPlan, SumsAreThoseOfTheKernels) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    for (const LayerCell& cell :
         cells(planner, "Meta-Llama-3-8B", {.batches = {1, 16}, .contexts = {2048, 8192}, .prefill_shares = {0, 1}})) {
        const LayerSums sums = planner.sums(cell.kernels);
        double time = 0, least = 0, bytes = 0;
        for (const LayerKernel& k : cell.kernels) {
            ASSERT_TRUE(k.time.time_us && k.time.least_us) << k.part.name;
            time += *k.time.time_us, least += *k.time.least_us, bytes += k.part.bytes();
            EXPECT_GE(*k.time.time_us, 0.999 * *k.time.least_us) << k.part.name << ": faster than the machine's rates";
        }
        EXPECT_DOUBLE_EQ(*sums.kernels_us, time);
        EXPECT_DOUBLE_EQ(*sums.least_us, least);
        EXPECT_DOUBLE_EQ(sums.weight_bytes + sums.cache_bytes + sums.activation_bytes, bytes);
        // Eight launches of 1.41 us in a stream, of 0.555 us in a graph, where a programmatic one saves more than that.
        EXPECT_DOUBLE_EQ(*sums.gaps.stream_us, 8 * 1.41);
        EXPECT_DOUBLE_EQ(*sums.gaps.graph_us, 8 * 0.555);
        EXPECT_DOUBLE_EQ(*sums.gaps.programmatic_us, 0);
        EXPECT_DOUBLE_EQ(*sums.time_us(), time + 8 * 0.555);
    }
    EXPECT_THAT(planner.unknown(), IsEmpty());
}

TEST_F(LayerPlan, AKernelsTimeIsItsPlansWithoutTheGapBeforeIt) {
    const auto machine = shared_machine("h200-sxm");
    LayerPlanner planner(machine);
    const LayerCell cell = cells(planner, "Meta-Llama-3-8B", {.batches = {16}, .contexts = {2048}}).front();
    const LayerKernel& qkv = cell.kernels.at(1);
    ASSERT_EQ(qkv.part.name, "qkv");
    const PlanSet plans = derive_part("gemm", machine, qkv.part.request);
    EXPECT_DOUBLE_EQ(*qkv.time.time_us, *plans.plans.front().time_us - 1.41);
    EXPECT_DOUBLE_EQ(qkv.time.interval->high_us, plans.plans.front().interval->high_us - 1.41);
    EXPECT_EQ(qkv.time.provenance, Provenance::planned);
    EXPECT_EQ(qkv.time.command, "rooftile plan gemm --m 16 --n 6144 --k 4096 --type bf16");
}

// Of a large grid products of many results have DRAM bytes by a closed form; all other kernels are what they are by themselves.
TEST_F(LayerPlan, AGridOfManyCellsSaysWhatItsPlansSay) {
    const char* models[] = {"Meta-Llama-3-8B", "Qwen3-8B", "Mixtral-8x7B-v0.1", "Llama-3.2-1B"};
    std::mt19937_64 random(test_seed());
    int coarse = 0;
    for (std::size_t i = 0; i < test_count(6, 60); ++i) {
        const std::string model = models[random() % std::size(models)];
        LayerRequest request{.batches = {std::int64_t(1 + random() % 4)},
                             .contexts = {std::int64_t(512 + random() % 8000)}};
        request.prefill_shares = {i % 3 == 0 ? 0.0 : 1.0};
        const auto machine = shared_machine(i % 2 == 0 ? "h200-sxm" : "h100-sxm");
        LayerPlanner alone(machine), of_many(machine, most_followed_cells + 1);
        const LayerCell one = cells(alone, model, request).front(),
                        other = cells(of_many, model, request).front();
        ASSERT_EQ(one.kernels.size(), other.kernels.size());
        for (std::size_t k = 0; k < one.kernels.size(); ++k) {
            const KernelTime &a = one.kernels[k].time, &b = other.kernels[k].time;
            ASSERT_TRUE(a.time_us && b.time_us) << model << " " << one.kernels[k].part.name;
            const Given& asked = one.kernels[k].part.request;
            const bool closed_form =
                asked.has("m") && std::stoll(asked.text("m")) * std::stoll(asked.text("n")) > most_followed_elements;
            if (closed_form) {
                EXPECT_NEAR(*b.time_us / *a.time_us, 1, 0.01) << model << " " << one.kernels[k].part.name;
            } else {
                EXPECT_EQ(*b.time_us, *a.time_us) << model << " " << one.kernels[k].part.name;
            }
            EXPECT_EQ(b.closed_form, closed_form);
            coarse += closed_form && *b.time_us != *a.time_us;
        }
        EXPECT_FALSE(alone.took_closed_form());
        EXPECT_NEAR(*of_many.sums(other.kernels).kernels_us / *alone.sums(one.kernels).kernels_us, 1, 0.01)
            << model;
    }
    EXPECT_GT(coarse, 0) << "L2 was followed in the large grid, too";
}

TEST_F(LayerPlan, EqualRequestsArePlannedOnce) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    cells(planner, "Meta-Llama-3-8B", {.batches = {1, 2, 4}, .contexts = {1024, 2048, 4096, 8192}});
    // Of three batches: two norms that are alike, four products, a rotation; attention of twelve; gate and up of one row are the first's.
    EXPECT_EQ(planner.planned(), 3u * (1 + 4 + 1) + 12);
}

TEST_F(LayerPlan, TheCachesShareOfLlama3) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    for (const LayerCell& cell : cells(planner, "Meta-Llama-3-8B", {.batches = {1, 64}, .contexts = {2048, 8192}})) {
        const double tokens = double(cell.batch * cell.step.context);
        EXPECT_NEAR(planner.sums(cell.kernels).cache_share(), tokens / (tokens + 106496), 1e-3);
    }
    // 436 MB and 8192 tokens of 4096 B at 4.8 TB/s, the datasheet's.
    const LayerCell one = cells(planner, "Meta-Llama-3-8B", {.batches = {1}, .contexts = {8192}}).front();
    EXPECT_NEAR(*planner.sums(one.kernels).least_us, (436207616 + 8192 * 4096.0) / 4.8e6, 0.2);
}

// Products of 8 bits and packed ones have peaks too: no part of many rows is least in the time of its bytes alone.
TEST_F(LayerPlan, TheLeastOfManyRowsIsTheMatrixUnits) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    const auto expect_peak = [&](const ModelConfig& model, double peak) {
        const LayerCell cell = layer_cells(planner, model, {.batches = {1}, .contexts = {4096}, .prefill_shares = {1}}).front();
        for (const LayerKernel& k : cell.kernels)
            if (k.part.operation == "gemm") { EXPECT_NEAR(*k.time.least_us / (k.part.flops / peak * 1e6), 1, 0.02) << k.part.name; }
    };
    ModelConfig model = model_config(public_config("Meta-Llama-3-8B"), "config.json");
    expect_peak(model, 989.4e12);
    model.quantization = ModelQuantization{.method = "fp8"};
    expect_peak(model, 1978.9e12);
    model.quantization = ModelQuantization{.method = "awq", .bits = 4, .group = 128, .zero_points = true};
    expect_peak(model, 989.4e12);
}

TEST_F(LayerPlan, SeveralGpusHaveMoreRoom) {
    const auto machine = shared_machine("h200-sxm");
    const ModelConfig model = model_config(public_config("Meta-Llama-3-8B"), "config.json");
    const LayerRoom one = layer_room(*machine, model, model.layers[0]), eight = layer_room(*machine, model, model.layers[0], 8);
    EXPECT_LT(eight.bytes_per_token, 0.6 * one.bytes_per_token);
}

TEST_F(LayerPlan, MoreTakesLonger) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    const auto all = cells(planner, "Meta-Llama-3-8B", {.batches = {1, 4, 16, 64}, .contexts = {1024, 4096, 16384}});
    const auto time = [&](std::size_t batch, std::size_t context) { return *planner.sums(all[batch * 3 + context].kernels).time_us(); };
    const auto share = [&](std::size_t batch, std::size_t context) {
        const LayerSums sums = planner.sums(all[batch * 3 + context].kernels);
        return sums.attention_us / *sums.kernels_us;
    };
    for (std::size_t b = 0; b < 4; ++b)
        for (std::size_t c = 0; c < 3; ++c) {
            if (b > 0) { EXPECT_GT(time(b, c), time(b - 1, c)); }
            if (c > 0) { EXPECT_GT(time(b, c), time(b, c - 1)); }
            if (c > 0) { EXPECT_GT(share(b, c), share(b, c - 1)); }
        }
}

TEST_F(LayerPlan, WhatAnOperationRefusesHasNoTimeAndItsReason) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    ModelConfig eight = public_model("Llama-2-7B-GPTQ");
    eight.quantization->bits = 8;
    const LayerCell gptq = layer_cells(planner, eight, {.batches = {1}, .contexts = {4096}}).front();
    int refused = 0;
    for (const LayerKernel& k : gptq.kernels) {
        EXPECT_TRUE(k.time.least_us) << k.part.name;
        if (k.time.provenance != Provenance::refused) continue;
        ++refused;
        EXPECT_FALSE(k.time.time_us);
        EXPECT_EQ(k.time.plan, "weights of 8 bits (gptq): no operation here plans them");
    }
    EXPECT_EQ(refused, 4);
    EXPECT_FALSE(planner.sums(gptq.kernels).time_us());
}

// Latent rows among them, on one GPU and on eight.
TEST_F(LayerPlan, EveryKernelOfDeepSeekIsPlannedWhileDecoding) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    for (const int tp : {1, 8})
        for (const char* model : {"DeepSeek-V3", "DeepSeek-V2-Lite"}) {
            LayerRequest axes{.batches = {16}, .contexts = {4096}};
            axes.tp = tp;
            const LayerCell cell = cells(planner, model, axes).front();
            for (const LayerKernel& k : cell.kernels) EXPECT_NE(k.time.provenance, Provenance::refused) << model << " " << k.part.name << ": " << k.time.plan;
            EXPECT_TRUE(planner.sums(cell.kernels).time_us());
        }
}

TEST_F(LayerPlan, WeightsOfFourBits) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    // The gate is a kernel of its own; residuals are epilogues, but for products of groups.
    const LayerCell awq = cells(planner, "Meta-Llama-3.1-8B-Instruct-AWQ-INT4", {.batches = {1}, .contexts = {4096}}).front();
    ASSERT_EQ(awq.kernels.size(), 9u);
    EXPECT_EQ(awq.kernels.at(1).part.request.text("types"), "fp16,uint4,fp16");
    EXPECT_EQ(awq.kernels.at(4).part.name, "o");
    EXPECT_EQ(awq.kernels.at(4).part.request.text("epilogue"), "d = acc + r");
    EXPECT_EQ(awq.kernels.at(4).part.reads.back().name, "x");
    EXPECT_EQ(awq.kernels.at(7).part.name, "gate_up_gate");
    EXPECT_EQ(awq.kernels.at(1).time.provenance, Provenance::planned);
    const LayerCell plain = cells(planner, "Llama-3.1-8B", {.batches = {1}, .contexts = {4096}}).front();
    EXPECT_LT(*planner.sums(awq.kernels).time_us(), 0.6 * *planner.sums(plain.kernels).time_us());
    EXPECT_NEAR(*awq.kernels.at(1).time.least_us, 6144 * 4096 * (0.5 + 2.5 / 128) / 4.8e6, 0.05);
}

TEST_F(LayerPlan, WhereProductsTakeNoPairsTheGateIsAKernel) {
    for (const char* id : {"a100-80-sxm", "l40s"}) {
        LayerPlanner planner(shared_machine(id));
        const LayerCell cell = cells(planner, "Meta-Llama-3-8B", {.batches = {16}, .contexts = {2048}}).front();
        ASSERT_EQ(cell.kernels.size(), 9u) << id;
        EXPECT_EQ(cell.kernels[7].part.name, "gate_up_gate");
        EXPECT_EQ(cell.kernels[7].part.writes.front().name, cell.kernels[8].part.reads.front().name);
        EXPECT_TRUE(planner.sums(cell.kernels).time_us()) << id;
    }
}

TEST_F(LayerPlan, SmallKernelsTakeTheirLoadsAStoreAndTheirBytes) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    const LayerKernel rotary = cells(planner, "Meta-Llama-3-8B", {.batches = {16}, .contexts = {2048}}).front().kernels.at(2);
    ASSERT_EQ(rotary.part.name, "rotary_append");
    EXPECT_EQ(rotary.time.provenance, Provenance::modelled);
    // A position and its angles of 690 cycles each, the row between them and the store of 271, at 1.98 GHz; the new keys and values at
    // 4.32 TB/s; qkv's 12 KiB and q's 8 KiB a token at L2's 9.9 TB/s.
    constexpr double waits = 2 * (690 + 271) / 1980.0;
    EXPECT_NEAR(*rotary.time.time_us, waits + 16 * 4096 / 4.32e6 + 16 * 20480 / 9.9e6, 1e-9);
    // Of 8192 tokens they are more than L2 holds.
    const LayerKernel many =
        cells(planner, "Meta-Llama-3-8B", {.batches = {8}, .contexts = {1024}, .prefill_shares = {1}}).front().kernels.at(2);
    EXPECT_NEAR(*many.time.time_us, waits + 8192 * (4096 + 20480) / 4.32e6, 1e-9);
    EXPECT_EQ(many.time.bound, "dram");
    // A choice and a sort are two launches; two experts' rows are added one after the other, each behind its number.
    for (const LayerKernel& k : cells(planner, "Mixtral-8x7B-v0.1", {.batches = {1}, .contexts = {2048}}).front().kernels) {
        if (k.part.name == "route") { EXPECT_DOUBLE_EQ(*k.time.graph_us, *k.time.time_us + 2 * 0.555); }
        if (k.part.name == "combine") { EXPECT_NEAR(*k.time.time_us, 5 * 271 / 1980.0 + k.part.bytes() / 9.9e6, 1e-9); }
    }
    // Every small kernel of every model takes as long as its bytes do at least.
    for (const PublicModel& each : public_models()) {
        const ModelConfig model = model_config(each.config, each.name);
        for (const LayerKernel& k : layer_ends(planner, model, layer_step(64, 2048, 1, 1))) {
            if (k.time.provenance == Provenance::modelled) {
                EXPECT_GE(*k.time.time_us, *k.time.least_us) << each.name << " " << k.part.name;
            }
        }
    }
}

TEST_F(LayerPlan, SeveralGpusWaitForTheirLink) {
    LayerPlanner planner(shared_machine("h200-sxm"));
    const LayerCell cell = cells(planner, "Meta-Llama-3-8B", {.batches = {1}, .contexts = {2048}, .tp = 8}).front();
    for (const LayerKernel& k : cell.kernels) {
        if (k.part.exchanged_bytes == 0) continue;
        // One step: 3.7 us, and 8 KiB from each of seven others at 450 GB/s.
        EXPECT_NEAR(*k.time.time_us, 3.7 + 7 * 8192 / 450e3, 1e-9);
        EXPECT_EQ(k.time.bound, "link");
    }
    // 64 MiB are summed in two: each GPU sums an eighth, and reads seven others' eighths.
    const LayerCell large =
        cells(planner, "Meta-Llama-3-8B", {.batches = {2}, .contexts = {4096}, .prefill_shares = {1}, .tp = 8}).front();
    EXPECT_NEAR(*large.kernels.at(5).time.time_us, 2 * 3.7 + 2 * 7.0 / 8 * 67108864 / 450e3, 1e-6);
    LayerPlanner unlinked(shared_machine("a40"));
    const LayerCell none = cells(unlinked, "Meta-Llama-3-8B", {.batches = {1}, .contexts = {2048}, .tp = 2}).front();
    EXPECT_FALSE(unlinked.sums(none.kernels).time_us());
    EXPECT_THAT(unlinked.unknown(), testing::IsSupersetOf({"link.bandwidth", "link.step"}));
}

TEST_F(LayerPlan, AnotherMachineChangesTheTimes) {
    Machine wide = machine_by_id("h200-sxm");
    set_number(wide, "dram.bandwidth=9.6 TB/s");
    LayerPlanner as_it_is(shared_machine("h200-sxm")), twice(std::make_shared<const Machine>(wide));
    const LayerRequest request{.batches = {16}, .contexts = {8192}};
    const LayerSums before = as_it_is.sums(cells(as_it_is, "Meta-Llama-3-8B", request).front().kernels);
    const LayerSums after = twice.sums(cells(twice, "Meta-Llama-3-8B", request).front().kernels);
    EXPECT_NEAR(*after.least_us / *before.least_us, 0.5, 1e-3);
    EXPECT_LT(*after.time_us(), 0.85 * *before.time_us());
    EXPECT_FALSE(after.interval) << "nobody measured on such a machine";
}

TEST(LayerRoom, WhatATokenOfLlama3NeedsAtOnce) {
    // The residual, 8 KiB, and the gated intermediate, 28 KiB, while the MLP runs: 132 SMs x 227 KiB / 36 KiB.
    const ModelConfig model = public_model("Meta-Llama-3-8B");
    const LayerRoom room = layer_room(machine_by_id("h200-sxm"), model, model.layers[0]);
    EXPECT_EQ(room.bytes_per_token, 36 * 1024);
    EXPECT_EQ(*room.room_bytes, 132 * 227 * 1024.0);
    EXPECT_EQ(*room.tokens, 832);
    const auto found = std::ranges::find(room.tensors, "gate_up_out", &LayerRoom::Tensor::name);
    ASSERT_NE(found, room.tensors.end());
    EXPECT_EQ(found->written_by, "gate_up");
    EXPECT_EQ(found->last_read_by, "down");
    EXPECT_EQ(found->bytes_per_token, 28 * 1024);
}

TEST(LayerStepOf, ShareOfTheSequences) {
    EXPECT_EQ(layer_step(16, 1024, 0, 1).decode, 16);
    EXPECT_EQ(layer_step(16, 1024, 0.25, 1).prefill, 4);
    EXPECT_EQ(layer_step(16, 1024, 0.25, 1).tokens(), 12 + 4 * 1024);
    EXPECT_EQ(layer_step(16, 1024, 1, 1).decode, 0);
}

TEST(SweptNumbers, ListsAndDoublings) {
    EXPECT_THAT(swept_numbers("--hardware", "l2.size=25MB..200MB"),
                ElementsAre("l2.size=25 MB", "l2.size=50 MB", "l2.size=100 MB", "l2.size=200 MB"));
    EXPECT_THAT(swept_numbers("--hardware", "l2.size=25..60 MB"), ElementsAre("l2.size=25 MB", "l2.size=50 MB", "l2.size=60 MB"));
    EXPECT_THAT(swept_numbers("--hardware", "sm.count=66,132"), ElementsAre("sm.count=66", "sm.count=132"));
    EXPECT_THAT(swept_numbers("--hardware", "dram.bandwidth=2.4,4.8 TB/s"),
                ElementsAre("dram.bandwidth=2.4 TB/s", "dram.bandwidth=4.8 TB/s"));
    for (const char* wrong : {"l2.size", "=", "l2.size=", "l2.size=a", "l2.size=0..8 MB", "l2.size=8MB..4MB", "l2.size=8MB..4GB",
                              "l2.size=1,,2", "sm.count=-1..2"})
        EXPECT_THROW(swept_numbers("--hardware", wrong), RequestError) << wrong;
}

}  // namespace
}  // namespace rooftile
