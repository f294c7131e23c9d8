// Packed weights in the planner: where they lie, what they take, which requests are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "rooftile/error.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/many_quantised_model.hpp"
#include "rooftile/gemm/variants.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/gemm/draw_quantised.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

GemmProblem packed_problem(std::int64_t m, std::int64_t n, std::int64_t k,
                           QuantisedLayout layout = {.weights = WeightType::int4}) {
    GemmProblem p = gemm_problem(m, n, k);
    p.quantised = layout;
    return p;
}

const GemmPlan& first_of(const std::variant<Plans, Infeasible>& outcome) {
    if (const auto* none = std::get_if<Infeasible>(&outcome)) ADD_FAILURE() << none->message;
    return std::get<Plans>(outcome).plans.front();
}

std::string quantised_refusal(const GemmProblem& problem, const GemmRequest& request = {},
                              const char* machine = "h200-sxm") {
    const auto outcome = derive(machine_by_id(machine), problem, request);
    const auto* none = std::get_if<Infeasible>(&outcome);
    return none ? none->message : "";
}

Given given_of(std::initializer_list<std::pair<const char*, const char*>> fields) {
    Given given(Given::Named::by_key);
    for (const auto& [key, text] : fields) given.add(key, text);
    return given;
}

std::string packed_request_error(std::initializer_list<std::pair<const char*, const char*>> fields) {
    try {
        gemm_problem(given_of(fields));
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

// Every weight of a block has bits of its own, and all of its bytes are taken.
TEST(QuantisedLayout, GivesEachWeightItsOwnBits) {
    for (const auto& [weights, bits] : {std::pair{WeightType::uint4, 4}, {WeightType::int8, 8}, {WeightType::fp8_e4m3, 8}, {WeightType::nf4, 4}}) {
        const QuantisedLayout layout{.weights = weights};
        std::set<int> places;
        for (int row = 0; row < 64; ++row)
            for (int k = 0; k < 128; ++k) places.insert(layout.word_of(row, k) * 32 + layout.shift_of(row, k));
        EXPECT_EQ(places.size(), 64u * 128u);
        EXPECT_EQ(*places.rbegin(), (64 * 128 - 1) * bits);
        for (const int place : places) ASSERT_EQ(place % bits, 0);
    }
}

// Of 8 bits a word has two neighbours along K of a row, and those 8 rows below: two registers of lane 5, which has row 1 and columns 2
// and 3.
TEST(QuantisedLayout, HasEightBitsInTheOrderOfTheInstruction) {
    const QuantisedLayout layout{.weights = WeightType::int8};
    EXPECT_EQ(layout.word_of(1, 2), 5 * 4);
    EXPECT_EQ(layout.word_of(9, 3), 5 * 4);
    EXPECT_EQ(layout.shift_of(1, 2), 0);
    EXPECT_EQ(layout.shift_of(1, 3), 8);
    EXPECT_EQ(layout.shift_of(9, 2), 16);
    EXPECT_EQ(layout.word_of(1, 10), 5 * 4 + 1);    // 8 columns on
    EXPECT_EQ(layout.word_of(1, 18), 5 * 4 + 2);    // the next 16
    EXPECT_EQ(layout.word_of(1, 34), 128 + 5 * 4);  // of the second load
    EXPECT_EQ(layout.word_of(17, 2), 256 + 5 * 4);
    EXPECT_EQ(layout.word_of(1, 66), 1024 + 5 * 4);
    EXPECT_EQ(layout.block_bytes(), 8192 + 128);
}

// Of floats two neighbours along K are in both halves of a word, in the lower bytes of a row and in the upper ones of that 8 below it; of tables they are
// a byte.
TEST(QuantisedLayout, HasFloatsInBothHalvesAndPlacesInBytes) {
    const QuantisedLayout floats{.weights = WeightType::fp8_e4m3}, table{.weights = WeightType::nf4};
    EXPECT_EQ(floats.word_of(9, 3), 5 * 4);
    EXPECT_EQ(floats.shift_of(1, 2), 0);
    EXPECT_EQ(floats.shift_of(1, 3), 16);
    EXPECT_EQ(floats.shift_of(9, 2), 8);
    EXPECT_EQ(floats.word_of(1, 10), 5 * 4 + 1);
    EXPECT_EQ(table.word_of(9, 11), 5 * 4);
    EXPECT_EQ(table.shift_of(1, 2), 0);
    EXPECT_EQ(table.shift_of(1, 3), 4);
    EXPECT_EQ(table.shift_of(9, 2), 8);
    EXPECT_EQ(table.shift_of(1, 10), 16);
}

// Two neighbours along K are the two halves of a word: mma.sync takes them as one register. Lane 5 has row 1 and columns 2 and 3.
TEST(QuantisedLayout, HasWeightsInTheOrderOfTheInstruction) {
    const QuantisedLayout layout{.weights = WeightType::int4};
    EXPECT_EQ(layout.word_of(1, 2), 5 * 4);
    EXPECT_EQ(layout.shift_of(1, 2), 0);
    EXPECT_EQ(layout.shift_of(1, 3), 16);
    EXPECT_EQ(layout.shift_of(9, 2), 4);   // 8 rows below
    EXPECT_EQ(layout.shift_of(1, 10), 8);  // 8 columns on
    EXPECT_EQ(layout.word_of(17, 2), 128 + 20);
    EXPECT_EQ(layout.word_of(1, 66), 512 + 20);
    EXPECT_EQ(layout.word_of(1, 18), 21);
}

// 4096 B of weights, 128 / 32 groups of 64 scales of 2 B and 64 zero points of 1 B: 4096 + 4 * 192 = 4864 B a block of 64 x 128.
TEST(QuantisedLayout, CountsItsBytes) {
    const QuantisedLayout plain{.weights = WeightType::int4},
        rich{.weights = WeightType::uint4, .group = 32, .scale = Type::fp16, .zeros = ZeroType::integer};
    EXPECT_EQ(plain.block_bytes(), 4096 + 128);
    EXPECT_EQ(rich.block_bytes(), 4864);
    EXPECT_EQ(rich.zeros_at(), 4096 + 512);
    EXPECT_EQ(rich.scale_at(3, 65), 4096 + 2 * 128 + 6);
    EXPECT_EQ(rich.zero_at(3, 65), 4608 + 2 * 64 + 3);
    EXPECT_EQ(plain.bytes(8192, 8192), 128 + 128 * 64 * 4224);
    EXPECT_EQ(plain.bytes(65, 129), 128 + 2 * 2 * 4224);
    EXPECT_EQ(plain.block_at(64, 128, 300), 128 + (3 + 1) * 4224);
    EXPECT_EQ(plain.groups(129), 2);
    // Zero points that are numbers take 2 B as scales do: 4096 + 4 * 64 * (2 + 2) = 5120 B.
    QuantisedLayout real = rich;
    real.zeros = ZeroType::real;
    EXPECT_EQ(real.block_bytes(), 5120);
    EXPECT_EQ(real.zero_at(3, 65), 4608 + 2 * (2 * 64 + 3));
    // Scales of mxfp4 take a byte: 4096 + 4 * 64 = 4352 B.
    const QuantisedLayout powers{.weights = WeightType::mxfp4, .group = 32};
    EXPECT_EQ(powers.block_bytes(), 4352);
    EXPECT_EQ(powers.scale_at(3, 65), 4096 + 2 * 64 + 3);
    QuantisedLayout row = plain;
    row.group = 0;
    EXPECT_EQ(row.groups(129), 1);
    EXPECT_EQ(row.block_bytes(), plain.block_bytes());
}

TEST(QuantisedLayout, IsToldFromOthersByItsFingerprint) {
    std::set<unsigned> prints;
    int layouts = 0;
    for (int weights = 1; weights <= int(WeightType::nf4); ++weights)
        for (const int group : {0, 32, 64, 128})
            for (const Type scale : {Type::bf16, Type::fp16})
                for (const ZeroType zeros : {ZeroType::none, ZeroType::integer, ZeroType::real})
                    ++layouts, prints.insert(QuantisedLayout{WeightType(weights), group, scale, zeros}.fingerprint());
    EXPECT_EQ(prints.size(), std::size_t(layouts));
}

TEST(Quantised, IsAskedForByTypes) {
    const GemmProblem p = gemm_problem(given_of({{"m", "1"},
                                                 {"n", "300"},
                                                 {"k", "520"},
                                                 {"types", "fp16,uint4,fp16"},
                                                 {"quant_group", "row"},
                                                 {"quant_scale", "fp16"},
                                                 {"quant_zero", "int"}}));
    EXPECT_EQ(p.quantised, (QuantisedLayout{.weights = WeightType::uint4, .group = 0, .scale = Type::fp16, .zeros = ZeroType::integer}));
    EXPECT_EQ(p.b_type, Type::fp16);
    EXPECT_EQ(gemm_problem(gemm_given(p)), p);
    const Problem problem{&gemm_operation(), Own::of(p)};
    EXPECT_EQ(gemm_problem(gemm_operation().given_of_record(gemm_operation().problem_record(problem))), p);
    const std::vector<TensorInfo> tensors = gemm_operation().tensors(problem);
    EXPECT_EQ(tensors[1].type, "uint8");
    ASSERT_EQ(tensors[1].extents.size(), 1u);
    EXPECT_EQ(tensors[1].extents[0].most, p.quantised.bytes(300, 520));
    const GemmProblem usual =
        gemm_problem(given_of({{"m", "1"}, {"n", "300"}, {"k", "520"}, {"types", "bf16,int4,bf16"}}));
    EXPECT_EQ(gemm_problem(given_of({{"m", "1"}, {"n", "64"}, {"k", "128"}, {"types", "bf16,int4,bf16"}, {"quant_zero", "float"}}))
                  .quantised.zeros,
              ZeroType::real);
    EXPECT_EQ(usual.quantised, (QuantisedLayout{.weights = WeightType::int4}));
}

// A group of 32 is mxfp4's own, as is the type of its scales; nf4's is 64 where nothing is said. Floats are packed beside 16-bit activations alone.
TEST(Quantised, TypesHaveDefaultsOfTheirOwn) {
    const auto of = [](const char* types, std::initializer_list<std::pair<const char*, const char*>> more = {}) {
        Given given = given_of({{"m", "1"}, {"n", "64"}, {"k", "128"}, {"types", types}});
        for (const auto& [key, text] : more) given.add(key, text);
        const GemmProblem p = gemm_problem(given);
        EXPECT_EQ(gemm_problem(gemm_given(p)), p) << types;
        return p.quantised;
    };
    EXPECT_EQ(of("bf16,mxfp4,bf16"), (QuantisedLayout{.weights = WeightType::mxfp4, .group = 32}));
    EXPECT_EQ(of("bf16,mxfp4,bf16", {{"quant_scale", "e8m0"}}), of("bf16,mxfp4,bf16"));
    EXPECT_EQ(of("fp16,nf4,fp16"), (QuantisedLayout{.weights = WeightType::nf4, .group = 64}));
    EXPECT_EQ(of("bf16,fp8_e4m3,bf16"), (QuantisedLayout{.weights = WeightType::fp8_e4m3}));
    EXPECT_EQ(of("fp16,fp8_e5m2,fp16", {{"quant_group", "row"}}), (QuantisedLayout{.weights = WeightType::fp8_e5m2, .group = 0}));
    EXPECT_EQ(of("fp8_e4m3,fp8_e5m2,bf16").weights, WeightType::none);
}

TEST(Quantised, RequestsThatMeanNothingAreRefusedByName) {
    const auto with = [](const char* types, const char* key = "top", const char* value = "1") {
        return packed_request_error({{"m", "1"}, {"n", "64"}, {"k", "128"}, {"types", types}, {key, value}});
    };
    EXPECT_THAT(with("bf16,bf16,bf16", "quant_group", "64"), HasSubstr("quant_group is of packed weights"));
    EXPECT_THAT(with("bf16,int4,bf16", "quant_group", "48"), HasSubstr("48"));
    EXPECT_THAT(with("bf16,int4,bf16", "quant_zero", "double"), HasSubstr("none, int, float"));
    EXPECT_THAT(with("bf16,int4,fp32"), HasSubstr("not fp32"));
    EXPECT_THAT(with("fp8_e4m3,int4,fp32"), HasSubstr("bf16 or fp16"));
    EXPECT_THAT(with("int4,bf16,bf16"), HasSubstr("int4"));
    EXPECT_THAT(with("bf16,mxfp4,bf16", "quant_group", "64"), HasSubstr("mxfp4 has one for each 32"));
    EXPECT_THAT(with("bf16,mxfp4,bf16", "quant_scale", "fp16"), HasSubstr("scales of mxfp4 are e8m0"));
    EXPECT_THAT(with("bf16,nf4,bf16", "quant_scale", "e8m0"), HasSubstr("it is of mxfp4"));
    EXPECT_THAT(with("bf16,nf4,bf16", "quant_zero", "float"), HasSubstr("zero points are of weights that are whole numbers"));
    EXPECT_THAT(with("bf16,fp8_e4m3,fp32"), HasSubstr("not fp32"));
    EXPECT_THAT(with("bf16,int8,bf16", "quant_zero", "int"), HasSubstr("weights of 8 bits have no whole zero points"));
    EXPECT_THAT(with("bf16,int4,bf16", "batch", "2"), HasSubstr("batches of packed weights"));
    EXPECT_THAT(with("bf16,int4,bf16", "b_major", "n"), HasSubstr("leave b_major"));
    EXPECT_THAT(with("bf16,int4,bf16", "ldb", "256"), HasSubstr("leave b_major, ldb"));
}

TEST(Quantised, WhatTheKernelCannotDoIsRefusedWithItsValue) {
    EXPECT_THAT(quantised_refusal(packed_problem(1, 256, 260)), HasSubstr("k = 260"));
    GemmRequest of_hopper;
    of_hopper.kernel = find_gemm_kernel("sm90_few_quantised");
    EXPECT_THAT(quantised_refusal(packed_problem(1, 256, 256), of_hopper, "a100-80-sxm"), HasSubstr("which a100-80-sxm does not have; sm80_gemm runs there"));
    EXPECT_THAT(quantised_refusal(packed_problem(1, 256, 256), of_hopper, "b200"), HasSubstr("sm_90"));
    EXPECT_THAT(quantised_refusal(packed_problem(1, 256, 256), {}, "v100-exercise"), HasSubstr("no kernel of packed weights runs there"));
    GemmProblem p = packed_problem(3, 256, 256);
    p.a_major = Major::mn, p.lda = 8;
    EXPECT_THAT(quantised_refusal(p), HasSubstr("m-major"));
    p = packed_problem(3, 256, 256);
    p.a_offset = 4;
    EXPECT_THAT(quantised_refusal(p), HasSubstr("a_offset = 4"));
    GemmRequest request;
    request.kernel = find_gemm_kernel("generic");
    EXPECT_THAT(quantised_refusal(packed_problem(1, 256, 256), request), HasSubstr("generic does not multiply packed weights"));
    request.kernel = find_gemm_kernel("sm90_few_quantised");
    EXPECT_THAT(quantised_refusal(packed_problem(65, 256, 256), request), HasSubstr("m = 65: sm90_few_quantised takes up to 64 rows"));
    EXPECT_THAT(quantised_refusal(gemm_problem(1, 256, 256), request),
                HasSubstr("does not multiply weights that are not packed"));
    request = {};
    request.tile_n = 96;
    EXPECT_THAT(quantised_refusal(packed_problem(1, 256, 256), request), HasSubstr("tile_n = 96"));
    request = {};
    request.order = Order::hilbert;
    EXPECT_THAT(quantised_refusal(packed_problem(1, 256, 256), request), HasSubstr("one row of tiles"));
}

// 8192^2 / 2 + 8192 * 64 * 2 + 128 = 34,603,136 B of W, and A and C of 16,384 B each; at 4.2 TB/s 8.25 us.
TEST(Quantised, MovesPackedBytesOnce) {
    const auto outcome = derive(machine_by_id("h200-sxm"), packed_problem(1, 8192, 8192));
    const GemmPlan& plan = first_of(outcome);
    EXPECT_EQ(plan.config.kernel->name(), "sm90_few_quantised");
    EXPECT_TRUE(plan.buildable) << plan.why_not;
    EXPECT_EQ(plan.prediction.dram_bytes, 34603136 + 2 * 16384);
    EXPECT_EQ(plan.prediction.moved_bytes, plan.prediction.dram_bytes);
    EXPECT_GT(*plan.prediction.time_us, 8.25);
    EXPECT_NEAR(*plan.prediction.time_us, 13.3, 0.05 * 13.3);  // as measured: docs/facts.md 421
    // Two floats of a tile's elements a CTA, and a counter a tile.
    const std::int64_t ctas = 132 * plan.config.ctas_per_sm, tiles = 8192 / plan.config.tile_n;
    EXPECT_EQ(plan.resources.grid_ctas, ctas);
    EXPECT_EQ(plan.resources.workspace_bytes,
              (tiles * 4 + 127) / 128 * 128 + 2 * ctas * 8 * plan.config.tile_n * 4);
}

TEST(Quantised, TakesLongerWithMoreBitsAWeight) {
    const auto time = [](QuantisedLayout layout) {
        return *first_of(derive(machine_by_id("h200-sxm"), packed_problem(1, 28672, 8192, layout)))
                    .prediction.time_us;
    };
    const double coarse = time({.weights = WeightType::int4, .group = 128}), fine = time({.weights = WeightType::int4, .group = 32}),
                 with_zeros = time({.weights = WeightType::int4, .group = 32, .zeros = ZeroType::integer}),
                 with_reals = time({.weights = WeightType::int4, .group = 32, .zeros = ZeroType::real});
    EXPECT_LT(coarse, fine);
    EXPECT_LT(fine, with_zeros);
    EXPECT_LT(with_zeros, with_reals);
    EXPECT_NEAR(time({.weights = WeightType::int8, .group = 128}) / coarse, 2, 0.3);
}

// Bias and activation are the same kernel's; what they take is in its time. Pairs and several results are refused by name.
TEST(Quantised, TakesExpressionsOfOneResult) {
    GemmProblem p = packed_problem(16, 4096, 4096);
    const auto given = [&](const char* text, const std::vector<std::string>& tensors, Pairs pairs = Pairs::none) {
        GemmProblem out = p;
        if (pairs != Pairs::none) out.ldc = out.n / 2;
        out.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, text, tensors, Scales::none, 1, 0, pairs);
        return out;
    };
    const auto plain = derive(machine_by_id("h200-sxm"), p),
               biased = derive(machine_by_id("h200-sxm"), given("d = gelu(acc + bias)", {"bias:bf16[N]"}));
    const GemmPlan &before = first_of(plain), &after = first_of(biased);
    EXPECT_EQ(after.config.kernel->name(), "sm90_few_quantised");
    EXPECT_TRUE(after.buildable) << after.why_not;
    EXPECT_GT(*after.prediction.time_us, *before.prediction.time_us);
    EXPECT_LT(*after.prediction.time_us, *before.prediction.time_us + 3);
    EXPECT_EQ(*after.prediction.dram_bytes, *before.prediction.dram_bytes + 2 * 4096);
    EXPECT_THAT(quantised_refusal(given("d = silu(gate) * up", {}, Pairs::split)), HasSubstr("pairs split"));
    EXPECT_THAT(quantised_refusal(given("d = acc; e = acc * 2", {})), HasSubstr("2 results"));
    const Given apart = given_of(
        {{"m", "16"}, {"n", "4096"}, {"k", "4096"}, {"types", "bf16,int4,bf16"}, {"epilogue", "d = relu(acc)"}, {"epilogue_apart", "on"}});
    const PlanSet set = gemm_operation().derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), gemm_operation().problem(apart),
                                                gemm_operation().request(apart, {}));
    ASSERT_TRUE(set.refusal);
    EXPECT_THAT(set.refusal->message, HasSubstr("a product by packed weights stores its sums in the activations' type alone"));
}

