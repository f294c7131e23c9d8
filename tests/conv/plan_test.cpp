// Convolutions' plans: what is refused, what an image's product counts, and what kernels make of a place and a tap.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>

#include "kernels/matrix/image_arguments.hpp"
#include "rooftile/conv/derivation.hpp"
#include "rooftile/conv/draw.hpp"
#include "rooftile/conv/fields.hpp"
#include "rooftile/conv/operation.hpp"
#include "rooftile/core/plan_range.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "tests/core/example.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

constexpr const char* body = "--batch 4 --channels 64 --height 56 --width 56 --filters 128 --kernel-size 3x3 --padding 1";

std::string refusal_of(const std::string& line) {
    try {
        conv_problem(given_of(conv_operation(), line));
    } catch (const RequestError& error) { return error.what(); }
    return "none";
}

PlanSet plans_of(const std::string& line, const char* machine = "h200-sxm", std::string_view set = "") {
    Machine m = machine_by_id(machine);
    if (!set.empty()) set_number(m, set);
    const Given given = given_of(conv_operation(), line);
    return conv_operation().derive(std::make_shared<const Machine>(m), conv_operation().problem(given), conv_operation().request(given, {}));
}

TEST(ConvFields, WhatCannotBeIsRefusedByName) {
    EXPECT_THAT(refusal_of("--channels 64 --filters 8 --kernel-size 3"), HasSubstr("missing --width"));
    EXPECT_THAT(refusal_of("--channels 64 --width 8 --filters 8"), HasSubstr("missing --kernel-size"));
    EXPECT_THAT(refusal_of("--channels 64 --width 8 --filters 8 --kernel-size 3x3"), HasSubstr("the image has 1 axis"));
    EXPECT_THAT(refusal_of("--channels 64 --width 8 --height 8 --filters 8 --kernel-size 9"), HasSubstr("empty along the width"));
    EXPECT_THAT(refusal_of("--channels 64 --width 8 --height 8 --filters 8 --kernel-size 3x3 --layout cnhw"), HasSubstr("nchw"));
    EXPECT_THAT(refusal_of("--channels 64 --width 8 --height 8 --filters 8 --kernel-size 3x3 --groups 3"), HasSubstr("groups must divide"));
    EXPECT_THAT(refusal_of("--channels 64 --width 8 --depth 8 --filters 8 --kernel-size 3"), HasSubstr("missing --height"));
    EXPECT_THAT(refusal_of("--batch 65536 --channels 8 --width 65536 --filters 8 --kernel-size 1"), HasSubstr("2^31"));
    EXPECT_THAT(refusal_of(std::string(body) + " --epilogue relu(acc)"), HasSubstr("epilogue"));
}

TEST(ConvFields, WhatImageLoadsCannotAddressIsRefusedByName) {
    const auto refused = [](const std::string& line) {
        const PlanSet set = plans_of(line + " --kernel sm90_gemm");
        return set.refusal ? set.refusal->message : "planned";
    };
    EXPECT_THAT(refused("--channels 8 --height 99 --width 99 --filters 64 --kernel-size 3 --stride 9"), HasSubstr("stride"));
    EXPECT_THAT(refused("--channels 8 --height 99 --width 999 --filters 64 --kernel-size 3 --dilation 1x200"), HasSubstr("along width"));
    EXPECT_THAT(refused("--channels 8 --depth 99 --height 9 --width 9 --filters 64 --kernel-size 3 --dilation 17x1x1 --padding 17x0x0"), HasSubstr("along depth"));
    EXPECT_THAT(refused("--channels 8 --height 9 --width 9 --filters 64 --kernel-size 1 --padding 129"), HasSubstr("padding"));
    EXPECT_EQ(refused(body), "planned");
    EXPECT_THAT(plans_of(std::string(body) + " --kernel sm90_gemm", "a100-80-sxm").refusal->message, HasSubstr("wgmma"));
}

std::string loads_of(const PlanSet& set) {
    return set.plans.empty() ? set.refusal->message : find_as<std::string>(conv_operation().config_record(set.plans[0]), "loads").value_or("none");
}

// Pixels are gathered where there is no copy engine, where it cannot have the image, and where half of its steps would be empty; by request anywhere.
TEST(ConvPlan, GathersWhatTheCopyEngineHasNot) {
    EXPECT_EQ(loads_of(plans_of(body)), "im2col");
    EXPECT_EQ(loads_of(plans_of(std::string(body) + " --kernel sm80_gemm")), "gather");
    for (const char* machine : {"a100-80-sxm", "a40", "l40s", "rtx4090"}) EXPECT_EQ(loads_of(plans_of(body, machine)), "gather");
    EXPECT_EQ(loads_of(plans_of("--channels 40 --height 99 --width 99 --filters 64 --kernel-size 3 --stride 9")), "gather");
    const std::string few = "--batch 32 --channels 16 --height 56 --width 56 --filters 64 --kernel-size 3 --padding 1";
    EXPECT_EQ(loads_of(plans_of(few)), "gather");
    EXPECT_EQ(loads_of(plans_of(few + " --kernel sm90_gemm")), "im2col");
    EXPECT_EQ(loads_of(plans_of(few + " --cluster 2x1")), "im2col");
    EXPECT_EQ(loads_of(plans_of("--batch 32 --channels 16 --height 56 --width 56 --filters 1280 --kernel-size 1")), "im2col");
}

TEST(ConvFields, WhatGatheredLoadsCannotAddressIsRefusedByName) {
    EXPECT_THAT(loads_of(plans_of("--channels 8 --height 99 --width 99 --filters 64 --kernel-size 16 --kernel sm80_gemm")), HasSubstr("taps along the axes are 33"));
    EXPECT_EQ(loads_of(plans_of("--channels 8 --height 99 --width 99 --filters 64 --kernel-size 15 --kernel sm80_gemm")), "gather");
    EXPECT_THAT(loads_of(plans_of("--batch 64 --channels 512 --height 1024 --width 1024 --filters 8 --kernel-size 1 --stride 2 --kernel sm80_gemm")), HasSubstr("fewer than 2^31"));
}

// A step has several taps where channels are few, so that the last alone is not full; what documents say of it names it again.
TEST(ConvPlan, GatheredStepsGoOverTaps) {
    const std::string line = "--batch 8 --channels 24 --height 28 --width 28 --filters 96 --kernel-size 3 --padding 1 --kernel sm80_gemm";
    const PlanSet set = plans_of(line + " --tile 128x64x64");
    ASSERT_FALSE(set.plans.empty()) << set.refusal->message;
    const Record config = conv_operation().config_record(set.plans[0]);
    EXPECT_EQ(find_as<std::int64_t>(config, "taps_per_step"), 3);
    int counted = 0;
    for (const Step& step : set.plans[0].derivation)
        if (step.quantity == "k") {
            EXPECT_THAT(step.limit, HasSubstr("4 steps, 84.4 % of each filled"));
            ++counted;
        }
    EXPECT_EQ(counted, 1);
    const Given given = conv_operation().given_of_config(config);
    EXPECT_EQ(given.text("kernel"), "sm80_gemm");
    std::string again = "--batch 8 --channels 24 --height 28 --width 28 --filters 96 --kernel-size 3 --padding 1";
    for (const Field& field : conv_fields())
        if (given.has(field.key)) again += " " + flag_of(field.key) + " " + given.text(field.key);
    const PlanSet one = plans_of(again);
    ASSERT_FALSE(one.plans.empty()) << again;
    EXPECT_EQ(conv_operation().config_record(one.plans[0]), config);
    EXPECT_EQ(one.plans[0].time_us, set.plans[0].time_us);
}

/// Pixels, pairs and most uses by the definition.
void expect_counts(const ImageAxis& axis) {
    std::set<std::int64_t> met;
    std::map<std::int64_t, std::int64_t> uses;
    std::int64_t places = 0, pairs = 0;
    for (std::int64_t first = -axis.padding; first + axis.reach() < axis.extent + axis.padding; first += axis.stride, ++places)
        for (std::int64_t tap = 0; tap < axis.taps; ++tap)
            if (const std::int64_t at = first + tap * axis.dilation; at >= 0 && at < axis.extent) met.insert(at), ++pairs, ++uses[at];
    SCOPED_TRACE(testing::Message() << axis.extent << " pixels, " << axis.taps << " taps, stride " << axis.stride << ", padding " << axis.padding << ", dilation "
                                    << axis.dilation);
    EXPECT_EQ(axis.places(), places);
    if (places == 0) return;
    EXPECT_EQ(axis.pixels_read(), std::int64_t(met.size()));
    EXPECT_EQ(axis.pairs_inside(), pairs);
    for (const auto& [pixel, count] : uses) EXPECT_LE(count, axis.most_uses());
}

