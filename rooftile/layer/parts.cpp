#include "rooftile/layer/parts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rooftile/error.hpp"

namespace rooftile {
namespace {

constexpr double element_bytes = 2, scale_bytes = 4, index_bytes = 4;
/// Products read rows of B from multiples of 16 bytes: so many elements.
constexpr std::int64_t aligned_columns = 8;
/// Of the weights that products take packed.
constexpr int packed_bits = 4;
constexpr std::int64_t most_tokens = std::int64_t{1} << 26;

/// A product's B is n x k; C has n columns, or half of them where they are pairs.
struct Product {
    std::string name, input, weight, output;
    std::int64_t rows = 0, n = 0, k = 0;
    std::string epilogue{}, pairs{};
    /// What the epilogue reads: its name there, its shape there, and the tensor.
    struct Extra {
        std::string name, shape;
        PartTensor tensor;
    };
    std::vector<Extra> extras{};
    std::vector<std::int64_t> groups{};  ///< rows of each, with a B of its own
};

/// "8x1,120x0" of rows that are alike one after the other.
std::string groups_text(const std::vector<std::int64_t>& rows) {
    std::string out;
    for (std::size_t i = 0; i < rows.size();) {
        std::size_t end = i;
        while (end < rows.size() && rows[end] == rows[i]) ++end;
        out += fmt::format("{}{}x{}", out.empty() ? "" : ",", end - i, rows[i]);
        i = end;
    }
    return out;
}

/// Rows of each expert where tokens choose by chance: as many experts have some as are expected to, and those have about as many each.
std::vector<std::int64_t> expert_rows(const ModelExperts& experts, std::int64_t tokens) {
    const double missed = std::pow(1 - double(experts.per_token) / double(experts.count), double(tokens));
    const std::int64_t rows = tokens * experts.per_token;
    const auto expected = std::int64_t(std::llround(double(experts.count) * (1 - missed)));
    const std::int64_t chosen = std::clamp(expected, std::min(experts.per_token, rows), std::min(experts.count, rows));
    std::vector<std::int64_t> out(std::size_t(experts.count), 0);
    for (std::int64_t i = 0; i < chosen; ++i) out[std::size_t(i)] = rows / chosen + (i < rows % chosen ? 1 : 0);
    return out;
}

class Builder {
  public:
    Builder(const ModelConfig& model, const LayerStep& step) : m_(model), s_(step), tokens_(step.tokens()) {
        if (step.decode < 0 || step.prefill < 0 || step.context < 1 || step.sequences() < 1 || tokens_ > most_tokens)
            throw RequestError(fmt::format("{} decoded and {} prefilled sequences of {} tokens are {} rows; accepted: 1 to {}",
                                           step.decode, step.prefill, step.context, tokens_, most_tokens));
        heads_ = shared(model.heads, "num_attention_heads");
        // Fewer than GPUs: some have the same ones.
        if (model.kv_heads > 0 && model.kv_heads % step.tp != 0 && step.tp % model.kv_heads != 0)
            throw RequestError(fmt::format("num_key_value_heads {} cannot be shared by {} GPUs; give a divisor or a multiple of it",
                                           model.kv_heads, step.tp));
        kv_heads_ = std::max<std::int64_t>(1, model.kv_heads / step.tp);
    }

    std::vector<LayerPart> layer(const LayerKind& kind) {
        norm("norm_attention", "x", "attention_in");
        if (m_.latent) latent_attention();
        else attention(kind);
        norm("norm_mlp", "x_attention", "mlp_in");
        if (kind.experts) experts();
        else gated("gate_up", "down", m_.intermediate, "intermediate_size", "x_attention", "x_out", m_.post_norms);
        return std::move(parts_);
    }

    std::vector<LayerPart> ends() {
        const std::int64_t rows = s_.sequences(), vocab = shared(m_.vocab, "vocab_size");
        small("embedding",
              {weights("embeddings", double(std::min(tokens_, m_.vocab)) * double(m_.hidden) * element_bytes), activations("tokens", double(tokens_) * index_bytes)},
              {rows_of("x", tokens_, m_.hidden)});
        // Only a sequence's last token is asked for the next one.
        norm_rows("final_norm", "x_last", "head_in", rows, m_.hidden, "");
        product({.name = "lm_head",
                 .input = "head_in",
                 .weight = m_.tied_embeddings ? "embeddings" : "head",
                 .output = "logits",
                 .rows = rows,
                 .n = vocab,
                 .k = m_.hidden});
        small("sampling", {rows_of("logits", rows, vocab)}, {activations("next_tokens", double(rows) * index_bytes)});
        return std::move(parts_);
    }

