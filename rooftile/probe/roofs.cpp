// Values that no GPU can reach are no measurements.
#include <cmath>

#include <fmt/core.h>

#include "rooftile/probe/probe.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

/// Timers and counters may be off by this much.
constexpr double slack = 1.02;

struct Roof {
    std::string_view prefix;  ///< of the values' names
    double most;              ///< in the values' unit; NaN where the machine does not say
    std::string_view reason;
};

}  // namespace

void hold_to_roofs(ProbeResult& result, const Machine& machine) {
    const auto partitions = machine.count("sm.partitions");
    const auto sms = machine.count("sm.count");
    const auto dram = machine.number<Bandwidth>("dram.bandwidth");
    const double nan = std::nan("");
    const auto wgmma = machine.number<FlopsPerCycle>("rate.wgmma.bf16.fp32", Per::sm);
    const double gigabytes = dram ? dram->value / 1e9 : nan;
    const Roof roofs[] = {
        // CUDA C++ Programming Guide, "Shared Memory": 32 banks of 32 bits a cycle, since compute capability
        // 3.
        {"shared.bandwidth", 32 * 4.0, "32 banks of 4 B"},
        {"dsmem.bandwidth", 32 * 4.0, "32 banks of 4 B"},
        {"rate.fma", partitions ? 2.0 * 32 * double(*partitions) : nan, "one fma of 32 lanes a partition"},
        {"mma_sync.rate", wgmma ? wgmma->value : nan, "rate.wgmma.bf16.fp32, of the same matrix units"},
        {"dram.read", gigabytes, "dram.bandwidth"},
        {"dram.write", gigabytes, "dram.bandwidth"},
        {"dram.copy", gigabytes, "dram.bandwidth"},
        {"cluster.sms_", sms ? double(*sms) : nan, "sm.count"},
    };
    for (ProbeValue& v : result.values) {
        for (const Roof& roof : roofs) {
            if (v.name.rfind(roof.prefix, 0) != 0 || !(v.value > slack * roof.most)) continue;
            result.failure += fmt::format(
                "{}{}: measured {} {}, above the roof of {} ({}): the probe is wrong, the number is not "
                "written",
                result.failure.empty() ? "" : "; ", v.name, number_text(v.value), v.unit,
                number_text(roof.most), roof.reason);
            v.key.clear();
        }
    }
}

}  // namespace rooftile
