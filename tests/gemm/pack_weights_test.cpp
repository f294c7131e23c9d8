// Weights packed of plain arrays: each is found where the layout says, and what does not fit is refused with its place.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/gemm/weight_values.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/pack_weights.hpp"
#include "tests/gemm/draw_quantised.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;

struct Plain {
    std::vector<signed char> q, zeros;
    std::vector<float> scales, numbers;  ///< numbers: zero points that are not whole
    std::vector<PlainArray> arrays(const GemmProblem& p) const {
        std::vector<PlainArray> out = {{q.data(), p.quantised.is_whole() ? "int8" : "uint8", p.n, p.k}, {scales.data(), "fp32", p.n, p.quantised.groups(p.k)}};
        if (p.quantised.zeros == ZeroType::integer) out.push_back({zeros.data(), "int8", p.n, p.quantised.groups(p.k)});
        if (p.quantised.zeros == ZeroType::real) out.push_back({numbers.data(), "fp32", p.n, p.quantised.groups(p.k)});
        return out;
    }
};

Plain drawn_plain(Random& random, const GemmProblem& p) {
    const int bias = p.quantised.bias();
    Plain w;
    for (std::int64_t i = 0; i < p.n * p.k; ++i) {
        std::int64_t q = random.whole(-bias, int(p.quantised.mask()) - bias);
        if (p.quantised.is_float() && class_of_bits(unsigned(q), float_type(p.quantised.weights)) != NumberClass::finite) q = 0x38;
        w.q.push_back(static_cast<signed char>(q));
    }
    for (std::int64_t i = 0; i < p.n * p.quantised.groups(p.k); ++i) {
        w.scales.push_back(p.quantised.power_scales() ? std::ldexp(1.0f, int(random.whole(-126, 127))) : float(random.uniform(-2, 2)));
        w.zeros.push_back(static_cast<signed char>(random.whole(-bias, 15 - bias)));
        w.numbers.push_back(float(random.uniform(-20, 20)));
    }
    return w;
}

std::vector<unsigned char> packed_of(const GemmProblem& p, std::span<const PlainArray> arrays) {
    std::vector<unsigned char> out(std::size_t(p.quantised.bytes(p.n, p.k)), 0xff);
    pack_weights(p, {0, p.n}, arrays, out);
    return out;
}

std::string pack_error(const GemmProblem& p, std::span<const PlainArray> arrays) {
    try {
        packed_of(p, arrays);
    } catch (const RequestError& error) { return error.what(); }
    return "";
}

// Lane l of an m16n8k16 has, of 16 rows and 16 of K, in its first register row l / 4 and columns 2 (l % 4) and the next; in the second row
// l / 4 + 8; in the third columns 8 further; in the fourth both. Counted here by lanes, in the packer by elements.
TEST(PackWeights, GivesEachLaneItsFragment) {
    GemmProblem p = gemm_problem(1, 64, 128);
    p.quantised = {.weights = WeightType::uint4};
    Random random(1);
    const Plain w = drawn_plain(random, p);
    const std::vector<unsigned char> packed = packed_of(p, w.arrays(p));
    for (int half = 0; half < 2; ++half)
        for (int tile = 0; tile < 4; ++tile)
            for (int lane = 0; lane < 32; ++lane)
                for (int step = 0; step < 4; ++step) {
                    std::uint32_t word = 0;
                    std::memcpy(&word, &packed[std::size_t(128 + (((half * 4 + tile) * 32 + lane) * 4 + step) * 4)], 4);
                    for (int reg = 0; reg < 4; ++reg)
                        for (int e = 0; e < 2; ++e) {
                            const int row = tile * 16 + lane / 4 + reg % 2 * 8, k = half * 64 + step * 16 + lane % 4 * 2 + reg / 2 * 8 + e;
                            ASSERT_EQ(word >> (4 * reg + 16 * e) & 15, unsigned(w.q[std::size_t(row * 128 + k)]));
                        }
                }
}

