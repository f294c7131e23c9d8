// stem_conv's own text, thread by thread on the CPU: windows that begin and end amid words, places of either parity, tiles that hang over, copies
// and stores of every width; every element against the definition, nothing stored beside the result, nothing read beside the image. NaN and Inf
// are where the definition has them and nowhere else. Numbers are whole, so that sums are exact in any order.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/from_environment.hpp"

static const auto drawn_by = std::uint32_t(rooftile::test_seed());

#include "tests/fake/cta/words.hpp"

#include "kernels/conv/stem_conv.cuh"

#include "tests/conv/host/bias_relu_residual.hpp"

namespace cta_text {
namespace {

template <StemConvConfig C, bool with_epilogue = false>
void expect_right(std::mt19937& random) {
    const auto number = [&](int least, int most) { return least + int(random() % unsigned(most - least + 1)); };
    for (int trial = 0; trial < 4; ++trial) {
        const int images = number(1, 2), height = number(1, 21), padding_y = number(0, 4);
        int width = number(1, 40), padding_x = number(0, 9), filters = number(1, 90);
        while (2 * width * C.channels % C.copy_bytes != 0) ++width;
        while ((1000 * 8 - padding_x * C.channels) % 8 != C.front) ++padding_x;
        while (2 * filters % C.store_bytes != 0) ++filters;
        const int rows = (height + 2 * padding_y - (C.taps_y - 1) * C.dilation_y - 1 + C.stride_y) / C.stride_y,
                  columns = (width + 2 * padding_x - C.taps_x + C.stride_x) / C.stride_x;
        if (height + 2 * padding_y <= (C.taps_y - 1) * C.dilation_y || width + 2 * padding_x < C.taps_x) continue;
        constexpr unsigned short untouched = 0x1234;
        const auto filled = [&](std::size_t count) {
            std::vector<unsigned short> to(count + 8);
            for (unsigned short& x : to) x = ptx::bits_of(C.type, float(number(-4, 4)));
            return to;
        };
        const std::size_t pixels = std::size_t(images) * height * width * C.channels, weights = std::size_t(filters) * C.taps_y * C.row_elements();
        std::vector<unsigned short> x = filled(pixels), w = filled(weights), y(std::size_t(images) * rows * columns * filters + 16, untouched);
        const auto aligned = [](std::vector<unsigned short>& of) { return of.data() + (16 - reinterpret_cast<std::uintptr_t>(of.data()) % 16) % 16 / 2; };
        if (trial >= 2)
            for (int i = 0; i < 3; ++i) aligned(x)[random() % pixels] = ptx::bits_of(C.type, i == 0 ? HUGE_VALF : std::nanf(""));
        StemConvArguments p{aligned(x), aligned(w), aligned(y), height, width * C.channels, filters, rows, columns, padding_y, (padding_x * C.channels + 7) / 8 * 8, {}, {}, 0,
                            unsigned(images * rows * columns)};
        p.tiles_x = divider(unsigned((columns - 1) / C.tile_x + 1)), p.tiles_y = divider(unsigned((rows - 1) / C.tile_y + 1));
        p.tiles = unsigned(images) * p.tiles_x.divisor * p.tiles_y.divisor;
        std::vector<unsigned short> bias(std::size_t(filters) + 1), r(std::size_t(p.rows) * filters + 1);
        for (auto* of : {&bias, &r})
            for (unsigned short& element : *of) element = ptx::bits_of(Type::bf16, float(number(-4, 4)));
        int outside = 0;
        on_global_read = [&](const void* from, std::size_t bytes) {
            const auto* at = static_cast<const unsigned short*>(from);
            const auto within = [&](const unsigned short* first, std::size_t count) { return at >= first && at + bytes / 2 <= first + count; };
            outside += !within(p.x, pixels) && !within(p.w, weights);
        };
        gridDim.x = 2, gridDim.y = unsigned((filters - 1) / C.cta_filters + 1);
        ASSERT_LE(C.shared_bytes(), int(sizeof memory));
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (unsigned block = 0; block < gridDim.x; ++block)
                run_cta_on_cpu(block, unsigned(C.threads()), [&] {
                    if constexpr (!with_epilogue) stem_conv<C>(p);
                    else if (filters % 2 == 0) stem_conv_epilogue<C>(p, BiasReluResidual<true>{bias.data(), r.data()});
                    else stem_conv_epilogue<C>(p, BiasReluResidual<false>{bias.data(), r.data()});
                });
        on_global_read = nullptr, blockIdx.y = 0;
        SCOPED_TRACE(testing::Message() << images << " of " << height << "x" << width << "x" << C.channels << ", padding " << padding_y << "x" << padding_x << ", " << filters
                                        << " filters " << C.taps_y << "x" << C.taps_x << ", trial " << trial);
        EXPECT_EQ(outside, 0);
        int wrong = 0;
        unsigned short* out = p.y;
        for (int at = 0; at < int(p.rows); ++at)
            for (int filter = 0; filter < filters; ++filter, ++out) {
                const int image = at / (rows * columns), row = at / columns % rows, column = at % columns;
                double sum = 0;
                for (int tap = 0; tap < C.taps_y * C.taps_x; ++tap) {
                    const int at_y = row * C.stride_y - padding_y + tap / C.taps_x * C.dilation_y, at_x = column * C.stride_x - padding_x + tap % C.taps_x;
                    if (at_y < 0 || at_y >= height || at_x < 0 || at_x >= width) continue;
                    for (int channel = 0; channel < C.channels; ++channel)
                        sum += double(ptx::number_of(C.type, p.x[((std::size_t(image) * height + at_y) * width + at_x) * C.channels + channel]))
                               * ptx::number_of(C.type, p.w[(std::size_t(filter) * C.taps_y * C.taps_x + tap) * C.channels + channel]);
                }
                float value = float(sum);
                if (with_epilogue) value = BiasReluResidual<true>::element(value, bias[std::size_t(filter)], r[std::size_t(at) * filters + filter]);
                const float stored = ptx::number_of(C.type, *out);
                wrong += std::isnan(value) ? !std::isnan(stored) : stored != ptx::number_of(C.type, ptx::bits_of(C.type, value));
                *out = untouched;
            }
        EXPECT_EQ(wrong, 0);
        for (const unsigned short element : y) EXPECT_EQ(element, untouched);  // beside the result
    }
}

constexpr StemConvConfig config(int taps_y, int taps_x, int stride_y, int stride_x, int channels, int padding_x, int tile_y, int tile_x, int warps, int warp_tiles,
                                int warp_filters, int cta_filters, int apart, int copy_bytes, int store_bytes, int dilation_y = 1, Type type = Type::bf16) {
    return {type, taps_y, taps_x, stride_y, stride_x, dilation_y, channels, (8000 - padding_x * channels) % 8, tile_y, tile_x, warps, warp_tiles, warp_filters,
            cta_filters, apart, copy_bytes, store_bytes, 1};
}

TEST(StemConv, IsTheDefinitionInEveryForm) {
    std::mt19937 random(drawn_by);
    expect_right<config(7, 7, 2, 2, 3, 3, 4, 16, 2, 2, 64, 64, 1, 16, 16)>(random);
    expect_right<config(7, 7, 2, 2, 3, 2, 3, 8, 3, 1, 32, 96, 2, 8, 8)>(random);
    expect_right<config(4, 4, 4, 4, 3, 0, 4, 8, 2, 1, 32, 96, 2, 16, 16)>(random);
    expect_right<config(3, 3, 1, 1, 3, 1, 4, 16, 2, 4, 32, 64, 2, 4, 4)>(random);   // places of both parities, windows begin amid a word
    expect_right<config(3, 3, 1, 1, 3, 0, 2, 24, 2, 1, 32, 32, 2, 2, 2)>(random);
    expect_right<config(3, 2, 1, 1, 3, 1, 2, 16, 1, 2, 64, 64, 2, 2, 16)>(random);  // windows of whole words that begin and end amid words
    expect_right<config(3, 3, 2, 2, 1, 3, 4, 8, 2, 1, 32, 32, 1, 2, 2)>(random);
    expect_right<config(5, 3, 3, 1, 5, 2, 2, 16, 2, 2, 32, 64, 2, 2, 4, 2, Type::fp16)>(random);
    expect_right<config(1, 4, 1, 1, 1, 3, 1, 64, 2, 2, 32, 32, 2, 16, 8)>(random);
    expect_right<config(1, 1, 1, 2, 3, 0, 2, 8, 1, 1, 32, 32, 1, 4, 2)>(random);    // one tap
    expect_right<config(6, 1, 1, 1, 2, 1, 3, 16, 2, 2, 32, 32, 1, 4, 16)>(random);  // rows of taps of one word
    expect_right<config(3, 3, 2, 3, 12, 1, 2, 8, 1, 1, 64, 128, 1, 8, 16, 3)>(random);
}

TEST(StemConv, FinishesEachSumWithItsOwnOperands) {
    std::mt19937 random(drawn_by);
    expect_right<config(7, 7, 2, 2, 3, 3, 4, 16, 2, 2, 64, 64, 1, 16, 16), true>(random);
    expect_right<config(3, 3, 1, 1, 3, 1, 2, 16, 2, 1, 32, 64, 2, 4, 2), true>(random);
}

}  // namespace
}  // namespace cta_text
