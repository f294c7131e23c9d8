// The machines shipped inside the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// Ids of the shipped machines, sorted.
std::vector<std::string> machine_ids();

/// Ids of machines that do not exist, sorted: of worked examples, and of questions that no GPU answers. Every number's source says so.
std::vector<std::string> invented_ids();

/// The shipped or invented machine with that id, or the machine file at that path. Throws RequestError: an unknown id
/// is answered with the ids there are and the nearest one.
Machine machine_by_id(std::string_view id_or_path);
/// The shipped or invented machine that a document names: never a file. Throws RequestError with the names there are.
Machine shipped_machine(std::string_view id);

/// The shipped machine that the driver's device name and SM count stand for; empty where none does. A
/// leading "NVIDIA " is not compared: drivers differ in it.
std::optional<Machine> match_device(std::string_view device_name, std::int64_t sm_count);

/// The text of machines/arch/`arch`.toml, empty where there is none.
std::string_view arch_text(std::string_view arch);
/// Architectures that have a file, sorted: "sm_70", ...
std::vector<std::string> arch_ids();

/// The text of machines/calibration/`id`.toml, empty where the machine has no calibration of its own.
std::string_view calibration_text(std::string_view id);
/// Machines that have one, sorted.
std::vector<std::string> calibrated_ids();

}  // namespace rooftile
