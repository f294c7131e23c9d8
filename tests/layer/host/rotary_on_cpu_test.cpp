// rotary_append's own text, thread by thread on the CPU, against plain loops: every place of q and of both caches, and nothing beside them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/fake/cta/words.hpp"

// One CTA runs at a time, and its threads are fibers of one thread.
#undef __shared__
#define __shared__ static

#include "kernels/layer/rotary_append.cuh"

namespace rooftile {
namespace {

struct Sizes {
    int sequences = 2, tokens = 1, heads = 2, kv_heads = 1, room = 9, page = 4;
    bool heads_outside = false;  ///< of the cache: a head's rows follow each other
    std::vector<int> lengths{};  ///< empty: as many as there is room for
};

using Bits = std::vector<unsigned short>;

/// 16-byte aligned, since a vector's own memory is.
Bits numbers(Type type, std::size_t count, std::mt19937& random) {
    std::normal_distribution<float> normal;
    Bits out(count);
    for (unsigned short& each : out) each = ptx::bits_of(type, normal(random));
    return out;
}

template <RotaryConfig C>
void expect_right(const Sizes& s) {
    SCOPED_TRACE(testing::Message() << C.dim << " rotated " << C.rotated << (C.normed ? " normed" : "") << (C.paged ? " paged" : "") << ", "
                                    << s.sequences << " x " << s.tokens << " tokens, " << s.heads << " and " << s.kv_heads << " heads");
    std::mt19937 random(3);
    const int all = s.heads + 2 * s.kv_heads, half = C.rotated / 2, pages = (s.room + s.page - 1) / s.page;
    const std::size_t tokens = std::size_t(s.sequences * s.tokens);
    const Bits rows = numbers(C.type, tokens * std::size_t(all * C.dim), random), q_weight = numbers(C.type, std::size_t(C.dim), random),
               k_weight = numbers(C.type, std::size_t(C.dim), random);
    std::vector<float4> turns(std::size_t(s.room * half) / 2 + 1);
    auto* const flat = reinterpret_cast<float*>(turns.data());
    const auto angle = [&](int position, int pair) { return position * std::pow(10000.0, -2.0 * pair / C.rotated); };
    for (int position = 0; position < s.room; ++position)
        for (int pair = 0; pair < half; ++pair) {
            flat[2 * (position * half + pair)] = float(std::cos(angle(position, pair)));
            flat[2 * (position * half + pair) + 1] = float(std::sin(angle(position, pair)));
        }
    std::vector<int> lengths = s.lengths, table;
    if (lengths.empty()) lengths.assign(std::size_t(s.sequences), s.room);
    for (int i = 0; i < s.sequences * pages; ++i) table.push_back(s.sequences * pages - 1 - i);

    RotaryArguments a{};
    const int places = C.paged ? pages * s.page : s.room;  // rows that a sequence has in the cache
    const std::size_t cache = std::size_t(s.sequences * places * s.kv_heads * C.dim);
    const unsigned short untouched = 0x7e7e;
    Bits q(tokens * std::size_t(s.heads * C.dim), untouched), k(cache, untouched), v(cache, untouched);
    a.rows = rows.data(), a.q = q.data(), a.k = k.data(), a.v = v.data(), a.turns = flat, a.lengths = lengths.data();
    a.block_table = C.paged ? table.data() : nullptr, a.q_weight = q_weight.data(), a.k_weight = k_weight.data(), a.eps = 1e-5f;
    a.tokens = int(tokens), a.tokens_of_sequence = s.tokens, a.heads = s.heads, a.kv_heads = s.kv_heads, a.positions = s.room;
    a.page = s.page, a.table_pages = pages;
    const int block = C.paged ? s.page : s.room;  // rows that lie together
    a.row_stride = s.heads_outside ? C.dim : C.dim * s.kv_heads, a.head_stride = s.heads_outside ? block * C.dim : C.dim;
    a.sequence_stride = std::int64_t(block) * s.kv_heads * C.dim;

    const std::int64_t items = std::int64_t(tokens) * all;
    for (std::int64_t cta = 0; cta < (items + C.heads_of_cta() - 1) / C.heads_of_cta(); ++cta)
        run_cta_on_cpu(unsigned(cta), RotaryConfig::threads, rotary_append<C>, a);

    Bits expected_q(q.size(), untouched), expected_k(cache, untouched), expected_v(cache, untouched);
    for (std::size_t token = 0; token < tokens; ++token)
        for (int head = 0; head < all; ++head) {
            const int sequence = int(token) / s.tokens, position = lengths[std::size_t(sequence)] - s.tokens + int(token) % s.tokens;
            if (position < 0 || position >= s.room) continue;
            const bool is_query = head < s.heads, is_value = head >= s.heads + s.kv_heads;
            std::vector<double> x(std::size_t(C.dim));
            double squares = 0;
            for (int i = 0; i < C.dim; ++i) {
                x[std::size_t(i)] =
                    ptx::number_of(C.type, rows[(token * std::size_t(all) + std::size_t(head)) * std::size_t(C.dim) + std::size_t(i)]);
                squares += x[std::size_t(i)] * x[std::size_t(i)];
            }
            if (C.normed && !is_value)
                for (int i = 0; i < C.dim; ++i)
                    x[std::size_t(i)] *=
                        ptx::number_of(C.type, (is_query ? q_weight : k_weight)[std::size_t(i)]) / std::sqrt(squares / C.dim + 1e-5);
            std::vector<double> y = x;
            if (!is_value)
                for (int pair = 0; pair < half; ++pair) {
                    const double cosine = std::cos(angle(position, pair)), sine = std::sin(angle(position, pair));
                    y[std::size_t(pair)] = x[std::size_t(pair)] * cosine - x[std::size_t(pair + half)] * sine;
                    y[std::size_t(pair + half)] = x[std::size_t(pair + half)] * cosine + x[std::size_t(pair)] * sine;
                }
            for (int i = 0; i < C.dim; ++i) {
                const unsigned short bits = ptx::bits_of(C.type, float(y[std::size_t(i)]));
                if (is_query) {
                    expected_q[(token * std::size_t(s.heads) + std::size_t(head)) * std::size_t(C.dim) + std::size_t(i)] = bits;
                    continue;
                }
                const int of_kind = head - s.heads - (is_value ? s.kv_heads : 0);
                const int outer = C.paged ? table[std::size_t(sequence * pages + position / s.page)] : sequence;
                const int row = C.paged ? position % s.page : position;
                (is_value ? expected_v
                          : expected_k)[std::size_t(outer * a.sequence_stride + of_kind * a.head_stride + row * a.row_stride + i)] = bits;
            }
        }
    const auto compare = [&](const char* name, const Bits& got, const Bits& expected) {
        for (std::size_t i = 0; i < got.size(); ++i) {
            // fp32 may round to the neighbour of what fp64 rounds to; what nobody writes keeps its bits.
            const double want = ptx::number_of(C.type, expected[i]), have = ptx::number_of(C.type, got[i]);
            if (expected[i] == untouched) ASSERT_EQ(got[i], untouched) << name << " " << i;
            else ASSERT_NEAR(have, want, 0.01 * std::abs(want) + 1e-4) << name << " " << i;
        }
    };
    compare("q", q, expected_q);
    compare("k", k, expected_k);
    compare("v", v, expected_v);
}

constexpr RotaryConfig plain(int dim, int rotated, Type type = Type::bf16) { return {.dim = dim, .rotated = rotated, .type = type}; }
constexpr RotaryConfig normed(RotaryConfig c) { return c.normed = true, c; }
constexpr RotaryConfig paged(RotaryConfig c) { return c.paged = true, c; }

TEST(RotaryOnCpu, HeadsOfEverySize) {
    expect_right<plain(64, 64)>({.sequences = 3, .heads = 4, .kv_heads = 2});
    expect_right<plain(128, 128)>({.heads = 8, .kv_heads = 2});
    expect_right<plain(96, 96, Type::fp16)>({.heads = 3, .kv_heads = 3});
    expect_right<plain(512, 512)>({});
    expect_right<plain(16, 16)>({.heads = 5, .kv_heads = 5});
}

TEST(RotaryOnCpu, HeadsThatAreRotatedInPart) {
    expect_right<plain(128, 32)>({.heads = 4, .kv_heads = 2});
    expect_right<plain(96, 48)>({.heads = 2});
    expect_right<normed(plain(80, 16))>({.heads = 2});
}

TEST(RotaryOnCpu, NormedHeads) {
    expect_right<normed(plain(128, 128))>({.heads = 6, .kv_heads = 2});
    expect_right<normed(plain(96, 96, Type::fp16))>({.heads = 3, .kv_heads = 3});
}

TEST(RotaryOnCpu, ManyTokensAndCachesOfEitherOrder) {
    expect_right<plain(64, 64)>({.sequences = 2, .tokens = 9, .heads = 2, .kv_heads = 2, .heads_outside = true});
    expect_right<plain(64, 64)>({.sequences = 3, .tokens = 4, .heads = 3, .kv_heads = 1, .lengths = {4, 9, 6}});
}

TEST(RotaryOnCpu, PagesOfATable) {
    expect_right<paged(plain(64, 64))>({.sequences = 3, .tokens = 2, .heads = 2, .kv_heads = 2, .lengths = {2, 9, 5}});
    expect_right<paged(plain(64, 64))>(
        {.sequences = 3, .tokens = 2, .heads = 2, .kv_heads = 2, .heads_outside = true, .lengths = {8, 4, 5}});
}

// Lengths are data: one beyond the room, or too short for the step, writes nowhere.
TEST(RotaryOnCpu, LengthsThatLeaveNoPlace) {
    expect_right<plain(64, 64)>({.sequences = 3, .lengths = {10, 0, 9}});
    expect_right<plain(64, 64)>({.sequences = 2, .tokens = 3, .lengths = {2, 11}});
}

}  // namespace
}  // namespace rooftile
