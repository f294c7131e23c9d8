// A Python file with one triton.Config and a kernel that takes it; and block sizes of the same model for servers.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "rooftile/core/random.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/export/exports.hpp"
#include "rooftile/gemm/export/triton_model.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/plan_text.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile {
namespace {

std::string torch_type(Type type) {
    switch (type) {
        case Type::bf16:
            return "bfloat16";
        case Type::fp16:
            return "float16";
        case Type::fp32:
            return "float32";
        case Type::fp8_e4m3:
            return "float8_e4m3fn";
        case Type::fp8_e5m2:
            return "float8_e5m2";
    }
    return {};
}

std::string triton_label(const TritonConfig& t) {
    return fmt::format("{}x{}x{}, {} stages, {} warps, bands of {}", t.block_m, t.block_n, t.block_k, t.stages, t.warps, t.group_m);
}

/// Whether every line of an operand begins at a multiple of 16 B, as a tensor descriptor takes it.
bool has_descriptors(const Machine& machine, const GemmProblem& p) {
    const auto aligned = [](std::int64_t pitch, std::int64_t offset, Type type) {
        return pitch * bytes_of(type) % 16 == 0 && offset * bytes_of(type) % 16 == 0;
    };
    return machine.has("tma") && aligned(p.lda, p.a_offset, p.a_type) && aligned(p.ldb, p.b_offset, p.b_type)
           && aligned(p.ldc, p.c_offset, p.c_type);
}

std::vector<std::string> reasons_of(const TritonPlan& plan, const GemmProblem& p, TritonLoads loads) {
    const TritonUse& use = plan.use;
    const TritonConfig& t = plan.config;
    return {fmt::format("why: {}; operands by {}", use.wgmma ? "wgmma" : "mma.sync",
                        loads == TritonLoads::descriptors ? "tensor descriptors (TMA)" : "cp.async"),
            fmt::format("  {} FLOP a loaded byte; bound by {}",
                        std::lround(2.0 * t.block_m * t.block_n / (bytes_of(p.a_type) * t.block_m + bytes_of(p.b_type) * t.block_n)),
                        name_of(plan.bound)),
            fmt::format("  {} of 128 sums and about {} of 255 registers a thread, {} B of shared memory, CTAs an SM: {}", use.accumulators,
                        use.registers, use.shared_bytes, use.ctas_per_sm),
            fmt::format("  {} tiles, waves {:.0f}, the SMs {:.0f} % used; about {:.1f} MB from and to DRAM", plan.waves.tiles,
                        plan.waves.waves, 100 * plan.waves.efficiency, plan.dram_bytes / 1e6)};
}

std::vector<std::string> triton_losses(const GemmExport& from, const TritonConfig& t) {
    if (from.plans.empty()) return {};
    const GemmProblem& p = from.problem;
    const GemmConfig& ours = from.plans.front()->config;
    std::vector<std::string> lost = lost_features(p, ours, to_triton);
    if (std::tuple(ours.tile_m, ours.tile_n, ours.tile_k) != std::tuple(t.block_m, t.block_n, t.block_k))
        lost.insert(lost.begin(),
                    fmt::format("the tile {}x{}x{}: sides are powers of two, and what suits our kernel need not suit Triton's", ours.tile_m,
                                ours.tile_n, ours.tile_k));
    return lost;
}

void refuse_for_triton(const GemmExport& from) {
    const GemmProblem& p = from.problem;
    refuse_more_than_plain(from.target, p);
    if (p.groups && (p.a_major != Major::k || p.b_major != Major::k))
        throw RequestError(fmt::format("--to {}: groups take A and B with k contiguous", from.target));
    if (is_fp8(p.a_type) && (p.a_major != Major::k || p.b_major != Major::k))
        throw RequestError(fmt::format("--to {}: matrix units take fp8 with k contiguous", from.target));
}

[[noreturn]] void refuse_unknown(const GemmExport& from) {
    throw RequestError(fmt::format(
        "--to {}: no configuration of Triton fits {}, or a number is unknown that its time needs; `rooftile plan gemm` names it",
        from.target, from.machine->id));
}

}  // namespace

