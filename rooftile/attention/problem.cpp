#include "rooftile/attention/problem.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t element_bytes = 2;

void check_range(std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
        throw RequestError(fmt::format("{} is {}{}; accepted: {} to {}", name, value, value == 0 ? ": nothing to do" : "", least, most));
}

/// `what`: whose rows these are; `root`: scores are divided by its root.
void check_dim(std::string_view name, std::int64_t value, std::string_view what, bool root) {
    constexpr std::int64_t step = attention_dim_step, most = max_attention_dim;
    if (value >= step && value <= most && value % step == 0) return;
    std::string why = "are kept whole on chip";
    if (value > 0 && value < most) {
        const std::int64_t padded = (value + step - 1) / step * step;
        why = fmt::format("are copied in pieces of 16 bytes; pad them with zeros to {}", padded);
        if (root) why += fmt::format(", and Q times {:.6g}, as scores are divided by the root of dim", std::sqrt(double(padded) / double(value)));
    }
    throw RequestError(fmt::format("{} is {}; accepted: multiples of {} from {} to {}, as {} {}", name, value, step, step, most, what, why));
}

/// Throws what latent rows have not.
void check_latent(const AttentionProblem& p) {
    const auto dims = [](std::string_view name, std::int64_t value, std::int64_t step, std::int64_t most) {
        if (value < step || value > most || value % step != 0)
            throw RequestError(fmt::format("{} is {}; accepted with latent: multiples of {} from {} to {}", name, value, step, step, most));
    };
    dims("dim", p.dim, latent_dim_step, max_latent_dim);
    dims("dim_v", p.dim_v, latent_dim_v_step, max_latent_dim_v);
    if (p.dim_v > p.dim) throw RequestError(fmt::format("dim_v is {} and dim {}; latent values are the first elements of a key's row", p.dim_v, p.dim));
    if (p.kv_heads != 1) throw RequestError(fmt::format("kv_heads is {}; a latent row is of all heads: 1", p.kv_heads));
    const std::int64_t queries = p.queries / p.group;
    if (queries < 1 || queries > max_latent_queries || p.keys < 1)
        throw RequestError(fmt::format("q is {} and kv {}; latent attention takes 1 to {} queries over 1 key or more; prefill makes keys and values of "
                                       "the latent rows and takes those",
                                       queries, p.keys, max_latent_queries));
    if (p.packed()) throw RequestError("lengths of packed sequences are given; latent attention takes a cache: give q, the queries of each sequence, too");
    if (p.mask == AttentionMask::window) throw RequestError("mask is window; latent attention takes none or causal");
    if (p.score) throw RequestError("score is given; latent attention takes plain scores: what they are multiplied by is scale");
    if (p.strides[std::size_t(AttentionOperand::v)]) throw RequestError("v_strides is given; latent values are in K");
}

/// Heads, rows and elements of a row.
struct AttentionSize {
    std::int64_t heads, rows, dim;
};
AttentionSize size_of(const AttentionProblem& p, AttentionOperand operand) {
    switch (operand) {
        case AttentionOperand::q: return {p.heads, p.query_rows(), p.dim};
        case AttentionOperand::k: return {p.kv_heads, p.key_rows(), p.dim};
        case AttentionOperand::v: return {p.kv_heads, p.key_rows(), p.dim_v};
        case AttentionOperand::o: break;
    }
    return {p.heads, p.query_rows(), p.dim_v};
}

bool of_keys(AttentionOperand operand) { return operand == AttentionOperand::k || operand == AttentionOperand::v; }

TensorInfo tensor(const AttentionProblem& p, std::string name, AttentionOperand operand) {
    const AttentionPitch pitch = pitch_of(p, operand);
    const auto [heads, rows, dim] = size_of(p, operand);
    const TensorRole role = operand == AttentionOperand::o ? TensorRole::out : TensorRole::in;
    return {.name = std::move(name),
            .type = std::string(attention_type_name(p.type)),
            .element_bits = 8 * element_bytes,
            .extents = {Extent::of(p.packed() ? 1 : of_keys(operand) ? p.key_batches() : p.batch), Extent::of(heads), Extent::of(rows), Extent::of(dim)},
            .strides = {pitch.batch, pitch.head, pitch.row, 1},
            .role = role};
}

