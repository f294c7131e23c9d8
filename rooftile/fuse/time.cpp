#include "rooftile/fuse/time.hpp"

#include <algorithm>
#include <cmath>

#include "rooftile/core/arithmetic.hpp"

namespace rooftile {

double dram_seconds(const FuseHardware& hw, double read, double written) {
    const double both = std::min(read, written);
    double seconds = both > 0 ? 2 * both / hw.copy_bandwidth : 0;
    if (read > both) seconds += (read - both) / hw.read_bandwidth;
    if (written > both) seconds += (written - both) / hw.write_bandwidth;
    return seconds;
}

double issue_cycles(const FuseHardware& hw, const OpCost& cost) {
    return max_known(cost.issue / hw.issue_lanes, cost.alu / hw.alu_rate);
}

FuseTime fuse_time(const FuseHardware& hw, const FuseWork& work) {
    FuseTime t{};
    t.dram = dram_seconds(hw, work.dram_read_bytes, work.dram_written_bytes) / work.efficiency;
    t.l2 = (work.dram_read_bytes + work.dram_written_bytes + work.l2_read_bytes) / hw.l2_bandwidth;
    const double cycles = hw.sms * hw.clock_hz;
    t.issue = issue_cycles(hw, work.cost) / cycles;
    t.mufu = work.cost.mufu / (hw.mufu_rate * cycles);
    // A kernel's first load and last store overlap with nothing of its own.
    const double fill = hw.dram_latency / hw.clock_hz;
    t.launch = max_known(hw.launch_seconds, 0) + max_known(fill, 0);

    double busy = t.dram;
    t.bound = Bound::dram;
    const auto longer = [&](double seconds, Bound bound) {
        if (!(seconds > busy)) return;  // unknown does not bind
        busy = seconds;
        t.bound = bound;
    };
    longer(t.l2, Bound::l2);
    longer(t.issue, Bound::issue);
    longer(t.mufu, Bound::issue);
    t.seconds = busy + t.launch;
    if (t.launch > busy) t.bound = Bound::launch;
    return t;
}

UnfusedTime unfused_time(const FuseHardware& hw, const std::vector<UnfusedOp>& ops) {
    UnfusedTime time;
    for (const UnfusedOp& op : ops) {
        FuseWork work;
        work.dram_read_bytes = op.dram_read_bytes;
        work.dram_written_bytes = op.dram_written_bytes;
        work.l2_read_bytes = double(op.bytes()) - op.dram_read_bytes - op.dram_written_bytes;
        work.cost = op.cost;
        time.kernels.push_back(fuse_time(hw, work));
        time.seconds += time.kernels.back().seconds;
    }
    return time;
}

}  // namespace rooftile
