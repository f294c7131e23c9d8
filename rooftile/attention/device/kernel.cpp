#include "rooftile/attention/device/kernel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/attention/device/score_source.hpp"
#include "rooftile/attention/space.hpp"
#include "rooftile/elapsed.hpp"
#include "rooftile/runtime/axes_map.hpp"
#include "rooftile/runtime/cache.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/in_contexts.hpp"

namespace rooftile {
namespace {

constexpr int access_bytes = 16;  // of TMA, and of stores of O
constexpr std::size_t counter_bytes = 256;

/// A kernel in one context.
struct Loaded {
    Function function, combine{};  ///< the second: where parts are added up apart
    int sms = 0;
};

AttentionStrides strides_of(const AttentionPitch& pitch) { return {pitch.row, pitch.head, pitch.batch}; }

/// Boxes of `box_rows` rows and 64 elements of a tensor of `heads` x `rows` x `dim`.
TensorMapRequest request_of(const AttentionProblem& p, AttentionOperand operand, const void* base, std::int64_t heads,
                            std::int64_t rows, std::int64_t dim, int box_rows) {
    const AttentionPitch pitch = pitch_of(p, operand);
    TensorMapRequest request;
    request.type = p.type;
    request.base = reinterpret_cast<DevicePointer>(base);
    request.inner = dim;
    request.outer = rows;
    request.outer_stride_bytes = pitch.row * Sm90AttentionConfig::element_bytes;
    request.matrices[0] = heads;
    request.matrices[1] = operand == AttentionOperand::k || operand == AttentionOperand::v ? p.key_batches() : p.packed() ? 1 : p.batch;
    request.matrix_stride_bytes[0] = pitch.head * Sm90AttentionConfig::element_bytes;
    request.matrix_stride_bytes[1] = pitch.batch * Sm90AttentionConfig::element_bytes;
    request.box_inner = Sm90AttentionConfig::box_elements;
    request.box_outer = box_rows;
    request.swizzle_bytes = Sm90AttentionConfig::swizzle_bytes;
    request.l2_promotion_bytes = 128;
    return request;
}

/// Boxes of whole queries with the heads that share keys, side by side.
AxesMapRequest grouped_request(const AttentionProblem& p, const void* base, int tile_q) {
    const AttentionPitch pitch = pitch_of(p, AttentionOperand::q);
    AxesMapRequest request;
    request.type = p.type;
    request.base = reinterpret_cast<DevicePointer>(base);
    request.axes = 4;
    const std::int64_t extents[] = {p.dim, p.heads * p.group, p.queries / p.group, p.batch}, strides[] = {pitch.head, pitch.row, pitch.batch};
    const int box[] = {Sm90AttentionConfig::box_elements, int(p.group), tile_q / int(p.group), 1};
    std::ranges::copy(extents, request.extents);
    std::ranges::transform(strides, request.stride_bytes, [](std::int64_t elements) { return elements * Sm90AttentionConfig::element_bytes; });
    std::ranges::copy(box, request.box);
    return request;
}

class AttentionRunnable final : public Runnable {
  public:
    AttentionRunnable(AttentionPlan plan, Source source, CachedCompile compiled, double seconds)
        : plan_(std::move(plan)), config_(kernel_config(plan_)), split_(split_bytes(plan_.problem, plan_.config)), source_(std::move(source)), compiled_(std::move(compiled)),
          seconds_(seconds) {}

    KernelCode code() const override { return code_of(source_, compiled_, seconds_); }
    std::string ptx() const override { return compile_to_ptx(source_); }
    std::size_t workspace_bytes() const override { return counter_bytes + std::size_t(split_.arrived + split_.partials); }
    std::int64_t shared_bytes() const override { return config_.shared_bytes(); }
    void load() const override { loaded(); }

