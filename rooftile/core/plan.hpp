// A plan of any operation: every parameter of its kernels, what they will use and achieve, and why. Stations read it
// through its operation (core/operation.hpp); plans of several operations stand in one list, and one inside another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/bound.hpp"
#include "rooftile/core/interval.hpp"
#include "rooftile/core/problem.hpp"
#include "rooftile/core/step.hpp"
#include "rooftile/core/value.hpp"

namespace rooftile {

/// What a launch finds in its workspace, and leaves there for the next.
enum class WorkspaceState : unsigned char { any, zeroed };

/// One kernel launch of a plan.
struct PlannedLaunch {
    std::string kernel;  ///< the variant's name, as `config.kernel` has it
    std::int64_t workspace_bytes = 0;
    WorkspaceState before = WorkspaceState::any, after = WorkspaceState::any;
};

/// Where a part finds or puts one of its tensors: one of the plan's own by its name, or one between parts by a name that the plan has none of.
/// That one is in the plan's workspace, as large as the part that stores it says.
struct Wire {
    std::string tensor;
    std::int64_t offset_bytes = 0;  ///< from its beginning
};

struct Plan {
    const Operation* operation = nullptr;
    Problem problem;
    int rank = 0;
    bool buildable = false;
    std::string why_not;  ///< where not buildable
    std::optional<double> time_us;  ///< predicted; empty where a number is unknown
    std::optional<PredictedInterval> interval;  ///< of that time; empty where no runs tell
    std::optional<Bound> bound;     ///< what that time is the time of
    Steps derivation;
    std::vector<std::string> unknown;     ///< keys of the machine that this plan lacked
    std::vector<PlannedLaunch> launches;  ///< in their order
    std::vector<Plan> parts;              ///< plans inside this one, in the order in which they run
    std::vector<std::vector<Wire>> wires;  ///< of each part, in the order of its operation's tensors(); empty: the operation wires its parts
    Own own;                              ///< the operation's: config, resources, prediction
};

/// Why a request that is right has no plan.
struct Refusal {
    Reason reason = Reason::instruction;
    std::string message;  ///< one line: what is needed, what there is, what to change
    std::optional<double> needed, available;
};

/// What a search came to: plans, best first, or the one reason why there is none.
struct PlanSet {
    std::string machine_id, machine_name;
    Problem problem;
    std::vector<Plan> plans;
    std::optional<Refusal> refusal;  ///< set exactly where `plans` is empty
    Rejected rejected;
    std::vector<std::string> unknown;          ///< machine keys nobody knows that a plan asked for
    std::vector<std::string> unchecked_constraints;  ///< constraints that those unknowns left unchecked
    std::vector<std::string> notes;            ///< what a reader must know
    std::string why_no_interval;               ///< of plan 1's time, where runs are recorded, but for another machine
    Record totals;                             ///< of the problem as a whole, whichever plan runs
    Own own;                                   ///< what else the operation keeps of it
};

}  // namespace rooftile
