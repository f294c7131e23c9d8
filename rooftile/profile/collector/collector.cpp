// Loaded into a profiled program by the CUDA driver (CUDA_INJECTION64_PATH): writes down what the program does on GPUs. The
// program must not notice it: every fault ends the recording, never the program, and nothing here throws out of a callback.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <cuda.h>
#include <cupti.h>

#include "rooftile/profile/recording.hpp"

namespace {

using namespace rooftile::recording;

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;            // of CUPTI's records: some 20,000 kernels
constexpr std::size_t buffered_bytes = std::size_t{1} << 20;          // of records, before they are written
constexpr std::size_t most_parameter_bytes = std::size_t{256} << 20;  // kept of launches, all together
constexpr std::uint32_t flush_ms = 500;                               // what a program that is killed may lose

// The calls that say when the host asked for work, waited, or did what takes long.
constexpr std::string_view watched_calls[] = {
    "cuLaunch",           "cuGraphLaunch",       "cuGraphInstantiate",  "cuMemcpy",
    "cuMemset",           "cuStreamSynchronize", "cuEventSynchronize",  "cuCtxSynchronize",
    "cuMemAlloc",         "cuMemFree",           "cuModuleLoad",        "cuLibraryLoad",
    "cuStreamWaitEvent",  "cuMemHostAlloc",      "cuMemFreeHost",       "cuStreamBeginCapture",
    "cuStreamEndCapture", "cuKernelGetFunction", "cuModuleGetFunction", "cuLibraryGetModule",
};

#define ROOFTILE_COLLECTOR_CUPTI(X)                                                                                                \
    X(cuptiActivityRegisterCallbacks)                                                                                              \
    X(cuptiActivityEnable) X(cuptiActivityEnableDriverApi) X(cuptiActivityFlushAll) X(cuptiActivityGetNextRecord)                  \
        X(cuptiActivityGetNumDroppedRecords) X(cuptiGetTimestamp) X(cuptiSubscribe) X(cuptiEnableCallback) X(cuptiGetCallbackName) \
            X(cuptiGetGraphNodeId) X(cuptiGetResultString)

struct Functions {
#define ROOFTILE_MEMBER(NAME) decltype(&::NAME) NAME = nullptr;
    ROOFTILE_COLLECTOR_CUPTI(ROOFTILE_MEMBER)
#undef ROOFTILE_MEMBER
    decltype(&::cuFuncGetParamInfo) cuFuncGetParamInfo = nullptr;
    decltype(&::cuKernelGetParamInfo) cuKernelGetParamInfo = nullptr;
    decltype(&::cuDeviceGetAttribute) cuDeviceGetAttribute = nullptr;
    decltype(&::cuDeviceGetName) cuDeviceGetName = nullptr;
};

Functions f;
void* cupti = nullptr;
/// A child of fork() has this memory and not these threads: any lock may be held for ever. It writes nothing and takes none.
std::atomic<bool> forked{false};

/// The one file of this process. Its buffer is written when CUPTI has handed over records, so that what was seen is safe. Not the C library's
/// buffer: a child of fork() would write that again when it ends.
class Writer {
  public:
    bool open(const char* folder) {
        const std::string path = std::string(folder) + "/" + std::to_string(getpid()) + ".rec";
        file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (file_ < 0) return false;
        buffer_.reserve(buffered_bytes + buffered_bytes / 4);
        buffer_.append(magic, sizeof magic);
        return true;
    }
    void flush() {
        const std::lock_guard lock(mutex_);
        write_out();
    }
    template <class Record>
    void write(Kind kind, Record record, std::string_view more = {}, std::string_view last = {}) {
        const std::lock_guard lock(mutex_);
        put(kind, record, more, last);
    }
    std::uint32_t text(std::string_view text) {
        const std::lock_guard lock(mutex_);
        if (const auto known = texts_.find(std::string(text)); known != texts_.end()) return known->second;
        const auto id = std::uint32_t(texts_.size() + 1);
        texts_.emplace(text, id);
        put(Kind::text, Text{{}, id, std::uint32_t(text.size())}, text, {});
        return id;
    }
    std::uint32_t text(const char* text) { return text ? this->text(std::string_view(text)) : 0; }

