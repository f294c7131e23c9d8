// What a memory-bound kernel's derivation prints of what its form has is the form's own formula.
#include "rooftile/fuse/formulas.hpp"

#include "rooftile/core/random.hpp"
#include "rooftile/fuse/forms.hpp"
#include "rooftile/fuse/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "tests/formula_check.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

namespace f = fuse_formula;

TEST(FuseFormulas, AFormsFormulasAreTheDerivations) {
    const std::vector<const Formula*> shared = {&f::moved_bytes, &f::vector_width, &f::elements_in_registers, &f::elements_in_rounds, &f::rows_per_cta,
                                                &f::bytes_in_flight_needed, &f::bytes_in_flight, &f::ctas_per_sm, &f::ctas_per_sm_shared,
                                                &f::persistent_grid, &f::grid, &f::issue_time, &f::time_us, &f::speedup};
    std::vector<const Formula*> form;
    for (const FormulaPage& page : fuse_forms())
        for (const Formula* formula : formulas_in(page.sections)) form.push_back(formula);
    for (const Formula* formula : shared) EXPECT_NE(std::ranges::find(form, formula), form.end()) << formula->quantity;
    FormulaCheck check(shared);
    // Rings, grids that are resident and columns say theirs otherwise.
    static constexpr std::string_view others[] = {
        "grid", "ctas_per_sm", "bytes_in_flight", "rows_per_cta", "shared_bytes", "row_part_bytes", "chunk_bytes", "kept_bytes", "stages",
        "reduction_threads", "epilogue_bytes", "held_in_l2", "held_iterations", "threads_per_row", "additions", "row_splits"};
    const Operation& fuse = fuse_operation();
    const auto all_of = [&](std::string_view id, const Problem& problem) {
        const auto machine = std::make_shared<const Machine>(machine_by_id(id));
        const PlanSet plans = fuse.derive(machine, problem, fuse.request(Given(Given::Named::by_key), {}));
        for (const Plan& plan : plans.plans) check.steps(*machine, plan.derivation, machine->number<Clock>("clock.boost")->value, others);
    };
    // Of no draw: one sum of all.
    Given sum(Given::Named::by_key);
    sum.add("expression", "s = sum_all(x)"), sum.add("tensor", "x:bf16[4096,4096]");
    all_of("h200-sxm", fuse.problem(sum));
    Random random(from_environment("ROOFTILE_FUZZ_SEED", 3));
    for (std::size_t i = 0, count = from_environment("ROOFTILE_FUZZ_SHAPES", 60); i < count; ++i) {
        static constexpr std::string_view machines[] = {"h200-sxm", "a100-80-sxm", "rtx4090"};
        all_of(random.one_of(machines), fuse.draw(random, {}));
        if (HasFatalFailure()) return;
    }
    check.all_were_met();
}

}  // namespace
}  // namespace rooftile