TEST(Quantised, TakesWhatAnEpilogueReadsAsATensor) {
    Given given = given_of({{"n", "128"}, {"types", "bf16,int4,bf16"}, {"epilogue", "d = acc + bias"}});
    const std::int64_t bytes = QuantisedLayout{.weights = WeightType::int4}.bytes(128, 256);
    const TensorInfo inputs[] = {
        {.name = "", .type = "bf16", .element_bits = 16, .extents = {Extent::of(3), Extent::of(256)}, .strides = {256, 1}},
        {.name = "", .type = "uint8", .element_bits = 8, .extents = {Extent::of(bytes)}, .strides = {1}},
        {.name = "bias", .type = "bf16", .element_bits = 16, .extents = {Extent::of(128)}, .strides = {1}}};
    gemm_operation().add_tensors(given, inputs);
    const GemmProblem p = gemm_problem(given);
    EXPECT_EQ(p.m, 3);
    ASSERT_TRUE(p.epilogue);
    EXPECT_THAT(p.epilogue->tensors, testing::ElementsAre("bias:bf16[128]"));
}

// 8 groups of 1 to 40 rows, 512 columns each: W is one matrix of 4096 columns, 128 + 64 * 4 * 4224 B. Rows of tiles are those of all groups.
TEST(Quantised, TakesGroupsOfRows) {
    const auto fields = [](const char* n, const char* groups) { return given_of({{"n", n}, {"k", "512"}, {"types", "bf16,int4,bf16"}, {"groups", groups}}); };
    const GemmProblem p = gemm_problem(fields("512", "1,40,0,3,33,2,32,5"));
    EXPECT_EQ(gemm_problem(gemm_given(p)), p);
    EXPECT_EQ(p.m, 116);
    const auto outcome = derive(machine_by_id("h200-sxm"), p);
    const GemmPlan& plan = first_of(outcome);
    EXPECT_EQ(plan.config.kernel->name(), "sm90_many_quantised");
    EXPECT_TRUE(plan.buildable) << plan.why_not;
    EXPECT_EQ(many_quantised_config(plan).group_slots, 32);
    EXPECT_EQ(many_quantised_config(plan).shared_bytes(), *plan.resources.shared_bytes);
    const std::vector<TensorInfo> tensors = gemm_operation().tensors({&gemm_operation(), Own::of(p)});
    ASSERT_EQ(tensors.size(), 4u);
    EXPECT_EQ(tensors[1].extents[0].most, 128 + 64 * 4 * 4224);
    EXPECT_EQ(tensors[2].name, "offsets");
    GemmRequest request;
    request.tile_m = 32, request.tile_n = 128;
    const auto tiled = derive(machine_by_id("h200-sxm"), p, request);
    const auto& steps = first_of(tiled).derivation.all();
    const auto units = std::ranges::find_if(steps, [](const Step& s) { return s.quantity == "units_a_cta"; });
    ASSERT_NE(units, steps.end());
    EXPECT_EQ(*units->value, std::ceil((1 + 2 + 1 + 2 + 1 + 1 + 1) * 4 * 4 / 132.0));  // 9 rows of 4 tiles of 4 units each
    EXPECT_THAT(packed_request_error({{"n", "500"}, {"k", "512"}, {"types", "bf16,int4,bf16"}, {"groups", "3,4"}}), HasSubstr("whole blocks of 64"));
    EXPECT_THAT(packed_request_error({{"n", "1073741824"}, {"k", "128"}, {"types", "bf16,int4,bf16"}, {"groups", "3,4"}}), HasSubstr("n = 1073741824 of 2 groups"));
    GemmProblem with = p;
    with.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "d = relu(acc)", {}, Scales::none, 1, 8);
    EXPECT_THAT(quantised_refusal(with), HasSubstr("groups of packed weights take no epilogue yet"));
    GemmRequest few;
    few.kernel = find_gemm_kernel("sm90_few_quantised");
    EXPECT_THAT(quantised_refusal(p, few), HasSubstr("sm90_many_quantised's so far; leave the kernel off"));
    EXPECT_THAT(packed_request_error({{"m", "1"}, {"n", "512"}, {"k", "512"}, {"types", "bf16,fp4,bf16"}}), HasSubstr("fp8_e5m2, int4, uint4, int8, mxfp4, nf4"));
}

