#include "rooftile/layer/device/small_kernels.hpp"

#include <fmt/core.h>

#include <functional>

#include "rooftile/error.hpp"
#include "rooftile/layer/device/reference.hpp"
#include "rooftile/layer/device/rotary_append.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/in_contexts.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

// As kernels/layer/experts.cuh has them.
constexpr unsigned route_threads = 128, sort_threads = 1024, row_threads = 128;
constexpr std::int64_t run_elements = 8, warp = 32;

Type type_of(const ModelConfig& model) { return model.type == "fp16" ? Type::fp16 : Type::bf16; }

class RotaryPart final : public SmallKernel {
  public:
    RotaryPart(const ModelConfig& m, const LayerStep& step, const std::string& arch)
        : kernel_({.dim = int(m.head_dim), .rotated = int(rotated_elements(m)), .type = type_of(m), .normed = m.query_key_norms}, arch),
          arch_(arch) {
        const std::int64_t row = m.kv_heads * m.head_dim;
        fixed_.eps = float(m.norm_eps);
        fixed_.tokens = int(step.tokens()), fixed_.tokens_of_sequence = int(step.prefill > 0 ? step.context : 1);
        fixed_.heads = int(m.heads), fixed_.kv_heads = int(m.kv_heads), fixed_.positions = int(step.context);
        fixed_.row_stride = row, fixed_.head_stride = m.head_dim, fixed_.sequence_stride = row * step.context;
    }
    std::string label() const override { return fmt::format("{} threads a head", kernel_.config().lanes()); }
    std::vector<std::string> ptx() const override { return {compile_to_ptx(rotary_source(kernel_.config(), arch_))}; }
    void load() const override { kernel_.load(); }
    /// Rows, the norms of heads where there are any; q, keys and values.
    void launch(Stream stream, std::span<void* const> tensors, const LayerInputs& inputs) const override {
        RotaryArguments a = fixed_;
        a.turns = inputs.turns, a.lengths = inputs.lengths;
        a.rows = tensors[0];
        const std::span<void* const> written = tensors.last(3);
        a.q = written[0], a.k = written[1], a.v = written[2];
        if (const RotaryConfig& config = kernel_.config(); config.normed) {
            a.q_weight = tensors[1];
            a.k_weight = static_cast<const char*>(tensors[1]) + config.dim * bytes_of(config.type);
        }
        kernel_.launch(stream, a);
    }

  private:
    RotaryAppend kernel_;
    std::string arch_;
    RotaryArguments fixed_{};
};

/// One program of kernels of kernels/layer/experts.cuh, and what launches them.
class ExpertsPart final : public SmallKernel {
  public:
    using Launcher = std::function<void(Stream, std::span<const Function> functions, std::span<void* const> tensors)>;
    ExpertsPart(std::string name, std::vector<std::string> kernels, const std::string& arch, std::string label, Launcher launcher)
        : arch_(arch),
          label_(std::move(label)),
          launcher_(std::move(launcher)),
          source_(source_of_header(std::move(name), "kernels/layer/experts.cuh", std::move(kernels), arch)) {
        compiled_ = compile_cached(source_);
    }
    std::string label() const override { return label_; }
    std::vector<std::string> ptx() const override { return {compile_to_ptx(source_)}; }
    void load() const override { functions(); }
    void launch(Stream stream, std::span<void* const> tensors, const LayerInputs&) const override {
        launcher_(stream, functions(), tensors);
    }

  private:
    const std::vector<Function>& functions() const {
        return contexts_.of_module(compiled_.compiled, arch_, [&](const Module& module, int) {
            std::vector<Function> out;
            for (const std::string& name : compiled_.compiled.lowered_names) out.push_back(module.function(name));
            return out;
        });
    }
    std::string arch_, label_;
    Launcher launcher_;
    Source source_;
    CachedCompile compiled_;
    InContexts<std::vector<Function>> contexts_;
};

Launch dependent(Stream stream, std::int64_t ctas, unsigned threads) {
    Launch launch;
    launch.grid_x = unsigned(ctas), launch.block_x = threads, launch.stream = stream;
    launch.programmatic_dependent = true;
    return launch;
}

/// A CTA for `row_threads` runs of a row's columns.
Launch of_rows(Stream stream, std::int64_t rows, std::int64_t columns) {
    Launch launch = dependent(stream, rows, row_threads);
    launch.grid_y = unsigned(ceil_div(columns, std::int64_t{row_threads} * run_elements));
    return launch;
}

std::string type_name(const ModelConfig& model) { return "rooftile::Type::" + model.type; }

