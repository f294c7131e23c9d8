// CUPTI's activities and callbacks without a GPU: what the fake driver does becomes records, which are handed over when they are
// asked for. Kernels run one after the other, each from its call on or from the end of the one before. FAKE_Subscribe: the status of
// cuptiSubscribe; FAKE_RECORDS_DROPPED: how many are said to be lost.
#pragma once

#include <cupti.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/fake/listener.hpp"

namespace fake {

inline std::uint64_t now() { return std::uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()); }

struct Call {
    std::uint32_t correlation = 0;
    std::uint64_t start = 0, data = 0;
};
inline thread_local std::vector<Call> calls_of_thread;

static_assert(sizeof(LaunchParameters) == sizeof(cuLaunchKernelEx_params)
              && offsetof(LaunchParameters, arguments) == offsetof(cuLaunchKernelEx_params, kernelParams));

class Activities final : public Listener {
  public:
    CUpti_BuffersCallbackRequestFunc request = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete = nullptr;
    CUpti_CallbackFunc callback = nullptr;
    void* user = nullptr;
    std::set<std::pair<int, std::uint32_t>> callbacks;
    std::set<int> kinds;
    std::set<std::uint32_t> calls;

    void enter(std::uint32_t call, const void* parameters) override {
        calls_of_thread.push_back({++correlations_, now(), 0});
        call_back(call, parameters, CUPTI_API_ENTER);
    }
    void leave(std::uint32_t call, const void* parameters, CUresult result) override {
        call_back(call, parameters, CUPTI_API_EXIT);
        const Call ended = calls_of_thread.back();
        calls_of_thread.pop_back();
        CUpti_ActivityAPI record{};
        record.kind = CUPTI_ACTIVITY_KIND_DRIVER, record.cbid = call, record.start = ended.start, record.end = now();
        record.processId = std::uint32_t(getpid()), record.threadId = thread(), record.correlationId = ended.correlation,
        record.returnValue = result;
        if (calls.contains(call)) add(record);
    }
    void kernel(const KernelRun& run) override {
        CUpti_ActivityKernel10 record{};
        record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        record.start = std::max(now(), device_free_), record.end = device_free_ = record.start + std::uint64_t(run.us * 1000);
        record.name = kept(run.name), record.contextId = 1, record.streamId = run.stream, record.correlationId = correlation();
        record.gridX = int(run.grid[0]), record.gridY = int(run.grid[1]), record.gridZ = int(run.grid[2]);
        record.blockX = int(run.block[0]), record.blockY = int(run.block[1]), record.blockZ = int(run.block[2]);
        record.dynamicSharedMemory = int(run.shared), record.registersPerThread = 32;
        record.graphNodeId = std::uint64_t(run.node), record.graphId = run.graph;
        add(record);
    }
    void copy(unsigned kind, std::size_t bytes) override {
        const std::uint64_t start = std::max(now(), device_free_);
        device_free_ = start + 1000;
        if (kind == 0) {
            CUpti_ActivityMemset4 record{};
            record.kind = CUPTI_ACTIVITY_KIND_MEMSET, record.start = start, record.end = device_free_, record.bytes = bytes,
            record.streamId = 7, record.correlationId = correlation();
            add(record);
        } else {
            CUpti_ActivityMemcpy6 record{};
            record.kind = CUPTI_ACTIVITY_KIND_MEMCPY, record.copyKind = std::uint8_t(kind), record.start = start, record.end = device_free_,
            record.bytes = bytes;
            record.streamId = 7, record.correlationId = correlation();
            add(record);
        }
    }
    void node(const void* made, const void* original) override {
        CUpti_GraphData graph{};
        graph.node = CUgraphNode(const_cast<void*>(made)), graph.originalNode = CUgraphNode(const_cast<void*>(original)),
        graph.nodeType = CU_GRAPH_NODE_TYPE_KERNEL;
        CUpti_ResourceData data{};
        data.resourceDescriptor = &graph;
        const CUpti_CallbackId id = original ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED;
        if (callbacks.contains({CUPTI_CB_DOMAIN_RESOURCE, id})) callback(user, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
    }

    void push(const char* name) {
        open_.push_back(++markers_);
        marker(open_.back(), CUPTI_ACTIVITY_FLAG_MARKER_START, name);
    }
    void pop() {
        if (open_.empty()) return;
        marker(open_.back(), CUPTI_ACTIVITY_FLAG_MARKER_END, nullptr);
        open_.pop_back();
    }

    void flush() {
        const std::lock_guard one(flushing_);
        for (;;) {
            std::uint8_t* buffer = nullptr;
            std::size_t size = 0, most = 0, used = 0;
            {
                const std::lock_guard lock(mutex_);
                if (records_.empty() || !request) return;
            }
            request(&buffer, &size, &most);
            if (!buffer) return;
            {
                const std::lock_guard lock(mutex_);
                for (; !records_.empty() && used + records_.front().size() <= size; records_.pop_front()) {
                    std::memcpy(buffer + used, records_.front().data(), records_.front().size());
                    used += records_.front().size();
                }
            }
            complete(nullptr, 0, buffer, size, used);
        }
    }
    static std::size_t size_of(const CUpti_Activity& record) {
        switch (record.kind) {
            case CUPTI_ACTIVITY_KIND_DRIVER:
                return sizeof(CUpti_ActivityAPI);
            case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
                return sizeof(CUpti_ActivityKernel10);
            case CUPTI_ACTIVITY_KIND_MEMCPY:
                return sizeof(CUpti_ActivityMemcpy6);
            case CUPTI_ACTIVITY_KIND_MEMSET:
                return sizeof(CUpti_ActivityMemset4);
            default:
                return sizeof(CUpti_ActivityMarker2);
        }
    }

  private:
    static std::uint32_t thread() { return std::uint32_t(syscall(SYS_gettid)); }
    static std::uint32_t correlation() { return calls_of_thread.empty() ? 0 : calls_of_thread.back().correlation; }
    void call_back(std::uint32_t call, const void* parameters, CUpti_ApiCallbackSite site) {
        if (!callbacks.contains({CUPTI_CB_DOMAIN_DRIVER_API, call})) return;
        CUpti_CallbackData data{};
        data.callbackSite = site, data.functionParams = parameters, data.correlationId = correlation(),
        data.correlationData = &calls_of_thread.back().data;
        callback(user, CUPTI_CB_DOMAIN_DRIVER_API, call, &data);
    }
    void marker(std::uint32_t id, CUpti_ActivityFlag flag, const char* name) {
        CUpti_ActivityMarker2 record{};
        record.kind = CUPTI_ACTIVITY_KIND_MARKER, record.flags = flag, record.timestamp = now(), record.id = id,
        record.name = name ? kept(name) : nullptr;
        record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD, record.objectId.pt.processId = std::uint32_t(getpid()),
        record.objectId.pt.threadId = thread();
        add(record);
    }
    template <class Record>
    void add(const Record& record) {
        const std::lock_guard lock(mutex_);
        if (record.kind == CUPTI_ACTIVITY_KIND_DRIVER || kinds.contains(record.kind))
            records_.emplace_back(reinterpret_cast<const char*>(&record), sizeof record);
    }
    const char* kept(const std::string& name) {
        const std::lock_guard lock(mutex_);
        return names_.insert(name).first->c_str();
    }

    std::mutex mutex_, flushing_;
    std::deque<std::string> records_;
    std::set<std::string> names_;
    std::vector<std::uint32_t> open_;
    std::uint32_t correlations_ = 0, markers_ = 0;
    std::uint64_t device_free_ = 0;
};

/// Never destroyed: what ends last may still flush.
inline Activities& activities() {
    static auto* all = new Activities;
    return *all;
}

#define FAKE_WATCHED_CALLS(X)                                                                                                 \
    X(cuLaunchKernelEx)                                                                                                       \
    X(cuGraphLaunch) X(cuGraphInstantiateWithFlags) X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemsetD8Async) X(cuMemAlloc_v2) \
        X(cuStreamSynchronize) X(cuProfilerStart) X(cuProfilerStop)