// Floats of 8 bits as they are, and not packed, are no operand beside 16 bits.
TEST(Quantised, TakesPackedTensorsAlone) {
    Given given = given_of({{"types", "bf16,fp8_e4m3,bf16"}});
    const TensorInfo inputs[] = {
        {.name = "", .type = "bf16", .element_bits = 16, .extents = {Extent::of(3), Extent::of(256)}, .strides = {256, 1}},
        {.name = "", .type = "fp8_e4m3", .element_bits = 8, .extents = {Extent::of(256), Extent::of(128)}, .strides = {1, 256}}};
    try {
        gemm_operation().add_tensors(given, inputs);
        FAIL() << "accepted";
    } catch (const RequestError& error) { EXPECT_THAT(error.what(), HasSubstr("packed first, into one tensor of uint8")); }
}

// 2 * 8192^2 = 134,217,728 B unpacked, and 34,603,136 B packed: 168.8 MB at the rate of copies, the product of 16-bit weights behind it.
TEST(Quantised, ManyRowsAreMultipliedBehindALaunchThatUnpacks) {
    const Machine machine = machine_by_id("h200-sxm");
    GemmRequest apart;
    apart.pack_b = false;
    for (const std::int64_t m : {2048, 8192}) {
        const GemmProblem p = packed_problem(m, 8192, 8192);
        const auto outcome = derive(machine, p), plain = derive(machine, p.dequantised()), fragments = derive(machine, p, apart);
        const GemmPlan& plan = first_of(outcome);
        EXPECT_EQ(plan.config.kernel->name(), "sm90_gemm");
        EXPECT_TRUE(plan.config.pack_b);
        EXPECT_FALSE(plan.config.pack_a);
        EXPECT_TRUE(plan.buildable) << plan.why_not;
        EXPECT_EQ(plan.problem, p);
        EXPECT_TRUE(rounds_weights(plan));
        EXPECT_GE(plan.resources.workspace_bytes, 134217728);
        EXPECT_EQ(plan.prediction.moved_bytes, first_of(fragments).prediction.moved_bytes);
        const double us = *plan.prediction.time_us, product_us = *first_of(plain).prediction.time_us;
        // The launch in front draws no power of products, so that the clock behind it may be higher: both are no longer than one after the other.
        EXPECT_GT(us, product_us + 20);
        EXPECT_LT(us, product_us + (134217728 + 34603136) / 4.32e12 * 1e6 + 3);
        EXPECT_EQ(first_of(fragments).config.kernel->name(), "sm90_many_quantised");
        EXPECT_LT(us, *first_of(fragments).prediction.time_us);
        const auto& steps = plan.derivation.all();
        const auto unpacks = std::ranges::find_if(steps, [](const Step& s) { return s.quantity == "pack_b"; });
        ASSERT_NE(unpacks, steps.end());
        EXPECT_THAT(unpacks->limit, HasSubstr("the best plan that unpacks them for each row of tiles takes"));
        const auto workspace = std::ranges::find_if(unpacks->inputs, [](const Input& i) { return i.name == "workspace"; });
        ASSERT_NE(workspace, unpacks->inputs.end());
        EXPECT_EQ(workspace->value, 134217728);
        EXPECT_THAT(std::get<Plans>(outcome).notes, testing::Contains(HasSubstr("each is rounded to bf16")));
        // As a document has it, it is planned again.
        const Problem problem{&gemm_operation(), Own::of(p)};
        const PlanSet set = gemm_plan_set(derive(machine, p));
        const Given given = gemm_operation().given_of_config(gemm_operation().config_record(set.plans.front()));
        const PlanSet again = gemm_operation().derive(std::make_shared<const Machine>(machine), problem, gemm_operation().request(given, {}));
        ASSERT_FALSE(again.plans.empty());
        EXPECT_EQ(again.plans.front().own.as<GemmPlan>().config, plan.config);
        EXPECT_NEAR(*again.plans.front().time_us, us, 1e-9 * us);
        EXPECT_EQ(set.plans.front().launches.size(), 2u);
        EXPECT_EQ(set.plans.front().launches.front().kernel, "unpack_weights");
    }
    EXPECT_FALSE(rounds_weights(first_of(derive(machine, packed_problem(16, 8192, 8192)))));
    EXPECT_FALSE(rounds_weights(first_of(derive(machine, packed_problem(64, 8192, 8192)))));
}

