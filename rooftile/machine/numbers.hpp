// A machine of a few numbers that a user knows, on one line: smem=256KiB,regs=65536,bw=1TB/s,peak=50TFLOP/s,latency=500clk [M8].
#pragma once

#include <string_view>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// `text`: NAME=VALUE,...; a name is smem, regs, bw, peak, latency, a key of a machine file or a feature. What is not given is unknown, but for
/// what every GPU has (machines/common) and what follows from the numbers. Throws RequestError, one line "--numbers ...": a name that is not
/// known or stands twice, a value without its unit or of another kind, numbers that contradict each other.
Machine machine_of_numbers(std::string_view text);

/// Of a machine without an architecture: where nothing is said of one CTA's shared memory it may take all of an SM's, and where nothing is said of
/// an SM's rate it has its share of the peak. Each says so in its source.
void take_what_follows(Machine& machine);

}  // namespace rooftile
