// A CUTLASS type of a plan and a launcher: 3.x with its collectives on Hopper, 2.x before.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "rooftile/error.hpp"
#include "rooftile/gemm/export/exports.hpp"
#include "rooftile/gemm/hardware.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/gemm/plan_text.hpp"
#include "rooftile/gemm/sm80_space.hpp"
#include "rooftile/report/context.hpp"

namespace rooftile {
namespace {

constexpr int cutlass_line = 16;  // bytes that TMA, and its alignment in a type, take lines to begin at multiples of

std::string cutlass_type(Type type) {
    switch (type) {
        case Type::bf16:
            return "cutlass::bfloat16_t";
        case Type::fp16:
            return "cutlass::half_t";
        case Type::fp32:
            return "float";
        case Type::fp8_e4m3:
            return "cutlass::float_e4m3_t";
        case Type::fp8_e5m2:
            return "cutlass::float_e5m2_t";
    }
    return {};
}

/// What CUTLASS's swizzles are: no more than the band, of those that it has.
int cutlass_band(const GemmConfig& c) {
    const bool bands = c.order == Order::grouped || c.order == Order::serpentine;
    return bands ? std::min(8, int(std::bit_floor(unsigned(c.group)))) : 1;
}

/// A plan as CUTLASS computes it: of C^T where it swaps.
struct CutlassTile {
    int m, n, k, cluster_m, cluster_n, stages;
    explicit CutlassTile(const GemmConfig& c)
        : m(c.swap_ab ? c.tile_n : c.tile_m),
          n(c.swap_ab ? c.tile_m : c.tile_n),
          k(c.tile_k),
          cluster_m(c.swap_ab ? c.cluster_n : c.cluster_m),
          cluster_n(c.swap_ab ? c.cluster_m : c.cluster_n),
          stages(c.stages) {}
};

bool is_pingpong(const GemmConfig& c) { return c.schedule == Schedule::pingpong; }
/// Its persistent cooperative kernel; of one warpgroup CUTLASS has a grid of a CTA a tile.
bool is_cooperative(const GemmConfig& c) { return !is_pingpong(c) && c.consumer_warpgroups == 2; }

/// Whether its kernel can be launched as a programmatic dependent: with its macro 4.2's stream-K scheduler does not compile.
bool waits(const GemmConfig& c) { return c.programmatic_launch && c.k_parts() == 1; }

/// Shared memory beside the stages: two tiles of its epilogue, and barriers.
std::int64_t epilogue_bytes(const GemmProblem& p, const GemmConfig& c, const CutlassTile& t) {
    const std::int64_t rows = is_cooperative(c) ? std::min(128, t.m) : 64,
                       columns = std::gcd(is_fp8(p.c_type) && t.n % 64 == 0 && !is_cooperative(c) ? 64 : 32, t.n);
    return 2 * rows * columns * bytes_of(p.c_type) + 2048;
}

/// Empty: CUTLASS has such a kernel.
std::string cutlass_obstacle(const GemmProblem& p, const GemmConfig& c, double shared) {
    const CutlassTile t(c);
    if (name_of(c.kernel) == "sm80_gemm") {
        const Sm80GemmConfig s = sm80_config(p, c);
        if (std::ranges::any_of(std::array{t.m, t.n, t.k, s.warp_m(), s.warp_n()},
                                [](int side) { return side < 32 || !std::has_single_bit(unsigned(side)); }))
            return fmt::format("tile {}x{}x{} of {} warps: its tiles and warp tiles are powers of two from 32", t.m, t.n, t.k, s.warps());
        return {};
    }
    if (c.epilogue_apart || name_of(c.kernel) != "sm90_gemm") return fmt::format("{}: it has no such kernel", name_of(c.kernel));
    if (c.consumer_warpgroups > 2) return fmt::format("{} consumer warpgroups: it has one or two", c.consumer_warpgroups);
    if (t.m % (is_cooperative(c) ? 128 : 64) != 0)
        return fmt::format("{} rows by {}: multiples of {}", t.m, is_cooperative(c) ? "two warpgroups" : "a warpgroup",
                           is_cooperative(c) ? 128 : 64);
    if (t.n % 16 != 0) return fmt::format("{} columns: multiples of 16", t.n);
    if (c.k_parts() > 1 && !is_cooperative(c)) return "split K without the cooperative kernel";
    const double stage = double(t.k) * (t.m * bytes_of(p.a_type) + t.n * bytes_of(p.b_type));
    if (2 * stage + double(epilogue_bytes(p, c, t)) > shared) return "fewer than two stages beside its epilogue";
    return {};
}

void refuse_for_cutlass(const GemmExport& from) {
    const GemmProblem& p = from.problem;
    if (p.epilogue || p.alpha != 1 || p.beta != 0) refuse_more_than_plain(from.target, p);
    if (p.block_scales()) throw RequestError(fmt::format("--to {}: scales of blocks are not exported yet", from.target));
    if (p.groups) throw RequestError(fmt::format("--to {}: groups are not exported yet; --to triton has them", from.target));
    if (from.machine->has("tcgen05"))
        throw RequestError(fmt::format("--to {}: {}'s own kernels are not modelled", from.target, from.machine->id));
    for (const auto& [name, pitch, offset, stride, type] : {std::tuple{"A", p.lda, p.a_offset, p.a_stride, p.a_type},
                                                            {"B", p.ldb, p.b_offset, p.b_stride, p.b_type},
                                                            {"D", p.ldc, p.c_offset, p.c_stride, p.c_type}})
        if ((pitch | offset | stride) * bytes_of(type) % cutlass_line != 0)
            throw RequestError(fmt::format(
                "--to {}: lines of {} begin off multiples of {} B (leading dimension {}, offset {}, stride {}), which its TMA and "
                "wide copies do not take; pad them",
                from.target, name, cutlass_line, pitch, offset, stride));
}

/// The first plan that CUTLASS has a kernel of; where none is, of the tiles that it always has.
GemmPlan plan_for_cutlass(const GemmExport& from, double shared, std::string& nearest) {
    for (const GemmPlan* plan : from.plans) {
        const std::string why = plan->buildable ? cutlass_obstacle(from.problem, plan->config, shared) : plan->why_not;
        if (why.empty()) return *plan;
        if (nearest.empty()) nearest = why;
    }
    GemmRequest request = from.request;
    request.top = max_gemm_plans;
    for (const int tile_m : {128, 64}) {
        GemmRequest wanted = request;
        if (!wanted.tile_m) wanted.tile_m = tile_m;
        if (!wanted.swap_ab && from.machine->has("wgmma")) wanted.swap_ab = false;
        if (!wanted.split_k && !wanted.grid_split_k) wanted.split_k = 1;
        const auto outcome = derive(from.machine, from.problem, wanted);
        if (const auto* plans = std::get_if<Plans>(&outcome))
            for (const GemmPlan& plan : plans->plans)
                if (plan.buildable && cutlass_obstacle(from.problem, plan.config, shared).empty()) return plan;
    }
    throw RequestError(fmt::format("--to {}: none of {} plans has a kernel there; the first: {}", from.target, from.plans.size(), nearest));
}

using TemplateValues = std::vector<std::pair<std::string, std::string>>;

TemplateValues shared_values(const GemmProblem& p, const GemmConfig& c, const CutlassTile& t) {
    TemplateValues values = {{"A_TYPE", cutlass_type(c.swap_ab ? p.b_type : p.a_type)},
                             {"B_TYPE", cutlass_type(c.swap_ab ? p.a_type : p.b_type)},
                             {"D_TYPE", cutlass_type(p.c_type)}};
    // clang-format off
    const std::pair<const char*, std::int64_t> numbers[] = {
        {"TILE_M", t.m}, {"TILE_N", t.n}, {"TILE_K", t.k}, {"STAGES", t.stages}, {"SWIZZLE", cutlass_band(c)},
        {"LDA", p.lda}, {"LDB", p.ldb}, {"LDD", p.ldc},
        {"A_BATCH", p.a_stride}, {"B_BATCH", p.b_stride}, {"D_BATCH", p.c_stride}, {"M", p.m}, {"N", p.n}, {"K", p.k}, {"BATCH", p.batch}};
    // clang-format on
    for (const auto& [key, number] : numbers) values.emplace_back(key, std::to_string(number));
    return values;
}

TemplateValues values_of_sm90(const GemmProblem& p, const GemmConfig& c, const CutlassTile& t) {
    // Lines of A are its rows where K is contiguous: CUTLASS's RowMajor; of B, N x K, its ColumnMajor.
    const auto rows = [](bool contiguous) { return std::string(contiguous ? "RowMajor" : "ColumnMajor"); };
    const auto pitch = [](bool k_contiguous) { return std::string(k_contiguous ? "0" : "1"); };
    const bool a_k = p.a_major == Major::k, b_k = p.b_major == Major::k, s = c.swap_ab, along_m = (c.order == Order::column) != s;
    const char* kind = is_pingpong(c) ? "Pingpong" : is_cooperative(c) ? "Cooperative" : "";
    TemplateValues values = shared_values(p, c, t);
    // clang-format off
    values.insert(values.end(), {
        {"A_LAYOUT", rows(s ? b_k : a_k)}, {"B_LAYOUT", rows(!(s ? a_k : b_k))}, {"D_LAYOUT", rows(!s)},
        {"A_PITCH", pitch(s ? b_k : a_k)}, {"B_PITCH", pitch(s ? a_k : b_k)}, {"D_PITCH", pitch(!s)},
        {"CLUSTER_M", std::to_string(t.cluster_m)}, {"CLUSTER_N", std::to_string(t.cluster_n)},
        {"EPILOGUE", is_cooperative(c) ? "TmaWarpSpecializedCooperative" : "TmaWarpSpecialized"},
        {"SCHEDULE", fmt::format("KernelTmaWarpSpecialized{}{}", kind, is_fp8(p.a_type) && !p.promoted() ? "FP8FastAccum" : "")},
        {"SCHEDULER", c.k_parts() > 1 ? "cutlass::gemm::StreamKScheduler" : "cutlass::gemm::PersistentScheduler"},
        {"SPLITS", c.k_parts() > 1 ? fmt::format("\n    made.scheduler.splits = {};", c.k_parts()) : ""},
        {"RASTER", along_m ? "AlongM" : "AlongN"}, {"PDL", waits(c) ? "true" : "false"},
        {"SWAPPED", s ? " It computes d transposed: ElementA and LayoutA are those of b." : ""},
        {"OF_A", s ? "ElementB" : "ElementA"}, {"OF_B", s ? "ElementA" : "ElementB"},
        {"FIRST", s ? "b" : "a"}, {"SECOND", s ? "a" : "b"}, {"ROWS", s ? "n" : "m"}, {"COLUMNS", s ? "m" : "n"}});
    // clang-format on
    return values;
}

TemplateValues values_of_sm80(const GemmProblem& p, const GemmConfig& c, const CutlassTile& t) {
    const Sm80GemmConfig s = sm80_config(p, c);
    const auto alignment = [](Type type) { return std::to_string(cutlass_line / bytes_of(type)); };
    TemplateValues values = shared_values(p, c, t);
    // clang-format off
    values.insert(values.end(), {
        {"A_LAYOUT", p.a_major == Major::k ? "RowMajor" : "ColumnMajor"}, {"B_LAYOUT", p.b_major == Major::k ? "ColumnMajor" : "RowMajor"},
        {"WARP_M", std::to_string(s.warp_m())}, {"WARP_N", std::to_string(s.warp_n())},
        {"A_ALIGNMENT", alignment(p.a_type)}, {"B_ALIGNMENT", alignment(p.b_type)}, {"D_ALIGNMENT", alignment(p.c_type)},
        {"MODE", fmt::format("cutlass::gemm::GemmUniversalMode::{}", p.batch > 1 ? "kBatched" : "kGemm")}});
    // clang-format on
    return values;
}

}  // namespace

Exported export_cutlass(const GemmExport& from) {
    refuse_for_cutlass(from);
    const GemmProblem& p = from.problem;
    std::vector<std::string> unknown;
    const double shared =
        gemm_hardware(*from.machine, from.plans[0]->config.kernel->instruction(*from.machine, p.a_type), p.a_type, unknown).shared_per_cta;
    std::string nearest;
    const GemmPlan plan = plan_for_cutlass(from, shared, nearest);
    const GemmConfig& c = plan.config;
    CutlassTile t(c);
    const bool hopper = name_of(c.kernel) == "sm90_gemm";
    Exported out{.text = {}, .file = {}, .time_us = plan.prediction.time_us, .lost = lost_features(p, c, to_cutlass), .notes = {}};
    if (!nearest.empty())
        out.lost.insert(out.lost.begin(),
                        fmt::format("plan 1 ({}, {}): {}; this is the first that CUTLASS has", label_of(from.plans[0]->config),
                                    microseconds(from.plans[0]->prediction.time_us), nearest));
    const std::int64_t stage = std::int64_t{t.k} * (t.m * bytes_of(p.a_type) + t.n * bytes_of(p.b_type));
    const int fit = int((std::int64_t(shared) - (hopper ? epilogue_bytes(p, c, t) : 0)) / stage);
    if (fit < t.stages) out.lost.push_back(fmt::format("{} stages: {} fit beside its epilogue's tiles", t.stages, fit)), t.stages = fit;
    if (hopper && c.consumer_warpgroups == 1)
        out.lost.push_back("a persistent grid: with one warpgroup CUTLASS launches a CTA for each tile");
    if (!hopper && c.ctas_per_sm == 1) out.lost.push_back("a persistent grid: 2.x launches a CTA for each tile");
    if (!hopper && cutlass_band(c) > 1) out.lost.push_back("bands of rows of tiles: its swizzle has bands of columns");
    if (c.programmatic_launch && !waits(c))
        out.lost.push_back("programmatic dependent launch: CUTLASS 4.2's stream-K does not compile with CUTLASS_ENABLE_GDC_FOR_SM90");
    if (c.k_parts() > 1)
        out.lost.push_back("sums of parts of K added in shared memory: its stream-K scheduler adds them through a workspace");
    if (const int band = cutlass_band(c); hopper && band != c.group && c.group > 1)
        out.lost.push_back(fmt::format("bands of {} rows of tiles: {}", c.group, band));
    if (!c.overlapped_epilogue && is_pingpong(c)) out.notes.push_back("the epilogue's own tile is CUTLASS's choice (EpilogueTileAuto)");

    std::string name = fmt::format("gemm_{}x{}x{}", p.m, p.n, p.k);
    if (p.batch > 1) name += fmt::format("_batch_{}", p.batch);
    out.file = name + ".cu";
    std::vector<std::string> head = {
        fmt::format("D[{0},{1}] = A[{0},{2}] B[{2},{1}]{3} for {4}, by rooftile {5}, for CUTLASS 4.2 (its {6} interface)", p.m, p.n, p.k,
                    p.batch > 1 ? fmt::format(", {} of them", p.batch) : "", from.machine->name, version(), hopper ? "3.x" : "2.x"),
        fmt::format("nvcc -std=c++17 -arch={} -DNDEBUG{} --expt-relaxed-constexpr -I CUTLASS -c", hopper ? "sm_90a" : from.machine->arch,
                    waits(c) ? " -DCUTLASS_ENABLE_GDC_FOR_SM90=1" : ""),
        fmt::format("predicted, of our kernel of that plan: {} ({})", microseconds(plan.prediction.time_us), label_of(c))};
    if (hopper) head.insert(head.begin() + 2, "-DNDEBUG: with assert() in the kernel the compiler waits for each wgmma.");
    if (plan.prediction.bound)
        head.push_back(fmt::format("why: bound by {}; waves {}; {:.0f} FLOP a loaded byte; {} stages where {} cover the latency",
                                   name_of(*plan.prediction.bound), plan.prediction.waves.value_or(0),
                                   plan.prediction.arithmetic_intensity.value_or(0), c.stages, plan.prediction.stages_min.value_or(0)));
    if (!out.lost.empty()) head.push_back("what CUTLASS cannot express of the plan, or does otherwise:");
    for (const std::string& lost : out.lost) head.push_back("  - " + lost);
    std::string comment = comment_lines(head, "//");
    comment.pop_back();
    auto values = hopper ? values_of_sm90(p, c, t) : values_of_sm80(p, c, t);
    values.insert(values.end(), {{"HEAD", comment}, {"NAME", name}, {"SHARED", std::to_string(std::int64_t(shared))}});
    out.text = filled_template(hopper ? "cutlass_sm90.cu" : "cutlass_sm80.cu", values);
    return out;
}

}  // namespace rooftile
