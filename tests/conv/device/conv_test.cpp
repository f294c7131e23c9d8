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
    return line.substr(1);
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

// Sides of networks, as they are planned.
TEST_F(ConvTest, DepthwiseOfNetworks) {
    for (const char* sizes : {"--channels 96 --filters 96 --groups 96 --height 56 --width 56", "--channels 384 --filters 384 --groups 384 --height 14 --width 14", "--channels 768 --filters 768 --groups 768 --height 7 --width 7"})
        for (const int taps : {3, 5, 7}) expect_right(fmt::format("--batch 8 {} --kernel-size {} --padding {}", sizes, taps, taps / 2), false, 4);
}

TEST_F(ConvTest, EveryWayOfTheProduct) {
    const std::string image = "--batch 2 --channels 96 --height 33 --width 29 --kernel-size 3x5 --padding 1x2 --filters ";
    for (const char* more : {"64", "128 --swap-ab on", "256 --split-k 2", "256 --cluster 2x1", "512 --cluster 1x2", "256 --grid-split-k 2", "128 --stride 2x1 --dilation 1x2",
                             "128 --epilogue \"y = relu(acc + bias) + r\" --tensor bias:bf16[N] --tensor r:bf16[M,N]", "255", "256 --split-k 2 --layout nchw"})
        expect_right(image + more, false, 1);
}

}  // namespace
}  // namespace rooftile
