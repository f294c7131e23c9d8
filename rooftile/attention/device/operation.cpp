// Attention's half that needs a kernel compiler or a GPU, as the stations see it.
#include <cmath>

#include <fmt/core.h>

#include "rooftile/attention/device/kernel.hpp"
#include "rooftile/attention/device/trial.hpp"
#include "rooftile/attention/operation.hpp"
#include "rooftile/emit/plain_graph.hpp"
#include "rooftile/measure/device_operation.hpp"
#include "rooftile/tiled/device/back_to_back_story.hpp"

namespace rooftile {
namespace {

class PreparedAttention final : public PreparedTrial {
  public:
    PreparedAttention(const AttentionProblem& problem, const MeasureOptions& options) : problem_(problem) {
        if (options.verify) compile_attention_reference(problem, Driver::instance().device(options.device).arch());
    }
    std::unique_ptr<Trial> begin(Bench& bench, std::vector<Timing>&) override { return attention_trial(problem_, bench); }

  private:
    AttentionProblem problem_;
};

/// Each query's keys one by one, and the row of its head's elements.
std::optional<PlainLoop> attention_loop(const AttentionProblem& p) {
    if (p.score || p.cached) return {};
    const auto tensors = attention_tensors(p);
    const auto &q = tensors[0], &k = tensors[1], &v = tensors[values_tensor(p)];
    const std::int64_t rows = p.query_rows();
    std::string head = fmt::format("    const long long b = row / {}, h = row / {} % {}, i = row % {}, g = h / {};\n", p.heads * rows,
                                   rows, p.heads, rows, p.heads / p.kv_heads);
    PlainLoop out;
    if (p.packed()) {
        head +=
            "    int s = 0;\n    while (t.cu_seqlens[s + 1] <= i) ++s;\n    const long long first_row = t.cu_seqlens[s], rows = "
            "t.cu_seqlens[s + 1] - first_row, keys = rows;\n";
        std::string begins;
        for (std::int64_t s = 0; s <= p.batch; ++s) begins += fmt::format("{}{}", s ? ", " : "", s < p.batch ? p.first_row(s) : rows);
        out.filled["cu_seqlens"] = fmt::format("[](long long s) {{ constexpr int begins[] = {{{}}}; return begins[s]; }}(i)", begins);
    } else {
        head += fmt::format("    const long long first_row = 0, rows = {}, keys = {};\n", p.queries, p.keys);
    }
    head += "    const long long place = i - first_row + keys - rows;  // of the query among the keys\n";
    const bool causal = p.mask != AttentionMask::none;
    head += causal ? "    const long long end = place + 1 < keys ? place + 1 : keys;\n" : "    const long long end = keys;\n";
    head += p.mask == AttentionMask::window
                ? fmt::format("    const long long begin = place + 1 > {0} ? place + 1 - {0} : 0;\n", p.window)
                : "    const long long begin = 0;\n";
    out.text = fmt::format(R"(/// Over the keys that a row's query sees: `see(score, key)`.
template <class See>
__device__ void each_key(const Tensors& t, long long row, See see) {{
{}    for (long long j = begin; j < end; ++j) {{
        double dot = 0;
        for (int d = 0; d < {}; ++d) dot += number(t.q, {}) * number(t.k, {});
        see(dot * {}, b, g, first_row + j);
    }}
}}
__device__ Bounded expected_o(const Tensors& t, long long e) {{
    const long long row = e / {}, d = e % {};
    double top = -1e300, total = 0, sum = 0, magnitude = 0, squares = 0;
    each_key(t, row, [&](double score, long long, long long, long long) {{ top = larger(score, top); }});
    each_key(t, row, [&](double score, long long b, long long g, long long j) {{
        const double share = exp(score - top), term = share * number(t.{}, {});
        total += share, sum += term, magnitude += fabs(term), squares += term * term;
    }});
    if (total == 0) return {{0, 0}};  // it sees no key
    // Shares are rounded to {} before they are multiplied; exponentials and sums are off by some units of fp32.
    return {{sum / total, ({} * 6 * sqrt(squares) + 0x1p-13 * magnitude) / total}};
}}
)",
                           head, p.dim, emit::place_of(q, {"b", "h", "i", "d"}), emit::place_of(k, {"b", "g", "(first_row + j)", "d"}),
                           p.score_scale(), p.dim_v, p.dim_v, p.latent ? "k" : "v", emit::place_of(v, {"b", "g", "j", "d"}),
                           attention_type_name(p.type), p.type == Type::bf16 ? "0x1p-9" : "0x1p-12");
    if (p.log_sum_exp)
        out.text += R"(__device__ Bounded expected_l(const Tensors& t, long long row) {
    double top = -1e300, total = 0;
    each_key(t, row, [&](double score, long long, long long, long long) { top = larger(score, top); });
    each_key(t, row, [&](double score, long long, long long, long long) { total += exp(score - top); });
    if (total == 0) return {-bounds::infinity, 0};
    return {top + log(total), 0x1p-13 * (1 + fabs(top))};
}
)";
    out.steps = 2 * double(p.keys) * double(p.dim);
    return out;
}

