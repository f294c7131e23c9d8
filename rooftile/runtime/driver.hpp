// The CUDA driver, opened at run time: devices, contexts, memory, modules and launches as RAII objects.
//
// No CUDA header is needed to include this. A driver that is missing or too old and a machine without
// a GPU are told apart (exit code no_gpu); every failing call is an Error (gpu_failed) that names the
// function, the driver's error and its meaning. With ROOFTILE_LAUNCH_BLOCKING=1 every launch waits for
// its kernel, so that an error names the kernel that caused it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/types.hpp"
#include "rooftile/error.hpp"

struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUgraphExec_st;
struct CUlib_st;
struct CUstream_st;

namespace rooftile {

struct TensorMap;  // kernels/ptx/tensor_map.hpp

/// A CUDA stream, the same handle as cudaStream_t and CUstream; null is the legacy default stream.
using Stream = CUstream_st*;
/// An address in device memory, the same number as CUdeviceptr.
using DevicePointer = std::uint64_t;

/// What the driver reports about one GPU; 0 where it does not know.
struct DeviceInfo {
    int ordinal = 0;
    std::string name;        ///< "NVIDIA H100 80GB HBM3"
    std::string pci_bus_id;  ///< "0000:1b:00.0"; what NVML finds it by
    int compute_major = 0, compute_minor = 0;
    int sm_count = 0;
    std::int64_t memory_bytes = 0;
    std::int64_t l2_bytes = 0;
    std::int64_t shared_per_cta_bytes = 0;  ///< the most a CTA may opt in to
    std::int64_t shared_per_sm_bytes = 0;
    std::int64_t shared_reserved_bytes = 0;  ///< taken by the system from every CTA
    int registers_per_sm = 0, registers_per_cta = 0;
    int threads_per_sm = 0, threads_per_cta = 0, ctas_per_sm = 0, warp_threads = 0;
    int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;  ///< the highest clocks, not sustained ones

    std::string arch() const { return "sm_" + std::to_string(compute_major * 10 + compute_minor); }
};

/// Why a driver can or cannot be used: what `doctor` prints.
struct DriverStatus {
    enum class Kind { usable, no_library, too_old, no_device, failed };
    Kind kind = Kind::failed;
    std::string message;  ///< one line; what to do where it is not usable
    int version = 0;      ///< the CUDA version it supports, 13000 for 13.0; 0 where unknown
    int devices = 0;
};

/// The process's driver. Opened and initialised once, on first use, by whichever thread comes first.
class Driver {
  public:
    /// Never throws. Costs cuInit on its first call: some 0.1 s where there is a GPU.
    static const DriverStatus& status();
    /// Throws Error(no_gpu) with the status's line where no GPU can be used.
    static const Driver& instance();

    int version() const;       ///< 13000 for CUDA 13.0
    int device_count() const;  ///< at least 1
    /// Throws Error(no_gpu) where there is no such device.
    DeviceInfo device(int ordinal) const;
    /// The raw CUdevice_attribute `which`; for what DeviceInfo leaves out.
    int attribute(int ordinal, int which) const;
    /// Throws Error(no_gpu) unless device `ordinal` is of `arch` ("sm_90"): sm_90a code runs nowhere else.
    void require_arch(int ordinal, std::string_view arch) const;

  private:
    Driver() = default;
};

/// Holds a device's primary context and makes it current on the constructing thread; puts back what
/// was current before. Destroy it on the same thread.
class Context {
  public:
    explicit Context(int device = 0);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    /// Leaves a context that is already current on this thread alone; else as the constructor.
    static std::unique_ptr<Context> current_or_primary(int device = 0);
    int device() const { return device_; }

  private:
    Context(int device, bool owned);
    int device_ = 0;
    bool owned_ = true;
};

/// The context current on this thread, null where there is none (or no driver).
CUctx_st* current_context();
/// The device of the current context; throws Error(bad_request) where none is current.
int current_device();
/// Waits for everything on the current context.
void synchronize();
/// Lets go of L2 lines that were set persisting: a memset does not evict them.
void reset_persisting_l2();
struct MemoryInfo {
    std::int64_t free_bytes, total_bytes;
};
MemoryInfo memory_info();

/// Device memory in the context current at construction; aligned to 256 bytes at least.
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    explicit DeviceBuffer(std::size_t bytes);
    /// Takes over memory that release() gave away.
    static DeviceBuffer owning(DevicePointer address);
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

