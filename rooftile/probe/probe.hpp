// Measuring the live GPU: what a machine file says of it, from kernels that ask one question each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// One number: the median of its samples, and half the width of their middle 80 %.
struct ProbeValue {
    std::string name;  ///< "tma.latency.dram"
    std::string key;   ///< of a machine file; empty: no number of one
    double value = 0;
    std::string unit;  ///< as machine files write it
    double spread = 0;
    int samples = 0;
    std::string note;
};

/// A row of a curve or a table: what was set and what was seen, by name.
struct ProbePoint {
    std::string series;  ///< "tma.stream"
    std::string label;   ///< "dram 2d"
    std::vector<std::pair<std::string, double>> fields;

    void add(std::string name, double value) { fields.emplace_back(std::move(name), value); }
    /// Throws std::out_of_range where there is none.
    double at(std::string_view name) const;
    bool has(std::string_view name) const;
};

/// What one probe found.
struct ProbeResult {
    std::string probe;
    std::vector<ProbeValue> values;
    std::vector<ProbePoint> points;
    std::vector<std::string> notes;
    std::string failure;  ///< why it ended early; what it had by then stands above
    double seconds = 0;
};

class LaunchSampler;

/// A probe as data: what it finds and how long it takes at most.
struct Probe {
    std::string_view name;
    std::string_view keys;  ///< of machine files that it measures, blank-separated; and their units, likewise
    std::string_view units;
    std::string_view meaning;
    double seconds;  ///< it should need no more, its program's compile included
    void (*run)(LaunchSampler& launcher, ProbeResult& result);
};

/// All, the most wanted first.
std::span<const Probe> probes();
/// Those named, blank list: all; in the order of probes(). Throws RequestError naming an unknown one.
std::vector<const Probe*> probes_named(const std::vector<std::string>& names);

struct ProbeOptions {
    int device = 0;
    std::vector<std::string> only;  ///< names of probes; empty: all
    double max_seconds = 85;        ///< of all together; what no longer fits is left out, with a note
    std::function<void(const ProbeResult&)> done;  ///< called after each; may be empty
};

/// The GPU a run was on.
struct ProbedGpu {
    Machine machine;  ///< the shipped file that matches it, with what the driver reports
    std::string name, driver, nvrtc;
    double power_limit_w = 0;  ///< 0 where unknown
};

struct ProbeRun {
    ProbedGpu gpu;
    std::vector<ProbeResult> results;
    double seconds = 0;
};

/// Runs them one after the other, each in a process of its own: what one breaks or hangs in, the others do
/// not see. Call it before anything of this process has touched the driver. Throws Error(no_gpu).
ProbeRun run_probes(const ProbeOptions& options);

/// The same in this process and the current context; a fault of the GPU ends all that follow.
ProbeRun run_probes_here(const ProbeOptions& options);

/// Fails `result` for every value above a roof that is known without measuring, such as shared memory's
/// banks, and takes that value's key away.
void hold_to_roofs(ProbeResult& result, const Machine& machine);

/// Keys that one fit gives together: joules at the clock of sustained matrix work mean nothing beside another
/// fit's static power, exponent or clock.
std::span<const std::string_view> energy_keys();

/// The machine with every measured number that has a key in place of what it said, each with spread, samples,
/// date and command as its source. What a key refuses is left out and named in `notes`; of energy_keys() all
/// are taken or none.
Machine probed_machine(const ProbeRun& run, std::string_view date, std::string_view command,
                       std::vector<std::string>& notes);

/// `fact` in another form: clocks for seconds at `clock_hz`, one SM for the GPU of `sms`. Empty where it speaks
/// of something else, or where what it takes is unknown.
std::optional<double> in_form(const Fact& fact, Dimension dimension, Per per, double clock_hz, double sms);

/// One measured number beside the machine file's.
struct ProbeDifference {
    std::string key, shipped, measured;
    double ratio = 1;  ///< measured / shipped
};
/// Numbers that differ by more than `tolerance` of what the file says. One that the file gives in another form
/// (per clock instead of per second) counts where it differs so at the boost clock, at the sustained one, and
/// at all between; without a clock it is left out.
std::vector<ProbeDifference> differences(const ProbeRun& run, double tolerance = 0.1);

}  // namespace rooftile
