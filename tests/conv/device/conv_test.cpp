// Convolutions on a GPU: drawn problems of any sizes that image loads take, against fp64 at every element.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "rooftile/conv/fields.hpp"
#include "rooftile/conv/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/measure.hpp"
#include "tests/core/example.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

class ConvTest : public DeviceTest {
  protected:
    static void expect_right(const std::string& line, bool time, int top = 3) {
        SCOPED_TRACE(line);
        const Given given = given_of(conv_operation(), line);
        const Machine machine = live_machine().machine;
        MeasureTask task;
        task.plans = conv_operation().derive(std::make_shared<const Machine>(machine), conv_operation().problem(given),
                                             conv_operation().request(given, {.top = top, .buildable_only = true}));
        ASSERT_FALSE(task.plans.plans.empty()) << task.plans.refusal->message;
        MeasureOptions options;
        options.mode = Mode::burst;
        options.machine = &machine;
        options.seed = 5;
        options.time = time;
        options.baseline = false;
        options.timing.rounds.least = options.timing.rounds.most = 2;
        options.timing.burst_seconds = 0.005;
        options.timing.idle_seconds = 0.01;
        std::vector<MeasureTask> tasks;
        tasks.push_back(std::move(task));
        for (const Measurement& row : measure(std::move(tasks), options).rows) {
            EXPECT_TRUE(row.verified.ok()) << conv_operation().label(row.plan) << ": " << row.verified.failure;
            EXPECT_EQ(row.verified.exact, true);
            EXPECT_EQ(row.verified.random, true);
            EXPECT_EQ(row.verified.special, true);
        }
    }
};

std::string drawn(Random& random) {
    ConvProblem p;
    p.axes = int(random.whole(1, 3));
    p.image.images = random.whole(1, 4);
    p.image.channels = 8 * random.whole(1, 24), p.filters = random.coin() ? 8 * random.whole(1, 40) : random.whole(1, 200);
    p.type = random.coin() ? "bf16" : "fp16";
    for (;;) {
        for (int i = 0; i < p.axes; ++i)
            p.image.axes[std::size_t(i)] = {.extent = random.whole(1, i == 2 ? 9 : 40), .taps = random.whole(1, 5), .stride = random.whole(1, 4),
                                            .padding = random.whole(0, 6), .dilation = random.whole(1, 3)};
        if (p.image.rows() > 0 && image_load_obstacle(p.image, 2).empty()) break;
    }
    const Given given = conv_given(p);
    std::string line;
    for (const Field& field : conv_fields())
        if (given.has(field.key)) line += " " + flag_of(field.key) + " " + given.text(field.key);
    if (random.one_in(3)) line += " --epilogue \"y = relu(acc + bias)\" --tensor bias:" + p.type + "[N]";
    if (random.one_in(4)) line += " --layout nchw";
    if (random.one_in(3)) line += " --kernel sm80_gemm";
    return line.substr(1);
}

/// Of any sizes that gradients are planned of: odd sides, strides and dilation of weights, padding up to the filter's reach of data.
std::string drawn_gradient(Random& random, bool data) {
    for (;;) {
        ConvProblem p;
        p.gradient = data ? ConvGradient::data : ConvGradient::weights;
        p.axes = int(random.whole(1, 3));
        p.image.images = random.whole(1, 5), p.filters = 8 * random.whole(1, 40);
        p.image.channels = data ? 8 * random.whole(1, 30) : 64 * random.whole(1, 4);
        p.type = random.coin() ? "bf16" : "fp16";
        for (int i = 0; i < p.axes; ++i) {
            ImageAxis& axis = p.image.axes[std::size_t(i)];
            axis = {.extent = random.whole(1, i == 2 ? 9 : 40), .taps = random.whole(1, 5), .stride = data ? 1 : random.whole(1, 4), .padding = 0, .dilation = random.whole(1, 3)};
            axis.padding = random.whole(0, data ? axis.reach() : 6);
        }
        if (p.image.rows() == 0 || !image_load_obstacle(p.filtered(), 2).empty()) continue;
        const Given given = conv_given(p);
        std::string line;
        for (const Field& field : conv_fields())
            if (given.has(field.key)) line += " " + flag_of(field.key) + " " + given.text(field.key);
        return line.substr(1);
    }
}

