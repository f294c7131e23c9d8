#include "rooftile/layer/device/reference.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "kernels/layer/reference_arguments.hpp"
#include "rooftile/error.hpp"
#include "rooftile/layer/device/small_kernels.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr unsigned threads = 256, most_stride_ctas = 4096;
constexpr std::int64_t product_tile = 64;

class Doubles {
  public:
    explicit Doubles(std::int64_t count) : buffer_(std::size_t(count) * sizeof(double)) {}
    DevicePointer at() const { return buffer_.address(); }

  private:
    DeviceBuffer buffer_;
};

Launch launch_of(Stream stream, std::int64_t x, std::int64_t y = 1) {
    Launch launch;
    launch.grid_x = unsigned(x), launch.grid_y = unsigned(y), launch.block_x = threads, launch.stream = stream;
    return launch;
}

Launch strides(Stream stream, std::int64_t items) {
    return launch_of(stream, std::clamp<std::int64_t>(ceil_div(items, std::int64_t(threads)), 1, most_stride_ctas));
}

DevicePointer address(const void* pointer) { return reinterpret_cast<DevicePointer>(pointer); }

}  // namespace

double layer_bound(int roundings, std::string_view type) {
    const double unit = std::exp2(type == "fp16" ? -11 : -8);
    return std::sqrt(double(roundings)) * unit;
}

void check_layer_reference(const ModelConfig& m, const LayerStep& step) {
    const auto refuse = [&](std::string_view what) {
        throw RequestError(fmt::format("{}: a layer with {} is planned, not yet run; `rooftile plan layer` takes it", m.family, what));
    };
    if (m.latent) refuse("latent keys and values");
    if (m.quantization) refuse("quantised weights");
    if (m.post_norms) refuse("norms before a residual is added");
    if (m.score_cap > 0) refuse("capped scores");
    if (m.query_scale > 0) refuse("a scale of its own for scores");
    if (const std::string why = rotary_refusal(m); !why.empty()) refuse(why);
    if (step.tp > 1) refuse(fmt::format("{} GPUs", step.tp));
    if (step.decode > 0 && step.prefill > 0) refuse("sequences of both kinds in a step");
    if (m.activation != "silu" && m.activation != "gelu_tanh") refuse(fmt::format("the activation {}", m.activation));
    if (m.head_dim > 512) refuse(fmt::format("heads of {} elements", m.head_dim));
}

std::vector<Source> layer_reference_sources(std::string_view arch) {
    Source source;
    source.name = "layer_reference";
    source.text = "#include \"kernels/layer/reference.cuh\"\n";
    for (const char* kernel : {"fill", "widen", "norm_rows", "product", "turn", "attend", "gate", "judge", "unchanged", "take", "add"})
        source.name_expressions.push_back(fmt::format("rooftile::layer_{}", kernel));
    source.arch = nvrtc_arch(arch);
    return {source};
}

LayerReference::LayerReference(const ModelConfig& model, const LayerKind& kind, const LayerStep& step, const std::string& arch)
    : model_(model), kind_(kind), step_(step), type_(model.type == "fp16" ? Type::fp16 : Type::bf16) {
    check_layer_reference(model, step);
    const CachedCompile compiled = compile_cached(layer_reference_sources(arch).front());
    module_ = Module(compiled.compiled.cubin);
    Function* const functions[] = {&fill_, &widen_, &norm_, &product_, &turn_, &attend_, &gate_, &judge_, &unchanged_, &take_, &add_};
    for (std::size_t i = 0; i < std::size(functions); ++i) *functions[i] = module_.function(compiled.compiled.lowered_names.at(i));
}

void LayerReference::fill(Stream stream, void* to, std::int64_t elements, const LayerFill& with) const {
    const long long count = elements;
    const unsigned long long seed = with.seed, number = with.stream;
    launch(fill_, strides(stream, elements), address(to), count, with.mean, with.deviation, seed, number, type_);
}

