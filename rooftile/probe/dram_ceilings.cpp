// Why device memory does not reach its datasheet's rate: its ceilings by the share that is written, by the order of addresses, and where
// reads and writes take turns [M45].
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "rooftile/measure/counters.hpp"
#include "rooftile/measure/measure_kernels.hpp"
#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t ceiling_bytes = std::int64_t{512} << 20;  ///< read and written by one launch
constexpr int ceiling_cta = 256, ceiling_ctas_per_sm = 8;

/// One run: what it moves, and its point.
struct Ceiling {
    ProbePoint point;
    SampledLaunch run;
    double moved = 0;  ///< bytes that its instructions ask for
    double read = 0;   ///< of these
};

/// As many threads as an SM holds, on every SM.
Launch ceiling_grid(const LaunchSampler& launcher) {
    Launch grid;
    grid.grid_x = unsigned(ceiling_ctas_per_sm * launcher.sms());
    grid.block_x = ceiling_cta;
    return grid;
}

template <class Start>
Ceiling ceiling(LaunchSampler& launcher, const char* series, std::string label, double moved, double read, Start start) {
    Ceiling out{{series, std::move(label), {}}, {}, moved, read};
    const Launch grid = ceiling_grid(launcher);
    out.run = {grid.grid_x, [=](Stream stream, DevicePointer records, int) {
                   Launch here = grid;
                   here.stream = stream;
                   start(here, records);
               }};
    return out;
}

Ceiling mix(LaunchSampler& launcher, int reads, int writes, DevicePointer to, DevicePointer from) {
    const Function kernel = launcher.kernel("ceilings", fmt::format("dram_mix<{}, {}>", reads, writes));
    const std::int64_t step = std::int64_t{reads + writes} * ceiling_cta * 16;
    const long long steps = ceiling_bytes / step;
    const double moved = double(steps * step);
    const int gcd = std::gcd(reads, writes);
    Ceiling out = ceiling(launcher, "dram.mix", fmt::format("{}:{}", reads / gcd, writes / gcd), moved, moved * reads / (reads + writes),
                          [=](const Launch& grid, DevicePointer records) { launch(kernel, grid, to, from, steps, records); });
    out.point.add("read_share", double(reads) / (reads + writes));
    return out;
}

Ceiling split(LaunchSampler& launcher, DevicePointer to, DevicePointer from) {
    const Function kernel = launcher.kernel("ceilings", "dram_split");
    const long long steps = ceiling_bytes / 2 / (4 * ceiling_cta * 16);
    Ceiling out = ceiling(launcher, "dram.mix", "1:1 by CTA", double(ceiling_bytes), double(ceiling_bytes) / 2,
                          [=](const Launch& grid, DevicePointer records) { launch(kernel, grid, to, from, steps, records); });
    out.point.add("read_share", 0.5);
    return out;
}

Ceiling blocks(LaunchSampler& launcher, int block, std::int64_t stride, DevicePointer from) {
    const Function kernel = launcher.kernel("ceilings", "dram_blocks");
    const auto power = [](std::int64_t value) { return std::countr_zero(std::uint64_t(value)); };
    const long long count = ceiling_bytes / 16;
    const int block_power = power(block / 16), stride_power = power(stride / 16), rows_power = power(ceiling_bytes / stride);
    Ceiling out = ceiling(launcher, "dram.blocks", fmt::format("{} B every {} B", block, stride), double(ceiling_bytes),
                          double(ceiling_bytes), [=](const Launch& grid, DevicePointer records) {
                              launch(kernel, grid, from, count, block_power, stride_power, rows_power, records);
                          });
    out.point.add("block_bytes", block);
    out.point.add("stride_bytes", double(stride));
    return out;
}

/// What the memory moved while it ran, where there are counters: of blocks more than was asked for.
void add_counters(LaunchSampler& launcher, ProbeResult& result, const std::vector<Ceiling>& ceilings) {
    const MeasureKernels measure(compile_measure_kernels(launcher.device().arch()));
    std::string why_not;
    std::unique_ptr<CounterSession> session;
    try {
        session = CounterSession::open(measure, launcher.device().ordinal, why_not);
    } catch (const Error& error) {
        if (error.code() != ExitCode::counters_denied) throw;
        why_not = error.what();
    }
    if (!session) {
        result.notes.push_back("dram_ceilings: no counters: " + why_not);
        return;
    }
    const DeviceBuffer records(sizeof(ProbeRecord) * std::size_t(ceiling_ctas_per_sm * launcher.sms()));
    const std::vector<std::string> names = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                                            "dram__throughput.avg.pct_of_peak_sustained_elapsed"};
    for (std::size_t i = 0; i < ceilings.size(); ++i) {
        const Ceiling& one = ceilings[i];
        const std::vector<double> values = session->count(
            names, [&](Stream stream, std::int64_t) { one.run.launch(stream, records.address(), 0); }, 1, 0);
        ProbePoint& point = result.points[i];
        const char* keys[] = {"counted_read_bytes", "counted_write_bytes", "counted_percent_of_peak"};
        for (std::size_t k = 0; k < std::size(keys); ++k)
            if (std::isfinite(values[k])) point.add(keys[k], values[k]);
    }
}

}  // namespace

void probe_dram_ceilings(LaunchSampler& launcher, ProbeResult& result) {
    launcher.load({"ceilings", "fill", "sm"});
    const DevicePointer from = launcher.random(ceiling_bytes);
    const DeviceBuffer other(ceiling_bytes);
    const DevicePointer to = other.address();
    std::vector<Ceiling> ceilings;
    for (const auto& [reads, writes] : {std::pair{4, 0}, {3, 1}, {4, 2}, {2, 2}, {2, 4}, {1, 3}, {0, 4}})
        ceilings.push_back(mix(launcher, reads, writes, to, from));
    ceilings.push_back(split(launcher, to, from));
    // In order; then columns of blocks: what is in flight at a time lies a stride apart.
    ceilings.push_back(blocks(launcher, 512, 512, from));
    for (std::int64_t stride = 1024; stride <= std::int64_t{4} << 20; stride *= 4) ceilings.push_back(blocks(launcher, 512, stride, from));
    for (const int block : {32, 64, 128, 256, 1024, 4096}) ceilings.push_back(blocks(launcher, block, 65536, from));
    std::vector<SampledLaunch> runs;
    for (const Ceiling& one : ceilings) runs.push_back(one.run);
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, 9);

    const DeviceInfo& device = launcher.device();
    const double peak = 2e3 * device.memory_clock_khz * device.memory_bus_bits / 8;  // two transfers a clock
    if (peak > 0)
        result.values.push_back(
            {"dram.peak", "", peak / 1e9, "GB/s", 0, 1,
             fmt::format("of the driver: {} bits at {:.0f} MHz, twice a clock", device.memory_bus_bits, device.memory_clock_khz / 1e3)});
    for (std::size_t i = 0; i < ceilings.size(); ++i) {
        const Ceiling& one = ceilings[i];
        std::vector<double> rates;
        for (const double seconds : samples[i].seconds) rates.push_back(one.moved / seconds / 1e9);
        ProbeValue value = probe_value(one.point.series + " " + one.point.label, "", "GB/s", rates, "");
        ProbePoint point = one.point;
        point.add("asked_bytes", one.moved);
        point.add("asked_read_bytes", one.read);
        point.add("gbps", value.value);
        point.add("gbps_spread", value.spread);
        if (peak > 0) point.add("of_peak", value.value * 1e9 / peak);
        result.points.push_back(std::move(point));
        result.values.push_back(std::move(value));
    }
    add_counters(launcher, result, ceilings);
}

}  // namespace rooftile
