// How long planning takes: the whole candidate set of `plan gemm`, and derive() with its written derivations.
#include <benchmark/benchmark.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/plan/gemm_sm90.hpp"

namespace rooftile {
namespace {

// The bar: the whole set under 100 us on one core.
void candidates(benchmark::State& state) {
    std::vector<std::string> unknown;
    const GemmHardware hw = gemm_hardware(machine_by_id("h100-sxm"), "wgmma", Type::bf16, unknown);
    const GemmProblem problem = gemm_problem(4096, 14336, 4096);
    const GemmRequest request;
    const Sm90GemmFamily family(hw, problem);
    std::int64_t count = 0, visited = 0;
    family.for_each(request, [&](const GemmCandidate&) { ++visited; });
    for (auto _ : state) {
        const SearchResult result = search(family, hw, problem, request);
        count = result.rejected.count() + std::int64_t(result.best.kept().size());
        benchmark::DoNotOptimize(count);
    }
    // Stages and orders of a tile fall together, so the space is far larger than what is visited one by one.
    state.counters["combinations"] = double(count);
    state.counters["visited"] = double(visited);
}
BENCHMARK(candidates)->Unit(benchmark::kMicrosecond);

void derive_with_reasons(benchmark::State& state) {
    const Machine machine = machine_by_id("h100-sxm");
    const GemmProblem problem = gemm_problem(4096, 14336, 4096);
    for (auto _ : state) benchmark::DoNotOptimize(derive(machine, problem));
}
BENCHMARK(derive_with_reasons)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rooftile