    void* data() const { return reinterpret_cast<void*>(address_); }
    DevicePointer address() const { return address_; }
    std::size_t bytes() const { return bytes_; }
    /// Gives the memory away: the caller frees it, by owning().
    DevicePointer release() { return std::exchange(address_, 0); }

  private:
    DevicePointer address_ = 0;
    std::size_t bytes_ = 0;
};

/// Page-locked host memory that the device can also address.
class PinnedBuffer {
  public:
    PinnedBuffer() = default;
    explicit PinnedBuffer(std::size_t bytes);
    ~PinnedBuffer();
    PinnedBuffer(PinnedBuffer&& other) noexcept;
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;

    void* data() const { return data_; }
    DevicePointer address() const { return address_; }  ///< the same bytes, as the device sees them
    std::size_t bytes() const { return bytes_; }

  private:
    void* data_ = nullptr;
    DevicePointer address_ = 0;
    std::size_t bytes_ = 0;
};

/// A stream of its own (non-blocking: it does not wait for the legacy default stream).
class StreamOwner {
  public:
    StreamOwner();
    ~StreamOwner();
    StreamOwner(StreamOwner&& other) noexcept;
    StreamOwner& operator=(StreamOwner&& other) noexcept;
    operator Stream() const { return stream_; }
    Stream get() const { return stream_; }
    void synchronize() const;

  private:
    Stream stream_ = nullptr;
};
void synchronize(Stream stream);

/// A point in a stream, with a time stamp of about 0.5 us resolution.
class Event {
  public:
    explicit Event(bool timing = true);
    ~Event();
    Event(Event&& other) noexcept;
    Event& operator=(Event&& other) noexcept;
    void record(Stream stream) const;
    void synchronize() const;
    bool finished() const;
    CUevent_st* get() const { return event_; }

  private:
    CUevent_st* event_ = nullptr;
};
/// Microseconds between two recorded and reached events.
double elapsed_us(const Event& start, const Event& stop);
/// Work put into `stream` from now on waits for `event`.
void wait(Stream stream, const Event& event);

/// Copies and fills. Without a stream they return when done; with one they are asynchronous where the
/// host memory is page-locked.
void copy_to_device(DevicePointer to, const void* from, std::size_t bytes);
void copy_to_device(DevicePointer to, const void* from, std::size_t bytes, Stream stream);
void copy_to_host(void* to, DevicePointer from, std::size_t bytes);
void copy_to_host(void* to, DevicePointer from, std::size_t bytes, Stream stream);
void copy_on_device(DevicePointer to, DevicePointer from, std::size_t bytes, Stream stream);
void fill_bytes(DevicePointer to, std::uint8_t value, std::size_t bytes, Stream stream);
void fill_words(DevicePointer to, std::uint32_t value, std::size_t words, Stream stream);

/// What the driver says about a loaded kernel.
struct FunctionAttributes {
    int registers = 0;    ///< a thread, at launch
    int local_bytes = 0;  ///< a thread
    int static_shared_bytes = 0;
    int max_threads = 0;     ///< a CTA
    int binary_version = 0;  ///< 90 for sm_90
};

/// A kernel in the context that was current when it was looked up. Valid as long as its Module.
class Function {
  public:
    Function() = default;
    Function(CUfunc_st* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
    explicit operator bool() const { return handle_ != nullptr; }
    CUfunc_st* get() const { return handle_; }
    const std::string& name() const { return name_; }

    FunctionAttributes attributes() const;
    /// Allows `bytes` of dynamic shared memory, needed above 48 KiB; Error(gpu_failed) above the limit.
    void allow_shared(int bytes) const;
    /// CTAs of `threads` threads and `shared_bytes` dynamic shared memory that fit on one SM.
    int ctas_per_sm(int threads, int shared_bytes) const;

  private:
    CUfunc_st* handle_ = nullptr;
    std::string name_;
};

/// A cubin loaded from memory. Throws Error(gpu_failed).
class Module {
  public:
    Module() = default;
    explicit Module(std::span<const char> cubin);
    ~Module();
    Module(Module&& other) noexcept;
    Module& operator=(Module&& other) noexcept;
    explicit operator bool() const { return library_ != nullptr; }

