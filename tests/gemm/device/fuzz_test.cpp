// Random shapes, majors, types and leading dimensions through many configurations of each kernel, every element
// verified.
//
// ROOFTILE_FUZZ_SHAPES sets how many (300). ROOFTILE_FUZZ_SEED repeats a run: shapes and inputs follow
// from it.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <ostream>
#include <random>
#include <span>

#include "rooftile/gemm/device/code.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/measure.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/pieces.hpp"
#include "rooftile/machine/live.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/device/gemm_verifier.hpp"

namespace rooftile {
namespace {

/// What is fixed of a plan; the rest is the planner's choice for the shape.
struct Fixed {
    int tile_m, tile_n;
    Schedule schedule = Schedule::cooperative;
    int cluster_m = 1, cluster_n = 1;
    Order order = Order::row;
    int group = 1;
    int split_k = 1;
    bool overlapped_epilogue = true;  ///< where registers allow it
    bool programmatic_launch = true;
    EvictFirst evict_first{};
    int tile_k = 64;
    int warpgroups = 0, ctas_per_sm = 0, stages = 0;  ///< 0: the planner's choice
    bool swap_ab = false;
    int grid_split_k = 1;
};
constexpr EvictFirst all{true, true, true}, only_b{false, true, false}, only_c{false, false, true};
constexpr Fixed sm90_configurations[] = {
    {128, 256},
    {128, 128, Schedule::cooperative, 1, 1, Order::column},
    {64, 256},
    {64, 16},
    {256, 128, Schedule::cooperative, 1, 1, Order::grouped, 3},
    {192, 128},
    {128, 192},
    {64, 64, Schedule::cooperative, 1, 1, Order::grouped, 16},
    {128, 64},
    {192, 192},
    {256, 208, Schedule::cooperative, 1, 1, Order::serpentine, 2},
    {128, 96},
    {64, 256, Schedule::pingpong},
    {128, 128, Schedule::pingpong, 1, 1, Order::serpentine, 5},
    {64, 128, Schedule::pingpong},
    {128, 256, Schedule::cooperative, 2, 1, Order::grouped, 4},
    {128, 256, Schedule::cooperative, 1, 2},
    {256, 128, Schedule::cooperative, 1, 2, Order::column},
    {64, 128, Schedule::cooperative, 2, 1},
    {128, 128, Schedule::pingpong, 2, 1},
    {128, 192, Schedule::pingpong, 1, 2, Order::grouped, 2},
    {128, 256, Schedule::cooperative, 1, 1, Order::row, 1, 2},
    {192, 192, Schedule::cooperative, 1, 1, Order::grouped, 3, 3},
    {128, 128, Schedule::cooperative, 1, 1, Order::column, 1, 4},
    {64, 64, Schedule::cooperative, 1, 1, Order::row, 1, 8},
    {64, 96, Schedule::cooperative, 1, 1, Order::serpentine, 2, 6},
    {256, 128, Schedule::cooperative, 1, 2, Order::grouped, 4, 2},
    {64, 128, Schedule::cooperative, 2, 1, Order::row, 1, 4},
    {128, 256, Schedule::cooperative, 1, 1, Order::hilbert},
    {128, 256, Schedule::cooperative, 1, 2, Order::morton, 1, 1, false},
    {128, 128, Schedule::pingpong, 2, 1, Order::hilbert, 1, 1, true, false},
    {64, 64, Schedule::cooperative, 1, 1, Order::morton},
    {128, 192, Schedule::pingpong, 1, 2, Order::morton},
    {64, 128, Schedule::cooperative, 1, 2, Order::hilbert, 1, 2},
    {256, 128, Schedule::cooperative, 2, 1, Order::morton, 1, 1, true, false},
    {256, 160, Schedule::cooperative, 1, 2, Order::row, 1, 1, false},
    {128, 256, Schedule::cooperative, 2, 1, Order::row, 1, 1, true, true, all},
    {64, 64, Schedule::cooperative, 1, 1, Order::row, 1, 2, true, true, only_b},
    {128, 192, Schedule::pingpong, 1, 1, Order::grouped, 4, 1, true, true, only_c},
    {256, 176, Schedule::cooperative, 1, 2, Order::serpentine, 3},
    {64, 240, Schedule::pingpong},
    {128, 144, Schedule::pingpong, 2, 1, Order::grouped, 2},
    {128, 224, Schedule::cooperative, 1, 1, Order::row, 1, 1, false},
    {64, 144, Schedule::cooperative, 1, 1, Order::column, 1, 2},
    // Turned: rows of C in steps of 8, whole and in boxes that overlap.
    {.tile_m = 8, .tile_n = 64, .swap_ab = true},
    {.tile_m = 72, .tile_n = 64, .order = Order::column, .swap_ab = true},
    {.tile_m = 136, .tile_n = 128, .swap_ab = true},
    {.tile_m = 24, .tile_n = 192, .warpgroups = 3, .swap_ab = true},
    {.tile_m = 64, .tile_n = 128, .ctas_per_sm = 2, .swap_ab = true},
    {.tile_m = 200, .tile_n = 256, .overlapped_epilogue = false, .swap_ab = true},
    {.tile_m = 256, .tile_n = 128, .order = Order::hilbert, .swap_ab = true},
    {.tile_m = 120, .tile_n = 192, .warpgroups = 3, .swap_ab = true},
    {.tile_m = 104, .tile_n = 64, .schedule = Schedule::pingpong, .swap_ab = true},
    {.tile_m = 136, .tile_n = 128, .schedule = Schedule::pingpong, .cluster_m = 2, .swap_ab = true},
    {.tile_m = 128, .tile_n = 64, .schedule = Schedule::pingpong, .cluster_n = 2, .swap_ab = true},
    {.tile_m = 152, .tile_n = 256, .cluster_m = 2, .order = Order::grouped, .group = 3, .swap_ab = true},
    {.tile_m = 144, .tile_n = 128, .cluster_n = 2, .evict_first = all, .swap_ab = true},
    {.tile_m = 16, .tile_n = 64, .cluster_n = 2, .swap_ab = true},
    {.tile_m = 128, .tile_n = 128, .order = Order::morton, .swap_ab = true},
    {.tile_m = 48, .tile_n = 128, .split_k = 2, .swap_ab = true},
    {.tile_m = 144, .tile_n = 128, .cluster_m = 2, .split_k = 2, .swap_ab = true},
    {.tile_m = 64, .tile_n = 64, .order = Order::serpentine, .group = 2, .split_k = 8, .swap_ab = true},
    {.tile_m = 72, .tile_n = 192, .split_k = 3, .swap_ab = true},
    {.tile_m = 192, .tile_n = 128, .cluster_n = 2, .split_k = 4, .swap_ab = true},
    // In pieces, which one wave holds: every way out, parts in a cluster or none, one warpgroup to three.
    {.tile_m = 64, .tile_n = 64, .grid_split_k = 2},
    {.tile_m = 128, .tile_n = 144, .warpgroups = 2, .grid_split_k = 9},
    {.tile_m = 128, .tile_n = 128, .split_k = 8, .warpgroups = 2, .grid_split_k = 3},
    {.tile_m = 192, .tile_n = 96, .split_k = 6, .warpgroups = 3, .grid_split_k = 2},
    {.tile_m = 128, .tile_n = 64, .cluster_m = 2, .split_k = 4, .grid_split_k = 2},
    {.tile_m = 128, .tile_n = 256, .cluster_n = 2, .split_k = 2, .programmatic_launch = false, .grid_split_k = 3},
    {.tile_m = 8, .tile_n = 64, .swap_ab = true, .grid_split_k = 16},
    {.tile_m = 104, .tile_n = 128, .warpgroups = 2, .swap_ab = true, .grid_split_k = 5},
    {.tile_m = 72, .tile_n = 192, .split_k = 3, .warpgroups = 3, .swap_ab = true, .grid_split_k = 4},
    {.tile_m = 144, .tile_n = 128, .cluster_n = 2, .split_k = 2, .swap_ab = true, .grid_split_k = 2}};

// Persistent with one CTA an SM, else one tile a CTA; two stages and as many as fit; grids of warps of every form.
constexpr Fixed sm80_configurations[] = {
    {.tile_m = 128, .tile_n = 256, .tile_k = 32, .warpgroups = 2},
    {.tile_m = 256, .tile_n = 128, .order = Order::serpentine, .group = 2, .warpgroups = 2},
    {.tile_m = 128, .tile_n = 128, .order = Order::column, .tile_k = 32, .warpgroups = 1, .ctas_per_sm = 1},
    {.tile_m = 128, .tile_n = 128, .warpgroups = 1, .ctas_per_sm = 2},
    {.tile_m = 128, .tile_n = 128, .order = Order::hilbert, .tile_k = 32, .warpgroups = 2, .stages = 3},
    {.tile_m = 64, .tile_n = 256, .order = Order::grouped, .group = 3, .tile_k = 32, .warpgroups = 2},
    {.tile_m = 64, .tile_n = 64, .order = Order::grouped, .group = 16, .ctas_per_sm = 4},
    {.tile_m = 64, .tile_n = 64, .order = Order::morton, .tile_k = 32, .warpgroups = 1, .ctas_per_sm = 1},
    {.tile_m = 32, .tile_n = 64, .ctas_per_sm = 3},
    {.tile_m = 16, .tile_n = 128},
    {.tile_m = 16, .tile_n = 64, .tile_k = 32},
    {.tile_m = 192, .tile_n = 128, .order = Order::morton, .tile_k = 32},
    {.tile_m = 96, .tile_n = 96},
    {.tile_m = 128, .tile_n = 96, .order = Order::serpentine, .group = 5, .tile_k = 32},
    {.tile_m = 256, .tile_n = 64, .order = Order::hilbert},
    {.tile_m = 64, .tile_n = 192, .order = Order::column, .tile_k = 32},
    {.tile_m = 32, .tile_n = 32},
    {.tile_m = 128, .tile_n = 64, .stages = 2},
    {.tile_m = 96, .tile_n = 192, .tile_k = 32, .stages = 3},
    {.tile_m = 32, .tile_n = 256, .order = Order::row, .tile_k = 32, .stages = 2},
};

/// A kernel under test.
struct Fuzzed {
    const char* name;  ///< of the test
    const char* kernel;
    std::span<const Fixed> configurations;
    std::span<const Fixed> large;  ///< whose tiles are larger than most of C
    bool any_alignment;            ///< every leading dimension, not multiples of 8 elements alone
    std::span<const std::int64_t> ks;
    bool batches = false;          ///< of two to nine products each, laid out in every way
    bool longer_lines = false;     ///< in half of the shapes lines up to 64 elements apart, and addresses off by up to seven
};
void PrintTo(const Fuzzed& of, std::ostream* to) { *to << of.name; }
constexpr Fixed sm90_large[] = {
    {128, 256},
    {128, 256, Schedule::cooperative, 1, 2},
    {128, 256, Schedule::cooperative, 2, 1},
    {64, 256, Schedule::pingpong},
    {128, 128, Schedule::pingpong, 1, 2},
    {256, 128},
    {128, 128, Schedule::cooperative, 1, 1, Order::row, 1, 4},
    {128, 128, Schedule::cooperative, 1, 2, Order::row, 1, 2},
    {128, 256, Schedule::cooperative, 1, 1, Order::row, 1, 1, false},
    {.tile_m = 256, .tile_n = 128, .swap_ab = true},
    {.tile_m = 136, .tile_n = 256, .swap_ab = true},
    {.tile_m = 144, .tile_n = 128, .cluster_n = 2, .swap_ab = true},
    {.tile_m = 136, .tile_n = 64, .schedule = Schedule::pingpong, .cluster_m = 2, .swap_ab = true},
    {.tile_m = 128, .tile_n = 128, .split_k = 4, .swap_ab = true}};
constexpr Fixed sm80_large[] = {{.tile_m = 128, .tile_n = 128, .tile_k = 32, .warpgroups = 2, .ctas_per_sm = 1},
                                {.tile_m = 128, .tile_n = 128, .warpgroups = 1, .ctas_per_sm = 2},
                                {.tile_m = 256, .tile_n = 64},
                                {.tile_m = 64, .tile_n = 256, .tile_k = 32},
                                {.tile_m = 16, .tile_n = 128}};
constexpr std::int64_t sm90_ks[] = {520}, packed_ks[] = {517}, sm80_ks[] = {520, 516, 510, 517};  // copies of 16, 8, 4 and 2 B
constexpr Fuzzed fuzzed[] = {
    {"sm90_gemm", "sm90_gemm", sm90_configurations, sm90_large, false, sm90_ks},
    {"sm90_gemm_packed", "sm90_gemm", sm90_configurations, sm90_large, true, packed_ks, false, true},
    {"sm90_gemm_batches", "sm90_gemm", sm90_configurations, sm90_large, false, sm90_ks, true},
    {"sm90_gemm_batches_packed", "sm90_gemm", sm90_configurations, sm90_large, true, packed_ks, true, true},
    {"sm80_gemm", "sm80_gemm", sm80_configurations, sm80_large, true, sm80_ks}};

GemmRequest request_of(const Fuzzed& of, const Fixed& f) {
    GemmRequest r;
    r.kernel = find_gemm_kernel(of.kernel);
    r.tile_m = f.tile_m, r.tile_n = f.tile_n, r.tile_k = f.tile_k;
    if (f.warpgroups) r.consumer_warpgroups = f.warpgroups;
    if (f.ctas_per_sm) r.ctas_per_sm = f.ctas_per_sm;
    if (f.stages) r.stages = f.stages;
    r.schedule = f.schedule;
    r.swap_ab = f.swap_ab;
    r.cluster_m = f.cluster_m, r.cluster_n = f.cluster_n;
    r.split_k = f.split_k;
    r.grid_split_k = f.grid_split_k;
    if (of.batches && f.grid_split_k == 1) r.dynamic_scheduler = of.any_alignment;
    r.order = f.order;
    if (f.order == Order::grouped || f.order == Order::serpentine) r.group = f.group;
    if (!f.overlapped_epilogue) r.overlapped_epilogue = false;
    if (std::string_view(of.kernel) == "sm90_gemm") r.programmatic_launch = f.programmatic_launch;
    r.evict_first = f.evict_first;
    r.top = 1;
    r.buildable_only = true;
    return r;
}

std::int64_t round_up(std::int64_t x, std::int64_t to) { return ceil_div(x, to) * to; }

/// Two to nine products: each operand's matrices one behind the other, with room between, side by side within the lines, or one
/// for all.
void make_batch(std::mt19937_64& random, GemmProblem& p, bool any_alignment) {
    p.batch = 2 + std::int64_t(random() % 8);
    const std::int64_t step = any_alignment ? 1 : 8;
    const auto lay = [&](char operand, std::int64_t width, std::int64_t& leading, std::int64_t& stride) {
        stride = dense_stride(p, operand);
        const std::uint64_t way = random() % (operand == 'c' ? 3 : 4);
        if (way == 1) stride += step * std::int64_t(random() % 50);
        if (way == 2) stride = round_up(width, step) + step * std::int64_t(random() % 3), leading = stride * p.batch;
        if (way == 3) stride = 0;
    };
    lay('a', p.a_major == Major::k ? p.k : p.m, p.lda, p.a_stride);
    lay('b', p.b_major == Major::k ? p.k : p.n, p.ldb, p.b_stride);
    lay('c', p.n, p.ldc, p.c_stride);
}

/// With `of.batches` three products of that shape.
GemmProblem one_or_three(const Fuzzed& of, GemmProblem p) {
    if (!of.batches) return p;
    p.batch = 3;
    p.a_stride = dense_stride(p, 'a'), p.b_stride = dense_stride(p, 'b'), p.c_stride = dense_stride(p, 'c');
    return p;
}

/// Shape `index` of a run: sizes of 1 ... 3000, a quarter of them below 200, where tails are, and M or N of
/// every fourth shape below most tiles; K `deep`: of as many steps as pieces want, of a batch with few tiles. Without `any_alignment` multiples of 8 where a contiguous index must be one;
/// with it leading dimensions of every alignment, also such that copies reach past the end of a row.
GemmProblem random_problem(std::mt19937_64& random, int index, const Fuzzed& of, bool deep = false) {
    const bool any_alignment = of.any_alignment, longer_lines = of.longer_lines;
    const auto size = [&] {
        const std::uint64_t most = random() % 4 == 0 ? 200 : !of.batches ? 3000 : deep ? 600 : 900;
        return 1 + static_cast<std::int64_t>(random() % most);
    };
    const Type type = index % 2 == 0 ? Type::bf16 : Type::fp16;
    const Major a = index / 2 % 2 == 0 ? Major::k : Major::mn, b = index / 4 % 2 == 0 ? Major::k : Major::mn;
    std::int64_t m = size(), n = size(), k = deep ? 1 + std::int64_t(random() % 3000) : size();
    if (const std::uint64_t few = random() % 8; few < 2)
        (few == 0 ? m : n) = 1 + static_cast<std::int64_t>(random() % 130);
    // With a K of a few steps the stores of one tile are still running when the next tile's begin.
    if (!deep && random() % 4 == 0) k = 1 + static_cast<std::int64_t>(random() % 130);
    if (!any_alignment || random() % 4 == 0) {
        if (a == Major::k || b == Major::k) k = round_up(k, 8);
        if (a == Major::mn) m = round_up(m, 8);
        if (b == Major::mn) n = round_up(n, 8);
    }
    GemmProblem p = gemm_problem(m, n, k, type, a, b);
    if (any_alignment) {
        const auto aligned = [&](std::int64_t ld) { return round_up(ld, std::int64_t{1} << random() % 4); };
        p.lda = aligned(p.lda), p.ldb = aligned(p.ldb), p.ldc = aligned(p.ldc);
    }
    if (longer_lines) {
        for (std::int64_t* pitch : {&p.lda, &p.ldb, &p.ldc})
            if (random() % 2 == 0) *pitch += 1 + static_cast<std::int64_t>(random() % 64);
        for (std::int64_t* offset : {&p.a_offset, &p.b_offset, &p.c_offset})
            if (random() % 2 == 0) *offset = static_cast<std::int64_t>(random() % 8);
    } else if (random() % 2 == 0) {
        p.lda += 8 * static_cast<std::int64_t>(random() % 4);
        p.ldb += 8 * static_cast<std::int64_t>(random() % 4);
        p.ldc += static_cast<std::int64_t>(random() % 20);
    }
    if (of.batches) make_batch(random, p, any_alignment);
    return p;
}

std::string shown(const GemmProblem& p, const Fixed& f) {
    return fmt::format(
        "{} of {}x{}x{} {} a {} b {} lda {} ldb {} ldc {} strides {} {} {} offsets {} {} {} tile {}x{}x{} {} cluster {}x{} order {} {} split {}x{}{}",
        p.batch, p.m, p.n, p.k, name_of(p.a_type), a_major_name(p.a_major), b_major_name(p.b_major), p.lda, p.ldb,
        p.ldc, p.a_stride, p.b_stride, p.c_stride, p.a_offset, p.b_offset, p.c_offset, f.tile_m, f.tile_n, f.tile_k, name_of(f.schedule), f.cluster_m, f.cluster_n, name_of(f.order),
        f.group, f.split_k, f.grid_split_k, f.swap_ab ? " swapped" : "");
}

class GemmPiecesTest : public DeviceTest {};

class GemmFuzzTest : public DeviceTest, public testing::WithParamInterface<Fuzzed> {
  protected:
    struct Case {
        GemmProblem problem;
        Fixed fixed;
        std::size_t kernel;  ///< index into kernels
    };
    std::vector<Case> cases_;
    std::vector<GemmPlan> plans_;  ///< one a kernel
    std::vector<Kernel> kernels_;
    DeviceBuffer workspace_;
    std::map<std::string, std::size_t> known_;  ///< index into plans_ by plan_key

