// A plan for somebody else's library or compiler: the text that it takes, and what of the plan is lost on the way. A facet of an
// operation that has such targets.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/operation.hpp"

namespace rooftile {

struct ExportTarget {
    std::string_view name, meaning;  ///< "triton"; one line of help
    bool own_tiles = false;          ///< it plans by a model of its own: what fits no kernel of ours may fit it
};

struct Exported {
    std::string text;
    std::string file;                ///< the name that whoever reads it looks for, or a good one
    std::optional<double> time_us;   ///< predicted, of the other's kernel; empty: a number is unknown
    std::vector<std::string> lost;   ///< what of the plan the other cannot express, a line each
    std::vector<std::string> notes;  ///< what its user must know and the text does not say
};

class Exports : public Facet {
  public:
    virtual std::span<const ExportTarget> targets() const = 0;
    /// What some target asks for beside the problem and the plan.
    virtual std::span<const Field> fields() const = 0;
    /// `target`: an index of targets(). The plans are of that request; there is one at least but for own_tiles. Throws
    /// RequestError, one line, where the target has nothing for it.
    virtual Exported exported(std::size_t target, const std::shared_ptr<const Machine>& machine, const Problem& problem, const Own& request,
                              const PlanSet& plans, const Given& given) const = 0;
};

}  // namespace rooftile
