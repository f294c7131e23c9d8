// sm80_image_gemm's own text, thread by thread on the CPU: images of two and three axes whose channels make several taps of a block or
// several blocks of a tap, strides, dilation and padding beyond the filter, tiles that hang over; every element against the
// definition, nothing stored beside the result, nothing read beside the image and the filters. NaN and Inf are where the definition
// has them and nowhere else. Numbers are whole, so that sums are exact in any order.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/from_environment.hpp"

static const auto drawn_by = std::uint32_t(rooftile::test_seed());

#include "tests/fake/cta/words.hpp"

#include "kernels/gemm/sm80_image_gemm.cuh"

namespace cta_text {
namespace {

struct Axis {
    int extent = 1, taps = 1, stride = 1, padding = 0, dilation = 1;
    int places() const { return (extent + 2 * padding - (taps - 1) * dilation - 1) / stride + 1; }
    bool is_empty() const { return extent + 2 * padding < (taps - 1) * dilation + 1; }
    /// The pixel that a tap meets at a place; less than 0: none.
    int pixel(int place, int tap) const {
        const int at = place * stride - padding + tap * dilation;
        return at < extent ? at : -1;
    }
};

/// acc + r of r [M,N].
struct Residual {
    const unsigned short* r;
    struct Once {};
    Once once() const { return {}; }
    struct Operands {
        unsigned short r[2];
    };
    template <bool turned>
    static constexpr int pairs_in_flight = 2;
    template <bool turned>
    void load(Operands& to, const EpiloguePair& at) const {
        load_pair<turned, false, true, true, false>(to.r, r, at);
    }
    template <bool turned>
    void apply(float (&to)[2], float first, float second, const Operands& with, const Once&, const EpiloguePair&) const {
        to[0] = first + ptx::number_of(Type::bf16, with.r[0]), to[1] = second + ptx::number_of(Type::bf16, with.r[1]);
    }
};

template <Sm80GemmConfig C, bool with_epilogue = false>
void expect_right(int images, const Axis (&axes)[3], int channels, int filters, unsigned seed) {
    std::mt19937 random(seed);
    const auto number = [&](int least, int most) { return least + int(random() % unsigned(most - least + 1)); };
    SCOPED_TRACE(testing::Message() << images << " images, " << channels << " channels, " << filters << " filters, seed " << seed);
    ImageArguments walk{};
    int extent[3], pixels = images, places = images, taps = 1;
    for (int i = 0; i < 3; ++i) {
        walk.axes[i] = {divider(unsigned(axes[i].places())), divider(unsigned(axes[i].taps)), axes[i].stride, axes[i].padding,
                        axes[i].dilation};
        extent[i] = axes[i].extent, pixels *= extent[i], places *= axes[i].places(), taps *= axes[i].taps;
    }
    const Sm80ImageArguments image = sm80_image_arguments(walk, extent, channels);
    const int m = places, n = filters, k = taps * channels;
    constexpr unsigned short untouched = 0x1234;
    const auto filled = [&](std::size_t count) {
        std::vector<unsigned short> to(count + 8);
        for (unsigned short& x : to) x = ptx::bits_of(C.type, float(number(-4, 4)));
        return to;
    };
    const auto aligned = [](std::vector<unsigned short>& of) {
        return of.data() + (16 - reinterpret_cast<std::uintptr_t>(of.data()) % 16) % 16 / 2;
    };
    const std::size_t x_count = std::size_t(pixels) * channels, w_count = std::size_t(n) * k;
    std::vector<unsigned short> x_memory = filled(x_count), w_memory = filled(w_count);
    std::vector<unsigned short> y(std::size_t(m) * n + 16, untouched), r(std::size_t(m) * n + 1);
    unsigned short *x = aligned(x_memory), *w = aligned(w_memory), *out = aligned(y);
    for (unsigned short& element : r) element = ptx::bits_of(Type::bf16, float(number(-4, 4)));
    for (int i = 0; i < int(seed % 4); ++i) x[random() % x_count] = ptx::bits_of(C.type, i == 0 ? HUGE_VALF : std::nanf(""));
    const Sm80GemmArguments args{m, n, k, 0, 1, k, k, n, x, w, out, nullptr, 1, 0, 0, 0};
    int outside = 0;
    on_global_read = [&](const void* from, std::size_t bytes) {
        const auto* at = static_cast<const unsigned short*>(from);
        const auto within = [&](const unsigned short* first, std::size_t count) { return at >= first && at + bytes / 2 <= first + count; };
        outside += !within(x, x_count) && !within(w, w_count);
    };
    gridDim.x = unsigned(sm80_grid(C, m, n, 1, 2));
    ASSERT_LE(C.shared_bytes(), int(sizeof memory));
    for (unsigned block = 0; block < gridDim.x; ++block)
        run_cta_on_cpu(block, unsigned(C.threads()), [&] {
            if constexpr (with_epilogue) sm80_image_gemm_epilogue<C>(args, image, Residual{r.data()});
            else sm80_image_gemm<C>(args, image);
        });
    on_global_read = nullptr;
    EXPECT_EQ(outside, 0);
    int wrong = 0;
    for (int row = 0; row < m; ++row) {
        int place[3], rest = row;
        for (int i = 0; i < 3; ++i) place[i] = rest % axes[i].places(), rest /= axes[i].places();
        for (int filter = 0; filter < n; ++filter, ++out) {
            double sum = 0;
            for (int tap = 0; tap < taps; ++tap) {
                const int at[] = {axes[0].pixel(place[0], tap % axes[0].taps), axes[1].pixel(place[1], tap / axes[0].taps % axes[1].taps),
                                  axes[2].pixel(place[2], tap / axes[0].taps / axes[1].taps)};
                if (at[0] < 0 || at[1] < 0 || at[2] < 0) continue;
                const std::size_t pixel = ((std::size_t(rest) * extent[2] + at[2]) * extent[1] + at[1]) * extent[0] + at[0];
                for (int c = 0; c < channels; ++c)
                    sum += double(ptx::number_of(C.type, x[pixel * channels + c]))
                           * ptx::number_of(C.type, w[(std::size_t(filter) * taps + tap) * channels + c]);
            }
            float value = float(sum);
            if (with_epilogue) value += ptx::number_of(Type::bf16, r[std::size_t(row) * n + filter]);
            const float stored = ptx::number_of(C.type, *out);
            wrong += std::isnan(value) ? !std::isnan(stored) : stored != ptx::number_of(C.type, ptx::bits_of(C.type, value));
            *out = untouched;
        }
    }
    EXPECT_EQ(wrong, 0);
    for (const unsigned short element : y) EXPECT_EQ(element, untouched);  // beside the result
}

/// Sizes that are drawn; `deep`: of three axes.
template <Sm80GemmConfig C, bool with_epilogue = false>
void expect_right(unsigned count) {
    std::mt19937 random(drawn_by + unsigned(C.tile_m + C.tile_n));
    const auto number = [&](int least, int most) { return least + int(random() % unsigned(most - least + 1)); };
    for (unsigned trial = 0; trial < count;) {
        Axis axes[3];
        for (int i = 0; i < C.image_axes; ++i)
            axes[i] = {number(1, C.image_axes == 3 ? 6 : 12), number(1, C.image_axes == 3 ? 3 : 6), number(1, 3), number(0, 5),
                       number(1, 3)};
        if (random() % 4 == 0) axes[1] = {};  // of one axis
        if (axes[0].is_empty() || axes[1].is_empty() || axes[2].is_empty()) continue;
        int filters = number(1, 80);
        if (C.vector_store) filters = (filters + 7) / 8 * 8;
        expect_right<C, with_epilogue>(number(1, 3), axes, 8 * number(1, random() % 2 ? 4 : 12), filters, drawn_by + trial++);
    }
}

constexpr Sm80GemmConfig config(int tile_m, int tile_n, int tile_k, int stages, int warps_m, int warps_n, bool persistent,
                                bool vector_store, int axes = 2, Type type = Type::bf16) {
    return {.tile_m = tile_m, .tile_n = tile_n, .tile_k = tile_k, .stages = stages, .warps_m = warps_m, .warps_n = warps_n,
            .ctas_per_sm = 1, .type = type, .a_major = Major::k, .b_major = Major::k, .vector_store = vector_store,
            .persistent = persistent, .image_axes = axes};
}

TEST(ImageOnCpu, IsTheDefinitionInEveryForm) {
    expect_right<config(64, 32, 64, 3, 4, 1, true, true)>(6);
    expect_right<config(128, 64, 32, 4, 4, 1, false, true)>(6);
    expect_right<config(32, 64, 32, 2, 2, 2, true, false, 2, Type::fp16)>(6);
    expect_right<config(64, 32, 64, 3, 4, 1, true, true, 3)>(6);
    expect_right<config(32, 32, 32, 3, 2, 1, false, false, 3, Type::fp16)>(6);
}

TEST(ImageOnCpu, FinishesEachSumWithItsOwnOperands) { expect_right<config(64, 32, 64, 3, 4, 1, true, true), true>(3); }

// Several taps a block, of which one row of taps ends within a block; several blocks a tap; the last one short.
TEST(ImageOnCpu, TapsAndBlocks) {
    for (const int channels : {8, 16, 24, 32, 40, 48, 64, 72, 128, 136})
        expect_right<config(64, 32, 64, 3, 4, 1, true, true)>(1, {{9, 3, 1, 1, 1}, {7, 3, 1, 1, 1}, {}}, channels, 32, unsigned(channels));
    // As many taps as there are bits.
    expect_right<config(64, 32, 64, 3, 4, 1, true, true)>(2, {{20, 15, 1, 7, 1}, {16, 15, 1, 7, 1}, {}}, 8, 16, 1);
    expect_right<config(64, 32, 64, 3, 4, 1, true, true)>(2, {{40, 29, 1, 14, 1}, {}, {}}, 8, 16, 2);
}

}  // namespace
}  // namespace cta_text
