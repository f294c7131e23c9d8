// Products with random epilogues, sizes, majors, types and configurations: every element against fp64, and what may not be
// launched is refused.
//
// ROOFTILE_FUZZ_SHAPES sets how many (120), ROOFTILE_FUZZ_SEED repeats a run.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "rooftile/core/random.hpp"
#include "rooftile/error.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/verify.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/verifier.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/draw_epilogue.hpp"

namespace rooftile {
namespace {

/// What a request fixes, so that every way out is gone: by boxes, wide boxes, turned, by elements; parts of K; clusters.
struct Way {
    int tile_m, tile_n;
    Schedule schedule = Schedule::cooperative;
    bool swap_ab = false;
    int split_k = 1, cluster_m = 1, cluster_n = 1, grid_split_k = 1;
};
constexpr Way ways[] = {{128, 256}, {128, 128, Schedule::pingpong}, {64, 256, Schedule::pingpong}, {256, 128}, {64, 16}, {256, 176}, {128, 144},
                        {128, 128, Schedule::cooperative, true}, {72, 64, Schedule::cooperative, true}, {112, 128, Schedule::pingpong, true},
                        {128, 128, Schedule::cooperative, false, 4}, {64, 64, Schedule::cooperative, false, 8}, {48, 128, Schedule::cooperative, true, 2},
                        {128, 128, Schedule::pingpong, false, 1, 2, 1}, {128, 256, Schedule::cooperative, false, 1, 1, 2},
                        {64, 128, Schedule::cooperative, false, 4, 2, 1}, {128, 128, Schedule::cooperative, false, 2, 1, 1, 3},
                        {64, 64, Schedule::cooperative, true, 1, 1, 1, 4}, {128, 144, Schedule::cooperative, false, 1, 1, 1, 2}};

class GemmEpilogueTest : public DeviceTest {
  protected:
    struct Case {
        GemmPlan plan;
        std::string shown;
    };
    /// One of a way, as it draws problems until one suits it.
    Case drawn_case(Random& random, const Machine& machine, int index) {
        const Way& way = ways[std::size_t(index) % std::size(ways)];
        for (int attempt = 0; attempt < 1000; ++attempt) {
            GemmProblem p = drawn_product(random, index % 2 == 0 ? Type::bf16 : Type::fp16, 1500);
            if (index % 4 == 3) {
                p.batch = 2 + std::int64_t(random.pick(3));
                p.a_stride = random.coin() ? 0 : dense_stride(p, 'a'), p.b_stride = dense_stride(p, 'b'), p.c_stride = dense_stride(p, 'c') + 8;
            }
            if (!give_epilogue(p, drawn_epilogue(random, p.batch > 1))) continue;
            GemmRequest r;
            r.kernel = find_gemm_kernel("sm90_gemm");
            r.tile_m = way.tile_m, r.tile_n = way.tile_n, r.schedule = way.schedule, r.swap_ab = way.swap_ab;
            r.split_k = way.split_k, r.cluster_m = way.cluster_m, r.cluster_n = way.cluster_n;
            r.grid_split_k = way.grid_split_k;
            r.top = 1, r.buildable_only = true;
            auto derived = derive(machine, p, r);
            if (auto* plans = std::get_if<Plans>(&derived))
                return {plans->plans.front(),
                        fmt::format("{} of {}x{}x{} {} tile {}x{} split {}x{}{}: {}", p.batch, p.m, p.n, p.k, name_of(p.a_type), way.tile_m,
                                    way.tile_n, way.split_k, way.grid_split_k, way.swap_ab ? " swapped" : "", p.epilogue.text())};
        }
        throw Error(ExitCode::internal, "no problem suits a way");
    }
};

TEST_F(GemmEpilogueTest, FuzzedAgainstFp64) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", 1);
    const int count = int(from_environment("ROOFTILE_FUZZ_SHAPES", 120));
    const Machine machine = live_machine().machine;
    Random random(seed);
    std::vector<Case> cases;
    std::vector<GemmPlan> plans;
    for (int i = 0; i < count; ++i) {
        cases.push_back(drawn_case(random, machine, i));
        plans.push_back(cases.back().plan);
    }
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    double worst = 0;
    int failures = 0, spilled = 0;
    for (int i = 0; i < count && failures < 12; ++i) {
        const auto* kernel = std::get_if<Kernel>(&kernels[std::size_t(i)]);
        if (!kernel) {
            ++failures, ++spilled;
            ADD_FAILURE() << cases[std::size_t(i)].shown << "\n  "
                          << std::string(std::get<Error>(kernels[std::size_t(i)]).what()).substr(0, 200);
            continue;
        }
        const GemmProblem& p = cases[std::size_t(i)].plan.problem;
        DeviceBuffer workspace(std::max<std::size_t>(kernel->workspace_bytes(), 256));
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        const GemmReference reference(measure_kernels, p);
        Verifier verifier(measure_kernels, reference, gemm_operation().tensors({&gemm_operation(), Own::of(p)}), 1,
                          memory_info().free_bytes / 4);
        const TensorLaunch launch = [&](Stream stream, TensorPointers t) { kernel->launch(stream, t, workspace.data()); };
        const Verification v = verifier.verify(seed + std::uint64_t(i), {&launch, 1}, reference.cases()).front();
        worst = std::max(worst, v.max_error);
        if (v.failure.empty()) continue;
        ++failures;
        ADD_FAILURE() << "case " << i << " " << cases[std::size_t(i)].shown << "\n  " << v.failure;
    }
    fmt::print("{} products with epilogues, {} not compiled, largest error {:.3f} of its bound\n", count, spilled, worst);
}

/// The bias added twice in the last column of pairs: one element in hundreds.
TEST_F(GemmEpilogueTest, BiasTwiceOnTheLastColumnTileIsCaught) {
    GemmProblem p = gemm_problem(256, 512, 256);
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "d = acc + bias", {"bias:bf16[N]"});
    GemmRequest request;
    request.top = 1, request.buildable_only = true;
    const auto derived = derive(live_machine().machine, p, request);
    CompileOptions options;
    options.alter = [](Source& source) {
        const std::string right = "to[1] = element(second, widened(with.bias_pair[1]));";
        const std::size_t at = source.text.find(right);
        ASSERT_NE(at, std::string::npos);
        source.text.replace(at, right.size(),
                            right + " if (at.column + at.right + 2 == at.columns) to[1] = element(to[1], widened(with.bias_pair[1]));");
    };
    const Kernel kernel = compile(std::get<Plans>(derived).plans.front(), options);
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    const GemmReference reference(measure_kernels, p);
    Verifier verifier(measure_kernels, reference, gemm_operation().tensors({&gemm_operation(), Own::of(p)}), 1, 1 << 30);
    const TensorLaunch launch = [&](Stream stream, TensorPointers t) { kernel.launch(stream, t, nullptr); };
    // The first case sees it, and the others are not asked any more.
    const Verification v = verifier.verify(1, {&launch, 1}, reference.cases()).front();
    EXPECT_EQ(v.exact, false);
    EXPECT_NE(v.failure.find("elements"), std::string::npos) << v.failure;
}

TEST_F(GemmEpilogueTest, OperandsOverTheResultAreRefused) {
    GemmProblem p = gemm_problem(128, 256, 64);
    p.beta = 1;
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 1, "", {"c:bf16[M,N]"});
    GemmRequest request;
    request.top = 1, request.buildable_only = true;
    const Kernel kernel = compile(std::get<Plans>(derive(live_machine().machine, p, request)).plans.front());
    DeviceBuffer memory(1 << 20);
    void* at = memory.data();
    void* tensors[] = {at, at, at, at};
    try {
        kernel.launch(nullptr, tensors, nullptr);
        ADD_FAILURE() << "launched";
    } catch (const RequestError& error) {
        EXPECT_NE(std::string(error.what()).find("c and d overlap"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace rooftile