  private:
    template <class Record>
    void put(Kind kind, Record record, std::string_view more, std::string_view last) {
        if (file_ < 0) return;
        const std::size_t bytes = sizeof record + more.size() + last.size(), whole = (bytes + 7) / 8 * 8;
        record.head = {kind, 0, std::uint32_t(whole)};
        buffer_.append(reinterpret_cast<const char*>(&record), sizeof record).append(more).append(last).append(whole - bytes, '\0');
        if (buffer_.size() >= buffered_bytes) write_out();
    }
    void write_out() {
        std::string_view left = buffer_;
        while (file_ >= 0 && !left.empty()) {
            const ssize_t written = ::write(file_, left.data(), left.size());
            if (written > 0) left.remove_prefix(std::size_t(written));
            else if (errno != EINTR) file_ = -1;  // a full disk: what is there can be read
        }
        buffer_.clear();
    }

    std::mutex mutex_;
    int file_ = -1;
    std::string buffer_;
    std::unordered_map<std::string, std::uint32_t> texts_;
};

Writer* writer = nullptr;  // never deleted: CUPTI's threads may outlive the program's

void notice(const std::string& line) { writer->write(Kind::notice, Notice{{}, std::uint32_t(line.size()), 0}, line); }

std::uint64_t now() {
    std::uint64_t time = 0;
    f.cuptiGetTimestamp(&time);
    return time;
}

/// Parameters of launches, each kept once however often it is launched with.
class ParameterStore {
  public:
    /// 0: unknown, or too many are kept.
    std::uint32_t id_of(CUfunction function, void** parameters, void** extra) {
        const std::lock_guard lock(mutex_);
        std::string layout, bytes;
        std::uint32_t count = 0;
        if (parameters) {
            const Places& places = places_of(function);
            count = std::uint32_t(places.size());
            layout.assign(reinterpret_cast<const char*>(places.data()), places.size() * sizeof(Place));
            for (std::size_t i = 0; i < places.size(); ++i) {
                if (!parameters[i]) return 0;
                if (bytes.size() < places[i].offset + places[i].size) bytes.resize(places[i].offset + places[i].size);
                std::memcpy(bytes.data() + places[i].offset, parameters[i], places[i].size);
            }
        } else if (extra) {
            const void* data = nullptr;
            std::size_t size = 0;
            for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
                if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) data = extra[1];
                else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<std::size_t*>(extra[1]);
                else return 0;
            }
            if (data) bytes.assign(static_cast<const char*>(data), size);
        }
        if (bytes.empty()) return 0;
        const auto known = ids_.find(layout + bytes);
        if (known != ids_.end()) return known->second;
        kept_ += layout.size() + bytes.size();
        if (kept_ > most_parameter_bytes) {
            if (!full_) notice("parameters of later launches were not kept: there are more than 256 MiB of different ones");
            full_ = true;
            return 0;
        }
        const auto id = std::uint32_t(ids_.size() + 1);
        writer->write(Kind::parameters, Parameters{{}, id, count, std::uint32_t(bytes.size()), 0}, layout, bytes);
        ids_.emplace(layout + bytes, id);
        return id;
    }
    /// A handle may from now on mean another function.
    void forget_functions() {
        const std::lock_guard lock(mutex_);
        places_.clear();
    }

  private:
    struct Place {
        std::uint32_t offset, size;
    };
    using Places = std::vector<Place>;

    const Places& places_of(CUfunction function) {
        const auto [entry, is_new] = places_.try_emplace(function);
        if (!is_new) return entry->second;
        for (std::size_t i = 0;; ++i) {
            std::size_t offset = 0, size = 0;
            // A launch takes a CUkernel in a function's place.
            const bool found = (f.cuFuncGetParamInfo && f.cuFuncGetParamInfo(function, i, &offset, &size) == CUDA_SUCCESS)
                               || (f.cuKernelGetParamInfo
                                   && f.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), i, &offset, &size) == CUDA_SUCCESS);
            if (!found) break;
            entry->second.push_back({std::uint32_t(offset), std::uint32_t(size)});
        }
        return entry->second;
    }

    std::mutex mutex_;
    std::unordered_map<CUfunction, Places> places_;
    std::unordered_map<std::string, std::uint32_t> ids_;
    std::size_t kept_ = 0;
    bool full_ = false;
};

ParameterStore* parameters = nullptr;

thread_local std::uint32_t launching = 0;  // correlation of the launch call that this thread is in

void launch(const CUpti_CallbackData& call, CUfunction function, void** values, void** extra) {
    if (call.callbackSite != CUPTI_API_ENTER) {
        launching = 0;
        return;
    }
    launching = call.correlationId;
    if (const std::uint32_t id = parameters->id_of(function, values, extra))
        writer->write(Kind::launch, Launch{{}, call.correlationId, id});
}