/// How the kernel of latent rows lies in shared memory and registers.
std::vector<std::string> latent_story(const Sm90AttentionConfig& c) {
    const int k = c.q_bytes(), p = k + c.stages * c.k_bytes();
    return {fmt::format("Shared memory, {} B: a tile of Q, {} rows x {} at 0, {} B; a ring of {} blocks of K, {} rows x {} each, at {}, {} B each, whose first {} columns "
                        "are V; P, {} rows x {}, at {}, {} B; barriers, what tiles are announced, and what warpgroups tell each other of rows at {}. Rows are in boxes "
                        "of 64 elements, 128 B, swizzled by 128 B",
                        c.shared_bytes(), c.tile_q, c.dim, c.q_bytes(), c.stages, c.tile_kv, c.dim, k, c.k_bytes(), c.dim_v, c.tile_q, c.tile_kv, p, c.probability_bytes(),
                        p + c.probability_bytes()),
            fmt::format("Warps: {}; warpgroup 0 loads by one thread ({} registers), warpgroups 1 and 2 compute the same {} rows ({} registers): each scores of {} of a "
                        "block's keys, {} fp32 sums, and {} of O's columns, {}",
                        c.threads() / 32, c.producer_registers, c.tile_q, c.consumer_registers, c.keys_of_warpgroup(), c.keys_of_warpgroup() / 2, c.columns_of_warpgroup(),
                        c.columns_of_warpgroup() / 2),
            wgmma_fragment("O and of a block alike")};
}

class AttentionOnDevice final : public DeviceOperation {
  public:
    CompiledKernel compile(const Plan& plan, const CompileOptions& options) const override {
        return {plan, compiled_attention(plan.own.as<AttentionPlan>(), options)};
    }
    Source source(const Plan& plan) const override { return attention_source(plan.own.as<AttentionPlan>()); }
    std::string code_key(const Plan& plan) const override { return rooftile::code_key(plan.own.as<AttentionPlan>()); }
    std::unique_ptr<PreparedTrial> prepare(const Problem& problem, const MeasureOptions& options, unsigned) const override {
        return std::make_unique<PreparedAttention>(problem.own.as<AttentionProblem>(), options);
    }
    std::vector<std::string> story(const Plan& plan) const override {
        if (plan.own.as<AttentionPlan>().problem.latent) return latent_story(kernel_config(plan.own.as<AttentionPlan>()));
        return back_to_back_story(kernel_config(plan.own.as<AttentionPlan>()).shape(), {"Q", "K", "V", "O"});
    }
    std::optional<PlainLoop> plain_loop(const Problem& problem) const override {
        return attention_loop(problem.own.as<AttentionProblem>());
    }
    std::vector<Entry> build_entries(const CompiledKernel& kernel) const override {
        const AttentionResources& r = kernel.plan().own.as<AttentionPlan>().resources;
        if (!r.producer_registers || !r.consumer_registers) return {};
        return {{"setmaxnreg", fmt::format("producer {}, consumers {}", *r.producer_registers, *r.consumer_registers),
                 "registers a thread, once roles part"}};
    }
};

}  // namespace

const DeviceOperation& attention_on_device();
const DeviceOperation& attention_on_device() {
    static const AttentionOnDevice operation;
    return operation;
}

}  // namespace rooftile
