// A recording read back: what one process did on its GPUs, times in ns of one clock for all processes of a run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/names/kernel_sizes.hpp"

namespace rooftile {

/// A kernel, a copy or a memset on a device.
struct DeviceWork {
    enum class Kind : unsigned char { kernel, copy, set };
    Kind kind = Kind::kernel;
    std::uint64_t start = 0, end = 0;
    std::uint32_t device = 0, stream = 0, correlation = 0;
    std::uint32_t graph = 0;   ///< 0: launched by itself
    std::string_view name;     ///< of a kernel, as it is mangled; of a copy "DtoH"
    std::uint64_t bytes = 0;   ///< of a copy or memset
    std::array<std::int32_t, 3> grid{}, block{}, cluster{};
    std::uint32_t registers = 0, static_shared = 0, dynamic_shared = 0, local = 0;
    const ParameterBytes* parameters = nullptr;  ///< null: not kept
};

/// A call of the driver.
struct DriverCall {
    std::uint64_t start = 0, end = 0;
    std::string_view name;
    std::uint32_t thread = 0, correlation = 0, result = 0;
    bool captured = false;  ///< a launch that a graph took, and nothing ran
};

/// An NVTX range of a thread, or what lies between cudaProfilerStart() and cudaProfilerStop().
struct NamedRange {
    std::uint64_t start = 0, end = 0;
    std::string_view name;
    std::uint32_t thread = 0;
};

struct RecordedGpu {
    std::uint32_t index = 0;
    std::string name;
    int sms = 0, compute_major = 0, compute_minor = 0, shared_per_sm = 0, registers_per_sm = 0, threads_per_sm = 0, ctas_per_sm = 0,
        shared_reserved = 0;
};

struct Recorded {
    std::uint32_t process = 0;
    std::uint64_t begin = 0, end = 0;  ///< of the recording; end 0: the process ended without a last word
    std::uint64_t dropped = 0;         ///< records that did not come through
    std::uint64_t untimed = 0;         ///< work and calls that have no times; they are left out
    bool cut = false;                  ///< the last record is not whole
    std::vector<std::string> notices;
    std::vector<RecordedGpu> devices;
    std::vector<DeviceWork> work;      ///< by start
    std::vector<DriverCall> calls;     ///< by start
    std::vector<NamedRange> ranges;    ///< by start, outer before inner; one without an end lasts as long as the recording

    /// What the views above point into: they live as long as this does.
    std::map<std::uint32_t, std::string> texts;
    std::map<std::uint32_t, ParameterBytes> parameters;

    Recorded() = default;
    Recorded(Recorded&&) = default;
    Recorded& operator=(Recorded&&) = default;
};

bool is_recording(std::string_view bytes);

/// Throws RequestError, one line that names `file`, where that is no recording of this version.
Recorded read_recording(std::string_view bytes, const std::string& file);

}  // namespace rooftile
