// What the copy engine gives an SM: latency of one box, and rate over the bytes it keeps in flight.
#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"
#include "rooftile/probe/stream.hpp"

namespace rooftile {

BoxSequence box_sequence(int box_rows, std::size_t region_bytes, int regions, int region_step, int stagger) {
    BoxSequence sequence{};
    sequence.box_rows = box_rows;
    sequence.line_boxes = StreamMatrix::line_boxes;
    sequence.region_blocks =
        static_cast<int>(region_bytes / (StreamMatrix::line_bytes * static_cast<std::size_t>(box_rows)));
    sequence.regions = regions;
    sequence.region_step = region_step;
    sequence.stagger = stagger;
    return sequence;
}

std::size_t stream_bytes(const LaunchSampler& launcher) {
    return StreamMatrix::region_bytes * static_cast<std::size_t>(launcher.sms());
}

SampledLaunch stream_run(LaunchSampler& launcher, const StreamSetup& setup) {
    const Function kernel = launcher.kernel("tma", setup.tensor ? "tma_stream<true>" : "tma_stream<false>");
    const DevicePointer data = launcher.random(stream_bytes(launcher));
    const TensorMap map = stream_map(data, stream_bytes(launcher), setup.box_rows, setup.l2_promotion_bytes);
    const int regions = setup.from_l2 ? 1 : launcher.sms();
    TmaStreamArguments arguments{};
    arguments.sequence =
        box_sequence(setup.box_rows, setup.from_l2 ? l2_stream_bytes : StreamMatrix::region_bytes, regions,
                     setup.from_l2 ? 0 : 1, setup.from_l2 ? 1 : 0);
    arguments.stages = setup.stages;
    arguments.boxes = setup.boxes();
    Launch grid;
    grid.grid_x = static_cast<unsigned>(setup.ctas);
    grid.block_x = 32;
    // As much as there is, whatever the ring needs: one CTA an SM.
    grid.shared_bytes = static_cast<unsigned>(launcher.device().shared_per_cta_bytes) - 2048;
    // Before a stream from L2: the same 8 MiB, by the same CTAs in boxes of 8 KiB; its record is overwritten.
    const Function warm_kernel = launcher.kernel("tma", "tma_stream<true>");
    const TensorMap warm_map = stream_map(data, stream_bytes(launcher), 64);
    TmaStreamArguments warm{};
    warm.sequence = box_sequence(64, l2_stream_bytes, 1, 0, 1);
    warm.stages = 8;
    const int blocks = warm.sequence.region_blocks;
    warm.boxes = (setup.ctas < blocks ? blocks : 1) * StreamMatrix::line_boxes;
    SampledLaunch run;
    run.ctas = grid.grid_x;
    run.launch = [=](Stream stream, DevicePointer records, int round) {
        Launch here = grid;
        here.stream = stream;
        if (setup.from_l2) launch(warm_kernel, here, warm_map, data, warm, records);
        TmaStreamArguments now = arguments;
        // Few CTAs move on from round to round, so that the last round's lines have left L2.
        const int step = setup.region_step > 0 ? setup.region_step : setup.ctas;
        now.sequence.first_region = (setup.first_region + round * step) % regions;
        launch(kernel, here, map, data, now, records);
    };
    return run;
}

namespace {

constexpr std::int64_t KiB = 1024;
constexpr std::int64_t depths[] = {4, 8, 16, 32, 48, 64, 96, 128, 192};  // KiB in flight

struct Family {
    const char* label;
    bool from_l2, tensor;
    int box_rows;
};
/// The last two load what a matrix product of 128 x 256 x 64 tiles loads at once: boxes of 256 rows.
constexpr Family families[] = {{"dram 2d", false, true, 64},        {"l2 2d", true, true, 64},
                               {"dram 1d", false, false, 64},       {"l2 1d", true, false, 64},
                               {"dram 2d 32KiB", false, true, 256}, {"l2 2d 32KiB", true, true, 256}};

struct Curve {
    const Family* family;
    int ctas;
    std::vector<double> bytes, rates, spreads;  ///< in flight; B/s of one SM
};

std::vector<int> sm_counts(int sms) {
    return {sms, static_cast<int>(std::lround(sms * 104.0 / 132.0)), sms / 2, sms / 4, 8, 1};
}

std::vector<StreamSetup> stream_setups(int sms) {
    std::vector<StreamSetup> setups;
    for (const Family& family : families)
        for (const int ctas : sm_counts(sms))
            for (const std::int64_t depth : depths) {
                StreamSetup setup;
                setup.from_l2 = family.from_l2;
                setup.tensor = family.tensor;
                setup.box_rows = family.box_rows == 64 && depth == 4 ? 32 : family.box_rows;
                if (depth * KiB % setup.box_bytes() != 0) continue;
                setup.stages = static_cast<int>(depth * KiB / setup.box_bytes());
                setup.ctas = ctas;
                // Shallow rings are slow: less is as exact.
                setup.bytes_per_cta = (depth <= 8 ? 4 : 16) * KiB * KiB;
                setup.first_region = static_cast<int>(setups.size()) * 37 % sms;
                setups.push_back(setup);
            }
    return setups;
}

const char* label_of(const StreamSetup& setup) {
    for (const Family& f : families) {
        const bool same_box = f.box_rows == (setup.box_rows == 32 ? 64 : setup.box_rows);
        if (f.from_l2 == setup.from_l2 && f.tensor == setup.tensor && same_box) return f.label;
    }
    return "";
}

/// One box alone, from its issue to its arrival, on one SM: t(b) = t0 + b / v.
void box_latency(LaunchSampler& launcher, ProbeResult& result) {
    constexpr int rows[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
    std::vector<SampledLaunch> runs;
    std::vector<StreamSetup> setups;
    for (const bool from_l2 : {false, true})
        for (const int box_rows : rows) {
            StreamSetup setup;
            setup.from_l2 = from_l2;
            setup.box_rows = box_rows;
            setup.stages = 1;
            setup.ctas = 1;
            setup.bytes_per_cta = setup.box_bytes() * 256;
            setup.l2_promotion_bytes = 128;  // else every second box would find itself in L2
            // No run reads what another has read: 8 rounds x 9 sizes, each in a region of its own.
            setup.first_region = static_cast<int>(setups.size()) % int(std::size(rows));
            setup.region_step = int(std::size(rows));
            setups.push_back(setup);
            runs.push_back(stream_run(launcher, setup));
        }
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, 7);
    for (const bool from_l2 : {false, true}) {
        const std::string from = from_l2 ? "l2" : "dram";
        std::vector<double> bytes, seconds;
        for (std::size_t i = 0; i < setups.size(); ++i) {
            if (setups[i].from_l2 != from_l2) continue;
            std::vector<double> ns, clk;
            for (std::size_t r = 0; r < samples[i].seconds.size(); ++r) {
                ns.push_back(1e9 * samples[i].seconds[r] / setups[i].boxes());
                clk.push_back(samples[i].cycles[r] / setups[i].boxes());
            }
            const ProbeValue value = probe_value("", "", "ns", ns);
            ProbePoint point{"tma.box", from, {}};
            point.add("box_bytes", double(setups[i].box_bytes()));
            point.add("ns", value.value);
            point.add("ns_spread", value.spread);
            point.add("clk", probe_value("", "", "clk", clk).value);
            result.points.push_back(std::move(point));
            bytes.push_back(double(setups[i].box_bytes()));
            seconds.push_back(value.value);
            if (setups[i].box_rows == 64)
                result.values.push_back(probe_value("tma.latency." + from, "tma.latency_" + from, "ns", ns,
                                                    "one box of 8 KiB, issue to arrival"));
        }
        const Line line = fit_line(bytes, seconds);
        double worst = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i)
            worst = std::max(worst, std::abs(seconds[i] - line.intercept - line.slope * bytes[i]));
        const std::string note = fmt::format("t(b) = t0 + b / v, one box; off by {:.0f} ns at worst", worst);
        const int n = int(bytes.size());
        result.values.push_back({"tma.box_line." + from + ".t0", from_l2 ? "" : "load.latency",
                                 line.intercept, "ns", worst, n, note});
        if (line.slope > 0)
            result.values.push_back({"tma.box_line." + from + ".v", from_l2 ? "" : "load.rate",
                                     1 / line.slope, "GB/s/SM",
                                     worst / bytes.back() / line.slope / line.slope, n, note});
    }
}

/// The most one SM takes, alone (one of them in use), and the cap that the formula needs.
void summarise_curves(const std::vector<Curve>& curves, int sms, ProbeResult& result) {
    for (const Curve& curve : curves) {
        const InFlightFit fit = fit_in_flight(curve.bytes, curve.rates, curve.spreads);
        ProbePoint point{"tma.fit", curve.family->label, {}};
        point.add("ctas", curve.ctas);
        point.add("latency_ns", fit.latency_s * 1e9);
        point.add("rate_gbps_per_sm", fit.rate / 1e9);
        point.add("cap_bytes", fit.cap_bytes);
        point.add("worst_error", fit.worst);
        result.points.push_back(std::move(point));
        const bool main_box = curve.family->tensor && curve.family->box_rows == 64;
        if (!main_box) continue;
        const std::string from = curve.family->from_l2 ? "l2" : "dram";
        const auto at = std::max_element(curve.rates.begin(), curve.rates.end()) - curve.rates.begin();
        const double best = curve.rates[static_cast<std::size_t>(at)];
        const double spread = curve.spreads[static_cast<std::size_t>(at)];
        const int depths_seen = int(curve.rates.size());
        if (curve.ctas == 1) {
            result.values.push_back({"tma.rate." + from + ".one_sm", "tma.rate_" + from, best / 1e9,
                                     "GB/s/SM", spread / 1e9, depths_seen, "one SM alone, best depth"});
            result.values.push_back(
                {"tma.in_flight." + from, from == "dram" ? "tma.in_flight" : "", std::round(fit.cap_bytes),
                 "B", std::ceil(fit.cap_spread), depths_seen,
                 fmt::format("plateau x latency, one SM; formula off by {:.0f} % at worst",
                             100 * fit.worst)});
            if (curve.family->from_l2)
                result.values.push_back({"l2.port", "l2.port", best / 1e9, "GB/s/SM", spread / 1e9,
                                         depths_seen, "one SM alone, TMA from L2"});
        } else if (curve.ctas == sms) {
            const char* key = curve.family->from_l2 ? "l2.bandwidth" : "";
            result.values.push_back({"tma.rate." + from + ".all_sms", key, best * sms / 1e9, "GB/s",
                                     spread * sms / 1e9, depths_seen, "all SMs, best depth"});
        }
    }
}

}  // namespace