void profiler_range(Mark mark) {
    writer->write(
        Kind::range,
        Range{{}, now(), mark == Mark::start ? writer->text("cudaProfilerStart") : 0, 0, std::uint32_t(gettid()), 0xffffffff, mark, 0});
}

void driver_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
    switch (id) {
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
            const auto& p = *static_cast<const cuLaunchKernel_params*>(call.functionParams);
            return launch(call, p.f, p.kernelParams, p.extra);
        }
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
            const auto& p = *static_cast<const cuLaunchKernelEx_params*>(call.functionParams);
            return launch(call, p.f, p.kernelParams, p.extra);
        }
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
        case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
            const auto& p = *static_cast<const cuLaunchCooperativeKernel_params*>(call.functionParams);
            return launch(call, p.f, p.kernelParams, nullptr);
        }
        case CUPTI_DRIVER_TRACE_CBID_cuProfilerStart:
            if (call.callbackSite == CUPTI_API_ENTER) profiler_range(Mark::start);
            return;
        case CUPTI_DRIVER_TRACE_CBID_cuProfilerStop:
            if (call.callbackSite == CUPTI_API_EXIT) profiler_range(Mark::end);
            return;
        default:
            return;
    }
}

void device(std::uint32_t index) {
    if (!f.cuDeviceGetAttribute || !f.cuDeviceGetName) return;
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        f.cuDeviceGetAttribute(&value, which, CUdevice(index));
        return std::uint32_t(value);
    };
    char name[256] = "";
    f.cuDeviceGetName(name, sizeof name - 1, CUdevice(index));
    writer->write(Kind::device, Device{{},
                                       index,
                                       writer->text(name),
                                       attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                                       attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                                       attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                                       attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
                                       attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
                                       attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
                                       attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
                                       attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)});
}

void resource(CUpti_CallbackId id, const CUpti_ResourceData& data) {
    if (id == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING) return parameters->forget_functions();
    const auto* graph = static_cast<const CUpti_GraphData*>(data.resourceDescriptor);
    std::uint64_t node = 0, original = 0;
    if (!graph || graph->nodeType != CU_GRAPH_NODE_TYPE_KERNEL || f.cuptiGetGraphNodeId(graph->node, &node) != CUPTI_SUCCESS) return;
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
        if (launching) writer->write(Kind::node, Node{{}, node, launching, 0});
    } else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
        if (f.cuptiGetGraphNodeId(graph->originalNode, &original) == CUPTI_SUCCESS) writer->write(Kind::clone, Clone{{}, node, original});
    }
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    if (forked) return;
    try {
        if (domain == CUPTI_CB_DOMAIN_DRIVER_API) driver_call(id, *static_cast<const CUpti_CallbackData*>(data));
        else if (domain == CUPTI_CB_DOMAIN_RESOURCE) resource(id, *static_cast<const CUpti_ResourceData*>(data));
    } catch (...) {  // out of memory: the recording lacks something, the program goes on
    }
}

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    *size = buffer_bytes;
    *most = 0;
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
    if (!*buffer) *size = 0;
}

std::uint32_t call_name(std::uint32_t id) {
    static auto* names = new std::unordered_map<std::uint32_t, std::uint32_t>;  // CUPTI hands buffers over in one thread at a time
    const auto [entry, is_new] = names->try_emplace(id);
    const char* name = nullptr;
    if (is_new && f.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) == CUPTI_SUCCESS) entry->second = writer->text(name);
    return entry->second;
}

