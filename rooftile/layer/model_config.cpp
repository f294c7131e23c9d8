#include "rooftile/layer/model_config.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {
namespace {

/// So that no count of elements leaves 64 bits, whatever the fields say.
constexpr std::int64_t most_size = 1 << 20, most_vocab = 1 << 24, most_heads = 1 << 14, most_dim = 1 << 14, most_window = 1 << 30,
                       most_layers = 1000, most_experts = 4096;
constexpr std::size_t longest_value = 60;

/// Typed access to the fields of one object, each refusal with the field's name and value.
class Fields {
  public:
    Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

    bool has(const char* key) const { return object_.contains(key) && !object_.at(key).is_null(); }
    const Json& at(const char* key) const {
        if (!has(key)) throw RequestError(fmt::format("{}: {} is missing; it is needed of a model of this type", where_, key));
        return object_.at(key);
    }
    [[noreturn]] void refuse(const char* key, std::string_view accepted) const {
        std::string value = has(key) ? object_.at(key).dump() : "missing";
        value = printable(value, longest_value);
        throw RequestError(fmt::format("{}: {} is {}; accepted: {}", where_, key, value, accepted));
    }
    std::int64_t whole(const char* key, std::int64_t most = most_size, std::int64_t least = 1) const {
        const Json& value = at(key);
        if (!value.is_number_integer() || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
            refuse(key, fmt::format("a whole number from {} to {}", least, most));
        return value.get<std::int64_t>();
    }
    std::int64_t whole_or(const char* key, std::int64_t otherwise, std::int64_t most = most_size, std::int64_t least = 1) const {
        return has(key) ? whole(key, most, least) : otherwise;
    }
    double number(const char* key) const {
        const Json& value = at(key);
        if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) refuse(key, "a number from 0 on");
        return value.get<double>();
    }
    double number_or(const char* key, double otherwise) const { return has(key) ? number(key) : otherwise; }
    bool flag_or(const char* key, bool otherwise) const {
        if (!has(key)) return otherwise;
        if (!at(key).is_boolean()) refuse(key, "true or false");
        return at(key).get<bool>();
    }
    std::string text(const char* key) const {
        if (!at(key).is_string()) refuse(key, "a text");
        return at(key).get<std::string>();
    }
    std::string text_or(const char* key, std::string otherwise) const { return has(key) ? text(key) : otherwise; }
    /// What no kernel here would do: refused unless it is absent or off.
    void only_off(const char* key) const {
        if (flag_or(key, false)) refuse(key, "false: it is not supported yet");
    }
    std::optional<Fields> object(const char* key) const {
        if (!has(key)) return std::nullopt;
        if (!at(key).is_object()) refuse(key, "an object");
        return Fields(at(key), where_ + ": " + key);
    }
    const std::string& where() const { return where_; }

