// A CUDA driver without a GPU, for tests of what measures: memory is the host's, kernels do nothing but what
// the checks need, and time is a counter that every launch moves on. A GEMM marks its C as written; the
// reference calls wrong what bears no mark. Environment variables change that:
//   FAKE_WRONG_TILE=128x256x  GEMM kernels of that tile leave C unmarked
//   FAKE_WRONG_FROM=10        GEMM kernels take the mark away from the tenth launch on, all kernels' launches counted
//   FAKE_WRONG_EXPRESSION=1   the reference of expressions calls an element of every output wrong
//   FAKE_WRONG_UNIT=1         who judges short kernels calls an element wrong of the kind of that number
//   FAKE_SLOW_TILE=128x256x   GEMM kernels of that tile are the slowest
//   FAKE_ENDLESS=NAME         once that kernel was launched nothing ends any more
//   FAKE_FAULT=NAME           once that kernel was launched every wait for the device fails
//   FAKE_MEMORY=BYTES         of the whole device; more is out of memory
// As the driver does, cuInit() loads CUDA_INJECTION64_PATH; who listens (listener.hpp) hears of launches, graphs and copies.
#include <cuda.h>
#include <cupti_driver_cbid.h>
#include <dlfcn.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/ptx/tensor_map.hpp"
#ifdef FAKE_HAS_GEMM
#include "kernels/gemm/gemm_arguments.hpp"
#include "kernels/gemm/ladder/ladder_config.hpp"
#include "kernels/gemm/sm80_few_gemm_arguments.hpp"
#include "kernels/gemm/sm80_gemm_arguments.hpp"
#endif
#include "kernels/layer/reference_arguments.hpp"
#include "kernels/measure/arguments.hpp"
#include "kernels/measure/expression_arguments.hpp"
#include "kernels/measure/unit_arguments.hpp"
#include "kernels/probe/arguments.hpp"
#include "rooftile/measure/tensor_memory.hpp"
#include "tests/fake/listener.hpp"

namespace {

constexpr unsigned short mark = 0x1234;

struct FakeLibrary;
struct FakeKernel {
    std::string name;
    double us;
    FakeLibrary* library;
};
struct FakeLibrary {
    std::map<std::string, FakeKernel> kernels;
};
struct FakeStream {
    bool capturing = false;
    double recorded_us = 0;
    size_t nodes = 0;
    std::vector<unsigned short*> marks;  ///< what its launches write
    std::vector<FakeLibrary*> libraries{};  ///< whose code its launches run
    std::vector<std::shared_ptr<void>> objects{};  ///< what it keeps
    unsigned long long capture = 0;
    std::vector<std::shared_ptr<fake::KernelRun>> runs{};  ///< what was captured, for who listens
    unsigned graph = 0;
};

fake::Listener* listener = nullptr;

/// A call of the driver, for who listens. `result` is what it returns.
class Heard {
  public:
    explicit Heard(std::uint32_t call, const void* parameters = nullptr) : call_(call), parameters_(parameters) {
        if (listener) listener->enter(call_, parameters_);
    }
    ~Heard() {
        if (listener) listener->leave(call_, parameters_, result);
    }
    Heard(const Heard&) = delete;
    CUresult result = CUDA_SUCCESS;

  private:
    std::uint32_t call_;
    const void* parameters_;
};

void hear_copy(unsigned kind, size_t bytes) {
    if (listener) listener->copy(kind, bytes);
}

std::set<FakeLibrary*> loaded_libraries;
std::atomic<unsigned long long> captures = 0;

double clock_us = 0;  // of the device; one thread launches
size_t used = 0;
std::map<CUdeviceptr, size_t> blocks;
std::mutex memory_mutex;

size_t total_memory() {
    const char* text = std::getenv("FAKE_MEMORY");
    return text ? std::strtoull(text, nullptr, 10) : size_t(1) << 31;
}

void advance(CUstream stream, double us) {
    auto* s = reinterpret_cast<FakeStream*>(stream);
    if (s && s->capturing) s->recorded_us += us, ++s->nodes;
    else clock_us += us;
}

int attribute(CUdevice_attribute which) {
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            return 132;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            return 9;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            return 0;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            return 232448;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            return 233472;
        case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
            return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
            return 65536;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            return 2048;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
            return 32;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
            return 32;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
            return 1980000;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
            return 1 << 20;  // small, so that few bytes rotate
        default:
            return 0;
    }
}

