// Philox4x32, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
// as 1, 2, 3" (SC11): rounds of two 32 x 32 -> 64 bit multiplications and a key schedule. A value depends on
// its index and the seed alone, so any element can be made anywhere, in any order. Seven rounds are the fewest
// that pass BigCrush (their table 2), ten the authors' choice where speed does not matter.
#pragma once

namespace rooftile {

struct PhiloxBlock {
    unsigned word[4];
};

/// What the rounds take from the seed; the same for every counter.
template <int rounds>
struct PhiloxKeys {
    unsigned word[2 * rounds];
};

template <int rounds>
constexpr PhiloxKeys<rounds> philox_keys(unsigned long long seed) {
    PhiloxKeys<rounds> keys{};
    unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
    for (int round = 0; round < rounds; ++round) {
        keys.word[2 * round] = k0;
        keys.word[2 * round + 1] = k1;
        k0 += 0x9E3779B9u;  // golden ratio
        k1 += 0xBB67AE85u;  // sqrt(3) - 1
    }
    return keys;
}

/// The four words of `counter` under the keys of a seed. No state: equal arguments give equal words
/// everywhere.
template <int rounds>
constexpr PhiloxBlock philox(unsigned long long counter, unsigned long long stream,
                             const PhiloxKeys<rounds>& keys) {
    unsigned c0 = static_cast<unsigned>(counter), c1 = static_cast<unsigned>(counter >> 32);
    unsigned c2 = static_cast<unsigned>(stream), c3 = static_cast<unsigned>(stream >> 32);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int round = 0; round < rounds; ++round) {
        const unsigned long long p0 = 0xD2511F53ull * c0;
        const unsigned long long p1 = 0xCD9E8D57ull * c2;
        c0 = static_cast<unsigned>(p1 >> 32) ^ c1 ^ keys.word[2 * round];
        c1 = static_cast<unsigned>(p1);
        c2 = static_cast<unsigned>(p0 >> 32) ^ c3 ^ keys.word[2 * round + 1];
        c3 = static_cast<unsigned>(p0);
    }
    return {{c0, c1, c2, c3}};
}
constexpr PhiloxBlock philox(unsigned long long counter, unsigned long long stream, unsigned long long seed) {
    return philox(counter, stream, philox_keys<10>(seed));
}

/// Dropout's masks are made where a result is computed, and compete with it for the issue slots.
constexpr int dropout_rounds = 7;
/// Two draws of one word: itself, and it times this, which is both halves' sum above the lower half. Their leading 16 bits
/// are independent, and each takes all 2^32 values.
constexpr unsigned dropout_fold = 0x10001;
constexpr PhiloxKeys<dropout_rounds> dropout_keys(unsigned long long seed) {
    return philox_keys<dropout_rounds>(seed);
}

}  // namespace rooftile
