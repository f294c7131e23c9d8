// What a run did on its GPUs, in sums: kernels, copies, calls, ranges, and why a device had nothing to do. From recordings alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/names/known_kernels.hpp"
#include "rooftile/profile/recorded.hpp"

namespace rooftile {

/// Time in which a device has no kernel and no copy, ns, by what would have ended it earlier.
struct IdleTime {
    double host = 0;        ///< the host had not asked for more
    double waited = 0;      ///< it could not: it waited for the device, or for what it copied back
    double launch = 0;      ///< asked for in time, behind other work of the same stream or graph
    double dependency = 0;  ///< asked for in time, and another stream had to come first
    double unknown = 0;     ///< nobody saw who asked for it
    double sum() const { return host + waited + launch + dependency + unknown; }
};

/// A device of a process.
struct ProfiledDevice {
    std::uint32_t process = 0;
    RecordedGpu device;
    double window = 0, busy = 0;   ///< ns: from the first work to the last, or of the chosen range; in which there is work
    double before = 0, after = 0;  ///< ns of the recording outside the window; 0 of a chosen range
    double overlapped = 0;         ///< ns of work beside other work
    double empty_sms = 0;          ///< ns of kernels times the share of SMs that their grids leave without a CTA, the last wave's too
    IdleTime idle;
};

/// What hardware counters said of launches, in the mean. Empty: not counted there.
struct KernelCounters {
    std::size_t launches = 0;
    std::optional<double> time{};                             ///< ns, of a launch on empty caches
    std::optional<double> dram_read{}, dram_written{}, l2{};  ///< bytes; l2: between SMs and L2
    std::optional<double> tensor_share{}, issue_share{};  ///< of what the matrix units and the schedulers could do while the SM was busy
};

/// Kernels of one name, launched alike.
struct KernelGroup {
    std::string name;  ///< as it is mangled
    std::array<std::int32_t, 3> grid{}, block{}, cluster{};
    std::uint32_t registers = 0, static_shared = 0, dynamic_shared = 0, local = 0;
    std::optional<KernelSizes> sizes;  ///< as the launch says them, or else a framework's range around it
    std::size_t calls = 0, in_graphs = 0;
    double sum = 0, least = 0, most = 0;  ///< ns
    double matrix_share = 1;  ///< of the time before each call, as long as power is averaged over: how much of it was matrix work
    int resident = 0;         ///< CTAs of it that an SM has room for; 0: unknown
    std::size_t device = 0;   ///< of Profile::devices, the first that ran it
    std::optional<KernelCounters> counters{};
    double mean() const { return sum / double(calls); }
};

struct CopyGroup {
    std::string kind;  ///< "HtoD", "memset"
    std::size_t count = 0;
    double bytes = 0, sum = 0;  ///< sum: ns
};

struct CallGroup {
    std::string name;
    std::size_t count = 0, failed = 0;
    double sum = 0, most = 0;  ///< ns
};

/// Of a name of ranges, whatever stands around them.
struct RangeGroup {
    std::string name;
    std::size_t count = 0, launches = 0;  ///< launches: of kernels
    double host = 0, device = 0;          ///< ns: in the range; of the work that was asked for in it
    double collective = 0;                ///< ns of `device` in collectives, which wait for other GPUs too
};

/// Device time under a path of ranges, ended by a kernel's or a copy's name.
struct ProfileStack {
    std::vector<std::string> frames;
    double sum = 0;  ///< ns
};

struct Profile {
    std::string command;    ///< that was profiled
    double wall = 0;        ///< ns, of all of it; 0: unknown
    std::string range;      ///< empty: the whole run
    std::size_t steps = 1;  ///< ranges of that name
    std::vector<ProfiledDevice> devices;
    std::vector<KernelGroup> kernels;  ///< by `sum`, the largest first; so are the others
    std::vector<CopyGroup> copies;
    std::vector<CallGroup> calls;
    std::vector<RangeGroup> ranges;
    std::vector<ProfileStack> stacks;
    std::size_t launches = 0, graph_launches = 0;  ///< calls that ask for a kernel; for a graph
    double launch_calls = 0;                       ///< ns of the host in both
    std::vector<std::string> notices;

    double kernel_time() const;  ///< ns, of all kernels
};

/// `range`: only what was asked for in ranges of that name; empty: everything. Throws RequestError where there is no such range.
Profile profile_of(const std::vector<Recorded>& recordings, const std::string& range);

/// CTAs of the group that an SM holds at once; 0: unknown.
int resident_ctas(const RecordedGpu& device, const DeviceWork& kernel);

}  // namespace rooftile