    void launch(Stream stream, std::span<void* const> tensors, void* workspace) const override {
        const AttentionProblem& p = plan_.problem;
        const std::size_t output = output_tensor(p), wanted = output + 1 + (p.log_sum_exp ? 1 : 0);
        if (tensors.size() != wanted)
            throw RequestError(fmt::format("{} tensors are given; attention has {}", tensors.size(), wanted));
        if (p.query_rows() == 0) return;  // nothing to write
        check_pointer("Q", tensors[0], access_bytes);
        if (p.key_rows() > 0) check_pointer("K", tensors[1], access_bytes);
        if (p.key_rows() > 0 && !p.latent) check_pointer("V", tensors[2], access_bytes);
        if (p.packed()) check_pointer("cu_seqlens", tensors[bounds_tensor(p)], sizeof(int));
        if (p.cached) check_pointer("lengths", tensors[bounds_tensor(p)], sizeof(int));
        if (p.paged()) check_pointer("block_table", tensors[table_tensor(p)], sizeof(int));
        std::vector<const void*> score;
        for (std::size_t i = first_score_tensor(p); i < output; ++i) {
            const ScoreOperand& operand = p.score->operands[i - first_score_tensor(p)];
            check_pointer(operand.name, tensors[i], bytes_of(operand.element));
            score.push_back(tensors[i]);
        }
        check_pointer("O", tensors[output], access_bytes);
        if (p.log_sum_exp) check_pointer("L", tensors[output + 1], sizeof(float));
        check_pointer("the workspace", workspace, sizeof(unsigned));
        AttentionArguments arguments = attention_arguments(p, plan_.config.section_heads);
        arguments.q = tensors[0], arguments.k = tensors[1], arguments.v = tensors[values_tensor(p)], arguments.o = tensors[output];
        (p.cached ? arguments.lengths : arguments.cu_seqlens) = p.alike() ? nullptr : static_cast<const int*>(tensors[bounds_tensor(p)]);
        arguments.block_table = p.paged() ? static_cast<const int*>(tensors[table_tensor(p)]) : nullptr;
        arguments.log_sum_exp = p.log_sum_exp ? static_cast<float*>(tensors[output + 1]) : nullptr;
        arguments.counter = static_cast<unsigned*>(workspace);
        char* const parts = static_cast<char*>(workspace) + counter_bytes;
        arguments.arrived = reinterpret_cast<unsigned*>(parts), arguments.partials = reinterpret_cast<float*>(parts + split_.arrived);
        TensorMap q{}, k{}, v{};
        if (config_.grouped) encode(q, grouped_request(p, tensors[0], config_.tile_q));
        else encode(q, request_of(p, AttentionOperand::q, tensors[0], p.heads, p.query_rows(), p.dim, config_.tile_q));
        if (p.key_rows() > 0) {  // else no tile has a block
            const int rows = int(p.paged() ? std::min<std::int64_t>(p.page, config_.tile_kv) : config_.tile_kv);
            encode(k, request_of(p, AttentionOperand::k, tensors[1], p.kv_heads, p.key_rows(), p.dim, rows));
            if (!p.latent) encode(v, request_of(p, AttentionOperand::v, tensors[2], p.kv_heads, p.key_rows(), p.dim_v, rows));
        }
        const Loaded& here = loaded();
        Launch launch;
        launch.grid_x = config_.split ? unsigned(plan_.config.splits) : unsigned(std::min<std::int64_t>(most_tiles(p, config_.tile_q), here.sms));
        launch.block_x = unsigned(config_.threads());
        launch.shared_bytes = unsigned(config_.shared_bytes());
        launch.programmatic_dependent = true;
        launch.stream = stream;
        if (p.latent) {
            rooftile::launch(here.function, launch, q, k, arguments);
            if (!config_.combine_apart) return;
            Launch combine = launch;
            combine.grid_x = unsigned(most_tiles(p, config_.tile_q));
            combine.grid_y = unsigned(config_.combine_ctas_a_tile(int(std::min<std::int64_t>(rows_of_tile(config_.tile_q, int(p.group)), p.queries))));
            combine.block_x = unsigned(Sm90AttentionConfig::combine_threads);
            combine.shared_bytes = 0;
            return rooftile::launch(here.combine, combine, arguments, int(launch.grid_x));
        }
        if (!p.score) return rooftile::launch(here.function, launch, q, k, v, arguments);
        score.resize(std::max<std::size_t>(score.size(), 1));  // an empty class has a byte
        void* pointers[] = {&q, &k, &v, &arguments, score.data(), nullptr};
        launch_raw(here.function, launch, pointers);
    }

  private:
    const Loaded& loaded() const {
        return contexts_.of_module(compiled_.compiled, plan_.arch, [&](const Module& module, int device) {
            Loaded made{module.function(compiled_.compiled.lowered_names.front())};
            made.function.allow_shared(config_.shared_bytes());
            if (config_.combine_apart) made.combine = module.function(compiled_.compiled.lowered_names.at(1));
            made.sms = Driver::instance().attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
            return made;
        });
    }

