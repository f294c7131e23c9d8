#include "rooftile/runtime/driver.hpp"

#include <fmt/core.h>
#include <pthread.h>

#include <atomic>

#include "rooftile/runtime/driver_table.hpp"
#include "rooftile/runtime/library.hpp"
#include "rooftile/runtime/recorded_launch.hpp"

namespace rooftile {
namespace {

// NVRTC 13 makes cubins that drivers of an earlier major release refuse.
constexpr int min_driver_version = 13000;

struct Loaded {
    DriverTable table;
    DriverStatus status;
};

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// Fills the table; returns the first function that the library lacks, or null.
const char* look_up(const Library& library, DriverTable& table) {
    // Two steps, so that cuMemAlloc is expanded to cuMemAlloc_v2 before it is made a string.
#define ROOFTILE_TEXT_OF(function) #function
#define ROOFTILE_TEXT(function) ROOFTILE_TEXT_OF(function)
#define ROOFTILE_LOOK_UP(function)                                                                     \
    table.function = reinterpret_cast<decltype(&::function)>(library.symbol(ROOFTILE_TEXT(function))); \
    if (!table.function) return ROOFTILE_TEXT(function);
    ROOFTILE_DRIVER_FUNCTIONS(ROOFTILE_LOOK_UP)
#undef ROOFTILE_LOOK_UP
#undef ROOFTILE_TEXT
#undef ROOFTILE_TEXT_OF
    return nullptr;
}

std::string describe(const DriverTable& table, CUresult result) {
    const char* name = nullptr;
    const char* meaning = nullptr;
    if (table.cuGetErrorName) table.cuGetErrorName(result, &name);
    if (table.cuGetErrorString) table.cuGetErrorString(result, &meaning);
    if (!name) return fmt::format("error {}", int(result));
    return meaning ? fmt::format("{} ({})", name, meaning) : name;
}

DriverStatus open_driver(DriverTable& table) {
    using Kind = DriverStatus::Kind;
    DriverStatus status;
    Library library = open_library(driver_soname);
    if (!library) {
        status.kind = Kind::no_library;
        status.message = fmt::format(
            "no NVIDIA driver: {} was not found; install the driver, or start the container with "
            "its GPUs",
            driver_soname);
        return status;
    }
    const char* lacking = look_up(library, table);
    if (table.cuDriverGetVersion) table.cuDriverGetVersion(&status.version);
    if (lacking || (status.version != 0 && status.version < min_driver_version)) {
        status.kind = Kind::too_old;
        status.message = fmt::format(
            "the NVIDIA driver ({}) supports CUDA {}{}; CUDA {} is needed: install driver 580 or newer",
            library.path, version_text(status.version), lacking ? fmt::format(" and lacks {}", lacking) : "",
            version_text(min_driver_version));
        return status;
    }
    CUresult result = table.cuInit(0);
    if (result == CUDA_SUCCESS) result = table.cuDeviceGetCount(&status.devices);
    if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && status.devices == 0)) {
        status.kind = Kind::no_device;
        status.message = "the NVIDIA driver sees no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES";
    } else if (result != CUDA_SUCCESS) {
        status.kind = Kind::failed;
        status.message = fmt::format("the NVIDIA driver does not start: cuInit says {}; check nvidia-smi",
                                     describe(table, result));
    } else {
        status.kind = Kind::usable;
        status.message = fmt::format("driver for CUDA {} ({}), {} GPU{}", version_text(status.version),
                                     library.path, status.devices, status.devices == 1 ? "" : "s");
    }
    return status;
}

/// Set in a child of a process that had opened the driver: CUDA's state does not survive a fork.
std::atomic<bool> forked = false;

const Loaded& loaded() {
    static const Loaded driver = [] {
        Loaded made;
        made.status = open_driver(made.table);
        if (made.status.kind == DriverStatus::Kind::usable)
            pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
        return made;
    }();
    return driver;
}

}  // namespace

const DriverTable* driver_table_if_usable() {
    if (const DriverTable* recording = recording_driver()) return recording;
    const Loaded& driver = loaded();
    if (forked.load(std::memory_order_relaxed)) return nullptr;
    return driver.status.kind == DriverStatus::Kind::usable ? &driver.table : nullptr;
}

const DriverTable& driver_table() {
    if (const DriverTable* recording = recording_driver()) return *recording;
    const Loaded& driver = loaded();
    if (driver.status.kind != DriverStatus::Kind::usable)
        throw Error(ExitCode::no_gpu, driver.status.message);
    if (forked.load(std::memory_order_relaxed))
        throw Error(ExitCode::gpu_failed,
                    "this process was forked from one that had used the GPU, and CUDA does not survive that: start it afresh "
                    "(Python: multiprocessing's start method spawn), or fork before the first use");
    return driver.table;
}

std::string describe(CUresult result) { return recording_launches() ? "refused by a recording" : describe(loaded().table, result); }

void check(CUresult result, std::string_view call) {
    if (result != CUDA_SUCCESS)
        throw Error(ExitCode::gpu_failed, fmt::format("{} failed: {}", call, describe(result)));
}

const DriverStatus& Driver::status() { return loaded().status; }

const Driver& Driver::instance() {
    driver_table();
    static const Driver driver;
    return driver;
}