TEST(ConvImage, CountsAreThoseOfTheDefinition) {
    Random random(test_seed());
    for (int i = 0; i < 3000; ++i)
        expect_counts({.extent = random.whole(1, 40), .taps = random.whole(1, 7), .stride = random.whole(1, 9), .padding = random.whole(0, 12),
                       .dilation = random.whole(1, 6)});
    // Taps farther apart than places reach, strides that share a factor with them, filters as long as the image.
    for (int i = 0; i < 300; ++i)
        expect_counts({.extent = random.whole(1, 600), .taps = random.whole(1, 60), .stride = random.whole(1, 70), .padding = random.whole(0, 200), .dilation = random.whole(1, 90)});
}

// Some 2^31 pixels: filters of 3 taps at every seventh pixel, of which the first lacks the pixel of padding.
TEST(ConvImage, CountsTakeNoTimeByPixels) {
    constexpr std::int64_t windows = 306783378;  // of 7 pixels: 2^31 - 2 in all
    const ImageAxis axis{.extent = 7 * windows - 1, .taps = 3, .stride = 7, .padding = 1};
    EXPECT_EQ(axis.places(), windows);
    EXPECT_EQ(axis.pixels_read(), 3 * windows - 1);
    EXPECT_EQ(axis.pairs_inside(), 3 * windows - 1);
    const ImageAxis far{.extent = 2'000'000'000, .taps = 2, .stride = 2, .dilation = 999'999'999};
    EXPECT_EQ(far.pixels_read(), 2 * far.places());
}

// What a load names for a place, a tap and a block of K is the pixel and the channels of the definition.
TEST(ConvImage, LoadsNameThePixelsOfTheDefinition) {
    Random random(test_seed());
    for (int i = 0; i < 200; ++i) {
        ImageOperand image{.images = random.whole(1, 3), .channels = 8 * random.whole(1, 30)};
        for (ImageAxis& axis : image.axes)
            axis = {.extent = random.whole(1, 9), .taps = random.whole(1, 3), .stride = random.whole(1, 3), .padding = random.whole(1, 3), .dilation = random.whole(1, 2)};
        if (image.rows() == 0) continue;
        ImageArguments arguments{};
        for (std::size_t a = 0; a < 3; ++a) {
            const ImageAxis& axis = image.axes[a];
            arguments.axes[a] = {divider(unsigned(axis.places())), divider(unsigned(axis.taps)), int(axis.stride), int(axis.padding), int(axis.dilation)};
        }
        const int tile_k = random.coin() ? 64 : 128;
        const std::int64_t blocks = (image.channels + tile_k - 1) / tile_k;
        arguments.channel_blocks = divider(unsigned(blocks));
        const auto place = std::uint64_t(random.whole(0, image.rows() - 1)), block = std::uint64_t(random.whole(0, image.blocks(tile_k) - 1));
        int pixel[4];
        unsigned short offset[3];
        // From any block before it, one after the other.
        ImageBlock<3> at(arguments, unsigned(random.whole(0, std::int64_t(block))), tile_k);
        const auto number = [&](const ImageBlock<3>& of) { return of.tap * std::uint64_t(blocks) + std::uint64_t(of.channel / tile_k); };
        while (number(at) < block) at.advance(arguments, tile_k);
        arguments.first_pixel<3>(unsigned(place), pixel);
        at.offset(arguments, offset);
        std::uint64_t left = place, tap = block / std::uint64_t(blocks);
        EXPECT_EQ(at.channel, int(block % std::uint64_t(blocks)) * tile_k);
        for (std::size_t a = 0; a < 3; ++a) {
            const ImageAxis& axis = image.axes[a];
            const std::int64_t expected = std::int64_t(left % std::uint64_t(axis.places())) * axis.stride - axis.padding
                                          + std::int64_t(tap % std::uint64_t(axis.taps)) * axis.dilation;
            EXPECT_EQ(pixel[a] + offset[a], expected);
            left /= std::uint64_t(axis.places()), tap /= std::uint64_t(axis.taps);
        }
        EXPECT_EQ(pixel[3], int(left));
        // A first pixel is between the corners of the tensor map, and a tap no further than a load of three axes takes: else the load is illegal.
        for (std::int64_t each = 0; each < image.rows(); ++each) {
            arguments.first_pixel<3>(unsigned(each), pixel);
            for (std::size_t a = 0; a < 3; ++a) {
                EXPECT_GE(pixel[a], -image.axes[a].padding);
                EXPECT_LE(pixel[a], image.axes[a].extent - 1 + image.axes[a].padding - image.axes[a].reach());
            }
            EXPECT_LT(pixel[3], image.images);
        }
        for (std::int64_t each = 0; each < image.taps(); ++each) {
            ImageBlock<3>(arguments, unsigned(each * blocks), tile_k).offset(arguments, offset);
            for (std::size_t a = 0; a < 3; ++a) EXPECT_LE(offset[a], std::min<std::int64_t>(31, image.axes[a].reach()));
        }
        // One beyond the end: the last tap's channels, past the last.
        const ImageBlock<3> beyond(arguments, unsigned(image.blocks(tile_k)), tile_k);
        EXPECT_EQ(beyond.tap, unsigned(image.taps() - 1));
        EXPECT_GE(beyond.channel, image.channels);
        ImageBlock<3> last(arguments, unsigned(image.blocks(tile_k)) - 1, tile_k);
        last.advance(arguments, tile_k);
        EXPECT_EQ(last.tap, beyond.tap);
        EXPECT_EQ(last.channel, beyond.channel);
    }
}

// Counted on from any place by any step they are those that divisions find.
TEST(ConvImage, PlacesAreCountedOn) {
    Random random(test_seed());
    for (int i = 0; i < 200; ++i) {
        ImageArguments image{};
        std::uint64_t rows = std::uint64_t(random.whole(1, 5));
        for (ImageArguments::Axis& axis : image.axes) {
            const auto places = unsigned(random.coin() ? random.whole(1, 5) : random.whole(1, 300));
            axis = {divider(places), divider(1), int(random.whole(1, 3)), int(random.whole(0, 4)), 1};
            rows *= places;
        }
        const auto step = unsigned(random.whole(1, 200));
        auto place = std::uint64_t(random.whole(0, std::int64_t(rows) - 1));
        ImagePlace<3> at(image, unsigned(place));
        image.step_by(step);
        for (int steps = 0; steps < 20; ++steps, place += step) {
            int counted[4], found[4];
            at.pixel(image, counted), image.first_pixel<3>(unsigned(place), found);
            EXPECT_TRUE(std::ranges::equal(counted, found)) << place;
            at.advance(image);
        }
    }
}

// With the image on the right a tile's boxes, from its first column on, are of the tap and the channels that columns are of; beyond the last of zeros.
TEST(ConvImage, BoxesOfColumnsAreOfTheirTaps) {
    Random random(test_seed());
    constexpr int box = 64;
    for (int i = 0; i < 300; ++i) {
        ImageArguments image{};
        std::int64_t taps = 1;
        for (ImageArguments::Axis& axis : image.axes) {
            const std::int64_t of_axis = random.whole(1, 4);
            axis = {divider(9), divider(unsigned(of_axis)), 1, 0, int(random.whole(1, 3))};
            taps *= of_axis;
        }
        const std::int64_t blocks = random.whole(1, 5), channels = blocks * box, n = taps * channels, tile = box * random.whole(1, 4);
        image.channel_blocks = divider(unsigned(blocks));
        std::int64_t column = random.whole(0, n / tile + 1) * tile;
        ImageBlock<3> at(image, unsigned(column / box), box);
        for (const std::int64_t end = column + tile; column < end; column += box, at.advance(image, box)) {
            unsigned short offset[3];
            at.offset(image, offset);
            for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_LE(offset[axis], (image.axes[axis].taps.divisor - 1) * unsigned(image.axes[axis].dilation));
            if (column >= n) {
                EXPECT_GE(at.channel, channels);
                continue;
            }
            EXPECT_EQ(at.tap, unsigned(column / channels));
            EXPECT_EQ(at.channel, column % channels);
            std::int64_t left = column / channels;
            for (std::size_t axis = 0; axis < 3; left /= image.axes[axis].taps.divisor, ++axis)
                EXPECT_EQ(offset[axis], left % image.axes[axis].taps.divisor * unsigned(image.axes[axis].dilation));
        }
    }
}

constexpr const char* gradient_body = "--batch 4 --channels 64 --height 56 --width 28 --filters 128 --kernel-size 3x5 --padding 1x2 --gradient ";

// By hand: x is 4 x 56 x 28 x 64, dy 4 x 56 x 28 x 128 and w 128 x 15 x 64, of 2 B each.
TEST(ConvGradient, ProductsAreThoseOfTheDefinition) {
    const auto product = [](const std::string& line) {
        const Record p = *find_as<Record>(conv_operation().prediction_record(plans_of(line).plans.at(0)), "product");
        const auto number = [&](const char* key) { return find_as<std::int64_t>(p, key).value_or(0); };
        return std::array{number("m"), number("n"), number("k")};
    };
    constexpr std::int64_t pixels = 4 * 56 * 28;
    constexpr double x = 2.0 * pixels * 64, dy = 2.0 * pixels * 128, w = 2.0 * 128 * 15 * 64;
    EXPECT_EQ(product(gradient_body + std::string("data")), (std::array<std::int64_t, 3>{pixels, 64, 15 * 128}));
    EXPECT_EQ(product(gradient_body + std::string("weights")), (std::array<std::int64_t, 3>{128, 15 * 64, pixels}));
    // Every other row and column is a place.
    EXPECT_EQ(product(gradient_body + std::string("weights --stride 2")), (std::array<std::int64_t, 3>{128, 15 * 64, pixels / 4}));
    for (const char* gradient : {"data", "weights"}) {
        const std::string line = gradient_body + std::string(gradient);
        const PlanSet set = plans_of(line);
        const ConvProblem& p = set.problem.own.as<ConvProblem>();
        EXPECT_EQ(p.least_bytes(), x + dy + w);
        double bytes = 0;
        for (const TensorInfo& tensor : conv_operation().tensors(set.problem)) bytes += double(spanned_elements(tensor)) * tensor.element_bits / 8;
        EXPECT_EQ(p.least_bytes(), bytes);
        const Demand demand = conv_operation().demand(machine_by_id("h200-sxm"), set.plans.at(0));
        double once = 0;
        for (const TensorTraffic& tensor : demand.tensors) once += tensor.footprint_bytes;
        EXPECT_NEAR(once, bytes, 1);
        EXPECT_EQ(demand.tensors[0].tensor, "dy");
        EXPECT_EQ(demand.tensors[1].tensor, p.gradient == ConvGradient::data ? "w" : "x");
        EXPECT_EQ(demand.tensors[2].tensor, p.gradient == ConvGradient::data ? "dx" : "dw");
        EXPECT_EQ(p.flops(), 2.0 * double(p.m()) * double(p.n()) * double(p.k()));
        // 15 taps read each pixel: of data for each column of tiles, of weights for each row of them.
        const Record record = conv_operation().prediction_record(set.plans[0]);
        EXPECT_EQ(find_as<std::int64_t>(record, "unrolled_bytes"), 15 * std::int64_t(p.gradient == ConvGradient::data ? dy : x));
        EXPECT_EQ(find_as<std::int64_t>(record, "image_bytes"), std::int64_t(p.gradient == ConvGradient::data ? dy : x));
        EXPECT_GE(*find_as<std::int64_t>(record, "l2_bytes"), std::int64_t(bytes));
    }
}

// dx of the convolution is a convolution of dy, places for pixels, whose padding is what the filter reaches beyond x's.
TEST(ConvGradient, OfDataIsAConvolutionOfTheGradient) {
    const ConvProblem p = conv_problem(given_of(conv_operation(), "--channels 64 --height 30 --width 9 --filters 128 --kernel-size 3x5 --padding 0x3 --dilation 2x1 --gradient data"));
    const ImageOperand image = p.filtered();
    EXPECT_EQ(image.channels, 128);
    EXPECT_EQ(image.axes[1], (ImageAxis{.extent = 26, .taps = 3, .stride = 1, .padding = 4, .dilation = 2}));
    EXPECT_EQ(image.axes[0], (ImageAxis{.extent = 11, .taps = 5, .stride = 1, .padding = 1}));
    EXPECT_EQ(image.axes[1].places(), 30);
    EXPECT_EQ(image.axes[0].places(), 9);
}

TEST(ConvGradient, WhatIsNotPlannedIsRefusedByName) {
    const std::string data = gradient_body + std::string("data"), weights = gradient_body + std::string("weights");
    EXPECT_THAT(refusal_of(data + " --stride 1x2"), HasSubstr("along the width the stride is 2"));
    EXPECT_THAT(refusal_of("--channels 64 --width 28 --filters 64 --kernel-size 3 --padding 3 --gradient data"), HasSubstr("the padding is 3, more than the 2"));
    EXPECT_THAT(refusal_of("--channels 60 --width 28 --filters 64 --kernel-size 3 --gradient data"), HasSubstr("channels are 60"));
    EXPECT_THAT(refusal_of("--channels 64 --width 28 --filters 60 --kernel-size 3 --gradient weights"), HasSubstr("filters are 60"));
    EXPECT_THAT(refusal_of("--channels 72 --width 28 --filters 64 --kernel-size 3 --gradient weights"), HasSubstr("fill x up to 128"));
    for (const std::string& line : {data, weights}) {
        EXPECT_THAT(refusal_of(line + " --groups 2"), HasSubstr("groups are 2"));
        EXPECT_EQ(refusal_of(line + " --groups 1"), "none");
        EXPECT_THAT(refusal_of(line + " --layout nchw"), HasSubstr("leave the layout off"));
        EXPECT_THAT(refusal_of(line + " --epilogue \"y = relu(acc)\""), HasSubstr("an epilogue is of the convolution itself"));
        EXPECT_THAT(plans_of(line + " --kernel sm80_gemm").refusal->message, HasSubstr("sm90_gemm's so far"));
        EXPECT_THAT(plans_of(line, "a100-80-sxm").refusal->message, HasSubstr("sm90_gemm's so far"));
        EXPECT_THAT(plans_of(line + " --vector 4").refusal->message, HasSubstr("--vector is of direct convolutions"));
    }
    EXPECT_THAT(plans_of(weights + " --early-weights on").refusal->message, HasSubstr("B is the image"));
    EXPECT_THAT(plans_of(weights + " --stride 9").refusal->message, HasSubstr("the stride is 9"));
    EXPECT_THAT(refusal_of("--channels 64 --width 28 --filters 64 --kernel-size 3 --gradient bias"), HasSubstr("weights"));
}

// No plan moves less than its bounds; what documents say of one names it again.
TEST(ConvGradient, DrawnOnesKeepTheirBounds) {
    Random random(test_seed());
    for (const char* law : {"data", "weights"})
        for (int i = 0; i < (test_all() ? 100 : 8); ++i) {
            const Problem problem = conv_operation().draw(random, {.law = law});
            SCOPED_TRACE(conv_operation().short_name(problem));
            const PlanSet set = conv_operation().derive(std::make_shared<const Machine>(machine_by_id("h100-sxm")), problem, conv_operation().request(Given(Given::Named::by_key), {.top = 2}));
            ASSERT_FALSE(set.plans.empty()) << set.refusal->message;
            EXPECT_EQ(conv_operation().traits(problem).law, law);
            EXPECT_EQ(conv_operation().given(conv_operation().problem(conv_operation().given_of_record(conv_operation().problem_record(problem)))).text(), conv_operation().given(problem).text());
            for (const Plan& plan : set.plans) {
                const Record p = conv_operation().prediction_record(plan);
                const auto number = [&](std::string_view key) { return double(find_as<std::int64_t>(p, key).value_or(-1)); };
                EXPECT_GE(number("dram_bytes") * 1.000001, number("dram_lower_bound_bytes"));
                EXPECT_GE(number("l2_bytes") * 1.000001, number("l2_lower_bound_bytes"));
                EXPECT_GE(number("dram_bytes") * 1.000001, problem.own.as<ConvProblem>().least_bytes());
                EXPECT_FALSE(plan.derivation.all().empty());
                const Given fixed = conv_operation().given_of_config(conv_operation().config_record(plan));
                const PlanSet again = conv_operation().derive(std::make_shared<const Machine>(machine_by_id("h100-sxm")), problem, conv_operation().request(fixed, {.top = 1}));
                ASSERT_EQ(again.plans.size(), 1u);
                EXPECT_EQ(conv_operation().config_record(again.plans[0]), conv_operation().config_record(plan));
            }
        }
}

// Whatever sizes are asked for: one axis to three, odd sides, few places, narrow sides of the product.
TEST(ConvGradient, AnySizesArePlanned) {
    Random random(test_seed());
    int planned = 0;
    while (planned < (test_all() ? 400 : 24)) {
        ConvProblem p;
        p.gradient = random.coin() ? ConvGradient::data : ConvGradient::weights;
        const bool data = p.gradient == ConvGradient::data;
        p.axes = int(random.whole(1, 3));
        p.image.images = random.whole(1, 5), p.filters = 8 * random.whole(1, 40), p.image.channels = data ? 8 * random.whole(1, 30) : 64 * random.whole(1, 4);
        p.type = random.coin() ? "bf16" : "fp16";
        for (int i = 0; i < p.axes; ++i) {
            ImageAxis& axis = p.image.axes[std::size_t(i)];
            axis = {.extent = random.whole(1, i == 2 ? 9 : 40), .taps = random.whole(1, 5), .stride = data ? 1 : random.whole(1, 4), .dilation = random.whole(1, 3)};
            axis.padding = random.whole(0, data ? axis.reach() : 6);
        }
        if (p.image.rows() == 0 || !image_load_obstacle(p.filtered(), 2).empty()) continue;
        complete(p);
        SCOPED_TRACE(short_name(p));
        const PlanSet set = conv_operation().derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), {&conv_operation(), Own::of(p)},
                                                    conv_operation().request(Given(Given::Named::by_key), {.top = 3, .buildable_only = true}));
        ASSERT_FALSE(set.plans.empty()) << set.refusal->message;
        EXPECT_GT(set.plans[0].time_us.value_or(0), 0);
        // Of data the places are counted back to the pixels that they were made of.
        EXPECT_EQ(p.filtered().rows(), data ? p.image.pixels() : p.image.rows());
        ++planned;
    }
}