  private:
    // Tensors.
    static PartTensor activations(std::string name, double bytes, double offset = 0) {
        return {std::move(name), TensorKind::activations, bytes, offset};
    }
    static PartTensor weights(std::string name, double bytes) { return {std::move(name), TensorKind::weights, bytes, 0}; }
    static PartTensor rows_of(std::string name, std::int64_t rows, std::int64_t columns, std::int64_t first = 0) {
        return activations(std::move(name), double(rows * columns) * element_bytes, double(first * columns) * element_bytes);
    }
    PartTensor cache(std::string name, std::int64_t sequences, std::int64_t keys, std::int64_t columns, std::int64_t first = 0) const {
        return {std::move(name), TensorKind::cache, double(sequences) * double(keys) * double(columns) * element_bytes,
                double(first) * double(s_.context) * double(columns) * element_bytes};
    }

    std::int64_t shared(std::int64_t size, const char* field) const {
        if (size % s_.tp != 0)
            throw RequestError(fmt::format("{} {} cannot be shared by {} GPUs; give a divisor of it", field, size, s_.tp));
        return size / s_.tp;
    }

    LayerPart& small(std::string name, std::vector<PartTensor> reads, std::vector<PartTensor> writes, double flops = 0) {
        LayerPart part;
        part.name = std::move(name), part.reads = std::move(reads), part.writes = std::move(writes), part.flops = flops;
        return parts_.emplace_back(std::move(part));
    }

    void norm(const char* name, const char* input, const char* output) { norm_rows(name, input, output, tokens_, m_.hidden, ""); }
    /// Where `residual` names a tensor, that is added.
    void norm_rows(const std::string& name, const std::string& input, const std::string& output, std::int64_t rows, std::int64_t columns,
                   const std::string& residual) {
        LayerPart& part = small(name, {rows_of(input, rows, columns), weights(name + ".weight", double(columns) * element_bytes)},
                                {rows_of(output, rows, columns)});
        part.operation = "fuse";
        // 1 + weight is folded into the weight when a model is loaded.
        part.request.add("expression", fmt::format("y = {}rmsnorm(x, w, eps={:.3g})", residual.empty() ? "" : "r + ", m_.norm_eps));
        part.request.add("tensor", fmt::format("x:{}[{},{}]", m_.type, rows, columns));
        part.request.add("tensor", fmt::format("w:{}[{}]", m_.type, columns));
        if (residual.empty()) return;
        part.request.add("tensor", fmt::format("r:{}[{},{}]", m_.type, rows, columns));
        part.reads.push_back(rows_of(residual, rows, columns));
    }

    double stored(std::int64_t n, std::int64_t k) const {
        const double elements = double(n) * double(k);
        if (!m_.quantization) return elements * element_bytes;
        const ModelQuantization& q = *m_.quantization;
        const double groups = q.group > 0  ? std::ceil(double(k) / double(q.group)) * std::ceil(double(n) / double(q.group_n))
                              : q.is_fp8() ? 1
                                           : double(n);
        const double scale = q.is_fp8() ? scale_bytes : element_bytes;
        return elements * q.bits / 8 + groups * (scale + (q.zero_points ? q.bits / 8.0 : 0));
    }

    /// Weights that are stored as they are computed with: routers and heads are, in every quantised model read here.
    static bool is_plain(const std::string& name) { return name == "router" || name == "lm_head"; }