int Driver::version() const { return loaded().status.version; }
int Driver::device_count() const { return recording_launches() ? 1 : loaded().status.devices; }

int Driver::attribute(int ordinal, int which) const {
    const DriverTable& driver = driver_table();
    CUdevice device = 0;
    check(driver.cuDeviceGet(&device, ordinal), "cuDeviceGet");
    int value = 0;
    check(driver.cuDeviceGetAttribute(&value, CUdevice_attribute(which), device),
          fmt::format("cuDeviceGetAttribute({})", which));
    return value;
}

DeviceInfo Driver::device(int ordinal) const {
    const DriverTable& driver = driver_table();
    if (ordinal < 0 || ordinal >= device_count())
        throw Error(ExitCode::no_gpu, fmt::format("there is no GPU {}: the driver sees {}, counted from 0",
                                                  ordinal, device_count()));
    CUdevice device = 0;
    check(driver.cuDeviceGet(&device, ordinal), "cuDeviceGet");
    DeviceInfo info;
    info.ordinal = ordinal;
    char text[256] = {};
    check(driver.cuDeviceGetName(text, sizeof text - 1, device), "cuDeviceGetName");
    info.name = text;
    if (driver.cuDeviceGetPCIBusId(text, sizeof text - 1, device) == CUDA_SUCCESS) info.pci_bus_id = text;
    std::size_t memory = 0;
    check(driver.cuDeviceTotalMem(&memory, device), "cuDeviceTotalMem");
    info.memory_bytes = std::int64_t(memory);

    // An attribute that this driver does not know stays 0.
    auto ask = [&](CUdevice_attribute which) {
        int value = 0;
        return driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
    };
    info.compute_major = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    info.compute_minor = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    info.sm_count = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info.l2_bytes = ask(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    info.shared_per_cta_bytes = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    info.shared_per_sm_bytes = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    info.shared_reserved_bytes = ask(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    info.registers_per_sm = ask(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    info.registers_per_cta = ask(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    info.threads_per_sm = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    info.threads_per_cta = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    info.ctas_per_sm = ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    info.warp_threads = ask(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    info.clock_khz = ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    info.memory_clock_khz = ask(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    info.memory_bus_bits = ask(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    return info;
}

void Driver::require_arch(int ordinal, std::string_view arch) const {
    DeviceInfo info = device(ordinal);
    if (info.arch() != arch)
        throw Error(ExitCode::no_gpu, fmt::format("GPU {} ({}) is {}; this kernel runs on {} only", ordinal,
                                                  info.name, info.arch(), arch));
}

Context::Context(int device) : device_(device) {
    const DriverTable& driver = driver_table();
    if (device < 0 || device >= Driver::instance().device_count())
        throw Error(ExitCode::no_gpu, fmt::format("there is no GPU {}: the driver sees {}, counted from 0",
                                                  device, Driver::instance().device_count()));
    CUdevice handle = 0;
    CUcontext context = nullptr;
    check(driver.cuDeviceGet(&handle, device), "cuDeviceGet");
    check(driver.cuDevicePrimaryCtxRetain(&context, handle),
          fmt::format("cuDevicePrimaryCtxRetain on GPU {}", device));
    CUresult pushed = driver.cuCtxPushCurrent(context);
    if (pushed != CUDA_SUCCESS) driver.cuDevicePrimaryCtxRelease(handle);
    check(pushed, "cuCtxPushCurrent");
}

Context::Context(int device, bool owned) : device_(device), owned_(owned) {}

Context::~Context() {
    if (!owned_) return;
    const DriverTable* driver = driver_table_if_usable();
    CUcontext popped = nullptr;
    driver->cuCtxPopCurrent(&popped);
    CUdevice handle = 0;
    if (driver->cuDeviceGet(&handle, device_) == CUDA_SUCCESS) driver->cuDevicePrimaryCtxRelease(handle);
}

std::unique_ptr<Context> Context::current_or_primary(int device) {
    if (current_context()) return std::unique_ptr<Context>(new Context(current_device(), false));
    return std::make_unique<Context>(device);
}

CUctx_st* current_context() {
    const DriverTable* driver = driver_table_if_usable();
    CUcontext context = nullptr;
    if (!driver || driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS) return nullptr;
    return context;
}

std::uint64_t context_id(CUctx_st* context) {
    if (!context) return 0;
    unsigned long long id = 0;
    check(driver_table().cuCtxGetId(context, &id), "cuCtxGetId");
    return id;
}

int current_device() {
    const DriverTable& driver = driver_table();
    CUdevice device = 0;
    CUresult result = driver.cuCtxGetDevice(&device);
    if (result == CUDA_ERROR_INVALID_CONTEXT)
        throw RequestError(
            "no CUDA context is current on this thread: make one, or hold a rooftile::Context");
    check(result, "cuCtxGetDevice");
    return device;
}

void synchronize() { check(driver_table().cuCtxSynchronize(), "cuCtxSynchronize"); }

void reset_persisting_l2() {
    check(driver_table().cuCtxResetPersistingL2Cache(), "cuCtxResetPersistingL2Cache");
}

MemoryInfo memory_info() {
    std::size_t free = 0, total = 0;
    check(driver_table().cuMemGetInfo(&free, &total), "cuMemGetInfo");
    return {std::int64_t(free), std::int64_t(total)};
}

}  // namespace rooftile
