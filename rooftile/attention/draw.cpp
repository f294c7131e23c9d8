#include "rooftile/attention/draw.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr double most_flops = 2e13;

std::int64_t drawn_number(Random& random, std::int64_t least, std::int64_t most) {
    return std::llround(random.log_uniform(double(least), double(std::max(least, most))));
}

std::int64_t a_divisor(Random& random, std::int64_t number) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= number; ++d)
        if (number % d == 0) divisors.push_back(d);
    return random.one_of(divisors);
}

AttentionProblem any_problem(Random& random) {
    constexpr std::int64_t dims[] = {64, 96, 128, 192, 256};
    AttentionProblem p;
    p.dim = p.dim_v = random.one_of(dims);
    p.heads = drawn_number(random, 8, 128);
    p.kv_heads = a_divisor(random, p.heads);
    const std::int64_t tokens = drawn_number(random, 1 << 10, 1 << 17);
    p.queries = p.keys = drawn_number(random, 64, std::min<std::int64_t>(32768, tokens));
    p.batch = tokens / p.queries;
    p.mask = AttentionMask(random.pick(3));
    if (p.mask == AttentionMask::window) p.window = drawn_number(random, 128, p.queries);
    return p;
}

}  // namespace

DrawLaw attention_law(const DrawRequest& request) {
    if (request.law == "any")
        throw RequestError("--any-alignment: attention's rows begin at multiples of 16 bytes; drawn sizes are any integers already");
    static constexpr std::string_view laws[] = {"draw"};
    law_index(request, laws);
    return {"draw",
            "prefill: 1024 to 131072 tokens, 64 to 32768 a sequence, 8 to 128 heads, KV heads a divisor, head dim 64, 96, 128, "
            "192 or 256, mask none, causal or window, at most 2e13 FLOP",
            Mode::sustained};
}

AttentionProblem drawn_attention(Random& random) {
    for (;;) {
        AttentionProblem p = any_problem(random);
        if (p.flops() > most_flops) continue;
        check(p);
        return p;
    }
}

ProblemTraits attention_traits(const AttentionProblem& p) {
    constexpr std::int64_t whole_tile = 64, short_rows = 512;
    ProblemTraits t;
    t.band = p.queries >= 4096 ? "q >= 4096" : p.queries >= 512 ? "q 512 .. 4095" : "q < 512";
    t.features = {{"causal", p.mask == AttentionMask::causal},
                  {"window", p.mask == AttentionMask::window},
                  {"heads share keys", p.kv_heads < p.heads},
                  {"q no multiple of 64", p.queries % whole_tile != 0},
                  {"window under 512", p.mask == AttentionMask::window && p.window < short_rows},
                  {"dim 64", p.dim == 64},
                  {"dim over 128", p.dim > 128}};
    t.x = {"q", double(p.queries)};
    t.y = {"batch heads", double(p.heads_of_all())};
    t.flops = p.flops();
    return t;
}

}  // namespace rooftile
