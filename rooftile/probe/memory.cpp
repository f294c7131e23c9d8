// Device memory and L2 by ordinary loads and stores: bandwidth over bytes in flight and size, latency by
// line.
#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/core.h>

#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"
#include "rooftile/probe/stream.hpp"

namespace rooftile {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr int threads = 256;

enum class Transfer { read, write, copy };
struct Stream_ {
    Transfer way;
    int unroll, ctas_per_sm;
    std::size_t bytes;  ///< read or written, of a copy: read
    int passes = 1;     ///< of a read
};

const char* name_of(Transfer way) { return way == Transfer::read ? "read" : way == Transfer::write ? "write" : "copy"; }

SampledLaunch memory_run(LaunchSampler& launcher, const Stream_& s, DevicePointer data, DevicePointer other) {
    const Function kernel = launcher.kernel("memory", fmt::format("stream_{}<{}>", name_of(s.way), s.unroll));
    Launch grid;
    grid.grid_x = static_cast<unsigned>(s.ctas_per_sm * launcher.sms());
    grid.block_x = threads;
    const long long count = static_cast<long long>(s.bytes / 16);
    const int passes = s.passes;
    const Transfer way = s.way;
    return {grid.grid_x, [=](Stream stream, DevicePointer records, int) {
                Launch here = grid;
                here.stream = stream;
                if (way == Transfer::read) launch(kernel, here, data, count, passes, records);
                else if (way == Transfer::write) launch(kernel, here, other, count, records);
                else launch(kernel, here, other, data, count, records);
            }};
}

/// Moved bytes a second of each run, with its point; returns them.
std::vector<ProbeValue> measure(LaunchSampler& launcher, ProbeResult& result, const std::string& series,
                                const std::vector<Stream_>& streams, DevicePointer data,
                                DevicePointer other) {
    std::vector<SampledLaunch> runs;
    for (const Stream_& s : streams) runs.push_back(memory_run(launcher, s, data, other));
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, 7);
    std::vector<ProbeValue> values;
    for (std::size_t i = 0; i < streams.size(); ++i) {
        const Stream_& s = streams[i];
        const double moved = double(s.bytes) * s.passes * (s.way == Transfer::copy ? 2 : 1);
        std::vector<double> rates;
        for (const double seconds : samples[i].seconds) rates.push_back(moved / seconds / 1e9);
        values.push_back(probe_value("", "", "GB/s", rates));
        ProbePoint point{series, name_of(s.way), {}};
        point.add("bytes", double(s.bytes));
        point.add("in_flight_bytes_per_sm", double(s.ctas_per_sm) * threads * s.unroll * 16);
        point.add("gbps", values.back().value);
        point.add("gbps_spread", values.back().spread);
        point.add("clock_mhz", probe_value("", "", "", samples[i].clock_hz).value / 1e6);
        result.points.push_back(std::move(point));
    }
    return values;
}

/// The best of `values` whose stream goes that way.
void add_best(ProbeResult& result, const std::vector<Stream_>& streams, const std::vector<ProbeValue>& values,
              Transfer way, const std::string& name, const std::string& key, const std::string& note) {
    const ProbeValue* best = nullptr;
    for (std::size_t i = 0; i < streams.size(); ++i)
        if (streams[i].way == way && (!best || values[i].value > best->value)) best = &values[i];
    if (!best) return;
    ProbeValue value = *best;
    value.name = name, value.key = key, value.note = note;
    result.values.push_back(std::move(value));
}

/// Cycles of each of some loads of one thread, less the clock's own; words at `offsets`.
std::vector<double> line_latencies(LaunchSampler& launcher, DevicePointer data,
                                   const std::vector<unsigned>& offsets, bool warm) {
    DeviceBuffer order(offsets.size() * 4), out((offsets.size() + 1) * 4);
    copy_to_device(order.address(), offsets.data(), order.bytes());
    Launch one;
    one.stream = launcher.stream();
    const int count = static_cast<int>(offsets.size()), pass = warm ? 1 : 0;
    launcher.warm_up();
    launch(launcher.kernel("memory", "line_latency"), one, data, order.address(), count, pass, out.address());
    synchronize(launcher.stream());
    std::vector<unsigned> read(offsets.size() + 1);
    copy_to_host(read.data(), out.address(), out.bytes());
    std::vector<double> cycles;
    for (int i = 0; i < count; ++i) cycles.push_back(double(read[i]) - double(read[count]));
    return cycles;
}

/// At most `count` different lines of 128 bytes below `bytes`, as word offsets, in random order.
std::vector<unsigned> random_lines(std::size_t bytes, std::size_t count) {
    std::vector<unsigned> lines(bytes / 128);
    std::iota(lines.begin(), lines.end(), 0u);
    count = std::min(count, lines.size());
    std::mt19937 random(1);
    for (std::size_t i = 0; i < count; ++i) std::swap(lines[i], lines[i + random() % (lines.size() - i)]);
    lines.resize(count);
    for (unsigned& line : lines) line *= 32;
    return lines;
}

}  // namespace