    void product(const Product& p) {
        const bool quantized = m_.quantization && !is_plain(p.name), fp8 = quantized && m_.quantization->is_fp8(),
                   blocks = fp8 && m_.quantization->group > 0, packed = quantized && !fp8 && m_.quantization->bits == packed_bits;
        // Eight bits of activations are made in a kernel of their own, once for all products that read them.
        std::string input = p.input;
        double input_bytes = double(p.rows * p.k) * element_bytes;
        if (fp8) {
            const double scales =
                blocks ? double(p.rows) * std::ceil(double(p.k) / double(m_.quantization->group)) * scale_bytes : scale_bytes;
            input += ".fp8";
            input_bytes = double(p.rows * p.k) + scales;
            if (quantized_ != input) small("quantize_" + p.name, {rows_of(p.input, p.rows, p.k)}, {activations(input, input_bytes)});
            quantized_ = input;
        }
        // Nor do products with scales of blocks or packed weights take pairs; of groups by packed weights they have no epilogue at all.
        const bool gate_apart = !p.pairs.empty() && (s_.gates_apart || blocks || packed);
        const bool epilogue_apart = packed && !p.groups.empty() && p.pairs.empty() && !p.epilogue.empty(), has_epilogue = !gate_apart && !epilogue_apart;
        const std::int64_t columns = !p.pairs.empty() && !gate_apart ? p.n / 2 : p.n;
        const std::string output = gate_apart ? p.output + ".gate_up" : epilogue_apart ? p.output + ".product" : p.output;
        const auto used = p.groups.empty() ? 1 : std::ranges::count_if(p.groups, [](std::int64_t rows) { return rows > 0; });
        const double weight_bytes = double(used) * (quantized ? stored(p.n, p.k) : double(p.n) * double(p.k) * element_bytes);
        LayerPart& part = small(p.name, {activations(input, input_bytes), weights(p.weight, weight_bytes)},
                                {rows_of(output, p.rows, columns)}, 2 * double(p.rows) * double(p.n) * double(p.k));
        part.operation = "gemm";
        if (quantized && !fp8 && !packed)
            part.why_not =
                fmt::format("weights of {} bits ({}): no operation here plans them", m_.quantization->bits, m_.quantization->method);
        part.request.add("m", std::to_string(p.rows)), part.request.add("n", std::to_string(p.n)),
            part.request.add("k", std::to_string(p.k));
        if (fp8) part.request.add("types", "fp8_e4m3,fp8_e4m3," + m_.type), part.request.add("scales", blocks ? "block" : "tensor");
        else if (packed) {
            const ModelQuantization& q = *m_.quantization;
            part.request.add("types", fmt::format("{0},{1},{0}", m_.type, q.zero_points ? "uint4" : "int4"));
            part.request.add("quant_group", q.group > 0 ? std::to_string(q.group) : "row");
            if (q.zero_points) part.request.add("quant_zero", "int");
        } else part.request.add("type", m_.type);
        if (!p.groups.empty()) part.request.add("groups", groups_text(p.groups));
        if (has_epilogue && !p.epilogue.empty()) part.request.add("epilogue", p.epilogue);
        if (!gate_apart && !p.pairs.empty()) part.request.add("pairs", p.pairs);
        std::vector<PartTensor> apart = {rows_of(output, p.rows, p.n)};
        for (const Product::Extra& extra : p.extras) {
            if (has_epilogue) part.request.add("tensor", fmt::format("{}:{}[{}]", extra.name, m_.type, extra.shape));
            (has_epilogue ? part.reads : apart).push_back(extra.tensor);
        }
        if (epilogue_apart) small(p.name + "_epilogue", std::move(apart), {rows_of(p.output, p.rows, p.n)});
        if (gate_apart) small(p.name + "_gate", {rows_of(output, p.rows, p.n)}, {rows_of(p.output, p.rows, p.n / 2)});
    }

    Product::Extra residual(const std::string& name) const { return {"r", "M,N", rows_of(name, tokens_, m_.hidden)}; }

    /// A product whose result goes back to the hidden state: with the residual in its epilogue, or with a norm between the two. Of several
    /// GPUs only the first adds the residual, since results are summed; each is as fast as the slowest.
    void into_hidden(Product p, const std::string& residual_name, const std::string& output, const std::string& stage, bool post_norm) {
        const bool exchanged = s_.tp > 1;
        p.output = post_norm || exchanged ? stage + "_out" : output;
        if (!post_norm) {
            p.epilogue = p.epilogue.empty() ? "d = acc + r" : p.epilogue;
            p.extras.push_back(residual(residual_name));
        }
        product(p);
        if (exchanged) all_reduce(stage, p.output, post_norm ? p.output : output);
        if (post_norm) norm_rows("post_norm_" + stage, p.output, output, tokens_, m_.hidden, residual_name);
    }