// A filter of one tap has the products of a matrix: those of data of dy and w, those of weights of dy, turned, and x.
TEST(ConvGradient, OfOneTapIsTheProducts) {
    const auto time = [](const Operation& operation, const std::string& line) {
        const Given given = given_of(operation, line);
        return *operation.derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), operation.problem(given), operation.request(given, {})).plans.at(0).time_us;
    };
    const std::string conv = "--batch 8 --channels 256 --height 56 --width 56 --filters 128 --kernel-size 1 --gradient ";
    const Operation& products = *image_products().operation;
    EXPECT_NEAR(time(conv_operation(), conv + "data"), time(products, "--m 25088 --n 256 --k 128 --b-major n"), 0.01 * time(products, "--m 25088 --n 256 --k 128 --b-major n"));
    EXPECT_NEAR(time(conv_operation(), conv + "weights"), time(products, "--m 128 --n 256 --k 25088 --a-major m --b-major n"), 0.03 * time(products, "--m 128 --n 256 --k 25088 --a-major m --b-major n"));
}

double value_of_step(const Plan& plan, std::string_view quantity) {
    const std::vector<Step>& steps = plan.derivation;
    return std::ranges::find(steps, quantity, &Step::quantity)->value.value_or(-1);
}

// A convolution of one tap is a matrix product, and planned as one.
TEST(ConvPlan, OfOneTapIsTheProducts) {
    const PlanSet conv = plans_of("--batch 8 --channels 256 --height 56 --width 56 --filters 128 --kernel-size 1");
    const Operation& products = *image_products().operation;
    const Given given = given_of(products, "--m 25088 --n 128 --k 256");
    const PlanSet product = products.derive(std::make_shared<const Machine>(machine_by_id("h200-sxm")), products.problem(given), products.request(given, {}));
    ASSERT_FALSE(conv.plans.empty() || product.plans.empty());
    EXPECT_NEAR(*conv.plans[0].time_us, *product.plans[0].time_us, 0.01 * *product.plans[0].time_us);
}

