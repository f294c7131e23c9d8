#include "rooftile/names/launch_agreement.hpp"

namespace rooftile {
namespace {

long count_of(const std::array<int, 3>& extents) {
    long out = 1;
    for (const int extent : extents) out *= extent > 0 ? extent : 1;
    return out;
}

/// Of what nvjet adds to its stages: an epilogue's tiles and barriers, together less than this on sm_90.
constexpr long most_beside_stages = 32768;

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
        check(count_of(launch.grid) % said == 0, "grid: " + std::to_string(count_of(launch.grid)) + " CTAs are no multiple of a cluster of " + std::to_string(said));
    }
    if (name.threads && launch.block[0] > 0)
        check(*name.threads == count_of(launch.block), "threads: the name has " + std::to_string(*name.threads) + ", the launch " + std::to_string(count_of(launch.block)));
    const long shared = launch.static_shared + launch.dynamic_shared;
    if (const auto stages = expected_shared_bytes(name); stages && gridded) {
        check(*stages <= shared, "shared memory: " + std::to_string(*name.stages) + " stages take " + std::to_string(*stages) + " B, the launch has " + std::to_string(shared) + " B");
        if (name.family == "nvjet" && name.arch == "sm_90")
            check(shared - *stages < most_beside_stages,
                  "shared memory: " + std::to_string(shared) + " B are more than " + std::to_string(*name.stages) + " stages of " + std::to_string(*stages / *name.stages) + " B and an epilogue take");
    }
    return out;
}

}  // namespace rooftile
