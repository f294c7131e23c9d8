#include "rooftile/layer/device/reference.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/layer/reference_arguments.hpp"
#include "rooftile/error.hpp"
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

void check_layer_reference(const ModelConfig& m, const LayerKind& kind, const LayerStep& step) {
    const auto refuse = [&](std::string_view what) {
        throw RequestError(fmt::format("{}: a layer with {} is planned, not yet run; `rooftile plan layer` takes it", m.family, what));
    };
    if (m.latent) refuse("latent keys and values");
    if (m.quantization) refuse("quantised weights");
    if (m.post_norms) refuse("norms before a residual is added");
    if (m.score_cap > 0) refuse("capped scores");
    if (m.query_scale > 0) refuse("a scale of its own for scores");
    if (kind.experts) refuse("experts");
    if (step.tp > 1) refuse(fmt::format("{} GPUs", step.tp));
    if (step.decode > 0 && step.prefill > 0) refuse("sequences of both kinds in a step");
    if (m.activation != "silu" && !m.activation.starts_with("gelu")) refuse(fmt::format("the activation {}", m.activation));
    if (m.head_dim > 512) refuse(fmt::format("heads of {} elements", m.head_dim));
}

std::int64_t rotated_elements(const ModelConfig& m) { return std::int64_t(std::llround(double(m.head_dim) * m.rotary_share)); }

std::vector<double> rotary_frequencies(const ModelConfig& m) {
    const std::int64_t rotated = rotated_elements(m);
    std::vector<double> out;
    for (std::int64_t i = 0; i < rotated / 2; ++i) out.push_back(std::pow(m.rope_theta, -2.0 * double(i) / double(rotated)));
    return out;
}

std::vector<Source> layer_reference_sources(std::string_view arch) {
    Source source;
    source.name = "layer_reference";
    source.text = "#include \"kernels/layer/reference.cuh\"\n";
    for (const char* kernel : {"fill", "widen", "norm_rows", "product", "turn", "attend", "gate", "judge", "unchanged"})
        source.name_expressions.push_back(fmt::format("rooftile::layer_{}", kernel));
    source.arch = nvrtc_arch(arch);
    return {source};
}

LayerReference::LayerReference(const ModelConfig& model, const LayerKind& kind, const LayerStep& step, const std::string& arch)
    : model_(model), kind_(kind), step_(step), type_(model.type == "fp16" ? Type::fp16 : Type::bf16) {
    check_layer_reference(model, kind, step);
    const CachedCompile compiled = compile_cached(layer_reference_sources(arch).front());
    module_ = Module(compiled.compiled.cubin);
    Function* const functions[] = {&fill_, &widen_, &norm_, &product_, &turn_, &attend_, &gate_, &judge_, &unchanged_};
    for (std::size_t i = 0; i < std::size(functions); ++i) *functions[i] = module_.function(compiled.compiled.lowered_names.at(i));
}

void LayerReference::fill(Stream stream, void* to, std::int64_t elements, const LayerFill& with) const {
    const long long count = elements;
    const unsigned long long seed = with.seed, number = with.stream;
    launch(fill_, strides(stream, elements), address(to), count, with.mean, with.deviation, seed, number, type_);
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
        const long long rows = tokens, n = columns, k = depth;
        launch(product_, launch_of(stream, ceil_div(columns, product_tile), ceil_div(tokens, product_tile)), to.at(), from.at(),
               weight(name), bias, added, rows, n, k, type_);
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
                           .type = type_};

    const Doubles x(tokens * m.hidden), normed(tokens * m.hidden), middle(tokens * m.hidden), y(tokens * m.hidden);
    const Doubles new_k(tokens * kv), new_v(tokens * kv);
    const long long inputs = tokens * m.hidden;
    launch(widen_, strides(stream, inputs), x.at(), weight("x"), inputs, type_);
    norm(normed, x, "norm_attention.weight");
    {
        const Doubles rows(tokens * (q + 2 * kv)), queries(tokens * q), attended(tokens * q);
        product(rows, normed, "qkv.weight", q + 2 * kv, m.hidden, m.qkv_bias ? weight("qkv.bias") : none, none);
        std::vector<double> half_turns = rotary_frequencies(m);
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
    {
        const Doubles pairs(tokens * 2 * m.intermediate), gated(tokens * m.intermediate);
        product(pairs, normed, "gate_up.weight", 2 * m.intermediate, m.hidden, none, none);
        const long long count = tokens * m.intermediate;
        const bool gelu = m.activation != "silu";
        launch(gate_, strides(stream, count), gated.at(), pairs.at(), count, gelu);
        product(y, gated, "down.weight", m.hidden, m.intermediate, none, middle.at());
        synchronize(stream);
    }

    // Rounded on the way to x_out: the norm, the product of queries, the queries, the weights of scores, what they sum up to, the sum with
    // x; the second norm, the gated product, the result; and this step's keys.
    struct Judged {
        const char* name;
        DevicePointer wanted;
        LayerPlace place;
        int roundings;
    };
    const int of_heads = 3;
    const Judged all[] = {{"x_out", y.at(), {m.hidden, 1, 0}, 10},
                          {"k_cache", new_k.at(), {kv, of_sequence, step_.context}, of_heads},
                          {"v_cache", new_v.at(), {kv, of_sequence, step_.context}, of_heads - 1}};
    std::vector<LayerError> out;
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
