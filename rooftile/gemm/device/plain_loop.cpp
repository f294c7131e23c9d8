#include <cmath>

#include <fmt/core.h>

#include "rooftile/emit/launcher.hpp"
#include "rooftile/emit/plain_graph.hpp"
#include "rooftile/gemm/device/plain_loop.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/many_quantised_model.hpp"
#include "rooftile/gemm/sm80_few_space.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/gemm/variants.hpp"
#include "rooftile/tiled/device/back_to_back_story.hpp"

namespace rooftile {

std::optional<PlainLoop> gemm_plain_loop(const GemmProblem& p) {
    const auto tensors = gemm_operation().tensors({&gemm_operation(), Own::of(p)});
    const bool groups = bool(p.groups), batch = p.batch > 1;
    if (p.is_quantised() || p.pairs() != Pairs::none || (p.epilogue && (groups || batch) && !p.block_scales())) return {};
    const auto& a = tensors[0];
    const auto& b = tensors[1];
    std::string body = fmt::format("    const long long i = e / {} % {}, j = e % {};\n", p.n, p.m, p.n);
    body += batch ? fmt::format("    const long long p = e / {};\n", p.m * p.n) : "    long long p = 0;\n";
    PlainLoop out;
    if (groups) {
        body += "    while (t.offsets[p + 1] <= i) ++p;\n";
        std::string begins;
        for (const auto begin : p.groups->offsets()) begins += fmt::format("{}{}", begins.empty() ? "" : ", ", begin);
        out.filled["offsets"] = fmt::format("[](long long g) {{ constexpr int begins[] = {{{}}}; return begins[g]; }}(i)", begins);
    } else if (!batch) {
        body.erase(body.rfind("    long long p"));
    }
    const std::string at_a = batch ? emit::place_of(a, {"p", "i", "k"}) : emit::place_of(a, {"i", "k"});
    const std::string at_b = batch || groups ? emit::place_of(b, {"p", "k", "j"}) : emit::place_of(b, {"k", "j"});
    std::string scales;
    if (p.block_scales()) {
        const auto &sa = tensors[p.first_scale()], &sb = tensors[p.first_scale() + 1];
        scales =
            fmt::format(" * number(t.{}, {}) * number(t.{}, {})", emit::identifier_of(sa.name), emit::place_of(sa, {"(k / 128)", "i"}),
                        emit::identifier_of(sb.name), groups ? emit::place_of(sb, {"p", "(j / 128)", "(k / 128)"}) : emit::place_of(sb, {"(j / 128)", "(k / 128)"}));
    }
    body += fmt::format(R"(    double sum = 0, magnitude = 0, squares = 0;
    for (long long k = 0; k < {}; ++k) {{
        const double product = number(t.{}, {}) * number(t.{}, {}){};
        sum += product, magnitude += fabs(product), squares += product * product;
    }}
)",
                        p.k, emit::identifier_of(a.name), at_a, emit::identifier_of(b.name), at_b, scales);
    // A step of the matrix instruction adds 16 products at once and cuts what is below the last bit of fp32; of
    // 8 bits 32 products, to 14 bits.
    const double k = double(p.k);
    if (is_fp8(p.a_type))
        body += fmt::format("    return {{sum, {} * 0x1p-13 * sqrt(squares) + magnitude * 0x1p-20}};\n",
                            8 * std::sqrt(p.promoted() ? 4.0 : 4 + k / 32));
    else body += fmt::format("    return {{sum, {} * 0x1p-24 * magnitude}};\n", 16 + int(k / 8));
    if (!p.epilogue || p.block_scales()) {
        const TensorInfo& result = tensors.back();
        out.text = fmt::format("__device__ Bounded expected_{}(const Tensors& t, long long e) {{\n{}}}\n",
                               emit::identifier_of(result.name), body);
        out.steps = k;
        if (p.epilogue && p.epilogue->graph.nodes.size() > 2) return {};
        return out;
    }
    PlainLoop graph = emit::plain_graph(p.epilogue->graph, {{p.epilogue->graph.inputs[0], body}}, k);
    graph.filled = out.filled;
    return graph;
}

