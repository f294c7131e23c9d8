// One probe at a time. For rooftile/probe's own sources.
#pragma once

#include "rooftile/probe/probe.hpp"

namespace rooftile {

/// Of the GPU `device`; needs no context. Throws Error(no_gpu), also on an architecture without probes.
ProbedGpu probed_gpu(int device);

/// In the current context. Whatever it throws becomes its failure.
ProbeResult run_probe(const Probe& probe, int device, double seconds);

/// Short probes are made twice, before all others and after them: what drifts over a run shows in no
/// neighbouring samples. `first` becomes the mean of both, with a spread that holds what lies between them.
bool made_twice(const Probe& probe);
void take_again(ProbeResult& first, const ProbeResult& again);
/// Every chosen probe as `make` makes it, in both passes, held to the roofs of `machine`; in the order of probes().
std::vector<ProbeResult> in_passes(const ProbeOptions& options, const Machine& machine,
                                   const std::function<ProbeResult(const Probe&)>& make);

/// Below this it is not begun.
double min_seconds(const Probe& probe);
ProbeResult left_out(const Probe& probe, double seconds_left);

}  // namespace rooftile
