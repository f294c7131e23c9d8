#include "kernels/measure/philox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace rooftile {
namespace {

std::array<unsigned, 4> words(unsigned long long counter, unsigned long long stream,
                              unsigned long long seed) {
    const PhiloxBlock b = philox(counter, stream, seed);
    return {b.word[0], b.word[1], b.word[2], b.word[3]};
}

// Known answers published with the generator (Random123, kat_vectors, "philox4x32 10").
TEST(Philox, KnownAnswers) {
    EXPECT_EQ(words(0, 0, 0), (std::array<unsigned, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(words(~0ull, ~0ull, ~0ull),
              (std::array<unsigned, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: digits of pi.
    EXPECT_EQ(words(0x85a308d3243f6a88ull, 0x0370734413198a2eull, 0x299f31d0a4093822ull),
              (std::array<unsigned, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The same file's "philox4x32 7".
TEST(Philox, KnownAnswersOfSevenRounds) {
    const auto words_of = [](unsigned long long counter, unsigned long long stream, unsigned long long seed) {
        const PhiloxBlock b = philox(counter, stream, dropout_keys(seed));
        return std::array<unsigned, 4>{b.word[0], b.word[1], b.word[2], b.word[3]};
    };
    EXPECT_EQ(words_of(0, 0, 0), (std::array<unsigned, 4>{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
    EXPECT_EQ(words_of(~0ull, ~0ull, ~0ull),
              (std::array<unsigned, 4>{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
    EXPECT_EQ(words_of(0x85a308d3243f6a88ull, 0x0370734413198a2eull, 0x299f31d0a4093822ull),
              (std::array<unsigned, 4>{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

TEST(Philox, EveryArgumentMatters) {
    std::set<std::array<unsigned, 4>> seen;
    for (unsigned long long bit = 0; bit < 64; ++bit) {
        seen.insert(words(1ull << bit, 0, 0));
        seen.insert(words(0, 1ull << bit, 0));
        seen.insert(words(0, 0, 1ull << bit));
    }
    EXPECT_EQ(seen.size(), 192u);
}

}  // namespace
}  // namespace rooftile