RoutedTokens routed_tokens(std::span<const double> logits, std::int64_t columns, std::span<const int> chosen, const ModelExperts& e) {
    const auto tokens = std::int64_t(chosen.size()) / e.per_token;
    const auto is_expert = [&](int number) { return number >= 0 && number < e.count; };
    RoutedTokens out;
    out.weights.resize(chosen.size()), out.rows.resize(chosen.size()), out.offsets.resize(std::size_t(e.count + 1));
    for (const int expert : chosen)
        if (is_expert(expert)) ++out.offsets[std::size_t(expert) + 1];
    for (std::size_t i = 1; i < out.offsets.size(); ++i) out.offsets[i] += out.offsets[i - 1];
    std::vector<int> next(out.offsets.begin(), out.offsets.end() - 1);
    for (std::int64_t token = 0; token < tokens; ++token) {
        const std::span<const double> own = logits.subspan(std::size_t(token * columns), std::size_t(e.count));
        const auto first = std::size_t(token * e.per_token);
        const std::span<const int> of = chosen.subspan(first, std::size_t(e.per_token));
        std::vector<double> sorted(own.begin(), own.end());
        std::ranges::sort(sorted, std::greater());
        double squares = 0, all = 0, taken = 0;
        for (const double logit : own) squares += logit * logit, all += std::exp(logit - sorted.front());
        const double rms = std::sqrt(squares / double(e.count)), least = sorted[of.size() - 1];
        for (std::size_t i = 0; i < of.size(); ++i) {
            if (!is_expert(of[i]) || std::ranges::count(of, of[i]) > 1) ++out.impossible;
            if (!is_expert(of[i])) continue;
            const double logit = own[std::size_t(of[i])];
            out.shortfall = std::max(out.shortfall, (least - logit) / rms);
            taken += std::exp(logit - sorted.front());
            out.rows[first + i] = next[std::size_t(of[i])]++;
        }
        for (std::size_t i = 0; i < of.size(); ++i)
            if (is_expert(of[i]))
                out.weights[first + i] = std::exp(own[std::size_t(of[i])] - sorted.front()) / (e.renormalized ? taken : all);
    }
    return out;
}

void LayerReference::multiply(Stream stream, DevicePointer to, DevicePointer from, DevicePointer weights, std::int64_t rows,
                              std::int64_t columns, std::int64_t depth, DevicePointer bias, DevicePointer added) const {
    const long long m = rows, n = columns, k = depth;
    launch(product_, launch_of(stream, ceil_div(columns, product_tile), ceil_div(rows, product_tile)), to, from, weights, bias, added, m, n,
           k, type_);
}

void LayerReference::gated(Stream stream, DevicePointer to, DevicePointer from, std::int64_t rows, std::int64_t intermediate,
                           DevicePointer gate_up, DevicePointer down, DevicePointer added) const {
    constexpr DevicePointer none = 0;
    const Doubles pairs(rows * 2 * intermediate), between(rows * intermediate);
    multiply(stream, pairs.at(), from, gate_up, rows, 2 * intermediate, model_.hidden, none, none);
    const long long count = rows * intermediate;
    const bool gelu = model_.activation != "silu";
    launch(gate_, strides(stream, count), between.at(), pairs.at(), count, gelu);
    multiply(stream, to, between.at(), down, rows, model_.hidden, intermediate, none, added);
    synchronize(stream);  // what this function has is freed at its end
}