    AttentionPlan plan_;
    Sm90AttentionConfig config_;
    SplitBytes split_;
    Source source_;
    CachedCompile compiled_;
    double seconds_;
    InContexts<Loaded> contexts_;
};

}  // namespace

Sm90AttentionConfig kernel_config(const AttentionPlan& plan) {
    Sm90AttentionConfig config = kernel_config(plan.problem, plan.config);
    if (plan.resources.producer_registers) config.producer_registers = int(*plan.resources.producer_registers);
    if (plan.resources.consumer_registers) config.consumer_registers = int(*plan.resources.consumer_registers);
    return config;
}

Source attention_source(const AttentionPlan& plan) {
    if (!plan.buildable) throw RequestError("not buildable: " + plan.why_not);
    const Sm90AttentionConfig c = kernel_config(plan);
    Source source;
    source.name = kernel_name(plan.problem);
    source.text = plan.problem.score ? score_text(*plan.problem.score) : fmt::format("#include \"kernels/attention/{}.cuh\"\n", source.name);
    const auto named = [&](std::string_view kernel) {
        return fmt::format(
        "rooftile::{}{}<rooftile::Sm90AttentionConfig{{.tile_q={}, .tile_kv={}, .dim={}, .dim_v={}, .stages={}, "
        ".turns={}, .producer_registers={}, .consumer_registers={}, .type=rooftile::Type::{}, "
        ".mask=rooftile::AttentionMask::{}, .split={}, .grouped={}, .cache={}, .page={}, .ctas_per_sm={}, .piece={}, .packed={}{}}}{}>",
        kernel, plan.problem.score ? "_scored" : "",
        c.tile_q, c.tile_kv, c.dim, c.dim_v, c.stages, c.turns, c.producer_registers, c.consumer_registers,
        attention_type_name(c.type), name_of(c.mask), c.split, c.grouped, c.cache, c.page, c.ctas_per_sm, c.piece, c.packed, !c.latent ? "" : c.combine_apart ? ", .combine_apart=true, .latent=true" : ", .latent=true",
        plan.problem.score ? ", rooftile::score::Score" : "");
    };
    source.name_expressions = {named(source.name)};
    if (c.combine_apart) source.name_expressions.push_back(named("sm90_latent_combine"));
    source.arch = nvrtc_arch(plan.arch);
    return source;
}

AttentionArguments attention_arguments(const AttentionProblem& p, std::int64_t section_heads) {
    AttentionArguments a{};
    a.extent = {p.mask, int(p.query_rows()), int(p.packed() ? p.key_rows() : p.keys), int(p.window), int(p.group)};
    a.page = int(p.page), a.table_pages = int(p.pages_of_a_batch());
    a.heads = int(p.heads);
    a.kv_heads = int(p.kv_heads);
    a.batches = int(p.packed() ? 1 : p.batch);
    a.sequences = int(p.packed() ? p.batch : 0);
    a.section_heads = int(section_heads);
    constexpr double log2_of_e = 1.4426950408889634;
    const double scale = p.score_scale();
    a.scale = float(scale);
    a.scale_log2 = float(log2_of_e * (p.score ? 1 : scale));
    a.dim = int(p.dim);
    a.dim_v = int(p.dim_v);
    a.q_strides = strides_of(pitch_of(p, AttentionOperand::q));
    a.k_strides = strides_of(pitch_of(p, AttentionOperand::k));
    a.v_strides = strides_of(pitch_of(p, AttentionOperand::v));
    a.o_strides = strides_of(pitch_of(p, AttentionOperand::o));
    return a;
}

std::shared_ptr<const Runnable> compiled_attention(const AttentionPlan& plan, const CompileOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    Source source = attention_source(plan);
    source.line_info = options.line_info;
    CachedCompile compiled;
    try {
        compiled = compile_as(options, source);
    } catch (const SpillError& error) {  // what an expression of scores takes is known but for a few registers
        const std::int64_t less = plan.config.tile_kv - key_product_step;
        if (less == 0) throw;
        throw SpillError(ExitCode::compile_failed, fmt::format("{}; --tile-kv {} or less leaves a thread more", error.what(), less), error.detail());
    }
    return std::make_shared<const AttentionRunnable>(plan, std::move(source), std::move(compiled), seconds_since(start));
}

std::string code_key(const AttentionPlan& plan) { return cache_key(attention_source(plan)).hash; }

}  // namespace rooftile
