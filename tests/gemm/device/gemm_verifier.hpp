// The Verifier on a GEMM's operands, for launches that take them one by one.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/device/verify.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/operation.hpp"
#include "rooftile/measure/verifier.hpp"

namespace rooftile {

inline TensorLaunch on_tensors(GemmLaunch launch) {
    return [launch = std::move(launch)](Stream stream, TensorPointers t) { launch(stream, t[0], t[1], t[2]); };
}

class GemmVerifier {
  public:
    static constexpr VerifyCase values[] = {VerifyCase::exact, VerifyCase::random};
    static constexpr VerifyCase all[] = {VerifyCase::exact, VerifyCase::random, VerifyCase::special};

    /// `rounded`: as GemmReference has it.
    GemmVerifier(const MeasureKernels& kernels, const GemmProblem& problem, int results = 1, bool rounded = false)
        : reference_(kernels, problem, rounded),
          verifier_(kernels, reference_, gemm_operation().tensors({&gemm_operation(), Own::of(problem)}),
                    std::size_t(results), memory_info().free_bytes / 4) {}

    std::vector<CaseOutcome> check(VerifyCase which, std::uint64_t seed, const std::vector<TensorLaunch>& launches) {
        return verifier_.check(which, seed, launches);
    }
    Verification check_values(std::uint64_t seed, const TensorLaunch& launch) {
        return verifier_.verify(seed, std::span(&launch, 1), values).front();
    }
    Verification check_everything(std::uint64_t seed, const TensorLaunch& launch) {
        return verifier_.verify(seed, std::span(&launch, 1), all).front();
    }
    std::vector<CaseOutcome> check(VerifyCase which, std::uint64_t seed, const std::vector<GemmLaunch>& launches) {
        return verifier_.check(which, seed, tensor_launches(launches));
    }
    CaseOutcome check(VerifyCase which, std::uint64_t seed, const GemmLaunch& launch) {
        return check(which, seed, std::vector{launch}).front();
    }
    std::vector<Verification> verify(std::uint64_t seed, const std::vector<GemmLaunch>& launches,
                                     std::span<const VerifyCase> cases = all) {
        return verifier_.verify(seed, tensor_launches(launches), cases);
    }
    Verification check_values(std::uint64_t seed, const GemmLaunch& launch) {
        return verify(seed, {launch}, values).front();
    }
    Verification check_all(std::uint64_t seed, const GemmLaunch& launch) { return verify(seed, {launch}).front(); }

    /// Of C for the random case of `seed`: the same from run to run of a deterministic kernel.
    std::uint64_t fingerprint(std::uint64_t seed, const GemmLaunch& launch) {
        check(VerifyCase::random, seed, launch);
        return verifier_.fingerprint(0).value();
    }
    const void* a() const { return verifier_.tensors(0)[0]; }
    const void* b() const { return verifier_.tensors(0)[1]; }
    const void* c() const { return verifier_.tensors(0)[2]; }
    std::size_t results() const { return verifier_.results(); }

  private:
    static std::vector<TensorLaunch> tensor_launches(const std::vector<GemmLaunch>& launches) {
        std::vector<TensorLaunch> out;
        for (const GemmLaunch& launch : launches) out.push_back(on_tensors(launch));
        return out;
    }
    GemmReference reference_;
    Verifier verifier_;
};

/// `count` plans: of each place the first that `derived(place)`, which draws anew each time, finds.
template <class Derived>
std::vector<GemmPlan> drawn_plans(int count, const Derived& derived) {
    std::vector<GemmPlan> plans;
    for (int i = 0; i < count; ++i)
        for (int attempt = 0; std::size_t(i) == plans.size() && attempt < 1000; ++attempt) {
            const auto outcome = derived(i);
            if (const auto* found = std::get_if<Plans>(&outcome)) plans.push_back(found->plans.front());
        }
    return plans;
}

/// Every plan's kernel, compiled, at every element; up to ten failures. `shown(plan's problem, its place)` says how to have it again.
template <class Shown>
void expect_every_element_right(const std::vector<GemmPlan>& plans, std::uint64_t seed, std::string_view kernel_name, const Shown& shown) {
    const std::vector<KernelOutcome> kernels = compile_all(plans);
    const MeasureKernels measure_kernels(compile_measure_kernels("sm_90"));
    double worst = 0;
    int failures = 0;
    for (std::size_t i = 0; i < plans.size() && failures < 10; ++i) {
        const GemmProblem& p = plans[i].problem;
        const auto* kernel = std::get_if<Kernel>(&kernels[i]);
        if (!kernel) {
            ++failures;
            ADD_FAILURE() << shown(p, i) << "\n  " << std::get<Error>(kernels[i]).what();
            continue;
        }
        const DeviceBuffer workspace(std::max<std::size_t>(kernel->workspace_bytes(), 256));
        fill_bytes(workspace.address(), 0, workspace.bytes(), nullptr);
        const TensorLaunch launch = [&](Stream stream, TensorPointers tensors) { kernel->launch(stream, tensors, workspace.data()); };
        const Verification v = GemmVerifier(measure_kernels, p, 1, rounds_weights(plans[i])).check_everything(seed + i, launch);
        worst = std::max(worst, v.max_error);
        if (v.failure.empty()) continue;
        ++failures;
        ADD_FAILURE() << shown(p, i) << "\n  " << kernel->name_expression() << "\n  " << v.failure;
    }
    fmt::print("{} products of {}, largest error {:.3f} of its bound\n", plans.size(), kernel_name, worst);
}

}  // namespace rooftile
