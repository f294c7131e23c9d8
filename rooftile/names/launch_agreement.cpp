#include "rooftile/names/launch_agreement.hpp"

namespace rooftile {
namespace {

long count_of(const std::array<int, 3>& extents) {
    long out = 1;
    for (const int extent : extents) out *= extent > 0 ? extent : 1;
    return out;
}

/// What nvjet has on sm_90 beside its stages: 16 KiB for a tile of 16 bits on its way out, and barriers (docs/names.md).
constexpr long epilogue_bytes = 16384, most_barrier_bytes = 1024;

}  // namespace

LaunchAgreement agrees(const KernelName& name, const LaunchData& launch) {
    LaunchAgreement out;
    const auto check = [&](bool holds, std::string sentence) {
        ++out.checked;
        if (!holds) out.disagreements.push_back(std::move(sentence));
    };
    const bool gridded = launch.grid[0] > 0, clustered = launch.cluster[0] > 0;
    if (name.cluster_m && name.cluster_n && gridded) {
        const long said = long(*name.cluster_m) * *name.cluster_n, launched = count_of(launch.cluster);
        check(said == launched || (said == 1 && !clustered),
              "cluster: the name has " + std::to_string(said) + " CTAs, the launch " + std::to_string(launched));
        check(count_of(launch.grid) % said == 0,
              "grid: " + std::to_string(count_of(launch.grid)) + " CTAs are no multiple of a cluster of " + std::to_string(said));
    }
    if (name.threads && launch.block[0] > 0)
        check(*name.threads == count_of(launch.block),
              "threads: the name has " + std::to_string(*name.threads) + ", the launch " + std::to_string(count_of(launch.block)));
    const long shared = launch.static_shared + launch.dynamic_shared;
    if (const auto stages = expected_shared_bytes(name); stages && gridded) {
        check(*stages <= shared, "shared memory: " + std::to_string(*name.stages) + " stages take " + std::to_string(*stages)
                                     + " B, the launch has " + std::to_string(shared) + " B");
        if (const auto c = bits_of_type(name.types.c); name.family == "nvjet" && name.arch == "sm_90" && c) {
            const long beside = shared - *stages, least = epilogue_bytes, most = epilogue_bytes * (*c > 16 ? 2 : 1) + most_barrier_bytes;
            check(least <= beside && beside < most, "shared memory: beside the stages are " + std::to_string(beside)
                                                        + " B, where an epilogue and barriers take " + std::to_string(least) + " to "
                                                        + std::to_string(most) + " B");
        }
    }
    return out;
}

}  // namespace rooftile