/// Throws where rows of O could lie on each other: which of them would stay nobody knows.
void check_apart(const AttentionProblem& p, const AttentionPitch& o) {
    const auto [heads, rows, dim] = size_of(p, AttentionOperand::o);
    struct Axis {
        std::int64_t stride, count;
    } axes[] = {{o.row, rows}, {o.head, heads}, {o.batch, p.packed() ? 1 : p.batch}};
    std::ranges::sort(axes, {}, &Axis::stride);
    double taken = double(dim);  // from the first element of all that the axes so far reach to behind the last
    for (const Axis& axis : axes) {
        if (axis.count <= 1) continue;
        if (double(axis.stride) < taken)
            throw RequestError(fmt::format("o_strides {},{},{}: rows of O would overlap; a step of {} is less than the {:.0f} elements that are in it",
                                           o.batch, o.head, o.row, axis.stride, taken));
        taken += double(axis.stride) * double(axis.count - 1);
    }
}

/// Sum of min(i, most) over the whole numbers i in [first, last]; of a negative i nothing.
double sum_up_to(std::int64_t first, std::int64_t last, std::int64_t most) {
    first = std::max<std::int64_t>(first, 1);
    if (last < first) return 0;
    const std::int64_t turn = std::clamp<std::int64_t>(most, first - 1, last);  // the last i that counts as itself
    return double(first + turn) * double(turn - first + 1) / 2 + double(last - turn) * double(most);
}

}  // namespace

std::string_view name_of(AttentionLayout layout) { return layout == AttentionLayout::bhsd ? "bhsd" : "bshd"; }

std::string_view name_of(AttentionMask mask) {
    constexpr std::string_view names[] = {"none", "causal", "window"};
    return names[int(mask)];
}

std::string_view attention_type_name(Type type) { return type == Type::bf16 ? "bf16" : "fp16"; }

std::string mask_text(const AttentionProblem& problem) {
    if (problem.mask == AttentionMask::window) return fmt::format("window:{}", problem.window);
    return std::string(name_of(problem.mask));
}

std::string lengths_text(const AttentionProblem& problem) {
    std::string text;
    for (const std::int64_t length : problem.lengths) text += (text.empty() ? "" : ",") + std::to_string(length);
    return text;
}

double AttentionProblem::score_scale() const { return scale > 0 ? scale : 1 / std::sqrt(double(dim)); }

std::int64_t AttentionProblem::first_row(std::int64_t sequence) const {
    return packed() ? std::accumulate(lengths.begin(), lengths.begin() + sequence, std::int64_t{0}) : 0;
}
std::int64_t AttentionProblem::query_rows() const { return packed() ? first_row(batch) : queries; }
std::int64_t AttentionProblem::key_rows() const { return packed() ? first_row(batch) : paged() ? page : keys; }

AttentionExtent AttentionProblem::extent(std::int64_t sequence) const {
    if (alike()) return {mask, int(queries), int(keys), int(window), int(group)};
    const int length = int(lengths[std::size_t(sequence)]);
    return {mask, packed() ? length : int(queries), length, int(window), int(group)};
}

std::int64_t AttentionProblem::seen_keys() const {
    std::int64_t seen = 0;
    for (std::int64_t i = 0; i < sequences(); ++i) {
        const AttentionExtent e = extent(i);
        // The first query's window begins first, and the last query sees the last key.
        if (e.queries > 0) seen += e.keys - std::min(e.first_key(0), e.keys);
    }
    return seen;
}
std::int64_t AttentionProblem::seeing_queries() const {
    std::int64_t seeing = 0;
    for (std::int64_t i = 0; i < sequences(); ++i) {
        const AttentionExtent e = extent(i);
        if (e.keys > 0) seeing += e.queries - (e.mask == AttentionMask::none ? 0 : std::clamp(-e.place(0) * e.group, 0, e.queries));
    }
    return seeing;
}

