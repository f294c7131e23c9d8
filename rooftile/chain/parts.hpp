// A chain's two products as their own operation plans them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/chain/hardware.hpp"
#include "rooftile/chain/model.hpp"
#include "rooftile/chain/plan.hpp"
#include "rooftile/core/operation.hpp"

namespace rooftile {

/// A product planned by its own operation, as the chain takes it.
struct PlannedProduct {
    std::optional<Plan> plan{};
    std::string why_not{};     ///< it cannot be built as the chain needs it
    bool with_epilogue = false;
    ChainProduct product{};
    std::optional<std::int64_t> bound_bytes{};
};

/// The machine with a DRAM that never binds.
Machine without_dram(const Machine& machine);

/// A plan of a product as L2 sees it.
ChainProduct product_of(const ChainHardware& hw, const Plan& plan);
/// Its time by its own operation; `no_dram`: the machine without_dram().
ProductTime time_of(const Machine& machine, const Machine& no_dram, const Plan& plan, const Predictor& predicts);

/// Planned as asked for; where its operation refuses that on this machine, without `plain` the epilogue, for its time and traffic.
PlannedProduct planned(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, const Given& asked, const Given& plain);
/// The same of up to `top` plans, best first; empty where its operation refuses.
std::vector<PlannedProduct> planned_several(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, Given asked, int top);
/// `plan` once more, of the request `asked` and with `changes` of its configuration.
PlannedProduct planned_again(const std::shared_ptr<const Machine>& machine, const ChainHardware& hw, const Plan& plan, Given asked, const Record& changes);

}  // namespace rooftile