    void add_case(const GemmProblem& problem, const Fixed& fixed,
                  const std::variant<Plans, Infeasible>& derived) {
        if (auto* none = std::get_if<Infeasible>(&derived)) {
            ADD_FAILURE() << shown(problem, fixed) << ": " << none->message;
            return;
        }
        const GemmPlan& plan = std::get<Plans>(derived).plans.at(0);
        const auto [found, is_new] = known_.emplace(plan_key(plan), plans_.size());
        if (is_new) plans_.push_back(plan);
        cases_.push_back({problem, fixed, found->second});
    }

    void plan_cases(std::uint64_t seed, int count) {
        const Machine machine = live_machine().machine;
        std::mt19937_64 random(seed);
        for (int i = 0; i < count; ++i) {
            const Fuzzed& of = GetParam();
            const Fixed& fixed = of.configurations[std::size_t(i) % of.configurations.size()];
            // Not every shape suits every configuration: a cluster wants two tiles, an n-major B wide ones.
            std::variant<Plans, Infeasible> derived;
            GemmProblem problem;
            for (int attempt = 0; attempt < 1000; ++attempt) {
                problem = random_problem(random, i / int(of.configurations.size()) + attempt, of, fixed.grid_split_k > 1);
                derived = derive(machine, problem, request_of(of, fixed));
                if (std::holds_alternative<Plans>(derived)) break;
            }
            add_case(problem, fixed, derived);
        }
        compile_plans();
    }