// Plans are drawn of the kernel that the first one is of, and their problem is what it multiplies.
TEST(Quantised, IsDrawnBehindUnpackingToo) {
    const auto outcome = derive_sample(machine_by_id("h200-sxm"), packed_problem(4096, 4096, 4096), {}, 4, 7);
    const Plans& plans = std::get<Plans>(outcome);
    ASSERT_EQ(plans.plans.size(), 4u);
    for (const GemmPlan& plan : plans.plans) EXPECT_TRUE(rounds_weights(plan) && plan.prediction.time_us) << plan.config.kernel->name();
}

// A note is of the kernels that are planned: sm90_gemm behind unpacking waits before it reads weights, and has the weights' errors too.
TEST(Quantised, NotesAreOfTheKernelsThatArePlanned) {
    const auto notes = [](std::int64_t m) { return std::get<Plans>(derive(machine_by_id("h200-sxm"), packed_problem(m, 8192, 8192))).notes; };
    const auto early = testing::Contains(HasSubstr("weights are read before the kernel before this one has ended"));
    const auto error = testing::Contains(HasSubstr("normal weights rounded to the nearest"));
    EXPECT_THAT(notes(16), testing::AllOf(early, error));
    EXPECT_THAT(notes(8192), testing::AllOf(testing::Not(early), error));
}

