// Our declarations of CUPTI against its own headers, where the build has them beside cuda.h.
#include "rooftile/measure/cupti_api.hpp"

#include <gtest/gtest.h>

#if __has_include(<cupti_range_profiler.h>) && __has_include(<cupti_profiler_host.h>) \
    && __has_include(<cupti_target.h>)
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

namespace rooftile {
namespace {

namespace api = cupti;

static_assert(api::success == CUPTI_SUCCESS);
static_assert(api::range_profiler == CUPTI_PROFILER_TYPE_RANGE_PROFILER);
static_assert(api::range_profiling == CUPTI_PROFILER_RANGE_PROFILING);
static_assert(api::user_range == CUPTI_UserRange && api::user_replay == CUPTI_UserReplay);
static_assert(api::supported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED);

#define SAME_SIZE(ours, theirs) static_assert(api::struct_size<api::ours> == theirs##_STRUCT_SIZE)
SAME_SIZE(Initialize, CUpti_Profiler_Initialize_Params);
SAME_SIZE(Initialize, CUpti_Profiler_DeInitialize_Params);
SAME_SIZE(DeviceSupported, CUpti_Profiler_DeviceSupported_Params);
SAME_SIZE(ChipName, CUpti_Device_GetChipName_Params);
SAME_SIZE(HostInitialize, CUpti_Profiler_Host_Initialize_Params);
SAME_SIZE(HostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params);
SAME_SIZE(MetricProperties, CUpti_Profiler_Host_GetMetricProperties_Params);
SAME_SIZE(AddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME_SIZE(ConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME_SIZE(ConfigImage, CUpti_Profiler_Host_GetConfigImage_Params);
SAME_SIZE(Passes, CUpti_Profiler_Host_GetNumOfPasses_Params);
SAME_SIZE(Evaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME_SIZE(Enable, CUpti_RangeProfiler_Enable_Params);
SAME_SIZE(OnProfiler, CUpti_RangeProfiler_Disable_Params);
SAME_SIZE(OnProfiler, CUpti_RangeProfiler_Start_Params);
SAME_SIZE(OnProfiler, CUpti_RangeProfiler_PopRange_Params);
SAME_SIZE(CounterDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params);
SAME_SIZE(CounterDataInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
SAME_SIZE(SetConfig, CUpti_RangeProfiler_SetConfig_Params);
SAME_SIZE(PushRange, CUpti_RangeProfiler_PushRange_Params);
SAME_SIZE(Stop, CUpti_RangeProfiler_Stop_Params);
SAME_SIZE(Decode, CUpti_RangeProfiler_DecodeData_Params);

/// The same place and the same size.
#define SAME_MEMBER(ours, our_member, theirs, their_member)                         \
    static_assert(offsetof(api::ours, our_member) == offsetof(theirs, their_member) \
                  && sizeof(api::ours::our_member) == sizeof(theirs::their_member))
SAME_MEMBER(DeviceSupported, device, CUpti_Profiler_DeviceSupported_Params, cuDevice);
SAME_MEMBER(DeviceSupported, all, CUpti_Profiler_DeviceSupported_Params, isSupported);
SAME_MEMBER(DeviceSupported, architecture, CUpti_Profiler_DeviceSupported_Params, architecture);
SAME_MEMBER(DeviceSupported, sli, CUpti_Profiler_DeviceSupported_Params, sli);
SAME_MEMBER(DeviceSupported, vgpu, CUpti_Profiler_DeviceSupported_Params, vGpu);
SAME_MEMBER(DeviceSupported, confidential, CUpti_Profiler_DeviceSupported_Params, confidentialCompute);
SAME_MEMBER(DeviceSupported, mining, CUpti_Profiler_DeviceSupported_Params, cmp);
SAME_MEMBER(DeviceSupported, wsl, CUpti_Profiler_DeviceSupported_Params, wsl);
SAME_MEMBER(ChipName, device, CUpti_Device_GetChipName_Params, deviceIndex);
SAME_MEMBER(HostInitialize, profiler, CUpti_Profiler_Host_Initialize_Params, profilerType);
SAME_MEMBER(HostInitialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
SAME_MEMBER(MetricProperties, host, CUpti_Profiler_Host_GetMetricProperties_Params, pHostObject);
SAME_MEMBER(MetricProperties, metric, CUpti_Profiler_Host_GetMetricProperties_Params, pMetricName);
SAME_MEMBER(AddMetrics, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
SAME_MEMBER(AddMetrics, metrics, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
SAME_MEMBER(ConfigImageSize, host, CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject);
SAME_MEMBER(ConfigImage, host, CUpti_Profiler_Host_GetConfigImage_Params, pHostObject);
SAME_MEMBER(ConfigImage, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
SAME_MEMBER(Passes, bytes, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize);
SAME_MEMBER(Passes, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
SAME_MEMBER(Evaluate, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject);
SAME_MEMBER(Evaluate, data, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
SAME_MEMBER(Evaluate, data_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize);
SAME_MEMBER(Evaluate, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME_MEMBER(Evaluate, metrics, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
SAME_MEMBER(Evaluate, count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
SAME_MEMBER(Enable, context, CUpti_RangeProfiler_Enable_Params, ctx);
SAME_MEMBER(CounterDataSize, profiler, CUpti_RangeProfiler_GetCounterDataSize_Params, pRangeProfilerObject);
SAME_MEMBER(CounterDataSize, metrics, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
SAME_MEMBER(CounterDataSize, count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
SAME_MEMBER(CounterDataSize, ranges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
SAME_MEMBER(CounterDataSize, tree_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
SAME_MEMBER(CounterDataInitialize, bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params,
            counterDataSize);
SAME_MEMBER(SetConfig, profiler, CUpti_RangeProfiler_SetConfig_Params, pRangeProfilerObject);
SAME_MEMBER(SetConfig, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
SAME_MEMBER(SetConfig, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
SAME_MEMBER(SetConfig, data_bytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
SAME_MEMBER(SetConfig, data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SAME_MEMBER(SetConfig, range, CUpti_RangeProfiler_SetConfig_Params, range);
SAME_MEMBER(SetConfig, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SAME_MEMBER(SetConfig, ranges_per_pass, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
SAME_MEMBER(SetConfig, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
SAME_MEMBER(SetConfig, least_nesting_level, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
SAME_MEMBER(SetConfig, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
SAME_MEMBER(Stop, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
SAME_MEMBER(Stop, target_nesting_level, CUpti_RangeProfiler_Stop_Params, targetNestingLevel);

TEST(CuptiApi, LayoutsAreTheHeaders) { SUCCEED() << "static assertions hold"; }

}  // namespace
}  // namespace rooftile
#else
TEST(CuptiApi, LayoutsAreTheHeaders) { GTEST_SKIP() << "skipped: built without CUPTI's headers"; }
#endif
