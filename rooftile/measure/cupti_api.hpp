// The part of CUPTI's interface that is used, declared here because not every toolkit has its headers where
// cuda.h is. Layouts are those of CUDA 13.0; tests/measure/cupti_api_test.cpp compares them with the headers
// where there are any. Every call takes one struct, which begins with its own size so that it can grow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rooftile::cupti {

inline constexpr int success = 0;  // CUptiResult

inline constexpr int range_profiler = 0;   // CUpti_ProfilerType
inline constexpr int range_profiling = 0;  // CUpti_Profiler_API
inline constexpr int user_range = 2;       // CUpti_ProfilerRange
inline constexpr int user_replay = 3;      // CUpti_ProfilerReplayMode
inline constexpr int supported = 3;        // CUpti_Profiler_Support_Level

/// What the library reads of a struct: up to the end of its last member, without the padding behind it.
template <class T>
inline constexpr std::size_t struct_size = 0;
#define ROOFTILE_CUPTI_STRUCT(type, last) \
    template <>                           \
    inline constexpr std::size_t struct_size<type> = offsetof(type, last) + sizeof(type::last)

struct Initialize {
    std::size_t size;
    void* reserved;
};
ROOFTILE_CUPTI_STRUCT(Initialize, reserved);

struct DeviceSupported {
    std::size_t size;
    void* reserved;
    int device;
    int all, architecture, sli, vgpu, confidential, mining, wsl;  ///< out: support levels
    int api;
};
ROOFTILE_CUPTI_STRUCT(DeviceSupported, api);

struct ChipName {
    std::size_t size;
    void* reserved;
    std::size_t device;
    const char* name;  ///< out
};
ROOFTILE_CUPTI_STRUCT(ChipName, name);

/// A chip's metrics; needs no GPU.
struct HostInitialize {
    std::size_t size;
    void* reserved;
    int profiler;
    const char* chip;
    const std::uint8_t* availability;
    void* host;  ///< out
};
ROOFTILE_CUPTI_STRUCT(HostInitialize, host);

struct HostDeinitialize {
    std::size_t size;
    void* reserved;
    void* host;
};
ROOFTILE_CUPTI_STRUCT(HostDeinitialize, host);

struct MetricProperties {
    std::size_t size;
    void* reserved;
    void* host;
    const char* metric;
    const char *description, *unit, *dimension;  ///< out
    int type;                                    ///< out
};
ROOFTILE_CUPTI_STRUCT(MetricProperties, type);

struct AddMetrics {
    std::size_t size;
    void* reserved;
    void* host;
    const char** metrics;
    std::size_t count;
};
ROOFTILE_CUPTI_STRUCT(AddMetrics, count);

struct ConfigImageSize {
    std::size_t size;
    void* reserved;
    void* host;
    std::size_t bytes;  ///< out
};
ROOFTILE_CUPTI_STRUCT(ConfigImageSize, bytes);

struct ConfigImage {
    std::size_t size;
    void* reserved;
    void* host;
    std::size_t bytes;
    std::uint8_t* image;
};
ROOFTILE_CUPTI_STRUCT(ConfigImage, image);

struct Passes {
    std::size_t size;
    void* reserved;
    std::size_t bytes;
    std::uint8_t* image;
    std::size_t passes;  ///< out
};
ROOFTILE_CUPTI_STRUCT(Passes, passes);

struct Evaluate {
    std::size_t size;
    void* reserved;
    void* host;
    const std::uint8_t* data;
    std::size_t data_bytes;
    std::size_t range;
    const char** metrics;
    std::size_t count;
    double* values;  ///< out, `count` of them
};
ROOFTILE_CUPTI_STRUCT(Evaluate, values);

struct Enable {
    std::size_t size;
    void* reserved;
    void* context;
    void* profiler;  ///< out
};
ROOFTILE_CUPTI_STRUCT(Enable, profiler);

/// Disable, Start and PopRange alike.
struct OnProfiler {
    std::size_t size;
    void* reserved;
    void* profiler;
};
ROOFTILE_CUPTI_STRUCT(OnProfiler, profiler);

struct CounterDataSize {
    std::size_t size;
    void* reserved;
    void* profiler;
    const char** metrics;
    std::size_t count;
    std::size_t ranges;
    std::uint32_t tree_nodes;
    std::size_t bytes;  ///< out
};
ROOFTILE_CUPTI_STRUCT(CounterDataSize, bytes);

struct CounterDataInitialize {
    std::size_t size;
    void* reserved;
    void* profiler;
    std::size_t bytes;
    std::uint8_t* data;
};
ROOFTILE_CUPTI_STRUCT(CounterDataInitialize, data);

struct SetConfig {
    std::size_t size;
    void* reserved;
    void* profiler;
    std::size_t config_bytes;
    const std::uint8_t* config;
    std::size_t data_bytes;
    std::uint8_t* data;
    int range, replay;
    std::size_t ranges_per_pass;
    std::uint16_t nesting_levels, least_nesting_level;
    std::size_t pass;
    std::uint16_t target_nesting_level;
};
ROOFTILE_CUPTI_STRUCT(SetConfig, target_nesting_level);

struct PushRange {
    std::size_t size;
    void* reserved;
    void* profiler;
    const char* name;
};
ROOFTILE_CUPTI_STRUCT(PushRange, name);

struct Stop {
    std::size_t size;
    void* reserved;
    void* profiler;
    std::size_t pass, target_nesting_level;  ///< out
    std::uint8_t all_passes_submitted;       ///< out
};
ROOFTILE_CUPTI_STRUCT(Stop, all_passes_submitted);

struct Decode {
    std::size_t size;
    void* reserved;
    void* profiler;
    std::size_t ranges_dropped;  ///< out
};
ROOFTILE_CUPTI_STRUCT(Decode, ranges_dropped);

#undef ROOFTILE_CUPTI_STRUCT

struct Functions {
    int (*initialize)(Initialize*) = nullptr;
    int (*deinitialize)(Initialize*) = nullptr;
    int (*device_supported)(DeviceSupported*) = nullptr;
    int (*chip_name)(ChipName*) = nullptr;
    int (*host_initialize)(HostInitialize*) = nullptr;
    int (*host_deinitialize)(HostDeinitialize*) = nullptr;
    int (*metric_properties)(MetricProperties*) = nullptr;
    int (*add_metrics)(AddMetrics*) = nullptr;
    int (*config_image_size)(ConfigImageSize*) = nullptr;
    int (*config_image)(ConfigImage*) = nullptr;
    int (*passes)(Passes*) = nullptr;
    int (*evaluate)(Evaluate*) = nullptr;
    int (*enable)(Enable*) = nullptr;
    int (*disable)(OnProfiler*) = nullptr;
    int (*counter_data_size)(CounterDataSize*) = nullptr;
    int (*counter_data_initialize)(CounterDataInitialize*) = nullptr;
    int (*set_config)(SetConfig*) = nullptr;
    int (*start)(OnProfiler*) = nullptr;
    int (*push_range)(PushRange*) = nullptr;
    int (*pop_range)(OnProfiler*) = nullptr;
    int (*stop)(Stop*) = nullptr;
    int (*decode)(Decode*) = nullptr;
    int (*result_name)(int result, const char** name) = nullptr;
};

}  // namespace rooftile::cupti