/// Whether a GEMM kernel is of the tile that an environment variable names: "128x256x".
bool is_of_tile(const std::string& name, const char* variable) {
    const char* tile = std::getenv(variable);
    if (!tile) return false;
    // The mangled configuration begins with its tile: MatrixConfigELi128ELi256E.
    std::string wanted = "MatrixConfigE";
    for (const char* c = tile; *c;) {
        wanted += "Li" + std::to_string(std::strtol(c, const_cast<char**>(&c), 10)) + "E";
        if (*c == 'x') ++c;
    }
    wanted.pop_back();
    return name.find(wanted) != std::string::npos;
}

/// GEMM kernels differ by up to 10 %, so that one is the fastest.
double duration(const std::string& name) {
    if (is_of_tile(name, "FAKE_SLOW_TILE")) return 24;
    return 20.0 + double(std::hash<std::string>()(name) % 2000) / 1000.0;
}

/// What a launch writes to its C.
unsigned short written_now() {
    static long launched = 0;
    const char* from = std::getenv("FAKE_WRONG_FROM");
    return ++launched >= (from ? std::strtol(from, nullptr, 10) : LONG_MAX) ? 0 : mark;
}

#ifdef FAKE_HAS_GEMM
/// The C that a GEMM kernel writes; null for every other kernel. Tensor maps, if any, stand before the arguments.
unsigned short* written_by(const std::string& name, void** arguments) {
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    if (has("sm90_gemm"))
        return static_cast<unsigned short*>(static_cast<const rooftile::GemmArguments*>(arguments[3])->c);
    if (has("sm80_gemm"))
        return static_cast<unsigned short*>(static_cast<const rooftile::Sm80GemmArguments*>(arguments[0])->c);
    if (has("sm80_few_gemm"))
        return static_cast<unsigned short*>(static_cast<const rooftile::Sm80FewArguments*>(arguments[0])->c);
    if (!has("8rooftile6ladder")) return nullptr;
    const int maps = has("9wgmma_tma") ? 2 : has("9pipelined") || has("4full") ? 3 : 0;
    return static_cast<const rooftile::LadderArguments*>(arguments[maps])->c;
}
#endif

/// What the kernel that an environment variable names left of the device: it never ends, or it broke.
bool hangs = false, broken = false;
void begin(const std::string& name) {
    const auto is_of = [&](const char* variable) {
        const char* text = std::getenv(variable);
        return text && name == text;
    };
    hangs |= is_of("FAKE_ENDLESS");
    broken |= is_of("FAKE_FAULT");
}
CUresult state_of_device() { return broken ? CUDA_ERROR_ILLEGAL_ADDRESS : hangs ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS; }

/// One sum a set, of its tensor's first word alone: that is where a mark stands.
void add_fingerprints(unsigned sets, void** arguments) {
    const auto* data = *static_cast<const unsigned short* const*>(arguments[0]) + rooftile::fingerprint_margin / 2;
    const auto pitch = *static_cast<const long long*>(arguments[3]);
    auto* sums = *static_cast<unsigned long long**>(arguments[4]);
    for (unsigned set = 0; set < sets; ++set) sums[set] += data[2 * set * pitch];
}

void count_unequal(void** arguments) {
    auto* sums = *static_cast<unsigned long long**>(arguments[0]);
    const int count = *static_cast<const int*>(arguments[1]);
    const auto expected = *static_cast<const unsigned long long*>(arguments[2]);
    for (int i = 0; i < count; ++i) {
        **static_cast<unsigned long long**>(arguments[3]) += sums[i] != expected;
        sums[i] = 0;
    }
}

