// channels_last's own text, thread by thread on the CPU: numbers of pixels and channels odd, even, below and above a tile; every element where the
// definition has it, nothing stored beside the result, nothing read beside the image.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/from_environment.hpp"

static const auto drawn_by = std::uint32_t(rooftile::test_seed());

#include "tests/fake/cta/words.hpp"

namespace cta_text {

inline unsigned turned[64 * 33];  // what a CTA asks for as shared memory

}  // namespace cta_text

#include "kernels/conv/channels_last.cuh"

namespace cta_text {
namespace {

TEST(ChannelsLast, IsTheDefinition) {
    static_assert(sizeof(turned) == ChannelsLastArguments::shared_bytes);
    std::mt19937 random(drawn_by);
    for (int trial = 0; trial < 24; ++trial) {
        const auto number = [&](int least, int most) { return least + int(random() % unsigned(most - least + 1)); };
        const int images = number(1, 3), channels = trial % 3 == 0 ? number(1, 9) : number(1, 150), pixels = number(1, 150);
        SCOPED_TRACE(testing::Message() << images << " images of " << channels << " channels, " << pixels << " pixels");
        constexpr unsigned short untouched = 0x1234;
        const std::size_t all = std::size_t(images) * channels * pixels;
        std::vector<unsigned short> from(all + 8), to(all + 24, untouched);
        for (unsigned short& x : from) x = static_cast<unsigned short>(random() & 0xfff);
        const auto aligned = [](std::vector<unsigned short>& of) { return of.data() + (16 - reinterpret_cast<std::uintptr_t>(of.data()) % 16) % 16 / 2; };
        const ChannelsLastArguments p{aligned(from), aligned(to), images, channels, pixels};
        int outside = 0;
        on_global_read = [&](const void* at, std::size_t bytes) {
            const auto* first = static_cast<const unsigned short*>(at);
            outside += first < p.from || first + bytes / 2 > p.from + all || reinterpret_cast<std::uintptr_t>(at) % bytes != 0;
        };
        gridDim.x = unsigned(number(1, 3)), gridDim.y = unsigned(number(1, 2)), gridDim.z = unsigned(number(1, 2));
        for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
            for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
                for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
                    std::fill(std::begin(turned), std::end(turned), 0xdeadbeefu);
                    Fibers::now().run(ChannelsLastArguments::threads, [&] { channels_last(p); });
                }
        EXPECT_EQ(outside, 0);
        int wrong = 0;
        for (int image = 0; image < images; ++image)
            for (int pixel = 0; pixel < pixels; ++pixel)
                for (int channel = 0; channel < channels; ++channel) {
                    unsigned short& out = p.to[(std::size_t(image) * pixels + pixel) * channels + channel];
                    wrong += out != p.from[(std::size_t(image) * channels + channel) * pixels + pixel];
                    out = untouched;
                }
        EXPECT_EQ(wrong, 0);
        for (const unsigned short element : to) EXPECT_EQ(element, untouched);  // beside the result
    }
    gridDim.z = 0, blockIdx.z = 0;
}

}  // namespace
}  // namespace cta_text
