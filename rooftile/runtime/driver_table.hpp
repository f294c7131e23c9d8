// The driver's functions as pointers. For rooftile/kernel's own sources: this one needs cuda.h.
#pragma once

#include <cuda.h>

#include <string_view>

#include "rooftile/runtime/driver.hpp"

namespace rooftile {

// cuda.h maps some of these to versioned names (cuMemAlloc to cuMemAlloc_v2); each is looked up under
// the name, and called with the type, that this header gives it.
// clang-format off: it packs the list and never settles
#define ROOFTILE_DRIVER_FUNCTIONS(X)               \
    X(cuInit)                                      \
    X(cuDriverGetVersion)                          \
    X(cuGetErrorName)                              \
    X(cuGetErrorString)                            \
    X(cuDeviceGetCount)                            \
    X(cuDeviceGet)                                 \
    X(cuDeviceGetName)                             \
    X(cuDeviceGetAttribute)                        \
    X(cuDeviceTotalMem)                            \
    X(cuDeviceGetPCIBusId)                         \
    X(cuDevicePrimaryCtxRetain)                    \
    X(cuDevicePrimaryCtxRelease)                   \
    X(cuCtxPushCurrent)                            \
    X(cuCtxPopCurrent)                             \
    X(cuCtxGetCurrent)                             \
    X(cuCtxGetDevice)                              \
    X(cuCtxGetId)                                  \
    X(cuCtxSynchronize)                            \
    X(cuCtxResetPersistingL2Cache)                 \
    X(cuMemGetInfo)                                \
    X(cuMemAlloc)                                  \
    X(cuMemFree)                                   \
    X(cuMemHostAlloc)                              \
    X(cuMemFreeHost)                               \
    X(cuMemHostGetDevicePointer)                   \
    X(cuMemcpyHtoD)                                \
    X(cuMemcpyDtoH)                                \
    X(cuMemcpyHtoDAsync)                           \
    X(cuMemcpyDtoHAsync)                           \
    X(cuMemcpyDtoDAsync)                           \
    X(cuMemsetD8Async)                             \
    X(cuMemsetD32Async)                            \
    X(cuStreamCreate)                              \
    X(cuStreamDestroy)                             \
    X(cuStreamSynchronize)                         \
    X(cuStreamWaitEvent)                           \
    X(cuStreamIsCapturing)                         \
    X(cuStreamBeginCapture)                        \
    X(cuStreamEndCapture)                          \
    X(cuStreamGetCaptureInfo)                      \
    X(cuThreadExchangeStreamCaptureMode)           \
    X(cuEventCreate)                               \
    X(cuEventDestroy)                              \
    X(cuEventRecord)                               \
    X(cuEventSynchronize)                          \
    X(cuEventQuery)                                \
    X(cuEventElapsedTime)                          \
    X(cuLibraryLoadData)                           \
    X(cuLibraryUnload)                             \
    X(cuLibraryGetKernel)                          \
    X(cuKernelGetFunction)                         \
    X(cuFuncGetAttribute)                          \
    X(cuFuncSetAttribute)                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
    X(cuOccupancyMaxActiveClusters)                \
    X(cuLaunchKernelEx)                            \
    X(cuTensorMapEncodeTiled)                      \
    X(cuTensorMapEncodeIm2col)                     \
    X(cuUserObjectCreate)                          \
    X(cuUserObjectRelease)                         \
    X(cuGraphRetainUserObject)                     \
    X(cuGraphGetNodes)                             \
    X(cuGraphInstantiateWithFlags)                 \
    X(cuGraphLaunch)                               \
    X(cuGraphDestroy)                              \
    X(cuGraphExecDestroy)
// clang-format on

struct DriverTable {
#define ROOFTILE_MEMBER(function) decltype(&::function) function = nullptr;
    ROOFTILE_DRIVER_FUNCTIONS(ROOFTILE_MEMBER)
#undef ROOFTILE_MEMBER
};

/// That of record_launches(), where this thread is in one; else null.
const DriverTable* recording_driver();
/// The table of a usable driver; throws Error(no_gpu) where there is none.
const DriverTable& driver_table();
/// The same, or null: for destructors, which must not throw.
const DriverTable* driver_table_if_usable();

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string describe(CUresult result);
/// Throws Error(gpu_failed) naming `call` unless `result` is success.
void check(CUresult result, std::string_view call);

/// As long as it lives this thread may free and unload while any thread captures a graph: that changes no stream, but the driver would
/// refuse it and end the capture.
class WhileOthersCapture {
  public:
    explicit WhileOthersCapture(const DriverTable& driver) : driver_(driver) { exchange(); }
    ~WhileOthersCapture() { exchange(); }
    WhileOthersCapture(const WhileOthersCapture&) = delete;

  private:
    void exchange() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
    const DriverTable& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// A number no other context of this process has, ever: unlike its address, which is used again.
/// Null stands for no current context and gives 0.
std::uint64_t context_id(CUctx_st* context);

}  // namespace rooftile