// No plan moves less than its bounds; a dilated filter takes what a dense one does.
TEST(ConvPlan, KeepsItsBounds) {
    Random random(test_seed());
    for (int i = 0; i < (test_all() ? 200 : 12); ++i) {
        const Problem problem{&conv_operation(), Own::of(drawn_conv(random))};
        SCOPED_TRACE(conv_operation().short_name(problem));
        const PlanSet set = conv_operation().derive(std::make_shared<const Machine>(machine_by_id("h100-sxm")), problem,
                                                    conv_operation().request(Given(Given::Named::by_key), {.top = 2}));
        ASSERT_FALSE(set.plans.empty()) << set.refusal->message;
        for (const Plan& plan : set.plans) {
            const Record p = conv_operation().prediction_record(plan);
            const auto number = [&](std::string_view key) { return double(find_as<std::int64_t>(p, key).value_or(-1)); };
            EXPECT_GE(number("dram_bytes") * 1.000001, number("dram_lower_bound_bytes"));
            EXPECT_GE(number("l2_bytes") * 1.000001, number("l2_lower_bound_bytes"));
            EXPECT_GE(number("dram_bytes"), number("image_bytes"));
            EXPECT_GT(*plan.time_us, 0);
            EXPECT_FALSE(plan.derivation.all().empty());
        }
    }
    const std::string dense = "--batch 4 --channels 128 --height 60 --width 60 --filters 128 --kernel-size 3 --padding ";
    // Pixels outside take longer than pixels (docs/facts.md 431), and nothing else does: 2 % of these are, 13 of dilated taps.
    const double plain = *plans_of(dense + "1").plans[0].time_us, dilated = *plans_of(dense + "6 --dilation 6").plans[0].time_us;
    EXPECT_GE(dilated, plain - 0.01);
    EXPECT_LT(dilated, 1.1 * plain);
}

// Thin groups and pixels of odd sizes go directly; what that cannot be is refused by name.
TEST(ConvPlan, OfThinGroupsIsDirect) {
    const auto first = [](const std::string& line) {
        const PlanSet set = plans_of(line, "h100-sxm");
        return set.plans.empty() ? set.refusal->message : conv_operation().label(set.plans.front());
    };
    const std::string depthwise = "--batch 8 --channels 96 --height 56 --width 56 --filters 96 --kernel-size 7 --padding 3 --groups 96";
    for (const std::string& line : {depthwise + " --stride 2", std::string("--batch 8 --channels 128 --height 28 --width 28 --filters 128 --kernel-size 3 --padding 1 --groups 32"),
                                    std::string("--batch 8 --channels 3 --height 224 --width 224 --filters 64 --kernel-size 3 --dilation 2")})
        EXPECT_THAT(first(line), HasSubstr("direct, ")) << line;
    EXPECT_THAT(refusal_of("--channels 64 --height 8 --width 8 --filters 8 --kernel-size 3 --groups 2"), HasSubstr("groups of 32 channels"));
    EXPECT_THAT(refusal_of("--channels 17 --height 8 --width 8 --filters 8 --kernel-size 3"), HasSubstr("fill x and w up to 24"));
    EXPECT_THAT(first("--channels 3 --depth 4 --height 8 --width 8 --filters 8 --kernel-size 3"), HasSubstr("three axes"));
    EXPECT_THAT(first(depthwise + " --stages 3"), HasSubstr("direct one has no such choice"));
    EXPECT_THAT(first(depthwise + " --vector 3"), HasSubstr("no direct kernel of this convolution has vector 3, strip any and rows any"));
    EXPECT_THAT(refusal_of(depthwise + " --epilogue \"y = acc * w\" --tensor w:bf16[N]"), HasSubstr("give it another"));
    EXPECT_THAT(refusal_of(depthwise + " --epilogue \"y = acc * r\" --tensor r:bf16[M,3]"), HasSubstr("the tensor r is"));
    EXPECT_THAT(refusal_of(depthwise + " --tensor r:bf16[M,N]"), HasSubstr("no epilogue that reads it"));
    const PlanSet product = plans_of(std::string(body) + " --vector 4");
    ASSERT_TRUE(product.refusal);
    EXPECT_THAT(product.refusal->message, HasSubstr("--vector is of direct convolutions"));
    EXPECT_FALSE(plans_of(depthwise, "v100-sxm2").plans.front().buildable);
    EXPECT_TRUE(plans_of(depthwise, "a100-80-sxm").plans.front().buildable);
}

