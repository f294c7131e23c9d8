// Machine files: TOML text to a Machine and back. docs/machines.md describes the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "rooftile/machine/machine.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {

/// Reads the machine file at `path`, its architecture's facts first. Throws RequestError: one line naming
/// file, key, value and what is accepted. Refuses what is no regular file, or larger than 64 KiB.
Machine read_machine(const std::filesystem::path& path);

/// The same from memory; `file_name` is for messages and for the source of numbers that name none.
Machine parse_machine(std::string_view text, std::string_view file_name);

/// `machine` as a machine file that `parse_machine` reads back to the same hash.
std::string to_toml(const Machine& machine);

}  // namespace rooftile
