// Holds predictions against the roofs of their demands, for tests that draw problems of their own.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "rooftile/core/operation.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/physics/roofs.hpp"

namespace rooftile {

/// No unit of any shipped machine can do its part in less, so no prediction may say so.
inline void expect_roofs_below(const Problem& problem) {
    const Operation& operation = *problem.operation;
    for (const std::string& id : machine_ids()) {
        const auto machine = std::make_shared<const Machine>(machine_by_id(id));
        for (const Plan& plan : operation.derive(machine, problem, operation.request(Given(), {})).plans) {
            const RoofTime roof = roof_time(operation.demand(*machine, plan), *machine);
            if (!roof.seconds() || !plan.time_us) continue;
            EXPECT_GE(*plan.time_us, 0.999 * *roof.seconds() * 1e6)
                << id << " " << operation.short_name(problem) << " " << operation.label(plan) << ", "
                << name_of(*roof.bound());
        }
    }
}

}  // namespace rooftile
