// Random requests of every kind on a GPU: types, layouts, epilogues, scales, batches and groups in any company, by the best plan or another
// that is hardly slower; each element against fp64.
//
// ROOFTILE_FUZZ_SHAPES sets how many (64), ROOFTILE_FUZZ_SEED repeats a run, ROOFTILE_FUZZ_ONLY one request of it.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "rooftile/error.hpp"
#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/verify.hpp"
#include "rooftile/gemm/fields.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/machine/live.hpp"
#include "rooftile/measure/verifier.hpp"
#include "tests/device/device.hpp"
#include "tests/from_environment.hpp"
#include "tests/gemm/draw_request.hpp"

namespace rooftile {
namespace {

class GemmRequestsTest : public DeviceTest {
  protected:
    /// Empty where what is asked for is refused.
    static std::optional<GemmPlan> planned(const Machine& machine, const Given& given, Random& random) {
        constexpr int near = 4;
        try {
            GemmRequest request;
            request.top = near, request.buildable_only = true;
            auto derived = derive(machine, gemm_problem(given), request);
            auto* plans = std::get_if<Plans>(&derived);
            if (!plans) return std::nullopt;
            return plans->plans[random.coin() ? 0 : random.pick(plans->plans.size())];
        } catch (const RequestError&) { return std::nullopt; }
    }
    static Verification verified(const MeasureKernels& kernels, const Kernel& kernel, std::uint64_t seed) {
        const GemmProblem& p = kernel.plan().problem;
        DeviceBuffer workspace(std::max<std::size_t>(kernel.workspace_bytes(), 256));
        fill_bytes(workspace.address(), 0, workspace.bytes(), Stream(nullptr));  // pieces of K count in it
        const GemmReference reference(kernels, p);
        Verifier verifier(kernels, reference, gemm_operation().tensors({&gemm_operation(), Own::of(p)}), 1, memory_info().free_bytes / 4);
        const TensorLaunch launch = [&](Stream stream, TensorPointers t) { kernel.launch(stream, t, workspace.data()); };
        return verifier.verify(seed, {&launch, 1}, reference.cases()).front();
    }
};

TEST_F(GemmRequestsTest, DrawnOnesAgainstFp64) {
    const std::uint64_t seed = from_environment("ROOFTILE_FUZZ_SEED", 1);
    const std::size_t count = from_environment("ROOFTILE_FUZZ_SHAPES", 64), only = from_environment("ROOFTILE_FUZZ_ONLY", count);
    const Machine machine = live_machine().machine;
    Random random(seed);
    std::vector<GemmPlan> plans;
    std::vector<std::string> texts;
    for (std::size_t i = 0; plans.size() < count; ++i) {
        ASSERT_LT(i, 10 * count + 100) << "most requests are refused";
        const Given given = drawn_request(random, 900);
        if (auto plan = planned(machine, given, random)) plans.push_back(std::move(*plan)), texts.push_back(shown(given));
    }
    if (only < count) plans = {plans[only]}, texts = {texts[only]};
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    std::map<std::string, double> worst;
    int failures = 0;
    for (std::size_t i = 0; i < plans.size() && failures < 20; ++i) {
        const GemmProblem& p = plans[i].problem;
        const GemmConfig& c = plans[i].config;
        const std::string of = fmt::format("request {} of seed {}: {}\n  by {}x{} {}{} split {}x{} cluster {}x{} {}", only < count ? only : i, seed, texts[i], c.tile_m,
                                           c.tile_n, name_of(c.schedule), c.swap_ab ? " swapped" : "", c.split_k, c.grid_split_k, c.cluster_m,
                                           c.cluster_n, name_of(c.order));
        std::string failure;
        if (const auto* kernel = std::get_if<Kernel>(&kernels[i])) {
            const Verification v = verified(measure_kernels, *kernel, seed + (only < count ? only : i));
            failure = v.failure;
            double& largest = worst[fmt::format("{} x {} -> {}", name_of(p.a_type), name_of(p.b_type), name_of(p.c_type))];
            largest = std::max(largest, v.max_error);
        } else {
            failure = std::string(std::get<Error>(kernels[i]).what()).substr(0, 400);
        }
        if (failure.empty()) continue;
        ++failures;
        ADD_FAILURE() << of << "\n  " << failure;
    }
    for (const auto& [types, error] : worst) fmt::print("{}: largest error {:.3f} of its bound\n", types, error);
    fmt::print("{} requests\n", plans.size());
}

}  // namespace
}  // namespace rooftile
