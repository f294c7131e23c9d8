// CUPTI's functions as pointers. For rooftile/measure's own sources: this one needs CUPTI's headers.
#pragma once

#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

namespace rooftile {

// clang-format off: it packs the list and never settles
#define ROOFTILE_CUPTI_FUNCTIONS(X)                 \
    X(cuptiProfilerInitialize)                      \
    X(cuptiProfilerDeInitialize)                    \
    X(cuptiProfilerDeviceSupported)                 \
    X(cuptiDeviceGetChipName)                       \
    X(cuptiProfilerHostInitialize)                  \
    X(cuptiProfilerHostDeinitialize)                \
    X(cuptiProfilerHostGetMetricProperties)         \
    X(cuptiProfilerHostConfigAddMetrics)            \
    X(cuptiProfilerHostGetConfigImageSize)          \
    X(cuptiProfilerHostGetConfigImage)              \
    X(cuptiProfilerHostGetNumOfPasses)              \
    X(cuptiProfilerHostEvaluateToGpuValues)         \
    X(cuptiRangeProfilerEnable)                     \
    X(cuptiRangeProfilerDisable)                    \
    X(cuptiRangeProfilerGetCounterDataSize)         \
    X(cuptiRangeProfilerCounterDataImageInitialize) \
    X(cuptiRangeProfilerSetConfig)                  \
    X(cuptiRangeProfilerStart)                      \
    X(cuptiRangeProfilerPushRange)                  \
    X(cuptiRangeProfilerPopRange)                   \
    X(cuptiRangeProfilerStop)                       \
    X(cuptiRangeProfilerDecodeData)                 \
    X(cuptiGetResultString)
// clang-format on

struct CuptiTable {
#define ROOFTILE_MEMBER(function) decltype(&::function) function = nullptr;
    ROOFTILE_CUPTI_FUNCTIONS(ROOFTILE_MEMBER)
#undef ROOFTILE_MEMBER
};

/// A call's parameters: their size filled in, everything else zero, as CUPTI wants it.
#define ROOFTILE_CUPTI_PARAMETERS(name, call) \
    CUpti_##call##_Params name{};             \
    name.structSize = CUpti_##call##_Params_STRUCT_SIZE

}  // namespace rooftile
