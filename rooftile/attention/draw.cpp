#include "rooftile/attention/draw.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr double most_flops = 2e13;
constexpr double least_flops = 1e6;  // of any problem: below, nothing is computed that could be wrong

std::int64_t drawn_number(Random& random, std::int64_t least, std::int64_t most) {
    return std::llround(random.log_uniform(double(least), double(std::max(least, most))));
}

std::int64_t a_divisor(Random& random, std::int64_t number) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= number; ++d)
        if (number % d == 0) divisors.push_back(d);
    return random.one_of(divisors);
}

AttentionProblem prefill(Random& random) {
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

/// Elements between rows, heads and batches as views of a projection's result have them: heads side by side, rows further apart.
AttentionPitch pitch_apart(Random& random, std::int64_t heads, std::int64_t rows, std::int64_t dim) {
    constexpr std::int64_t step = attention_dim_step;
    const std::int64_t head = dim + step * random.whole(0, 2), row = heads * head + step * random.whole(0, 20);
    return {.row = row, .head = head, .batch = rows * row + step * random.whole(0, 3)};
}

/// Soft-caps, slopes by distance, comparisons of places, functions, tensors of a head and of all.
SharedScore drawn_score(Random& random, std::int64_t heads) {
    struct Form {
        const char* expression;
        std::vector<std::string> tensors;
    };
    static const Form forms[] = {
        {"s = 30 * tanh(s / 30)", {}},
        {"s = s + slope * (j - i)", {"slope:fp32[H]"}},
        {"s = 5 * tanh(s * 0.2) + slope * (j - i) * 0.1", {"slope:bf16[H]"}},
        {"s = where(i - j > 40.5, s * cap, s)", {"cap:fp32[1]"}},
        {"s = where(abs(i - j) > 100.5, gelu(s) * cap, s + slope * j * 0.01)", {"cap:bf16[1]", "slope:fp32[H]"}},
        {"s = s * sigmoid(s) + bias", {"bias:fp16[H]"}},
        {"s = s - slope * log(1 + abs(i - j))", {"slope:fp32[H]"}},
        {"s = maximum(minimum(s, cap), -cap)", {"cap:fp32[1]"}},
        {"d = (i - j) * 0.01; s = s * exp(-d * d)", {}},
        {"s = silu(s * scale) + 0.5", {"scale:bf16[H]"}},
    };
    const Form& form = random.one_of(forms);
    return attention_score(heads, form.expression, form.tensors);
}

/// Few queries over the keys of a cache: alike in one place, unlike in lengths, or in pages.
AttentionProblem decode(Random& random) {
    constexpr std::int64_t dims[] = {64, 96, 128, 192, 256};
    constexpr double most_bytes = 4.0 * (1ll << 30);
    for (;;) {
        AttentionProblem p;
        p.dim = p.dim_v = random.one_of(dims);
        p.heads = drawn_number(random, 8, 128);
        p.kv_heads = a_divisor(random, p.heads);
        p.queries = random.coin() ? 1 : random.whole(2, 8);
        p.mask = p.queries == 1 ? AttentionMask::none : AttentionMask::causal;
        p.batch = drawn_number(random, 1, 256), p.keys = drawn_number(random, 128, 131072);
        if (double(p.batch) * double(p.kv_heads) * double(p.keys) * double(p.dim + p.dim_v) * 2 > most_bytes) continue;
        if (random.coin()) return p;
        p.cached = true;
        for (std::int64_t i = 0; i < p.batch; ++i) p.lengths.push_back(drawn_number(random, std::max<std::int64_t>(1, p.keys / 32), p.keys));
        if (random.coin()) p.page = std::int64_t{16} << random.whole(0, 4), p.pages = p.batch * p.pages_of_a_batch();
        return p;
    }
}

/// What the plain law leaves out: keys unlike queries in number, rows of any multiple of 8, packed sequences, strides, scores.
AttentionProblem any_problem(Random& random) {
    constexpr std::int64_t most_rows = 16384, most_keys = 4096;
    AttentionProblem p;
    p.kv_heads = random.whole(1, 4), p.heads = p.kv_heads * random.whole(1, 4);
    p.dim = attention_dim_step * random.whole(1, max_attention_dim / attention_dim_step);
    p.dim_v = random.coin() ? p.dim : attention_dim_step * random.whole(1, max_attention_dim / attention_dim_step);
    if (random.one_in(3)) {
        p.cached = true;
        p.queries = random.whole(1, 20), p.batch = random.whole(1, 40), p.keys = drawn_number(random, 1, most_rows / p.batch);
        for (std::int64_t i = 0; i < p.batch; ++i) p.lengths.push_back(random.one_in(6) ? 0 : random.whole(1, p.keys));
        if (random.coin()) p.page = 16 * random.whole(1, 8), p.pages = p.batch * p.pages_of_a_batch() + random.whole(0, 3);
    } else if (random.coin()) {
        p.batch = drawn_number(random, 1, 64);
        const std::int64_t longest = drawn_number(random, 32, most_rows / p.batch);
        for (std::int64_t i = 0; i < p.batch; ++i) p.lengths.push_back(random.one_in(6) ? 0 : random.whole(1, longest));
        p.queries = p.keys = *std::max_element(p.lengths.begin(), p.lengths.end());
    } else {
        p.queries = drawn_number(random, 1, most_keys), p.keys = random.one_in(3) ? p.queries : drawn_number(random, 1, most_keys);
        p.batch = random.whole(1, std::min<std::int64_t>(8, most_rows / std::max(p.queries, p.keys)));
    }
    p.mask = AttentionMask(random.pick(3));
    if (p.mask == AttentionMask::window) p.window = drawn_number(random, 1, std::max<std::int64_t>(1, p.keys));
    p.type = random.coin() ? Type::bf16 : Type::fp16;
    p.layout = random.coin() ? AttentionLayout::bhsd : AttentionLayout::bshd;
    p.log_sum_exp = random.coin();
    if (random.coin())
        p.strides = {pitch_apart(random, p.heads, p.query_rows(), p.dim), pitch_apart(random, p.kv_heads, p.key_rows(), p.dim),
                     pitch_apart(random, p.kv_heads, p.key_rows(), p.dim_v),
                     random.coin() ? std::optional(pitch_apart(random, p.heads, p.query_rows(), p.dim_v)) : std::nullopt};
    if (random.coin()) p.score = drawn_score(random, p.heads);
    return p;
}

}  // namespace

