// CUPTI without a GPU, beside the fake driver: the time of a range is that of the fake device's clock, every
// other counter 8000. FAKE_COUNTERS_DENIED=1: the driver keeps its counters to administrators.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "rooftile/measure/cupti_api.hpp"

using namespace rooftile::cupti;

namespace {

double started_us = 0, stopped_us = 0;

double device_us() {
    static void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    static auto* clock = reinterpret_cast<double (*)()>(dlsym(driver, "fake_clock_us"));
    return clock();
}

}  // namespace

extern "C" {

int cuptiProfilerInitialize(Initialize*) { return std::getenv("FAKE_COUNTERS_DENIED") ? 35 : 0; }
int cuptiProfilerDeInitialize(Initialize*) { return 0; }
int cuptiProfilerDeviceSupported(DeviceSupported* p) { return p->all = supported, 0; }
int cuptiDeviceGetChipName(ChipName* p) { return p->name = "GH100", 0; }
int cuptiProfilerHostInitialize(HostInitialize* p) { return p->host = p, 0; }
int cuptiProfilerHostDeinitialize(HostDeinitialize*) { return 0; }
int cuptiProfilerHostGetMetricProperties(MetricProperties*) { return 0; }
int cuptiProfilerHostConfigAddMetrics(AddMetrics*) { return 0; }
int cuptiProfilerHostGetConfigImageSize(ConfigImageSize* p) { return p->bytes = 1, 0; }
int cuptiProfilerHostGetConfigImage(ConfigImage*) { return 0; }
int cuptiProfilerHostGetNumOfPasses(Passes* p) { return p->passes = 1, 0; }
int cuptiProfilerHostEvaluateToGpuValues(Evaluate* p) {
    for (std::size_t i = 0; i < p->count; ++i) {
        const bool time = std::strcmp(p->metrics[i], "gpu__time_duration.sum") == 0;
        p->values[i] = time ? 1000 * (stopped_us - started_us) : 8000;
    }
    return 0;
}
int cuptiRangeProfilerEnable(Enable* p) { return p->profiler = p, 0; }
int cuptiRangeProfilerDisable(OnProfiler*) { return 0; }
int cuptiRangeProfilerGetCounterDataSize(CounterDataSize* p) { return p->bytes = 1, 0; }
int cuptiRangeProfilerCounterDataImageInitialize(CounterDataInitialize*) { return 0; }
int cuptiRangeProfilerSetConfig(SetConfig*) { return 0; }
int cuptiRangeProfilerStart(OnProfiler*) { return 0; }
int cuptiRangeProfilerPushRange(PushRange*) { return started_us = device_us(), 0; }
int cuptiRangeProfilerPopRange(OnProfiler*) { return stopped_us = device_us(), 0; }
int cuptiRangeProfilerStop(Stop* p) { return p->all_passes_submitted = 1, 0; }
int cuptiRangeProfilerDecodeData(Decode*) { return 0; }
int cuptiGetResultString(int, const char** name) { return *name = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", 0; }

}  // extern "C"
