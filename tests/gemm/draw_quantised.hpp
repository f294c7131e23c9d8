// Products by packed weights, drawn over every layout: sizes that end anywhere in a tile, rows that are padded.
#pragma once

#include <array>
#include <cmath>

#include "rooftile/core/random.hpp"
#include "rooftile/gemm/problem.hpp"
#include "tests/gemm/draw_epilogue.hpp"

namespace rooftile {

inline QuantisedLayout drawn_layout(Random& random) {
    const std::array zeros = {ZeroType::none, ZeroType::real, ZeroType::integer};
    QuantisedLayout layout{.weights = WeightType(1 + random.pick(int(WeightType::nf4)))};
    if (layout.power_scales()) layout.group = QuantisedLayout::power_group;
    else {
        layout.group = random.one_of(std::array{32, 64, 128, 0});
        layout.scale = random.coin() ? Type::bf16 : Type::fp16;
    }
    layout.zeros = zeros[random.pick(!layout.is_whole() ? 1 : layout.bits() == 8 ? 2 : 3)];
    return layout;
}

/// K, and where rows of A begin, multiples of `step`; A of 8 bits in a quarter.
inline GemmProblem drawn_quantised(Random& random, std::int64_t most_n, std::int64_t most_k, std::int64_t most_m = 64, int step = 8) {
    const auto size = [&random](std::int64_t most) { return random.whole(1, random.one_in(4) ? 150 : most); };
    GemmProblem p = gemm_problem(most_m <= 64 ? random.whole(1, most_m) : std::llround(random.log_uniform(17, double(most_m))), size(most_n), (size(most_k) + step - 1) / step * step,
                                 random.coin() ? Type::bf16 : Type::fp16);
    p.quantised = drawn_layout(random);
    if (random.one_in(4)) p.a_type = random.coin() ? Type::fp8_e4m3 : Type::fp8_e5m2;
    if (random.coin()) p.k = p.lda = p.ldb = (p.k + 63) / 64 * 64;
    if (random.coin()) p.lda += step * random.whole(1, 9);
    if (random.coin()) p.ldc += random.whole(1, 64);
    if (random.one_in(4)) p.a_offset = step * random.whole(1, 7);
    if (random.one_in(4)) p.c_offset = random.whole(1, 63);
    check(p);
    return p;
}

/// Half of them with an expression before they are stored.
inline GemmProblem drawn_quantised_expressed(Random& random, std::int64_t most_n, std::int64_t most_k, std::int64_t most_m = 64, int step = 8) {
    const bool plain = random.coin();
    for (;;) {
        GemmProblem p = drawn_quantised(random, most_n, most_k, most_m, step);
        if (plain || (give_epilogue(p, drawn_epilogue(random)) && p.pairs() == Pairs::none)) return p;
    }
}

}  // namespace rooftile
