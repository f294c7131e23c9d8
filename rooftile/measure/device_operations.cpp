#include <fmt/core.h>

#include <cassert>
#include <optional>
#include <utility>

#include "rooftile/core/first_buildable.hpp"
#include "rooftile/core/in_parallel.hpp"
#include "rooftile/measure/device_operation.hpp"

namespace rooftile {

#define ROOFTILE_OPERATION(NAME) const DeviceOperation& NAME##_on_device();
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION

const DeviceOperation& on_device(const Operation& operation) {
#define ROOFTILE_OPERATION(NAME) \
    if (operation.name() == #NAME) return NAME##_on_device();
#include "rooftile/operations.def"
#undef ROOFTILE_OPERATION
    throw Error(ExitCode::internal, "no device half of " + std::string(operation.name()));
}

CompiledKernel compile(const Plan& plan, const CompileOptions& options) {
    return on_device(*plan.operation).compile(plan, options);
}

CompiledKernel compile_first(const PlanSet& plans, std::vector<std::string>& notes, const std::function<CompiledKernel(const Plan&)>& make) {
    const Plan& first = first_buildable(plans);
    std::optional<Error> refused;
    std::vector<std::string> said;
    for (const Plan& plan : std::span(plans.plans).subspan(std::size_t(&first - plans.plans.data()))) {
        if (!plan.buildable) continue;
        CompiledOutcome outcome = compile_outcome(plan, make);
        if (auto* kernel = std::get_if<CompiledKernel>(&outcome)) {
            notes.insert(notes.end(), said.begin(), said.end());
            return std::move(*kernel);
        }
        const Error& error = std::get<Error>(outcome);
        if (error.code() != ExitCode::compile_failed) throw error;
        if (!refused) refused = error;
        said.push_back(refused_plan(plan, error));
    }
    throw *refused;
}

std::string refused_plan(const Plan& plan, const Error& error) {
    return fmt::format("plan {}, {}: {}; the next plan is taken", plan.rank, plan.operation->label(plan), error.what());
}

CompiledOutcome compile_outcome(const Plan& plan, const std::function<CompiledKernel(const Plan&)>& make) {
    try {
        return make ? make(plan) : compile(plan);
    } catch (const Error& error) { return error; } catch (const std::exception& error) {
        return Error(ExitCode::internal, error.what());
    }
}

std::vector<CompiledOutcome> compile_all(std::span<const Plan> plans, unsigned threads,
                                         const std::function<CompiledKernel(const Plan&)>& make) {
    std::vector<CompiledOutcome> outcomes(plans.size(), Error(ExitCode::internal, "not compiled"));
    in_parallel(plans.size(), threads, [&](std::size_t i) { outcomes[i] = compile_outcome(plans[i], make); });
    return outcomes;
}

}  // namespace rooftile