double AttentionProblem::visible_pairs() const {
    double pairs = 0;
    for (std::int64_t i = 0; i < sequences(); ++i) {
        const std::int64_t t = alike() ? keys : lengths[std::size_t(i)], s = packed() ? t : queries / group;
        // Query i sees min(place + 1, window) keys, place being i + t - s.
        const std::int64_t most = mask == AttentionMask::window ? window : t;
        pairs += double(group) * (mask == AttentionMask::none ? double(s) * double(t) : sum_up_to(t - s + 1, t, most));
    }
    return pairs;
}

std::int64_t AttentionProblem::q_bytes() const { return heads_counted() * seeing_queries() * dim * element_bytes; }
std::int64_t AttentionProblem::k_bytes() const { return heads_counted() / (heads / kv_heads) * seen_keys() * dim * element_bytes; }
std::int64_t AttentionProblem::v_bytes() const { return latent ? 0 : heads_counted() / (heads / kv_heads) * seen_keys() * dim_v * element_bytes; }
std::int64_t AttentionProblem::o_bytes() const { return heads_of_all() * query_rows() * dim_v * element_bytes; }
std::int64_t AttentionProblem::compulsory_bytes() const {
    constexpr std::int64_t fp32_bytes = 4, int32_bytes = 4;
    return q_bytes() + k_bytes() + v_bytes() + o_bytes() + (log_sum_exp ? heads_of_all() * query_rows() * fp32_bytes : 0)
           + (packed() ? (batch + 1) * int32_bytes : 0) + (cached ? batch * int32_bytes : 0) + (paged() ? batch * pages_of_a_batch() * int32_bytes : 0) + (score ? score->bytes(heads) : 0);
}

double AttentionProblem::unfused_bytes() const {
    constexpr double passes = 4;
    double scores = 0;
    for (std::int64_t i = 0; i < sequences(); ++i)
        scores += double(packed() ? lengths[std::size_t(i)] : queries) * double(alike() ? keys : lengths[std::size_t(i)]);
    return double(compulsory_bytes()) + passes * scores * double(heads_counted()) * double(element_bytes);
}

void check(const AttentionProblem& p) {
    check_range("batch", p.batch, 1, max_attention_heads);
    check_range("heads", p.heads, 1, max_attention_heads);
    check_range("kv_heads", p.kv_heads, 1, max_attention_heads);
    check_range("q", p.queries, 0, max_attention_rows);
    check_range("kv", p.keys, 0, max_attention_rows);
    if (p.latent) check_latent(p);
    else check_dim("dim", p.dim, "rows of Q and K", true), check_dim("dim_v", p.dim_v, "rows of V and O", false);
    if (p.scale != 0 && !(p.scale > 0 && p.scale < 1e30)) throw RequestError(fmt::format("scale is {}; accepted: above 0, below 1e30", p.scale));
    if (p.heads % p.kv_heads != 0)
        throw RequestError(
            fmt::format("{} heads cannot share {} KV heads evenly; kv_heads must divide heads", p.heads, p.kv_heads));
    if (p.mask == AttentionMask::window) check_range("the mask's window", p.window, 1, max_attention_rows);
    for (const std::int64_t length : p.lengths) check_range("a length", length, 0, max_attention_rows);
    if (p.packed()) check_range("the sum of the lengths", p.query_rows(), 0, max_attention_rows);
    if (p.cached)
        for (const std::int64_t length : p.lengths)
            if (length > p.keys) throw RequestError(fmt::format("a length is {}, and kv, what a batch has room for, {}", length, p.keys));
    if (p.paged()) {
        constexpr std::int64_t least = 16, most = 65536;
        if (p.page < least || p.page > most || p.page % least != 0)
            throw RequestError(fmt::format("page is {}; accepted: multiples of {} from {} to {}, as blocks of keys are", p.page, least, least, most));
        check_range("pages", p.pages, 1, max_attention_rows);
    }
    for (const AttentionOperand operand : attention_operands)
        if (const auto& s = p.strides[std::size_t(operand)])
            for (const std::int64_t stride : {s->batch, s->head, s->row})
                if (stride % attention_dim_step != 0 || stride < size_of(p, operand).dim || stride > max_attention_stride)
                    throw RequestError(fmt::format("{} has {}; accepted: multiples of {} from the row's {} to 2^36, as rows begin at multiples of 16 bytes",
                                                   strides_key(operand), stride, attention_dim_step, size_of(p, operand).dim));
    if (const auto& o = p.strides[std::size_t(AttentionOperand::o)]) check_apart(p, *o);
    constexpr double most_bytes = double(std::int64_t{1} << 46);  // far beyond any GPU's memory, and safe to multiply
    const double rows = double(p.heads_of_all()) * (double(p.query_rows()) + double(p.key_rows()));
    if (rows * double(max_attention_dim) * element_bytes > most_bytes)
        throw RequestError(fmt::format("{} x {} heads of {} queries and {} keys are more than 2^46 bytes", p.batch, p.heads,
                                       p.queries, p.keys));
}

