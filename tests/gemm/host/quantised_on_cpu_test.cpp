// The texts of sm90_few_quantised and sm90_many_quantised, thread by thread on the CPU: every layout of weights, tiles that CTAs share, edges of
// M, N and K, an expression before the store; every element against the plain sums, and nothing read beside the operands. Numbers are whole, so
// that sums are exact in any order.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "tests/fake/cta/words.hpp"

#include "kernels/gemm/quantised_reference.cuh"
#include "kernels/gemm/sm90_few_quantised.cuh"
#include "kernels/gemm/sm90_many_quantised.cuh"
#include "kernels/gemm/unpack_weights.cuh"

namespace cta_text {
namespace {

/// A weight before it is scaled, by the types' definitions.
float value_of(const QuantisedLayout& layout, Type activations, int q) {
    static constexpr float e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    // QLoRA's 16 numbers to four digits more than a bf16 has; fp16 takes the nearest of 11 digits.
    static constexpr float nf4[] = {-1,         -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f, -0.091050036f, 0,
                                    0.0795803f, 0.1609302f,  0.2461123f,   0.33791524f, 0.44070983f,  0.562617f,    0.72295684f,   1};
    const auto number = [q](int fraction_bits, int bias) {
        const int exponent = (q & 127) >> fraction_bits, fraction = q & ((1 << fraction_bits) - 1);
        const float part = float(fraction) / float(1 << fraction_bits);
        return (q > 127 ? -1.0f : 1.0f) * (exponent == 0 ? std::ldexp(part, 1 - bias) : std::ldexp(1 + part, exponent - bias));
    };
    switch (layout.weights) {
        case WeightType::fp8_e4m3: return number(3, 7);
        case WeightType::fp8_e5m2: return number(2, 15);
        case WeightType::mxfp4: return q < 8 ? e2m1[q] : -e2m1[q - 8];
        case WeightType::nf4: return ptx::number_of(activations, ptx::bits_of(activations, nf4[q]));
        default: return float(q - layout.bias());
    }
}

/// Bits of a float whose exponent is one of four that its row has: so that sums are exact, and all finite numbers are among them.
int in_window(const QuantisedLayout& layout, int q, long long row) {
    const int fraction_bits = layout.weights == WeightType::fp8_e4m3 ? 3 : 2, exponents = 1 << (7 - fraction_bits);
    const int exponent = int(row % (exponents / 4)) * 4 + (q >> fraction_bits) % 4;
    const int out = (q & 128) | exponent << fraction_bits | (q & ((1 << fraction_bits) - 1));
    const bool none = fraction_bits == 3 ? (out & 127) == 127 : exponent == exponents - 1;  // NaN, or Inf too
    return none ? out ^ 1 << fraction_bits : out;
}

/// Packed weights by the layout's own addresses, and what they are.
struct Weights {
    std::vector<unsigned char> packed;
    std::vector<float> w;