void record(const CUpti_Activity* activity) {
    static auto* devices = new std::vector<bool>(64);
    switch (activity->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(activity);
            if (k.deviceId < devices->size() && !(*devices)[k.deviceId]) {
                (*devices)[k.deviceId] = true;
                device(k.deviceId);
            }
            writer->write(Kind::kernel, Kernel{{},
                                               k.start,
                                               k.end,
                                               k.graphNodeId,
                                               writer->text(k.name),
                                               k.deviceId,
                                               k.contextId,
                                               k.streamId,
                                               k.correlationId,
                                               k.graphId,
                                               {k.gridX, k.gridY, k.gridZ},
                                               {k.blockX, k.blockY, k.blockZ},
                                               {std::int32_t(k.clusterX), std::int32_t(k.clusterY), std::int32_t(k.clusterZ)},
                                               k.registersPerThread,
                                               std::uint32_t(k.staticSharedMemory),
                                               std::uint32_t(k.dynamicSharedMemory),
                                               k.localMemoryPerThread,
                                               k.isDeviceLaunched,
                                               0});
            return;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            const auto& c = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(activity);
            writer->write(
                Kind::copy,
                Copy{{}, c.start, c.end, c.bytes, c.graphNodeId, c.deviceId, c.streamId, c.correlationId, c.graphId, c.copyKind, 0});
            return;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY2: {
            const auto& c = *reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(activity);
            writer->write(
                Kind::copy,
                Copy{{}, c.start, c.end, c.bytes, c.graphNodeId, c.deviceId, c.streamId, c.correlationId, c.graphId, c.copyKind, 0});
            return;
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            const auto& c = *reinterpret_cast<const CUpti_ActivityMemset4*>(activity);
            writer->write(Kind::copy,
                          Copy{{}, c.start, c.end, c.bytes, c.graphNodeId, c.deviceId, c.streamId, c.correlationId, c.graphId, 0, 0});
            return;
        }
        case CUPTI_ACTIVITY_KIND_DRIVER: {
            const auto& c = *reinterpret_cast<const CUpti_ActivityAPI*>(activity);
            writer->write(Kind::call, Call{{}, c.start, c.end, call_name(c.cbid), c.threadId, c.correlationId, c.returnValue});
            return;
        }
        case CUPTI_ACTIVITY_KIND_MARKER: {
            const auto& m = *reinterpret_cast<const CUpti_ActivityMarker2*>(activity);
            const Mark mark = m.flags & CUPTI_ACTIVITY_FLAG_MARKER_START ? Mark::start
                              : m.flags & CUPTI_ACTIVITY_FLAG_MARKER_END ? Mark::end
                                                                         : Mark::instant;
            writer->write(Kind::range,
                          Range{{}, m.timestamp, writer->text(m.name), writer->text(m.domain), m.objectId.pt.threadId, m.id, mark, 0});
            return;
        }
        default:
            return;
    }
}

void CUPTIAPI buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    try {
        if (forked) valid = 0;
        CUpti_Activity* activity = nullptr;
        while (valid && f.cuptiActivityGetNextRecord(buffer, valid, &activity) == CUPTI_SUCCESS) record(activity);
        std::size_t dropped = 0;
        if (!forked && f.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
            writer->write(Kind::moment, Moment{{}, now(), What::records_dropped, std::uint32_t(dropped)});
        if (!forked) writer->flush();
    } catch (...) {}
    std::free(buffer);
}

/// What is complete reaches the file now and then, since a program may end at any time without a last word. A signal that would end it
/// waits for a last time: the thread that got it may hold any lock, so this one flushes, and has so long for it.
class Flusher {
  public:
    void start() {
        if (sem_init(&asked_, 0, 0) != 0 || sem_init(&done_, 0, 0) != 0) return;
        pthread_t thread;
        sigset_t all, before;  // the program's signals are for its own threads
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        if (pthread_create(
                &thread, nullptr, [](void* self) { return static_cast<Flusher*>(self)->run(), static_cast<void*>(nullptr); }, this)
            == 0)
            pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGHUP}) {
            struct sigaction now {};
            if (sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL)
                continue;  // the program answers it
            struct sigaction own {};
            own.sa_handler = on_signal;
            own.sa_flags = SA_RESETHAND | SA_NODEFER;
            sigaction(signal, &own, nullptr);
        }
    }
    void stop() { stopped_ = true; }

  private:
    static void on_signal(int signal);
    static timespec in_ms(long ms) {
        timespec at{};
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_nsec += ms * 1000000;
        at.tv_sec += at.tv_nsec / 1000000000, at.tv_nsec %= 1000000000;
        return at;
    }
    void run() {
        for (;;) {
            const timespec at = in_ms(flush_ms);
            const bool last = sem_timedwait(&asked_, &at) == 0;
            if (stopped_) return;
            f.cuptiActivityFlushAll(last ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
            writer->flush();
            if (last) sem_post(&done_);
        }
    }
    sem_t asked_{}, done_{};
    std::atomic<bool> stopped_{false};
};
Flusher* flusher = nullptr;