Exported export_triton(const GemmExport& from) {
    refuse_for_triton(from);
    const GemmProblem& p = from.problem;
    const TritonLoads loads = p.groups                            ? TritonLoads::gathered
                              : has_descriptors(*from.machine, p) ? TritonLoads::descriptors
                                                                  : TritonLoads::pointers;
    const std::vector<TritonPlan> plans = fastest_triton({TritonModel(*from.machine, p, loads)}, from.request);
    if (plans.empty()) refuse_unknown(from);
    const TritonPlan& plan = plans.front();
    const TritonConfig& t = plan.config;
    const std::string ours = from.plans.empty()
                                 ? "has no plan of that tile"
                                 : fmt::format("{} ({})", microseconds(from.plans[0]->prediction.time_us), label_of(from.plans[0]->config));
    Exported out{.text = {}, .file = {}, .time_us = plan.seconds * 1e6, .lost = triton_losses(from, t), .notes = {}};
    if (loads == TritonLoads::pointers && from.machine->has("tma"))
        out.notes.push_back(
            "lines of an operand begin off multiples of 16 B: no tensor descriptors, and what narrower loads cost is not in the predicted "
            "time");
    const std::string name = fmt::format("{}x{}x{}{}", p.m, p.n, p.k, p.groups ? fmt::format("_in_{}_groups", p.groups->count()) : "");
    out.file = fmt::format("matmul_{}.py", name);
    std::vector<std::string> head = {
        fmt::format("C[{0},{1}] = A[{0},{2}] B[{2},{1}]{3} for {4}, by rooftile {5}, for Triton 3.6", p.m, p.n, p.k,
                    p.groups ? fmt::format(", rows in {} groups with a B each", p.groups->count()) : "", from.machine->name, version()),
        fmt::format("predicted: {} ({}); our own kernel: {}", microseconds(out.time_us), triton_label(t), ours)};
    for (std::string& reason : reasons_of(plan, p, loads)) head.push_back(std::move(reason));
    if (!out.lost.empty()) head.push_back("what Triton cannot express of our plan:");
    for (const std::string& lost : out.lost) head.push_back("  - " + lost);
    for (const std::string& note : out.notes) head.push_back("note: " + note);
    std::string comment = comment_lines(head, "#");
    comment.pop_back();
    const auto python = [](bool value) { return std::string(value ? "True" : "False"); };
    std::string list;
    if (p.groups) list = fmt::format("[{}]", fmt::join(p.groups->rows(), ", "));
    const char* file = loads == TritonLoads::descriptors ? "triton_tma.py"
                       : loads == TritonLoads::pointers  ? "triton_pointers.py"
                                                         : "triton_groups.py";
    const char* lines = loads == TritonLoads::descriptors ? " whose lines begin at multiples of 16 B" : "";
    std::vector<std::pair<std::string, std::string>> values = {
        {"MATMUL", filled_template("triton_matmul.py", {{"LINES", lines}})},
        {"MAIN", filled_template("triton_main.py", {{"TIME", microseconds(out.time_us)}})},
        {"HEAD", comment},
        {"GROUPS", list},
        {"A_K_MAJOR", python(p.a_major == Major::k)},
        {"B_K_MAJOR", python(p.b_major == Major::k)},
        {"A_TYPE", torch_type(p.a_type)},
        {"B_TYPE", torch_type(p.b_type)},
        {"C_TYPE", torch_type(p.c_type)}};
    // clang-format off
    const std::pair<const char*, std::int64_t> numbers[] = {
        {"M", p.m}, {"N", p.n}, {"K", p.k}, {"BLOCK_M", t.block_m}, {"BLOCK_N", t.block_n}, {"BLOCK_K", t.block_k}, {"GROUP_M", t.group_m},
        {"WARPS", t.warps}, {"STAGES", t.stages}};
    // clang-format on
    for (const auto& [key, number] : numbers) values.emplace_back(key, std::to_string(number));
    out.text = filled_template(file, values);
    while (out.text.ends_with("\n\n")) out.text.pop_back();
    return out;
}