void probe_tma(LaunchSampler& launcher, ProbeResult& result) {
    launcher.load({"tma", "fill", "sm"});
    box_latency(launcher, result);
    const std::vector<StreamSetup> setups = stream_setups(launcher.sms());
    std::vector<SampledLaunch> runs;
    for (const StreamSetup& setup : setups) runs.push_back(stream_run(launcher, setup));
    const std::vector<LaunchSamples> samples = launcher.interleave(runs, 5);
    std::vector<Curve> curves;
    for (std::size_t i = 0; i < setups.size(); ++i) {
        const StreamSetup& setup = setups[i];
        std::vector<double> rates;  // B/s of one SM, by its own CTA's time
        for (std::size_t r = 0; r < samples[i].seconds.size(); ++r)
            rates.push_back(double(setup.bytes_per_cta) * samples[i].clock_hz[r] / samples[i].cycles[r]);
        const ProbeValue rate = probe_value("", "", "B/s", rates);
        const double clock = probe_value("", "", "Hz", samples[i].clock_hz).value;
        ProbePoint point{"tma.stream", label_of(setup), {}};
        point.add("ctas", setup.ctas);
        point.add("in_flight_bytes", double(setup.in_flight()));
        point.add("box_bytes", double(setup.box_bytes()));
        point.add("gbps_per_sm", rate.value / 1e9);
        point.add("gbps_per_sm_spread", rate.spread / 1e9);
        // By the slowest CTA: what the GPU as a whole had moved when all were done.
        point.add("gbps_total", double(setup.bytes_per_cta) * setup.ctas
                                    / probe_value("", "", "s", samples[i].seconds).value / 1e9);
        point.add("bytes_per_clk_per_sm", rate.value / clock);
        point.add("clock_mhz", clock / 1e6);
        result.points.push_back(std::move(point));
        if (curves.empty() || curves.back().ctas != setup.ctas
            || curves.back().family->label != std::string(label_of(setup))) {
            const auto family = std::find_if(std::begin(families), std::end(families), [&](const Family& f) {
                return f.label == std::string(label_of(setup));
            });
            curves.push_back({family, setup.ctas, {}, {}, {}});
        }
        curves.back().bytes.push_back(double(setup.in_flight()));
        curves.back().rates.push_back(rate.value);
        curves.back().spreads.push_back(rate.spread);
    }
    summarise_curves(curves, launcher.sms(), result);
}

}  // namespace rooftile