TEST_F(ConvTest, RandomGradientsOfWeights) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 63));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 24); ++i) expect_right(drawn_gradient(random, false), i % 8 == 0);
}

TEST_F(ConvTest, RandomGradientsOfData) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 64));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 24); ++i) expect_right(drawn_gradient(random, true), i % 8 == 0);
}

TEST_F(ConvTest, RandomProblems) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 58));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 24); ++i) expect_right(drawn(random), i % 8 == 0);
}

TEST_F(ConvTest, RandomDirectProblems) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 59));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 24); ++i) {
        const std::int64_t groups = random.whole(1, 60), channels = groups * random.whole(1, 5), filters = groups * random.whole(1, 5);
        if (groups == 1 && channels % 8 == 0) continue;
        const auto number = [&](const char* flag, std::int64_t least, std::int64_t most) { return fmt::format(" {} {}x{}", flag, random.whole(least, most), random.whole(least, most)); };
        const char* epilogue = random.coin() ? " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]" : "";
        expect_right(fmt::format("--batch {} --channels {} --filters {} --groups {} --height {} --width {}", random.whole(1, 3), channels, filters, groups, random.whole(12, 40),
                                 random.whole(12, 40))
                         + number("--kernel-size", 1, 5) + number("--stride", 1, 3) + number("--padding", 0, 3) + number("--dilation", 1, 2) + epilogue + (i % 4 == 1 ? " --layout nchw" : ""),
                     i % 8 == 0);
    }
}

TEST_F(ConvTest, RandomStems) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 60));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 16); ++i) {
        const std::int64_t channels = random.whole(1, 7), taps = random.whole(1, 7);
        expect_right(fmt::format("--batch {} --channels {} --filters {} --height {} --width {} --kernel-size {}x{} --stride {} --padding {} --type {} --warp-tile {}x{}{}", random.whole(1, 3), channels,
                                 random.whole(1, 100), random.whole(12, 60), random.whole(12, 60), random.whole(1, 7), taps, random.whole(1, 4), random.whole(0, taps), random.coin() ? "bf16" : "fp16",
                                 1 << random.whole(0, 2), 32 << random.whole(0, 1),
                                 random.coin() ? " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]" : ""),
                     i % 8 == 0);
    }
}

TEST_F(ConvTest, RandomDepthwise) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 61));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 24); ++i) {
        const std::int64_t channels = 8 * random.whole(1, 20), rows = random.whole(1, 8), blocks = random.whole(1, 6), parts = 32 / rows > 2 ? 2 : 1, most = 16 * parts / blocks,
                           images = random.coin() ? 1 : random.whole(1, most), most_taps = std::min<std::int64_t>(9, 256 / (rows * parts));
        expect_right(fmt::format("--batch {} --channels {} --filters {} --groups {} --height {} --width {} --kernel-size {}x{} --padding {} --type {}{} --planes {}x{}x{}x{}x{}x{}{}", random.whole(1, 9), channels,
                                 channels, channels, random.whole(8, 60), random.whole(8, 60), random.whole(1, most_taps), random.whole(1, 9), random.whole(1, 5), random.coin() ? "bf16" : "fp16",
                                 i % 4 == 1 ? " --layout nchw" : "", images, std::max<std::int64_t>(1, most / images), rows, blocks, images > 4 ? 8 : 8 << random.whole(0, 1), 4 << random.whole(0, 1),
                                 random.coin() ? " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]" : ""),
                     i % 8 == 0);
    }
}

// Few channels, of which a step has several taps: padding beyond the filter's reach, strides beyond the filter, as many taps as there are bits, rows of
// the result of any length; one axis, two and three.
TEST_F(ConvTest, GatheredImages) {
    Random random(from_environment("ROOFTILE_TEST_SEED", 62));
    for (std::uint64_t i = 0; i < from_environment("ROOFTILE_TEST_COUNT", 24); ++i) {
        static constexpr const char* tiles[] = {"64x32x64", "128x64x32", "256x32x32", "64x64x64", "32x64x32", "128x128x32", "96x64x64"};
        const bool deep = i % 6 == 5, epilogue = random.one_in(3);
        expect_right(fmt::format("--batch {} --channels {} --filters {} --width {}{}{} --kernel-size {} --stride {} --padding {} --dilation {} --type {}{}{} --kernel sm80_gemm", random.whole(1, 5),
                                 8 * random.whole(1, 9), random.coin() ? 8 * random.whole(1, 20) : random.whole(1, 150), random.whole(14, 70),
                                 i % 6 == 4 ? "" : fmt::format(" --height {}", random.whole(14, 70)), deep ? fmt::format(" --depth {}", random.whole(7, 12)) : "", random.whole(1, deep ? 3 : 7),
                                 random.whole(1, random.one_in(4) ? 11 : 2), random.whole(0, 9), random.whole(1, 2), random.coin() ? "bf16" : "fp16",
                                 random.coin() ? fmt::format(" --tile {}", random.one_of(tiles)) : "",
                                 epilogue ? " --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]" : ""),
                     i % 8 == 0);
    }
    for (const char* taps : {"--height 40 --width 41 --kernel-size 15 --padding 7", "--width 300 --kernel-size 29 --padding 14"})
        expect_right(fmt::format("--batch 2 --channels 8 --filters 24 {} --kernel sm80_gemm", taps), false);
}

