#include "rooftile/measure/copy_baseline.hpp"

#include <fmt/core.h>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/machine/query.hpp"

namespace rooftile {

std::optional<CopyBaseline> CopyBaseline::of(const Bench& bench, std::int64_t compulsory_bytes) {
    constexpr std::int64_t aligned = 256;
    CopyBaseline c;
    c.bytes_ = ceil_div(compulsory_bytes / 2, aligned) * aligned;
    if (c.bytes_ == 0) return std::nullopt;
    c.slots_ = rotated_sets(2 * c.bytes_, bench.device().l2_bytes, l2_factor, memory_info().free_bytes / 2);
    if (c.slots_ < 1) return std::nullopt;
    c.from_ = DeviceBuffer(std::size_t(c.slots_ * c.bytes_));
    c.to_ = DeviceBuffer(std::size_t(c.slots_ * c.bytes_));
    fill_bytes(c.from_.address(), 0x5a, c.from_.bytes(), nullptr);
    synchronize();
    return c;
}

TimedWork CopyBaseline::work(const MeasureKernels& kernels) const {
    return {"copy",
            [this, &kernels](Stream stream, std::int64_t set) {
                const auto offset = DevicePointer(set % slots_ * bytes_);
                kernels.copy(stream, to_.address() + offset, from_.address() + offset, bytes_);
            },
            Role::aside};
}

Baseline CopyBaseline::baseline(const Bench& bench, const TimedResult& timed, std::vector<std::string>& notes) const {
    Baseline copy;
    copy.key = "copy", copy.name = "copying as many bytes";
    std::optional<double> dram_bytes_per_s;
    if (const Machine* machine = bench.options().planned_for())
        if (const auto dram = dram_bandwidth(*machine)) dram_bytes_per_s = dram->value;
    if (timed.time_us.samples > 0) copy.time_us = copy_time(bytes_, bench.options().mode, timed, dram_bytes_per_s, notes);
    return copy;
}

std::optional<double> copy_time(std::int64_t bytes, Mode mode, const TimedResult& timed, std::optional<double> dram_bytes_per_s,
                                std::vector<std::string>& notes) {
    const double seconds = timed.time_us.median * 1e-6;
    if (seconds <= 0) return std::nullopt;
    // After one cold launch what was written may still lie in L2.
    const double moved = static_cast<double>(bytes) * (mode == Mode::cold ? 1 : 2);
    if (dram_bytes_per_s && moved / seconds > *dram_bytes_per_s) {
        note_once(notes, fmt::format("the copy was left out: above the roof: {:.0f} GB/s of DRAM's {:.0f}", moved / seconds * 1e-9,
                                     *dram_bytes_per_s * 1e-9));
        return std::nullopt;
    }
    return timed.time_us.median;
}

}  // namespace rooftile
