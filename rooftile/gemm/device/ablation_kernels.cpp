#include "rooftile/gemm/device/ablation_kernels.hpp"

#include <fmt/core.h>

#include <future>
#include <memory>

#include "rooftile/gemm/device/kernel.hpp"
#include "rooftile/gemm/parts.hpp"

namespace rooftile {
namespace {

constexpr Ablation parts_of_a_kernel[] = {Ablation::loads, Ablation::products, Ablation::store};

KernelOutcome compiled_without(Ablation part, const GemmPlan& plan) {
    try {
        return compile(plan, {.ablated = part});
    } catch (const Error& error) {
        if (error.code() != ExitCode::compile_failed) throw;
        return error;
    }
}

}  // namespace

std::vector<TimedPart> timed_parts(const GemmPlan& plan, AblationStudy& study) {
    std::vector<std::future<KernelOutcome>> compiling;
    for (Ablation part : parts_of_a_kernel)
        compiling.push_back(
            std::async(std::launch::async, [part, &plan] { return compiled_without(part, plan); }));
    std::vector<TimedPart> out;
    for (std::size_t i = 0; i < compiling.size(); ++i) {
        PartTime& part = study.parts.emplace_back();
        part.ablated = parts_of_a_kernel[i];
        const KernelOutcome outcome = compiling[i].get();
        if (const auto* error = std::get_if<Error>(&outcome)) {
            part.invalid = error->what();
            continue;
        }
        const Kernel kernel = std::get<Kernel>(outcome);
        kernel.load();
        std::shared_ptr<DeviceBuffer> workspace;
        if (const std::size_t bytes = kernel.workspace_bytes(); bytes > 0) {
            workspace = std::make_shared<DeviceBuffer>(bytes);
            fill_bytes(workspace->address(), 0, bytes, nullptr);
        }
        out.push_back({fmt::format("plan {} without {}", plan.rank, name_of(part.ablated)),
                       [kernel, workspace](Stream stream, TensorPointers tensors) {
                           kernel.launch(stream, tensors, workspace ? workspace->data() : nullptr);
                       },
                       i});
    }
    return out;
}

void set_part(PartTime& part, const TimedResult& timed) {
    if (!timed.failure.empty()) part.invalid = timed.failure;
    else if (timed.rounds.empty()) part.invalid = "no block of it was timed";
    if (!part.invalid.empty()) return;
    part.time_us = timed.time_us.median;
    part.time_us_low = timed.time_us.low;
    part.time_us_high = timed.time_us.high;
    part.samples = static_cast<std::int64_t>(timed.rounds.size());
    part.sm_clock_mhz = timed.sm_clock_mhz;
}

}  // namespace rooftile
