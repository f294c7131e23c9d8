// sm90_latent_attention's own text, thread by thread on the CPU, against softmax in fp64: heads that fill a tile and that do not, tiles in parts
// of several CTAs, caches of unlike lengths with NaN behind their keys, pages in any order, masks, NaN and far scores among the keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "tests/fake/cta/words.hpp"

#include "kernels/attention/sm90_latent_attention.cuh"

namespace rooftile {
namespace {

using Bits = std::vector<unsigned short>;
constexpr unsigned short nan_bits = 0x7fff;

struct Sizes {
    int batches = 1, heads = 64, group = 64, queries = 1, keys = 100;
    unsigned ctas = 2;
    std::vector<int> lengths{};  ///< of a cache; empty: all have as many keys
    float factor = 1;            ///< of queries: how far apart scores are
    int nan_key = -1;            ///< of the first batch
};

Bits numbers(Type type, std::size_t count, float factor, std::mt19937& random) {
    std::normal_distribution<float> normal;
    Bits out(count);
    for (unsigned short& each : out) each = ptx::bits_of(type, factor * normal(random));
    return out;
}

constexpr Sm90AttentionConfig latent(int tile_kv, int dim, int dim_v, int stages, AttentionMask mask = AttentionMask::none) {
    return {.tile_q = 64, .tile_kv = tile_kv, .dim = dim, .dim_v = dim_v, .stages = stages, .turns = false, .producer_registers = 0,
            .consumer_registers = 0, .mask = mask, .split = true, .grouped = true, .latent = true};
}
constexpr Sm90AttentionConfig cached(Sm90AttentionConfig c, int page = 0, int piece = 0) {
    c.cache = true, c.page = page, c.piece = piece;
    return c;
}
constexpr Sm90AttentionConfig apart(Sm90AttentionConfig c) {
    c.combine_apart = true;
    return c;
}
constexpr Sm90AttentionConfig in_fp16(Sm90AttentionConfig c) {
    c.type = Type::fp16;
    return c;
}

template <Sm90AttentionConfig C>
void expect_right(const Sizes& s) {
    SCOPED_TRACE(testing::Message() << s.batches << " x " << s.heads << " heads by " << s.group << ", " << s.queries << " queries, " << s.keys << " keys, dim " << C.dim
                                    << "/" << C.dim_v << ", blocks of " << C.tile_kv << ", pages of " << C.page << ", " << s.ctas << " CTAs");
    std::mt19937 random(unsigned(s.keys * 131 + s.heads));
    const auto length = [&](int batch) { return s.lengths.empty() ? s.keys : s.lengths[std::size_t(batch)]; };
    const int pages_of_batch = C.page > 0 ? (s.keys + C.page - 1) / C.page : 1, rows = C.page > 0 ? C.page : s.keys;
    std::vector<int> table(std::size_t(s.batches * pages_of_batch));
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    const Bits q = numbers(C.type, std::size_t(s.batches * s.heads * s.queries * C.dim), s.factor, random);
    Bits k = numbers(C.type, table.size() * std::size_t(rows * C.dim), 1, random);
    const auto key_row = [&](int batch, int key) {
        const int page = C.page > 0 ? table[std::size_t(batch * pages_of_batch + key / C.page)] : batch;
        return std::size_t(page * rows + (C.page > 0 ? key % C.page : key)) * std::size_t(C.dim);
    };
    for (int batch = 0; batch < s.batches; ++batch)
        for (int key = length(batch); key < pages_of_batch * rows; ++key) std::fill_n(k.begin() + std::ptrdiff_t(key_row(batch, key)), C.dim, nan_bits);
    if (s.nan_key >= 0) k[key_row(0, s.nan_key) + 5] = nan_bits;

    constexpr unsigned short untouched = 0x1234;
    Bits o(std::size_t(s.batches * s.heads * s.queries * C.dim_v) + 8, untouched);
    std::vector<float> logs(std::size_t(s.batches * s.heads * s.queries), -7);
    AttentionArguments args{};
    args.extent = {C.mask, s.queries * s.group, s.keys, 0, s.group};
    args.heads = s.heads / s.group, args.kv_heads = 1, args.batches = s.batches, args.section_heads = 1;
    args.scale = float(1 / std::sqrt(double(C.dim))), args.scale_log2 = args.scale * 1.44269504f;
    args.dim = C.dim, args.dim_v = C.dim_v;
    args.q = q.data(), args.k = args.v = k.data(), args.o = o.data(), args.log_sum_exp = logs.data();
    args.q_strides = {s.heads * C.dim, C.dim, s.queries * s.heads * C.dim};  // a query's heads follow each other
    args.o_strides = {s.heads * C.dim_v, C.dim_v, s.queries * s.heads * C.dim_v};
    args.k_strides = args.v_strides = {C.dim, rows * C.dim, rows * C.dim};
    args.lengths = s.lengths.empty() ? nullptr : s.lengths.data();
    args.block_table = C.page > 0 ? table.data() : nullptr, args.page = C.page, args.table_pages = pages_of_batch;
    std::vector<unsigned> arrived(std::size_t(s.ctas) + 4096, 0);
    std::vector<float> partials((2 * std::size_t(s.ctas) + 64) * 64 * (C.dim_v + 4), std::nanf(""));
    args.arrived = arrived.data(), args.partials = partials.data();
    const TensorMap map_q = ptx::fake_map({q.data(), {C.dim, s.heads, s.queries, s.batches}, {64, s.group, C.tile_q / s.group, 1},
                                           {1, args.q_strides.head, args.q_strides.row, args.q_strides.batch}});
    const TensorMap map_k = ptx::fake_map({k.data(), {C.dim, rows, 1, int(table.size())}, {64, std::min(C.page > 0 ? C.page : C.tile_kv, C.tile_kv), 1, 1},
                                           {1, C.dim, rows * C.dim, rows * C.dim}});
    int outside = 0;
    on_global_read = [&](const void* from, std::size_t bytes) {
        const auto in = [&](const Bits& all) { return from >= all.data() && static_cast<const char*>(from) + bytes <= static_cast<const void*>(all.data() + all.size()); };
        outside += !in(q) && !in(k);
    };
    gridDim.x = s.ctas;
    for (int cta = int(s.ctas) - 1; cta >= 0; --cta)  // who comes last has not the last part
        run_cta_on_cpu(unsigned(cta), unsigned(C.threads()),
                       [](const TensorMap& a, const TensorMap& b, const AttentionArguments& x) { sm90_latent_attention<C>(a, b, x); }, map_q, map_k, args);
    if constexpr (C.combine_apart) {
        const int tile_rows = std::min(64 / s.group * s.group, s.queries * s.group), tiles = (s.queries * s.group + tile_rows - 1) / tile_rows * args.heads * s.batches;
        for (int tile = 0; tile < tiles; ++tile)
            for (int y = 0; y < C.combine_ctas_a_tile(tile_rows); ++y) {
                blockIdx.y = unsigned(y);
                run_cta_on_cpu(unsigned(tile), unsigned(C.combine_threads), [](const AttentionArguments& x, int ctas) { sm90_latent_combine<C>(x, ctas); }, args, int(s.ctas));
            }
    }
    gridDim.x = 1, blockIdx.x = blockIdx.y = 0;
    EXPECT_EQ(outside, 0);
    for (const unsigned counter : arrived) ASSERT_EQ(counter, 0u);

    int wrong = 0;
    const auto number = [&](unsigned short bits) { return double(ptx::number_of(C.type, bits)); };
    const double tolerance = C.type == Type::bf16 ? 0.02 : 0.003;
    for (int batch = 0; batch < s.batches; ++batch)
        for (int query = 0; query < s.queries; ++query)
            for (int head = 0; head < s.heads; ++head) {
                const std::size_t row = std::size_t((batch * s.queries + query) * s.heads + head);
                const int end = C.mask == AttentionMask::none ? length(batch) : std::max(0, length(batch) - s.queries + query + 1);
                std::vector<double> scores;
                double most = -std::numeric_limits<double>::infinity(), total = 0;
                for (int key = 0; key < end; ++key) {
                    double dot = 0;
                    for (int d = 0; d < C.dim; ++d) dot += number(q[row * std::size_t(C.dim) + std::size_t(d)]) * number(k[key_row(batch, key) + std::size_t(d)]);
                    scores.push_back(dot * double(args.scale));
                    most = std::fmax(most, scores.back());
                }
                std::vector<double> expected(std::size_t(C.dim_v), 0);
                for (int key = 0; key < end; ++key) {
                    const double weight = std::exp(scores[std::size_t(key)] - most);
                    total += weight;
                    for (int d = 0; d < C.dim_v; ++d) expected[std::size_t(d)] += weight * number(k[key_row(batch, key) + std::size_t(d)]);
                }
                const auto differ = [](double a, double b, double by) { return std::isnan(a) != std::isnan(b) || std::fabs(a - b) > by; };
                for (int d = 0; d < C.dim_v; ++d) {
                    const double wanted = end > 0 ? expected[std::size_t(d)] / total : 0, got = number(o[row * std::size_t(C.dim_v) + std::size_t(d)]);
                    if (differ(wanted, got, tolerance * (0.2 + std::fabs(wanted))) && wrong++ == 0)
                        ADD_FAILURE() << "batch " << batch << " query " << query << " head " << head << " column " << d << ": " << got << ", not " << wanted;
                }
                const float log = logs[std::size_t((batch * s.heads + head) * s.queries + query)];
                const double wanted = most + std::log(total);
                if ((end > 0 ? differ(wanted, log, 1e-3 * (1 + std::fabs(wanted))) : !(std::isinf(log) && log < 0)) && wrong++ == 0)
                    ADD_FAILURE() << "batch " << batch << " query " << query << " head " << head << ": the logarithm is " << log << ", not " << wanted;
            }
    EXPECT_EQ(wrong, 0);
    for (std::size_t i = o.size() - 8; i < o.size(); ++i) EXPECT_EQ(o[i], untouched);
}

// DeepSeek's rows: 64 of 128 heads a tile, so two tiles that share their keys; a share that ends in a tile; 16 heads, of eight GPUs.
TEST(LatentOnCpu, RowsOfDeepSeek) {
    expect_right<latent(64, 576, 512, 2)>({.heads = 128, .keys = 200, .ctas = 3});
    expect_right<latent(64, 576, 512, 2)>({.batches = 2, .heads = 16, .group = 16, .keys = 130, .ctas = 3});
    expect_right<in_fp16(latent(32, 576, 512, 4))>({.heads = 64, .keys = 97, .ctas = 2});
}

TEST(LatentOnCpu, EveryRingAndBlock) {
    expect_right<latent(32, 192, 128, 1)>({.batches = 2, .keys = 130, .ctas = 3});
    expect_right<latent(32, 192, 128, 3)>({.batches = 3, .keys = 33, .ctas = 2});
    expect_right<latent(96, 192, 128, 2)>({.keys = 500, .ctas = 2});
    expect_right<latent(128, 320, 256, 2)>({.heads = 24, .group = 24, .keys = 300, .ctas = 2});
    expect_right<latent(64, 128, 128, 2)>({.keys = 1, .ctas = 1});
    expect_right<latent(64, 400, 384, 2)>({.heads = 8, .group = 8, .queries = 3, .keys = 100, .ctas = 1});
}

// A CTA has several tiles; heads by 40 leave rows of a tile empty.
TEST(LatentOnCpu, ManyTilesOfACta) {
    expect_right<latent(64, 192, 128, 2)>({.batches = 7, .heads = 40, .group = 40, .keys = 70, .ctas = 3});
    expect_right<latent(64, 192, 128, 2)>({.batches = 2, .heads = 6, .group = 2, .queries = 40, .keys = 100, .ctas = 5});
}

TEST(LatentOnCpu, Masks) {
    expect_right<latent(64, 192, 128, 2, AttentionMask::causal)>({.heads = 16, .group = 16, .queries = 6, .keys = 100, .ctas = 3});
    expect_right<latent(64, 192, 128, 2, AttentionMask::causal)>({.heads = 16, .group = 16, .queries = 6, .keys = 4, .ctas = 1});
    // Tiles of rows that see no key at all.
    expect_right<in_fp16(latent(32, 304, 256, 2, AttentionMask::causal))>({.batches = 4, .heads = 56, .group = 56, .queries = 6, .keys = 1, .ctas = 24});
    expect_right<in_fp16(latent(32, 304, 256, 3, AttentionMask::causal))>({.batches = 4, .heads = 56, .group = 56, .queries = 6, .keys = 1, .ctas = 24, .nan_key = 0});
    // A NaN that only the last query sees.
    expect_right<latent(64, 192, 128, 2, AttentionMask::causal)>({.heads = 16, .group = 16, .queries = 3, .keys = 100, .ctas = 1, .nan_key = 99});
    expect_right<latent(64, 192, 128, 2, AttentionMask::causal)>({.heads = 16, .group = 16, .queries = 3, .keys = 150, .ctas = 3, .nan_key = 149});
}

TEST(LatentOnCpu, Caches) {
    expect_right<cached(latent(64, 192, 128, 2))>({.batches = 4, .heads = 16, .group = 16, .keys = 200, .ctas = 3, .lengths = {130, 0, 1, 200}});
    expect_right<cached(latent(64, 192, 128, 2), 16)>({.batches = 3, .heads = 16, .group = 16, .keys = 150, .ctas = 2, .lengths = {70, 150, 17}});
    expect_right<cached(latent(64, 192, 128, 2), 128)>({.batches = 2, .heads = 16, .group = 16, .keys = 256, .ctas = 4, .lengths = {129, 256}});
    expect_right<cached(latent(64, 192, 128, 2, AttentionMask::causal), 64)>(
        {.batches = 3, .heads = 8, .group = 8, .queries = 4, .keys = 150, .ctas = 2, .lengths = {70, 0, 2}});
    // Cuts of a tile's own: of two blocks.
    expect_right<cached(latent(32, 192, 128, 2), 32, 2)>({.batches = 3, .heads = 16, .group = 16, .keys = 200, .ctas = 3, .lengths = {130, 0, 200}});
}

// A second kernel adds the parts up: of tiles that are cut and that are not, of unlike lengths, of cuts of a tile's own, and rows that it computes again.
TEST(LatentOnCpu, PartsAddedUpApart) {
    expect_right<apart(latent(32, 576, 512, 2))>({.heads = 64, .keys = 300, .ctas = 9});
    expect_right<apart(latent(32, 192, 128, 2))>({.batches = 3, .heads = 24, .group = 24, .queries = 3, .keys = 200, .ctas = 7});
    expect_right<apart(cached(latent(32, 320, 256, 2)))>({.batches = 5, .heads = 16, .group = 16, .keys = 300, .ctas = 6, .lengths = {130, 0, 1, 300, 64}});
    expect_right<apart(cached(latent(32, 192, 128, 2, AttentionMask::causal), 32, 2))>(
        {.batches = 3, .heads = 16, .group = 16, .queries = 2, .keys = 200, .ctas = 3, .lengths = {130, 0, 200}});
    expect_right<apart(latent(64, 192, 128, 2))>({.heads = 8, .group = 8, .keys = 150, .ctas = 2, .factor = 1e9f});
    expect_right<apart(latent(64, 192, 128, 2, AttentionMask::causal))>({.heads = 16, .group = 16, .queries = 3, .keys = 150, .ctas = 3, .nan_key = 149});
}

// Scores that grow from block to block, so that O is rescaled; and so far that a row is computed again.
TEST(LatentOnCpu, FarScores) {
    expect_right<latent(64, 192, 128, 2)>({.keys = 300, .ctas = 2, .factor = 30});
    expect_right<latent(64, 192, 128, 2)>({.heads = 8, .group = 8, .keys = 100, .ctas = 1, .factor = 1e9f});
    expect_right<latent(64, 192, 128, 2)>({.heads = 8, .group = 8, .keys = 150, .ctas = 2, .factor = 1e9f});
}

TEST(LatentOnCpu, NanIsSeen) { expect_right<latent(64, 192, 128, 2)>({.batches = 2, .keys = 100, .ctas = 3, .nan_key = 70}); }

}  // namespace
}  // namespace rooftile
