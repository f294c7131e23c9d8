// A declared space: the configurations of a problem by a written rule, against which choices are judged. A ledger holds
// every member's measured time (report/ledger.hpp).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// What somebody else's rule picks, as values that a request may fix; the first of them that has a plan is the pick.
struct Pick {
    std::string name;                 ///< of the rule
    std::vector<Given> alternatives;  ///< nearest first
};

struct DeclaredSpace {
    struct Picked {
        std::string name;
        std::size_t member;
    };
    std::vector<Plan>
        members;           ///< each of another configuration; those that derive() keeps first, best first
    std::size_t kept = 0;  ///< so many of them
    std::vector<Picked> picks;
    std::vector<std::string> notes;  ///< picks that have no plan, and why
};

/// What derive() keeps, `top` of them, then the operation's space, then its picks and `others` as far as they are new.
/// Empty where no plan fits. Throws RequestError where the operation declares no space.
DeclaredSpace declared_space(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                             const Problem& problem, int top, std::span<const Pick> others = {});

/// The plan of exactly that configuration by today's model, where there is one. Keys that came after the record are the
/// planner's choice.
std::optional<Plan> plan_of_config(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                                   const Problem& problem, const Record& config);

/// The plan that is the same member: what the record fixes, fixed, and the rest as today's planner has it. Keys of space_keys() that came
/// after the record are the planner's choice, too; of an operation that declares none all is.
std::optional<Plan> plan_of_member(const Operation& operation, const std::shared_ptr<const Machine>& machine, const Problem& problem,
                                   const Record& config);

/// Whether two configurations are one member: the same values under the operation's space_keys().
bool same_member(const Operation& operation, const Record& x, const Record& y);

}  // namespace rooftile
