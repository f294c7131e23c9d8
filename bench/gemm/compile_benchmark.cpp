// How long NVRTC takes for the kernels of the ladder, and for sm80_gemm on every architecture that it is made for, on one
// core. The bar of a quiet core of an H200's host: 0.5 s (docs/facts.md 64).
#include <benchmark/benchmark.h>

#include <array>

#include "rooftile/gemm/device/ladder_kernel.hpp"
#include "rooftile/gemm/device/sm80_launch.hpp"
#include "rooftile/gemm/kernel.hpp"
#include "rooftile/gemm/ladder_model.hpp"
#include "rooftile/gemm/sm80_space.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {
namespace {

void compile(benchmark::State& state, const Source& source) {
    for (auto _ : state) benchmark::DoNotOptimize(compile_source(source));
}

void ladder(benchmark::State& state) {
    const auto rung = static_cast<Rung>(state.range(0));
    state.SetLabel(std::string(name_of(rung)));
    compile(state, ladder_source(rung, Type::bf16, "sm_90"));
}
BENCHMARK(ladder)->DenseRange(0, rung_count - 1)->Unit(benchmark::kMillisecond);

// The first plan of a machine of that architecture; of sm_120 there is none, and B200's plan stands for it.
constexpr std::array<std::array<const char*, 2>, 6> sm80_archs = {{{"sm_80", "a100-80-sxm"},
                                                                   {"sm_86", "a40"},
                                                                   {"sm_89", "l40s"},
                                                                   {"sm_90", "h200-sxm"},
                                                                   {"sm_100", "b200"},
                                                                   {"sm_120", "b200"}}};
void sm80_gemm(benchmark::State& state, std::int64_t k) {
    const auto &[arch, machine] = sm80_archs[static_cast<std::size_t>(state.range(0))];
    GemmRequest request;
    request.kernel = find_gemm_kernel("sm80_gemm");
    const auto derived = derive(machine_by_id(machine), gemm_problem(4096, 4096, k), request);
    state.SetLabel(arch);
    const GemmPlan& plan = std::get<Plans>(derived).plans.at(0);
    compile(state, sm80_source(sm80_config(plan.problem, plan.config), arch));
}
BENCHMARK_CAPTURE(sm80_gemm, whole_copies, 4096)->DenseRange(0, 5)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(sm80_gemm, element_copies, 4095)->DenseRange(0, 5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rooftile