    Weights(const QuantisedLayout& layout, Type activations, int n, int k, std::mt19937& random)
        : packed(std::size_t(layout.bytes(n, k) + 16)), w(std::size_t(n) * std::size_t(k)) {
        // What pads N and K is there too, and must not matter; but scales are numbers.
        for (unsigned char& byte : packed) byte = static_cast<unsigned char>(random());
        const auto put = [&](long long at, const auto& value) { std::memcpy(first() + at, &value, sizeof value); };
        put(0, layout.fingerprint()), put(4, unsigned(n)), put(8, unsigned(k));
        for (long long row = 0; row < QuantisedLayout::row_blocks(n) * 64; ++row) {
            float scale = 0, less = 0;
            int zero = 0;
            for (long long column = 0; column < QuantisedLayout::k_blocks(k) * 128; column += layout.scaled_k()) {
                const long long block = layout.block_at(row, column, k);
                const int in_row = int(row % 64), in_column = int(column % 128);
                if (column == 0 || layout.group > 0)  // else the row's
                    scale = random() % 2 == 0 ? 1 : layout.power_scales() ? 4 : -2, less = float(int(random() % 31) - 15), zero = int(random() % 16);
                if (layout.power_scales()) put(block + layout.scale_at(in_row, in_column), static_cast<unsigned char>(127 + int(std::log2(scale))));
                else put(block + layout.scale_at(in_row, in_column), ptx::bits_of(layout.scale, scale));
                if (layout.zeros == ZeroType::integer) put(block + layout.zero_at(in_row, in_column), static_cast<unsigned char>(zero));
                if (layout.zeros == ZeroType::real) put(block + layout.zero_at(in_row, in_column), ptx::bits_of(layout.scale, less));
                if (row >= n) continue;
                for (long long i = column; i < std::min<long long>(column + layout.scaled_k(), k); ++i) {
                    unsigned word = 0;
                    std::memcpy(&word, first() + block + 4 * layout.word_of(in_row, int(i % 128)), 4);
                    const int shift = layout.shift_of(in_row, int(i % 128));
                    int q = int(word >> shift & layout.mask());
                    if (layout.is_float()) {
                        q = in_window(layout, q, row);
                        put(block + 4 * layout.word_of(in_row, int(i % 128)), (word & ~(0xffu << shift)) | unsigned(q) << shift);
                    }
                    const float value = value_of(layout, activations, q);
                    w[std::size_t(row * k + i)] = layout.zeros == ZeroType::integer ? float(q - zero) * scale
                                                  : layout.zeros == ZeroType::real  ? value * scale - less
                                                                                    : value * scale;
                }
            }
        }
    }
    unsigned char* first() { return packed.data() + (16 - reinterpret_cast<std::uintptr_t>(packed.data()) % 16) % 16; }
};

/// What the planner would write for "d = relu(acc + bias)", and no more.
struct BiasAndRelu {
    const float* bias;
    struct Once {};
    struct Operands {
        float bias[2];
    };
    Once once() const { return {}; }
    template <bool turned>
    void load(Operands& to, const EpiloguePair& at) const {
        load_pair<turned, false, false, true, false>(to.bias, bias, at);
    }
    template <bool turned>
    void apply(float (&to)[2], float first, float second, const Operands& with, const Once&, const EpiloguePair&) const {
        to[0] = std::max(0.0f, first + with.bias[0]), to[1] = std::max(0.0f, second + with.bias[1]);
    }
};

struct Shape {
    int m, n, k;
    unsigned ctas;
    int a_pad = 0, c_pad = 0;
    int band = 1;  ///< rows of tiles that are taken together
    std::vector<int> groups{};  ///< rows of each, which are m in all; n columns of the weights are each one's
    int matrices() const { return groups.empty() ? 1 : int(groups.size()); }
};

/// A kernel, its arguments, and what it has of each tile.
template <Sm90QuantisedConfig C>
struct Few {
    static constexpr int spans = C.spans();
    using Arguments = Sm90QuantisedArguments;
    static std::size_t counters(const Shape& s) { return std::size_t((s.n + C.tile_n - 1) / C.tile_n); }
    static Arguments arguments(const Shape& s, const unsigned char* weights, void* c, float* partials, unsigned* arrived, long long ldc) {
        return {weights, c, partials, arrived, s.m, s.n, s.k, ldc};
    }
    static void plain(const TensorMap& t, const Arguments& p) { sm90_few_quantised<C>(t, p); }
    static void expressed(const TensorMap& t, const Arguments& p, const BiasAndRelu& e) { sm90_few_quantised_epilogue<C, BiasAndRelu>(t, p, e); }
};
template <Sm90ManyQuantisedConfig C>
struct Many {
    static constexpr int spans = C.spans;
    using Arguments = Sm90ManyQuantisedArguments;
    static std::size_t counters(const Shape& s) {
        return std::size_t(((s.m + C.tile_m - 1) / C.tile_m + s.matrices()) * ((s.n + C.tile_n - 1) / C.tile_n) * C.warpgroups());
    }
    static Arguments arguments(const Shape& s, const unsigned char* weights, void* c, float* partials, unsigned* arrived, long long ldc) {
        return {weights, c, partials, arrived, s.m, s.n, s.k, s.band, ldc};
    }
    static void plain(const TensorMap& t, const Arguments& p) { sm90_many_quantised<C>(t, p); }
    static void expressed(const TensorMap& t, const Arguments& p, const BiasAndRelu& e) { sm90_many_quantised_epilogue<C, BiasAndRelu>(t, p, e); }
};

template <auto C, bool expressed = false, class Kernel>
void expect_each_right(const Shape& s) {
    SCOPED_TRACE(testing::Message() << s.m << "x" << s.n << "x" << s.k << " by " << s.ctas << " CTAs, lda +" << s.a_pad << ", ldc +"
                                    << s.c_pad);
    std::mt19937 random(unsigned(s.k * 31 + s.n));
    const int all_n = s.n * s.matrices();
    Weights weights(C.layout, C.type, all_n, s.k, random);
    const long long lda = s.k + s.a_pad, ldc = s.n + s.c_pad;
    constexpr unsigned short untouched = 0x1234, nan = 0x7fff;
    std::vector<unsigned short> a(std::size_t(lda * s.m), nan), c(std::size_t(ldc * s.m), untouched);
    std::vector<float> x(std::size_t(s.m) * std::size_t(s.k)), bias(std::size_t(s.n));
    for (float& b : bias) b = float(int(random() % 41) - 20);
    for (int m = 0; m < s.m; ++m)
        for (int k = 0; k < s.k; ++k) {
            float& value = x[std::size_t(m) * std::size_t(s.k) + std::size_t(k)];
            value = float(int(random() % 3) - 1);
            a[std::size_t(m * lda + k)] = ptx::bits_of(C.type, value);
        }
    // Boxes of 64 of K by all rows: of a ragged K one at a time, else as many as a stage has.
    ptx::FakeMap map{a.data(), {s.k, s.m, 1, 1}, {64, C.tile_m, 1, 1}, {1, lda, 0, 0}};
    if (!C.ragged_k) map = {a.data(), {64, s.m, s.k / 64, 1}, {64, C.tile_m, Kernel::spans, 1}, {1, lda, 64, 0}};
    const TensorMap map_a = ptx::fake_map(map);
    std::vector<float> partials(2 * s.ctas * std::size_t(C.part_floats()), std::nanf(""));
    std::vector<unsigned> arrived(Kernel::counters(s), 0);
    auto arguments = Kernel::arguments(s, weights.first(), c.data(), partials.data(), arrived.data(), ldc);
    std::vector<int> offsets = {0}, group_of;
    for (std::size_t g = 0; g < s.groups.size(); ++g) {
        offsets.push_back(offsets.back() + s.groups[g]);
        group_of.resize(std::size_t(offsets.back()), int(g));
    }
    if constexpr (requires { arguments.offsets; })
        if (!s.groups.empty()) arguments.groups = s.matrices(), arguments.offsets = offsets.data();
    int outside = 0, early_of_a = 0;
    const auto within = [](const void* from, std::size_t bytes, const auto* begin, std::size_t size) {
        const auto at = reinterpret_cast<std::uintptr_t>(from), first = reinterpret_cast<std::uintptr_t>(begin);
        return at >= first && at + bytes <= first + size;
    };
    const auto of_weights = [&](const void* from, std::size_t bytes) {
        return within(from, bytes, weights.first(), std::size_t(C.layout.bytes(all_n, s.k)));
    };
    on_global_read = [&](const void* from, std::size_t bytes) {
        outside += !within(from, bytes, a.data(), a.size() * 2) && !of_weights(from, bytes);
    };
    on_early_read = [&](const void* from, std::size_t bytes) { early_of_a += !of_weights(from, bytes); };
    gridDim.x = s.ctas;
    for (unsigned cta = s.ctas; cta-- > 0;) {  // whoever comes last is not the last part
        if constexpr (expressed)
            run_cta_on_cpu(cta, unsigned(C.threads()), Kernel::expressed, map_a, arguments, BiasAndRelu{bias.data()});
        else run_cta_on_cpu(cta, unsigned(C.threads()), Kernel::plain, map_a, arguments);
    }
    on_global_read = on_early_read = nullptr;  // they name what is of here
    EXPECT_EQ(outside, 0);
    EXPECT_EQ(early_of_a, 0);
    EXPECT_TRUE(arriving.empty());
    for (const unsigned counter : arrived) EXPECT_EQ(counter, 0u);
    int wrong = 0;
    for (int m = 0; m < s.m; ++m)
        for (int n = 0; n < s.n; ++n) {
            const int first_n = s.groups.empty() ? 0 : group_of[std::size_t(m)] * s.n;
            float sum = 0;
            for (int k = 0; k < s.k; ++k)
                sum +=
                    x[std::size_t(m) * std::size_t(s.k) + std::size_t(k)] * weights.w[std::size_t(n + first_n) * std::size_t(s.k) + std::size_t(k)];
            if (expressed) sum = std::max(0.0f, sum + bias[std::size_t(n)]);
            unsigned short& stored = c[std::size_t(m * ldc + n)];
            if (stored != ptx::bits_of(C.type, sum) && wrong++ == 0)
                ADD_FAILURE() << "row " << m << ", column " << n << ": " << ptx::number_of(C.type, stored) << ", not " << sum;
            stored = untouched;
        }
    EXPECT_EQ(wrong, 0);
    for (const unsigned short element : c) EXPECT_EQ(element, untouched);  // beside C
}
template <Sm90QuantisedConfig C, bool expressed = false>
void expect_right(const Shape& s) {
    expect_each_right<C, expressed, Few<C>>(s);
}
template <Sm90ManyQuantisedConfig C, bool expressed = false>
void expect_many_right(const Shape& s) {
    expect_each_right<C, expressed, Many<C>>(s);
}

/// A scale by its type's definition.
double scale_of(const QuantisedLayout& layout, const unsigned char* at) {
    if (layout.power_scales()) return std::ldexp(1.0, *at - 127);
    unsigned short bits = 0;
    std::memcpy(&bits, at, 2);
    return ptx::number_of(layout.scale, bits);
}

// What verification multiplies by: every weight finite, as its bits say; in the exact case a multiple of a unit, and no larger than counted.
TEST(QuantisedReferenceOnCpu, MakesWeightsThatItUnpacks) {
    constexpr int n = 70, k = 200;
    gridDim.x = blockDim.x = 1, blockIdx.x = threadIdx.x = 0;
    for (int type = 1; type <= int(WeightType::nf4); ++type)
        for (const int group : {32, 0})
            for (const ZeroType zeros : {ZeroType::none, ZeroType::integer, ZeroType::real})
                for (const Type activations : {Type::bf16, Type::fp16})
                    for (const bool exact : {true, false}) {
                        const QuantisedLayout layout{WeightType(type), group, Type::bf16, zeros};
                        if ((layout.power_scales() && group != 32) || (zeros != ZeroType::none && !layout.is_whole())
                            || (zeros == ZeroType::integer && layout.bits() == 8))
                            continue;
                        SCOPED_TRACE(testing::Message() << "type " << type << ", groups of " << group << ", zeros " << int(zeros) << ", exact " << exact);
                        std::vector<unsigned> packed(std::size_t(layout.bytes(n, k) / 4));
                        std::vector<float> w(std::size_t(n * k));
                        unsigned char* bytes = reinterpret_cast<unsigned char*>(packed.data());
                        fill_quantised({bytes, layout, n, k, 5, exact});
                        EXPECT_EQ(packed[0], layout.fingerprint());
                        dequantise({bytes, w.data(), layout, n, k, Type::fp32, activations});
                        const double unit = layout.weights == WeightType::fp8_e4m3   ? std::exp2(-9)
                                            : layout.weights == WeightType::fp8_e5m2 ? std::exp2(-16)
                                            : layout.weights == WeightType::mxfp4    ? 0.5
                                            : layout.weights == WeightType::nf4      ? std::exp2(activations == Type::bf16 ? -11 : -14)
                                                                                     : 1;
                        double largest = 0;
                        for (int row = 0; row < n; ++row)
                            for (int column = 0; column < k; ++column) {
                                const unsigned char* block = bytes + layout.block_at(row, column, k);
                                unsigned word = 0;
                                std::memcpy(&word, block + 4 * layout.word_of(row % 64, column % 128), 4);
                                const int q = int(word >> layout.shift_of(row % 64, column % 128) & layout.mask());
                                const double scale = scale_of(layout, block + layout.scale_at(row % 64, column % 128));
                                const unsigned char* zero = block + layout.zero_at(row % 64, column % 128);
                                double expected = value_of(layout, activations, q) * scale;
                                if (zeros == ZeroType::integer) expected = (q - *zero) * scale;
                                if (zeros == ZeroType::real) expected -= scale_of({.weights = WeightType::int4}, zero);
                                ASSERT_TRUE(std::isfinite(expected));
                                ASSERT_EQ(w[std::size_t(row * k + column)], float(expected)) << row << ' ' << column;
                                ASSERT_TRUE(!exact || std::fmod(expected, unit) == 0) << expected;
                                largest = std::max(largest, std::abs(expected) / unit);
                            }
                        if (exact && zeros == ZeroType::none) {
                            EXPECT_LE(largest, 2.0 * double(exact_units(layout, activations)));
                            EXPECT_GE(largest, double(exact_units(layout, activations)));
                        }
                        EXPECT_GT(largest, 0);
                    }
}

/// All that the launch in front of a product writes, against the weights unpacked one by one and rounded once, bit for bit; and nothing written beside.
template <Type type, QuantisedLayout layout>
void expect_unpacked(int n, int k) {
    SCOPED_TRACE(testing::Message() << n << "x" << k);
    constexpr int line = 64;
    constexpr unsigned short untouched = 0x1234;
    std::vector<uint4> packed(std::size_t(layout.bytes(n, k) / 16));
    unsigned char* const bytes = reinterpret_cast<unsigned char*>(packed.data());
    std::vector<float> expected(std::size_t(n) * std::size_t(k));
    gridDim.x = blockDim.x = 1, blockIdx.x = threadIdx.x = 0;
    fill_quantised({bytes, layout, n, k, 7, false});
    dequantise({bytes, expected.data(), layout, n, k, Type::fp32, type, true});
    int outside = 0;
    on_global_read = [&](const void* from, std::size_t count) {
        const auto* first = static_cast<const unsigned char*>(from);
        outside += first < bytes || first + count > bytes + layout.bytes(n, k);
    };
    const long long pitch = (k + line - 1) / line * line;
    const auto unpacked = [&] {
        std::vector<uint4> to(std::size_t(n * pitch / 8 + 8));
        auto* const first = reinterpret_cast<unsigned short*>(to.data());
        std::fill_n(first, to.size() * 8, untouched);
        for (long long cta = 0; cta < unpack_ctas(layout, n, k); ++cta)
            run_cta_on_cpu(unsigned(cta), unpack_threads, unpack_weights<type, layout, type>, UnpackArguments{bytes, first, n, k, pitch, {}, 0});
        return std::vector<unsigned short>(first, first + to.size() * 8);
    };
    const std::vector<unsigned short> got = unpacked();
    EXPECT_EQ(outside, 0);
    int wrong = 0, beside = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const long long row = (long long)(i) / pitch, column = (long long)(i) % pitch;
        if (row >= n || column >= (k + 7) / 8 * 8) beside += got[i] != untouched;
        else if (column < k) {
            const unsigned short right = ptx::bits_of(type, expected[std::size_t(row * k + column)]);
            if (got[i] != right && wrong++ == 0) ADD_FAILURE() << row << ' ' << column << ": " << ptx::number_of(type, got[i]) << ", not " << ptx::number_of(type, right);
        }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(beside, 0);
    reinterpret_cast<unsigned*>(bytes)[2] += 128;  // packed for another K
    const std::vector<unsigned short> refused = unpacked();
    for (int row = 0; row < n; ++row) ASSERT_TRUE(std::isnan(ptx::number_of(type, refused[std::size_t(row * pitch + row % k)])));
    on_global_read = {};
}
/// Weights of a K that ends in a block's second half, in its first, amid 8; less than 64 rows, and more.
template <QuantisedLayout layout>
void expect_all_unpacked() {
    SCOPED_TRACE(testing::Message() << "type " << int(layout.weights) << ", groups of " << layout.group << ", zeros " << int(layout.zeros));
    expect_unpacked<Type::bf16, layout>(70, 456);
    expect_unpacked<Type::fp16, layout>(130, 312);
    expect_unpacked<Type::bf16, layout>(9, 77);
}

/// Every float of 8 bits, in lines of any length that begin anywhere: each is the number that it was, NaN too, zeros follow, and nothing is read
/// or written beside.
template <Type narrow, Type wide>
void expect_widened(unsigned width, long long leading, int off) {
    SCOPED_TRACE(testing::Message() << width << " of " << leading << " from " << off);
    constexpr long long lines = 37;
    constexpr unsigned short untouched = 0x1234;
    const unsigned filled = (width + 7) / 8 * 8;
    const long long pitch = filled + 8;
    std::vector<uint4> from(std::size_t((lines * leading + off) / 16 + 1)), to(std::size_t(lines * pitch / 8));
    auto* const first = reinterpret_cast<unsigned char*>(from.data()) + off;
    for (long long i = 0; i < lines * leading; ++i) first[i] = static_cast<unsigned char>(i * 7 + i / 256);
    auto* const wider = reinterpret_cast<unsigned short*>(to.data());
    std::fill_n(wider, to.size() * 8, untouched);
    int outside = 0;
    on_global_read = [&](const void* at, std::size_t count) {
        const auto* read = static_cast<const unsigned char*>(at);
        outside += read < first || read + count > first + (lines - 1) * leading + width;
    };
    const WidenedRows rows{first, wider, lines, leading, pitch, width};
    for (long long cta = 0; cta < rows.ctas(); ++cta) run_cta_on_cpu(unsigned(cta), widen_threads, widen_rows<narrow, wide>, rows);
    on_global_read = {};
    EXPECT_EQ(outside, 0);
    int wrong = 0, beside = 0;
    for (long long line = 0; line < lines; ++line)
        for (long long i = 0; i < pitch; ++i) {
            const unsigned short got = wider[line * pitch + i];
            const unsigned char bits = first[line * leading + i];
            const float number = ptx::number_of(wide, got);
            if (i >= filled) beside += got != untouched;
            else if (i >= width) wrong += got != 0;
            else if (const double was = value_of_bits(bits, narrow); std::isnan(was)) wrong += !std::isnan(number);
            else wrong += number != was || std::signbit(number) != std::signbit(was);
        }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(beside, 0);
}
TEST(WidenOnCpu, EveryNumberStaysWhatItWas) {
    expect_widened<Type::fp8_e4m3, Type::bf16>(264, 264, 0);
    expect_widened<Type::fp8_e4m3, Type::fp16>(301, 303, 5);
    expect_widened<Type::fp8_e5m2, Type::bf16>(77, 80, 8);
    expect_widened<Type::fp8_e5m2, Type::fp16>(1, 3, 1);
    expect_widened<Type::fp8_e4m3, Type::bf16>(2100, 2112, 0);
}

TEST(UnpackOnCpu, WholeNumbers) {
    expect_all_unpacked<{WeightType::int4, 128, Type::bf16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::uint4, 32, Type::fp16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::int4, 0, Type::bf16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::int8, 32, Type::bf16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::int8, 64, Type::fp16, ZeroType::none}>();
}

TEST(UnpackOnCpu, ZeroPoints) {
    expect_all_unpacked<{WeightType::uint4, 32, Type::bf16, ZeroType::integer}>();
    expect_all_unpacked<{WeightType::int4, 64, Type::fp16, ZeroType::integer}>();
    expect_all_unpacked<{WeightType::uint4, 32, Type::fp16, ZeroType::real}>();
    expect_all_unpacked<{WeightType::int4, 0, Type::bf16, ZeroType::real}>();
    expect_all_unpacked<{WeightType::int8, 128, Type::bf16, ZeroType::real}>();
    expect_all_unpacked<{WeightType::int8, 32, Type::fp16, ZeroType::real}>();
}

TEST(UnpackOnCpu, FloatsAndTables) {
    expect_all_unpacked<{WeightType::fp8_e4m3, 128, Type::bf16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::fp8_e4m3, 32, Type::fp16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::fp8_e5m2, 0, Type::bf16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::mxfp4, 32, Type::bf16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::nf4, 64, Type::bf16, ZeroType::none}>();
    expect_all_unpacked<{WeightType::nf4, 32, Type::fp16, ZeroType::none}>();
}

constexpr Sm90QuantisedConfig packed(QuantisedLayout layout, int tile_m, int tile_n, int tile_k, int stages, Type type = Type::bf16) {
    return {.tile_m = tile_m,
            .tile_n = tile_n,
            .tile_k = tile_k,
            .stages = stages,
            .consumer_warps = 8,
            .ctas_per_sm = 1,
            .type = type,
            .layout = layout};
}
constexpr Sm90QuantisedConfig ragged(Sm90QuantisedConfig c) {
    c.ragged_k = true;
    return c;
}

constexpr Sm90QuantisedConfig of_warps(int warps, Sm90QuantisedConfig c) {
    c.consumer_warps = warps;
    return c;
}

TEST(QuantisedOnCpu, WithoutZeroPoints) {
    expect_right<packed({WeightType::int4, 128, Type::bf16, ZeroType::none}, 8, 64, 256, 3)>({3, 130, 768, 2});
    expect_right<packed({WeightType::uint4, 0, Type::fp16, ZeroType::none}, 16, 128, 128, 2, Type::fp16)>({11, 200, 640, 3, 8, 3});
    expect_right<ragged(packed({WeightType::int4, 64, Type::fp16, ZeroType::none}, 8, 64, 256, 3))>({8, 65, 328, 2, 0, 1});
}

TEST(QuantisedOnCpu, WithWholeZeroPoints) {
    expect_right<packed({WeightType::uint4, 32, Type::bf16, ZeroType::integer}, 8, 64, 256, 3)>({5, 100, 512, 3});
    expect_right<ragged(packed({WeightType::int4, 128, Type::fp16, ZeroType::integer}, 24, 128, 256, 2, Type::fp16))>(
        {20, 129, 392, 2, 16, 2});
}

TEST(QuantisedOnCpu, WithRealZeroPoints) {
    expect_right<packed({WeightType::uint4, 32, Type::fp16, ZeroType::real}, 8, 64, 256, 3)>({5, 100, 512, 3});
    expect_right<packed({WeightType::int4, 0, Type::bf16, ZeroType::real}, 16, 64, 512, 2)>({9, 70, 1088, 2});
    expect_right<ragged(packed({WeightType::uint4, 64, Type::bf16, ZeroType::real}, 64, 64, 128, 2, Type::fp16))>({61, 33, 200, 1, 8, 1});
    expect_right<ragged(packed({WeightType::int4, 128, Type::fp16, ZeroType::real}, 32, 128, 256, 2))>({30, 250, 1032, 4});
}

// Many rows with sums for zero points: few warps have the registers.
TEST(QuantisedOnCpu, ByFourWarpsAndBySixteen) {
    expect_right<of_warps(4, packed({WeightType::uint4, 64, Type::bf16, ZeroType::real}, 64, 64, 256, 2))>({60, 130, 768, 3});
    expect_right<of_warps(16, packed({WeightType::int4, 32, Type::fp16, ZeroType::real}, 8, 64, 512, 2, Type::fp16))>({8, 65, 1024, 2});
}

TEST(QuantisedOnCpu, EightBits) {
    expect_right<packed({WeightType::int8, 32, Type::fp16, ZeroType::none}, 8, 64, 256, 3)>({5, 100, 512, 3});
    expect_right<ragged(packed({WeightType::int8, 128, Type::bf16, ZeroType::real}, 24, 128, 128, 2, Type::fp16))>(
        {20, 129, 392, 2, 16, 2});
    expect_right<ragged(packed({WeightType::int8, 0, Type::bf16, ZeroType::none}, 16, 64, 512, 2))>({9, 70, 584, 2});
}

TEST(QuantisedOnCpu, Floats) {
    expect_right<packed({WeightType::fp8_e4m3, 128, Type::bf16, ZeroType::none}, 8, 64, 256, 3)>({5, 100, 512, 3});
    expect_right<ragged(packed({WeightType::fp8_e4m3, 0, Type::fp16, ZeroType::none}, 24, 128, 128, 2, Type::fp16))>({20, 129, 392, 2, 16, 2});
    expect_right<ragged(packed({WeightType::fp8_e5m2, 32, Type::bf16, ZeroType::none}, 16, 64, 256, 2))>({9, 70, 584, 2});
    expect_right<packed({WeightType::fp8_e5m2, 64, Type::bf16, ZeroType::none}, 8, 64, 256, 2, Type::fp16)>({3, 65, 512, 2});
}

TEST(QuantisedOnCpu, Tables) {
    expect_right<packed({WeightType::mxfp4, 32, Type::bf16, ZeroType::none}, 8, 64, 256, 3)>({5, 100, 512, 3});
    expect_right<ragged(packed({WeightType::mxfp4, 32, Type::bf16, ZeroType::none}, 24, 128, 128, 2, Type::fp16))>({20, 129, 392, 2, 16, 2});
    expect_right<ragged(packed({WeightType::nf4, 64, Type::bf16, ZeroType::none}, 16, 64, 256, 2))>({9, 70, 584, 2});
    expect_right<of_warps(4, packed({WeightType::nf4, 0, Type::fp16, ZeroType::none}, 8, 64, 256, 2, Type::fp16))>({3, 65, 512, 2});
}

// Sums of CTAs that share a tile are added up before the expression sees them.
TEST(QuantisedOnCpu, WithAnExpression) {
    for (const unsigned ctas : {1u, 2u, 5u})
        expect_right<packed({WeightType::int4, 32, Type::bf16, ZeroType::none}, 8, 64, 256, 3), true>({7, 129, 1024, ctas});
    expect_right<ragged(packed({WeightType::uint4, 64, Type::fp16, ZeroType::real}, 16, 128, 128, 3, Type::fp16)), true>(
        {13, 100, 456, 3, 0, 1});
}

constexpr Sm90ManyQuantisedConfig many(QuantisedLayout layout, int tile_m, int tile_n, int stages, Type type = Type::bf16) {
    return {.tile_m = tile_m,
            .tile_n = tile_n,
            .stages = stages,
            .producer_registers = 24,
            .consumer_registers = 240,
            .type = type,
            .layout = layout};
}
constexpr Sm90ManyQuantisedConfig ragged(Sm90ManyQuantisedConfig c) {
    c.ragged_k = true;
    return c;
}

// More CTAs than tiles share all of them; fewer take whole tiles, and what is left in shares.
TEST(ManyQuantisedOnCpu, WithoutZeroPoints) {
    expect_many_right<many({WeightType::int4, 128, Type::bf16, ZeroType::none}, 32, 128, 3)>({30, 200, 768, 3});
    expect_many_right<many({WeightType::int4, 64, Type::fp16, ZeroType::none}, 64, 128, 2, Type::fp16)>({70, 130, 512, 3, 8, 3, 2});
    expect_many_right<many({WeightType::uint4, 32, Type::bf16, ZeroType::none}, 32, 192, 2)>({65, 130, 384, 2});
    expect_many_right<ragged(many({WeightType::int4, 128, Type::fp16, ZeroType::none}, 96, 128, 2))>({100, 65, 328, 3, 0, 1});
}

TEST(ManyQuantisedOnCpu, WithAScaleARow) {
    expect_many_right<many({WeightType::int4, 0, Type::fp16, ZeroType::none}, 64, 128, 2)>({65, 200, 512, 5});
    expect_many_right<ragged(many({WeightType::uint4, 0, Type::bf16, ZeroType::integer}, 32, 128, 3, Type::fp16))>({33, 140, 392, 2, 16, 2});
    expect_many_right<many({WeightType::int4, 0, Type::bf16, ZeroType::real}, 32, 128, 2)>({20, 70, 640, 2});
}

TEST(ManyQuantisedOnCpu, WithWholeZeroPoints) {
    expect_many_right<many({WeightType::uint4, 32, Type::bf16, ZeroType::integer}, 32, 128, 3)>({50, 100, 512, 3});
    expect_many_right<ragged(many({WeightType::int4, 128, Type::fp16, ZeroType::integer}, 64, 128, 2, Type::fp16))>({20, 129, 392, 2, 16, 2});
}

TEST(ManyQuantisedOnCpu, WithRealZeroPoints) {
    expect_many_right<many({WeightType::uint4, 32, Type::fp16, ZeroType::real}, 64, 128, 3)>({50, 100, 512, 3});
    expect_many_right<ragged(many({WeightType::int4, 128, Type::fp16, ZeroType::real}, 32, 192, 2))>({90, 250, 520, 4, 8, 1, 3});
    expect_many_right<many({WeightType::uint4, 64, Type::bf16, ZeroType::real}, 96, 128, 2, Type::fp16)>({97, 129, 256, 2});
}

TEST(ManyQuantisedOnCpu, EightBits) {
    expect_many_right<many({WeightType::int8, 32, Type::fp16, ZeroType::none}, 32, 128, 2)>({40, 100, 512, 3});
    expect_many_right<ragged(many({WeightType::int8, 128, Type::bf16, ZeroType::real}, 64, 128, 2, Type::fp16))>({20, 129, 392, 2, 16, 2});
    expect_many_right<many({WeightType::int8, 0, Type::bf16, ZeroType::none}, 32, 128, 2)>({33, 70, 576, 2});
}

TEST(ManyQuantisedOnCpu, Floats) {
    expect_many_right<many({WeightType::fp8_e4m3, 32, Type::bf16, ZeroType::none}, 32, 128, 2)>({40, 100, 512, 3});
    expect_many_right<ragged(many({WeightType::fp8_e4m3, 128, Type::fp16, ZeroType::none}, 64, 128, 2, Type::fp16))>({20, 129, 392, 2, 16, 2});
    expect_many_right<many({WeightType::fp8_e5m2, 0, Type::bf16, ZeroType::none}, 32, 192, 2)>({33, 70, 576, 2});
    expect_many_right<many({WeightType::fp8_e5m2, 64, Type::bf16, ZeroType::none}, 32, 128, 2, Type::fp16)>({33, 70, 256, 2});
}

TEST(ManyQuantisedOnCpu, Tables) {
    expect_many_right<many({WeightType::mxfp4, 32, Type::bf16, ZeroType::none}, 32, 128, 2)>({40, 100, 512, 3});
    expect_many_right<ragged(many({WeightType::mxfp4, 32, Type::bf16, ZeroType::none}, 64, 192, 2, Type::fp16))>({20, 129, 392, 2, 16, 2});
    expect_many_right<many({WeightType::nf4, 64, Type::bf16, ZeroType::none}, 96, 128, 2)>({97, 129, 256, 2});
    expect_many_right<many({WeightType::nf4, 0, Type::fp16, ZeroType::none}, 32, 128, 2, Type::fp16)>({33, 70, 576, 2});
}

constexpr Sm90ManyQuantisedConfig grouped(Sm90ManyQuantisedConfig c) {
    c.group_slots = 32;
    return c;
}

// Groups of no row, of one, of whole tiles and beyond; whole tiles and shared ones.
TEST(ManyQuantisedOnCpu, Groups) {
    for (const unsigned ctas : {1u, 3u, 8u})
        expect_many_right<grouped(many({WeightType::int4, 128, Type::bf16, ZeroType::none}, 32, 128, 3))>({105, 192, 384, ctas, 0, 0, 2, {3, 0, 64, 1, 37}});
    expect_many_right<grouped(many({WeightType::mxfp4, 32, Type::bf16, ZeroType::none}, 32, 192, 2))>({9, 64, 256, 4, 8, 3, 1, {0, 2, 7}});
    expect_many_right<ragged(grouped(many({WeightType::uint4, 64, Type::fp16, ZeroType::real}, 64, 128, 2, Type::fp16)))>({70, 128, 200, 3, 0, 0, 1, {65, 5}});
    std::vector<int> all(32, 1);
    all[7] = 70;
    expect_many_right<grouped(many({WeightType::fp8_e4m3, 0, Type::bf16, ZeroType::none}, 32, 128, 2))>({101, 64, 128, 7, 0, 0, 1, all});
}

// Bands of tiles, the last of fewer rows than the others; sums of CTAs that share a tile are added up before the expression sees them.
TEST(ManyQuantisedOnCpu, InBandsWithAnExpression) {
    for (const unsigned ctas : {1u, 4u, 7u, 31u})
        expect_many_right<many({WeightType::int4, 64, Type::bf16, ZeroType::none}, 32, 128, 2), true>({150, 300, 256, ctas, 0, 0, 2});
}

}  // namespace
}  // namespace cta_text
