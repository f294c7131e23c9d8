// What clusters cost: SMs they cannot use, their barrier, a peer's shared memory.
#include <fmt/core.h>

#include "rooftile/probe/groups.hpp"
#include "rooftile/probe/question.hpp"

namespace rooftile {
namespace {

constexpr int sizes[] = {2, 4, 8};
constexpr int loops = 2000;

Launch cluster_launch(const LaunchSampler& launcher, int ctas, int threads) {
    Launch launch;
    launch.grid_x = static_cast<unsigned>(launcher.sms() / ctas * ctas);
    launch.block_x = static_cast<unsigned>(threads);
    launch.cluster_x = static_cast<unsigned>(ctas);
    return launch;
}

/// SMs in whole clusters where each CTA asks for `shared` bytes, as a kernel's with a ring does.
void usable_sms(LaunchSampler& launcher, ProbeResult& result, int shared) {
    for (const int ctas : {1, 2, 3, 4, 6, 8}) {
        Launch launch = cluster_launch(launcher, ctas, 384);
        launch.shared_bytes = static_cast<unsigned>(shared);
        const Function& kernel = launcher.kernel("cluster", "cluster_barrier");
        const int clusters =
            ctas == 1 ? launcher.sms() * kernel.ctas_per_sm(384, shared) : active_clusters(kernel, launch);
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

}  // namespace

void probe_cluster(LaunchSampler& launcher, ProbeResult& result) {
    launcher.load({"cluster", "fill", "sm"});
    usable_sms(launcher, result, 200 * 1024);
    const Function barrier = launcher.kernel("cluster", "cluster_barrier");
    const Function chase = launcher.kernel("cluster", "dsmem_chase");
    const Function read = launcher.kernel("cluster", "dsmem_read");
    const DevicePointer data = launcher.random(std::size_t{1} << 20);
    std::vector<Question> questions;
    for (const int ctas : sizes) {
        for (const int threads : {128, 384}) {
            Launch grid = cluster_launch(launcher, ctas, threads);
            grid.grid_x = static_cast<unsigned>(ctas);  // one cluster: nobody else on its way
            questions.push_back({fmt::format("barrier.cluster_{}.threads_{}", ctas, threads),
                                 ctas == 2 && threads == 384 ? "barrier.cluster" : "", "clk",
                                 "arrive.release and wait.acquire, all threads", loops, false,
                                 run_of(grid, [=](const Launch& here, DevicePointer records) {
                                     launch(barrier, here, loops, records);
                                 })});
        }
        Launch one = cluster_launch(launcher, ctas, 128);
        one.grid_x = static_cast<unsigned>(ctas);
        questions.push_back({fmt::format("dsmem.latency_{}", ctas), ctas == 2 ? "dsmem.latency" : "", "clk",
                             "dependent loads from the next CTA", loops, false,
                             run_of(one, [=](const Launch& here, DevicePointer records) {
                                 launch(chase, here, loops, ctas, records);
                             })});
        Launch all = cluster_launch(launcher, ctas, 512);
        all.shared_bytes = 200 * 1024;  // one CTA an SM
        const int resident = active_clusters(read, all) * ctas;
        all.grid_x = static_cast<unsigned>(resident);
        if (resident == 0) continue;
        // A thread loads 4 x 16 bytes a loop.
        questions.push_back({fmt::format("dsmem.bandwidth_{}", ctas), ctas == 2 ? "dsmem.bandwidth" : "",
                             "B/clk/SM", "every CTA reads the next one, 16 B a thread", 500.0 * 64 * 512,
                             true, run_of(all, [=](const Launch& here, DevicePointer records) {
                                 const int reads = 500;
                                 const unsigned step = read_step;
                                 launch(read, here, data, reads, step, ctas, records);
                             })});
    }
    ask(launcher, result, questions);
}

}  // namespace rooftile