TEST(Quantised, WhatIsNotMultipliedBehindUnpackingSaysWhy) {
    GemmRequest request;
    request.kernel = find_gemm_kernel("sm90_gemm");
    EXPECT_EQ(quantised_refusal(packed_problem(16, 256, 256), request), "");
    GemmProblem p = packed_problem(300, 256, 256, {.weights = WeightType::mxfp4, .group = 32});
    EXPECT_EQ(quantised_refusal(p, request), "");
    p.a_type = p.b_type = p.c_type = Type::fp16;
    EXPECT_THAT(quantised_refusal(p, request), HasSubstr("mxfp4 with activations of fp16"));
    p = packed_problem(300, 256, 256);
    p.lda = 260;
    EXPECT_THAT(quantised_refusal(p, request), HasSubstr("lda = 260, a_offset = 0: where weights are unpacked first A is read in place"));
    p.lda = 256, request.pack_b = false;
    EXPECT_THAT(quantised_refusal(p, request), HasSubstr("pack_b off"));
    request.pack_b.reset(), request.early_weights = true;
    EXPECT_THAT(quantised_refusal(p, request), HasSubstr("B comes from the launch in front"));
    request.early_weights.reset();
    const GemmProblem groups = gemm_problem(given_of({{"n", "512"}, {"k", "512"}, {"types", "bf16,int4,bf16"}, {"groups", "100,140"}}));
    EXPECT_THAT(quantised_refusal(groups, request), HasSubstr("groups of packed weights are sm90_many_quantised's so far"));
    p.ldc = 128;
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "d = silu(gate) * up", {}, Scales::none, 1, 0, Pairs::split);
    EXPECT_THAT(quantised_refusal(p, request), HasSubstr("pairs split of packed weights"));
}