void probe_dram(LaunchSampler& launcher, ProbeResult& result) {
    launcher.load({"memory", "fill", "sm"});
    // 1 GiB of each at least, 4 x L2, in whole steps of 256 threads x 4 x 16 bytes.
    const std::size_t bytes = std::max<std::size_t>(
        1024 * MiB, 4 * static_cast<std::size_t>(launcher.device().l2_bytes) / MiB * MiB);
    const DevicePointer data = launcher.random(bytes);
    const DeviceBuffer other(bytes);
    std::vector<Stream_> streams;
    for (const Transfer way : {Transfer::read, Transfer::write, Transfer::copy})
        for (const int unroll : {1, 4})
            for (const int ctas : {1, 2, 4, 8}) streams.push_back({way, unroll, ctas, bytes});
    const auto values = measure(launcher, result, "dram.stream", streams, data, other.address());
    add_best(result, streams, values, Transfer::read, "dram.read", "dram.sustained_read", "best of the curve");
    add_best(result, streams, values, Transfer::write, "dram.write", "dram.sustained_write", "best of the curve");
    add_best(result, streams, values, Transfer::copy, "dram.copy", "dram.sustained_copy",
             "read plus written, best of the curve");
    // The copies above left other lines in L2: what is read here comes from DRAM.
    const std::vector<double> cycles = line_latencies(launcher, data, random_lines(bytes, 8192), false);
    result.values.push_back(
        probe_value("dram.latency", "dram.latency", "clk", cycles,
                    fmt::format("one load at a time, random lines of {} MiB", bytes / MiB)));
    const std::vector<double> close =
        line_latencies(launcher, data + bytes / 2, random_lines(64 * MiB, 2048), false);
    result.values.push_back(
        probe_value("dram.latency_64MiB", "", "clk", close, "the same within 64 MiB: fewer pages"));
}

void probe_l2(LaunchSampler& launcher, ProbeResult& result) {
    launcher.load({"memory", "fill", "sm"});
    const DevicePointer data = launcher.random(128 * MiB);
    std::vector<Stream_> streams;
    for (const std::size_t size : {4, 8, 16, 24, 32, 40, 48, 64, 96})
        for (const int ctas : {4, 8})
            streams.push_back({Transfer::read, 4, ctas, size * MiB, static_cast<int>(2048 / size)});
    const auto values = measure(launcher, result, "l2.read", streams, data, 0);
    add_best(result, streams, values, Transfer::read, "l2.read", "", "ordinary loads past L1, best size");
    // A quarter of L2, every line of some of it: two groups, the nearer half and the farther.
    const std::vector<double> cycles = line_latencies(
        launcher, data, random_lines(static_cast<std::size_t>(launcher.device().l2_bytes) / 4, 8192), true);
    std::vector<double> usual;  // a line that was refreshed meanwhile says nothing of either half
    const double most = 2 * quantile(cycles, 0.9);
    std::copy_if(cycles.begin(), cycles.end(), std::back_inserter(usual), [&](double c) { return c < most; });
    const TwoGroups groups = two_groups(usual);
    const std::string share = fmt::format("{:.0f} % of the lines are far", 100 * groups.high_share);
    const int n = static_cast<int>(usual.size());
    result.values.push_back(
        {"l2.latency_near", "l2.latency", groups.low, "clk", groups.low_spread, n, share});
    result.values.push_back(
        {"l2.latency_far", "l2.latency_far", groups.high, "clk", groups.high_spread, n, share});
    for (int decile = 0; decile <= 10; ++decile) {
        ProbePoint point{"l2.latency", "", {}};
        point.add("share", decile / 10.0);
        point.add("clk", quantile(cycles, decile / 10.0));
        result.points.push_back(std::move(point));
    }
    constexpr int chain = 512;
    std::vector<unsigned> next(chain);
    for (int i = 0; i < chain; ++i) next[i] = static_cast<unsigned>((i + 97) % chain);  // 2 KiB, all of it
    DeviceBuffer links(chain * 4);
    copy_to_device(links.address(), next.data(), links.bytes());
    const Function chase = launcher.kernel("memory", "l1_chase");
    const DevicePointer at = links.address();
    const LaunchSamples samples = launcher.repeat({1,
                                                   [=](Stream stream, DevicePointer records, int) {
                                                       Launch one;
                                                       one.stream = stream;
                                                       const int loads = 4096;
                                                       launch(chase, one, at, loads, records);
                                                   }},
                                                  9);
    std::vector<double> clk;
    for (const double cycles_all : samples.cycles) clk.push_back(cycles_all / 4096);
    result.values.push_back(probe_value("l1.latency", "l1.latency", "clk", clk, "chain of loads in 2 KiB"));
}

}  // namespace rooftile
