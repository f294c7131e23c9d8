// Changing one number of a machine: --set on the command line, what a driver or a probe reports.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// "KEY=VALUE" in its two parts, without the spaces around them.
struct Assignment {
    std::string_view key, text;
};
/// Empty where there is no "=".
std::optional<Assignment> assignment_of(std::string_view text);

/// Sets the fact under `key` from a text such as "3.35 TB/s"; "unknown" removes it. `key` may also be a
/// feature, `text` then "true" or "false". Throws RequestError, one line "KEY = "TEXT": what is accepted".
void set_fact(Machine& machine, std::string_view key, std::string_view text, std::string_view source);

/// Does what one or several `--set KEY=VALUE` ask, in any order: any number, any feature ("wgmma=false"), or
/// "unknown" to remove either. The source becomes "--set". What was measured of a rated number keeps its share of it, unless
/// it is set itself (machine/follow.hpp). Throws RequestError with one line.
void set_numbers(Machine& machine, std::span<const std::string> assignments);
void set_number(Machine& machine, std::string_view assignment);

}  // namespace rooftile
