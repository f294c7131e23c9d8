// A number asked of a kernel that counts its own cycles, and a kernel launched as a run of the launcher.
#pragma once

#include <string>
#include <vector>

#include "rooftile/probe/launch_sampler.hpp"
#include "rooftile/probe/probe.hpp"

namespace rooftile {

struct Question {
    std::string name, key, unit, note;
    double work;  ///< of one CTA; the answer is cycles / work, or work / cycles for a rate
    bool rate = false;
    SampledLaunch run;
};

/// Runs all of them interleaved, and adds an answer each to `result`.
void ask(LaunchSampler& launcher, ProbeResult& result, const std::vector<Question>& questions);

/// `grid` as a run; `start(grid, records)` launches it, with the stream set.
template <class Start>
SampledLaunch run_of(const Launch& grid, Start start) {
    return {grid.grid_x, [=](Stream stream, DevicePointer records, int) {
                Launch here = grid;
                here.stream = stream;
                start(here, records);
            }};
}

}  // namespace rooftile
