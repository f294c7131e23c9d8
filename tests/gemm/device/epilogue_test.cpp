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

namespace rooftile {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// What a request fixes, so that every way out is gone: by boxes, wide boxes, turned, by elements; parts of K; clusters.
struct Way {
    int tile_m, tile_n;
    Schedule schedule = Schedule::cooperative;
    bool swap_ab = false;
    int split_k = 1, cluster_m = 1, cluster_n = 1;
};
constexpr Schedule pingpong = Schedule::pingpong, cooperative = Schedule::cooperative;
constexpr Way ways[] = {{128, 256}, {128, 128, pingpong}, {64, 256, pingpong}, {256, 128}, {64, 16}, {256, 176}, {128, 144},
                        {128, 128, cooperative, true}, {72, 64, cooperative, true}, {112, 128, pingpong, true},
                        {128, 128, cooperative, false, 4}, {64, 64, cooperative, false, 8}, {48, 128, cooperative, true, 2},
                        {128, 128, pingpong, false, 1, 2, 1}, {128, 256, cooperative, false, 1, 1, 2},
                        {64, 128, cooperative, false, 4, 2, 1}};

struct Tensor {
    const char *name, *shape;
};
constexpr Tensor tensors[] = {{"bias", "[N]"}, {"res", "[M,N]"}, {"rows", "[M,1]"}, {"scale", "[1]"}, {"mask", "[M,N]"}};

/// A few operators on the sum and on operands.
struct DrawnEpilogue {
    std::string text;
    std::vector<std::string> tensors;
    double alpha = 1, beta = 0;
};
DrawnEpilogue drawn(Random& random) {
    static const char* const functions[] = {"gelu", "relu", "silu", "gelu_tanh", "tanh", "sigmoid", "abs", "softplus"};
    static const char* const types[] = {"bf16", "fp16", "fp32"};
    DrawnEpilogue out;
    std::string value = "acc";
    bool used[std::size(tensors)] = {};
    const std::size_t steps = 1 + random.pick(4);
    for (std::size_t i = 0; i < steps; ++i) {
        const std::size_t t = random.pick(std::size(tensors) - 1);
        switch (random.pick(5)) {
            case 0: value = fmt::format("{}({})", functions[random.pick(std::size(functions))], value); break;
            case 1: value = fmt::format("({} + {})", value, tensors[t].name), used[t] = true; break;
            case 2: value = fmt::format("({} * {})", value, tensors[t].name), used[t] = true; break;
            case 3: value = fmt::format("where(mask, {}, 0.25)", value), used[4] = true; break;
            default: value = random.coin() ? fmt::format("dropout({}, 0.25, seed={})", value, i + 1)
                                           : fmt::format("fp16({} * 0.125)", value); break;
        }
    }
    out.text = "d = " + value;
    if (random.coin()) out.alpha = 0.5;
    if (random.pick(3) == 0) out.beta = -1.5, out.tensors.push_back("c:bf16[M,N]");
    if (random.pick(6) == 0 && out.alpha != 1) {
        out.text.clear();
        return out;
    }
    for (std::size_t t = 0; t < std::size(tensors); ++t)
        if (used[t])
            out.tensors.push_back(fmt::format("{}:{}{}", tensors[t].name, t == 4 ? "bool" : types[random.pick(3)], tensors[t].shape));
    return out;
}

GemmProblem problem_of(Random& random, int index) {
    const auto size = [&](std::int64_t most) { return 1 + std::int64_t(random.pick(std::size_t(most))); };
    const Type type = index % 2 == 0 ? Type::bf16 : Type::fp16;
    const Major a = random.coin() ? Major::k : Major::mn, b = random.coin() ? Major::k : Major::mn;
    std::int64_t m = size(random.pick(4) == 0 ? 130 : 1500), n = size(random.pick(4) == 0 ? 130 : 1500), k = size(700);
    if (random.coin()) n = (n + 7) / 8 * 8;  // C leaves by TMA
    GemmProblem p = gemm_problem(m, n, k, type, a, b);
    if (random.pick(4) == 0) p.ldc += 8 * std::int64_t(1 + random.pick(4));
    if (random.pick(4) == 0) p.c_offset = std::int64_t(random.pick(8));
    return p;
}

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
            GemmProblem p = problem_of(random, index);
            const DrawnEpilogue e = drawn(random);
            try {
                p.alpha = e.alpha, p.beta = e.beta;
                p.epilogue = gemm_epilogue(p.m, p.n, p.c_type, e.alpha, e.beta, e.text, e.tensors);
            } catch (const RequestError&) { continue; }  // "d = acc" and the like
            if (!p.epilogue) continue;
            GemmRequest r;
            r.kernel = find_gemm_kernel("sm90_gemm");
            r.tile_m = way.tile_m, r.tile_n = way.tile_n, r.schedule = way.schedule, r.swap_ab = way.swap_ab;
            r.split_k = way.split_k, r.cluster_m = way.cluster_m, r.cluster_n = way.cluster_n;
            r.top = 1, r.buildable_only = true;
            auto derived = derive(machine, p, r);
            if (auto* plans = std::get_if<Plans>(&derived))
                return {plans->plans.front(),
                        fmt::format("{}x{}x{} {} tile {}x{} split {}{}: {}", p.m, p.n, p.k, name_of(p.a_type), way.tile_m,
                                    way.tile_n, way.split_k, way.swap_ab ? " swapped" : "", p.epilogue.text())};
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
    p.epilogue = gemm_epilogue(p.m, p.n, p.c_type, 1, 0, "d = acc + bias", {"bias:bf16[N]"});
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
    EXPECT_EQ(verifier.verify(1, {&launch, 1}, reference.cases()).front().random, false);
}

TEST_F(GemmEpilogueTest, OperandsOverTheResultAreRefused) {
    GemmProblem p = gemm_problem(128, 256, 64);
    p.beta = 1;
    p.epilogue = gemm_epilogue(p.m, p.n, p.c_type, 1, 1, "", {"c:bf16[M,N]"});
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