DrawLaw attention_law(const DrawRequest& request) {
    static constexpr std::string_view laws[] = {"draw", "any", "decode"};
    const std::string_view law = laws[law_index(request, laws)];
    if (law == "decode")
        return {"decode",
                "1 query, or 2 to 8 causal ones; 8 to 128 heads, KV heads a divisor, dim 64 to 256, batch 1 to 256, 128 to 131072 keys, at most 4 GiB; half of unlike "
                "lengths, half of those in pages of 16 to 256",
                Mode::sustained};
    if (law == "any")
        return {"any",
                "1 to 16 heads, rows of any multiple of 8 up to 256; a third caches, half in pages, a third packed, some empty, else 1 to 4096 "
                "rows; any mask, type, layout; half with strides, scores, log-sum-exp",
                Mode::sustained};
    return {"draw",
            "prefill: 1024 to 131072 tokens, 64 to 32768 a sequence, 8 to 128 heads, KV heads a divisor, head dim 64, 96, 128, "
            "192 or 256, mask none, causal or window, at most 2e13 FLOP",
            Mode::sustained};
}

AttentionProblem drawn_attention(Random& random, const DrawRequest& request) {
    const bool any = request.law == "any";
    for (;;) {
        AttentionProblem p = any ? any_problem(random) : request.law == "decode" ? decode(random) : prefill(random);
        if (p.flops() > most_flops || (any && p.flops() < least_flops)) continue;
        check(p);
        return p;
    }
}

ProblemTraits attention_traits(const AttentionProblem& p) {
    constexpr std::int64_t whole_tile = 64, short_rows = 512;
    ProblemTraits t;
    const bool apart = p.strides[0] || p.strides[1] || p.strides[2] || p.strides[3];
    constexpr std::int64_t few = 8;
    // Of latent rows nothing is recorded.
    const bool decodes = !p.latent && p.queries <= few && p.keys > p.queries && !p.packed() && !p.score && !apart;
    // Caches of one length and one query are most of what is decoded, and have records of their own.
    const bool one_length = decodes && p.queries == 1 && !p.cached && !p.paged();
    const bool unlike = p.latent || !p.alike() || p.score || apart || p.keys != p.queries || p.queries < whole_tile;
    t.law = one_length ? "decode_alike" : decodes ? "decode" : unlike ? "" : "draw";
    t.band = p.queries >= 4096 ? "q >= 4096" : p.queries >= 512 ? "q 512 .. 4095" : "q < 512";
    t.features = {{"causal", p.mask == AttentionMask::causal},
                  {"window", p.mask == AttentionMask::window},
                  {"heads share keys", p.kv_heads < p.heads},
                  {"q no multiple of 64", p.queries % whole_tile != 0},
                  {"window under 512", p.mask == AttentionMask::window && p.window < short_rows},
                  {"dim 64", p.dim == 64},
                  {"dim over 128", p.dim > 128},
                  {"packed", p.packed()},
                  {"latent rows", p.latent},
                  {"lengths of a cache", p.cached},
                  {"pages", p.paged()},
                  {"keys unlike queries", p.keys != p.queries},
                  {"strides apart", apart},
                  {"scores of an expression", bool(p.score)}};
    t.x = {"q", double(p.queries)};
    t.y = {"batch heads", double(p.heads_of_all())};
    t.flops = p.flops();
    return t;
}

}  // namespace rooftile
