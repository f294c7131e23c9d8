// Launches written down instead of run: what a compiled kernel asks of the driver, on a machine that needs no GPU. Whoever emits a
// program of a kernel reads grid, arguments and tensor maps here, and writes none of it again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/runtime/driver.hpp"

namespace rooftile {

/// The GPU that is recorded for.
struct RecordedDevice {
    std::string arch;  ///< "sm_90"
    int sms = 0;
    std::int64_t shared_per_sm_bytes = 0, shared_per_cta_bytes = 0;
};

/// What cuTensorMapEncodeTiled or, where there are corners, cuTensorMapEncodeIm2col was asked for: its numbers as they are, and its
/// enumerators by name.
struct RecordedMap {
    std::string type, swizzle, l2_promotion;
    DevicePointer base = 0;
    std::vector<std::uint64_t> extents, strides;  ///< elements; bytes, one fewer
    std::vector<std::uint32_t> box;               ///< of an image channels and pixels
    std::vector<int> first, past_last;            ///< corners of an image
    std::vector<std::uint32_t> steps;             ///< of an image, along each axis
};

/// One launch. An argument is a kernel parameter's bytes; a tensor map among them is its number in Recording::maps, by map_of().
struct RecordedLaunch {
    std::string lowered_name;
    Launch launch;
    std::vector<std::string> arguments;
    std::map<int, int> attributes;  ///< CUfunction_attribute: what the function was set to
};

struct Recording {
    std::vector<RecordedMap> maps;
    std::vector<RecordedLaunch> launches;
    std::map<DevicePointer, std::string> memory;  ///< what was allocated and filled beside the tensors: tables
};

/// The number of the map that an argument holds; -1: it holds none.
int map_of(std::string_view argument);

/// Where tensor or workspace `i` of a recorded launch lies: no memory, and far from any other.
DevicePointer recorded_address(int i);
/// The i of an address at or behind recorded_address(i); -1: of none.
int recorded_tensor(DevicePointer address);

/// Runs `work` in this thread, whose driver calls are written down; nothing reaches a GPU. `work` must not keep what it made of the driver:
/// modules and memory; it may change the device's SMs between launches. `parameters`: bytes of each parameter of a kernel of that
/// lowered name.
Recording record_launches(const RecordedDevice& device, const std::function<std::vector<int>(std::string_view lowered_name)>& parameters,
                          const std::function<void()>& work);

/// Whether this thread's driver calls are being written down.
bool recording_launches();

}  // namespace rooftile