GemmProblem narrow_problem(std::int64_t m, std::int64_t n, std::int64_t k, Type a = Type::fp8_e4m3) {
    GemmProblem p = packed_problem(m, n, k);
    p.a_type = a;
    return p;
}

// A of 8 bits is widened to the result's type by a launch in front, of 2 * 16 * 8192 B, and counts as 16 * 8192 B in memory.
TEST(Quantised, RowsOfEightBitsAreWidenedFirst) {
    for (const auto& [id, m, kernel] : {std::tuple{"h200-sxm", std::int64_t{16}, "sm90_few_quantised"}, {"h200-sxm", std::int64_t{100}, "sm90_many_quantised"},
                                        {"h200-sxm", std::int64_t{8192}, "sm90_gemm"}, {"a100-80-sxm", std::int64_t{100}, "sm80_gemm"}}) {
        SCOPED_TRACE(testing::Message() << id << ' ' << m);
        const Machine machine = machine_by_id(id);
        const GemmProblem p = narrow_problem(m, 8192, 8192, m == 100 ? Type::fp8_e5m2 : Type::fp8_e4m3);
        const auto outcome = derive(machine, p), wide = derive(machine, packed_problem(m, 8192, 8192));
        const GemmPlan& plan = first_of(outcome);
        const bool unpacks = rounds_weights(plan);
        EXPECT_EQ(plan.config.kernel->name(), kernel);
        EXPECT_TRUE(plan.buildable && plan.config.pack_a) << plan.why_not;
        EXPECT_EQ(plan.config.pack_b, unpacks);
        EXPECT_EQ(plan.problem, p);
        EXPECT_EQ(*first_of(wide).prediction.moved_bytes - *plan.prediction.moved_bytes, m * 8192);
        EXPECT_GT(*plan.prediction.time_us, *first_of(wide).prediction.time_us);
        const auto& steps = plan.derivation.all();
        const auto widens = std::ranges::find_if(steps, [](const Step& s) { return s.quantity == "pack_a"; });
        ASSERT_NE(widens, steps.end());
        const auto workspace = std::ranges::find_if(widens->inputs, [](const Input& i) { return i.name == "workspace"; });
        ASSERT_NE(workspace, widens->inputs.end());
        EXPECT_EQ(workspace->value, 2 * m * 8192);
        EXPECT_NEAR(*steps.back().value, *plan.prediction.time_us, 1e-9 * *plan.prediction.time_us);
        const Problem problem{&gemm_operation(), Own::of(p)};
        const PlanSet set = gemm_plan_set(derive(machine, p));
        ASSERT_EQ(set.plans.front().launches.size(), 2u);
        EXPECT_EQ(set.plans.front().launches.front().kernel, unpacks ? "unpack_weights" : "widen_rows");
        const Given given = gemm_operation().given_of_config(gemm_operation().config_record(set.plans.front()));
        const PlanSet again = gemm_operation().derive(std::make_shared<const Machine>(machine), problem, gemm_operation().request(given, {}));
        ASSERT_FALSE(again.plans.empty());
        EXPECT_EQ(again.plans.front().own.as<GemmPlan>().config, plan.config);
        EXPECT_NEAR(*again.plans.front().time_us, *plan.prediction.time_us, 1e-9 * *plan.prediction.time_us);
    }
    GemmRequest off;
    off.pack_a = false;
    EXPECT_THAT(quantised_refusal(narrow_problem(16, 8192, 8192), off), HasSubstr("pack_a off: kernels of packed weights multiply no fp8_e4m3"));
}

// Types say which: of two operands of 8 bits B is packed where its groups are given.
TEST(Quantised, TypesOfEightBitsBesidePackedWeights) {
    const auto with = [](const char* types, const char* key = "k", const char* value = "256") {
        Given given = given_of({{"m", "3"}, {"n", "256"}, {"k", "256"}, {"types", types}});
        if (key != std::string_view("k")) given.add(key, value);
        return given;
    };
    const GemmProblem p = gemm_problem(with("fp8_e5m2,nf4,fp16"));
    EXPECT_TRUE(p.a_type == Type::fp8_e5m2 && p.b_type == Type::fp16 && p.c_type == Type::fp16 && p.quantised.weights == WeightType::nf4);
    EXPECT_EQ(gemm_problem(gemm_given(p)), p);
    EXPECT_FALSE(gemm_problem(with("fp8_e4m3,fp8_e4m3,bf16")).is_quantised());
    const GemmProblem floats = gemm_problem(with("fp8_e4m3,fp8_e4m3,bf16", "quant_group", "row"));
    EXPECT_TRUE(floats.quantised.weights == WeightType::fp8_e4m3 && floats.b_type == Type::bf16);
    EXPECT_EQ(gemm_problem(gemm_given(floats)), floats);
    EXPECT_EQ(quantised_refusal(floats), "");
    const auto refused = [&](const char* types, const char* key = "k", const char* value = "256") {
        try {
            gemm_problem(with(types, key, value));
        } catch (const RequestError& error) { return std::string(error.what()); }
        return std::string();
    };
    EXPECT_THAT(refused("fp8_e4m3,int4,fp32"), HasSubstr("the result is bf16 or fp16 so far, not fp32"));
    EXPECT_THAT(refused("fp8_e4m3,int4,fp8_e4m3"), HasSubstr("the result is bf16 or fp16 so far"));
    EXPECT_THAT(refused("fp8_e4m3,int4,bf16", "accumulation", "promoted"), HasSubstr("sums are fp32 as they are"));
    EXPECT_THAT(refused("fp32,int4,fp32"), HasSubstr("packed weights meet activations of bf16, fp16 or fp8"));
}

