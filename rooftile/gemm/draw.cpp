#include "rooftile/gemm/draw.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/error.hpp"
#include "rooftile/gemm/packing.hpp"

namespace rooftile {
namespace {

constexpr double least_flops = 5e7, most_flops = 2e13;
constexpr std::int64_t longest_pitch = 64;  // elements behind a line's last
constexpr std::int64_t furthest_offset = 7;

struct Sizes {
    std::int64_t m, n, k;
};

/// A multiple of `step`, one at least.
std::int64_t stepped(double value, std::int64_t step) {
    return std::max<std::int64_t>(1, std::llround(value / double(step))) * step;
}

std::int64_t any_rows(Random& random) { return std::llround(random.log_uniform(1, 16384)); }

std::int64_t any_extent(Random& random, bool any) {
    const double value = random.log_uniform(64, 32768);
    return stepped(value, any ? 1 : random.coin() ? 128 : 8);
}

/// Sizes on a logarithmic scale.
Sizes log_sizes(Random& random, bool any) {
    const std::int64_t m = any_rows(random), n = any_extent(random, any);
    return {m, n, any_extent(random, any)};
}

/// One layer of a transformer whose width, heads and split over GPUs are drawn.
Sizes layer_sizes(Random& random, bool any) {
    const std::int64_t m = any_rows(random);
    const std::int64_t head = random.coin() ? 128 : 64, split = std::int64_t{1} << random.pick(4);
    const std::int64_t hidden = stepped(random.log_uniform(512, 18432), head * split), heads = hidden / head;
    const std::int64_t groups[] = {1, std::max<std::int64_t>(1, heads / 4), heads};
    const std::int64_t kv_heads =
        std::max(random.one_of(groups), split);  // replicated where there are fewer than GPUs
    const std::int64_t ffn = stepped(double(hidden) * random.uniform(2.5, 4.5), 64 * split);
    const Sizes layers[] = {{m, (heads + 2 * kv_heads) * head / split, hidden},  // qkv
                            {m, hidden, hidden / split},                         // o
                            {m, 2 * ffn / split, hidden},                        // gate_up
                            {m, hidden, ffn / split}};                           // down
    Sizes layer = random.one_of(layers);
    if (any) {  // as well a little longer
        layer.n += random.whole(0, 7);
        layer.k += random.whole(0, 7);
    }
    return layer;
}

/// Of operands of 8 bits; of the result any that they can have.
void draw_types(Random& random, GemmProblem& p) {
    static constexpr Type operands[] = {Type::fp8_e4m3, Type::fp8_e5m2}, results[] = {Type::bf16, Type::fp16, Type::fp32};
    p.a_type = random.one_of(operands), p.b_type = random.one_of(operands), p.c_type = random.one_of(results);
    if (random.coin()) p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "", {}, Scales::tensor);
}

/// Scales of blocks, as models store their weights.
void draw_blocks(Random& random, GemmProblem& p) {
    p.a_type = p.b_type = Type::fp8_e4m3;
    p.c_type = random.coin() ? Type::bf16 : Type::fp32;
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "", {}, Scales::block);
}

/// What layers of models put behind their products.
void draw_epilogue(Random& random, GemmProblem& p) {
    struct Form {
        std::string_view expression;
        std::vector<std::string> tensors;
        Pairs pairs = Pairs::none;
    };
    static const std::string bias = "bias:bf16[N]", residual = "residual:bf16[M,N]";
    static const Form forms[] = {{"d = acc + bias", {bias}},
                                 {"d = gelu(acc + bias)", {bias}},
                                 {"d = gelu_tanh(acc + bias)", {bias}},
                                 {"d = silu(acc)", {}},
                                 {"d = relu(acc + bias)", {bias}},
                                 {"d = acc + residual", {residual}},
                                 {"d = acc + bias + residual", {bias, residual}},
                                 {"d = silu(acc) * residual", {residual}},
                                 {"d = silu(gate) * up", {}, Pairs::interleaved},
                                 {"d = silu(gate) * up", {}, Pairs::split},
                                 {"d = gelu(gate) * up", {}, Pairs::split}};
    const Form& form = random.one_of(forms);
    if (form.pairs != Pairs::none) {
        constexpr std::int64_t step = 16;  // columns of B, as layers have them
        p.n = (p.n + step - 1) / step * step, p.ldc = p.n / 2;
    }
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, form.expression, form.tensors, Scales::none, 1, 0, form.pairs);
}