  private:
    const Json& object_;
    std::string where_;
};

enum class MlpKind : unsigned char { dense, mixtral, qwen_moe, deepseek };
/// What a `model_type` says without a field of its own.
struct Family {
    std::string_view name;
    MlpKind mlp = MlpKind::dense;
    bool qkv_bias = false, query_key_norms = false, gemma = false, post_norms = false, latent = false;
};
constexpr Family families[] = {
    {.name = "llama"},
    {.name = "mistral"},
    {.name = "mixtral", .mlp = MlpKind::mixtral},
    {.name = "qwen2", .qkv_bias = true},
    {.name = "qwen2_moe", .mlp = MlpKind::qwen_moe, .qkv_bias = true},
    {.name = "qwen3", .query_key_norms = true},
    {.name = "qwen3_moe", .mlp = MlpKind::qwen_moe, .query_key_norms = true},
    {.name = "gemma", .gemma = true},
    {.name = "gemma2", .gemma = true, .post_norms = true},
    {.name = "gemma3_text", .query_key_norms = true, .gemma = true, .post_norms = true},
    {.name = "phi3"},
    {.name = "deepseek_v2", .mlp = MlpKind::deepseek, .latent = true},
    {.name = "deepseek_v3", .mlp = MlpKind::deepseek, .latent = true},
    {.name = "kimi_k2", .mlp = MlpKind::deepseek, .latent = true},
};

std::string type_of(const Fields& outer, const Fields& fields) {
    // Newer files say `dtype`; a model in a model says it once, outside.
    for (const Fields* each : {&fields, &outer})
        for (const char* key : {"torch_dtype", "dtype"}) {
            if (!each->has(key)) continue;
            const std::string text = each->text(key);
            if (text == "bfloat16") return "bf16";
            if (text == "float16") return "fp16";
            each->refuse(key, "bfloat16 or float16: write the type that it is run in");
        }
    throw RequestError(fmt::format("{}: torch_dtype is missing; accepted: bfloat16 or float16", fields.where()));
}

std::string activation_of(const Fields& fields, const Family& family) {
    // Gemma's first files have "gelu" under the older key and mean the tanh form, as its code does.
    const char* key = fields.has("hidden_activation") ? "hidden_activation" : "hidden_act";
    if (family.gemma && !fields.has(key)) return "gelu_tanh";
    const std::string text = fields.text(key);
    if (text == "silu") return "silu";
    if (text == "gelu_pytorch_tanh" || text == "gelu_new" || (text == "gelu" && family.gemma)) return "gelu_tanh";
    if (text == "gelu") return "gelu";
    if (text == "relu") return "relu";
    fields.refuse(key, "silu, gelu, gelu_pytorch_tanh, gelu_new or relu");
}

std::optional<ModelQuantization> quantization_of(const Fields& outer, const Fields& fields) {
    const auto block = (fields.has("quantization_config") ? fields : outer).object("quantization_config");
    if (!block) return std::nullopt;
    ModelQuantization out;
    out.method = block->text("quant_method");
    if (out.method == "fp8" || out.method == "fbgemm_fp8") {
        out.method = "fp8";
        if (!block->has("weight_block_size")) return out;
        const Json& size = block->at("weight_block_size");
        if (!size.is_array() || size.size() != 2 || size[0] != 128 || size[1] != 128) block->refuse("weight_block_size", "[128, 128]");
        out.group = out.group_n = 128;
        return out;
    }
    if (out.method != "awq" && out.method != "gptq") block->refuse("quant_method", "fp8, fbgemm_fp8, awq or gptq");
    out.bits = int(block->whole("bits", 8));
    if (out.bits != 4 && out.bits != 8) block->refuse("bits", "4 or 8");
    const Json& group = block->at("group_size");
    if (group != -1) out.group = block->whole("group_size", 1 << 20);
    // AWQ's files say it; GPTQ's symmetric ones still store zero points, all alike.
    out.zero_points = out.method == "awq" ? block->flag_or("zero_point", true) : !block->flag_or("sym", true);
    return out;
}

/// What no plan needs may be missing: who runs such a layer says so (rooftile/layer/rotary.hpp).
void read_rotary_scaling(const Fields& fields, const Fields& scaling, const std::string& kind,
                         ModelRotaryScaling& out) {
    out.kind = kind;
    if (kind == "longrope" || kind == "su") return;  // a factor of each pair
    out.factor = scaling.number_or("factor", 0);
    if (scaling.has("factor") && out.factor < 1) scaling.refuse("factor", "a number from 1 on");
    out.positions = fields.number_or("max_position_embeddings", 0);
    // Dynamic scaling begins where the model's own positions end.
    const char* trained = "original_max_position_embeddings";
    if (kind != "dynamic")
        out.positions =
            scaling.number_or(trained, fields.number_or(trained, kind == "yarn" ? out.positions : 0));
    if (kind == "llama3") {
        out.low = scaling.number_or("low_freq_factor", out.low),
        out.high = scaling.number_or("high_freq_factor", out.high);
        if (!(out.high > out.low))
            scaling.refuse("high_freq_factor", fmt::format("a number above low_freq_factor, {}", out.low));
    }
    if (kind != "yarn") return;
    // 0 is the usual one here, as in the library that these files are written for.
    const auto or_usual = [&](const char* key, double& value) {
        if (const double given = scaling.number_or(key, 0); given > 0) value = given;
    };
    or_usual("beta_fast", out.fast), or_usual("beta_slow", out.slow);
    if (!(out.fast > out.slow))
        scaling.refuse("beta_fast", fmt::format("a number above beta_slow, {}", out.slow));
    out.whole_pairs = scaling.flag_or("truncate", true);
    const auto grown = [&](double by) { return out.factor > 1 ? 0.1 * by * std::log(out.factor) + 1 : 1; };
    const double scale = scaling.number_or("mscale", 0), all_scale = scaling.number_or("mscale_all_dim", 0);
    out.amplitude = scale > 0 && all_scale > 0 ? grown(scale) / grown(all_scale) : grown(1);
    or_usual("attention_factor", out.amplitude);
}

/// Newer files have all of the rotary embedding in one object, of each kind of layer where they differ; older ones beside the others.
void read_rotary(const Fields& fields, double usual_theta, ModelConfig& model) {
    const auto all = fields.object("rope_parameters");
    const auto full = all ? all->object("full_attention") : std::nullopt;
    const Fields& rotary = full ? *full : all ? *all : fields;
    model.rope_theta = rotary.number_or("rope_theta", usual_theta);
    if (!(model.rope_theta > 0)) rotary.refuse("rope_theta", "a number above 0");
    const char* share = "partial_rotary_factor";
    const Fields& sharing = rotary.has(share) ? rotary : fields;
    model.rotary_share = sharing.number_or(share, 1);
    if (model.rotary_share > 1) sharing.refuse(share, "a number from 0 to 1");
    const auto older = fields.object("rope_scaling");
    if (!all && !older) return;
    const Fields& scaling = all ? rotary : *older;
    const char* key = scaling.has("rope_type") || all ? "rope_type" : "type";
    const std::string kind = scaling.text(key);
    constexpr std::string_view known[] = {"default", "linear", "dynamic", "llama3", "yarn", "longrope", "su"};
    if (std::ranges::find(known, kind) == std::end(known))
        scaling.refuse(key, "default, linear, dynamic, llama3, yarn, longrope or su");
    if (kind != "default") read_rotary_scaling(fields, scaling, kind, model.rope_scaling);
}

std::vector<LayerKind> windows_of(const Fields& fields, const Family& family, std::int64_t layers) {
    std::vector<LayerKind> out(std::size_t(layers), LayerKind{});
    const bool asks = fields.flag_or("use_sliding_window", true);  // Qwen's files name a window and do not use it
    if (!asks || !fields.has("sliding_window")) return out;
    const std::int64_t window = fields.whole("sliding_window", most_window);
    if (fields.has("layer_types")) {
        const Json& types = fields.at("layer_types");
        if (!types.is_array() || std::int64_t(types.size()) != layers)
            fields.refuse("layer_types", fmt::format("a list of {} names, one a layer", layers));
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (types[i] == "sliding_attention") out[i].window = window;
            else if (types[i] != "full_attention") fields.refuse("layer_types", "sliding_attention and full_attention");
        }
        return out;
    }
    const std::int64_t first = family.name.starts_with("qwen") ? fields.whole_or("max_window_layers", 0, most_layers, 0) : 0;
    const std::int64_t period = family.name == "gemma2"        ? 2
                                : family.name == "gemma3_text" ? fields.whole_or("sliding_window_pattern", 6)
                                                               : 0;
    for (std::int64_t i = 0; i < layers; ++i)
        if (i >= first && (period == 0 || (i + 1) % period != 0)) out[std::size_t(i)].window = window;
    return out;
}

