#include "rooftile/gemm/two_gemms.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "kernels/pipeline/tile_order.cuh"
#include "rooftile/error.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/packing.hpp"
#include "rooftile/gemm/sm90_family.hpp"

namespace rooftile {
namespace {

std::string name_of_part(std::size_t i) { return i == 0 ? "the first product" : "the second product"; }

/// Against one of the two by itself.
std::string against(const GemmPlan& plan) {
    const GemmConfig& c = plan.config;
    if (!plan.buildable) return plan.why_not.empty() ? "is not buildable" : plan.why_not;
    if (name_of(c.kernel) != "sm90_gemm") return fmt::format("is {}'s; tiles of two products are sm90_gemm's alone", name_of(c.kernel));
    if (c.epilogue_apart || c.pack_a || c.pack_b) return "takes a second launch";
    if (c.cluster_m * c.cluster_n * c.split_k * c.grid_split_k > 1 || c.ctas_per_sm > 1) return "shares a tile or an SM; a CTA has a tile and an SM for itself";
    if (c.overlapped_epilogue || c.dynamic_scheduler || c.reverse || ordered_by_table(c.order)) return "takes its tiles in another way than from the queue of both";
    // Its consumers hold both products' places, and the queue's.
    constexpr int beside = 8;
    const Sm90GemmConfig k = kernel_config(plan);
    if (k.consumer_registers > 0 && k.accumulator_registers() + k.working_registers() + beside > k.consumer_registers)
        return fmt::format("needs {} registers a thread beside its sums, and there are {}", k.working_registers() + beside, k.consumer_registers - k.accumulator_registers());
    if (!stores_by_tma(plan.problem) || plan.problem.batch > 1 || plan.problem.groups || plan.problem.results() > 1 || is_fp8(plan.problem.a_type))
        return "is no single product of 16 bits that leaves by TMA";
    return {};
}

}  // namespace

std::string no_two_gemms(const GemmPlan& first, const GemmPlan& second) {
    const GemmPlan* const plans[] = {&first, &second};
    for (std::size_t i = 0; i < 2; ++i)
        if (const std::string why = against(*plans[i]); !why.empty()) return name_of_part(i) + " " + why;
    if (first.config.schedule != second.config.schedule || first.config.consumer_warpgroups != second.config.consumer_warpgroups)
        return "their warpgroups take turns in different ways";
    const GemmProblem &p = first.problem, &q = second.problem;
    if (q.m != p.m || q.k != p.result_n() || q.a_type != p.c_type || q.a_major != Major::k || q.lda != p.ldc)
        return fmt::format("the second product reads {} x {} where the first one stores {} x {}", q.m, q.k, p.m, p.result_n());
    if (p.epilogue && std::ranges::any_of(p.epilogue->operands, &EpilogueOperand::by_row)) return "the first epilogue reads rows, whose places are not H's";
    if (operand_staged(p, 1) && operand_staged(q, 1)) return "both epilogues' operands want the same barriers";
    return {};
}

TwoGemmsConfig two_gemms_config(const GemmPlan& first, const GemmPlan& second) { return {kernel_config(first), kernel_config(second)}; }

TwoGemmsLayout two_gemms_layout(const GemmPlan& first, const GemmPlan& second, const RowChunks& chunked) {
    constexpr std::int64_t word = 4, line = PackedCopy::alignment;
    const auto lines = [](std::int64_t words) { return ceil_div(words * word, line) * line; };
    const std::int64_t m = first.problem.m, tile_a = first.config.tile_m, tile_b = second.config.tile_m, chunk_rows = chunked.rows;
    const bool whole = chunk_rows >= m;
    if (!whole && chunked.in_room < 2) throw RequestError(fmt::format("room for {} chunks; a chunk is read while the next one is stored", chunked.in_room));
    if (!whole && (chunk_rows % tile_a != 0 || chunk_rows % tile_b != 0))
        throw RequestError(fmt::format("chunks of {} rows are no whole tiles of {} and of {} rows", chunk_rows, tile_a, tile_b));
    TwoGemmsLayout l;
    const std::int64_t rows = ceil_div(m, tile_a);
    l.chunks = whole ? 1 : int(ceil_div(m, chunk_rows));
    l.first_chunk_rows = int(whole ? rows : chunk_rows / tile_a);
    l.second_chunk_rows = int(whole ? ceil_div(m, tile_b) : chunk_rows / tile_b);
    const bool reused = l.chunks > chunked.in_room;
    l.room_chunks = reused ? chunked.in_room : l.chunks;
    l.room_rows = reused ? l.room_chunks * chunk_rows : m;
    l.rows_ready = line;
    l.chunks_taken = l.rows_ready + lines(rows);
    l.between = l.chunks_taken + lines(l.chunks);
    l.bytes = l.between + l.room_rows * first.problem.result_n() * bytes_of(first.problem.c_type);
    return l;
}

namespace {

TwoProductsKernel kernel_of(const Machine& machine, const GemmPlan& first, const GemmPlan& second, const RowChunks& chunked) {
    TwoProductsKernel out;
    out.why_not = no_two_gemms(first, second);
    if (!out.why_not.empty()) return out;
    const auto limit = machine.find("shared.per_cta");
    TwoGemmsConfig config = two_gemms_config(first, second);
    // Each plan's own ring is no less deep than what both have room for.
    int stages = std::min(first.config.stages, second.config.stages);
    const auto bytes = [&](int deep) {
        config.first.stages = config.second.stages = deep;
        return config.shared_bytes();
    };
    if (limit)
        while (stages > 2 && bytes(stages) > limit->value) --stages;
    out.stages = stages;
    out.shared_bytes = bytes(stages);
    if (limit && double(out.shared_bytes) > limit->value)
        out.why_not = fmt::format("both need {} B of shared memory; a CTA has {:.0f}", out.shared_bytes, limit->value);
    out.threads = config.first.threads();
    out.workspace_bytes = two_gemms_layout(first, second, chunked).bytes;
    return out;
}

class TwoGemms final : public TwoProducts {
  public:
    TwoProductsKernel kernel(const Machine& machine, const Plan& first, const Plan& second, const RowChunks& chunks) const override {
        return kernel_of(machine, first.own.as<GemmPlan>(), second.own.as<GemmPlan>(), chunks);
    }
};

}  // namespace

const TwoProducts& two_gemms() {
    static const TwoGemms both;
    return both;
}

}  // namespace rooftile