// Rows of 8 bits begin anywhere: the launch in front leaves them on whole lines.
TEST(Quantised, RowsOfEightBitsBeginAnywhere) {
    GemmProblem p = narrow_problem(9, 256, 256);
    p.lda = 257, p.a_offset = 3;
    EXPECT_EQ(quantised_refusal(p), "");
    GemmRequest gemm;
    gemm.kernel = find_gemm_kernel("sm90_gemm");
    EXPECT_EQ(quantised_refusal(p, gemm), "");
    p.a_major = Major::mn, p.lda = 9;
    EXPECT_THAT(quantised_refusal(p), HasSubstr("m-major"));
    EXPECT_EQ(quantised_refusal(p, {}, "a100-80-sxm"), "");
    GemmProblem groups = gemm_problem(given_of({{"n", "512"}, {"k", "512"}, {"types", "fp8_e4m3,int4,bf16"}, {"groups", "100,140"}}));
    EXPECT_EQ(quantised_refusal(groups), "");
}

// Without TMA the kernels of packed weights do not run: 2 * 4096^2 = 33,554,432 B are unpacked into the workspace, and multiplied from there.
TEST(Quantised, MachinesWithoutTmaMultiplyBehindUnpacking) {
    for (const char* id : {"a100-80-sxm", "l40s", "rtx4090", "b200"}) {
        SCOPED_TRACE(id);
        const Machine machine = machine_by_id(id);
        for (const std::int64_t m : {1, 48, 2048}) {
            const GemmProblem p = packed_problem(m, 4096, 4096);
            const auto outcome = derive(machine, p), plain = derive(machine, p.dequantised());
            const GemmPlan& plan = first_of(outcome);
            EXPECT_EQ(plan.config.kernel->name(), "sm80_gemm");
            EXPECT_TRUE(plan.buildable && plan.config.pack_b && !plan.config.programmatic_launch && rounds_weights(plan)) << plan.why_not;
            EXPECT_EQ(plan.problem, p);
            EXPECT_EQ(plan.resources.workspace_bytes, 33554432);
            EXPECT_GT(*plan.prediction.time_us, *first_of(plain).prediction.time_us);
            EXPECT_THAT(std::get<Plans>(outcome).notes, testing::AllOf(testing::Contains(HasSubstr("each is rounded to bf16")),
                                                                       testing::Contains(HasSubstr("normal weights rounded to the nearest"))));
            const auto& steps = plan.derivation.all();
            EXPECT_NE(std::ranges::find_if(steps, [](const Step& s) { return s.quantity == "pack_b"; }), steps.end());
            EXPECT_NEAR(*steps.back().value, *plan.prediction.time_us, 1e-9 * *plan.prediction.time_us);
            const Problem problem{&gemm_operation(), Own::of(p)};
            const PlanSet set = gemm_plan_set(derive(machine, p));
            const Given given = gemm_operation().given_of_config(gemm_operation().config_record(set.plans.front()));
            const PlanSet again = gemm_operation().derive(std::make_shared<const Machine>(machine), problem, gemm_operation().request(given, {}));
            ASSERT_FALSE(again.plans.empty());
            EXPECT_EQ(again.plans.front().own.as<GemmPlan>().config, plan.config);
            ASSERT_EQ(set.plans.front().launches.size(), 2u);
            EXPECT_EQ(set.plans.front().launches.front().kernel, "unpack_weights");
        }
    }
}

// Unpacked rows are 128 B aligned whatever K is: of an aligned A and K sm80_gemm copies 16 B at a time, of others the kernel of few rows is planned.
TEST(Quantised, BehindUnpackingRowsOfAMayBeginAnywhere) {
    GemmProblem p = packed_problem(5, 512, 516);
    p.lda = 517;
    const Machine a100 = machine_by_id("a100-80-sxm");
    EXPECT_EQ(first_of(derive(a100, p)).config.kernel->name(), "sm80_few_gemm");
    p.m = 100;
    const auto many = derive(a100, p);
    EXPECT_EQ(first_of(many).config.kernel->name(), "sm80_gemm");
    EXPECT_EQ(first_of(many).resources.workspace_bytes, 512 * 576 * 2);
    GemmRequest request;
    request.pack_b = true;
    EXPECT_EQ(quantised_refusal(p, request, "a100-80-sxm"), "");
    request.pack_b = false;
    EXPECT_THAT(quantised_refusal(p, request, "a100-80-sxm"), HasSubstr("pack_b off"));
    request.pack_b.reset(), request.kernel = find_gemm_kernel("sm80_few_gemm"), request.early_weights = true, p.m = 5;
    EXPECT_THAT(quantised_refusal(p, request), HasSubstr("B comes from the launch in front"));
    const GemmProblem groups = gemm_problem(given_of({{"n", "512"}, {"k", "512"}, {"types", "bf16,int4,bf16"}, {"groups", "100,140"}}));
    EXPECT_THAT(quantised_refusal(groups, {}, "a100-80-sxm"), HasSubstr("elsewhere launch the products one by one"));
}

// On Hopper they are planned where they are named, as sm90_gemm is.
TEST(Quantised, KernelsOfAmpereAreNamedOnHopper) {
    const Machine machine = machine_by_id("h200-sxm");
    for (const char* name : {"sm80_gemm", "sm80_few_gemm"}) {
        GemmRequest request;
        request.kernel = find_gemm_kernel(name);
        const GemmPlan plan = first_of(derive(machine, packed_problem(13, 4096, 4096), request));
        EXPECT_TRUE(plan.buildable && plan.config.pack_b && rounds_weights(plan)) << plan.why_not;
        EXPECT_EQ(plan.config.kernel->name(), name);
    }
    GemmRequest all;
    all.top = max_gemm_plans;
    for (const std::int64_t m : {13, 100, 4096}) {
        const auto outcome = derive(machine, packed_problem(m, 4096, 4096), all);
        for (const GemmPlan& plan : std::get<Plans>(outcome).plans) EXPECT_TRUE(plan.config.kernel->name().starts_with("sm90")) << plan.config.kernel->name();
    }
}