void Flusher::on_signal(int signal) {
    constexpr long last_words_ms = 2000;
    if (forked || flusher->stopped_) {
        raise(signal);
        return;
    }
    sem_post(&flusher->asked_);
    const timespec at = in_ms(last_words_ms);
    while (sem_timedwait(&flusher->done_, &at) != 0 && errno == EINTR) {}
    raise(signal);  // its usual answer, which stands again
}

void finish() {
    if (forked) return;
    flusher->stop();
    f.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    writer->write(Kind::moment, Moment{{}, now(), What::end, 0});
    writer->flush();
}

bool is_watched(std::string_view call) {
    for (std::string_view watched : watched_calls)
        if (call.starts_with(watched)) return true;
    return false;
}

/// The whole of the start; a line where it could not be done.
std::string begin() {
    const auto fault = [](const char* call, CUptiResult result) {
        const char* text = nullptr;
        f.cuptiGetResultString(result, &text);
        return std::string(call) + ": " + (text ? text : "unknown status") + " (" + std::to_string(int(result)) + ")";
    };
#define ROOFTILE_CALL(CALL, ...) \
    if (const CUptiResult result = f.CALL(__VA_ARGS__); result != CUPTI_SUCCESS) return fault(#CALL, result)
    // Before the kinds, so that no buffer is CUPTI's own.
    ROOFTILE_CALL(cuptiActivityRegisterCallbacks, buffer_requested, buffer_completed);
    static CUpti_SubscriberHandle subscriber;
    ROOFTILE_CALL(cuptiSubscribe, &subscriber, on_callback, nullptr);
    for (const CUpti_CallbackId id :
         {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
          CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
          CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart,
          CUPTI_DRIVER_TRACE_CBID_cuProfilerStop})
        ROOFTILE_CALL(cuptiEnableCallback, 1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    for (const CUpti_CallbackId id :
         {CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED})
        ROOFTILE_CALL(cuptiEnableCallback, 1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id);
    for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                          CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MARKER})
        ROOFTILE_CALL(cuptiActivityEnable, kind);
    for (CUpti_CallbackId id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; ++id) {
        const char* name = nullptr;
        if (f.cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) == CUPTI_SUCCESS && name && is_watched(name))
            f.cuptiActivityEnableDriverApi(id, 1);
    }
#undef ROOFTILE_CALL
    return "";
}

void* open_cupti() {
    if (cupti) return cupti;
    const char* path = std::getenv(cupti_variable);
    return cupti = dlopen(path && *path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

/// Called by the driver at the program's cuInit(). Always 1: whatever the recording lacks, the program goes on.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    static bool done = false;
    const char* folder = std::getenv(folder_variable);
    if (done || !folder || !*folder) return 1;
    done = true;
    writer = new Writer;
    parameters = new ParameterStore;
    if (!writer->open(folder)) return 1;
    if (!open_cupti()) {
        const char* why = dlerror();
        notice(std::string("CUPTI did not open: ") + (why ? why : "unknown"));
        writer->flush();
        return 1;
    }
    bool complete = true;
#define ROOFTILE_LOOK_UP(NAME) complete &= (f.NAME = reinterpret_cast<decltype(f.NAME)>(dlsym(cupti, #NAME))) != nullptr;
    ROOFTILE_COLLECTOR_CUPTI(ROOFTILE_LOOK_UP)
#undef ROOFTILE_LOOK_UP
    if (void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
        const auto look_up = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(driver, name));
        };
        look_up(f.cuFuncGetParamInfo, "cuFuncGetParamInfo");
        look_up(f.cuKernelGetParamInfo, "cuKernelGetParamInfo");
        look_up(f.cuDeviceGetAttribute, "cuDeviceGetAttribute");
        look_up(f.cuDeviceGetName, "cuDeviceGetName");
    }
    const std::string fault = complete ? begin() : "the CUPTI found lacks functions of CUDA 13";
    if (!fault.empty()) notice(fault);
    else writer->write(Kind::moment, Moment{{}, now(), What::begin, std::uint32_t(getpid())});
    writer->flush();
    if (!fault.empty()) return 1;
    flusher = new Flusher;
    flusher->start();
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    std::atexit(finish);
    return 1;
}

/// Called by NVTX at its first use (NVTX_INJECTION64_PATH): ranges go to the CUPTI that records.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(void* get_export_table) {
    using Initialize = int (*)(void*);
    const auto initialize = open_cupti() ? reinterpret_cast<Initialize>(dlsym(cupti, "InitializeInjectionNvtx2")) : nullptr;
    return initialize ? initialize(get_export_table) : 0;
}