    void all_reduce(const std::string& stage, const std::string& input, const std::string& output) {
        LayerPart& part = small("all_reduce_" + stage, {rows_of(input, tokens_, m_.hidden)}, {rows_of(output, tokens_, m_.hidden)});
        part.exchanged_bytes = double(tokens_ * m_.hidden) * element_bytes;
    }

    /// Gate and up of `own` columns, in pairs; the result is "NAME_out".
    void gate_up(const std::string& name, const std::string& input, const std::string& weight, std::int64_t rows, std::int64_t own,
                 std::vector<std::int64_t> groups = {}) {
        product({.name = name,
                 .input = input,
                 .weight = weight,
                 .output = name + "_out",
                 .rows = rows,
                 .n = 2 * own,
                 .k = m_.hidden,
                 .epilogue = fmt::format("d = {}(gate) * up", m_.activation),
                 .pairs = "interleaved",
                 .groups = std::move(groups)});
    }

    void gated(const std::string& up, const std::string& down, std::int64_t intermediate, const char* field,
               const std::string& residual_name, const std::string& output, bool post_norm) {
        const std::int64_t own = shared(intermediate, field);
        gate_up(up, "mlp_in", up + ".weight", tokens_, own);
        into_hidden(
            {.name = down, .input = up + "_out", .weight = down + ".weight", .output = {}, .rows = tokens_, .n = m_.hidden, .k = own},
            residual_name, output, "mlp", post_norm);
    }

    /// Attention of some of the batch's sequences.
    struct Attention {
        std::string name, q, k, v, output;  ///< k and v the same: values are the first elements of a key's row, which is read once
        std::int64_t first = 0, sequences = 0, queries = 1, window = 0, dim = 0, dim_v = 0, kv_heads = 0;
        TensorKind keys = TensorKind::cache;
    };

    void attend(const Attention& a) {
        const bool decodes = a.queries == 1;
        const std::int64_t first_row = decodes ? 0 : s_.decode, rows = a.sequences * a.queries;
        const std::int64_t window = a.window > 0 ? std::min(a.window, s_.context) : s_.context, seen = decodes ? window : s_.context;
        const auto keys = [&](const std::string& tensor, std::int64_t elements) {
            PartTensor out = cache(tensor, a.sequences, seen, a.kv_heads * elements, a.first);
            if (a.keys != TensorKind::cache) out.kind = a.keys, out.offset_bytes = 0;
            return out;
        };
        // The first queries of a sequence see fewer keys than a window has.
        const double most = double(window), pairs = decodes ? most : most * double(s_.context) - most * (most - 1) / 2;
        LayerPart& part = small(a.name, {rows_of(a.q, rows, heads_ * a.dim, first_row), keys(a.k, a.dim)},
                                {rows_of(a.output, rows, heads_ * a.dim_v, first_row)},
                                2 * double(a.sequences * heads_) * pairs * double(a.dim + a.dim_v));
        if (a.k != a.v) part.reads.push_back(keys(a.v, a.dim_v));
        part.operation = "attention";
        const auto add = [&](const char* key, std::int64_t value) { part.request.add(key, std::to_string(value)); };
        add("batch", a.sequences), add("heads", heads_), add("kv_heads", a.kv_heads), add("q", a.queries), add("kv", s_.context),
            add("dim", a.dim);
        if (a.dim_v != a.dim) add("dim_v", a.dim_v);
        const bool latent = a.k == a.v;
        if (latent) part.request.add("latent", "on");
        part.request.add("type", m_.type), part.request.add("layout", "bshd");
        if (window < s_.context) part.request.add("mask", fmt::format("window:{}", window));
        else if (!decodes) part.request.add("mask", "causal");
        // The operation divides scores by sqrt(dim). A latent row has others than a head's, of which the model has the root.
        const double own = 1 / std::sqrt(double(a.dim)), scale = m_.query_scale > 0 ? m_.query_scale / own : 1;
        if (latent) {
            part.request.add("scale", fmt::format("{:.6g}", m_.query_scale > 0 ? m_.query_scale : 1 / std::sqrt(double(m_.head_dim))));
            return;
        }
        const bool rescaled = std::abs(scale - 1) > 1e-6;
        const std::string score = rescaled ? fmt::format("{:.6g} * s", scale) : "s";
        if (m_.score_cap > 0) part.request.add("score", fmt::format("s = {0:.6g} * tanh({1} / {0:.6g})", m_.score_cap, score));
        else if (rescaled) part.request.add("score", "s = " + score);
    }