    void compile_plans() {
        for (KernelOutcome& outcome : compile_all(plans_)) {
            if (auto* error = std::get_if<Error>(&outcome))
                throw Error(error->code(), name_expression(plans_[kernels_.size()]) + ": " + error->what());
            kernels_.push_back(std::get<Kernel>(outcome));
        }
    }

    /// For a launch of the kernel on that shape: as large as any so far needed. What a launch does not write is NaN.
    void* workspace_for(const Kernel& kernel, const GemmShape& shape) {
        const std::size_t bytes = kernel.workspace_bytes(shape);
        if (bytes == 0) return nullptr;
        if (workspace_.bytes() < bytes) workspace_ = DeviceBuffer(bytes);
        fill_bytes(workspace_.address(), 0xff, bytes, nullptr);
        if (const auto counters = pieces_workspace(kernel.plan().config, shape.m, shape.n, shape.batch).counters)
            fill_bytes(workspace_.address(), 0, std::size_t(counters), nullptr);
        synchronize();
        return workspace_.data();
    }

    /// Every case with every element compared; NaN and Inf among the inputs of every fourth.
    void verify_cases(std::uint64_t seed) {
        const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
        double worst = 0;
        int failures = 0, packed = 0;
        for (std::size_t i = 0; i < cases_.size() && failures < 10; ++i) {
            const Case& c = cases_[i];
            void* workspace = workspace_for(kernels_[c.kernel], shape_of(c.problem));
            packed += workspace != nullptr;
            const GemmLaunch launch = [&](Stream stream, const void* a, const void* b, void* out) {
                kernels_[c.kernel].launch(stream, a, b, out, shape_of(c.problem), workspace);
            };
            GemmVerifier verifier(measure_kernels, c.problem);
            // NaN and Inf cost as much again: every fourth shape.
            const Verification v =
                i % 4 == 0 ? verifier.check_all(seed + i, launch) : verifier.check_values(seed + i, launch);
            worst = std::max(worst, v.max_error);
            if (v.failure.empty()) continue;
            ++failures;
            ADD_FAILURE() << "ROOFTILE_FUZZ_SEED=" << seed << " shape " << i << ": "
                          << shown(c.problem, c.fixed) << "\n  " << kernels_[c.kernel].name_expression()
                          << "\n  " << v.failure;
        }
        fmt::print("{} shapes, {} of them packed, {} kernels, largest error {:.3f} of its bound\n", cases_.size(), packed,
                   kernels_.size(), worst);
    }

