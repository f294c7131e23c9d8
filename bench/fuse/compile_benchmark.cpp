// How long NVRTC takes for fused kernels, on one core. The bar of a quiet core of an H200's host: 0.3 s (docs/facts.md 64).
#include <benchmark/benchmark.h>

#include "rooftile/expression/expression.hpp"
#include "rooftile/expression/tensor_value.hpp"
#include "rooftile/fuse/device/source.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/runtime/nvrtc.hpp"

namespace rooftile {
namespace {

void fuse(benchmark::State& state, const char* text, const std::vector<std::string>& tensors) {
    std::vector<TensorDeclaration> declared;
    for (const std::string& t : tensors) declared.push_back(tensor_declaration(t));
    const auto outcome = derive(machine_by_id("h200-sxm"), expression_graph(text, declared), {.top = 1});
    const Source source = fuse_source(std::get<FusePlans>(outcome).plans[0]);
    for (auto _ : state) benchmark::DoNotOptimize(compile_source(source));
}
BENCHMARK_CAPTURE(fuse, gelu, "y = gelu(x)", {"x:bf16[16384,16384]"})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fuse, softmax, "y = softmax(x)", {"x:bf16[2048,65536]"})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fuse, layernorm_chain, "y = gelu(dropout(layernorm(x, g, b) + r, 0.1, 7))",
                  {"x:bf16[2048,65536]", "g:bf16[65536]", "b:bf16[65536]", "r:bf16[2048,65536]"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rooftile
