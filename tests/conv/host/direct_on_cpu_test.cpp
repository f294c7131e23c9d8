// direct_conv's own text, thread by thread on the CPU: vectors, strips and groups of all kinds, strides, dilation, images smaller than a strip;
// every element against the definition, nothing stored beside the result, no pixel read beside the image; with an epilogue each of its operands at
// its own element. Numbers are whole, so that sums are exact in any order.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/from_environment.hpp"

static const auto drawn_by = std::uint32_t(rooftile::test_seed());

#include "tests/fake/cta/words.hpp"

namespace cta_text {

alignas(16) inline float weights[1 << 16];  // what a CTA asks for as shared memory

namespace ptx {
inline void keep(float&) {}
}  // namespace ptx
}  // namespace cta_text

#include "kernels/conv/direct_conv.cuh"

namespace cta_text {
namespace {

/// relu(acc + bias) + r * s of bias [N], r [M,N] and one s, as the host writes such a class; `paired`: filters are an even number.
template <bool paired>
struct BiasReluResidual {
    const unsigned short *bias, *r;
    const float *s, *of_row;  // of_row: [M,1], added last

    struct Once {
        float s;
    };
    Once once() const { return {*s}; }
    struct Operands {
        unsigned short bias[2], r[2];
        float of_row[2];
    };
    template <bool turned>
    void load(Operands& to, const EpiloguePair& at) const {
        load_pair<turned, false, false, true, paired>(to.bias, bias, at);
        load_pair<turned, false, true, true, paired>(to.r, r, at);
        load_pair<turned, false, true, false, paired>(to.of_row, of_row, at);
    }
    static float element(float acc, float bias, float r, float s, float of_row) { return std::max(acc + bias, 0.0f) + r * s + of_row; }
    template <bool turned>
    void apply(float (&to)[2], float first, float second, const Operands& with, const Once& once, const EpiloguePair&) const {
        for (int i = 0; i < 2; ++i)
            to[i] = element(i == 0 ? first : second, ptx::number_of(Type::bf16, with.bias[i]), ptx::number_of(Type::bf16, with.r[i]), once.s, with.of_row[i]);
    }
};

/// Operands' memory is exactly theirs, so that a sanitizer sees what is read beside it.
struct EpilogueOperands {
    std::vector<unsigned short> bias, r;
    std::vector<float> of_row;
    float s = 2;
};

int places(int extent, int padding, int taps, int dilation, int stride) {
    const int room = extent + 2 * padding - (taps - 1) * dilation - 1;
    return room < 0 ? 0 : room / stride + 1;
}

template <DirectConvConfig C, bool with_epilogue = false>
void expect_right(int groups, std::mt19937& random) {
    for (int trial = 0; trial < 3; ++trial) {
        const auto number = [&](int least, int most) { return least + int(random() % unsigned(most - least + 1)); };
        const int images = number(1, 2), height = number(1, 15), width = number(1, 19), padding_y = number(0, 4), padding_x = number(0, 4);
        const int channels = groups * C.group_channels, filters = groups * C.group_filters;
        const int rows = places(height, padding_y, C.taps_y, C.dilation_y, C.stride_y), columns = places(width, padding_x, C.taps_x, C.dilation_x, C.stride_x);
        if (rows == 0 || columns == 0) continue;
        constexpr unsigned short untouched = 0x1234;
        const auto filled = [&](std::size_t count) {
            std::vector<unsigned short> to(count + 8);
            for (unsigned short& x : to) x = ptx::bits_of(C.type, float(number(-4, 4)));
            return to;
        };
        std::vector<unsigned short> x = filled(std::size_t(images) * height * width * channels), w = filled(std::size_t(filters) * C.taps() * C.group_channels),
                                    y(std::size_t(images) * rows * columns * filters + 16, untouched);
        const auto aligned = [](std::vector<unsigned short>& of) { return of.data() + (16 - reinterpret_cast<std::uintptr_t>(of.data()) % 16) % 16 / 2; };
        DirectConvArguments p{aligned(x), w.data(), aligned(y), height, width, channels, filters, rows, columns, padding_y, padding_x, {}, {}, 0, unsigned(images * rows * columns)};
        EpilogueOperands operands;
        if (with_epilogue) {
            operands.bias.resize(std::size_t(filters)), operands.r.resize(std::size_t(p.rows) * filters), operands.of_row.resize(p.rows);
            for (auto* of : {&operands.bias, &operands.r})
                for (unsigned short& element : *of) element = ptx::bits_of(Type::bf16, float(number(-4, 4)));
            for (float& element : operands.of_row) element = float(number(-4, 4));
        }
        const unsigned across = unsigned((columns + C.strip - 1) / C.strip), down = unsigned((rows + C.rows - 1) / C.rows);
        p.strips_x = divider(across), p.strips_y = divider(down), p.strips = across * down * unsigned(images);
        int outside = 0;
        on_global_read = [&](const void* from, std::size_t bytes) {
            const auto* at = static_cast<const unsigned short*>(from);
            outside += at < p.x || at + bytes / 2 > p.x + std::size_t(images) * height * width * channels;
        };
        gridDim.x = 2, gridDim.y = unsigned((filters + C.cta_filters() - 1) / C.cta_filters());
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
                std::fill(std::begin(weights), std::end(weights), std::nanf(""));
                Fibers::now().run(unsigned(C.threads()), [&] {
                    if constexpr (!with_epilogue) direct_conv<C>(p);
                    else {
                        const auto launched = [&]<bool paired>() {
                            direct_conv_epilogue<C>(p, BiasReluResidual<paired>{operands.bias.data(), operands.r.data(), &operands.s, operands.of_row.data()});
                        };
                        if (filters % 2 == 0) launched.template operator()<true>();
                        else launched.template operator()<false>();
                    }
                });
            }
        on_global_read = nullptr, blockIdx.y = 0;
        SCOPED_TRACE(testing::Message() << images << " of " << height << "x" << width << "x" << channels << ", padding " << padding_y << "x" << padding_x << ", " << filters
                                        << " filters " << C.taps_y << "x" << C.taps_x);
        EXPECT_EQ(outside, 0);
        int wrong = 0;
        unsigned short* out = p.y;
        for (int image = 0; image < images; ++image)
            for (int row = 0; row < rows; ++row)
                for (int column = 0; column < columns; ++column)
                    for (int filter = 0; filter < filters; ++filter, ++out) {
                        float sum = 0;
                        for (int tap = 0; tap < C.taps(); ++tap) {
                            const int at_y = row * C.stride_y - padding_y + tap / C.taps_x * C.dilation_y, at_x = column * C.stride_x - padding_x + tap % C.taps_x * C.dilation_x;
                            if (at_y < 0 || at_y >= height || at_x < 0 || at_x >= width) continue;
                            for (int channel = 0; channel < C.group_channels; ++channel)
                                sum += ptx::number_of(C.type, p.x[((std::size_t(image) * height + at_y) * width + at_x) * channels + filter / C.group_filters * C.group_channels + channel])
                                       * ptx::number_of(C.type, p.w[(std::size_t(filter) * C.taps() + tap) * C.group_channels + channel]);
                        }
                        if (with_epilogue) {
                            const std::size_t at_row = (std::size_t(image) * rows + row) * columns + column;
                            sum = BiasReluResidual<true>::element(sum, ptx::number_of(Type::bf16, operands.bias[std::size_t(filter)]),
                                                                  ptx::number_of(Type::bf16, operands.r[at_row * filters + filter]), operands.s, operands.of_row[at_row]);
                        }
                        wrong += *out != ptx::bits_of(C.type, sum);
                        *out = untouched;
                    }
        EXPECT_EQ(wrong, 0);
        for (const unsigned short element : y) EXPECT_EQ(element, untouched);  // beside the result
    }
}

constexpr DirectConvConfig config(int taps_y, int taps_x, int stride_y, int stride_x, int dilation_y, int dilation_x, int group_channels, int group_filters, int vector, int strip,
                                  int rows, int lanes, int slots, int load_bytes, Type type = Type::bf16) {
    return {type, taps_y, taps_x, stride_y, stride_x, dilation_y, dilation_x, group_channels, group_filters, vector, strip, rows, lanes, slots, load_bytes};
}

TEST(DirectConv, IsTheDefinitionInEveryForm) {
    std::mt19937 random(drawn_by);
    expect_right<config(3, 3, 1, 1, 1, 1, 1, 1, 8, 4, 2, 4, 8, 16)>(40, random);
    expect_right<config(3, 3, 2, 2, 1, 1, 1, 1, 8, 4, 2, 4, 8, 16)>(40, random);
    expect_right<config(7, 7, 1, 1, 1, 1, 1, 1, 4, 8, 1, 8, 4, 8)>(36, random);
    expect_right<config(3, 5, 1, 2, 2, 1, 1, 1, 2, 4, 4, 8, 4, 4)>(10, random);
    expect_right<config(3, 3, 1, 1, 1, 1, 4, 4, 8, 4, 1, 4, 8, 16, Type::fp16)>(6, random);
    expect_right<config(3, 3, 1, 1, 1, 1, 4, 8, 4, 4, 2, 4, 8, 8)>(6, random);
    expect_right<config(7, 7, 2, 2, 1, 1, 3, 64, 8, 4, 1, 8, 4, 2)>(1, random);
    expect_right<config(1, 4, 1, 1, 1, 1, 1, 1, 8, 8, 1, 8, 4, 16)>(64, random);
    expect_right<config(5, 3, 3, 1, 1, 2, 1, 2, 2, 8, 2, 4, 8, 2)>(7, random);
    expect_right<config(3, 3, 1, 1, 1, 1, 2, 1, 8, 2, 2, 2, 16, 16)>(32, random);
    expect_right<config(3, 3, 1, 1, 1, 1, 5, 3, 1, 2, 2, 4, 8, 2)>(7, random);
}

TEST(DirectConv, FinishesEachSumWithItsOwnOperands) {
    std::mt19937 random(drawn_by);
    expect_right<config(3, 3, 1, 1, 1, 1, 1, 1, 8, 4, 2, 4, 8, 16), true>(40, random);
    expect_right<config(3, 3, 2, 2, 1, 1, 4, 4, 8, 4, 1, 4, 8, 16, Type::fp16), true>(6, random);
    expect_right<config(7, 7, 2, 2, 1, 1, 3, 64, 4, 4, 1, 8, 4, 2), true>(1, random);
    expect_right<config(5, 3, 3, 1, 1, 2, 1, 2, 2, 8, 2, 4, 8, 2), true>(7, random);
    expect_right<config(3, 3, 1, 1, 1, 1, 5, 3, 1, 2, 2, 4, 8, 2), true>(7, random);   // one filter a thread of an odd number of them,
    expect_right<config(3, 3, 1, 1, 1, 1, 5, 3, 1, 2, 2, 4, 8, 2), true>(6, random);   // of an even number: words of two begin amid others
}

}  // namespace
}  // namespace cta_text
