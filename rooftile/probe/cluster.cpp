// What clusters cost: SMs they cannot use, their barrier, a peer's shared memory.
#include <fmt/core.h>

#include "rooftile/probe/fit.hpp"
#include "rooftile/probe/groups.hpp"

namespace rooftile {
namespace {

constexpr int sizes[] = {2, 4, 8};
constexpr int loops = 2000;

Launch cluster_launch(const Lab& lab, int ctas, int threads) {
    Launch launch;
    launch.grid_x = static_cast<unsigned>(lab.sms() / ctas * ctas);
    launch.block_x = static_cast<unsigned>(threads);
    launch.cluster_x = static_cast<unsigned>(ctas);
    return launch;
}

/// SMs in whole clusters where each CTA asks for `shared` bytes, as a GEMM's does.
void usable_sms(Lab& lab, ProbeResult& result, int shared) {
    for (const int ctas : {1, 2, 3, 4, 6, 8}) {
        Launch launch = cluster_launch(lab, ctas, 384);
        launch.shared_bytes = static_cast<unsigned>(shared);
        const Function& kernel = lab.kernel("cluster", "cluster_barrier");
        const int clusters =
            ctas == 1 ? lab.sms() * kernel.ctas_per_sm(384, shared) : active_clusters(kernel, launch);
        ProbePoint point{"cluster.usable", "", {}};
        point.add("ctas", ctas);
        point.add("shared_bytes", shared);
        point.add("clusters", clusters);
        point.add("sms", clusters * ctas);
        result.points.push_back(std::move(point));
        const std::string name = fmt::format("cluster.sms_{}", ctas);
        result.values.push_back({name, ctas > 1 ? name : "", double(clusters * ctas), "SMs", 0, 1,
                                 fmt::format("cuOccupancyMaxActiveClusters, {} B of shared memory", shared)});
    }
}

struct Question {
    std::string name, key, unit, note;
    double work;  ///< of one CTA; the answer is cycles / work, or work / cycles for a rate
    bool rate = false;
    LabRun run;
};

void ask(Lab& lab, ProbeResult& result, const std::vector<Question>& questions) {
    std::vector<LabRun> runs;
    for (const Question& q : questions) runs.push_back(q.run);
    const std::vector<LabSamples> samples = lab.interleave(runs, 9);
    for (std::size_t i = 0; i < questions.size(); ++i) {
        const Question& q = questions[i];
        std::vector<double> answers;
        for (const double cycles : samples[i].cycles)
            answers.push_back(q.rate ? q.work / cycles : cycles / q.work);
        result.values.push_back(probe_value(q.name, q.key, q.unit, answers, q.note));
    }
}

}  // namespace

void probe_cluster(Lab& lab, ProbeResult& result) {
    lab.load({"cluster", "fill", "sm"});
    usable_sms(lab, result, 200 * 1024);
    const Function barrier = lab.kernel("cluster", "cluster_barrier");
    const Function chase = lab.kernel("cluster", "dsmem_chase");
    const Function read = lab.kernel("cluster", "dsmem_read");
    const DevicePointer data = lab.random(std::size_t{1} << 20);
    std::vector<Question> questions;
    for (const int ctas : sizes) {
        for (const int threads : {128, 384}) {
            Launch grid = cluster_launch(lab, ctas, threads);
            grid.grid_x = static_cast<unsigned>(ctas);  // one cluster: nobody else on its way
            Question q{fmt::format("barrier.cluster_{}.threads_{}", ctas, threads),
                       ctas == 2 && threads == 384 ? "barrier.cluster" : "",
                       "clk",
                       "arrive.release and wait.acquire, all threads",
                       loops,
                       false,
                       {}};
            q.run = {grid.grid_x, [=](Stream stream, DevicePointer records, int) {
                         Launch here = grid;
                         here.stream = stream;
                         launch(barrier, here, loops, records);
                     }};
            questions.push_back(std::move(q));
        }
        Launch one = cluster_launch(lab, ctas, 128);
        one.grid_x = static_cast<unsigned>(ctas);
        Question latency{fmt::format("dsmem.latency_{}", ctas),
                         ctas == 2 ? "dsmem.latency" : "",
                         "clk",
                         "dependent loads from the next CTA",
                         loops,
                         false,
                         {}};
        latency.run = {one.grid_x, [=](Stream stream, DevicePointer records, int) {
                           Launch here = one;
                           here.stream = stream;
                           launch(chase, here, loops, ctas, records);
                       }};
        questions.push_back(std::move(latency));
        Launch all = cluster_launch(lab, ctas, 512);
        all.shared_bytes = 200 * 1024;  // one CTA an SM
        const int resident = active_clusters(read, all) * ctas;
        all.grid_x = static_cast<unsigned>(resident);
        // A thread loads 4 x 16 bytes a loop.
        Question bandwidth{fmt::format("dsmem.bandwidth_{}", ctas),
                           ctas == 2 ? "dsmem.bandwidth" : "",
                           "B/clk/SM",
                           "every CTA reads the next one, 16 B a thread",
                           500.0 * 64 * 512,
                           true,
                           {}};
        bandwidth.run = {all.grid_x, [=](Stream stream, DevicePointer records, int) {
                             Launch here = all;
                             here.stream = stream;
                             const int reads = 500;
                             const unsigned step = read_step;
                             launch(read, here, data, reads, step, ctas, records);
                         }};
        if (resident > 0) questions.push_back(std::move(bandwidth));
    }
    ask(lab, result, questions);
}

}  // namespace rooftile