void read_experts(const Fields& fields, MlpKind kind, ModelConfig& model) {
    if (kind == MlpKind::dense) return;
    ModelExperts experts;
    std::int64_t first_dense = 0, step = 1;
    std::vector<std::int64_t> dense;
    if (kind == MlpKind::mixtral) {
        experts.count = fields.whole("num_local_experts", most_experts);
        experts.intermediate = model.intermediate;
        experts.renormalized = true;  // its code does, and its files do not say
    } else {
        experts.intermediate = fields.whole("moe_intermediate_size");
        experts.renormalized = fields.flag_or("norm_topk_prob", false);
        if (kind == MlpKind::qwen_moe) {
            experts.count = fields.whole("num_experts", most_experts);
            experts.shared_intermediate = fields.whole_or("shared_expert_intermediate_size", 0, most_size, 0);
            experts.shared_gate = experts.shared_intermediate > 0;
            step = fields.whole_or("decoder_sparse_step", 1);
            if (fields.has("mlp_only_layers")) {
                if (!fields.at("mlp_only_layers").is_array()) fields.refuse("mlp_only_layers", "a list of layers");
                for (const Json& layer : fields.at("mlp_only_layers")) {
                    if (!layer.is_number_integer()) fields.refuse("mlp_only_layers", "a list of layers");
                    dense.push_back(layer.get<std::int64_t>());
                }
            }
        } else {
            experts.count = fields.whole("n_routed_experts", most_experts);
            experts.shared_intermediate = experts.intermediate * fields.whole_or("n_shared_experts", 0, most_experts, 0);
            first_dense = fields.whole_or("first_k_dense_replace", 0, most_layers, 0);
            step = fields.whole_or("moe_layer_freq", 1);
        }
    }
    experts.per_token = fields.whole("num_experts_per_tok", experts.count);
    // Qwen counts layers of experts from the step's end, DeepSeek from its beginning.
    const std::int64_t shift = kind == MlpKind::qwen_moe ? 1 : 0;
    for (std::int64_t i = 0; i < std::int64_t(model.layers.size()); ++i)
        model.layers[std::size_t(i)].experts = i >= first_dense && (i + shift) % step == 0 && std::ranges::find(dense, i) == dense.end();
    model.experts = experts;
}

