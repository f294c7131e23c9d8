#include "rooftile/machine/live.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/numbers.hpp"
#include "rooftile/machine/read.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view source = "driver", fallback_machine = "h100-sxm";

/// Sets what the driver knows; 0 means it does not.
void set_count(Machine& machine, std::string_view key, std::int64_t value, std::string_view unit) {
    if (value > 0) set_fact(machine, key, fmt::format("{} {}", value, unit), source);
}

void set_from_driver(Machine& machine, const DeviceInfo& device) {
    set_count(machine, "sm.count", device.sm_count, "SMs");
    set_count(machine, "sm.registers", device.registers_per_sm, "registers");
    set_count(machine, "sm.max_ctas", device.ctas_per_sm, "CTAs");
    set_count(machine, "sm.max_threads_per_cta", device.threads_per_cta, "threads");
    if (device.warp_threads > 0)
        set_count(machine, "sm.max_warps", device.threads_per_sm / device.warp_threads, "warps");
    set_count(machine, "shared.per_sm", device.shared_per_sm_bytes, "B");
    set_count(machine, "shared.per_cta", device.shared_per_cta_bytes, "B");
    set_count(machine, "shared.reserved_per_cta", device.shared_reserved_bytes, "B");
    set_count(machine, "l2.size", device.l2_bytes, "B");
    set_count(machine, "dram.size", device.memory_bytes, "B");
    if (device.clock_khz > 0)
        set_fact(machine, "clock.boost", shortest_text(device.clock_khz / 1e3) + " MHz", source);
}

/// What an architecture fixes, where that architecture is known.
Machine unknown_machine(const DeviceInfo& device) {
    const auto archs = arch_ids();
    const bool known_arch = std::find(archs.begin(), archs.end(), device.arch()) != archs.end();
    std::string text = "schema = \"rooftile/machine/1\"\nid = \"live\"\nname = \"live\"\n";
    if (known_arch) text += fmt::format("arch = \"{}\"\n", device.arch());
    Machine machine = parse_machine(text, "the live device");
    machine.name = device.name;
    machine.device_names = {device.name};
    // Two transfers a clock, as every DRAM type that GPUs use is counted. The pins' rate, not a measured one.
    if (device.memory_clock_khz > 0 && device.memory_bus_bits > 0) {
        const double bytes_per_second = 2e3 * device.memory_clock_khz * device.memory_bus_bits / 8;
        set_fact(machine, "dram.bandwidth", shortest_text(bytes_per_second / 1e9) + " GB/s",
                 fmt::format("driver: 2 x {} kHz x {} bit", device.memory_clock_khz, device.memory_bus_bits));
    }
    return machine;
}

}  // namespace

LiveMachine machine_of(const DeviceInfo& device) {
    LiveMachine live;
    live.device = device;
    if (auto shipped = match_device(device.name, device.sm_count)) {
        live.machine = std::move(*shipped);
        live.known = true;
    } else {
        live.machine = unknown_machine(device);
        live.note = fmt::format(
            "no machine file matches {} with {} SMs: its rates and latencies are unknown; `rooftile machine "
            "probe` "
            "measures them",
            device.name, device.sm_count);
    }
    set_from_driver(live.machine, device);
    return live;
}

LiveMachine live_machine(int device) {
    // Reading every shipped file takes milliseconds, and a process sees the same GPUs as long as it lives.
    static std::mutex mutex;
    static std::map<int, LiveMachine> known;
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(device); found != known.end()) return found->second;
    return known.emplace(device, machine_of(Driver::instance().device(device))).first->second;
}

std::optional<LiveMachine> find_live_machine(int device) {
    const DriverStatus& status = Driver::status();
    if (status.kind != DriverStatus::Kind::usable || device < 0 || device >= status.devices)
        return std::nullopt;
    return live_machine(device);
}

Target target_of(const Given& given) {
    Machine machine;
    std::string note;
    if (given.has("numbers")) {
        if (given.has("machine")) throw RequestError(fmt::format("{} and {} both name a machine; leave one out", given.name("numbers"), given.name("machine")));
        machine = machine_of_numbers(given.text("numbers"));
    } else if (given.has("machine")) {
        machine = machine_by_id(given.text("machine"));
    } else if (const char* usual = std::getenv("ROOFTILE_MACHINE"); usual && *usual) {
        machine = machine_by_id(usual);
    } else if (auto live = find_live_machine()) {
        machine = std::move(live->machine);
        note = std::move(live->note);
    } else {
        machine = machine_by_id(fallback_machine);
        note = fmt::format("no usable GPU here: planning for {}; {} names another", fallback_machine,
                           given.name("machine"));
    }
    set_numbers(machine, given.list("set"));
    return {std::make_shared<const Machine>(std::move(machine)), std::move(note)};
}

}  // namespace rooftile
