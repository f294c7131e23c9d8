// Modules, functions, launches and tensor maps of driver.hpp.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <utility>

#include "kernels/ptx/tensor_map.hpp"
#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/recorded_launch.hpp"

namespace rooftile {
namespace {

// The driver asks for 64-byte alignment (cuTensorMapEncodeTiled), whatever CUtensorMap's type says.
static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) && alignof(TensorMap) >= 64);

bool launch_blocking() {
    static const bool blocking = [] {
        const char* value = std::getenv("ROOFTILE_LAUNCH_BLOCKING");
        return value && std::string_view(value) == "1";
    }();
    return blocking;
}

/// A launch configuration and the attributes it points to; must not move once filled.
struct FilledLaunch {
    CUlaunchConfig config{};
    CUlaunchAttribute attributes[3]{};

    explicit FilledLaunch(const Launch& launch) {
        config.gridDimX = launch.grid_x;
        config.gridDimY = launch.grid_y;
        config.gridDimZ = launch.grid_z;
        config.blockDimX = launch.block_x;
        config.blockDimY = launch.block_y;
        config.blockDimZ = launch.block_z;
        config.sharedMemBytes = launch.shared_bytes;
        config.hStream = launch.stream;
        config.attrs = attributes;
        if (launch.cluster_x * launch.cluster_y * launch.cluster_z > 1) {
            CUlaunchAttribute& attribute = attributes[config.numAttrs++];
            attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            attribute.value.clusterDim.x = launch.cluster_x;
            attribute.value.clusterDim.y = launch.cluster_y;
            attribute.value.clusterDim.z = launch.cluster_z;
        }
        if (launch.programmatic_dependent) {
            CUlaunchAttribute& attribute = attributes[config.numAttrs++];
            attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attribute.value.programmaticStreamSerializationAllowed = 1;
        }
        if (launch.cooperative) {
            CUlaunchAttribute& attribute = attributes[config.numAttrs++];
            attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            attribute.value.cooperative = 1;
        }
    }
    FilledLaunch(const FilledLaunch&) = delete;
};

std::string describe(const Function& function, const Launch& launch) {
    return fmt::format("cuLaunchKernelEx of {} (grid {}x{}x{}, block {}, cluster {}x{}x{}, {} B shared)",
                       function.name(), launch.grid_x, launch.grid_y, launch.grid_z,
                       launch.block_x * launch.block_y * launch.block_z, launch.cluster_x, launch.cluster_y,
                       launch.cluster_z, launch.shared_bytes);
}

}  // namespace

