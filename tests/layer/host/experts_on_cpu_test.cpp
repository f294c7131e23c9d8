// The kernels between experts' products, their own text, thread by thread on the CPU: any choice of experts, all tokens to one among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/fake/cta/words.hpp"

// One CTA runs at a time, and its threads are fibers of one thread.
#undef __shared__
#define __shared__ static

#include "kernels/layer/experts.cuh"

namespace rooftile {
namespace {

using Bits = std::vector<unsigned short>;

/// Memory of choices, poisoned.
struct Choices {
    std::vector<float> weights;
    std::vector<int> rows, experts, offsets;
    Choices(int choices, int count)
        : weights(std::size_t(choices), -1), rows(weights.size(), -1), experts(weights.size(), -1), offsets(std::size_t(count) + 1, -1) {}
    ExpertChoices at() { return {weights.data(), rows.data(), experts.data(), offsets.data()}; }
};

struct Routing {
    int tokens = 5, experts = 8, chosen = 2;
    bool renormalized = true, shared_gate = false;
};

/// Of logits [tokens, columns].
template <int lanes, Type type>
Choices routed(const Routing& r, const Bits& logits, int columns, Bits* shared = nullptr) {
    Choices out(r.tokens * r.chosen, r.experts);
    RouteArguments a{};
    a.logits = logits.data(), a.shared_gate = shared ? shared->data() : nullptr, a.to = out.at();
    a.tokens = r.tokens, a.columns = columns, a.experts = r.experts, a.chosen = r.chosen, a.renormalized = r.renormalized;
    for (int cta = 0; cta < (r.tokens * 32 + route_threads - 1) / route_threads; ++cta)
        run_cta_on_cpu(unsigned(cta), route_threads, route<lanes, type>, a);
    return out;
}

Bits random_logits(Type type, int count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Bits out(static_cast<std::size_t>(count));
    for (unsigned short& each : out) each = ptx::bits_of(type, normal(random));
    return out;
}

template <int lanes, Type type>
void expect_routed(const Routing& r) {
    SCOPED_TRACE(testing::Message() << r.tokens << " tokens, " << r.chosen << " of " << r.experts
                                    << (r.renormalized ? " renormalized" : ""));
    const int columns = (r.experts + (r.shared_gate ? 1 : 0) + 7) / 8 * 8;
    const Bits logits = random_logits(type, r.tokens * columns, 4);
    Bits shared(std::size_t(r.tokens), 0x7e7e);
    const Choices got = routed<lanes, type>(r, logits, columns, r.shared_gate ? &shared : nullptr);
    for (int token = 0; token < r.tokens; ++token) {
        std::vector<double> own;
        for (int e = 0; e < r.experts; ++e) own.push_back(ptx::number_of(type, logits[std::size_t(token * columns + e)]));
        std::vector<int> order(own.size());
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, [&](int x, int y) { return own[std::size_t(x)] > own[std::size_t(y)]; });
        double all = 0, chosen = 0;
        for (const double logit : own) all += std::exp(logit);
        for (int c = 0; c < r.chosen; ++c) chosen += std::exp(own[std::size_t(order[std::size_t(c)])]);
        for (int c = 0; c < r.chosen; ++c) {
            const auto place = std::size_t(token * r.chosen + c);
            EXPECT_EQ(got.experts[place], order[std::size_t(c)]) << token << " " << c;
            EXPECT_NEAR(got.weights[place], std::exp(own[std::size_t(order[std::size_t(c)])]) / (r.renormalized ? chosen : all), 1e-5);
        }
        EXPECT_EQ(shared[std::size_t(token)], r.shared_gate ? logits[std::size_t(token * columns + r.experts)] : 0x7e7e);
    }
}

TEST(ExpertsOnCpu, TheGreatestLogitsAreChosen) {
    expect_routed<1, Type::bf16>({});
    expect_routed<1, Type::bf16>({.tokens = 1, .experts = 1, .chosen = 1});
    expect_routed<1, Type::fp16>({.tokens = 9, .experts = 32, .chosen = 32, .renormalized = false});
    expect_routed<2, Type::bf16>({.tokens = 6, .experts = 60, .chosen = 4, .renormalized = false, .shared_gate = true});
    expect_routed<4, Type::bf16>({.tokens = 7, .experts = 128, .chosen = 8});
    expect_routed<16, Type::bf16>({.tokens = 3, .experts = 512, .chosen = 10});
}

TEST(ExpertsOnCpu, OfEqualLogitsTheFirstAreChosen) {
    const Routing r{.tokens = 4, .experts = 60, .chosen = 3};
    const Choices got = routed<2, Type::bf16>(r, Bits(std::size_t(r.tokens * 64), ptx::bits_of(Type::bf16, 0.5f)), 64);
    for (int i = 0; i < r.tokens * r.chosen; ++i) {
        EXPECT_EQ(got.experts[std::size_t(i)], i % r.chosen);
        EXPECT_NEAR(got.weights[std::size_t(i)], 1.0 / 3, 1e-6);
    }
}

// What is no number chooses anybody, but an expert.
TEST(ExpertsOnCpu, LogitsThatAreNoNumbersChooseExperts) {
    const Routing r{.tokens = 3, .experts = 5, .chosen = 4};
    const Choices got = routed<1, Type::bf16>(r, Bits(std::size_t(r.tokens * 8), 0x7fff), 8);
    for (const int expert : got.experts) {
        EXPECT_GE(expert, 0);
        EXPECT_LT(expert, r.experts);
    }
}

void expect_sorted(const std::vector<int>& experts, int count) {
    Choices c(int(experts.size()), count);
    c.experts = experts;
    for (int expert = 0; expert < count; ++expert)
        run_cta_on_cpu(unsigned(expert), sort_threads, sort_choices, c.at(), int(experts.size()), count);
    std::vector<int> order(experts.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int x, int y) { return experts[std::size_t(x)] < experts[std::size_t(y)]; });
    for (std::size_t row = 0; row < order.size(); ++row) ASSERT_EQ(c.rows[std::size_t(order[row])], int(row));
    for (int expert = 0; expert <= count; ++expert)
        EXPECT_EQ(c.offsets[std::size_t(expert)], std::ranges::count_if(experts, [&](int e) { return e < expert; })) << expert;
}