    static std::string name_expression(const GemmPlan& plan) {
        return gemm_code(plan, Ablation::nothing)->source().name_expressions.at(0);
    }
    /// What decides the cubin, and what a launch takes from the plan.
    static std::string plan_key(const GemmPlan& plan) {
        const GemmConfig& c = plan.config;
        return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", name_expression(plan), c.pack_a, c.pack_b, c.ctas_per_sm,
                           name_of(c.order), c.group, c.split_k, c.grid_split_k, c.programmatic_launch, int(c.evict_first.a),
                           int(c.evict_first.b), int(c.evict_first.c));
    }
};

INSTANTIATE_TEST_SUITE_P(Kernels, GemmFuzzTest, testing::ValuesIn(fuzzed),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(GemmFuzzTest, EveryElementIsRight) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", fresh_seed());
    const int count = static_cast<int>(from_environment("ROOFTILE_FUZZ_SHAPES", 300));
    fmt::print("ROOFTILE_FUZZ_SEED={} ROOFTILE_FUZZ_SHAPES={}\n", seed, count);
    plan_cases(seed, count);
    EXPECT_EQ(cases_.size(), std::size_t(count)) << "every configuration has its share of the shapes";
    verify_cases(seed);
}

// One kernel on shapes below, at and above its tile: rows and columns that nobody loads never reach C. Shared
// memory still holds what launches before left in it, of every fourth shape NaN and Inf.
TEST_P(GemmFuzzTest, TilesLargerThanC) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", fresh_seed());
    const Machine machine = live_machine().machine;
    for (const Fixed& fixed : GetParam().large)
        for (const std::int64_t k : GetParam().ks)
            for (std::int64_t odd : {0, 3}) {  // with 3 C goes by element
                const auto derived =
                    derive(machine, one_or_three(GetParam(), gemm_problem(3000, 2048 + odd, k)), request_of(GetParam(), fixed));
                for (std::int64_t m : {1, 7, 16, 60, 65, 100, 129, 1000})
                    for (std::int64_t n : {8, 24, 120, 136, 264, 3000})
                        add_case(one_or_three(GetParam(), gemm_problem(m, n + odd, k)), fixed, derived);
            }
    compile_plans();
    verify_cases(seed);
}