void expect_named_again(const std::string& line, std::string_view label) {
    const PlanSet all = plans_of(line);
    ASSERT_GE(all.plans.size(), 4u);
    for (const Plan& plan : all.plans) {
        EXPECT_THAT(conv_operation().label(plan), HasSubstr(label));
        const Given given = conv_operation().given_of_config(conv_operation().config_record(plan));
        std::string again = line;
        for (const Field& field : conv_fields())
            if (given.has(field.key)) again += " " + flag_of(field.key) + " " + given.text(field.key);
        const PlanSet one = plans_of(again);
        ASSERT_EQ(one.plans.size(), 1u) << again;
        EXPECT_EQ(conv_operation().config_record(one.plans[0]), conv_operation().config_record(plan));
        EXPECT_EQ(one.plans[0].time_us, plan.time_us);
    }
}

// What documents say of a direct plan names it again.
TEST(ConvPlan, DirectConfigurationsAreRequests) {
    expect_named_again("--batch 8 --channels 96 --height 56 --width 56 --filters 96 --kernel-size 7 --padding 3 --stride 2 --groups 96", "direct, ");
    expect_named_again("--batch 8 --channels 96 --height 56 --width 56 --filters 96 --kernel-size 7 --padding 3 --groups 96", "planes, ");
    const Given ranged = given_of(conv_operation(), "--batch 1..64 --channels 96 --height 28 --width 28 --filters 96 --kernel-size 3 --padding 1 --groups 96");
    const PlanRange range = plan_range(conv_operation(), std::make_shared<const Machine>(machine_by_id("h200-sxm")), ranged, *range_in(conv_operation(), ranged), 0.05,
                                       [](const Plan& plan) { return conv_operation().label(plan); });
    EXPECT_LE(range.ratio, 1.05);
    EXPECT_FALSE(range.parts.empty());
}

// The time of an epilogue is that of its bytes and its instructions; its tensors are the plan's.
TEST(ConvPlan, DirectEpiloguesCount) {
    const std::string line = "--batch 32 --channels 144 --height 56 --width 56 --filters 144 --kernel-size 3 --padding 1 --groups 144",
                      epilogue = " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]";
    const PlanSet plain = plans_of(line), with = plans_of(line + epilogue);
    const double rows = 32.0 * 56 * 56, bytes = rows * 144 * 2;
    const auto dram = [](const PlanSet& set) { return *conv_operation().demand(machine_by_id("h200-sxm"), set.plans.at(0)).dram_bytes; };
    EXPECT_EQ(dram(with) - dram(plain), bytes + 144 * 2);
    EXPECT_GT(*with.plans[0].time_us, *plain.plans[0].time_us);
    const std::vector<TensorInfo> tensors = conv_operation().tensors(with.problem);
    ASSERT_EQ(tensors.size(), 5u);
    EXPECT_EQ(tensors[3].extents[0].most, 32 * 56 * 56);
    EXPECT_EQ(tensors[4].name, "y");
}

// Every step of a direct derivation says what it is made of.
TEST(ConvPlan, DirectStepsNameTheirInputs) {
    const PlanSet set = plans_of("--batch 8 --channels 3 --height 224 --width 224 --filters 64 --kernel-size 7 --stride 2 --padding 3");
    for (const Step& step : set.plans.at(0).derivation)
        EXPECT_GE(step.inputs.size(), 3u) << step.quantity;
}

// Of an image blocks of K are a tap's.
TEST(ConvPlan, StepsOfKAreCountedByTaps) {
    const PlanSet set = plans_of("--batch 8 --channels 96 --height 28 --width 28 --filters 96 --kernel-size 3 --padding 1");
    int counted = 0;
    for (const Step& step : set.plans.at(0).derivation)
        for (const Input& input : step.inputs)
            if (input.name == "k_steps" && input.source.find("tile_k") != input.source.npos) {
                EXPECT_THAT(input.source, HasSubstr("taps * ceil(channels / tile_k)"));
                ++counted;
            }
    EXPECT_GE(counted, 1);
}

// Whatever is drawn: no fewer multiplications than the filter has, weights find room, lanes and slots are a CTA's.
TEST(ConvPlan, DirectPlansKeepTheirWalls) {
    Random random(test_seed());
    int planned = 0;
    for (int i = 0; i < 400; ++i) {
        ConvProblem p;
        p.image.images = random.whole(1, 4);
        p.groups = random.whole(1, 40);
        p.image.channels = p.groups * random.whole(1, 6), p.filters = p.groups * random.whole(1, 6);
        for (int axis = 0; axis < 2; ++axis)
            p.image.axes[std::size_t(axis)] = {.extent = random.whole(1, 40), .taps = random.whole(1, 7), .stride = random.whole(1, 3), .padding = random.whole(0, 4), .dilation = random.whole(1, 2)};
        if (p.image.rows() == 0 || !is_direct(p)) continue;
        const DirectPlans found = direct_plans(machine_by_id("h200-sxm"), p, 64);
        for (const DirectPlan& plan : found.plans) {
            const DirectConvConfig& c = plan.as<DirectConvConfig>();
            const double covered = double(strips_of(p, c)) * c.rows * c.strip * double((p.filters + c.vector - 1) / c.vector) * c.vector;
            EXPECT_GE(covered, double(p.image.rows()) * double(p.filters));
            EXPECT_GE(direct_demand(p, plan).issue_slots, p.flops() / 2);
            EXPECT_EQ(p.filters % c.vector, 0);
            EXPECT_EQ(2 * c.thread_channels() % c.load_bytes, 0);
            EXPECT_EQ(2 * p.image.channels % c.load_bytes, 0);
            EXPECT_LE(c.threads(), 256);
            EXPECT_LE(c.shared_bytes(), 227 << 10);
            EXPECT_GT(plan.time_us.value_or(0), 0);
            ++planned;
        }
    }
    EXPECT_GT(planned, 1000);
}

constexpr const char* colours = "--batch 32 --channels 3 --height 224 --width 224 --filters 64 --kernel-size 7 --stride 2 --padding 3";

// Few channels without groups go by rows of pixels, unless a direct kernel's numbers are asked for; documents name each again.
TEST(ConvPlan, OfStemsIsByRows) {
    const auto label = [](const std::string& line, const char* machine) {
        const PlanSet set = plans_of(line, machine);
        return set.plans.empty() ? set.refusal->message : conv_operation().label(set.plans.front());
    };
    for (const char* machine : {"h100-sxm", "a100-80-sxm"}) EXPECT_THAT(label(colours, machine), HasSubstr("rows, "));
    EXPECT_THAT(label(colours, "v100-sxm2"), HasSubstr("direct, "));
    EXPECT_THAT(label(std::string(colours) + " --rows 1", "h100-sxm"), HasSubstr("direct, "));
    EXPECT_THAT(label(std::string(colours) + " --rows 1 --warps 4", "h100-sxm"), HasSubstr("leave one kind off"));
    EXPECT_THAT(label(std::string(colours) + " --dilation 1x2 --warps 4", "h100-sxm"), HasSubstr("plain taps along x"));
    EXPECT_THAT(label(std::string(body) + " --warps 4", "h100-sxm"), HasSubstr("--warps is of direct convolutions"));
    expect_named_again(colours, "rows, ");
}

// 7 rows of 7 x 3 elements are 7 x 11 pairs, of which a half each is masked out: 10 steps of 8 pairs, and 7 x 21 elements. Words of places
// 6 / 2 = 3 apart are in different banks; of places 12 / 2 = 6 apart where the eight rows of a fragment are every other one. Where a fragment's four pairs are of two
// rows, 6 of the 20 times and 2 of the 6, these meet: two wavefronts.
TEST(ConvPlan, StemsMeetEachElementOnce) {
    const PlanSet set = plans_of(colours);
    EXPECT_EQ(value_of_step(set.plans.at(0), "k_steps"), 10);
    EXPECT_EQ(value_of_step(plans_of(std::string(colours) + " --places 4x16").plans.at(0), "wavefronts"), 1.3);
    EXPECT_NEAR(value_of_step(plans_of("--batch 32 --channels 3 --height 224 --width 224 --filters 96 --kernel-size 4 --stride 4 --places 4x16").plans.at(0), "wavefronts"), 8.0 / 6, 1e-9);
    Random random(test_seed());
    int planned = 0;
    for (int i = 0; i < 60; ++i) {
        ConvProblem p;
        p.image.images = random.whole(1, 4), p.image.channels = random.whole(1, 7), p.filters = random.whole(1, 300);
        for (int axis = 0; axis < 2; ++axis)
            p.image.axes[std::size_t(axis)] = {.extent = random.whole(1, 300), .taps = random.whole(1, 9), .stride = random.whole(1, 4), .padding = random.whole(0, 4), .dilation = axis == 1 ? random.whole(1, 2) : 1};
        if (p.image.rows() <= 0) continue;
        Rejected rejected;
        for (const DirectPlan& plan : stem_plans(machine_by_id("h200-sxm"), p, {}, rejected)) {
            const auto& c = plan.as<StemConvConfig>();
            int bits = 0;
            for (int pair = 0; pair < 8 * c.steps(); ++pair) bits += std::popcount(c.pair_mask(pair));
            EXPECT_EQ(bits, 16 * c.taps_y * c.row_elements());
            std::set<unsigned> words;
            for (int filter = 0; filter < c.cta_filters; ++filter)
                for (int pair = 0; pair < 8 * c.steps(); ++pair) words.insert(c.weight_word(unsigned(filter), unsigned(pair)));
            EXPECT_EQ(int(words.size()), c.weight_bytes() / 4);
            EXPECT_EQ(*words.rbegin() + 1, words.size());
            EXPECT_LE(c.ctas_per_sm * (c.shared_bytes() + 1024), 228 << 10);
            EXPECT_GE(demand_of(p, c).matrix[0].flops, p.flops());
            EXPECT_GE(*plan.time_us, *plan.dram_us);
            ++planned;
            if (planned % 16 != 0) break;
        }
    }
    EXPECT_GT(planned, 20);
}