LayerError LayerReference::experts(Stream stream, const std::function<void*(std::string_view)>& tensor, DevicePointer to,
                                   DevicePointer from, DevicePointer residual) const {
    const ModelConfig& m = model_;
    const ModelExperts& e = *m.experts;
    constexpr DevicePointer none = 0;
    const std::int64_t tokens = step_.tokens(), columns = router_columns(e), chosen = e.per_token;
    const auto weight = [&](std::string_view name) { return address(tensor(name)); };
    const Doubles on_device(tokens * columns);
    multiply(stream, on_device.at(), from, weight("router.weight"), tokens, columns, m.hidden, none, none);
    copy_on_device(to, residual, std::size_t(tokens * m.hidden) * sizeof(double), stream);
    synchronize(stream);
    std::vector<double> logits(std::size_t(tokens * columns));
    copy_to_host(logits.data(), on_device.at(), logits.size() * sizeof(double));
    std::vector<int> rows(std::size_t(tokens * chosen)), of(rows.size()), offsets(std::size_t(e.count + 1));
    const ExpertChoices at = choices_at(tensor("choices"), m, step_);
    copy_to_host(rows.data(), address(at.rows), rows.size() * sizeof(int));
    copy_to_host(of.data(), address(at.experts), of.size() * sizeof(int));
    copy_to_host(offsets.data(), address(at.offsets), offsets.size() * sizeof(int));

    const RoutedTokens routed = routed_tokens(logits, columns, of, e);
    constexpr int of_logits = 8;  // up to x_attention 6, the second norm, and themselves
    LayerError error{.tensor = "choices", .bound = layer_bound(of_logits, m.type)};
    // Whom a token chooses may differ where two logits differ by less than both may be off; where its row lies may not.
    error.row = error.element = error.all = routed.shortfall / (2 * layer_element_factor);
    error.changed = routed.impossible;
    for (std::size_t i = 0; i < rows.size(); ++i) error.changed += rows[i] != routed.rows[i];
    for (std::size_t i = 0; i < offsets.size(); ++i) error.changed += offsets[i] != routed.offsets[i];

    const auto on_gpu = [](const auto& values) {
        DeviceBuffer out(values.size() * sizeof(values[0]));
        copy_to_device(out.address(), values.data(), out.bytes());
        return out;
    };
    const long long width = m.hidden;
    const auto add = [&](DevicePointer made, const std::vector<int>& numbers, const std::vector<double>& weights) {
        const DeviceBuffer numbers_there = on_gpu(numbers), weights_there = on_gpu(weights);
        launch(add_, launch_of(stream, std::int64_t(numbers.size())), to, made, numbers_there.address(), weights_there.address(), width);
        synchronize(stream);
    };
    for (std::int64_t expert = 0; expert < e.count; ++expert) {
        std::vector<int> numbers;
        std::vector<double> weights;
        for (std::size_t i = 0; i < of.size(); ++i)
            if (of[i] == expert) numbers.push_back(int(std::int64_t(i) / chosen)), weights.push_back(routed.weights[i]);
        if (numbers.empty()) continue;
        const auto count = std::int64_t(numbers.size());
        const Doubles taken(count * m.hidden), made(count * m.hidden);
        const DeviceBuffer numbers_there = on_gpu(numbers);
        launch(take_, launch_of(stream, count), taken.at(), from, numbers_there.address(), width);
        constexpr std::int64_t element_bytes = 2;
        const std::int64_t of_expert = expert * e.intermediate * m.hidden * element_bytes;
        gated(stream, made.at(), taken.at(), count, e.intermediate, weight("experts.gate_up") + DevicePointer(2 * of_expert),
              weight("experts.down") + DevicePointer(of_expert), none);
        add(made.at(), numbers, weights);
    }
    if (e.shared_intermediate > 0) {
        const Doubles made(tokens * m.hidden);
        gated(stream, made.at(), from, tokens, e.shared_intermediate, weight("shared.gate_up"), weight("shared.down"), none);
        std::vector<int> numbers;
        std::vector<double> weights;
        for (std::int64_t token = 0; token < tokens; ++token) {
            numbers.push_back(int(token));
            weights.push_back(e.shared_gate ? 1 / (1 + std::exp(-logits[std::size_t(token * columns + e.count)])) : 1);
        }
        add(made.at(), numbers, weights);
    }
    return error;
}