    std::string prefill_name() const { return s_.decode > 0 ? "attention_prefill" : "attention"; }

    void attention(const LayerKind& kind) {
        const std::int64_t q = heads_ * m_.head_dim, kv = kv_heads_ * m_.head_dim, columns = q + 2 * kv;
        Product qkv{.name = "qkv",
                    .input = "attention_in",
                    .weight = "qkv.weight",
                    .output = "qkv_out",
                    .rows = tokens_,
                    .n = columns,
                    .k = m_.hidden};
        if (m_.qkv_bias)
            qkv.epilogue = "d = acc + bias", qkv.extras = {{"bias", "N", weights("qkv.bias", double(columns) * element_bytes)}};
        product(qkv);
        // One kernel norms heads where the model does, rotates them, and appends keys and values to the cache.
        LayerPart& append = small("rotary_append", {rows_of("qkv_out", tokens_, columns)},
                                  {rows_of("q", tokens_, q), cache("k_cache", 1, tokens_, kv), cache("v_cache", 1, tokens_, kv)});
        append.memory_loads = 2, append.cached_loads = 1;  // a position, then its angles; between them the row
        if (m_.query_key_norms) {
            append.reads.push_back(weights("query_key_norms", 2 * double(m_.head_dim) * element_bytes));
            ++append.memory_loads;
        }
        Attention of{.name = "attention",
                     .q = "q",
                     .k = "k_cache",
                     .v = "v_cache",
                     .output = "attention_out",
                     .sequences = s_.decode,
                     .window = kind.window,
                     .dim = m_.head_dim,
                     .dim_v = m_.head_dim,
                     .kv_heads = kv_heads_};
        if (s_.decode > 0) attend(of);
        of.name = prefill_name(), of.first = s_.decode, of.sequences = s_.prefill, of.queries = s_.context;
        if (s_.prefill > 0) attend(of);
        into_hidden({.name = "o", .input = "attention_out", .weight = "o.weight", .output = {}, .rows = tokens_, .n = m_.hidden, .k = q},
                    "x", "x_attention", "attention", m_.post_norms);
    }

    /// Products of decoded tokens, of every head with its rows of `kv_up`. That weight is [head, nope + v, kv_rank], and has 16 bits here
    /// where others are stored in fewer.
    void per_head(const std::string& name, PartTensor input, PartTensor output, std::int64_t n, std::int64_t k, std::int64_t input_row,
                  std::int64_t output_row, bool sums_over_rows) {
        const ModelLatent& l = *m_.latent;
        const std::int64_t skipped = sums_over_rows ? 0 : l.nope_dim * l.kv_rank;
        PartTensor matrices = weights("kv_up.weight", double(heads_ * n * k) * element_bytes);
        matrices.offset_bytes = double(skipped) * element_bytes;
        LayerPart& part =
            small(name, {std::move(input), std::move(matrices)}, {std::move(output)}, 2 * double(s_.decode * heads_ * n) * double(k));
        part.operation = "gemm";
        const auto add = [&](const char* key, std::int64_t value) { part.request.add(key, std::to_string(value)); };
        add("m", s_.decode), add("n", n), add("k", k), add("batch", heads_);
        part.request.add("type", m_.type);
        if (sums_over_rows) part.request.add("b_major", "n");
        add("lda", heads_ * input_row), add("stride_a", input_row), add("stride_b", (l.nope_dim + l.v_dim) * l.kv_rank);
        add("ldc", heads_ * output_row), add("stride_d", output_row);
    }