void draw_layout(Random& random, GemmProblem& p) {
    p.a_major = random.coin() ? Major::mn : Major::k;
    p.b_major = random.coin() ? Major::mn : Major::k;
    const auto pitch = [&random](std::int64_t dense) {
        return random.coin() ? dense : dense + random.whole(1, longest_pitch);
    };
    p.lda = pitch(p.a_major == Major::k ? p.k : p.m);
    p.ldb = pitch(p.b_major == Major::k ? p.k : p.n);
    p.ldc = pitch(p.n);
    for (std::int64_t* offset : {&p.a_offset, &p.b_offset, &p.c_offset}) *offset = random.whole(0, furthest_offset);
}

constexpr double most_bytes = 4e10;  // of all operands together

/// Whether a law may keep it.
bool kept(const GemmProblem& p) {
    const double flops = p.flops().value;
    return flops >= least_flops && flops <= most_flops && p.compulsory_bytes().value <= most_bytes;
}

/// Heads of an attention, blocks of a block-diagonal layer, slices of a tensor: small products, many of them.
GemmProblem drawn_batch(Random& random) {
    const auto extent = [&random] { return stepped(random.log_uniform(32, 8192), random.coin() ? 64 : 8); };
    const std::int64_t batch = std::llround(random.log_uniform(2, 512)), m = std::llround(random.log_uniform(1, 8192)), n = extent();
    GemmProblem p = gemm_problem(m, n, extent(), Type::bf16, random.one_in(4) && m % 8 == 0 ? Major::mn : Major::k,
                                 random.coin() ? Major::mn : Major::k);
    p.batch = batch;
    p.c_stride = dense_stride(p, 'c');
    // Of four operands one serves all products; of what is not shared every fourth lies side by side within its lines.
    const auto lay = [&](char operand, std::int64_t width, std::int64_t& leading, std::int64_t& stride) {
        if (random.one_in(8)) return;  // one for all: a stride of 0
        const bool beside = random.one_in(4) && width % 8 == 0;
        if (beside) leading = width * batch;
        stride = beside ? width : dense_stride(p, operand);
    };
    lay('a', p.a_major == Major::k ? p.k : p.m, p.lda, p.a_stride);
    lay('b', p.b_major == Major::k ? p.k : p.n, p.ldb, p.b_stride);
    return p;
}

/// Rows of each group: alike; each row to any of them; or shares that fall as 1 / place, in any order.
std::vector<std::int64_t> drawn_counts(Random& random, std::int64_t groups, std::int64_t rows) {
    std::vector<std::int64_t> counts(std::size_t(groups), 0);
    const std::size_t way = random.pick(3);
    if (way == 0) {
        for (std::size_t g = 0; g < counts.size(); ++g) counts[g] = rows / groups + (std::int64_t(g) < rows % groups ? 1 : 0);
        return counts;
    }
    std::vector<std::uint64_t> up_to(counts.size());
    for (std::size_t g = 0; g < counts.size(); ++g) up_to[g] = way == 1 ? 1 : (std::uint64_t{1} << 32) / (g + 1);
    for (std::size_t g = counts.size(); g > 1; --g) std::swap(up_to[g - 1], up_to[random.pick(g)]);
    for (std::size_t g = 1; g < up_to.size(); ++g) up_to[g] += up_to[g - 1];
    for (std::int64_t row = 0; row < rows; ++row)
        ++counts[std::size_t(std::upper_bound(up_to.begin(), up_to.end(), random.pick(up_to.back())) - up_to.begin())];
    return counts;
}

/// Layers of experts: width, experts and tokens as models have them.
GemmProblem drawn_groups(Random& random) {
    const std::int64_t groups = std::llround(random.log_uniform(2, 256)), hidden = stepped(random.log_uniform(1024, 8192), 128),
                       inner = stepped(random.log_uniform(512, 16384), 64), rows = std::llround(random.log_uniform(16, 131072));
    const bool down = random.coin();
    const std::int64_t gates = random.coin() ? 2 : 1;  // gate and up together
    GemmProblem p = down ? gemm_problem(rows, hidden, inner) : gemm_problem(rows, gates * inner, hidden);
    p.groups = SharedGroups(drawn_counts(random, groups, rows));
    p.b_stride = dense_stride(p, 'b');
    return p;
}

