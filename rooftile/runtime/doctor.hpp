// What this computer has of what Rooftile can use, and how to get the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

struct Finding {
    enum class Status : std::uint8_t { ok, warn, fail };
    Status status = Status::ok;
    std::string what;    ///< "NVRTC"
    std::string detail;  ///< "13.0, /usr/local/cuda/lib64/libnvrtc.so.13"
    std::string fix;     ///< what to do; empty where nothing is to be done
};
std::string_view name_of(Finding::Status status);  ///< "OK", "WARN", "FAIL"

/// Every check, in the order of the stations. FAIL: something that planning, building or (with a GPU)
/// measuring needs; WARN: something optional, or a GPU where there is none. Never throws.
std::vector<Finding> diagnose();

/// True where kernels can run here: a usable driver and an sm_90 GPU. Never throws.
bool gpu_usable();

}  // namespace rooftile