// From 17 rows on both kernels are planned, from 65 on that of many alone; whichever is named is taken.
TEST(Quantised, HasAKernelOfManyRows) {
    const Machine machine = machine_by_id("h200-sxm");
    const auto kernels = [&](std::int64_t m, const GemmRequest& request = {}) {
        std::set<std::string> names;
        const auto outcome = derive(machine, packed_problem(m, 8192, 8192), request);
        if (const auto* plans = std::get_if<Plans>(&outcome))
            for (const GemmPlan& plan : plans->plans) {
                names.insert(std::string(plan.config.kernel->name()));
                EXPECT_TRUE(plan.buildable) << plan.why_not;
            }
        return names;
    };
    GemmRequest all;
    all.top = max_gemm_plans;
    EXPECT_EQ(kernels(16, all), std::set<std::string>({"sm90_few_quantised"}));
    EXPECT_EQ(kernels(17, all), std::set<std::string>({"sm90_few_quantised", "sm90_many_quantised"}));
    EXPECT_EQ(kernels(65, all), std::set<std::string>({"sm90_many_quantised"}));
    GemmRequest named;
    named.kernel = find_gemm_kernel("sm90_many_quantised");
    EXPECT_EQ(kernels(1, named), std::set<std::string>({"sm90_many_quantised"}));
    named.order = Order::hilbert;
    EXPECT_THAT(quantised_refusal(packed_problem(300, 256, 256), named), HasSubstr("by row, column or grouped"));
    named = {}, named.kernel = find_gemm_kernel("sm90_many_quantised"), named.tile_n = 256;
    EXPECT_THAT(quantised_refusal(packed_problem(300, 256, 256), named), HasSubstr("tile_n = 256: each consumer warpgroup has 64 columns"));
    named.tile_n.reset(), named.tile_m = 192;
    EXPECT_THAT(quantised_refusal(packed_problem(300, 256, 256), named), HasSubstr("in steps of 32 up to 160"));
    EXPECT_EQ(quantised_refusal(packed_problem(300, 256, 256, {.weights = WeightType::int4, .group = 0}), named), "");
}

// 64 columns of tiles of 128 by 16 rows of 128: 1024 tiles, of which each of 132 CTAs has 7 whole, and of the 100 that are left 64 units each come to
// ceil(6400 / 132) = 49: 7 * 64 + 49 = 497 units.
TEST(Quantised, ManyRowsTakeWholeTilesAndShareTheRest) {
    GemmRequest request;
    request.kernel = find_gemm_kernel("sm90_many_quantised");
    request.tile_m = 128, request.tile_n = 128;
    const auto outcome = derive(machine_by_id("h200-sxm"), packed_problem(2048, 8192, 8192), request);
    const GemmPlan& plan = first_of(outcome);
    EXPECT_EQ(plan.resources.grid_ctas, 132);
    const auto& steps = plan.derivation.all();
    const auto units = std::ranges::find_if(steps, [](const Step& s) { return s.quantity == "units_a_cta"; });
    ASSERT_NE(units, steps.end());
    EXPECT_EQ(*units->value, 497);
    // A counter a CTA and warpgroup, 4 B each, in whole lines; two tiles of fp32 a CTA.
    EXPECT_EQ(plan.resources.workspace_bytes, 1152 + 2 * 132 * 128 * 128 * 4);
    // 2 * 2048 * 8192^2 FLOP at 4096 a cycle of 132 SMs: at least that.
    EXPECT_GT(*plan.prediction.time_us, 2.0 * 2048 * 8192 * 8192 / (4096.0 * 132 * 1.98e9) * 1e6);
}

// A band of 4 rows of tiles is 4 of them whatever else; by row one, by column all.
TEST(Quantised, BandsOfTilesAreTheOrder) {
    GemmConfig c;
    c.tile_m = 128, c.group = 4;
    c.order = Order::grouped;
    EXPECT_EQ(quantised_band(c, 2048), 4);
    EXPECT_EQ(quantised_band(c, 300), 3);
    c.order = Order::row;
    EXPECT_EQ(quantised_band(c, 2048), 1);
    c.order = Order::column;
    EXPECT_EQ(quantised_band(c, 2048), 16);
}

TEST(Quantised, ManyRowsTakeTimeForWhatGroupsCost) {
    const auto time = [](QuantisedLayout layout) {
        GemmRequest request;
        request.kernel = find_gemm_kernel("sm90_many_quantised");
        return *first_of(derive(machine_by_id("h200-sxm"), packed_problem(4096, 8192, 8192, layout), request)).prediction.time_us;
    };
    const double row = time({.weights = WeightType::int4, .group = 0}), coarse = time({.weights = WeightType::int4, .group = 128}),
                 fine = time({.weights = WeightType::int4, .group = 32}),
                 with_reals = time({.weights = WeightType::int4, .group = 32, .zeros = ZeroType::real});
    EXPECT_LE(row, coarse);
    EXPECT_LT(coarse, fine);
    EXPECT_LT(fine, with_reals);
}

// Of every plan: what it says fits, and its time is no less than its bytes at DRAM's rate.
TEST(Quantised, PlansOfDrawnProblemsFit) {
    Random random(11);
    const Machine machine = machine_by_id("h200-sxm");
    const double rate = 4.2e12;
    for (int i = 0; i < 60; ++i) {
        const GemmProblem p = drawn_quantised_expressed(random, 30000, 16000, i % 2 == 0 ? 64 : 4096);
        const auto outcome = derive(machine, p);
        ASSERT_TRUE(std::holds_alternative<Plans>(outcome)) << std::get<Infeasible>(outcome).message;
        for (const GemmPlan& plan : std::get<Plans>(outcome).plans) {
            if (rounds_weights(plan)) {
                EXPECT_LE(*plan.resources.shared_bytes, 232448);
                EXPECT_GE(plan.resources.workspace_bytes, 2 * p.n * p.k);
            } else if (takes_many_rows(plan.config)) {
                const Sm90ManyQuantisedConfig c = many_quantised_config(plan);
                EXPECT_LE(c.shared_bytes(), 232448);
                EXPECT_EQ(c.shared_bytes(), *plan.resources.shared_bytes);
                EXPECT_LE(c.registers(), c.consumer_registers);
                EXPECT_LE(128 * (c.producer_registers + c.warpgroups() * c.consumer_registers), 65536);
            } else {
                const Sm90QuantisedConfig c = quantised_config(p, plan.config);
                EXPECT_LE(c.shared_bytes() * c.ctas_per_sm, 233472);
                EXPECT_EQ(c.shared_bytes(), *plan.resources.shared_bytes);
                EXPECT_GE(c.tile_m, p.m);
            }
            EXPECT_GT(*plan.prediction.time_us, p.b_matrix_bytes() / rate * 1e6);
            EXPECT_FALSE(plan.derivation.all().empty());
            EXPECT_NEAR(*plan.derivation.all().back().value, *plan.prediction.time_us,
                        1e-9 * *plan.prediction.time_us);
        }
    }
}

}  // namespace
}  // namespace rooftile