    /// The kernel of that lowered name, in the current context, with its code on the device.
    Function function(const std::string& lowered_name) const;

  private:
    CUlib_st* library_ = nullptr;
};

/// Everything about a launch but the arguments.
struct Launch {
    unsigned grid_x = 1, grid_y = 1, grid_z = 1;
    unsigned block_x = 1, block_y = 1, block_z = 1;
    unsigned shared_bytes = 0;
    unsigned cluster_x = 1, cluster_y = 1, cluster_z = 1;
    bool programmatic_dependent = false;  ///< may start before its predecessor in the stream has ended
    bool cooperative = false;             ///< starts where all its CTAs are resident at once, or not at all
    bool caller_waits = false;            ///< not ROOFTILE_LAUNCH_BLOCKING: the caller does, and no longer than it likes
    Stream stream = nullptr;
};

/// `arguments[i]` points at the i-th kernel parameter, of exactly that parameter's type.
void launch_raw(const Function& function, const Launch& launch, void* const* arguments);

/// Each argument must have exactly the type of its kernel parameter (device pointers as DevicePointer or T*).
template <class... Arguments>
void launch(const Function& function, const Launch& configuration, const Arguments&... arguments) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
    launch_raw(function, configuration, pointers);
}

/// Of a kernel's argument: throws RequestError, one line, where it is null or not aligned to so many bytes.
void check_pointer(std::string_view name, const void* pointer, int alignment);

/// Clusters of that launch which can be resident at once on the whole device.
int active_clusters(const Function& function, const Launch& launch);

/// A matrix for TMA, element (o, i) at base + o * outer_stride_bytes + i * size; or one of many, which one or two more axes tell apart.
struct TensorMapRequest {
    Type type = Type::bf16;
    DevicePointer base = 0;               ///< 16-byte aligned
    std::int64_t inner = 0, outer = 0;    ///< extents in elements; inner is contiguous
    std::int64_t outer_stride_bytes = 0;  ///< a multiple of 16, below 2^40
    int box_inner = 0, box_outer = 0;     ///< elements; box_inner * size <= swizzle span, box_outer <= 256
    int swizzle_bytes = 128;              ///< 0, 32, 64 or 128
    int l2_promotion_bytes = 128;         ///< 0, 64, 128 or 256
    std::int64_t matrices[2] = {0, 0};    ///< along the third and the fourth axis; a box has one. 0: there is no such axis
    std::int64_t matrix_stride_bytes[2] = {0, 0};  ///< from one to the next; multiples of 16, below 2^40
};
/// Needs a driver but no context. What lies outside the extents reads as zero and is not written.
void encode(TensorMap& map, const TensorMapRequest& request);

/// What was captured from a stream, ready to be launched again.
class Graph {
  public:
    Graph() = default;
    ~Graph();
    Graph(Graph&& other) noexcept;
    Graph& operator=(Graph&& other) noexcept;
    void launch(Stream stream) const;
    std::size_t nodes() const { return nodes_; }

  private:
    friend Graph end_capture(Stream stream);
    CUgraphExec_st* graph_ = nullptr;
    std::size_t nodes_ = 0;
};
/// Until end_capture, work put into `stream` (not the legacy default stream) is recorded instead of run.
void begin_capture(Stream stream);
bool is_capturing(Stream stream);
Graph end_capture(Stream stream);

/// Where `stream` is being captured: the graph keeps `what` alive, and so does whatever is instantiated from it. Throws
/// Error(gpu_failed).
void keep_for_capture(Stream stream, const std::shared_ptr<const void>& what);
/// Destroys what graphs that are gone had kept; launches do it by themselves.
void destroy_what_graphs_let_go();

}  // namespace rooftile
