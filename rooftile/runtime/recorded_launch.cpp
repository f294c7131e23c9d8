#include "rooftile/runtime/recorded_launch.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <set>

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/runtime/driver_table.hpp"

namespace rooftile {
namespace {

constexpr std::uint64_t map_mark = 0x70616d2e726f7365;  // the first word of a map that is none yet
constexpr int tensor_shift = 48;                        // addresses of a tensor: far more than any has bytes
// In the upper half of an address: as a number of rows, heads or tiles no problem has it, so a pair of those is never taken for a pointer.
constexpr DevicePointer tensor_mark = 0x5a3c;
constexpr DevicePointer memory_begin = DevicePointer{1} << 32;

struct Recorder {
    const RecordedDevice& device;
    const std::function<std::vector<int>(std::string_view)>& parameters;
    Recording recording{};
    std::set<std::string> kernels{};  // their names stay where they are
    std::map<const void*, std::map<int, int>> attributes{};
    DevicePointer next = memory_begin;
};
thread_local Recorder* recorder = nullptr;
constexpr std::uint64_t contexts_apart = 1 << 20;  // more than a GPU has SMs: one of another number is another
std::atomic<std::uint64_t> contexts = std::uint64_t{1} << 60;  // far from those that a driver counts
thread_local std::uint64_t context = 0;

int attribute(CUdevice_attribute which) {
    const RecordedDevice& d = recorder->device;
    const int arch = d.arch.starts_with("sm_") ? std::atoi(d.arch.c_str() + 3) : 0;
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            return arch / 10;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            return arch % 10;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return d.sms;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            return int(d.shared_per_sm_bytes);
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            return int(d.shared_per_cta_bytes);
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
            return int(d.shared_per_sm_bytes - d.shared_per_cta_bytes);
        default:
            return 0;
    }
}

CUresult fill(CUdeviceptr to, const void* from, std::size_t bytes) {
    recorder->recording.memory[to] = std::string(static_cast<const char*>(from), bytes);
    return CUDA_SUCCESS;
}

CUresult launch_kernel(const CUlaunchConfig* c, CUfunction f, void** arguments, void**) {
    RecordedLaunch out;
    out.lowered_name = *reinterpret_cast<const std::string*>(f);
    out.launch.grid_x = c->gridDimX, out.launch.grid_y = c->gridDimY, out.launch.grid_z = c->gridDimZ;
    out.launch.block_x = c->blockDimX, out.launch.block_y = c->blockDimY, out.launch.block_z = c->blockDimZ;
    out.launch.shared_bytes = c->sharedMemBytes;
    for (unsigned i = 0; i < c->numAttrs; ++i) {
        const CUlaunchAttribute& a = c->attrs[i];
        if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            out.launch.cluster_x = a.value.clusterDim.x, out.launch.cluster_y = a.value.clusterDim.y,
            out.launch.cluster_z = a.value.clusterDim.z;
        if (a.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) out.launch.programmatic_dependent = true;
        if (a.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) out.launch.cooperative = true;
    }
    const std::vector<int> sizes = recorder->parameters(out.lowered_name);
    for (std::size_t i = 0; i < sizes.size(); ++i)
        out.arguments.emplace_back(static_cast<const char*>(arguments[i]), std::size_t(sizes[i]));
    out.attributes = recorder->attributes[f];
    recorder->recording.launches.push_back(std::move(out));
    return CUDA_SUCCESS;
}

/// What both kinds of maps have, and its number into `to`.
RecordedMap& record_map(CUtensorMap* to, CUtensorMapDataType type, void* base, cuuint32_t rank, const cuuint64_t* extents, const cuuint64_t* strides,
                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2) {
    RecordedMap map;
    map.type = type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16  ? "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16"
               : type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 ? "CU_TENSOR_MAP_DATA_TYPE_FLOAT16"
               : type == CU_TENSOR_MAP_DATA_TYPE_UINT8   ? "CU_TENSOR_MAP_DATA_TYPE_UINT8"
                                                         : "CU_TENSOR_MAP_DATA_TYPE_FLOAT32";
    map.swizzle = swizzle == CU_TENSOR_MAP_SWIZZLE_128B  ? "CU_TENSOR_MAP_SWIZZLE_128B"
                  : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? "CU_TENSOR_MAP_SWIZZLE_64B"
                  : swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? "CU_TENSOR_MAP_SWIZZLE_32B"
                                                         : "CU_TENSOR_MAP_SWIZZLE_NONE";
    map.l2_promotion = l2 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B   ? "CU_TENSOR_MAP_L2_PROMOTION_L2_256B"
                       : l2 == CU_TENSOR_MAP_L2_PROMOTION_L2_128B ? "CU_TENSOR_MAP_L2_PROMOTION_L2_128B"
                       : l2 == CU_TENSOR_MAP_L2_PROMOTION_L2_64B  ? "CU_TENSOR_MAP_L2_PROMOTION_L2_64B"
                                                                  : "CU_TENSOR_MAP_L2_PROMOTION_NONE";
    map.base = reinterpret_cast<DevicePointer>(base);
    map.extents.assign(extents, extents + rank);
    map.strides.assign(strides, strides + rank - 1);
    std::memset(to, 0, sizeof *to);
    auto* const words = reinterpret_cast<std::uint64_t*>(to);
    words[0] = map_mark, words[1] = recorder->recording.maps.size();
    return recorder->recording.maps.emplace_back(std::move(map));
}

CUresult encode_map(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* base, const cuuint64_t* extents,
                    const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t*, CUtensorMapInterleave,
                    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill) {
    record_map(to, type, base, rank, extents, strides, swizzle, l2).box.assign(box, box + rank);
    return CUDA_SUCCESS;
}

CUresult encode_image_map(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* base, const cuuint64_t* extents,
                          const cuuint64_t* strides, const int* first, const int* past_last, cuuint32_t channels, cuuint32_t pixels,
                          const cuuint32_t* steps, CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
                          CUtensorMapFloatOOBfill) {
    RecordedMap& map = record_map(to, type, base, rank, extents, strides, swizzle, l2);
    map.box = {channels, pixels};
    map.first.assign(first, first + rank - 2), map.past_last.assign(past_last, past_last + rank - 2);
    map.steps.assign(steps, steps + rank);
    return CUDA_SUCCESS;
}

/// A driver that computes nothing. What no launch calls is null.
DriverTable recording_table() {
    DriverTable t;
    t.cuGetErrorName = [](CUresult, const char** s) { return *s = "not recorded", CUDA_SUCCESS; };
    t.cuGetErrorString = [](CUresult, const char** s) { return *s = "not recorded", CUDA_SUCCESS; };
    t.cuDeviceGet = [](CUdevice* d, int) { return *d = 0, CUDA_SUCCESS; };
    t.cuDeviceGetName = [](char* s, int, CUdevice) { return *s = 0, CUDA_SUCCESS; };
    t.cuDeviceGetPCIBusId = [](char* s, int, CUdevice) { return *s = 0, CUDA_SUCCESS; };
    t.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) { return *bytes = 0, CUDA_SUCCESS; };
    t.cuDeviceGetAttribute = [](int* v, CUdevice_attribute which, CUdevice) { return *v = attribute(which), CUDA_SUCCESS; };
    t.cuCtxGetCurrent = [](CUcontext* c) { return *c = reinterpret_cast<CUcontext>(recorder), CUDA_SUCCESS; };
    t.cuCtxGetDevice = [](CUdevice* d) { return *d = 0, CUDA_SUCCESS; };
    t.cuCtxGetId = [](CUcontext, unsigned long long* id) {
        return *id = context + std::uint64_t(recorder->device.sms), CUDA_SUCCESS;
    };
    t.cuMemAlloc = [](CUdeviceptr* p, std::size_t bytes) {
        *p = recorder->next;
        recorder->next += (bytes / 4096 + 1) * 4096;
        return CUDA_SUCCESS;
    };
    t.cuMemFree = [](CUdeviceptr) { return CUDA_SUCCESS; };
    t.cuMemcpyHtoD = [](CUdeviceptr d, const void* s, std::size_t n) { return fill(d, s, n); };
    t.cuMemcpyHtoDAsync = [](CUdeviceptr d, const void* s, std::size_t n, CUstream) { return fill(d, s, n); };
    t.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
    t.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* s) { return *s = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS; };
    t.cuStreamGetCaptureInfo = [](CUstream, CUstreamCaptureStatus* s, cuuint64_t*, CUgraph*, const CUgraphNode**, const CUgraphEdgeData**,
                                  std::size_t*) { return *s = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS; };
    t.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
    t.cuLibraryLoadData = [](CUlibrary* l, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned) {
        return *l = reinterpret_cast<CUlibrary>(recorder), CUDA_SUCCESS;
    };
    t.cuLibraryUnload = [](CUlibrary) { return CUDA_SUCCESS; };
    t.cuLibraryGetKernel = [](CUkernel* k, CUlibrary, const char* name) {
        return *k = reinterpret_cast<CUkernel>(const_cast<std::string*>(&*recorder->kernels.insert(name).first)), CUDA_SUCCESS;
    };
    t.cuKernelGetFunction = [](CUfunction* f, CUkernel k) { return *f = reinterpret_cast<CUfunction>(k), CUDA_SUCCESS; };
    t.cuFuncGetAttribute = [](int* v, CUfunction_attribute, CUfunction) { return *v = 0, CUDA_SUCCESS; };
    t.cuFuncSetAttribute = [](CUfunction f, CUfunction_attribute which, int v) {
        return recorder->attributes[f][which] = v, CUDA_SUCCESS;
    };
    // As many as any plan counts on: a plan's own number is the less.
    t.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* n, CUfunction, int, std::size_t) { return *n = 32, CUDA_SUCCESS; };
    t.cuOccupancyMaxActiveClusters = [](int* n, CUfunction, const CUlaunchConfig* c) {
        unsigned cluster = 1;
        for (unsigned i = 0; i < c->numAttrs; ++i)
            if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
                cluster = c->attrs[i].value.clusterDim.x * c->attrs[i].value.clusterDim.y * c->attrs[i].value.clusterDim.z;
        return *n = int(c->gridDimX * c->gridDimY * c->gridDimZ / cluster), CUDA_SUCCESS;
    };
    t.cuLaunchKernelEx = launch_kernel;
    t.cuTensorMapEncodeTiled = encode_map;
    t.cuTensorMapEncodeIm2col = encode_image_map;
    return t;
}

}  // namespace

const DriverTable* recording_driver() {
    if (!recorder) return nullptr;  // as in every call of a driver; the table is made where one records
    static const DriverTable table = recording_table();
    return &table;
}

bool recording_launches() { return recorder != nullptr; }

int map_of(std::string_view argument) {
    std::uint64_t words[2];
    if (argument.size() != sizeof(TensorMap)) return -1;
    std::memcpy(words, argument.data(), sizeof words);
    return words[0] == map_mark ? int(words[1]) : -1;
}

DevicePointer recorded_address(int i) { return (tensor_mark + DevicePointer(i)) << tensor_shift; }
int recorded_tensor(DevicePointer address) { return address >> tensor_shift < tensor_mark ? -1 : int((address >> tensor_shift) - tensor_mark); }

Recording record_launches(const RecordedDevice& device, const std::function<std::vector<int>(std::string_view)>& parameters,
                          const std::function<void()>& work) {
    Recorder here{.device = device, .parameters = parameters};
    struct Scope {
        explicit Scope(Recorder& r) { recorder = &r, context = contexts += contexts_apart; }
        ~Scope() { recorder = nullptr; }
    } scope(here);
    work();
    return std::move(here.recording);
}

}  // namespace rooftile