inline const char* name_of(std::uint32_t call) {
    switch (call) {
#define FAKE_CASE(NAME)                  \
    case CUPTI_DRIVER_TRACE_CBID_##NAME: \
        return #NAME;
        FAKE_WATCHED_CALLS(FAKE_CASE)
#undef FAKE_CASE
        default:
            return nullptr;
    }
}

}  // namespace fake

extern "C" {

CUptiResult cuptiGetTimestamp(std::uint64_t* time) { return *time = fake::now(), CUPTI_SUCCESS; }
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* user) {
    if (const char* status = std::getenv("FAKE_Subscribe")) return CUptiResult(std::atoi(status));
    fake::activities().callback = callback, fake::activities().user = user;
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&fake::activities());
    // The driver of this process, which is loaded, since it loaded the collector.
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    auto* listen = driver ? reinterpret_cast<void (*)(fake::Listener*)>(dlsym(driver, "fake_listen")) : nullptr;
    return listen ? listen(&fake::activities()), CUPTI_SUCCESS : CUPTI_ERROR_NOT_INITIALIZED;
}
CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    if (enable) fake::activities().callbacks.insert({domain, id});
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, std::uint32_t id, const char** name) {
    return *name = fake::name_of(id), *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id) { return *id = std::uint64_t(node), CUPTI_SUCCESS; }
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
    return fake::activities().request = request, fake::activities().complete = complete, CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return fake::activities().kinds.insert(kind), CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, std::uint8_t enable) {
    if (enable) fake::activities().calls.insert(id);
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t) { return fake::activities().flush(), CUPTI_SUCCESS; }
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
    std::uint8_t* next = *record ? reinterpret_cast<std::uint8_t*>(*record) + fake::Activities::size_of(**record) : buffer;
    if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    return *record = reinterpret_cast<CUpti_Activity*>(next), CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
    static bool said = false;
    const char* lost = std::getenv("FAKE_RECORDS_DROPPED");
    *dropped = lost && !said ? std::strtoul(lost, nullptr, 10) : 0;
    return said = true, CUPTI_SUCCESS;
}

/// NVTX hands its table over at its first use.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(fake::NvtxExportTable table_of) {
    const auto* callbacks = static_cast<const fake::NvtxCallbacks*>(table_of(fake::nvtx_callbacks));
    void*** table = nullptr;
    unsigned entries = 0;
    if (!callbacks || !callbacks->module_table(fake::nvtx_core, &table, &entries) || entries <= unsigned(fake::nvtx_pop)) return 0;
    static int (*const push)(const char*) = [](const char* name) { return fake::activities().push(name), 0; };
    static int (*const pop)() = []() { return fake::activities().pop(), 0; };
    *table[fake::nvtx_push] = reinterpret_cast<void*>(push), *table[fake::nvtx_pop] = reinterpret_cast<void*>(pop);
    return 1;
}

}  // extern "C"
