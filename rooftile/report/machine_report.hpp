// A machine's numbers with their units and sources, as text and as a document.
#pragma once

#include <string>
#include <vector>

#include "rooftile/machine/machine.hpp"
#include "rooftile/report/context.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// The unit of a fact's `value`, in base units: "B/s", "FLOP/cycle/SM", "" for a count.
std::string base_unit(const Fact& fact);

/// Keys that a machine file may hold and this machine does not; families of keys are left out.
std::vector<std::string> unknown_keys(const Machine& machine);

/// `rooftile/machine/1`: every fact with value, unit, text and source; features; what is unknown.
Json machine_document(const DocumentContext& context, const Machine& machine);

/// One machine on a page: what it is, its roofs, its levels of memory, and where its numbers come from.
std::string machine_summary(const Machine& machine, const Terminal& terminal);

/// One machine: every number as written, with its source, then features and unknown keys.
std::string machine_text(const Machine& machine, const Terminal& terminal);

/// Many machines, one line each.
std::string machines_text(const std::vector<Machine>& machines, const Terminal& terminal);
/// The same as a document: schema `rooftile/machines/1`.
Json machines_document(const DocumentContext& context, const std::vector<Machine>& machines);

}  // namespace rooftile
