// Inside one SM: shared memory, barriers, arithmetic; and the gap between kernels.
#include <fmt/core.h>

#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"
#include "rooftile/probe/question.hpp"
#include "rooftile/probe/stream.hpp"

namespace rooftile {
namespace {

/// A kernel whose CTAs all do the same: cycles over `work`, or `work` over cycles for a rate.
struct SmQuestion {
    std::string name, key, unit;
    const char* kernel;
    int ctas, threads, shared;
    double work;
    bool rate;
    std::function<void(const Function& kernel, const Launch& launch, DevicePointer records)> start;
};

Question question(LaunchSampler& launcher, const SmQuestion& q) {
    const Function kernel = launcher.kernel("sm", q.kernel);
    Launch grid;
    grid.grid_x = static_cast<unsigned>(q.ctas);
    grid.block_x = static_cast<unsigned>(q.threads);
    grid.shared_bytes = static_cast<unsigned>(q.shared);
    return {q.name,
            q.key,
            q.unit,
            "",
            q.work,
            q.rate,
            run_of(grid, [=, start = q.start](const Launch& here, DevicePointer records) {
                start(kernel, here, records);
            })};
}

}  // namespace

void probe_sm(LaunchSampler& launcher, ProbeResult& result) {
    const DevicePointer data = launcher.random(std::size_t{1} << 20);
    const int sms = launcher.sms();
    constexpr int loops = 2000, alu_loops = 500;
    const auto looped = [=](const Function& kernel, const Launch& grid, DevicePointer records) {
        launch(kernel, grid, loops, records);
    };
    const auto arithmetic = [=](const Function& kernel, const Launch& grid, DevicePointer records) {
        const float x = 0.999f;
        const int times = alu_loops;
        launch(kernel, grid, x, times, records);
    };
    const auto reading = [=](const Function& kernel, const Launch& grid, DevicePointer records) {
        const unsigned step = read_step;
        launch(kernel, grid, data, loops, step, records);
    };
    std::vector<SmQuestion> questions;
    for (const int threads : {256, 512, 1024})
        questions.push_back({fmt::format("shared.bandwidth.threads_{}", threads),
                             threads == 1024 ? "shared.bandwidth" : "", "B/clk/SM", "shared_read", sms,
                             threads, 64 * 1024, double(loops) * 8 * 16 * threads, true, reading});
    questions.push_back(
        {"shared.latency", "shared.latency", "clk", "shared_chase", 1, 32, 0, loops, false, looped});
    for (const int warps : {1, 4, 8, 12, 16, 32})
        questions.push_back({fmt::format("barrier.cta.warps_{}", warps), warps == 8 ? "barrier.cta" : "",
                             "clk", "cta_barrier", 1, 32 * warps, 0, loops, false, looped});
    questions.push_back({"barrier.mbarrier.round_trip", "barrier.mbarrier", "clk", "mbarrier_pingpong", 1, 64,
                         0, loops, false, looped});
    questions.push_back(
        {"barrier.mbarrier.alone", "", "clk", "mbarrier_alone", 1, 32, 0, loops, false, looped});
    // A fused multiply-add is two operations.
    questions.push_back({"rate.fma", "rate.fma.fp32.fp32", "FLOP/clk/SM", "fma_rate", sms, 1024, 0,
                         2.0 * alu_chains * fma_unroll * alu_loops * 1024, true, arithmetic});
    questions.push_back({"rate.mufu", "rate.mufu", "op/clk/SM", "mufu_rate", sms, 1024, 0,
                         1.0 * alu_chains * mufu_unroll * alu_loops * 1024, true, arithmetic});
    std::vector<Question> asked;
    for (const SmQuestion& q : questions) asked.push_back(question(launcher, q));
    ask(launcher, result, asked);
}

namespace {

/// The time from one launch to the next, plain less programmatic, in a graph: of CTAs that leave room for those of the next
/// launch, so that all of its start and set-up runs beside them; and of CTAs that fill the SM, where it waits for their end.
void probe_programmatic(LaunchSampler& launcher, ProbeResult& result) {
    launcher.load({"dependent"});
    const Function& kernel = launcher.kernel("dependent", "dependent");
    const Stream stream = launcher.stream();
    constexpr int count = 400, rounds = 9;
    constexpr unsigned long long work = 4000;  // longer than the start of the next takes
    const auto graph_of = [&](unsigned shared, bool programmatic) {
        Launch all;
        all.stream = stream;
        all.grid_x = static_cast<unsigned>(launcher.sms());
        all.block_x = 384;
        all.shared_bytes = shared;
        all.programmatic_dependent = programmatic;
        begin_capture(stream);
        for (int i = 0; i < count; ++i) launch(kernel, all, work);
        Graph graph = end_capture(stream);
        graph.launch(stream);
        synchronize(stream);
        return graph;
    };
    const auto us_of = [&](const Graph& graph) {
        Event start, stop;
        start.record(stream);
        graph.launch(stream);
        stop.record(stream);
        stop.synchronize();
        return elapsed_us(start, stop) / count;
    };
    const auto most = static_cast<unsigned>(launcher.device().shared_per_cta_bytes);
    for (const bool room : {true, false}) {
        const unsigned shared = room ? most / 4 : most;
        const Graph plain = graph_of(shared, false), programmatic = graph_of(shared, true);
        launcher.warm_up();
        std::vector<double> saved;
        for (int round = 0; round < rounds; ++round) {
            const double before = us_of(plain);
            saved.push_back(before - us_of(programmatic));
        }
        // No number of a machine file: kernels that load save more (docs/facts.md 106).
        result.values.push_back(probe_value(room ? "launch.programmatic.room" : "launch.programmatic.full", "", "us", saved,
                                            fmt::format("a CTA an SM with 16 barriers and {} B of shared memory, in a graph", shared)));
    }
}

}  // namespace

void probe_launch(LaunchSampler& launcher, ProbeResult& result) {
    const Function empty = launcher.kernel("sm", "empty_kernel"), spin = launcher.kernel("sm", "spin");
    DeviceBuffer records(sizeof(ProbeRecord));
    const Stream stream = launcher.stream();
    Launch one;
    one.stream = stream;
    Launch all;  // a small kernel on every SM
    all.stream = stream;
    all.grid_x = static_cast<unsigned>(launcher.sms());
    all.block_x = 128;
    constexpr int count = 400;
    launcher.warm_up();
    begin_capture(stream);
    for (int i = 0; i < count; ++i) launch(empty, all);
    const Graph graph = end_capture(stream);
    graph.launch(stream);
    synchronize(stream);
    std::vector<double> by_stream, by_graph;
    for (int round = 0; round < 9; ++round) {
        for (const bool graphed : {false, true}) {
            // The host is ahead of the GPU: a kernel holds the stream until all the others are in it.
            const unsigned long long hold = graphed ? 2'000'000 : 12'000'000;
            const DevicePointer record = records.address();
            launch(spin, one, hold, record);
            Event start, stop;
            start.record(stream);
            if (graphed) graph.launch(stream);
            else
                for (int i = 0; i < count; ++i) launch(empty, all);
            stop.record(stream);
            stop.synchronize();
            (graphed ? by_graph : by_stream).push_back(elapsed_us(start, stop) / count);
        }
    }
    const char* note = "empty kernel of one CTA an SM, the host ahead";
    result.values.push_back(probe_value("launch.gap_stream", "launch.gap_stream", "us", by_stream, note));
    result.values.push_back(probe_value("launch.gap_graph", "launch.gap_graph", "us", by_graph, note));
    if (launcher.device().compute_major >= 9) probe_programmatic(launcher, result);
}

}  // namespace rooftile