/// A user's kernel: write_down(char* out, const void* p, int, unsigned char, float, double, long long, struct of 12 B) puts what follows its
/// first argument there, each at the next 16 bytes.
void write_down(void** arguments) {
    constexpr size_t sizes[] = {8, 4, 1, 4, 8, 8, 12};
    char* out = *static_cast<char**>(arguments[0]);
    for (size_t i = 0; out && i < std::size(sizes); ++i) std::memcpy(out + 16 * i, arguments[i + 1], sizes[i]);
}

/// All elements were judged, and are right but for the kind that an environment variable names: "LNS_8UnitKindE1E" of a name.
void judge_units(const std::string& name, void** arguments) {
    const auto is_of = [&](int kind) { return name.find("UnitKindE" + std::to_string(kind) + "E") != std::string::npos; };
    const auto rows = static_cast<unsigned long long>(*static_cast<const long long*>(arguments[3]));
    const bool one_a_row = is_of(int(rooftile::UnitKind::gemv));
    const char* wrong = std::getenv("FAKE_WRONG_UNIT");
    rooftile::UnitVerdict& verdict = **static_cast<rooftile::UnitVerdict**>(arguments[4]);
    verdict.checked += one_a_row ? rows : rows * rooftile::unit_columns;
    const bool fails = wrong && is_of(int(std::strtol(wrong, nullptr, 10)));
    verdict.wrong += fails, verdict.worst = fails ? 9.0f : 0.5f;
}

/// A layer's rows were judged, and are right.
void judge_layer(void** arguments) {
    **static_cast<rooftile::LayerSeen**>(arguments[3]) = {1e-3, 1e-2, 1, 1e6, 0};
}

/// Probes of device memory write down when they began and ended: 100 us, or twice that where every access is a block of its own.
void record_probe(const std::string& name, void** arguments) {
    const bool blocks = name.find("dram_blocks") != std::string::npos;
    const bool apart = blocks && *static_cast<const int*>(arguments[2]) != *static_cast<const int*>(arguments[3]);
    rooftile::ProbeRecord& record = **static_cast<rooftile::ProbeRecord**>(arguments[blocks ? 5 : 3]);
    record = {1000, 181000, 1000, apart ? 201000u : 101000u, 0, 0, 0};
}

void run_kernel(const FakeKernel& kernel, [[maybe_unused]] FakeStream* stream, unsigned ctas, unsigned rows,
                void** arguments) {
    const auto is = [&](const char* part) { return kernel.name.find(part) != std::string::npos; };
    if (kernel.name == "write_down") return stream && stream->capturing ? void() : write_down(arguments);
    if (is("8rooftile11fingerprint")) return add_fingerprints(rows, arguments);
    if (is("8rooftile13count_unequal")) return count_unequal(arguments);
    if (is("8rooftile8dram_mix") || is("8rooftile10dram_split") || is("8rooftile11dram_blocks")) return record_probe(kernel.name, arguments);
    if (is("8rooftile11layer_judge")) return judge_layer(arguments);
    if (is("8rooftile11judge_units")) return judge_units(kernel.name, arguments);
    if (is("8rooftile14judge_elements") && std::getenv("FAKE_WRONG_EXPRESSION")) {
        const auto* p = static_cast<const rooftile::JudgeArguments*>(arguments[0]);
        for (int i = 0; i < p->results; ++i)
            (*static_cast<rooftile::JudgeRecord**>(arguments[1]))[unsigned(i) * ctas] = {1, 0, 9, 0, 1, 0.1, 0};
    }
#ifdef FAKE_HAS_GEMM
    if (auto* c = written_by(kernel.name, arguments)) {
        if (is_of_tile(kernel.name, "FAKE_WRONG_TILE")) return;
        if (stream && stream->capturing) stream->marks.push_back(c);
        else *c = written_now();
        return;
    }
#endif
    if (kernel.name.find("verify") != std::string::npos) {
        const auto* p = static_cast<const rooftile::VerifyArguments*>(arguments[0]);
        auto* records = *static_cast<rooftile::VerifyRecord**>(arguments[1]);
        for (int i = 0; i < p->results; ++i) {
            const bool right = *static_cast<const unsigned short*>(p->c[i]) == mark;
            rooftile::VerifyRecord& record = records[unsigned(i) * ctas];
            record.wrong = right ? 0 : 1;
            record.worst = {right ? 0.5 : 9.0, 1, 0.1, 0, 0, *static_cast<const unsigned short*>(p->c[i]), mark};
        }
    }
}

}  // namespace

