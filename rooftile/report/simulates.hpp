// A plan's tiles followed through L2, whatever the operation: what `simulate NAME` asks of one that can.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rooftile/core/operation.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// What of a request is about the simulation, not the plan.
struct SimulationAsk {
    std::string orders, policy = "lru", layout = "half";  ///< "all" or "plan"; "lru" or "opt"; "half", "halves" or "whole"
    bool fixes_order = false;                             ///< the plan's order, or its group, is given
    bool energy = false;
};

/// Bytes of one launch in the planned order.
struct SimulatedBytes {
    std::int64_t l2 = 0, dram = 0;
    std::optional<double> dram_bound{};
};

/// One plan's, in one order of tiles or many.
class SimulatedPlan {
  public:
    SimulatedPlan() = default;
    SimulatedPlan(const SimulatedPlan&) = delete;
    SimulatedPlan& operator=(const SimulatedPlan&) = delete;
    virtual ~SimulatedPlan() = default;

    /// The document rooftile/simulation/1 (docs/schema/simulation-1.json).
    virtual Json document(const DocumentContext& context) const = 0;
    /// `tiles` of the document: of each, in the planned order, its place, its round, and the shares of its steps that found A, and B, in L2. Throws
    /// RequestError where there are too many to draw, or the cache is none that tiles are told of.
    virtual Json tiles() const = 0;
    /// What comes behind the problem's heading.
    virtual std::string text(const Terminal& terminal) const = 0;
    virtual SimulatedBytes planned() const = 0;
};

class Simulates : public Facet {
  public:
    virtual std::string_view examples() const = 0;
    /// Where nobody says which orders: "all" or "plan".
    virtual std::string_view orders() const { return "all"; }
    /// Throws RequestError, one line, where it is a problem that is not followed.
    virtual void check(const Problem& problem, const Given& given) const = 0;
    /// The request of the plan: in whatever order, so that pictures of two orders compare where their tiles are alike.
    virtual Own request(const Given& given) const = 0;
    /// Of the first of `plans`, which are of request(). Throws RequestError where a number is unknown or there is too much to follow.
    virtual std::unique_ptr<SimulatedPlan> simulate(const Machine& machine, const PlanSet& plans, const Given& given, const SimulationAsk& ask) const = 0;
};

}  // namespace rooftile
