// store_rows' own text, lane by lane on the CPU: rows that begin anywhere, tiles of any width, tiles at C's ends; every element once, and
// nothing beside C.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/from_environment.hpp"

static const auto drawn_by = std::uint32_t(rooftile::test_seed());

#include "tests/fake/cta/text.hpp"

#include "kernels/matrix/store_rows.cuh"

namespace cta_text {
namespace {

unsigned value_at(unsigned row, unsigned column) { return (row * 977 + column * 31 + 1) & 0x7fff; }

/// What a wgmma leaves: two neighbours a lane.
struct Sums {
    unsigned row, column;
    void pairs(unsigned (&to)[1], int i, int j) const {
        const unsigned thread = threadIdx.x % 128, r = row + 64 * unsigned(i) + thread / 32 * 16 + thread % 32 / 4 + unsigned(j / 2 % 2) * 8,
                       x = column + unsigned(j / 4) * 8 + thread % 4 * 2;
        to[0] = value_at(r, x) | value_at(r, x + 1) << 16;
    }
};

template <int tile_m, int tile_n>
void expect_stored(std::mt19937& random) {
    constexpr MatrixConfig C{.tile_m = tile_m, .tile_n = tile_n, .tile_k = 64, .stages = 2, .consumer_warpgroups = 1, .schedule = Schedule::cooperative,
                             .cluster_m = 1, .cluster_n = 1, .ctas_per_sm = 1, .producer_registers = 0, .consumer_registers = 0, .type = Type::bf16,
                             .a_major = Major::k, .b_major = Major::k, .tma_store = false};
    for (int trial = 0; trial < 12; ++trial) {
        const auto number = [&](int least, int most) { return least + int(random() % unsigned(most - least + 1)); };
        const int m = number(1, tile_m + 20), n = number(1, tile_n + 20), pitch = n + number(0, 9), offset = number(0, 7);
        const int at_m = m > tile_m && trial % 2 ? m - tile_m : 0, at_n = n > tile_n && trial % 3 ? n - tile_n : 0;
        std::vector<unsigned short> memory(std::size_t(m) * std::size_t(pitch) + 32, 0xffff);
        unsigned short* first = memory.data();
        while (reinterpret_cast<std::uintptr_t>(first) % 16 != 0) ++first;
        unsigned short* const c = first + offset;
        const Sums sums{unsigned(at_m), unsigned(at_n)};
        Fibers::now().run(128, [&] {
            store_rows<C>(sums, c, pitch, unsigned(at_m), unsigned(m), unsigned(at_n), unsigned(n), threadIdx.x / 32 * C.staged_bytes());
            ptx::tma_store_wait_read<0>();
        });
        SCOPED_TRACE(testing::Message() << m << " x " << n << ", pitch " << pitch << ", offset " << offset << ", tile " << tile_m << "x" << tile_n << " at " << at_m << "," << at_n);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < memory.size(); ++i) {
            const long long from_c = &memory[i] - c;
            const long long row = from_c < 0 ? -1 : from_c / pitch, column = from_c < 0 ? -1 : from_c % pitch;
            const bool stored = row >= at_m && row < std::min(m, at_m + tile_m) && column >= at_n && column < std::min(n, at_n + tile_n);
            wrong += memory[i] != (stored ? value_at(unsigned(row), unsigned(column)) : 0xffff);
        }
        EXPECT_EQ(wrong, 0u);
    }
}

TEST(StoreRows, EveryElementOnceWhateverRowsBeginAt) {
    std::mt19937 random(drawn_by);
    expect_stored<64, 8>(random);
    expect_stored<64, 16>(random);
    expect_stored<64, 24>(random);
    expect_stored<64, 40>(random);
    expect_stored<64, 128>(random);
    expect_stored<128, 64>(random);
    expect_stored<64, 176>(random);
}

}  // namespace
}  // namespace cta_text