// Each split with more tiles than clusters, so that sums and loads of successive tiles meet in the ring; with
// a K too short for some parts, and one that ends within a block; with C by TMA and by element.
TEST_P(GemmFuzzTest, PartsOfKAddUp) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", fresh_seed());
    const Machine machine = live_machine().machine;
    for (const Fixed& fixed : GetParam().configurations) {
        if (fixed.split_k == 1 || fixed.grid_split_k > 1) continue;
        for (std::int64_t k : {8, 64, 72, 128, 520, 2056})
            for (std::int64_t n : {2056, 2051}) {
                const GemmProblem problem = one_or_three(GetParam(), gemm_problem(3000, n, k));
                add_case(problem, fixed, derive(machine, problem, request_of(GetParam(), fixed)));
            }
    }
    if (cases_.empty()) GTEST_SKIP() << "skipped: " << GetParam().kernel << " does not split K";
    compile_plans();
    verify_cases(seed);
}

// Many launches one after the other in one workspace, of a kernel whose pieces end in any order: the same bits each time.
TEST_F(GemmPiecesTest, EveryLaunchGivesTheSameBits) {
    const Machine machine = live_machine().machine;
    for (const Fixed& fixed : sm90_configurations) {
        if (fixed.grid_split_k == 1) continue;
        const std::int64_t m = 2 * fixed.tile_m - 3, n = 2 * fixed.tile_n - 8, k = 10264;
        const GemmProblem problem = gemm_problem(m, n, k);
        const auto derived = derive(machine, problem, request_of(fuzzed[0], fixed));
        ASSERT_TRUE(std::holds_alternative<Plans>(derived)) << shown(problem, fixed) << std::get<Infeasible>(derived).message;
        const Kernel kernel = compile(std::get<Plans>(derived).plans.at(0));
        std::mt19937_64 random(1);
        std::vector<std::uint16_t> a(std::size_t(m * k)), b(std::size_t(n * k)), first(std::size_t(m * n)), c(first.size());
        for (auto* operand : {&a, &b})
            for (std::uint16_t& x : *operand) x = std::uint16_t(0x3f00 + random() % 0x80 + (random() % 2 << 15));  // 0.5 to 1
        DeviceBuffer on_a(a.size() * 2), on_b(b.size() * 2), on_c(c.size() * 2), workspace(kernel.workspace_bytes());
        copy_to_device(on_a.address(), a.data(), on_a.bytes());
        copy_to_device(on_b.address(), b.data(), on_b.bytes());
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        for (int launch = 0; launch < 20; ++launch) {
            fill_bytes(on_c.address(), 0xff, on_c.bytes(), nullptr);
            for (int again = 0; again < 20; ++again)
                kernel.launch(nullptr, on_a.data(), on_b.data(), on_c.data(), workspace.data());
            copy_to_host(c.data(), on_c.address(), on_c.bytes());
            synchronize();
            if (launch == 0) first = c;
            ASSERT_TRUE(c == first) << shown(problem, fixed) << " launch " << launch;
        }
    }
}