TEST(ExpertsOnCpu, RowsFollowEachOtherInTheOrderOfTokens) {
    std::mt19937 random(5);
    for (const int choices : {1, 7, 1024, 1025, 3000}) {
        std::vector<int> experts(static_cast<std::size_t>(choices));
        for (int& each : experts) each = int(random() % 6);
        expect_sorted(experts, 7);  // nobody chooses the last
    }
    expect_sorted(std::vector<int>(100, 0), 3);
    expect_sorted(std::vector<int>(100, 2), 3);
}

TEST(ExpertsOnCpu, RowsGoThereAndComeBack) {
    constexpr Type type = Type::bf16;
    constexpr int tokens = 5, chosen = 2, columns = 2088;  // more runs than threads
    const std::vector<int> rows = {3, 9, 0, 4, 8, 1, 2, 7, 5, 6};
    const std::vector<float> weights = {0.5f, 0.5f, 0.25f, 0.75f, 1, 0, 0.125f, 2, -1, 1};
    const Bits from = random_logits(type, tokens * columns, 6), base = random_logits(type, tokens * columns, 7);
    Bits gathered(std::size_t(tokens * chosen * columns), 0x7fff), back(from.size(), 0x7fff);
    constexpr int ctas_of_row = (columns / run_elements + row_threads - 1) / row_threads;
    const auto each_cta = [](int rows_of_grid, const auto& run) {
        for (int row = 0; row < rows_of_grid; ++row)
            for (int part = 0; part < ctas_of_row; ++part) blockIdx.y = unsigned(part), run(unsigned(row));
        blockIdx.y = 0;
    };
    each_cta(tokens * chosen, [&](unsigned choice) {
        run_cta_on_cpu(choice, row_threads, gather_rows, static_cast<const void*>(from.data()),
                       static_cast<void*>(gathered.data()), rows.data(), chosen, columns);
    });
    Choices c(tokens * chosen, 1);
    c.rows = rows, c.weights = weights;
    each_cta(tokens, [&](unsigned token) {
        run_cta_on_cpu(token, row_threads, combine_rows<type>, static_cast<const void*>(gathered.data()), c.at(),
                       static_cast<const void*>(base.data()), static_cast<void*>(back.data()), chosen, columns);
    });
    for (int token = 0; token < tokens; ++token)
        for (int i = 0; i < columns; ++i) {
            const auto at = std::size_t(token * columns + i);
            for (int c2 = 0; c2 < chosen; ++c2)
                ASSERT_EQ(gathered[std::size_t(rows[std::size_t(token * chosen + c2)] * columns + i)], from[at]);
            const double sum = weights[std::size_t(token * chosen)] + weights[std::size_t(token * chosen + 1)];
            const double want = ptx::number_of(type, base[at]) + sum * ptx::number_of(type, from[at]);
            ASSERT_NEAR(ptx::number_of(type, back[at]), want, 0.005 * std::abs(want) + 1e-4);
        }
}

}  // namespace
}  // namespace rooftile