TEST(PackWeights, HoldsEveryWeightOfEveryLayout) {
    Random random(2);
    for (int i = 0; i < 60; ++i) {
        GemmProblem p = drawn_quantised(random, 200, 500);
        const QuantisedLayout& layout = p.quantised;
        const Plain w = drawn_plain(random, p);
        const std::vector<unsigned char> packed = packed_of(p, w.arrays(p));
        std::vector<double> unpacked(std::size_t(p.n * p.k));
        unpack_weights(p, {0, p.n}, packed, unpacked);
        std::uint32_t header[3];
        std::memcpy(header, packed.data(), sizeof header);
        EXPECT_EQ(header[0], layout.fingerprint());
        EXPECT_EQ(header[1], p.n);
        EXPECT_EQ(header[2], p.k);
        for (std::int64_t n = 0; n < p.n; ++n)
            for (std::int64_t k = 0; k < p.k; ++k) {
                const unsigned char* block = packed.data() + layout.block_at(n, k, p.k);
                const int row = int(n % 64), column = int(k % 128);
                std::uint32_t word = 0;
                std::uint16_t scale = 0;
                std::memcpy(&word, block + 4 * layout.word_of(row, column), 4);
                std::memcpy(&scale, block + layout.scale_at(row, column), std::size_t(layout.scale_bytes()));
                const std::size_t group = std::size_t(n * layout.groups(p.k) + (layout.group == 0 ? 0 : k / layout.group));
                const unsigned bits = word >> layout.shift_of(row, column) & layout.mask();
                ASSERT_EQ(static_cast<signed char>(int(bits) - layout.bias()), w.q[std::size_t(n * p.k + k)]);
                const double by = layout.power_scales() ? std::ldexp(1.0, scale - 127) : value_of_bits(scale, layout.scale);
                if (layout.power_scales()) ASSERT_EQ(by, w.scales[group]);
                else ASSERT_EQ(scale, round_to_bits(w.scales[group], layout.scale));
                double weight = layout.is_whole() ? w.q[std::size_t(n * p.k + k)] : weight_value(layout, bits, p.b_type);
                if (layout.zeros == ZeroType::none) weight *= by;
                else if (layout.zeros == ZeroType::integer) {
                    ASSERT_EQ(block[layout.zero_at(row, column)] - layout.bias(), w.zeros[group]);
                    weight = (weight - w.zeros[group]) * by;
                } else {
                    std::uint16_t zero = 0;
                    std::memcpy(&zero, block + layout.zero_at(row, column), 2);
                    ASSERT_EQ(zero, round_to_bits(w.numbers[group], layout.scale));
                    weight = weight * by - value_of_bits(zero, layout.scale);
                }
                ASSERT_EQ(unpacked[std::size_t(n * p.k + k)], weight);
            }
    }
}

// 64 rows at a time, the last of them first: the same bytes.
TEST(PackWeights, TakesRowsInAnyOrder) {
    Random random(4);
    for (int i = 0; i < 10; ++i) {
        const GemmProblem p = drawn_quantised(random, 300, 300);
        const Plain w = drawn_plain(random, p);
        std::vector<unsigned char> out(std::size_t(p.quantised.bytes(p.n, p.k)), 0xff);
        for (std::int64_t first = (p.n - 1) / 64 * 64; first >= 0; first -= 64) {
            const RowRange rows{first, std::min<std::int64_t>(64, p.n - first)};
            std::vector<PlainArray> arrays = w.arrays(p);
            for (PlainArray& array : arrays) {
                const int bytes = array.type == "fp32" ? 4 : 1;  // of q
                array.data = static_cast<const unsigned char*>(array.data) + first * array.columns * bytes;
                array.rows = rows.count;
            }
            pack_weights(p, rows, arrays, out);
        }
        EXPECT_EQ(out, packed_of(p, w.arrays(p)));
    }
}

TEST(PackWeights, NamesElementsByTheirPlaceInTheWhole) {
    GemmProblem p = gemm_problem(1, 70, 128);
    p.quantised = {.weights = WeightType::int4, .zeros = ZeroType::real};
    const std::vector<signed char> q(6 * 128);
    const float scales[6] = {}, zeros[6] = {0, 0, INFINITY};
    const PlainArray arrays[] = {{q.data(), "int8", 6, 128}, {scales, "fp32", 6, 1}, {zeros, "fp32", 6, 1}};
    std::vector<unsigned char> out(std::size_t(p.quantised.bytes(p.n, p.k)));
    try {
        pack_weights(p, {64, 6}, arrays, out);
        FAIL() << "accepted";
    } catch (const RequestError& error) { EXPECT_THAT(error.what(), HasSubstr("zeros[66, 0] is inf")); }
}

TEST(PackWeights, RefusesWhatDoesNotFit) {
    GemmProblem p = gemm_problem(1, 3, 200);
    p.quantised = {.weights = WeightType::int4, .group = 64, .zeros = ZeroType::integer};
    Random random(3);
    Plain w = drawn_plain(random, p);
    EXPECT_EQ(pack_error(p, w.arrays(p)), "");
    w.q[203] = 8;
    EXPECT_THAT(pack_error(p, w.arrays(p)), HasSubstr("q[1, 3] is 8; accepted are -8 .. 7"));
    w.q[203] = 0, w.zeros[5] = -9;
    EXPECT_THAT(pack_error(p, w.arrays(p)), HasSubstr("zeros[1, 1] is -9"));
    w.zeros[5] = 0, w.scales[4] = INFINITY;
    EXPECT_THAT(pack_error(p, w.arrays(p)), HasSubstr("scales[1, 0] is inf"));
    w.scales[4] = 1;
    std::vector<PlainArray> arrays = w.arrays(p);
    arrays[1].columns = 3;
    EXPECT_THAT(pack_error(p, arrays), HasSubstr("scales is [3, 3]; here it is [3, 4]"));
    arrays = w.arrays(p), arrays[0].type = "fp32";
    EXPECT_THAT(pack_error(p, arrays), HasSubstr("q is fp32; accepted are int8, uint8"));
    arrays = w.arrays(p), arrays.pop_back();
    EXPECT_THAT(pack_error(p, arrays), HasSubstr("2 arrays are given"));
    p.quantised.weights = WeightType::uint4;
    w.q[0] = -1;
    EXPECT_THAT(pack_error(p, w.arrays(p)), HasSubstr("q[0, 0] is -1; accepted are 0 .. 15"));
}