void read_latent(const Fields& fields, ModelConfig& model) {
    ModelLatent latent;
    latent.q_rank = fields.whole_or("q_lora_rank", 0, most_dim);
    latent.kv_rank = fields.whole("kv_lora_rank", most_dim);
    latent.nope_dim = fields.whole("qk_nope_head_dim", most_dim), latent.rope_dim = fields.whole("qk_rope_head_dim", most_dim);
    latent.v_dim = fields.whole("v_head_dim", most_dim);
    model.head_dim = latent.nope_dim + latent.rope_dim;
    model.kv_heads = model.heads;  // once they are made of the latent row
    model.latent = latent;
}

ModelConfig read_model(const Fields& outer, const Fields& fields, const Family& family) {
    ModelConfig model;
    model.family = family.name;
    model.type = type_of(outer, fields);
    // A model in a model leaves out what its library has by default.
    const bool inner = family.name == "gemma3_text";
    model.hidden = fields.whole("hidden_size");
    model.intermediate = fields.whole("intermediate_size");
    model.heads = inner ? fields.whole_or("num_attention_heads", 8, most_heads) : fields.whole("num_attention_heads", most_heads);
    model.kv_heads = fields.whole_or("num_key_value_heads", inner ? 4 : model.heads, model.heads);
    if (model.heads % model.kv_heads != 0)
        fields.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads, {}", model.heads));
    model.vocab = inner ? fields.whole_or("vocab_size", 262208, most_vocab) : fields.whole("vocab_size", most_vocab);
    model.norm_eps = inner ? fields.number_or("rms_norm_eps", 1e-6) : fields.number("rms_norm_eps");
    model.layers = windows_of(fields, family, fields.whole("num_hidden_layers", most_layers));
    if (family.latent) read_latent(fields, model);
    else if (fields.has("head_dim") || inner) model.head_dim = fields.whole_or("head_dim", 256, most_dim);
    else if (model.hidden % model.heads == 0) model.head_dim = model.hidden / model.heads;
    else fields.refuse("hidden_size", fmt::format("a multiple of num_attention_heads, {}, where head_dim is missing", model.heads));
    model.activation = activation_of(fields, family);
    model.unit_offset_norms = family.gemma, model.post_norms = family.post_norms;
    model.query_key_norms = family.query_key_norms;
    model.qkv_bias = family.qkv_bias;
    for (const char* unsupported : {"attention_bias", "mlp_bias", "attention_k_eq_v"}) fields.only_off(unsupported);
    model.tied_embeddings = fields.flag_or("tie_word_embeddings", outer.flag_or("tie_word_embeddings", family.gemma));
    if (const double scalar = fields.number_or("query_pre_attn_scalar", 0); scalar > 0) model.query_scale = 1 / std::sqrt(scalar);
    model.score_cap = fields.number_or("attn_logit_softcapping", 0);
    read_rotary(fields, inner ? 1e6 : 1e4, model);
    model.quantization = quantization_of(outer, fields);
    read_experts(fields, family.mlp, model);
    return model;
}

}  // namespace

std::int64_t ModelConfig::layers_alike(const LayerKind& kind) const { return std::ranges::count(layers, kind); }

std::int64_t ModelConfig::usual_layer() const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < layers.size(); ++i)
        if (layers_alike(layers[i]) > layers_alike(layers[best])) best = i;
    return std::int64_t(best);
}

std::vector<std::string_view> model_families() {
    std::vector<std::string_view> out;
    for (const Family& each : families) out.push_back(each.name);
    return out;
}

ModelConfig model_config(std::string_view text, std::string_view file) {
    const Json document = Json::parse(text, nullptr, false);
    if (document.is_discarded()) throw RequestError(fmt::format("{} is no JSON; give a model's config.json as it is published", file));
    if (!document.is_object()) throw RequestError(fmt::format("{} holds no object; give a model's config.json as it is published", file));
    const Fields outer(document, std::string(file));
    // A model of pictures and text holds the one of text; its file names both.
    const auto inner = outer.object("text_config");
    const Fields& fields = inner ? *inner : outer;
    const std::string type = fields.text("model_type");
    for (const Family& family : families)
        if (type == family.name) return read_model(outer, fields, family);
    std::vector<std::string> names;
    for (const Family& family : families) names.emplace_back(family.name);
    fields.refuse("model_type", joined(names));
}

}  // namespace rooftile