std::vector<std::string> gemm_story(const GemmPlan& plan) {
    std::vector<std::string> out;
    if (name_of(plan.config.kernel) == "sm90_gemm") {
        const Sm90GemmConfig c = kernel_config(plan);
        const int epilogue = c.stages * c.stage_pitch(), barriers = epilogue + c.epilogue_bytes() + c.stages * c.scale_bytes();
        const auto side = [](const char* name, int rows, int columns, Major major, const char* other) {
            return major == Major::k ? fmt::format("{} {} x {}, rows of K", name, rows, columns)
                                     : fmt::format("{} {} x {}, rows of {}", name, columns, rows, other);
        };
        out.push_back(
            fmt::format("Shared memory, {} B: a ring of {} stages at 0, {} B each: {} at 0, {} at {}; 128 B a row, swizzled by 128 B",
                        c.shared_bytes(), c.stages, c.stage_pitch(), side("A", c.tile_m, c.tile_k, c.a_major, "M"),
                        side("B", c.tile_n, c.tile_k, c.b_major, "N"), c.a_bytes()));
        if (c.epilogue_bytes() > 0)
            out.push_back(fmt::format("Epilogue tiles at {}: {} of each of {} warpgroups, {} B each, {} rows x {} columns a warp's store",
                                      epilogue, MatrixConfig::epilogue_tiles_in_flight, c.consumer_warpgroups, c.epilogue_tile_bytes(),
                                      c.epilogue_rows(), c.epilogue_columns()));
        out.push_back(fmt::format("Barriers at {}, {} B: full and empty of each stage{}", barriers, c.all_barrier_bytes(),
                                  c.split_k > 1 ? ", two for the exchange of sums" : ""));
        const std::string rows =
            c.swap_ab ? "columns of C (B's columns are the instruction's rows: the sums are C transposed)" : "rows of C";
        out.push_back(
            c.schedule == Schedule::pingpong
                ? fmt::format("Warps: {}; warpgroup 0 loads by one thread, warpgroups 1 and 2 multiply alternate tiles, all {} {}",
                              c.threads() / 32, c.warpgroup_m(), rows)
                : fmt::format("Warps: {}; warpgroup 0 loads by one thread, warpgroup w of 1 .. {} has {} {} from {} (w - 1) on",
                              c.threads() / 32, c.consumer_warpgroups, c.warpgroup_m(), rows, c.warpgroup_m()));
        out.push_back(wgmma_fragment(fmt::format("the {} sums a thread, {} of each {} x {} wgmma", c.accumulator_registers(),
                                                 c.row_accumulators(), MatrixConfig::wgmma_m, c.mma_n())));
        return out;
    }
    if (name_of(plan.config.kernel) == "sm80_few_gemm") {
        const Sm80FewConfig c = sm80_few_config(multiplied(plan), plan.config);
        out.push_back(fmt::format("Shared memory, {} B: a ring of {} stages, {} B each, filled by cp.async: A at 0, {} rows of {} chunks of 16 B, of which the first is that "
                                  "before the block; B at {}, {} lines of {} B, chunk c of line l at c xor l / 8 % 8",
                                  c.shared_bytes(), c.stages, c.stage_bytes(), c.tile_m, c.a_pitch_chunks(), c.a_bytes(), c.lines(),
                                  c.line_chunks() * Sm80FewConfig::chunk_bytes));
        out.push_back(fmt::format("Warp w has lines w + 8 i of the {} of B, {}: those that begin equally far past a multiple of 16 B", c.lines(),
                                  c.along_k() ? "columns of C" : "of K"));
        out.push_back("Fragments: of a 16 x 8 mma.sync, C transposed, lane l of a warp has columns l / 4 and that + 8 of those, rows 2 (l % 4) and the next");
        return out;
    }
    if (plan.problem.is_quantised() && takes_many_rows(plan.config)) {
        const Sm90ManyQuantisedConfig c = many_quantised_config(plan);
        out.push_back(fmt::format("Shared memory, {} B: a ring of {} stages, {} B each, filled by TMA: A at 0, {} rows of 64 of K in 128 B, swizzled, {} of these; "
                                  "packed weights at {}, {} B for each 64 columns of C; then fp32 sums on their way out, at {}, 32 rows of each warpgroup",
                                  c.shared_bytes(), c.stages, c.stage_bytes(), c.tile_m, c.spans, c.activation_bytes(), c.layout.block_bytes(),
                                  c.stages * c.stage_bytes()));
        out.push_back("Packed weights: blocks of 64 columns of C by 128 of K, each thread's fragments in 16 B; scales after them, then zero points");
        out.push_back(fmt::format("Warpgroups: {}, each with 64 columns of C, and one that loads by its first thread", c.warpgroups()));
        out.push_back(wgmma_fragment(fmt::format("the {} sums a thread, C transposed, of a 64 x {} wgmma whose first operand is the weights, in registers",
                                                 c.accumulator_registers(), c.tile_m)));
        return out;
    }
    if (plan.problem.is_quantised()) {
        const Sm90QuantisedConfig c = quantised_config(plan.problem, plan.config);
        out.push_back(fmt::format("Shared memory, {} B: a ring of {} stages, {} B each, filled by TMA: A at 0, {} rows of 64 of K in 128 B, swizzled, {} of these; "
                                  "packed weights at {}, {} B for each 64 columns of C; then fp32 sums on their way out, at {}",
                                  c.shared_bytes(), c.stages, c.stage_bytes(), c.tile_m, c.spans(), c.activation_bytes(), c.column_bytes(),
                                  c.stages * c.stage_bytes()));
        out.push_back("Packed weights: blocks of 64 columns of C by 128 of K, each thread's fragments in 16 B; scales after them, then zero "
                      "points");
        out.push_back("Fragments: of a 16 x 8 mma.sync, C transposed, lane l of a warp has columns l / 4 and that + 8, rows 2 (l % 4) and the next");
        return out;
    }
    const auto& t = plan.config;
    out.push_back(fmt::format("Shared memory: a ring of {} stages, each A {} x {} and B {} x {}, {} B, filled by cp.async", t.stages,
                              t.tile_m, t.tile_k, t.tile_n, t.tile_k, (t.tile_m + t.tile_n) * t.tile_k * bytes_of(plan.problem.b_type)));
    out.push_back("Fragments: of a 16 x 8 mma.sync lane l of a warp has rows l / 4 and that + 8, columns 2 (l % 4) and the next");
    return out;
}

}  // namespace rooftile
