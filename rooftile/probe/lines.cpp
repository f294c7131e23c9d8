// What it costs that rows of a tensor do not begin on lines of L2, or that rows of a box lie outside the tensor: loads and
// stores by TMA, and stores by element, on all SMs and on one.
#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"
#include "rooftile/probe/stream.hpp"

namespace rooftile {
namespace {

constexpr int rounds = 5;
constexpr int in_flight_bytes = 128 << 10;
/// Bytes by which lines lie further apart than a multiple of 128.
constexpr int offsets[] = {0, 16, 32, 64};
constexpr int longest_offset = 64;

/// Of tensor maps of rows off the line: with 256 L2 is asked for 12 to 18 % less a second (docs/facts.md 131).
constexpr int promotion_off_line = 128;

enum class Lines { l2, shared, dram };
const char* name_of(Lines lines) {
    return lines == Lines::l2 ? "l2" : lines == Lines::shared ? "l2 shared" : "dram";
}

/// Each CTA reads rows of its own, along a line, then the next box of rows; `shared`: all the same. Boxes are 128 B wide.
struct LineLoads {
    Lines lines = Lines::l2;
    int offset = 0, box_rows = 128, promotion_bytes = 256, ctas = 1;
    int outside = 0;  ///< rows of each box, which all CTAs share
    std::int64_t line_bytes() const { return lines == Lines::dram ? 8192 : 512; }  ///< all SMs' regions fit half of L2
    std::int64_t region_rows() const { return lines == Lines::dram ? 2048 : 256; }
    std::int64_t pitch() const { return line_bytes() + offset; }
    std::int64_t box_bytes() const { return std::int64_t{box_rows} * 128; }
    std::int64_t bytes_per_cta() const { return lines == Lines::dram ? region_rows() * line_bytes() : std::int64_t{8} << 20; }
    double boxes() const { return double(bytes_per_cta() / box_bytes()); }
};

/// Enough for every run: lines of all SMs' regions, in whole lines of what fills it.
std::size_t line_bytes_in_all(const LaunchSampler& launcher) {
    const LineLoads most{.lines = Lines::dram, .offset = longest_offset};
    const std::int64_t bytes = most.region_rows() * most.pitch() * launcher.sms();
    return std::size_t((bytes / most.line_bytes() + 1) * most.line_bytes());
}

SampledLaunch loads_run(LaunchSampler& launcher, const LineLoads& setup) {
    const Function kernel = launcher.kernel("tma", "tma_stream<true>");
    const DevicePointer data = launcher.random(line_bytes_in_all(launcher));
    TensorMapRequest request;
    request.base = data;
    request.inner = setup.line_bytes() / 2;
    request.outer = setup.outside > 0 ? setup.box_rows - setup.outside : setup.region_rows() * launcher.sms();
    request.outer_stride_bytes = setup.pitch();
    request.box_inner = 64;
    request.box_outer = setup.box_rows;
    request.swizzle_bytes = 128;
    request.l2_promotion_bytes = setup.promotion_bytes;
    TensorMap map{};
    encode(map, request);
    TmaStreamArguments arguments{};
    BoxSequence& sequence = arguments.sequence;
    sequence.box_rows = setup.box_rows;
    sequence.line_boxes = int(setup.line_bytes() / 128);
    sequence.region_blocks = setup.outside > 0 ? 1 : int(setup.region_rows() / setup.box_rows);
    sequence.regions = launcher.sms();
    sequence.region_step = setup.lines == Lines::shared || setup.outside > 0 ? 0 : 1;
    arguments.stages = int(in_flight_bytes / setup.box_bytes());
    arguments.boxes = int(setup.boxes());
    Launch grid;
    grid.grid_x = static_cast<unsigned>(setup.ctas);
    grid.block_x = 32;
    grid.shared_bytes = static_cast<unsigned>(launcher.device().shared_per_cta_bytes) - 2048;
    return {grid.grid_x, [=](Stream stream, DevicePointer records, int) {
                Launch here = grid;
                here.stream = stream;
                launch(kernel, here, map, data, arguments, records);
            }};
}

/// Nanoseconds of a box, by the median CTA.
ProbeValue box_ns(const LineLoads& setup, const LaunchSamples& samples) {
    std::vector<double> ns;
    for (std::size_t r = 0; r < samples.cycles.size(); ++r)
        ns.push_back(1e9 * samples.cycles[r] / samples.clock_hz[r] / setup.boxes());
    return probe_value("", "", "ns", ns);
}

std::vector<LineLoads> load_setups(int sms) {
    std::vector<LineLoads> setups;
    for (const Lines lines : {Lines::l2, Lines::shared, Lines::dram})
        for (const int ctas : {sms, 1})
            for (const int box_rows : {128, 64, 256})
                for (const int promotion : {256, 128, 0})
                    for (const int offset : offsets)
                        setups.push_back({lines, offset, box_rows, promotion, ctas, 0});
    for (const int ctas : {sms, 1})
        for (const int outside : {64, 127}) setups.push_back({Lines::shared, 0, 128, 256, ctas, outside});
    return setups;
}

void line_loads(LaunchSampler& launcher, ProbeResult& result) {
    const int sms = launcher.sms();
    const std::vector<LineLoads> setups = load_setups(sms);
    std::vector<SampledLaunch> runs;
    for (const LineLoads& setup : setups) runs.push_back(loads_run(launcher, setup));
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, rounds);
    std::vector<ProbeValue> ns;
    for (std::size_t i = 0; i < setups.size(); ++i) ns.push_back(box_ns(setups[i], samples[i]));
    const auto of = [&](const LineLoads& wanted) -> const ProbeValue& {
        const auto at = std::find_if(setups.begin(), setups.end(), [&](const LineLoads& s) {
            return s.lines == wanted.lines && s.offset == wanted.offset && s.box_rows == wanted.box_rows
                   && s.promotion_bytes == wanted.promotion_bytes && s.ctas == wanted.ctas && s.outside == wanted.outside;
        });
        return ns[std::size_t(at - setups.begin())];
    };
    for (std::size_t i = 0; i < setups.size(); ++i) {
        const LineLoads& s = setups[i];
        LineLoads on = s;
        on.offset = on.outside = 0;
        ProbePoint point{"tma.lines", name_of(s.lines), {}};
        point.add("ctas", s.ctas);
        point.add("box_rows", s.box_rows);
        point.add("promotion_bytes", s.promotion_bytes);
        point.add("offset_bytes", s.offset);
        point.add("rows_outside", s.outside);
        point.add("ns_a_box", ns[i].value);
        point.add("ns_a_box_spread", ns[i].spread);
        point.add("gbps_total", double(s.box_bytes()) * s.ctas / ns[i].value);
        point.add("of_on_line", ns[i].value / of(on).value);
        result.points.push_back(std::move(point));
    }
    // As a matrix product loads rows off the line: see promotion_off_line.
    const ProbeValue& on = of({Lines::l2, 0, 128, promotion_off_line, sms, 0});
    for (const int offset : offsets) {
        if (offset == 0) continue;
        for (const auto& [lines, key, note] : {std::tuple{Lines::l2, "tma.off_line", "rows of each SM's own"},
                                               {Lines::shared, "tma.off_line_shared", "the same rows for all SMs"}}) {
            const ProbeValue& off = of({lines, offset, 128, promotion_off_line, sms, 0});
            const std::string name = fmt::format("{}_{}", key, offset);
            result.values.push_back({name, name, off.value / on.value, "1",
                                     off.value / on.value * (off.spread / off.value + on.spread / on.value), rounds,
                                     fmt::format("boxes of 128 rows x 128 B, {}; rows of their own on the line 1", note)});
        }
    }
    for (const int outside : {64, 127}) {
        const ProbeValue &in = of({Lines::shared, 0, 128, 256, sms, 0}), &out = of({Lines::shared, 0, 128, 256, sms, outside});
        const double longer = out.value - in.value, bytes = double(outside) * 128 * sms;
        result.values.push_back({fmt::format("tma.outside_{}", outside), outside == 127 ? "tma.outside" : "", bytes / longer, "GB/s",
                                 bytes / longer * (out.spread + in.spread) / longer, rounds,
                                 fmt::format("boxes of 128 rows of which {} are outside, what they take longer", outside)});
    }
}

enum class Way { tma, rows, element, turned };
const char* name_of(Way way) { return way == Way::tma ? "tma" : way == Way::rows ? "rows" : way == Way::element ? "element" : "element_turned"; }

struct LineStores {
    Way way = Way::tma;
    int offset = 0, ctas = 1;
    bool to_dram = true;
    static constexpr int columns = 4096;  ///< of 2 B
    int rows() const { return to_dram ? 32768 : 1024; }
    int passes() const { return to_dram ? 1 : 16; }
    double bytes() const { return 2.0 * columns * rows() * passes(); }
};

/// Of what the machine file keeps: to device memory, on the line and off it by as little as there is; empty: it keeps none.
std::string key_of(const LineStores& s) {
    if (!s.to_dram) return {};
    if (s.way == Way::tma) return s.offset == 0 ? "tma.store" : s.offset == 16 ? "tma.store_amid_sector" : "";
    return s.offset != 2 ? "" : s.way == Way::rows ? "store.rows" : s.way == Way::element ? "store.element" : "store.element_turned";
}

SampledLaunch stores_run(LaunchSampler& launcher, const LineStores& setup) {
    const DevicePointer to = launcher.random(line_bytes_in_all(launcher));
    LineStoreArguments arguments{};
    arguments.rows = setup.rows();
    arguments.columns = LineStores::columns;
    arguments.passes = setup.passes();
    arguments.pitch = LineStores::columns * 2 + setup.offset;
    arguments.turned = setup.way == Way::turned;
    Launch grid;
    grid.grid_x = static_cast<unsigned>(setup.ctas);
    grid.block_x = line_store_threads;
    TensorMapRequest request;
    request.base = to;
    request.inner = LineStores::columns;
    request.outer = setup.rows();
    request.outer_stride_bytes = arguments.pitch;
    request.box_inner = line_store_columns;
    request.box_outer = line_store_rows;
    request.swizzle_bytes = 128;
    request.l2_promotion_bytes = 0;
    TensorMap map{};
    if (setup.way == Way::tma) encode(map, request);
    const Function by_tma = launcher.kernel("stores", "line_stores_by_tma"),
                   from_registers = launcher.kernel("stores", setup.way == Way::rows ? "line_stores_by_rows" : "line_stores_by_element");
    const bool tma = setup.way == Way::tma;
    return {grid.grid_x, [=](Stream stream, DevicePointer records, int) {
                Launch here = grid;
                here.stream = stream;
                if (tma) launch(by_tma, here, map, arguments, records);
                else launch(from_registers, here, to, arguments, records);
            }};
}

void line_stores(LaunchSampler& launcher, ProbeResult& result) {
    const int sms = launcher.sms();
    std::vector<LineStores> setups;
    for (const bool to_dram : {true, false})
        for (const int offset : offsets) setups.push_back({Way::tma, offset, sms, to_dram});
    for (const Way way : {Way::rows, Way::element, Way::turned})
        for (const bool to_dram : {true, false})
            for (const int offset : {0, 2, 16}) setups.push_back({way, offset, sms, to_dram});
    std::vector<SampledLaunch> runs;
    for (const LineStores& setup : setups) runs.push_back(stores_run(launcher, setup));
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, rounds);
    const auto rate_of = [&](std::size_t i) {
        std::vector<double> rates;
        for (const double seconds : samples[i].seconds) rates.push_back(setups[i].bytes() / seconds / 1e9);
        return probe_value("", "", "GB/s", rates);
    };
    for (std::size_t i = 0; i < setups.size(); ++i) {
        const LineStores& s = setups[i];
        const ProbeValue rate = rate_of(i);
        const double clock = probe_value("", "", "Hz", samples[i].clock_hz).value;
        ProbePoint point{"stores.lines", name_of(s.way), {}};
        point.add("to_dram", s.to_dram ? 1 : 0);
        point.add("offset_bytes", s.offset);
        point.add("gbps", rate.value);
        point.add("gbps_spread", rate.spread);
        point.add("bytes_per_clk_per_sm", rate.value * 1e9 / clock / sms);
        result.points.push_back(std::move(point));
        result.values.push_back({fmt::format("stores.{}.{}_{}", name_of(s.way), s.to_dram ? "dram" : "l2", s.offset), key_of(s),
                                 rate.value, "GB/s", rate.spread, rounds, "of 2-byte elements, all SMs, tiles of 128 x 256"});
    }
}

}  // namespace

void probe_lines(LaunchSampler& launcher, ProbeResult& result) {
    launcher.load({"tma", "stores", "fill", "sm"});
    line_loads(launcher, result);
    line_stores(launcher, result);
}

}  // namespace rooftile
