// From a machine's numbers to a GEMM plan, with its reasons. Needs no GPU.
#include <cstdio>
#include <string>

#include "rooftile/machine/registry.hpp"
#include "rooftile/gemm/plan.hpp"

int main() {
    using namespace rooftile;
    const Machine machine = machine_by_id("h100-sxm");
    const auto result = derive(machine, gemm_problem(4096, 14336, 4096, Type::bf16));
    if (const auto* why = std::get_if<Infeasible>(&result))
        return std::printf("%s\n", why->message.c_str()), 1;

    const GemmPlan& plan = std::get<Plans>(result).plans.front();
    std::printf("%d x %d x %d, %d stages\n", plan.config.tile_m, plan.config.tile_n, plan.config.tile_k,
                plan.config.stages);
    for (const Step& step : plan.derivation)
        std::printf("%-24s %s\n%24s %s\n", step.quantity.c_str(), step.formula.c_str(), "",
                    step.limit.c_str());
}
