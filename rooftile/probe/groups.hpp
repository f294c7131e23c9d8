// The probes' functions, a file each; list.cpp makes the table of them.
#pragma once

#include "rooftile/probe/launch_sampler.hpp"

namespace rooftile {

void probe_tma(LaunchSampler& launcher, ProbeResult& result);
void probe_lines(LaunchSampler& launcher, ProbeResult& result);
void probe_energy(LaunchSampler& launcher, ProbeResult& result);
void probe_cluster(LaunchSampler& launcher, ProbeResult& result);
void probe_wgmma(LaunchSampler& launcher, ProbeResult& result);
void probe_mma_sync(LaunchSampler& launcher, ProbeResult& result);
void probe_wgmma_fill(LaunchSampler& launcher, ProbeResult& result);
void probe_dram(LaunchSampler& launcher, ProbeResult& result);
void probe_dram_ceilings(LaunchSampler& launcher, ProbeResult& result);
void probe_l2(LaunchSampler& launcher, ProbeResult& result);
void probe_sm(LaunchSampler& launcher, ProbeResult& result);
void probe_launch(LaunchSampler& launcher, ProbeResult& result);

}  // namespace rooftile
