// How long NVRTC takes for the kernels of the ladder, on one core. The bar of a quiet core of an H200's host: 0.5 s
// (docs/facts.md 64).
#include <benchmark/benchmark.h>

#include "rooftile/gemm/device/ladder_kernel.hpp"
#include "rooftile/gemm/ladder_model.hpp"
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

}  // namespace
}  // namespace rooftile