AttentionPitch dense_pitch(AttentionLayout layout, std::int64_t heads, std::int64_t rows, std::int64_t dim) {
    if (layout == AttentionLayout::bhsd) return {dim, rows * dim, heads * rows * dim};
    return {heads * dim, dim, heads * rows * dim};
}

AttentionPitch pitch_of(const AttentionProblem& p, AttentionOperand operand) {
    if (p.latent && operand == AttentionOperand::v) return pitch_of(p, AttentionOperand::k);
    if (const auto& given = p.strides[std::size_t(operand)]) return *given;
    const AttentionSize size = size_of(p, operand);
    return dense_pitch(p.layout, size.heads, size.rows, size.dim);
}

std::size_t first_score_tensor(const AttentionProblem& p) { return bounds_tensor(p) + (p.alike() ? 0 : 1) + (p.paged() ? 1 : 0); }
std::size_t output_tensor(const AttentionProblem& p) { return first_score_tensor(p) + (p.score ? p.score->operands.size() : 0); }

std::vector<TensorInfo> attention_tensors(const AttentionProblem& p) {
    const std::int64_t rows = p.query_rows();
    std::vector<TensorInfo> tensors = {tensor(p, "Q", AttentionOperand::q), tensor(p, "K", AttentionOperand::k)};
    if (!p.latent) tensors.push_back(tensor(p, "V", AttentionOperand::v));
    if (p.packed())
        tensors.push_back({.name = "cu_seqlens",
                           .type = "int32",
                           .element_bits = 32,
                           .extents = {Extent::of(p.batch + 1)},
                           .strides = {1},
                           .role = TensorRole::in});
    if (p.cached)
        tensors.push_back({.name = "lengths", .type = "int32", .element_bits = 32, .extents = {Extent::of(p.batch)}, .strides = {1}, .role = TensorRole::in});
    if (p.paged())
        tensors.push_back({.name = "block_table",
                           .type = "int32",
                           .element_bits = 32,
                           .extents = {Extent::of(p.batch), Extent::of(p.pages_of_a_batch())},
                           .strides = {p.pages_of_a_batch(), 1},
                           .role = TensorRole::in});
    if (p.score)
        for (const ScoreOperand& o : p.score->operands)
            tensors.push_back({.name = o.name,
                               .type = std::string(name_of(o.element)),
                               .element_bits = int(8 * bytes_of(o.element)),
                               .extents = {Extent::of(o.by_head ? p.heads : 1)},
                               .strides = {1},
                               .role = TensorRole::in});
    tensors.push_back(tensor(p, "O", AttentionOperand::o));
    if (p.log_sum_exp)
        tensors.push_back({.name = "L",
                           .type = "fp32",
                           .element_bits = 32,
                           .extents = {Extent::of(p.packed() ? 1 : p.batch), Extent::of(p.heads), Extent::of(rows)},
                           .strides = {p.heads * rows, rows, 1},
                           .role = TensorRole::out});
    return tensors;
}

}  // namespace rooftile