// Filters of a channel each go by planes where they are plain and multiplications would bind; what that cannot be is refused by name.
TEST(ConvPlan, OfDepthwiseIsByPlanes) {
    const std::string depthwise = "--batch 32 --channels 96 --height 56 --width 56 --filters 96 --kernel-size 7 --padding 3 --groups 96";
    const auto label = [](const std::string& line, const char* machine) {
        const PlanSet set = plans_of(line, machine);
        return set.plans.empty() ? set.refusal->message : conv_operation().label(set.plans.front());
    };
    for (const char* machine : {"h100-sxm", "h200-sxm", "a100-80-sxm"}) EXPECT_THAT(label(depthwise, machine), HasSubstr("planes, "));
    EXPECT_THAT(label(depthwise, "v100-sxm2"), HasSubstr("direct, "));
    EXPECT_THAT(label(depthwise + " --vector 8", "h100-sxm"), HasSubstr("direct, "));
    EXPECT_THAT(label(depthwise + " --vector 8 --planes 1x2x7x7x16x4", "h100-sxm"), HasSubstr("leave one kind off"));
    EXPECT_THAT(label(depthwise + " --planes 1x2x7x7x16x4", "h100-sxm"), HasSubstr("planes, 1 x 14x56 places in 7 rows, 16 channels, 4 warps"));
    for (const char* other : {" --stride 2", " --dilation 1x2"}) EXPECT_THAT(label(depthwise + other + " --planes 1x2x7x7x16x4", "h100-sxm"), HasSubstr("9 x 9 plain taps"));
}

// 2^35 elements in rows of 2^31 and more, or in a tile for each 8 channels of a pixel: more than the kernel's ints and a grid count.
TEST(ConvPlan, PlanesCountInInts) {
    const auto label = [](const std::string& line) {
        const PlanSet set = plans_of(line);
        return set.plans.empty() ? set.refusal->message : conv_operation().label(set.plans.front());
    };
    const std::string wide = "--batch 1 --channels 131072 --height 8 --width 32768 --filters 131072 --kernel-size 7 --padding 3 --groups 131072";
    EXPECT_THAT(label(wide), HasSubstr("direct, "));
    EXPECT_THAT(label(wide + " --planes 1x1x1x16x16x4"), HasSubstr("no kernel by planes"));
    const std::string many = "--batch 4194304 --channels 8192 --height 1 --width 1 --filters 8192 --kernel-size 3 --padding 1 --groups 8192";
    EXPECT_THAT(label(many + " --planes 1x1x1x1x8x4"), HasSubstr("no kernel by planes"));
    EXPECT_THAT(label(many + " --planes 4x1x1x1x16x4"), HasSubstr("planes, "));
}

// By hand: 32 images of 4 tiles of 2 x 7 rows, by 6 of 16 channels; 96 channels a tile's place, 7 x 7 MMAs each. 20 of 14 rows come in, less 3 beside the image above and below; 14 slots are the
// cells 0 to 6 and, 7 rows of 9 cells on, 7 to 13 of eight groups of banks: of two times eight rows in both halves of K four wavefronts.
TEST(ConvPlan, PlanesCountWhatTheKernelDoes) {
    const PlanSet set = plans_of("--batch 32 --channels 96 --height 56 --width 56 --filters 96 --kernel-size 7 --padding 3 --groups 96 --planes 1x2x7x7x16x4");
    const Plan& plan = set.plans.at(0);
    EXPECT_EQ(value_of_step(plan, "slots"), 14);
    EXPECT_EQ(value_of_step(plan, "wavefronts"), 4);
    EXPECT_DOUBLE_EQ(value_of_step(plan, "halo"), (4 * 20 - 6) / 56.0);
    EXPECT_EQ(value_of_step(plan, "shared_bytes"), 16 * 16 * 20 * 9 + 2 * 64);  // of pixels: sums of 2 B are fewer
    const Demand demand = conv_operation().demand(machine_by_id("h200-sxm"), plan);
    EXPECT_EQ(demand.matrix[0].flops, 32.0 * 4 * 96 * 49 * 4096);
    EXPECT_EQ(demand.tiles, 32 * 4 * 6);
    Random random(test_seed());
    int planned = 0;
    for (int i = 0; i < 40; ++i) {
        ConvProblem p;
        p.image.images = random.whole(1, 40), p.image.channels = p.filters = p.groups = 8 * random.whole(1, 40);
        for (int axis = 0; axis < 2; ++axis)
            p.image.axes[std::size_t(axis)] = {.extent = random.whole(1, 120), .taps = random.whole(1, 9), .padding = random.whole(0, 10)};
        if (p.image.rows() <= 0) continue;
        Rejected rejected;
        for (const DirectPlan& each : depthwise_plans(machine_by_id("h200-sxm"), p, {}, rejected)) {
            const auto& c = each.as<DepthwiseConvConfig>();
            EXPECT_LE(c.ctas_per_sm * (c.shared_bytes() + 1024), 228 << 10);
            EXPECT_GE(demand_of(p, c).matrix[0].flops, p.flops() * 16 / c.taps_x);  // a band's zeros
            EXPECT_GE(*each.time_us, *each.dram_us);
            // Sums of a channel take the place of its pixels; slots have their own of both.
            std::set<unsigned> cells, sums;
            for (int slot = 0; slot < c.slots(); ++slot) {
                cells.insert(c.first_cell(unsigned(slot)));
                for (int row = 0; row < c.rows; ++row) sums.insert(c.first_sum(unsigned(slot)) + unsigned(row * c.tile_x()));
                EXPECT_LE(16 * (c.first_cell(unsigned(slot)) + unsigned((c.rows + c.taps_y - 2) * c.pitch) + 2), unsigned(c.plane_bytes()));
            }
            EXPECT_EQ(int(cells.size()), c.slots());
            EXPECT_EQ(int(sums.size()), c.slots() * c.rows);
            EXPECT_LE(unsigned(c.sum_bytes) * (*sums.rbegin() + 8), unsigned(c.plane_bytes()));
            if (++planned % 64 == 0) break;
        }
    }
    EXPECT_GT(planned, 100);
}

TensorInfo dense(const char* name, const std::vector<std::int64_t>& extents) {
    TensorInfo t{.name = name, .type = "bf16", .element_bits = 16, .extents = {}, .strides = {}, .role = TensorRole::in, .offset = 0};
    t.strides.resize(extents.size(), 1);
    for (std::size_t i = extents.size(); i-- > 1;) t.strides[i - 1] = t.strides[i] * extents[i];
    for (const std::int64_t extent : extents) t.extents.push_back(Extent::of(extent));
    return t;
}

/// What tensors of a call make of it: [2,9,9,16] by 24 filters of 3 x 3.
std::string tensors_of(const std::vector<TensorInfo>& epilogue, const char* expression = "y = acc + r", const char* x = "", const char* w = "") {
    Given given(Given::Named::by_key);
    given.add("padding", "1"), given.add("epilogue", expression);
    std::vector<TensorInfo> all = {dense(x, {2, 9, 9, 16}), dense(w, {24, 3, 3, 16})};
    all.insert(all.end(), epilogue.begin(), epilogue.end());
    try {
        add_conv_tensors(given, all);
        conv_problem(given);
    } catch (const RequestError& error) { return error.what(); }
    std::string out;
    for (const std::string& tensor : given.list("tensor")) out += tensor + " ";
    return out;
}