// Bits of floats are what OCP's formats say; a table's numbers are rounded to the activations' type.
TEST(PackWeights, KnowsWhatBitsAre) {
    const auto value = [](WeightType weights, unsigned bits, Type activations = Type::bf16) { return weight_value({.weights = weights}, bits, activations); };
    EXPECT_EQ(value(WeightType::fp8_e4m3, 0x7e), 448);
    EXPECT_EQ(value(WeightType::fp8_e4m3, 0x81), -std::ldexp(1.0, -9));
    EXPECT_EQ(value(WeightType::fp8_e4m3, 0x08), std::ldexp(1.0, -6));
    EXPECT_EQ(value(WeightType::fp8_e5m2, 0x7b), 57344);
    EXPECT_EQ(value(WeightType::fp8_e5m2, 0x01), std::ldexp(1.0, -16));
    EXPECT_EQ(value(WeightType::mxfp4, 0x1), 0.5);
    EXPECT_EQ(value(WeightType::mxfp4, 0xf), -6);
    EXPECT_EQ(value(WeightType::nf4, 0), -1);
    EXPECT_EQ(value(WeightType::nf4, 7), 0);
    EXPECT_EQ(value(WeightType::nf4, 14), 0.72265625);                // 185 / 256
    EXPECT_EQ(value(WeightType::nf4, 14, Type::fp16), 0.72314453125);  // 1481 / 2048
}

// Kernels put the bits of floats in place and know no NaN; powers of two are stored as a byte, of which 0 and 255 are none.
TEST(PackWeights, RefusesWhatKernelsDoNotKnow) {
    GemmProblem p = gemm_problem(1, 2, 64);
    std::vector<unsigned char> q(128, 0x01), bytes(4, 127);
    std::vector<float> scales(4, 1);
    const auto error = [&](bool of_bytes) {
        const PlainArray arrays[] = {{q.data(), "uint8", 2, 64},
                                     of_bytes ? PlainArray{bytes.data(), "uint8", 2, p.quantised.groups(64)}
                                              : PlainArray{scales.data(), "fp32", 2, p.quantised.groups(64)}};
        return pack_error(p, arrays);
    };
    p.quantised = {.weights = WeightType::fp8_e4m3, .group = 32};
    EXPECT_EQ(error(false), "");
    EXPECT_THAT(error(true), HasSubstr("scales is uint8; accepted are fp32, fp16, bf16"));
    q[65] = 0xff;
    EXPECT_THAT(error(false), HasSubstr("q[1, 1] is 255; accepted are bits of finite numbers of fp8_e4m3"));
    p.quantised.weights = WeightType::fp8_e5m2;
    for (const unsigned char none : {0x7c, 0xfc, 0x7f}) {
        q[65] = none;
        EXPECT_THAT(error(false), HasSubstr("bits of finite numbers of fp8_e5m2"));
    }
    q[65] = 16;
    p.quantised.weights = WeightType::mxfp4;
    EXPECT_THAT(error(true), HasSubstr("q[1, 1] is 16; accepted are 0 .. 15"));
    q[65] = 15;
    EXPECT_EQ(error(true), "");
    EXPECT_EQ(error(false), "");
    scales[3] = 3;
    EXPECT_THAT(error(false), HasSubstr("scales[1, 1] is 3; accepted are powers of two"));
    scales[3] = -1;
    EXPECT_THAT(error(false), HasSubstr("scales[1, 1] is -1; accepted are powers of two"));
    scales[3] = 0;
    EXPECT_EQ(error(false), "");
    bytes[2] = 255;
    EXPECT_THAT(error(true), HasSubstr("scales[1, 0] is 255; accepted are 1 .. 254"));
    bytes[2] = 0;
    EXPECT_THAT(error(true), HasSubstr("scales[1, 0] is 0; accepted are 1 .. 254, exponents less 127, and 0 of weights that are 0"));
    std::fill_n(q.begin() + 64, 32, 0x08);  // -0
    EXPECT_EQ(error(true), "");
}

}  // namespace
}  // namespace rooftile