    void latent_attention() {
        const ModelLatent& l = *m_.latent;
        const std::int64_t q_dim = l.nope_dim + l.rope_dim, row = l.kv_rank + l.rope_dim, q = heads_ * q_dim,
                           from_hidden = l.q_rank > 0 ? l.q_rank : q;
        const std::int64_t filled = s_.prefill * s_.context;
        product({.name = "latent_down",
                 .input = "attention_in",
                 .weight = "latent_down.weight",
                 .output = "latent_out",
                 .rows = tokens_,
                 .n = from_hidden + row,
                 .k = m_.hidden});
        // Norms both latent rows, rotates the key's part that all heads share, and appends the row to the cache.
        LayerPart& append = small(
            "latent_append",
            {rows_of("latent_out", tokens_, from_hidden + row), weights("latent_norms", double(l.q_rank + l.kv_rank) * element_bytes)},
            {rows_of(l.q_rank > 0 ? "q_latent" : "q_up_out", tokens_, from_hidden), cache("latent_cache", 1, tokens_, row)});
        if (filled > 0) append.writes.push_back(rows_of("kv_latent", filled, l.kv_rank));
        if (l.q_rank > 0)
            product({.name = "q_up",
                     .input = "q_latent",
                     .weight = "q_up.weight",
                     .output = "q_up_out",
                     .rows = tokens_,
                     .n = q,
                     .k = l.q_rank});
        // Prefilled queries are rotated in place, decoded ones beside what becomes of their other part.
        LayerPart& rotary = small("rotary_q", {rows_of("q_up_out", tokens_, heads_ * l.rope_dim)}, {});
        if (s_.decode > 0) rotary.writes.push_back(rows_of("q", s_.decode, heads_ * l.rope_dim));
        if (filled > 0) rotary.writes.push_back(rows_of("q_up_out", filled, heads_ * l.rope_dim));
        if (s_.decode > 0) {
            // Queries go to the space of the latent row, so that the cache is read as it lies; results come back from it.
            per_head("q_absorb", rows_of("q_up_out", s_.decode, heads_ * l.nope_dim), rows_of("q", s_.decode, heads_ * l.kv_rank),
                     l.kv_rank, l.nope_dim, q_dim, row, true);
            attend({.name = "attention",
                    .q = "q",
                    .k = "latent_cache",
                    .v = "latent_cache",
                    .output = "attention_latent",
                    .sequences = s_.decode,
                    .dim = row,
                    .dim_v = l.kv_rank,
                    .kv_heads = 1});
            per_head("v_up", rows_of("attention_latent", s_.decode, heads_ * l.kv_rank),
                     rows_of("attention_out", s_.decode, heads_ * l.v_dim), l.v_dim, l.kv_rank, l.kv_rank, l.v_dim, false);
        }
        if (filled > 0) {
            const std::int64_t made = heads_ * (l.nope_dim + l.v_dim);
            product({.name = "kv_up",
                     .input = "kv_latent",
                     .weight = "kv_up.weight",
                     .output = "kv_up_out",
                     .rows = filled,
                     .n = made,
                     .k = l.kv_rank});
            PartTensor rotated = cache("latent_cache", 1, filled, l.rope_dim);
            rotated.offset_bytes = double(s_.decode) * double(s_.context) * double(row) * element_bytes;
            small("keys", {rows_of("kv_up_out", filled, made), std::move(rotated)},
                  {rows_of("k", filled, q), rows_of("v", filled, heads_ * l.v_dim)});
            attend({.name = prefill_name(),
                    .q = "q_up_out",
                    .k = "k",
                    .v = "v",
                    .output = "attention_out",
                    .first = s_.decode,
                    .sequences = s_.prefill,
                    .queries = s_.context,
                    .dim = q_dim,
                    .dim_v = l.v_dim,
                    .kv_heads = heads_,
                    .keys = TensorKind::activations});
        }
        into_hidden({.name = "o",
                     .input = "attention_out",
                     .weight = "o.weight",
                     .output = {},
                     .rows = tokens_,
                     .n = m_.hidden,
                     .k = heads_ * l.v_dim},
                    "x", "x_attention", "attention", false);
    }

