// How long NVRTC takes for our kernels, on one core. The bars of a quiet core of an H200's host: a fused kernel 0.3 s, a
// rung of the ladder 0.5 s (docs/facts.md 64).
#include <benchmark/benchmark.h>

#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/tensor_value.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/gemm/device/ladder_kernel.hpp"
#include "rooftile/gemm/ladder_model.hpp"
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

void fuse(benchmark::State& state, const char* text, const std::vector<std::string>& tensors) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    const auto outcome = derive(machine_by_id("h200-sxm"), expression_graph(text, declared), {.top = 1});
    compile(state, fuse_source(std::get<FusePlans>(outcome).plans[0]));
}
BENCHMARK_CAPTURE(fuse, gelu, "y = gelu(x)", {"x:bf16[16384,16384]"})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fuse, softmax, "y = softmax(x)", {"x:bf16[2048,65536]"})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fuse, layernorm_chain, "y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7))",
                  {"x:bf16[2048,65536]", "g:bf16[65536]", "b:bf16[65536]", "r:bf16[2048,65536]"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rooftile