namespace {

constexpr int moe_tokens[] = {1,  2,   4,   8,   16,   24,   32,   48,   64,
                              96, 128, 256, 512, 1024, 1536, 2048, 3072, 4096};  // as vLLM's own files have them

/// Rows of each expert where tokens go to `top_k` different ones each, drawn by the shares that `rows` have: the same every time.
std::vector<std::int64_t> routed_rows(std::span<const std::int64_t> rows, std::int64_t tokens, std::int64_t top_k) {
    Random random(1);
    std::vector<double> upto(rows.size());
    std::partial_sum(rows.begin(), rows.end(), upto.begin());
    std::vector<std::int64_t> out(rows.size()), taken(rows.size(), -1);
    for (std::int64_t token = 0; token < tokens; ++token)
        for (std::int64_t i = 0; i < top_k;) {
            const auto expert = std::size_t(std::ranges::upper_bound(upto, random.uniform(0, upto.back())) - upto.begin());
            if (taken[expert] == token) continue;
            taken[expert] = token, ++out[expert], ++i;
        }
    return out;
}

/// The product of w1 (gate and up) or, `down`, of w2, of so many tokens.
GemmProblem moe_product(const GemmProblem& p, const std::vector<std::int64_t>& rows, bool down) {
    GemmProblem q =
        gemm_problem(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), down ? p.k : p.n, down ? p.n / 2 : p.k, p.a_type);
    q.c_type = p.c_type, q.b_type = p.b_type;
    q.groups = SharedGroups(rows);
    q.b_stride = q.n * q.k;
    return q;
}

/// As torch names the device, blanks replaced; vLLM takes one name for all of H200's family.
std::string device_file_name(const Machine& machine) {
    std::string name = machine.device_names.empty() ? machine.name : machine.device_names.front();
    if (machine.device_names.empty() == false && name.find("H200") != name.npos) name = "NVIDIA H200";
    std::ranges::replace(name, ' ', '_');
    return name;
}

}  // namespace

Exported export_vllm_moe(const GemmExport& from) {
    const GemmProblem& p = from.problem;
    if (!p.groups)
        throw RequestError(
            "--to vllm-moe: give --groups, the rows of each expert (128x[64..512]), with n and k of w1, gate and up together");
    refuse_for_triton(from);
    if (p.n % 2 != 0) throw RequestError(fmt::format("--to vllm-moe: n = {} must be even: w1 is gate and up, each n / 2 wide", p.n));
    const std::int64_t top_k = from.given.has("top_k")
                                   ? whole_number(from.given.name("top_k"), from.given.text("top_k"), 1, p.groups->with_rows())
                                   : std::min<std::int64_t>(8, p.groups->with_rows());
    Exported out{.text = "{\n",
                 .file = fmt::format("E={},N={},device_name={}{}.json", p.groups->count(), p.n / 2, device_file_name(*from.machine),
                                     is_fp8(p.a_type) ? ",dtype=fp8_w8a8" : ""),
                 .time_us = {},
                 .lost = {},
                 .notes = {}};
    for (const int tokens : moe_tokens) {
        const std::vector<std::int64_t> rows = routed_rows(p.groups->rows(), tokens, top_k);
        std::vector<TritonModel> models;
        for (const bool down : {false, true}) models.emplace_back(*from.machine, moe_product(p, rows, down), TritonLoads::gathered);
        const std::vector<TritonPlan> plans = fastest_triton(models, from.request);
        if (plans.empty()) refuse_unknown(from);
        const TritonConfig& t = plans.front().config;
        out.text += fmt::format(
            "{}    \"{}\": {{\n        \"BLOCK_SIZE_M\": {},\n        \"BLOCK_SIZE_N\": {},\n        \"BLOCK_SIZE_K\": {},\n"
            "        \"GROUP_SIZE_M\": {},\n        \"num_warps\": {},\n        \"num_stages\": {}\n    }}",
            tokens == moe_tokens[0] ? "" : ",\n", tokens, t.block_m, t.block_n, t.block_k, t.group_m, t.warps, t.stages);
        out.time_us = (plans[0].seconds + plans[1].seconds) * 1e6;  // of the most tokens
    }
    out.text += "\n}\n";
    if (!from.plans.empty()) out.lost = lost_features(p, from.plans[0]->config, to_triton);
    out.notes = {
        fmt::format("vLLM reads {} from VLLM_TUNED_CONFIG_FOLDER or fused_moe/configs/, SGLang from fused_moe_triton/configs/triton_X_Y_Z/ "
                    "of its Triton; JSON has no "
                    "comments, so what is lost is said here",
                    out.file),
        fmt::format("one file serves w1 ({}x{}) and w2 ({}x{}): each line is the fastest by the sum of both; {} experts a token, drawn by "
                    "the shares that --groups has",
                    p.n, p.k, p.k, p.n / 2, top_k),
        fmt::format("predicted at {} tokens: {} of both products", moe_tokens[std::size(moe_tokens) - 1], microseconds(out.time_us))};
    if (from.machine->device_names.empty())
        out.notes.push_back(fmt::format("{} names no device: put torch.cuda.get_device_name() into the file's name", from.machine->id));
    return out;
}

}  // namespace rooftile
