// The probes' functions, a file each; list.cpp makes the table of them.
#pragma once

#include "rooftile/probe/lab.hpp"

namespace rooftile {

void probe_tma(Lab& lab, ProbeResult& result);
void probe_energy(Lab& lab, ProbeResult& result);
void probe_cluster(Lab& lab, ProbeResult& result);
void probe_wgmma(Lab& lab, ProbeResult& result);
void probe_mma_sync(Lab& lab, ProbeResult& result);
void probe_wgmma_fill(Lab& lab, ProbeResult& result);
void probe_dram(Lab& lab, ProbeResult& result);
void probe_l2(Lab& lab, ProbeResult& result);
void probe_sm(Lab& lab, ProbeResult& result);
void probe_launch(Lab& lab, ProbeResult& result);

}  // namespace rooftile
