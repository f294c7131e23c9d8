// CUPTI without a GPU, beside the fake driver: the time of a range is that of the fake device's clock, every other
// counter 8000. It records its calls. What collects activities is in activities.hpp. FAKE_COUNTERS_DENIED=1: the driver keeps its counters to administrators;
// FAKE_<call>: the status which that call returns; FAKE_PASSES, FAKE_DROPPED: what it says of passes and lost ranges.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "tests/fake/activities.hpp"

namespace {

constexpr std::uint8_t image_byte = 7, data_byte = 100;

std::string calls;
std::size_t started = 0;
const std::uint8_t* data = nullptr;  // as SetConfig was given it
double started_us = 0, stopped_us = 0;

std::size_t variable(const std::string& name, std::size_t otherwise) {
    const char* value = std::getenv(name.c_str());
    return value ? std::strtoul(value, nullptr, 10) : otherwise;
}

template <class T>
CUptiResult called(const char* name, const T* p, std::size_t size) {
    calls += (calls.empty() ? "" : " ") + std::string(name);
    if (p->structSize != size || p->pPriv) calls += "(!)";
    for (std::size_t i = 0; data && i < 8; ++i)
        if (data[i] != (i == 0 ? data_byte : 0)) {
            calls += "(data gone)";
            break;
        }
    return CUptiResult(variable("FAKE_" + std::string(name), 0));
}

double device_us() {
    static void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    static auto* clock = driver ? reinterpret_cast<double (*)()>(dlsym(driver, "fake_clock_us")) : nullptr;
    return clock ? clock() : 0;
}

}  // namespace

#define CALLED(name, type) called(name, p, CUpti_##type##_Params_STRUCT_SIZE)

extern "C" {

const char* fake_calls() { return calls.c_str(); }
void fake_reset() { calls.clear(), started = 0, data = nullptr; }

CUptiResult cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* p) {
    if (std::getenv("FAKE_COUNTERS_DENIED")) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    return CALLED("Initialize", Profiler_Initialize);
}
CUptiResult cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params* p) {
    return CALLED("Deinitialize", Profiler_DeInitialize);
}
CUptiResult cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* p) {
    p->isSupported = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    return CALLED("DeviceSupported", Profiler_DeviceSupported);
}
CUptiResult cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* p) {
    p->pChipName = "GH100";
    return CALLED("ChipName", Device_GetChipName);
}
CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* p) {
    p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(&calls);
    return CALLED("HostInitialize", Profiler_Host_Initialize);
}
CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* p) {
    return CALLED("HostDeinitialize", Profiler_Host_Deinitialize);
}
CUptiResult cuptiProfilerHostGetMetricProperties(CUpti_Profiler_Host_GetMetricProperties_Params* p) {
    return CALLED("MetricProperties", Profiler_Host_GetMetricProperties);
}
CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* p) {
    return CALLED("AddMetrics", Profiler_Host_ConfigAddMetrics);
}
CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
    p->configImageSize = 4;
    return CALLED("ConfigImageSize", Profiler_Host_GetConfigImageSize);
}
CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* p) {
    p->pConfigImage[3] = image_byte;
    return CALLED("ConfigImage", Profiler_Host_GetConfigImage);
}
CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
    p->numOfPasses = variable("FAKE_PASSES", 1);
    return CALLED("Passes", Profiler_Host_GetNumOfPasses);
}
CUptiResult cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
    if (p->pCounterDataImage[0] != data_byte) return CUPTI_ERROR_INVALID_PARAMETER;
    for (std::size_t i = 0; i < p->numMetrics; ++i) {
        const bool time = std::strcmp(p->ppMetricNames[i], "gpu__time_duration.sum") == 0;
        p->pMetricValues[i] = time ? 1000 * (stopped_us - started_us) : 8000;
    }
    return CALLED("Evaluate", Profiler_Host_EvaluateToGpuValues);
}
CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* p) {
    p->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(&calls);
    return CALLED("Enable", RangeProfiler_Enable);
}
CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params* p) {
    const CUptiResult result = CALLED("Disable", RangeProfiler_Disable);
    data = nullptr;
    return result;
}
CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* p) {
    p->counterDataSize = 8;
    return CALLED("DataSize", RangeProfiler_GetCounterDataSize);
}
CUptiResult cuptiRangeProfilerCounterDataImageInitialize(CUpti_RangeProfiler_CounterDataImage_Initialize_Params* p) {
    p->pCounterData[0] = data_byte;
    return CALLED("DataInitialize", RangeProfiler_CounterDataImage_Initialize);
}
CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* p) {
    const bool right = p->configSize == 4 && p->pConfig[3] == image_byte && p->counterDataImageSize == 8
                       && p->range == CUPTI_UserRange && p->replayMode == CUPTI_UserReplay
                       && p->maxRangesPerPass == 1 && p->numNestingLevels == 1 && p->minNestingLevel == 1
                       && p->passIndex == 0 && p->targetNestingLevel == 1;
    data = p->pCounterDataImage;
    return right ? CALLED("SetConfig", RangeProfiler_SetConfig) : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params* p) {
    ++started;
    return CALLED("Start", RangeProfiler_Start);
}
CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params* p) {
    started_us = device_us();
    return CALLED("Push", RangeProfiler_PushRange);
}
CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params* p) {
    stopped_us = device_us();
    return CALLED("Pop", RangeProfiler_PopRange);
}
CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* p) {
    p->isAllPassSubmitted = started >= variable("FAKE_PASSES", 1);
    return CALLED("Stop", RangeProfiler_Stop);
}
CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* p) {
    p->numOfRangeDropped = variable("FAKE_DROPPED", 0);
    return CALLED("Decode", RangeProfiler_DecodeData);
}
CUptiResult cuptiGetResultString(CUptiResult, const char** name) {
    *name = "CUPTI_ERROR_OF_TEST";
    return CUPTI_SUCCESS;
}

}  // extern "C"
