// An image followed through L2: blocks are the pixels of the definition, every one is read once where L2 holds all, none where nobody meets it,
// and small caches read them again.
#include "rooftile/conv/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "rooftile/conv/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/tiled/l2_image.hpp"
#include "tests/core/example.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

// What places of a tile and a tap ask for, one by one, by the definition.
TEST(L2ImageBlocks, AreThePixelsOfTheDefinition) {
    Random random(test_seed());
    for (int trial = 0; trial < 200; ++trial) {
        ImageOperand image{.images = random.whole(1, 3), .channels = random.whole(1, 20)};
        for (ImageAxis& axis : image.axes)
            axis = {.extent = random.whole(1, 7), .taps = random.whole(1, 3), .stride = random.whole(1, 3), .padding = random.whole(0, 3), .dilation = random.whole(1, 2)};
        if (image.rows() == 0) continue;
        const L2Image blocks{image, random.whole(1, 8), 2, 100};
        const std::int64_t from = random.whole(0, image.rows() - 1), to = random.whole(from + 1, image.rows()), k = random.whole(0, image.blocks(blocks.block_channels) - 1);
        std::map<std::int64_t, std::int64_t> got, expected;
        blocks.for_each_block(from, to, k, [&](std::int64_t id, std::int64_t bytes) { got[id] += bytes; });
        for (std::int64_t place = from; place < to; ++place) {
            std::int64_t left = place, tap = k / blocks.channel_blocks(), pixel = 0, scale = 1;
            bool inside = true;
            for (const ImageAxis& axis : image.axes) {
                const std::int64_t at = left % axis.places() * axis.stride - axis.padding + tap % axis.taps * axis.dilation;
                inside &= at >= 0 && at < axis.extent;
                pixel += at * scale, scale *= axis.extent, left /= axis.places(), tap /= axis.taps;
            }
            const std::int64_t block = k % blocks.channel_blocks();
            if (inside) expected[100 + (pixel + left * scale) * blocks.channel_blocks() + block] += 2 * std::min(blocks.block_channels, image.channels - block * blocks.block_channels);
        }
        EXPECT_EQ(got, expected);
    }
}

SimulatedBytes simulated(const std::string& line, std::string_view set, std::string_view policy = "lru", std::string_view layout = "half") {
    Machine machine = machine_by_id("h100-sxm");
    set_number(machine, set);
    const Given given = given_of(conv_operation(), line);
    const PlanSet plans = conv_operation().derive(std::make_shared<const Machine>(machine), conv_operation().problem(given), conv_simulates().request(given));
    return conv_simulates().simulate(machine, plans, given, {.orders = "plan", .policy = std::string(policy), .layout = std::string(layout)})->planned();
}

const std::string small_layer = "--batch 4 --channels 96 --height 56 --width 56 --filters 128 --kernel-size 3 --padding 1";

TEST(ConvSimulation, ALargeL2ReadsEveryTensorOnce) {
    const double places = 4.0 * 56 * 56;
    EXPECT_EQ(double(simulated(small_layer, "l2.size=200MiB").dram), places * 96 * 2 + 9 * 96 * 128 * 2 + places * 128 * 2);
    // Pixels between filters a stride apart are nobody's.
    EXPECT_EQ(double(simulated("--batch 4 --channels 64 --height 64 --width 64 --filters 128 --kernel-size 1 --stride 2", "l2.size=200MiB").dram),
              4.0 * 32 * 32 * 64 * 2 + 64 * 128 * 2 + 4.0 * 32 * 32 * 128 * 2);
}

TEST(ConvSimulation, LessL2ReadsNoLess) {
    std::int64_t before = 0;
    for (const char* l2 : {"l2.size=200MiB", "l2.size=8MiB", "l2.size=2MiB", "l2.size=512KiB"}) {
        const SimulatedBytes moved = simulated(small_layer, l2);
        EXPECT_GE(moved.dram, before) << l2;
        EXPECT_GE(double(moved.dram), moved.dram_bound.value_or(0)) << l2;
        before = moved.dram;
    }
    EXPECT_LE(simulated(small_layer, "l2.size=2MiB", "opt").dram, simulated(small_layer, "l2.size=2MiB").dram);
    EXPECT_GE(simulated(small_layer, "l2.size=2MiB", "lru", "halves").dram, simulated(small_layer, "l2.size=200MiB").dram);
}

// A convolution of one tap is a matrix: pixel by pixel it reads what the product does block by block.
TEST(ConvSimulation, OfOneTapIsTheProducts) {
    const Operation& gemm = *image_products().operation;
    const auto& of_products = *facet_of<Simulates>(gemm);
    for (const char* l2 : {"l2.size=100MiB", "l2.size=2MiB"}) {
        Machine machine = machine_by_id("h100-sxm");
        set_number(machine, l2);
        const std::string fixed = " --tile 128x128x64 --stages 4 --order row --cluster 1x1 --split-k 1 --swap-ab off";
        const auto of = [&](const Operation& operation, const Simulates& simulates, const std::string& line) {
            const Given given = given_of(operation, line + fixed);
            const PlanSet plans = operation.derive(std::make_shared<const Machine>(machine), operation.problem(given), simulates.request(given));
            return simulates.simulate(machine, plans, given, {.orders = "plan"})->planned();
        };
        const SimulatedBytes conv = of(conv_operation(), conv_simulates(), "--batch 4 --channels 512 --height 32 --width 32 --filters 512 --kernel-size 1"),
                             product = of(gemm, of_products, "--m 4096 --n 512 --k 512");
        EXPECT_EQ(conv.l2, product.l2) << l2;
        EXPECT_NEAR(double(conv.dram), double(product.dram), 0.03 * double(product.dram)) << l2;
    }
}

TEST(ConvSimulation, DirectOnesAreRefused) {
    const Given given = given_of(conv_operation(), "--channels 64 --height 9 --width 9 --filters 64 --kernel-size 3 --groups 64");
    EXPECT_THROW(conv_simulates().check(conv_operation().problem(given), given), RequestError);
}

}  // namespace
}  // namespace rooftile
