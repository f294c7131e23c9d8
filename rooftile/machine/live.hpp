// The GPU of this computer as a Machine: the shipped file that matches it, overridden by the driver.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "rooftile/core/field.hpp"
#include "rooftile/runtime/driver.hpp"
#include "rooftile/machine/machine.hpp"

namespace rooftile {

struct LiveMachine {
    Machine machine;     ///< what the driver reports has the source "driver"
    bool known = false;  ///< a shipped file matches name and SM count
    std::string note;    ///< one line where none does: what is missing, and that `machine probe` measures it
    DeviceInfo device;
};

/// Throws Error(no_gpu) where there is no usable driver or no such device.
LiveMachine live_machine(int device = 0);
/// The same where a missing GPU is an expected answer.
std::optional<LiveMachine> find_live_machine(int device = 0);

/// What live_machine() makes of a driver's report. Asks no driver.
LiveMachine machine_of(const DeviceInfo& device);

/// What plans are made for, and what a reader must know of that choice; empty where the request named it.
struct Target {
    std::shared_ptr<const Machine> machine;
    std::string note;
};
/// The request's `machine`, else the live GPU, else h100-sxm; then every KEY=VALUE of its list `set`. Throws RequestError.
Target target_of(const Given& given);

}  // namespace rooftile
