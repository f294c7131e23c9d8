// What `plan` shows: the same page for every operation. An operation gives its parts; what they have in common is written here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/plan.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// A title and what is said under it.
struct Remark {
    std::string title, text;
};

/// An operation's part of the page. There is one plan at least.
struct PlanPage {
    std::string heading;                      ///< what is computed, and on what
    std::string lead{};                       ///< below it where there is room: an expression's operators one by one
    Table table;                              ///< a row a plan, in their order
    std::vector<std::string_view> columns{};  ///< keys of the configuration that the table has columns for; none: it has one of each
    std::vector<Remark> why{};                ///< of plan 1: "why 256x128x64", "why 4 stages"
    std::vector<Remark> facts{};              ///< of plan 1: its traffic, ...
    std::vector<Remark> walls{};              ///< of plan 1: what stops a larger tile or another stage
    std::vector<std::string> behind{};        ///< of every plan, what it loses to the first by; none: how much slower it is
    std::string energy{};                     ///< in the place of plan 1's joules
};

/// Plans as text: the table, plan 1 in three lines, and more by `detail`. There is one plan at least; `explanations` are of all, or none.
std::string plan_text(const PlanSet& plans, const PlanDetail& detail, std::span<const Explanation> explanations, const Terminal& terminal);

/// The step of that quantity; null where there is none.
const Step* step_of(const std::vector<Step>& steps, std::string_view quantity);
/// What it says of its limit, empty where there is no such step; and its value, "?" where that is not known.
std::string limit_of(const std::vector<Step>& steps, std::string_view quantity);
std::string value_of(const std::vector<Step>& steps, std::string_view quantity);

}  // namespace rooftile