std::vector<LayerError> LayerReference::judge(Stream stream, const std::function<void*(std::string_view)>& tensor,
                                              const std::function<LayerFill(std::string_view)>& fills) const {
    const ModelConfig& m = model_;
    const std::int64_t tokens = step_.tokens(), of_sequence = step_.prefill > 0 ? step_.context : 1, q = m.heads * m.head_dim,
                       kv = m.kv_heads * m.head_dim;
    const DevicePointer none = 0;
    const auto weight = [&](std::string_view name) { return address(tensor(name)); };
    const auto norm = [&](const Doubles& to, const Doubles& from, std::string_view name) {
        const long long columns = m.hidden;
        launch(norm_, launch_of(stream, tokens), to.at(), from.at(), weight(name), columns, m.norm_eps, type_);
    };
    const auto product = [&](const Doubles& to, const Doubles& from, std::string_view name, std::int64_t columns, std::int64_t depth,
                             DevicePointer bias, DevicePointer added) {
        multiply(stream, to.at(), from.at(), weight(name), tokens, columns, depth, bias, added);
    };
    const LayerHeads heads{.tokens = tokens,
                           .tokens_of_sequence = of_sequence,
                           .heads = m.heads,
                           .kv_heads = m.kv_heads,
                           .dim = m.head_dim,
                           .rotated = rotated_elements(m),
                           .keys = step_.context,
                           .window = kind_.window > 0 ? kind_.window : step_.context,
                           .eps = m.query_key_norms ? m.norm_eps : -1,
                           .scale = 1 / std::sqrt(double(m.head_dim)),
                           .amplitude = m.rope_scaling.amplitude,
                           .type = type_};

    const Doubles x(tokens * m.hidden), normed(tokens * m.hidden), middle(tokens * m.hidden), y(tokens * m.hidden);
    const Doubles new_k(tokens * kv), new_v(tokens * kv);
    const long long inputs = tokens * m.hidden;
    launch(widen_, strides(stream, inputs), x.at(), weight("x"), inputs, type_);
    norm(normed, x, "norm_attention.weight");
    {
        const Doubles rows(tokens * (q + 2 * kv)), queries(tokens * q), attended(tokens * q);
        product(rows, normed, "qkv.weight", q + 2 * kv, m.hidden, m.qkv_bias ? weight("qkv.bias") : none, none);
        std::vector<double> half_turns = rotary_frequencies(m, step_.context);
        for (double& each : half_turns) each /= std::numbers::pi;
        const Doubles on_device(std::int64_t(half_turns.size()));
        copy_to_device(on_device.at(), half_turns.data(), half_turns.size() * sizeof(double));
        launch(turn_, launch_of(stream, tokens * (m.heads + 2 * m.kv_heads)), heads, queries.at(), new_k.at(), new_v.at(), rows.at(),
               m.query_key_norms ? weight("query_key_norms") : none, on_device.at());
        launch(attend_, launch_of(stream, tokens * m.heads), heads, attended.at(), queries.at(), new_k.at(), new_v.at(), weight("k_cache"),
               weight("v_cache"));
        product(middle, attended, "o.weight", m.hidden, q, none, x.at());
        synchronize(stream);  // what this block has is freed at its end
    }
    norm(normed, middle, "norm_mlp.weight");
    std::vector<LayerError> out;
    // Rounded on the way to x_out: the norm, the product of queries, the queries, the weights of scores, what they sum up to, the sum with
    // x; the second norm, the gated product, the result.
    int roundings = 10;
    if (kind_.experts) {
        roundings += 1;                                          // logits
        if (m.experts->shared_intermediate > 0) roundings += 3;  // its gate, its product, and its sum with the residual
        out.push_back(experts(stream, tensor, y.at(), normed.at(), middle.at()));
    } else {
        gated(stream, y.at(), normed.at(), tokens, m.intermediate, weight("gate_up.weight"), weight("down.weight"), middle.at());
    }

    // This step's keys: the norm, the product, the keys.
    struct Judged {
        const char* name;
        DevicePointer wanted;
        LayerPlace place;
        int roundings;
    };
    const int of_heads = 3;
    const Judged all[] = {{"x_out", y.at(), {m.hidden, 1, 0}, roundings},
                          {"k_cache", new_k.at(), {kv, of_sequence, step_.context}, of_heads},
                          {"v_cache", new_v.at(), {kv, of_sequence, step_.context}, of_heads - 1}};
    for (const Judged& each : all) {
        const DeviceBuffer seen(sizeof(LayerSeen));
        fill_bytes(seen.address(), 0, sizeof(LayerSeen), stream);
        launch(judge_, launch_of(stream, tokens), weight(each.name), each.place, each.wanted, seen.address(), type_);
        if (each.place.keys > 0) {
            const LayerFill with = fills(each.name);
            const long long count = step_.sequences() * step_.context * kv;
            const unsigned long long seed = with.seed, number = with.stream;
            launch(unchanged_, strides(stream, count), weight(each.name), each.place, count, with.mean, with.deviation, seed, number,
                   seen.address(), type_);
        }
        synchronize(stream);
        LayerSeen found{};
        copy_to_host(&found, seen.address(), sizeof found);
        out.push_back({.tensor = each.name,
                       .row = found.row,
                       .element = found.element,
                       .all = std::sqrt(found.errors / found.all),
                       .bound = layer_bound(each.roundings, m.type),
                       .changed = found.changed});
    }
    return out;
}

}  // namespace rooftile
