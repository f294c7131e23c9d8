// The kernels of a layer without a GPU: those that judge compile, a model's parts become kernels, and each begins by waiting for the one
// ahead.
#include <gtest/gtest.h>

#include <cmath>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/layer/device/reference.hpp"
#include "rooftile/layer/device/run.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/runtime/cache.hpp"
#include "tests/layer/small_model.hpp"

namespace rooftile {
namespace {

TEST(LayerKernels, TheReferenceCompiles) {
    for (const Source& source : layer_reference_sources("sm_90")) {
        const CachedCompile compiled = compile_cached(source);
        EXPECT_EQ(compiled.compiled.lowered_names.size(), 11U);
    }
}

std::vector<RunnablePart> kernels_of(const ModelConfig& model, const LayerStep& step) {
    return compile_layer(std::make_shared<const Machine>(machine_by_id("h200-sxm")), model, step,
                         layer_parts(model, model.layers.front(), step));
}

// Every kernel of a dense layer, decoding and prefilling: all but those whose launch is cooperative let the next one begin while they end.
TEST(LayerKernels, PartsBecomeKernelsThatWait) {
    for (const LayerStep& step :
         {LayerStep{.decode = 4, .prefill = 0, .context = 512}, LayerStep{.decode = 0, .prefill = 2, .context = 256}}) {
        const std::vector<RunnablePart> kernels = kernels_of(small_model(true), step);
        ASSERT_EQ(kernels.size(), 8U);
        for (const RunnablePart& kernel : kernels) {
            SCOPED_TRACE(kernel.part.name);
            EXPECT_FALSE(kernel.label.empty());
            if (!kernel.kernel) continue;
            if (kernel.part.operation == "gemm") {
                const Record config = kernel.kernel->plan().operation->config_record(kernel.kernel->plan());
                EXPECT_EQ(find_as<bool>(config, "early_weights"), true);
            }
            EXPECT_NE(kernel.kernel->ptx().find("griddepcontrol.wait"), std::string::npos);
        }
    }
}

TEST(LayerKernels, ExpertsBecomeKernelsThatWait) {
    for (const bool shared : {false, true}) {
        const std::vector<RunnablePart> kernels = kernels_of(small_experts(shared), {.decode = 6, .prefill = 0, .context = 256});
        EXPECT_EQ(kernels.size(), shared ? 14U : 12U);
        for (const RunnablePart& kernel : kernels) {
            SCOPED_TRACE(kernel.part.name);
            EXPECT_NE(kernel.kernel.has_value(), kernel.small != nullptr);
            if (!kernel.small) continue;
            for (const std::string& ptx : kernel.small->ptx()) EXPECT_NE(ptx.find("griddepcontrol.wait"), std::string::npos);
        }
    }
    ModelConfig many = small_experts(false);
    many.experts->count = 513;
    EXPECT_THROW(kernels_of(many, {.decode = 6, .prefill = 0, .context = 256}), RequestError);
}

// By hand: of tokens 0, 1 and 2 experts {1, 0}, {1, 2} and {2, 1}.
TEST(LayerKernels, RowsFollowFromChoices) {
    const ModelExperts experts{.count = 3, .per_token = 2, .intermediate = 8};
    const double logits[] = {1, 2, 0, 9, 0, 2, 1, 9, 0, 1, 1, 9};  // a fourth column is no expert's
    const int chosen[] = {1, 0, 1, 2, 2, 1};
    const RoutedTokens routed = routed_tokens(logits, 4, chosen, experts);
    EXPECT_EQ(routed.offsets, (std::vector<int>{0, 1, 4, 6}));
    EXPECT_EQ(routed.rows, (std::vector<int>{1, 0, 2, 4, 5, 3}));
    EXPECT_EQ(routed.impossible, 0U);
    EXPECT_EQ(routed.shortfall, 0);
    const double all = std::exp(1) + std::exp(2) + 1;
    EXPECT_NEAR(routed.weights[0], std::exp(2) / all, 1e-12);
    ModelExperts renormalized = experts;
    renormalized.renormalized = true;
    EXPECT_NEAR(routed_tokens(logits, 4, chosen, renormalized).weights[4], 0.5, 1e-12);
    // Expert 2 of token 0 is 1 below the second greatest, of a root mean square of sqrt(5 / 3); twice the same is impossible.
    const int wrong[] = {1, 2, 1, 1, 2, 3};
    const RoutedTokens off = routed_tokens(logits, 4, wrong, experts);
    EXPECT_NEAR(off.shortfall, 1 / std::sqrt(5.0 / 3), 1e-12);
    EXPECT_EQ(off.impossible, 3U);
}

// The option changes the code only where a kernel would not wait by itself.
TEST(LayerKernels, OnlyWhoAsksGetsKernelsThatWait) {
    const std::vector<RunnablePart> kernels = kernels_of(small_model(false), {.decode = 2, .prefill = 0, .context = 256});
    const RunnablePart& norm = kernels.front();
    ASSERT_EQ(norm.part.name, "norm_attention");
    const CompiledKernel plain = compile(norm.kernel->plan());
    EXPECT_EQ(plain.ptx().find("griddepcontrol"), std::string::npos);
    EXPECT_NE(plain.code().hash, norm.kernel->code().hash);
    EXPECT_EQ(plain.code().entry.registers, norm.kernel->code().entry.registers);
}

TEST(LayerKernels, WhatIsNotRunYetIsNamed) {
    ModelConfig model = small_model(false);
    model.score_cap = 50;
    const auto refusal = [&](const ModelConfig& m, const LayerStep& step) -> std::string {
        try {
            check_layer_reference(m, step);
        } catch (const RequestError& error) { return error.what(); }
        return "";
    };
    EXPECT_EQ(refusal(model, {.decode = 1}), "llama: a layer with capped scores is planned, not yet run; `rooftile plan layer` takes it");
    EXPECT_EQ(refusal(small_model(false), {.decode = 1, .prefill = 0, .context = 16, .tp = 2}),
              "llama: a layer with 2 GPUs is planned, not yet run; `rooftile plan layer` takes it");
    EXPECT_EQ(refusal(small_model(true), {.decode = 1}), "");
}

// sqrt(10) roundings of at most 2^-8 each.
TEST(LayerKernels, TheBoundFollowsFromRoundings) {
    EXPECT_NEAR(layer_bound(10, "bf16"), 0.012352, 1e-6);
    EXPECT_NEAR(layer_bound(10, "fp16"), 0.012352 / 8, 1e-6);
    const LayerError fine{.tensor = "x_out", .row = 0.01, .element = 0.09, .all = 0.008, .bound = 0.0124};
    EXPECT_TRUE(fine.ok());
    LayerError wrong = fine;
    wrong.changed = 1;
    EXPECT_FALSE(wrong.ok());
    wrong = fine, wrong.row = std::nan("");
    EXPECT_FALSE(wrong.ok());
    wrong = fine, wrong.element = 0.1;
    EXPECT_FALSE(wrong.ok());
}

}  // namespace
}  // namespace rooftile