// 2 x 9 x 9 places are 162 rows.
TEST(ConvFields, TensorsOfAnEpilogueAreOfTheResultsSizes) {
    EXPECT_EQ(tensors_of({dense("r", {2, 9, 9, 24})}), "r:bf16[M,N] ");
    EXPECT_EQ(tensors_of({dense("r", {162, 24})}), "r:bf16[M,N] ");
    EXPECT_EQ(tensors_of({dense("r", {2, 9, 9, 1})}), "r:bf16[M,1] ");
    EXPECT_EQ(tensors_of({dense("r", {162, 1})}), "r:bf16[M,1] ");
    EXPECT_EQ(tensors_of({dense("r", {1, 1, 1, 24})}), "r:bf16[N] ");
    EXPECT_EQ(tensors_of({dense("bias", {24}), dense("r", {162, 24})}, "y = relu(acc + bias) + r"), "bias:bf16[N] r:bf16[M,N] ");
    for (const std::vector<std::int64_t>& extents : std::vector<std::vector<std::int64_t>>{
             {5, 4, 3, 2}, {7, 3}, {1, 9, 9, 24}, {2, 9, 9, 12}, {7}, {162}, {2, 9, 24}, {81, 24}, {9, 2, 9, 24}})
        EXPECT_THAT(tensors_of({dense("r", extents)}), HasSubstr("accepted are dense ones [2,9,9,24]"));
    TensorInfo r = dense("r", {24});
    r.strides = {2};
    EXPECT_THAT(tensors_of({r}), HasSubstr("it is not dense"));
    r = dense("r", {2, 9, 9, 24}), r.strides = {1944, 9, 1, 81};
    EXPECT_THAT(tensors_of({r}), HasSubstr("it is not dense"));
    EXPECT_THAT(tensors_of({dense("", {24})}), HasSubstr("it has no name"));
}

TEST(ConvFields, NamesOfItsOwnTensorsAreItsOwn) {
    for (const std::string name : {"x", "w"}) {
        EXPECT_THAT(tensors_of({dense(name.c_str(), {24})}, ("y = acc * " + name).c_str()), HasSubstr("has the name of a convolution's own"));
        EXPECT_THAT(refusal_of(std::string(body) + " --epilogue \"y = acc * " + name + "\" --tensor " + name + ":bf16[M,N]"), HasSubstr("give it another"));
    }
    EXPECT_EQ(tensors_of({dense("r", {24})}, "y = acc + r", "x", "w"), "r:bf16[N] ");
    EXPECT_THAT(tensors_of({dense("r", {24})}, "y = acc + r", "w", "x"), HasSubstr("takes x, then w"));
}

/// What tensors of a call for a gradient make of it.
std::string gradient_of(const char* gradient, const std::vector<TensorInfo>& tensors, std::initializer_list<std::pair<const char*, const char*>> more = {}) {
    Given given(Given::Named::by_key);
    given.add("gradient", gradient);
    for (const auto& [key, text] : more) given.add(key, text);
    try {
        add_conv_tensors(given, tensors);
        return short_name(conv_problem(given));
    } catch (const RequestError& error) { return error.what(); }
}

TEST(ConvFields, TensorsOfGradientsSayTheirSizes) {
    const TensorInfo dy = dense("dy", {2, 9, 7, 24}), w = dense("w", {24, 3, 5, 64}), x = dense("x", {2, 9, 9, 64});
    EXPECT_EQ(gradient_of("data", {dy, w}, {{"padding", "1x1"}}), "2x64x9x9 24 3x5 p1x1 gradient of data");
    EXPECT_EQ(gradient_of("weights", {dy, x}, {{"padding", "1"}, {"kernel_size", "3x5"}}), "2x64x9x9 24 3x5 p1x1 gradient of weights");
    EXPECT_EQ(gradient_of("weights", {dense("", {2, 5, 7, 24}), dense("", {2, 9, 9, 64})}, {{"padding", "1"}, {"kernel_size", "3x5"}, {"stride", "2x1"}}), "2x64x9x9 24 3x5 s2x1 p1x1 gradient of weights");
    EXPECT_THAT(gradient_of("weights", {dy, x}, {{"kernel_size", "3x5"}}), HasSubstr("dy has 9x7 places; the convolution of these sizes has 7x5"));
    EXPECT_THAT(gradient_of("weights", {dy, x}, {{"padding", "1"}}), HasSubstr("kernel_size"));
    EXPECT_THAT(gradient_of("data", {dy, w}, {{"kernel_size", "3x5"}}), HasSubstr("follows from the tensors"));
    EXPECT_THAT(gradient_of("data", {w, dy}), HasSubstr("takes two tensors, dy, then w"));
    EXPECT_THAT(gradient_of("data", {dy, dense("w", {16, 3, 5, 64})}), HasSubstr("dy has 24 filters and w 16"));
    EXPECT_THAT(gradient_of("weights", {dy, dense("x", {3, 9, 9, 64})}, {{"kernel_size", "3"}}), HasSubstr("dy has 2 images and x 3"));
    EXPECT_THAT(gradient_of("data", {dy, dense("w", {24, 3, 64})}), HasSubstr("w has 3 axes and dy 4"));
}

// A tap meets each pixel of a row that is kept once, however far apart taps are.
TEST(ConvPlan, DilatedFiltersLoadWhatTheyMeet) {
    const std::string image = "--batch 8 --channels 512 --groups 512 --height 65 --width 65 --filters 512 --kernel-size 3 ";
    const auto near = plans_of(image + "--padding 1 --vector 8"), far = plans_of(image + "--padding 18 --dilation 18 --vector 8");
    ASSERT_FALSE(near.plans.empty());
    ASSERT_FALSE(far.plans.empty());
    EXPECT_LT(*far.plans.front().time_us, 1.2 * *near.plans.front().time_us);
    const auto wide = plans_of("--batch 4 --channels 512 --groups 512 --width 4000 --filters 512 --kernel-size 3 --padding 128 --dilation 128");
    EXPECT_FALSE(wide.plans.empty());
}

TEST(ConvPlan, WhatDirectKernelsCannotCountIsRefused) {
    for (const char* line : {"--channels 16 --groups 2 --width 70000000 --filters 16 --kernel-size 67108864",
                             "--channels 64 --groups 64 --width 5 --height 2000000000 --filters 64 --kernel-size 1 --stride 1000000000x1",
                             "--channels 1 --height 8 --width 8 --filters 200000000 --kernel-size 3"}) {
        const PlanSet set = plans_of(line);
        EXPECT_TRUE(set.plans.empty()) << line;
        ASSERT_TRUE(set.refusal) << line;
        EXPECT_THAT(set.refusal->message, HasSubstr("direct kernels")) << line;
    }
    // A CTA has up to 256 filters: 65535 columns of them are 16,776,960.
    EXPECT_FALSE(plans_of("--channels 1 --height 8 --width 8 --filters 16776960 --kernel-size 3").plans.empty());
    EXPECT_THAT(plans_of("--channels 1 --height 8 --width 8 --filters 16777216 --kernel-size 3 --dilation 2").refusal->message, HasSubstr("65535 columns at most"));
    EXPECT_THAT(refusal_of("--channels 32760 --width 256 --height 256 --filters 8 --kernel-size 256 --padding 127"), HasSubstr("taps times channels"));
}

// Tiles of many small images hold each of them.
TEST(ConvPlan, TilesKeepAllOfTheirImages) {
    const ConvProblem p = conv_problem(given_of(conv_operation(), "--batch 32 --channels 512 --height 7 --width 7 --filters 512 --kernel-size 3 --padding 1"));
    const ImageTraffic t = image_traffic(p, {.pixels = 128, .filters = 128, .step = 64});
    EXPECT_GE(t.halo, t.read);
}

TEST(ConvPlan, TensorsAreChannelsLast) {
    const auto tensors = conv_operation().tensors(conv_operation().problem(
        given_of(conv_operation(), std::string(body) + " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]")));
    ASSERT_EQ(tensors.size(), 5u);
    EXPECT_EQ(tensors[0].extents.size(), 4u);
    EXPECT_EQ(tensors[1].strides, (std::vector<std::int64_t>{576, 192, 64, 1}));
    EXPECT_EQ(tensors[2].name, "bias");
    EXPECT_EQ(tensors[4].name, "y");
    EXPECT_EQ(tensors[4].extents[3].most, 128);
}

