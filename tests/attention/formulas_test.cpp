// What attention's derivations print is listed in its formulas, and the other way round; its form takes the same ones.
#include "rooftile/attention/formulas.hpp"

#include "rooftile/attention/operation.hpp"
#include "rooftile/core/random.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/core/example.hpp"
#include "tests/formula_check.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

TEST(AttentionFormulas, ADerivationPrintsWhatIsListedAndAllOfIt) {
    FormulaCheck check(formulas_in(attention_formulas()));
    const Operation& attention = attention_operation();
    const auto machine = std::make_shared<const Machine>(machine_by_id("h200-sxm"));
    const double clock_hz = matrix_clock(*machine, "bf16")->clock.value;
    const auto all_of = [&](const Problem& problem) {
        const PlanSet plans = attention.derive(machine, problem, attention.request(Given(Given::Named::by_key), {}));
        EXPECT_TRUE(!plans.plans.empty() || plans.refusal);
        for (const Plan& plan : plans.plans) check.steps(*machine, plan.derivation, clock_hz);
    };
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 5));
    for (std::size_t i = 0, count = from_environment("ROOFTILE_FUZZ_SHAPES", 40); i < count; ++i) {
        all_of(attention.draw(random, {}));
        if (HasFatalFailure()) return;
    }
    for (const char* line : {"--heads 8 --kv-heads 2 --dim 64 --lengths 128,0,300", "--heads 8 --q 4096 --dim 128 --mask window:256", "--heads 8 --kv-heads 2 --q 1 --kv 9000 --dim 128",
                             "--heads 128 --q 1 --kv 9000 --dim 576 --dim-v 512 --latent on"})
        all_of(attention.problem(given_of(attention, line)));
    // No more stages are counted than a kernel takes.
    check.all_were_met();
}

TEST(AttentionFormulas, TheFormHasTheDerivationsOwn) {
    const auto all = formulas_in(attention_formulas());
    int own = 0;
    for (const FormulaPage& page : attention_forms())
        for (const Formula* formula : formulas_in(page.sections)) own += std::ranges::find(all, formula) != all.end();
    EXPECT_GE(own, 15);
}

}  // namespace
}  // namespace rooftile