// Sides of networks, as they are planned.
TEST_F(ConvTest, DepthwiseOfNetworks) {
    for (const char* sizes : {"--channels 96 --filters 96 --groups 96 --height 56 --width 56", "--channels 384 --filters 384 --groups 384 --height 14 --width 14", "--channels 768 --filters 768 --groups 768 --height 7 --width 7"})
        for (const int taps : {3, 5, 7}) expect_right(fmt::format("--batch 8 {} --kernel-size {} --padding {}", sizes, taps, taps / 2), false, 4);
}

TEST_F(ConvTest, EveryWayOfGradients) {
    const std::string image = "--batch 3 --height 33 --width 29 --kernel-size 3x5 --padding 1x2 ";
    for (const char* more : {"--channels 128 --filters 200", "--channels 128 --filters 256 --swap-ab on", "--channels 128 --filters 256 --split-k 2", "--channels 128 --filters 128 --split-k 8",
                             "--channels 128 --filters 256 --cluster 2x1", "--channels 128 --filters 256 --cluster 1x2 --tile 128x128x64", "--channels 64 --filters 64 --grid-split-k 8",
                             "--channels 64 --filters 128 --grid-split-k 4 --cluster 2x1 --tile 64x128x64", "--channels 128 --filters 72 --schedule pingpong", "--channels 64 --filters 72 --order hilbert",
                             "--channels 192 --filters 8 --stride 3x2 --dilation 2x1 --type fp16", "--channels 64 --filters 64 --evict-first a"})
        expect_right(image + more + " --gradient weights", false, 1);
    for (const char* more : {"--channels 72 --filters 200", "--channels 256 --filters 128 --swap-ab on", "--channels 256 --filters 128 --split-k 2", "--channels 256 --filters 128 --cluster 2x1 --tile 128x128x64",
                             "--channels 256 --filters 64 --cluster 1x2", "--channels 256 --filters 64 --grid-split-k 2", "--channels 8 --filters 8 --dilation 1x2 --type fp16", "--channels 264 --filters 96 --schedule pingpong"})
        expect_right(image + more + " --gradient data", false, 1);
    // Fewer places than a block of K; one more; images of one place.
    for (const char* few : {"--batch 1 --width 5", "--batch 5 --width 13", "--batch 7 --width 1 --padding 1"})
        for (const char* gradient : {"data", "weights"}) expect_right(fmt::format("{} --channels 64 --filters 64 --kernel-size 3 --gradient {}{}", few, gradient, std::string_view(few).find("padding") != std::string_view::npos ? "" : " --padding 1"), false, 1);
}

TEST_F(ConvTest, EveryWayOfTheProduct) {
    const std::string image = "--batch 2 --channels 96 --height 33 --width 29 --kernel-size 3x5 --padding 1x2 --filters ";
    for (const char* more : {"64", "128 --swap-ab on", "256 --split-k 2", "256 --cluster 2x1", "512 --cluster 1x2", "256 --grid-split-k 2", "128 --stride 2x1 --dilation 1x2",
                             "64 --kernel sm80_gemm", "65 --kernel sm80_gemm --stride 2x1 --dilation 1x2 --tile 64x32x64", "128 --kernel sm80_gemm --order hilbert --ctas-per-sm 1",
                             "128 --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]", "255", "256 --split-k 2 --layout nchw"})
        expect_right(image + more, false, 1);
}

}  // namespace
}  // namespace rooftile