// Of x alone. Its packing is a launch before those of the packed image's plan, with its bytes and its time.
TEST(ConvPlan, ChannelsOutermostArePackedFirst) {
    const std::string depthwise = "--batch 32 --channels 144 --height 56 --width 56 --filters 144 --kernel-size 3 --padding 1 --groups 144";
    const auto machine = machine_by_id("h200-sxm"), other = machine_by_id("h100-sxm");
    for (const std::string& line : {std::string(body), depthwise}) {
        SCOPED_TRACE(line);
        const PlanSet last = plans_of(line), first = plans_of(line + " --layout nchw");
        const Operation& conv = conv_operation();
        const std::vector<TensorInfo> tensors = conv.tensors(first.problem);
        const auto extent = [&](std::size_t axis) { return tensors[0].extents[axis].most; };
        const std::int64_t pixels = extent(1) * extent(2);
        EXPECT_EQ(tensors[0].strides, (std::vector<std::int64_t>{pixels * extent(3), extent(2), 1, pixels}));
        EXPECT_EQ(tensors.back().strides.back(), 1);
        EXPECT_EQ(spanned_elements(tensors[0]), spanned_elements(conv.tensors(last.problem)[0]));
        const double bytes = 2 * 2 * double(spanned_elements(tensors[0]));
        ASSERT_EQ(first.plans.size(), last.plans.size());
        for (std::size_t i = 0; i < first.plans.size(); ++i) {
            const Plan &with = first.plans[i], &plain = last.plans[i];
            EXPECT_EQ(conv.label(with), conv.label(plain));
            ASSERT_EQ(with.launches.size(), plain.launches.size() + 1);
            EXPECT_GE(with.launches[0].workspace_bytes, std::int64_t(bytes) / 2);
            EXPECT_EQ(*conv.demand(machine, with).dram_bytes - *conv.demand(machine, plain).dram_bytes, bytes);
            EXPECT_EQ(conv.demand(machine, with).launches, int(with.launches.size()));
            // Read and written at less than the datasheet's 4.8 TB/s, and launched.
            EXPECT_GT(*with.time_us - *plain.time_us, bytes / 4.8e6 + 1);
            EXPECT_EQ(find_as<double>(conv.prediction_record(with), "time_us"), with.time_us);
            EXPECT_EQ(find_as<std::int64_t>(conv.prediction_record(with), "packing_bytes"), std::int64_t(bytes));
            EXPECT_EQ(with.derivation.all().front().quantity, "packing_us");
        }
        const PredictedRun run = conv.predictor(machine, first.plans)(machine).front(), elsewhere = conv.predictor(machine, first.plans)(other).front();
        EXPECT_NEAR(run.seconds * 1e6, *first.plans[0].time_us, 1e-3);
        EXPECT_GT(elsewhere.seconds, run.seconds);  // 3.35 TB/s
        EXPECT_EQ(conv.given(conv.problem(conv.given_of_record(conv.problem_record(first.problem)))).text(), conv.given(first.problem).text());
        // Tensors whose strides are those say so.
        Given of_tensors(Given::Named::by_key);
        for (const auto& [key, text] : {std::pair{"padding", "1"}, {"groups", line == depthwise ? "144" : "1"}}) of_tensors.add(key, text);
        conv.add_tensors(of_tensors, std::span(tensors).first(2));
        EXPECT_EQ(of_tensors.text("layout"), "nchw");
        EXPECT_EQ(conv.short_name(conv.problem(of_tensors)), conv.short_name(first.problem));
    }
    EXPECT_EQ(conv_operation().tensors(conv_operation().problem(given_of(conv_operation(), "--channels 8 --depth 3 --height 4 --width 5 --filters 8 --kernel-size 1 --layout nchw")))[0].strides,
              (std::vector<std::int64_t>{480, 20, 5, 1, 60}));
}

constexpr const char* bytes = "--batch 4 --channels 144 --height 56 --width 56 --filters 100 --kernel-size 3 --padding 1 --type fp8_e4m3";

// x and w of 8 bits: 128 channels of one tap a step, and half the bytes; the result is bf16.
TEST(ConvFp8, IsAProductOfAnImage) {
    for (const char* type : {"fp8_e4m3", "fp8_e5m2"}) {
        const PlanSet set = plans_of("--batch 4 --channels 144 --height 56 --width 56 --filters 100 --kernel-size 3 --padding 1 --type " + std::string(type));
        ASSERT_FALSE(set.plans.empty()) << set.refusal->message;
        const std::vector<TensorInfo> tensors = conv_operation().tensors(set.problem);
        EXPECT_EQ(tensors[0].type, type);
        EXPECT_EQ(tensors[1].element_bits, 8);
        EXPECT_EQ(tensors[2].type, "bf16");
        EXPECT_EQ(tensors[2].element_bits, 16);
        const Plan& plan = set.plans.front();
        EXPECT_EQ(find_as<std::int64_t>(conv_operation().config_record(plan), "tile_k"), 128);
        const std::vector<Step>& steps = plan.derivation;
        EXPECT_THAT(std::ranges::find(steps, "k", &Step::quantity)->limit, HasSubstr("18 steps"));  // two of each tap
        const Record p = conv_operation().prediction_record(plan);
        EXPECT_EQ(find_as<std::int64_t>(p, "image_bytes"), 4 * 56 * 56 * 144);
        EXPECT_EQ(find_as<std::int64_t>(p, "unrolled_bytes"), 4 * 56 * 56 * 9 * 144);
        EXPECT_EQ(*conv_operation().demand(machine_by_id("h200-sxm"), plan).dram_bytes, set.problem.own.as<ConvProblem>().least_bytes());
        EXPECT_EQ(conv_given(conv_record(set.problem.own.as<ConvProblem>())).text("type"), type);
    }
    const std::string wide = "--batch 32 --channels 512 --height 28 --width 28 --filters 512 --kernel-size 3 --padding 1 --type ";
    EXPECT_LT(*plans_of(wide + "fp8_e4m3").plans[0].time_us, 0.6 * *plans_of(wide + "bf16").plans[0].time_us);
}

TEST(ConvFp8, WhatIsOf16BitsAloneIsRefusedByName) {
    const auto refused = [](const std::string& more, const char* machine = "h200-sxm") {
        const PlanSet set = plans_of(std::string(bytes) + more, machine);
        return set.plans.empty() ? set.refusal->message : "planned";
    };
    EXPECT_THAT(refusal_of(std::string(bytes) + " --gradient data"), HasSubstr("fp8_e4m3: gradients are of bf16"));
    EXPECT_THAT(refusal_of(std::string(bytes) + " --layout nchw"), HasSubstr("leave the layout off"));
    EXPECT_THAT(refusal_of("--channels 64 --width 56 --filters 64 --kernel-size 3 --groups 2 --type fp8_e5m2"), HasSubstr("groups are 2"));
    EXPECT_THAT(refusal_of("--channels 72 --width 56 --filters 64 --kernel-size 3 --type fp8_e5m2"), HasSubstr("fill x and w up to 80"));
    EXPECT_THAT(refusal_of("--channels 3 --width 56 --filters 64 --kernel-size 3 --type fp8_e5m2"), HasSubstr("fill x and w up to 16"));
    EXPECT_THAT(refused(" --kernel sm80_gemm"), HasSubstr("sm90_gemm's so far"));
    EXPECT_THAT(refused("", "l40s"), HasSubstr("sm90_gemm's so far"));
    EXPECT_THAT(refused("", "a100-80-sxm"), HasSubstr("fp8"));
    EXPECT_THAT(refused(" --stride 9"), HasSubstr("the stride is 9"));
    const PlanSet few = plans_of("--channels 16 --height 56 --width 56 --filters 64 --kernel-size 3 --type fp8_e5m2");  // in bf16 they are gathered
    EXPECT_EQ(find_as<std::string>(conv_operation().config_record(few.plans.at(0)), "loads"), "im2col");
}

// Every tensor is in the least that moves, an epilogue's too.
TEST(ConvPlan, LeastBytesAreAllTensors) {
    for (const std::string& line : {std::string(body), std::string("--channels 144 --height 56 --width 56 --filters 144 --kernel-size 3 --padding 1 --groups 144"), std::string(bytes)}) {
        const Problem problem = conv_operation().problem(
            given_of(conv_operation(), line + " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:fp32[M,N]"));
        double all = 0;
        for (const TensorInfo& tensor : conv_operation().tensors(problem)) all += double(spanned_elements(tensor)) * tensor.element_bits / 8;
        EXPECT_EQ(problem.own.as<ConvProblem>().least_bytes(), all) << line;
    }
}

}  // namespace
}  // namespace rooftile
