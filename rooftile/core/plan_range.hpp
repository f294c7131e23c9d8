// Plans for every value of one field: the fewest compiled kernels that serve a range of it, and which serves what.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/operation.hpp"

namespace rooftile {

/// A field whose text is a range, "1..16384".
struct FieldRange {
    std::string key;
    std::int64_t least = 1, most = 1;
};
/// The one field of the operation that is given as a range; empty: none is. Throws RequestError where several are, where one
/// begins below 1 or falls, and where the request has beside it what is of one problem alone.
std::optional<FieldRange> range_in(const Operation& operation, const Given& given);

/// What the request has of the operation's fields, without `key`, and with that text under it.
Given without(const Operation& operation, const Given& given, std::string_view key);
Given with_text(const Operation& operation, const Given& given, std::string_view key,
                const std::string& text);

struct PlanRange {
    /// A part of the range, whose values all take one configuration.
    struct Part {
        std::int64_t from = 1, to = 1;
        Plan plan;               ///< of `from`
        Given fields;            ///< what a request fixes to get this configuration for any value of the part
        std::size_t kernel;      ///< parts of one number share their code
        std::int64_t worst = 1;  ///< the value that was looked at whose ratio is the highest
        double ratio = 1;        ///< its time over that of its own best plan, both predicted
    };
    FieldRange field;
    double within = 0;        ///< what no ratio may be above, less 1
    std::vector<Part> parts;  ///< in the order of their values
    std::size_t kernels = 0;
    std::int64_t worst = 1;  ///< of all parts
    double ratio = 1;
    std::size_t looked_at = 0;       ///< values whose own plans were made
    std::vector<std::string> notes;  ///< what a reader must know
};

/// The fewest kernels by greedy set cover over values that are looked at: up to `dense` all of them, then in steps of a share
/// `step`; then values between, drawn by a fixed seed, and the ends of the parts, which are taken in where the bound is missed, until none is.
/// `code_of` names the code that a plan is compiled to. Throws RequestError: the field is no part of the problem, or
/// others of it follow the field, the operation cannot fix a configuration; Error(no_plan) where a value has no plan with a known time.
PlanRange plan_range(const Operation& operation, const std::shared_ptr<const Machine>& machine,
                     const Given& given, const FieldRange& field, double within,
                     const std::function<std::string(const Plan&)>& code_of);

}  // namespace rooftile
