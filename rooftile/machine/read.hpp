// Machine files: TOML text to a Machine and back. docs/machines.md describes the format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "rooftile/machine/machine.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {

/// Reads the machine file at `path`, `inherited_machine`'s facts first. Throws RequestError: one line naming
/// file, key, value and what is accepted. Refuses what is no regular file, or larger than 64 KiB.
Machine read_machine(const std::filesystem::path& path);

/// The same from memory; `file_name` is for messages and for the source of numbers that name none.
Machine parse_machine(std::string_view text, std::string_view file_name);

/// What a machine file of that architecture and id starts from: the architecture's facts and features, what the
/// architecture's calibration says of all its GPUs, then the machine's own calibration. Empty where no architecture
/// of that name is known.
Machine inherited_machine(std::string_view arch, std::string_view id);

/// `machine` as a machine file that `parse_machine` reads back to the same hash.
std::string to_toml(const Machine& machine);

}  // namespace rooftile
