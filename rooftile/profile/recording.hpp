// What the collector writes while a program runs, and what a profile is made from: one file a process, records one after
// the other. Both sides are built from this header. A file may end anywhere, since a program may.
#pragma once

#include <cstdint>

namespace rooftile::recording {

inline constexpr char magic[8] = {'r', 'o', 'o', 'f', 'r', 'e', 'c', '1'};

/// Where the collector finds what the profiler asks for.
inline constexpr const char* folder_variable = "ROOFTILE_PROFILE_FOLDER";  ///< recordings are written here, PID.rec
inline constexpr const char* cupti_variable = "ROOFTILE_PROFILE_CUPTI";    ///< path of the CUPTI to open

enum class Kind : std::uint16_t { text = 1, kernel, copy, call, range, launch, parameters, node, clone, device, moment, notice };

/// `size`: of the whole record with what follows it, a multiple of 8.
struct Head {
    Kind kind;
    std::uint16_t spare;
    std::uint32_t size;
};

// Times are CUPTI's, ns; names are ids of texts, 0: none.

struct Text {  ///< its `length` characters follow
    Head head;
    std::uint32_t id, length;
};

struct Kernel {
    Head head;
    std::uint64_t start, end, node;  ///< node: of an executable graph; 0: none
    std::uint32_t name, device, context, stream, correlation, graph;
    std::int32_t grid[3], block[3], cluster[3];
    std::uint32_t registers, static_shared, dynamic_shared, local;  ///< bytes; local: a thread's
    std::uint32_t device_launched, spare;
};

struct Copy {
    Head head;
    std::uint64_t start, end, bytes, node;
    std::uint32_t device, stream, correlation, graph;
    std::uint32_t what, spare;  ///< CUpti_ActivityMemcpyKind; 0: a memset
};

struct Call {  ///< of the driver
    Head head;
    std::uint64_t start, end;
    std::uint32_t name, thread, correlation, result;
};

enum class Mark : std::uint32_t { start = 1, end, instant };

struct Range {  ///< an end has the id of its start, and no name
    Head head;
    std::uint64_t time;
    std::uint32_t name, domain, thread, id;
    Mark mark;
    std::uint32_t spare;
};

struct Launch {  ///< by which parameters
    Head head;
    std::uint32_t correlation, parameters;
};

/// `count` pairs of offset and size, then `bytes` bytes of the kernel's parameters, follow.
struct Parameters {
    Head head;
    std::uint32_t id, count, bytes, spare;
};

struct Node {  ///< a kernel's node, put into a graph by that launch
    Head head;
    std::uint64_t node;
    std::uint32_t correlation, spare;
};

struct Clone {
    Head head;
    std::uint64_t node, original;
};

struct Device {
    Head head;
    std::uint32_t device, name, sms, compute_major, compute_minor, shared_per_sm, registers_per_sm, threads_per_sm, ctas_per_sm,
        shared_reserved;  ///< of a CTA, beside what it asks for
};

enum class What : std::uint32_t { begin = 1, end, records_dropped };

struct Moment {
    Head head;
    std::uint64_t time;
    What what;
    std::uint32_t count;  ///< begin: the process; records_dropped: how many
};

struct Notice {  ///< a line for the reader follows
    Head head;
    std::uint32_t length, spare;
};

}  // namespace rooftile::recording