void check_experts(const ModelConfig& m) {
    const ModelExperts& e = *m.experts;
    if (e.count > most_experts_of_lane * warp || e.per_token > most_chosen_experts)
        throw RequestError(fmt::format("{} of {} experts: at most {} of {} are run here", e.per_token, e.count, most_chosen_experts,
                                       most_experts_of_lane * warp));
    if (m.hidden % run_elements != 0 || e.intermediate % run_elements != 0)
        throw RequestError(fmt::format("rows of {} and {} elements: experts take multiples of {}", m.hidden, e.intermediate, run_elements));
}

std::shared_ptr<const SmallKernel> route_part(const ModelConfig& m, const LayerStep& step, const std::string& arch) {
    const ModelExperts e = *m.experts;
    const std::int64_t tokens = step.tokens(), of_lane = ceil_div(e.count, warp);
    auto launcher = [=](Stream stream, std::span<const Function> functions, std::span<void* const> tensors) {
        RouteArguments a{};
        a.logits = tensors[0];
        a.to = choices_at(tensors[1], m, step);
        a.shared_gate = e.shared_gate ? tensors[2] : nullptr;
        a.tokens = int(tokens), a.columns = int(router_columns(e)), a.experts = int(e.count), a.chosen = int(e.per_token);
        a.renormalized = e.renormalized;
        launch(functions[0], dependent(stream, ceil_div(tokens * warp, std::int64_t(route_threads)), route_threads), a);
        const int choices = int(tokens * e.per_token), experts = int(e.count);
        launch(functions[1], dependent(stream, e.count, sort_threads), a.to, choices, experts);
    };
    return std::make_shared<const ExpertsPart>(
        "route", std::vector<std::string>{fmt::format("rooftile::route<{}, {}>", of_lane, type_name(m)), "rooftile::sort_choices"}, arch,
        fmt::format("a warp a token, then {} CTAs that sort", e.count), std::move(launcher));
}

}  // namespace

std::int64_t router_columns(const ModelExperts& e) { return ceil_div(e.count + (e.shared_gate ? 1 : 0), run_elements) * run_elements; }

std::size_t choices_bytes(const ModelConfig& m, const LayerStep& step) {
    return std::size_t(step.tokens() * m.experts->per_token) * (sizeof(float) + 2 * sizeof(int))
           + std::size_t(m.experts->count + 1) * sizeof(int);
}

ExpertChoices choices_at(void* memory, const ModelConfig& m, const LayerStep& step) {
    const std::int64_t choices = step.tokens() * m.experts->per_token;
    ExpertChoices out{};
    out.weights = static_cast<float*>(memory);
    out.rows = reinterpret_cast<int*>(out.weights + choices);
    out.experts = out.rows + choices;
    out.offsets = out.experts + choices;
    return out;
}

std::shared_ptr<const SmallKernel> small_kernel(const LayerPart& part, const ModelConfig& m, const LayerStep& step,
                                                const std::string& arch) {
    if (part.name == "rotary_append") return std::make_shared<const RotaryPart>(m, step, arch);
    if (!m.experts) return nullptr;
    check_experts(m);
    const ModelExperts e = *m.experts;
    const std::int64_t tokens = step.tokens(), choices = tokens * e.per_token;
    const int chosen = int(e.per_token), columns = int(m.hidden);
    if (part.name == "route") return route_part(m, step, arch);
    if (part.name == "gather")  // tokens, choices; rows
        return std::make_shared<const ExpertsPart>("gather_rows", std::vector<std::string>{"rooftile::gather_rows"}, arch, "a thread 8 columns of a row",
                                                   [=](Stream stream, std::span<const Function> functions, std::span<void* const> tensors) {
                                                       const void* from = tensors[0];
                                                       const int* rows = choices_at(tensors[1], m, step).rows;
                                                       launch(functions[0], of_rows(stream, choices, columns), from, tensors[2], rows,
                                                              chosen, columns);
                                                   });
    if (part.name == "combine")  // rows, choices, what is added to; the result
        return std::make_shared<const ExpertsPart>(
            "combine_rows", std::vector<std::string>{fmt::format("rooftile::combine_rows<{}>", type_name(m))}, arch, "a thread 8 columns of a token",
            [=](Stream stream, std::span<const Function> functions, std::span<void* const> tensors) {
                const void *made = tensors[0], *base = tensors[2];
                launch(functions[0], of_rows(stream, tokens, columns), made, choices_at(tensors[1], m, step), base, tensors[3],
                       chosen, columns);
            });
    return nullptr;
}

}  // namespace rooftile