// 65544 x 32776 is 2^31 + 1,572,992 elements: whatever is counted in 32 bits wraps.
TEST_P(GemmFuzzTest, OperandsBeyondTwoToThe31Elements) {
    if (memory_info().free_bytes < std::int64_t{16} << 30)
        GTEST_SKIP() << "skipped: needs 16 GiB of free device memory";
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", fresh_seed());
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    const Machine machine = live_machine().machine;
    const std::int64_t many = 65544, half = 32776;
    GemmProblem padded = gemm_problem(many, 24, 64);
    padded.ldc = half + 1;  // odd: C goes element by element
    if (GetParam().batches) GTEST_SKIP() << "skipped: one product has as many elements";
    for (const GemmProblem& problem :
         {gemm_problem(many, half, 8), gemm_problem(many, 16, half), gemm_problem(16, many, half),
          gemm_problem(many, 16, half, Type::fp16, Major::mn, Major::mn), gemm_problem(many, 16, half - 1),
          gemm_problem(16, many - 1, half, Type::fp16, Major::mn, Major::mn), padded}) {
        GemmRequest request;
        request.kernel = find_gemm_kernel(GetParam().kernel);
        request.buildable_only = true;
        const auto derived = derive(machine, problem, request);
        const Kernel kernel = compile(std::get<Plans>(derived).plans.at(0));
        void* workspace = workspace_for(kernel, shape_of(problem));
        const GemmLaunch launch = [&](Stream stream, const void* a, const void* b, void* out) {
            kernel.launch(stream, a, b, out, workspace);
        };
        GemmVerifier verifier(measure_kernels, problem);
        const Verification v = verifier.check_values(seed, launch);
        EXPECT_TRUE(v.failure.empty())
            << "ROOFTILE_FUZZ_SEED=" << seed << ' ' << kernel.name_expression() << ' ' << v.failure;
        EXPECT_TRUE(v.ok());
    }
}

TEST_P(GemmFuzzTest, RunsAreBitIdentical) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", fresh_seed());
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    plan_cases(seed, 2 * int(GetParam().configurations.size()));
    constexpr int runs = 20;
    for (const Case& c : cases_) {
        void* workspace = workspace_for(kernels_[c.kernel], shape_of(c.problem));
        const GemmLaunch launch = [&](Stream stream, const void* a, const void* b, void* out) {
            kernels_[c.kernel].launch(stream, a, b, out, shape_of(c.problem), workspace);
        };
        GemmVerifier verifier(measure_kernels, c.problem);
        const std::uint64_t first = verifier.fingerprint(seed, launch);
        for (int run = 1; run < runs; ++run) {
            ASSERT_EQ(verifier.fingerprint(seed, launch), first)
                << "ROOFTILE_FUZZ_SEED=" << seed << " run " << run << ": " << shown(c.problem, c.fixed);
        }
        if (c.problem.m * c.problem.n < 64) continue;  // so few elements may agree by chance
        EXPECT_NE(verifier.fingerprint(seed + 1, launch), first) << "inputs do not matter";
    }
}

}  // namespace
}  // namespace rooftile