    void experts() {
        const ModelExperts& e = *m_.experts;
        const std::int64_t own = shared(e.intermediate, "moe_intermediate_size"), rows = tokens_ * e.per_token;
        // The shared expert's gate is a row of the router's weights.
        const std::int64_t asked = e.count + (e.shared_gate ? 1 : 0),
                           columns = (asked + aligned_columns - 1) / aligned_columns * aligned_columns;
        product({.name = "router",
                 .input = "mlp_in",
                 .weight = "router.weight",
                 .output = "router_out",
                 .rows = tokens_,
                 .n = columns,
                 .k = m_.hidden});
        const double choices = double(rows) * (index_bytes + scale_bytes), offsets = double(e.count + 1) * index_bytes;
        LayerPart& route = small("route", {rows_of("router_out", tokens_, columns)}, {activations("choices", choices + offsets)});
        if (e.shared_gate) route.writes.push_back(rows_of("shared_gate", tokens_, 1));
        route.launches = 2, route.memory_loads = 0, route.cached_loads = 2;  // the choice, then the sort by expert
        LayerPart& gather = small("gather", {rows_of("mlp_in", tokens_, m_.hidden), activations("choices", choices)},
                                  {rows_of("expert_in", rows, m_.hidden)});
        gather.memory_loads = 0, gather.cached_loads = 2;  // a row's place, then the row
        const std::vector<std::int64_t> groups = expert_rows(e, tokens_);
        gate_up("experts_gate_up", "expert_in", "experts.gate_up", rows, own, groups);
        product({.name = "experts_down",
                 .input = "experts_gate_up_out",
                 .weight = "experts.down",
                 .output = "experts_down_out",
                 .rows = rows,
                 .n = m_.hidden,
                 .k = own,
                 .groups = groups});
        std::string beside = "x_attention";
        if (e.shared_intermediate > 0) {
            const std::int64_t shared_own = shared(e.shared_intermediate, "shared experts' intermediate size");
            gate_up("shared_gate_up", "mlp_in", "shared.gate_up", tokens_, shared_own);
            Product down{.name = "shared_down",
                         .input = "shared_gate_up_out",
                         .weight = "shared.down",
                         .output = "shared_out",
                         .rows = tokens_,
                         .n = m_.hidden,
                         .k = shared_own,
                         .epilogue = "d = acc + r",
                         .extras = {residual("x_attention")}};
            if (e.shared_gate) {
                down.epilogue = "d = acc * sigmoid(g) + r";
                down.extras.insert(down.extras.begin(), {"g", "M,1", rows_of("shared_gate", tokens_, 1)});
            }
            product(down);
            beside = "shared_out";
        }
        const std::string output = s_.tp > 1 ? "mlp_out" : "x_out";
        LayerPart& combine = small(
            "combine", {rows_of("experts_down_out", rows, m_.hidden), activations("choices", choices), rows_of(beside, tokens_, m_.hidden)},
            {rows_of(output, tokens_, m_.hidden)}, 2 * double(rows) * double(m_.hidden));
        combine.memory_loads = 0, combine.cached_loads = 2 * int(e.per_token);  // of each choice its row's number, then the row
        if (s_.tp > 1) all_reduce("mlp", output, "x_out");
    }

    const ModelConfig& m_;
    const LayerStep& s_;
    const std::int64_t tokens_;
    std::int64_t heads_ = 0, kv_heads_ = 0;  // of one GPU
    std::string quantized_;                  // what was made 8 bits last
    std::vector<LayerPart> parts_;
};

}  // namespace

double LayerPart::bytes() const { return bytes(TensorKind::weights) + bytes(TensorKind::cache) + bytes(TensorKind::activations); }

double LayerPart::bytes(TensorKind kind) const {
    double sum = 0;
    for (const auto* list : {&reads, &writes})
        for (const PartTensor& tensor : *list)
            if (tensor.kind == kind) sum += tensor.bytes;
    return sum;
}

std::vector<LayerPart> layer_parts(const ModelConfig& model, const LayerKind& kind, const LayerStep& step) {
    return Builder(model, step).layer(kind);
}

std::vector<LayerPart> end_parts(const ModelConfig& model, const LayerStep& step) { return Builder(model, step).ends(); }

double cache_bytes_per_token(const ModelConfig& model) {
    const std::int64_t elements = model.latent ? model.latent->kv_rank + model.latent->rope_dim : 2 * model.kv_heads * model.head_dim;
    return double(elements) * element_bytes;
}

double layer_weight_bytes(const ModelConfig& model, const LayerKind& kind) {
    // One token meets every weight but those of experts that it does not choose.
    double sum = 0;
    for (const LayerPart& part : layer_parts(model, kind, {.decode = 1, .prefill = 0, .context = 1})) {
        const bool chosen = kind.experts && part.name.starts_with("experts_");
        sum += part.bytes(TensorKind::weights) * (chosen ? double(model.experts->count) / double(model.experts->per_token) : 1);
    }
    return sum;
}

}  // namespace rooftile
