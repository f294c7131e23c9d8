// One probe at a time. For rooftile/probe's own sources.
#pragma once

#include "rooftile/probe/probe.hpp"

namespace rooftile {

/// Of the GPU `device`; needs no context. Throws Error(no_gpu), also on an architecture without probes.
ProbedGpu probed_gpu(int device);

/// In the current context. Whatever it throws becomes its failure.
ProbeResult run_probe(const Probe& probe, int device, double seconds);

/// Below this it is not begun.
double least_seconds(const Probe& probe);
ProbeResult left_out(const Probe& probe, double seconds_left);

}  // namespace rooftile
