// How long planning takes, on one core: the search alone, derive(), the reasons of one plan, a plan met
// before.
#include <benchmark/benchmark.h>

#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/gemm/plan_cache.hpp"

namespace rooftile {
namespace {

// A long prompt, whose tiles fill the GPU many times; a short one; a few tokens, where K is split.
void shapes(benchmark::internal::Benchmark* bench) {
    bench->ArgNames({"m", "n", "k"})->Unit(benchmark::kMicrosecond);
    for (const auto& shape :
         {std::vector<std::int64_t>{4096, 14336, 4096}, {1024, 4096, 14336}, {64, 4096, 4096}})
        bench->Args(shape);
}
GemmProblem problem_of(const benchmark::State& state) {
    return gemm_problem(state.range(0), state.range(1), state.range(2));
}

GemmRequest unsimulated() {
    GemmRequest request;
    request.simulate = false;
    return request;
}

struct Count final : GemmVisitor {
    std::int64_t candidates = 0;
    void reject(const Constraint&, const GemmCandidate&, std::int64_t how_many) override {
        candidates += how_many;
    }
    void accept(const GemmCandidate&) override { ++candidates; }
};

void candidates(benchmark::State& state) {
    std::vector<std::string> unknown;
    const GemmHardware hw = gemm_hardware(machine_by_id("h100-sxm"), "wgmma", Type::bf16, unknown);
    const GemmProblem problem = problem_of(state);
    const GemmRequest request = unsimulated();
    const Sm90GemmFamily family(hw, problem);
    std::int64_t combinations = 0;
    for (auto _ : state) {
        const SearchResult result = search(family, hw, problem, request);
        combinations = result.rejected.count() + std::int64_t(result.best.size());
        benchmark::DoNotOptimize(combinations);
    }
    Count count;
    family.enumerate(hw, problem, request, count);
    GemmSearch timing(hw, problem, request);
    family.enumerate(hw, problem, request, timing);
    // Each candidate stands for all its stages and orders.
    state.counters["combinations"] = double(combinations);
    state.counters["candidates"] = double(count.candidates);
    state.counters["timed"] = double(timing.timed());
}
BENCHMARK(candidates)->Apply(shapes);

// The bar: 50 us, cold, with 1,000 candidates and more, orders by formula.
void derive_cold(benchmark::State& state) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h100-sxm"));
    const GemmProblem problem = problem_of(state);
    for (auto _ : state) benchmark::DoNotOptimize(derive(machine, problem, unsimulated()));
}
BENCHMARK(derive_cold)->Apply(shapes);

// The bar: 20 ms.
void derive_simulated(benchmark::State& state) {
    const auto machine = std::make_shared<const Machine>(machine_by_id("h100-sxm"));
    const GemmProblem problem = problem_of(state);
    for (auto _ : state) benchmark::DoNotOptimize(derive(machine, problem));
}
BENCHMARK(derive_simulated)->Apply(shapes);

void derive_and_explain_plan_1(benchmark::State& state) {
    const Machine machine = machine_by_id("h100-sxm");
    const GemmProblem problem = problem_of(state);
    for (auto _ : state) {
        const auto outcome = derive(machine, problem, unsimulated());
        benchmark::DoNotOptimize(std::get<Plans>(outcome).plans.front().derivation.size());
    }
}
BENCHMARK(derive_and_explain_plan_1)->Apply(shapes);

// The bar: 0.2 us.
void derive_from_cache(benchmark::State& state) {
    PlanCache cache(machine_by_id("h100-sxm"));
    const GemmProblem problem = problem_of(state);
    for (auto _ : state) benchmark::DoNotOptimize(cache.derive(problem));
}
BENCHMARK(derive_from_cache)->Apply(shapes);

}  // namespace
}  // namespace rooftile