/// The same with what stands behind such products: each expert's own bias, and scales of rows where operands have 8 bits.
GemmProblem drawn_experts(Random& random) {
    static constexpr std::string_view forms[] = {"d = acc + bias", "d = gelu(acc + bias)", "d = silu(acc + bias)", "d = relu(acc + bias)"};
    GemmProblem p = drawn_groups(random);
    const bool bytes = random.coin();
    if (bytes) p.a_type = p.b_type = Type::fp8_e4m3;
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, random.one_of(forms), {"bias:bf16[G,1,N]"}, bytes ? Scales::row : Scales::none, 1,
                               p.groups->count());
    return p;
}

/// What a model multiplies while it writes: few rows, a third of them of any alignment.
GemmProblem drawn_few_rows(Random& random) {
    const bool any = random.one_in(3);
    const Sizes s = random.coin() ? log_sizes(random, any) : layer_sizes(random, any);
    GemmProblem p = gemm_problem(std::llround(random.log_uniform(1, 64)), s.n, s.k);
    if (any) draw_layout(random, p);
    return p;
}

/// Layers of models, their weights in 4 bits: while they write, or while they read.
GemmProblem drawn_packed(Random& random, double least_m, double most_m) {
    static constexpr int groups[] = {32, 64, 128, 0};
    const Sizes s = layer_sizes(random, false);
    GemmProblem p = gemm_problem(std::llround(random.log_uniform(least_m, most_m)), s.n, s.k);
    p.quantised = {.weights = random.coin() ? WeightType::int4 : WeightType::uint4,
                   .group = random.one_of(groups),
                   .zeros = random.coin() ? ZeroType::integer : ZeroType::none};
    return p;
}

/// Sizes are drawn alike by all laws that do not draw whole problems, and then what is the law's own.
struct Law {
    std::string_view name, meaning;
    void (*draw)(Random&, GemmProblem&);
    GemmProblem (*whole)(Random&) = nullptr;
};
constexpr Law laws[] = {
    {"draw", "half log-uniform, half layers of models, 5e7 to 2e13 FLOP", [](Random&, GemmProblem&) {}},
    {"any",
     "half log-uniform, half layers of models, n and k any integer, leading dimensions dense or 1 to 64 longer, all "
     "majors, base addresses 0 to 7 elements off, 5e7 to 2e13 FLOP",
     draw_layout},
    {"fp8",
     "half log-uniform, half layers of models, 5e7 to 2e13 FLOP; A and B e4m3 or e5m2, the result bf16, fp16 or fp32, half with "
     "scales per tensor",
     draw_types},
    {"fp8_blocks",
     "half log-uniform, half layers of models, 5e7 to 2e13 FLOP; e4m3 by scales of 1x128 of A and 128x128 of B, the result bf16 or fp32",
     draw_blocks},
    {"epilogue",
     "half log-uniform, half layers of models, 5e7 to 2e13 FLOP; bias, bias and gelu (of both kinds) or relu, silu, residual, bias "
     "and residual, silu times a tensor; SwiGLU of interleaved and of split weights, GeGLU",
     draw_epilogue},
    {"batch",
     "2 to 512 products; m 1 to 8192, n and k 32 to 8192 in steps of 8 or 64, all log-uniform; A m-major in a quarter, B n-major in half; "
     "an eighth of the operands serves all, a quarter of the rest is side by side; 5e7 to 2e13 FLOP, at most 4e10 B",
     nullptr, drawn_batch},
    {"group",
     "layers of 2 to 256 experts, 1024 to 8192 wide, 512 to 16384 within, up (half with gate) or down; 16 to 131072 rows, all log-uniform; "
     "counts alike, each row to any, or shares as 1 / place; 5e7 to 2e13 FLOP, at most 4e10 B",
     nullptr, drawn_groups},
    {"experts",
     "as group, with a bias an expert and none, gelu, silu or relu; half of them e4m3 by scales of rows of A and columns of B",
     nullptr, drawn_experts},
    {"few",
     "m 1 to 64, log-uniform; n and k as by draw, in a third as by any, with its leading dimensions, majors and addresses; 5e7 to 2e13 FLOP, "
     "at most 4e10 B",
     nullptr, drawn_few_rows},
    {"quantised",
     "layers of models, m 1 to 64, log-uniform; weights int4 or uint4 in groups of 32, 64, 128 or a row, half of them with zero points; 5e7 to "
     "2e13 FLOP, at most 4e10 B",
     nullptr, [](Random& random) { return drawn_packed(random, 1, 64); }},
    {"quantised_many", "as quantised, m 65 to 4096", nullptr, [](Random& random) { return drawn_packed(random, 65, 4096); }},
};