Module::Module(std::span<const char> cubin) {
    // No options: the driver may load the code into a context much later, when a log buffer here would be gone.
    const CUresult result =
        driver_table().cuLibraryLoadData(&library_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (result == CUDA_SUCCESS) return;
    library_ = nullptr;
    check(result, fmt::format("cuLibraryLoadData of a {} B cubin", cubin.size()));
}

Module::~Module() {
    const DriverTable* driver = library_ ? driver_table_if_usable() : nullptr;
    if (!driver) return;
    const WhileOthersCapture relaxed(*driver);
    driver->cuLibraryUnload(library_);
}

Module::Module(Module&& other) noexcept : library_(std::exchange(other.library_, nullptr)) {}

Module& Module::operator=(Module&& other) noexcept {
    std::swap(library_, other.library_);
    return *this;
}

Function Module::function(const std::string& lowered_name) const {
    const DriverTable& driver = driver_table();
    CUkernel kernel = nullptr;
    CUfunction function = nullptr;
    check(driver.cuLibraryGetKernel(&kernel, library_, lowered_name.c_str()),
          fmt::format("cuLibraryGetKernel({})", lowered_name));
    check(driver.cuKernelGetFunction(&function, kernel),
          fmt::format("cuKernelGetFunction({})", lowered_name));
    return Function(function, lowered_name);
}

FunctionAttributes Function::attributes() const {
    const DriverTable& driver = driver_table();
    auto ask = [&](CUfunction_attribute which) {
        int value = 0;
        check(driver.cuFuncGetAttribute(&value, which, handle_), "cuFuncGetAttribute");
        return value;
    };
    FunctionAttributes attributes;
    attributes.registers = ask(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes.local_bytes = ask(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attributes.static_shared_bytes = ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attributes.max_threads = ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes.binary_version = ask(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    return attributes;
}

void Function::allow_shared(int bytes) const {
    check(driver_table().cuFuncSetAttribute(handle_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes),
          fmt::format("cuFuncSetAttribute({} B of dynamic shared memory for {})", bytes, name_));
}

int Function::ctas_per_sm(int threads, int shared_bytes) const {
    int ctas = 0;
    check(driver_table().cuOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, handle_, threads,
                                                                     std::size_t(shared_bytes)),
          "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    return ctas;
}

int active_clusters(const Function& function, const Launch& launch) {
    FilledLaunch filled(launch);
    int clusters = 0;
    check(driver_table().cuOccupancyMaxActiveClusters(&clusters, function.get(), &filled.config),
          "cuOccupancyMaxActiveClusters");
    return clusters;
}

void check_pointer(std::string_view name, const void* pointer, int alignment) {
    if (!pointer) throw RequestError(fmt::format("the pointer to {} is null", name));
    if (reinterpret_cast<std::uintptr_t>(pointer) % std::uintptr_t(alignment) != 0)
        throw RequestError(fmt::format("{} at {} is not aligned to {} B", name, pointer, alignment));
}

void launch_raw(const Function& function, const Launch& launch, void* const* arguments) {
    assert(function);
    const DriverTable& driver = driver_table();
    FilledLaunch filled(launch);
    CUresult result =
        driver.cuLaunchKernelEx(&filled.config, function.get(), const_cast<void**>(arguments), nullptr);
    if (result != CUDA_SUCCESS) check(result, describe(function, launch));
    if (!launch_blocking() || launch.caller_waits) return;
    // A stream that is being captured cannot be waited for.
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    driver.cuStreamIsCapturing(launch.stream, &capture);
    if (capture != CU_STREAM_CAPTURE_STATUS_NONE) return;
    result = driver.cuStreamSynchronize(launch.stream);
    if (result != CUDA_SUCCESS) check(result, "the kernel started by " + describe(function, launch));
}

namespace {

bool same(const TensorMapRequest& a, const TensorMapRequest& b) {
    return a.base == b.base && a.type == b.type && a.inner == b.inner && a.outer == b.outer
           && a.outer_stride_bytes == b.outer_stride_bytes && a.box_inner == b.box_inner && a.box_outer == b.box_outer
           && a.swizzle_bytes == b.swizzle_bytes && a.l2_promotion_bytes == b.l2_promotion_bytes
           && std::equal(a.matrices, a.matrices + 2, b.matrices)
           && std::equal(a.matrix_stride_bytes, a.matrix_stride_bytes + 2, b.matrix_stride_bytes);
}

void encode_anew(TensorMap& map, const TensorMapRequest& request) {
    const CUtensorMapDataType type = request.type == Type::bf16   ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                     : request.type == Type::fp16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                     : is_fp8(request.type)       ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                                                  : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    const CUtensorMapSwizzle swizzle = request.swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                       : request.swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                       : request.swizzle_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                                     : CU_TENSOR_MAP_SWIZZLE_NONE;
    const CUtensorMapL2promotion promotion =
        request.l2_promotion_bytes == 256   ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B
        : request.l2_promotion_bytes == 128 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B
        : request.l2_promotion_bytes == 64  ? CU_TENSOR_MAP_L2_PROMOTION_L2_64B
                                            : CU_TENSOR_MAP_L2_PROMOTION_NONE;
    const cuuint32_t rank = 2 + (request.matrices[0] > 0) + (request.matrices[1] > 0);
    const cuuint64_t extents[4] = {cuuint64_t(request.inner), cuuint64_t(request.outer), cuuint64_t(request.matrices[0]),
                                   cuuint64_t(request.matrices[1])};
    const cuuint64_t strides[3] = {cuuint64_t(request.outer_stride_bytes), cuuint64_t(request.matrix_stride_bytes[0]),
                                   cuuint64_t(request.matrix_stride_bytes[1])};
    const cuuint32_t box[4] = {cuuint32_t(request.box_inner), cuuint32_t(request.box_outer), 1, 1};
    const cuuint32_t element_strides[4] = {1, 1, 1, 1};
    CUresult result = driver_table().cuTensorMapEncodeTiled(
        reinterpret_cast<CUtensorMap*>(&map), type, rank, reinterpret_cast<void*>(request.base), extents,
        strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS) return;
    check(
        result,
        fmt::format("cuTensorMapEncodeTiled(extents {}x{}x{}x{}, strides {}, {}, {} B, box {}x{}, swizzle {} B, base {:#x})",
                    request.inner, request.outer, request.matrices[0], request.matrices[1], request.outer_stride_bytes,
                    request.matrix_stride_bytes[0], request.matrix_stride_bytes[1], request.box_inner, request.box_outer,
                    request.swizzle_bytes, request.base));
}

}  // namespace

void encode(TensorMap& map, const TensorMapRequest& request) {
    if (recording_launches()) return encode_anew(map, request);
    // A map follows from its request alone, and launches that repeat ask for the same ones: some 0.1 us each.
    constexpr std::size_t kept = 16;
    struct Known {
        TensorMapRequest request;
        TensorMap map;
    };
    thread_local std::array<Known, kept> known{};
    thread_local std::size_t oldest = 0;
    if (request.base != 0)
        for (const Known& k : known)
            if (same(k.request, request)) {
                map = k.map;
                return;
            }
    encode_anew(map, request);
    known[oldest] = {request, map};
    oldest = (oldest + 1) % kept;
}

}  // namespace rooftile
