// Products of every pair of types into every result, with and without scales: random sizes and every way out, each element against
// fp64; and mistakes with scales and results that must be caught.
//
// ROOFTILE_FUZZ_SHAPES sets how many (96), ROOFTILE_FUZZ_SEED repeats a run.
#include <fmt/core.h>
#include <gtest/gtest.h>

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

namespace rooftile {
namespace {

constexpr Type e4m3 = Type::fp8_e4m3, e5m2 = Type::fp8_e5m2;

struct Types {
    Type a, b, result;
};
constexpr Types all_types[] = {{e4m3, e4m3, Type::bf16}, {e4m3, e5m2, Type::fp16}, {e5m2, e4m3, Type::fp32}, {e5m2, e5m2, Type::bf16},
                               {e4m3, e4m3, Type::fp32}, {Type::bf16, Type::bf16, Type::fp32}, {Type::fp16, Type::fp16, Type::fp32},
                               {e4m3, e4m3, Type::fp16}, {e4m3, e4m3, e4m3}, {e4m3, e5m2, e5m2}};
struct TypesWay {
    int tile_m, tile_n;
    Schedule schedule = Schedule::cooperative;
    bool swap_ab = false;
    int split_k = 1, cluster_m = 1, cluster_n = 1;
};
constexpr TypesWay types_ways[] = {{128, 256}, {128, 128, Schedule::pingpong}, {64, 16}, {256, 176}, {128, 128, Schedule::cooperative, true}, {72, 64, Schedule::cooperative, true},
                        {112, 128, Schedule::pingpong, true}, {64, 64, Schedule::cooperative, false, 8}, {48, 128, Schedule::cooperative, true, 2},
                        {256, 128}, {128, 128, Schedule::cooperative, false, 1, 1, 2}, {64, 128, Schedule::cooperative, false, 2, 2, 1},
                        {128, 128, Schedule::pingpong, false, 1, 2, 1}, {128, 256, Schedule::cooperative, false, 1, 1, 2}, {128, 192}, {128, 160, Schedule::cooperative, false, 1, 2, 1},
                        {192, 128, Schedule::cooperative, false, 1, 1, 2}, {64, 96}, {128, 144, Schedule::cooperative, false, 2}};

class GemmTypesTest : public DeviceTest {
  protected:
    static GemmProblem drawn(Random& random, const Types& types, Scales scales, bool promoted) {
        const auto size = [&](std::size_t most) { return 1 + std::int64_t(random.pick(most)); };
        const bool bytes = is_fp8(types.a);
        const std::int64_t step = bytes ? 16 : 8;  // elements in 16 bytes
        const auto major = [&] { return random.coin() ? Major::k : Major::mn; };
        const std::int64_t m = size(random.pick(4) == 0 ? 130 : 1500), k = size(2000);
        std::int64_t n = size(random.pick(4) == 0 ? 130 : 1500);
        if (random.coin()) n = (n + 7) / 8 * 8;
        // Every third is packed first: of any major, its lines begin anywhere.
        const bool packed = random.pick(3) == 0;
        GemmProblem p = gemm_problem(m, n, k, Type::bf16, packed ? major() : Major::k, packed ? major() : Major::k);
        p.a_type = types.a, p.b_type = types.b, p.c_type = types.result;
        for (std::int64_t* leading : {&p.lda, &p.ldb})
            *leading = packed ? *leading + std::int64_t(random.pick(40)) : (*leading + step - 1) / step * step + step * std::int64_t(random.pick(3));
        if (packed) p.a_offset = std::int64_t(random.pick(8)), p.b_offset = std::int64_t(random.pick(8));
        p.ldc = p.n + (random.pick(4) == 0 ? 8 * std::int64_t(random.pick(3)) : 0);
        if (scales == Scales::block && !bytes) scales = Scales::row;
        p.accumulation = promoted && bytes ? Accumulation::promoted : Accumulation::fast;
        p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "", {}, scales);
        check(p);
        return p;
    }
    static std::optional<GemmPlan> planned(const Machine& machine, const GemmProblem& p, const TypesWay& way) {
        GemmRequest r;
        r.kernel = find_gemm_kernel("sm90_gemm");
        r.tile_m = way.tile_m, r.tile_n = way.tile_n, r.schedule = way.schedule, r.swap_ab = way.swap_ab;
        r.split_k = way.split_k, r.cluster_m = way.cluster_m, r.cluster_n = way.cluster_n;
        r.top = 1, r.buildable_only = true;
        auto derived = derive(machine, p, r);
        auto* plans = std::get_if<Plans>(&derived);
        return plans ? std::optional(plans->plans.front()) : std::nullopt;
    }
    static Verification verified(const MeasureKernels& kernels, const Kernel& kernel, std::uint64_t seed) {
        const GemmProblem& p = kernel.plan().problem;
        DeviceBuffer workspace(std::max<std::size_t>(kernel.workspace_bytes(), 256));
        const GemmReference reference(kernels, p);
        Verifier verifier(kernels, reference, gemm_operation().tensors({&gemm_operation(), Own::of(p)}), 1, memory_info().free_bytes / 4);
        const TensorLaunch launch = [&](Stream stream, TensorPointers t) { kernel.launch(stream, t, workspace.data()); };
        return verifier.verify(seed, {&launch, 1}, reference.cases()).front();
    }
};

TEST_F(GemmTypesTest, FuzzedAgainstFp64) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", 1);
    const std::size_t count = from_environment("ROOFTILE_FUZZ_SHAPES", 96);
    const Machine machine = live_machine().machine;
    Random random(seed);
    std::vector<GemmPlan> plans;
    for (std::size_t i = 0; plans.size() < count; ++i) {
        constexpr Scales scales[] = {Scales::none, Scales::tensor, Scales::row, Scales::block, Scales::block};
        const std::size_t at = plans.size();
        if (auto plan = planned(machine, drawn(random, all_types[at % std::size(all_types)], scales[i % std::size(scales)], i % 2 == 1),
                                types_ways[i / 5 % std::size(types_ways)]))
            plans.push_back(std::move(*plan));
        ASSERT_LT(i, 100 * count) << "no problem suits a way";
    }
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    double worst[2] = {};
    int failures = 0;
    for (std::size_t i = 0; i < count && failures < 12; ++i) {
        const GemmProblem& p = plans[i].problem;
        const GemmConfig& c = plans[i].config;
        const std::string shown = fmt::format("case {} {}x{}x{} {} x {} -> {} {} ldc {} tile {}x{} {}{} split {} cluster {}x{} {}", i, p.m, p.n, p.k,
                                              name_of(p.a_type), name_of(p.b_type), name_of(p.c_type), name_of(p.accumulation), p.ldc, c.tile_m, c.tile_n,
                                              name_of(c.schedule), c.swap_ab ? " swapped" : "", c.split_k, c.cluster_m, c.cluster_n,
                                              p.epilogue.text());
        const auto* kernel = std::get_if<Kernel>(&kernels[i]);
        if (!kernel) {
            ++failures;
            ADD_FAILURE() << shown << "\n  " << std::string(std::get<Error>(kernels[i]).what()).substr(0, 300);
            continue;
        }
        const Verification v = verified(measure_kernels, *kernel, seed + i);
        double& largest = worst[is_fp8(p.a_type)];
        largest = std::max(largest, v.max_error);
        if (v.failure.empty()) continue;
        ++failures;
        ADD_FAILURE() << shown << "\n  " << v.failure;
    }
    fmt::print("{} products, largest error {:.3f} of its bound, of 8-bit operands {:.3f}\n", count, worst[0], worst[1]);
}

TEST_F(GemmTypesTest, AScaleAppliedTwiceIsCaught) {
    GemmProblem p = gemm_problem(256, 512, 256);
    p.a_type = p.b_type = e4m3;
    p.epilogue = product_epilogue(p.m, p.n, p.c_type, 1, 0, "", {}, Scales::tensor);
    GemmRequest request;
    request.top = 1, request.buildable_only = true;
    const GemmPlan plan = std::get<Plans>(derive(live_machine().machine, p, request)).plans.front();
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    EXPECT_TRUE(verified(measure_kernels, compile(plan), 1).failure.empty());
    CompileOptions options;
    options.alter = [](Source& source) {
        const std::string right = "* scale_b_k";
        const std::size_t at = source.text.find(right);
        ASSERT_NE(at, std::string::npos) << source.text;
        source.text.replace(at, right.size(), "* scale_b_k * scale_b_k");
    };
    EXPECT_FALSE(verified(measure_kernels, compile(plan, options), 1).failure.empty()) << "nobody saw it";
}

}  // namespace
}  // namespace rooftile