const Law& law_of(const DrawRequest& request) {
    std::vector<std::string_view> names;
    for (const Law& law : laws) names.push_back(law.name);
    return laws[law_index(request, names)];
}

}  // namespace

DrawLaw gemm_law(const DrawRequest& request) {
    const Law& law = law_of(request);
    return {law.name, law.meaning, Mode::sustained};
}

GemmProblem drawn_gemm(Random& random, const DrawRequest& request) {
    const Law& law = law_of(request);
    const bool any = law.draw == draw_layout;
    for (;;) {
        if (law.whole) {
            const GemmProblem problem = law.whole(random);
            if (!kept(problem)) continue;
            check(problem);
            return problem;
        }
        const Sizes s = random.coin() ? log_sizes(random, any) : layer_sizes(random, any);
        const double flops = 2.0 * double(s.m) * double(s.n) * double(s.k);
        if (flops < least_flops || flops > most_flops) continue;
        GemmProblem problem = gemm_problem(s.m, s.n, s.k);
        law.draw(random, problem);
        check(problem);
        return problem;
    }
}

namespace {

/// The law that draws such problems.
std::string_view law_of(const GemmProblem& p) {
    const bool bytes = is_fp8(p.a_type), scaled = p.epilogue && p.epilogue->scales != Scales::none;
    const bool dense = p.a_major == Major::k && p.b_major == Major::k && p.lda == p.k && p.ldb == p.k && p.ldc == p.result_n()
                       && p.n % 8 == 0 && p.k % 8 == 0 && p.a_offset == 0 && p.b_offset == 0 && p.c_offset == 0;
    if (p.is_quantised()) {
        if (!dense || p.a_type != Type::bf16 || p.quantised.scale != Type::bf16 || !p.quantised.is_whole()) return "";
        return p.m <= 64 ? "quantised" : "quantised_many";
    }
    if (p.a_type == Type::fp32 || p.alpha != 1 || p.beta != 0) return {};
    if (p.groups) return !bytes && !p.epilogue ? "group" : "experts";
    if (p.batch > 1) return !bytes && !p.epilogue ? "batch" : "";
    if (!dense) return !bytes && !p.epilogue ? "any" : "";
    if (bytes) return p.block_scales() ? "fp8_blocks" : !p.epilogue || scaled ? "fp8" : "";
    return p.epilogue ? "epilogue" : "draw";
}

}  // namespace

ProblemTraits gemm_traits(const GemmProblem& p) {
    constexpr std::int64_t whole = 64, narrow = 256, deep = 8;
    const auto on_line = [](std::int64_t pitch, Type type) {
        return line_step(pitch * bytes_of(type)) == PackedCopy::alignment;
    };
    ProblemTraits t;
    t.law = law_of(p);
    const double rows = p.rows_a_matrix();  // of groups the mean
    t.band = p.groups ? (rows >= 128 ? "128 rows a group and more" : rows >= 16 ? "16 .. 127 rows a group" : "under 16 rows a group")
             : p.m >= 2048 ? "M >= 2048" : p.m >= 128 ? "M 128 .. 2047" : "M < 128";
    t.features = {{"m no multiple of 64", p.m % whole != 0},
                  {"n no multiple of 64", p.n % whole != 0},
                  {"k no multiple of 64", p.k % whole != 0},
                  {"a pitch off 128 B",
                   !on_line(p.lda, p.a_type) || !on_line(p.ldb, p.b_type) || !on_line(p.ldc, p.c_type)},
                  {"narrow: n <= 256", p.n <= narrow},
                  {"deep: k >= 8 m, 8 n", p.k >= deep * std::max(p.m, p.n)}};
    if (p.groups) {
        t.features.push_back({"empty groups", p.groups->with_rows() < p.groups->count()});
        t.features.push_back({"the longest group >= 4 means", double(p.groups->longest()) >= 4 * rows});
    }
    t.x = {"m", double(p.m)};
    t.y = {"n k", double(p.n) * double(p.k)};
    t.flops = p.flops().value;
    return t;
}

}  // namespace rooftile
