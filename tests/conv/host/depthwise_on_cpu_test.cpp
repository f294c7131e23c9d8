// depthwise_conv's own text, thread by thread on the CPU: filters of 1 to 9 taps an axis, images smaller than a block and tiles of several, padding beyond the image;
// every element against the definition, nothing stored beside the result, nothing read beside the image and the filters. NaN and Inf are where the definition has them and
// nowhere else. Numbers are whole, so that sums are exact in any order.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/from_environment.hpp"

static const auto drawn_by = std::uint32_t(rooftile::test_seed());

#include "tests/fake/cta/words.hpp"

#include "kernels/conv/depthwise_conv.cuh"

#include "tests/conv/host/bias_relu_residual.hpp"

namespace cta_text {
namespace {

enum class Special { none, pixels, weight };

template <DepthwiseConvConfig C, bool with_epilogue>
void expect_right(int images, int height, int width, int filters, int padding_y, int padding_x, Special special, std::mt19937& random) {
    const int rows = height + 2 * padding_y - C.taps_y + 1, columns = width + 2 * padding_x - C.taps_x + 1;
    if (rows < 1 || columns < 1) return;
    constexpr unsigned short untouched = 0x1234;
    const auto filled = [&](std::size_t count) {
        std::vector<unsigned short> to(count + 8);
        for (unsigned short& x : to) x = ptx::bits_of(C.type, float(int(random() % 9) - 4));
        return to;
    };
    const auto aligned = [](std::vector<unsigned short>& of) { return of.data() + (16 - reinterpret_cast<std::uintptr_t>(of.data()) % 16) % 16 / 2; };
    const std::size_t pixels = std::size_t(images) * height * width * filters, weights = std::size_t(filters) * C.taps_y * C.taps_x;
    std::vector<unsigned short> x = filled(pixels), w = filled(weights), y(std::size_t(images) * rows * columns * filters + 16, untouched);
    if (special == Special::pixels) {
        aligned(x)[random() % pixels] = ptx::bits_of(C.type, HUGE_VALF), aligned(x)[random() % pixels] = ptx::bits_of(C.type, std::nanf(""));
        aligned(x)[random() % std::size_t(filters)] = ptx::bits_of(C.type, -HUGE_VALF);  // at the image's corner
    }
    if (special == Special::weight) aligned(w)[random() % weights] = ptx::bits_of(C.type, HUGE_VALF);
    DepthwiseConvArguments p{aligned(x), aligned(w), aligned(y), images, height, width, filters, rows, columns, padding_y, padding_x, {}, {}, {}, unsigned(images * rows * columns)};
    p.columns = divider(unsigned((filters - 1) / C.channels + 1)), p.tiles_x = divider(unsigned((columns - 1) / C.tile_x() + 1)), p.tiles_y = divider(unsigned((rows - 1) / C.tile_y() + 1));
    const std::vector<unsigned short> bias = filled(std::size_t(filters)), r = filled(std::size_t(p.rows) * filters);
    int outside = 0;
    on_global_read = [&](const void* from, std::size_t bytes) {
        const auto* at = static_cast<const unsigned short*>(from);
        const auto within = [&](const unsigned short* first, std::size_t count) { return at >= first && at + bytes / 2 <= first + count; };
        outside += !within(p.x, pixels) && !within(p.w, weights);
    };
    ASSERT_LE(C.shared_bytes(), int(sizeof memory));
    const unsigned tiles = unsigned((images - 1) / C.images + 1) * p.columns.divisor * p.tiles_x.divisor * p.tiles_y.divisor;
    for (unsigned tile = 0; tile < tiles; ++tile)
        run_cta_on_cpu(tile, unsigned(C.threads()), [&] {
            if constexpr (with_epilogue) depthwise_conv_epilogue<C>(p, BiasReluResidual<true>{bias.data(), r.data()});
            else depthwise_conv<C>(p);
        });
    on_global_read = nullptr;
    SCOPED_TRACE(testing::Message() << images << " of " << height << "x" << width << "x" << filters << ", padding " << padding_y << "x" << padding_x << ", " << C.taps_y << "x" << C.taps_x
                                    << " taps, special " << int(special));
    EXPECT_EQ(outside, 0);
    int wrong = 0;
    unsigned short* out = p.y;
    for (int at = 0; at < int(p.rows); ++at)
        for (int filter = 0; filter < filters; ++filter, ++out) {
            float sum = 0;
            for (int tap = 0; tap < C.taps_y * C.taps_x; ++tap) {
                const int at_y = at / columns % rows - padding_y + tap / C.taps_x, at_x = at % columns - padding_x + tap % C.taps_x;
                const bool inside = at_y >= 0 && at_y < height && at_x >= 0 && at_x < width;  // beside it zeros, by weights of any kind
                const float pixel = inside ? ptx::number_of(C.type, p.x[((std::size_t(at / (rows * columns)) * height + at_y) * width + at_x) * filters + filter]) : 0;
                sum += pixel * ptx::number_of(C.type, p.w[std::size_t(filter) * C.taps_y * C.taps_x + tap]);
            }
            if (with_epilogue) sum = BiasReluResidual<true>::element(sum, bias[std::size_t(filter)], r[std::size_t(at) * filters + filter]);
            const float stored = ptx::number_of(C.type, *out);
            wrong += std::isnan(sum) ? !std::isnan(stored) : stored != ptx::number_of(C.type, ptx::bits_of(C.type, sum));
            *out = untouched;
        }
    EXPECT_EQ(wrong, 0);
    for (const unsigned short element : y) EXPECT_EQ(element, untouched);  // beside the result
}

template <DepthwiseConvConfig C, bool with_epilogue = false>
void expect_right(std::mt19937& random) {
    const auto number = [&](int least, int most) { return least + int(random() % unsigned(most - least + 1)); };
    for (const Special special : {Special::none, Special::none, Special::pixels, Special::weight}) {
        const int height = number(1, C.tile_y() + 5), width = number(1, C.tile_x() + 9);
        expect_right<C, with_epilogue>(number(1, C.images + 1), height, width, 8 * number(1, 5), number(0, C.taps_y + 1), number(0, C.taps_x + 1), special, random);
    }
    expect_right<C, with_epilogue>(1, 1, 1, 8, C.taps_y - 1, C.taps_x - 1, Special::none, random);  // one pixel
}

constexpr DepthwiseConvConfig config(int taps_y, int taps_x, int images, int groups, int rows, int blocks, int channels, int pitch, int warps, Type type = Type::bf16, int sum_bytes = 2) {
    return {type, taps_y, taps_x, images, groups, rows, blocks, channels, pitch, sum_bytes, warps, 1};
}

TEST(DepthwiseConv, IsTheDefinitionInEveryForm) {
    std::mt19937 random(drawn_by);
    expect_right<config(7, 7, 1, 2, 7, 7, 16, 9, 4)>(random);
    expect_right<config(3, 3, 4, 2, 7, 2, 16, 3, 4)>(random);
    expect_right<config(5, 5, 1, 4, 4, 3, 8, 5, 2, Type::fp16)>(random);
    expect_right<config(9, 9, 3, 1, 3, 1, 24, 2, 2)>(random);
    expect_right<config(1, 1, 2, 1, 1, 3, 32, 4, 1)>(random);
    expect_right<config(1, 4, 5, 1, 1, 5, 8, 6, 2)>(random);
    expect_right<config(7, 2, 1, 3, 5, 1, 16, 3, 2, Type::fp16)>(random);
    expect_right<config(2, 8, 2, 2, 8, 4, 8, 7, 3)>(random);
    expect_right<config(6, 9, 1, 1, 2, 2, 40, 3, 2)>(random);
}

TEST(DepthwiseConv, FinishesEachSumWithItsOwnOperands) {
    std::mt19937 random(drawn_by);
    expect_right<config(7, 7, 1, 2, 7, 3, 16, 5, 4, Type::bf16, 4), true>(random);
    expect_right<config(3, 3, 2, 1, 7, 1, 8, 2, 2, Type::fp16, 4), true>(random);
}

// Layers of networks as they are planned: sides of 7, 14 and 56.
TEST(DepthwiseConv, IsTheDefinitionOfNetworksLayers) {
    std::mt19937 random(drawn_by);
    for (const Special special : {Special::none, Special::pixels}) {
        expect_right<config(7, 7, 1, 2, 7, 7, 16, 9, 4), false>(1, 56, 56, 16, 3, 3, special, random);
        expect_right<config(5, 5, 2, 2, 7, 2, 16, 3, 4), false>(3, 14, 14, 24, 2, 2, special, random);
        expect_right<config(3, 3, 8, 1, 7, 1, 8, 2, 4), false>(9, 7, 7, 8, 1, 1, special, random);
    }
}

}  // namespace
}  // namespace cta_text