extern "C" {

/// For the fake cuBLASLt and CUPTI beside this one.
void fake_launch(CUstream stream, double us) { advance(stream, us); }
double fake_clock_us() { return clock_us; }

void fake_listen(fake::Listener* who) { listener = who; }

CUresult cuInit(unsigned) {
    static bool injected = false;
    const char* path = std::getenv("CUDA_INJECTION64_PATH");
    if (std::exchange(injected, true) || !path || !*path) return CUDA_SUCCESS;
    void* library = dlopen(path, RTLD_NOW);
    auto* initialize = library ? reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection")) : nullptr;
    return initialize && initialize() == 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuProfilerStart() { return Heard(CUPTI_DRIVER_TRACE_CBID_cuProfilerStart).result; }
CUresult cuProfilerStop() { return Heard(CUPTI_DRIVER_TRACE_CBID_cuProfilerStop).result; }
/// Of a user's kernel, whose parameters this file knows.
CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t* offset, size_t* size) {
    constexpr size_t places[][2] = {{0, 8}, {8, 8}, {16, 4}, {20, 1}, {24, 4}, {32, 8}, {40, 8}, {48, 12}};
    if (reinterpret_cast<FakeKernel*>(f)->name != "write_down" || index >= std::size(places)) return CUDA_ERROR_INVALID_VALUE;
    return *offset = places[index][0], *size = places[index][1], CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* v) { return *v = 13000, CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult e, const char** s) {
    return *s = e == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_TEST",
           CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** s) { return *s = "as planned", CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int* n) { return *n = 1, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* d, int) { return *d = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* s, int n, CUdevice) {
    return std::strncpy(s, "NVIDIA H200", size_t(n)), CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute which, CUdevice) {
    return *v = attribute(which), CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) { return *bytes = total_memory(), CUDA_SUCCESS; }
CUresult cuDeviceGetPCIBusId(char* s, int n, CUdevice) {
    return std::strncpy(s, "0000:00:00.0", size_t(n)), CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice) {
    return *c = reinterpret_cast<CUcontext>(16), CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
static thread_local CUcontext current = nullptr;
CUresult cuCtxPushCurrent(CUcontext c) { return current = c, CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext* c) { return *c = current, current = nullptr, CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* c) { return *c = current, CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* d) { return *d = 0, current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuCtxGetId(CUcontext, unsigned long long* id) { return *id = 1, CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return state_of_device(); }
CUresult cuCtxResetPersistingL2Cache() { return CUDA_SUCCESS; }

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total) {
    const std::lock_guard lock(memory_mutex);
    *total = total_memory();
    *free_bytes = *total - used;
    return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* p, size_t bytes) {
    Heard heard(CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);
    const std::lock_guard lock(memory_mutex);
    if (used + bytes > total_memory()) return heard.result = CUDA_ERROR_OUT_OF_MEMORY;
    *p = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    used += blocks[*p] = bytes;
    return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr p) {
    const std::lock_guard lock(memory_mutex);
    used -= blocks[p];
    blocks.erase(p);
    std::free(reinterpret_cast<void*>(p));
    return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** p, size_t bytes, unsigned) { return *p = std::calloc(1, bytes), CUDA_SUCCESS; }
CUresult cuMemFreeHost(void* p) { return std::free(p), CUDA_SUCCESS; }
CUresult cuMemHostGetDevicePointer(CUdeviceptr* d, void* p, unsigned) {
    return *d = reinterpret_cast<CUdeviceptr>(p), CUDA_SUCCESS;
}
static void* host(CUdeviceptr p) { return reinterpret_cast<void*>(p); }
CUresult cuMemcpyHtoD(CUdeviceptr d, const void* s, size_t n) {
    const Heard heard(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2);
    hear_copy(1, n);
    return std::memcpy(host(d), s, n), CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void* d, CUdeviceptr s, size_t n) {
    const Heard heard(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2);
    hear_copy(2, n);
    return std::memcpy(d, host(s), n), CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr d, const void* s, size_t n, CUstream) { return cuMemcpyHtoD(d, s, n); }
CUresult cuMemcpyDtoHAsync(void* d, CUdeviceptr s, size_t n, CUstream) { return cuMemcpyDtoH(d, s, n); }
CUresult cuMemcpyDtoDAsync(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream stream) {
    advance(stream, 50);  // a baseline, too: a copy in no time would be no roof
    return std::memmove(host(d), host(s), n), CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream) {
    const Heard heard(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async);
    hear_copy(0, n);
    return std::memset(host(p), v, n), CUDA_SUCCESS;
}
CUresult cuMemsetD32Async(CUdeviceptr p, unsigned v, size_t n, CUstream) {
    return std::fill_n(static_cast<unsigned*>(host(p)), n, v), CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* s, unsigned) {
    return *s = reinterpret_cast<CUstream>(new FakeStream), CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream s) { return delete reinterpret_cast<FakeStream*>(s), CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream) {
    Heard heard(CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);
    return heard.result = state_of_device();
}
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
static bool capturing(CUstream stream) {
    const bool named = reinterpret_cast<std::uintptr_t>(stream) < 4096;  // the legacy stream and its like
    return !named && reinterpret_cast<FakeStream*>(stream)->capturing;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* s) {
    *s = capturing(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}
// The graph that is being made is its stream, until the capture ends.
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* s, cuuint64_t* id, CUgraph* graph, const CUgraphNode**,
                                const CUgraphEdgeData**, size_t*) {
    cuStreamIsCapturing(stream, s);
    if (!capturing(stream)) return CUDA_SUCCESS;
    *id = reinterpret_cast<FakeStream*>(stream)->capture, *graph = reinterpret_cast<CUgraph>(stream);
    return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    static thread_local CUstreamCaptureMode here = CU_STREAM_CAPTURE_MODE_GLOBAL;
    return std::swap(*mode, here), CUDA_SUCCESS;
}
/// What holds an object, of which the last one gone has it destroyed: in another thread, as the driver does.
CUresult cuUserObjectCreate(CUuserObject* object, void* p, CUhostFn destroy, unsigned, unsigned) {
    auto* made = new std::shared_ptr<void>(p, [destroy](void* gone) { std::thread(destroy, gone).join(); });
    return *object = reinterpret_cast<CUuserObject>(made), CUDA_SUCCESS;
}
CUresult cuUserObjectRelease(CUuserObject object, unsigned) {
    return delete reinterpret_cast<std::shared_ptr<void>*>(object), CUDA_SUCCESS;
}
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned, unsigned) {
    reinterpret_cast<FakeStream*>(graph)->objects.push_back(*reinterpret_cast<std::shared_ptr<void>*>(object));
    return cuUserObjectRelease(object, 1);  // CU_GRAPH_USER_OBJECT_MOVE
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
    *reinterpret_cast<FakeStream*>(stream) = {true, 0, 0, {}, {}, {}, ++captures, {}, 0};
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    auto* s = reinterpret_cast<FakeStream*>(stream);
    *graph = reinterpret_cast<CUgraph>(new FakeStream(*s));
    *s = {};
    return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph g, CUgraphNode*, size_t* n) {
    return *n = reinterpret_cast<FakeStream*>(g)->nodes, CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* e, CUgraph g, unsigned long long) {
    const Heard heard(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags);
    auto* made = new FakeStream(*reinterpret_cast<FakeStream*>(g));
    static unsigned graphs = 0;
    made->graph = ++graphs;
    for (auto& run : made->runs) {  // its nodes are copies
        const auto original = std::exchange(run, std::make_shared<fake::KernelRun>(*run));
        run->node = run.get(), run->graph = made->graph;
        if (listener) listener->node(run.get(), original.get());
    }
    return *e = reinterpret_cast<CUgraphExec>(made), CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec e, CUstream) {
    const Heard heard(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
    const auto* graph = reinterpret_cast<FakeStream*>(e);
    for (FakeLibrary* library : graph->libraries)
        if (!loaded_libraries.contains(library)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    clock_us += graph->recorded_us;
    for (unsigned short* c : graph->marks) *c = written_now();
    for (const auto& run : graph->runs)
        if (listener) listener->kernel(*run);
    return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph g) { return delete reinterpret_cast<FakeStream*>(g), CUDA_SUCCESS; }
CUresult cuGraphExecDestroy(CUgraphExec g) { return delete reinterpret_cast<FakeStream*>(g), CUDA_SUCCESS; }

CUresult cuEventCreate(CUevent* e, unsigned) {
    return *e = reinterpret_cast<CUevent>(new double(0)), CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent e) { return delete reinterpret_cast<double*>(e), CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent e, CUstream) { return *reinterpret_cast<double*>(e) = clock_us, CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent) { return state_of_device(); }
CUresult cuEventElapsedTime(float* ms, CUevent a, CUevent b) {
    *ms = float((*reinterpret_cast<double*>(b) - *reinterpret_cast<double*>(a)) * 1e-3);
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* l, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*,
                           void**, unsigned) {
    const std::lock_guard lock(memory_mutex);
    auto* made = new FakeLibrary;
    loaded_libraries.insert(made);
    return *l = reinterpret_cast<CUlibrary>(made), CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary l) {
    const std::lock_guard lock(memory_mutex);
    loaded_libraries.erase(reinterpret_cast<FakeLibrary*>(l));  // its memory stays, so that no other one has its address
    return CUDA_SUCCESS;
}
/// For tests: how many there are.
size_t fake_libraries() { return loaded_libraries.size(); }
CUresult cuLibraryGetKernel(CUkernel* k, CUlibrary l, const char* name) {
    FakeKernel& kernel = reinterpret_cast<FakeLibrary*>(l)->kernels[name];
    kernel = {name, duration(name), reinterpret_cast<FakeLibrary*>(l)};
    return *k = reinterpret_cast<CUkernel>(&kernel), CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* f, CUkernel k) {
    return *f = reinterpret_cast<CUfunction>(k), CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* v, CUfunction_attribute, CUfunction) { return *v = 0, CUDA_SUCCESS; }
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, CUfunction, int, size_t) {
    return *n = 2, CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int* n, CUfunction, const CUlaunchConfig*) {
    return *n = 66, CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** arguments, void** extra) {
    const fake::LaunchParameters parameters{c, f, arguments, extra};
    const Heard heard(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &parameters);
    const FakeKernel& kernel = *reinterpret_cast<FakeKernel*>(f);
    advance(c->hStream, kernel.us);
    if (listener) {
        fake::KernelRun run{kernel.name, kernel.us, {c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes};
        if (capturing(c->hStream)) {
            auto& runs = reinterpret_cast<FakeStream*>(c->hStream)->runs;
            runs.push_back(std::make_shared<fake::KernelRun>(run));
            listener->node(runs.back().get(), nullptr);
        } else listener->kernel(run);
    }
    if (capturing(c->hStream)) reinterpret_cast<FakeStream*>(c->hStream)->libraries.push_back(kernel.library);
    begin(kernel.name);
    run_kernel(kernel, reinterpret_cast<FakeStream*>(c->hStream), c->gridDimX, c->gridDimY, arguments);
    return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                                CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
    return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeIm2col(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const int*, const int*,
                                 cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill) {
    return CUDA_SUCCESS;
}

}  // extern "C"
