// Memory, streams, events, copies and graphs of driver.hpp.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "rooftile/runtime/driver_table.hpp"

namespace rooftile {
namespace {

/// Runs `release` with the driver's table where there is one; failures are not reported, since
/// destructors have nobody to tell.
template <class F>
void quietly(F release) {
    const DriverTable* driver = driver_table_if_usable();
    if (!driver) return;
    const WhileOthersCapture relaxed(*driver);
    release(*driver);
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    CUdeviceptr address = 0;
    CUresult result = driver_table().cuMemAlloc(&address, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        std::size_t free = 0, total = 0;
        driver_table().cuMemGetInfo(&free, &total);
        throw Error(
            ExitCode::gpu_failed,
            fmt::format("cuMemAlloc of {} B failed: {} of {} B are free on the GPU", bytes, free, total));
    }
    check(result, fmt::format("cuMemAlloc of {} B", bytes));
    address_ = address;
}

DeviceBuffer DeviceBuffer::owning(DevicePointer address) {
    DeviceBuffer buffer;
    buffer.address_ = address;
    return buffer;
}

DeviceBuffer::~DeviceBuffer() {
    if (address_) quietly([&](const DriverTable& driver) { driver.cuMemFree(address_); });
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

PinnedBuffer::PinnedBuffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    const DriverTable& driver = driver_table();
    check(driver.cuMemHostAlloc(&data_, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
          fmt::format("cuMemHostAlloc of {} B", bytes));
    CUdeviceptr address = 0;
    CUresult result = driver.cuMemHostGetDevicePointer(&address, data_, 0);
    if (result != CUDA_SUCCESS) driver.cuMemFreeHost(data_);
    check(result, "cuMemHostGetDevicePointer");
    address_ = address;
}

PinnedBuffer::~PinnedBuffer() {
    if (data_) quietly([&](const DriverTable& driver) { driver.cuMemFreeHost(data_); });
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

StreamOwner::StreamOwner() {
    check(driver_table().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

StreamOwner::~StreamOwner() {
    if (stream_) quietly([&](const DriverTable& driver) { driver.cuStreamDestroy(stream_); });
}

StreamOwner::StreamOwner(StreamOwner&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}

StreamOwner& StreamOwner::operator=(StreamOwner&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
}

void StreamOwner::synchronize() const { rooftile::synchronize(stream_); }

void synchronize(Stream stream) { check(driver_table().cuStreamSynchronize(stream), "cuStreamSynchronize"); }

Event::Event(bool timing) {
    check(driver_table().cuEventCreate(&event_, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
          "cuEventCreate");
}

Event::~Event() {
    if (event_) quietly([&](const DriverTable& driver) { driver.cuEventDestroy(event_); });
}

Event::Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
}

void Event::record(Stream stream) const {
    check(driver_table().cuEventRecord(event_, stream), "cuEventRecord");
}
void Event::synchronize() const { check(driver_table().cuEventSynchronize(event_), "cuEventSynchronize"); }

bool Event::finished() const {
    CUresult result = driver_table().cuEventQuery(event_);
    if (result == CUDA_ERROR_NOT_READY) return false;
    check(result, "cuEventQuery");
    return true;
}

double elapsed_us(const Event& start, const Event& stop) {
    float milliseconds = 0;
    check(driver_table().cuEventElapsedTime(&milliseconds, start.get(), stop.get()), "cuEventElapsedTime");
    return double(milliseconds) * 1e3;
}

void wait(Stream stream, const Event& event) {
    check(driver_table().cuStreamWaitEvent(stream, event.get(), CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent");
}

void copy_to_device(DevicePointer to, const void* from, std::size_t bytes) {
    if (bytes)
        check(driver_table().cuMemcpyHtoD(to, from, bytes), fmt::format("cuMemcpyHtoD of {} B", bytes));
}

void copy_to_device(DevicePointer to, const void* from, std::size_t bytes, Stream stream) {
    if (bytes)
        check(driver_table().cuMemcpyHtoDAsync(to, from, bytes, stream),
              fmt::format("cuMemcpyHtoDAsync of {} B", bytes));
}

void copy_to_host(void* to, DevicePointer from, std::size_t bytes) {
    if (bytes)
        check(driver_table().cuMemcpyDtoH(to, from, bytes), fmt::format("cuMemcpyDtoH of {} B", bytes));
}

void copy_to_host(void* to, DevicePointer from, std::size_t bytes, Stream stream) {
    if (bytes)
        check(driver_table().cuMemcpyDtoHAsync(to, from, bytes, stream),
              fmt::format("cuMemcpyDtoHAsync of {} B", bytes));
}

void copy_on_device(DevicePointer to, DevicePointer from, std::size_t bytes, Stream stream) {
    if (bytes)
        check(driver_table().cuMemcpyDtoDAsync(to, from, bytes, stream),
              fmt::format("cuMemcpyDtoDAsync of {} B", bytes));
}

void fill_bytes(DevicePointer to, std::uint8_t value, std::size_t bytes, Stream stream) {
    if (bytes) check(driver_table().cuMemsetD8Async(to, value, bytes, stream), "cuMemsetD8Async");
}

void fill_words(DevicePointer to, std::uint32_t value, std::size_t words, Stream stream) {
    if (words) check(driver_table().cuMemsetD32Async(to, value, words, stream), "cuMemsetD32Async");
}

Graph::~Graph() {
    if (graph_) quietly([&](const DriverTable& driver) { driver.cuGraphExecDestroy(graph_); });
}

Graph::Graph(Graph&& other) noexcept
    : graph_(std::exchange(other.graph_, nullptr)), nodes_(std::exchange(other.nodes_, 0)) {}

Graph& Graph::operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    std::swap(nodes_, other.nodes_);
    return *this;
}

void Graph::launch(Stream stream) const {
    check(driver_table().cuGraphLaunch(graph_, stream), "cuGraphLaunch");
}

bool is_capturing(Stream stream) {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    check(driver_table().cuStreamIsCapturing(stream, &capture), "cuStreamIsCapturing");
    return capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

namespace {

using Kept = std::shared_ptr<const void>;

/// What graphs have let go of: the driver does so in a thread that may not call it.
struct LetGo {
    std::mutex mutex;
    std::vector<Kept> all;
    std::atomic<bool> any = false;
};
LetGo& let_go() {
    static LetGo& out = *new LetGo;  // never destroyed: a graph may outlive every static object
    return out;
}
void on_graph_gone(void* kept) {
    LetGo& here = let_go();
    const std::lock_guard lock(here.mutex);
    here.all.push_back(std::move(*static_cast<Kept*>(kept)));
    here.any = true;
    delete static_cast<Kept*>(kept);
}

}  // namespace

void destroy_what_graphs_let_go() {
    LetGo& here = let_go();
    if (!here.any.load(std::memory_order_relaxed)) return;
    std::vector<Kept> all;
    const std::lock_guard lock(here.mutex);
    all.swap(here.all);
    here.any = false;
}

void keep_for_capture(Stream stream, const Kept& what) {
    const DriverTable& driver = driver_table();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    // It fails of the legacy stream while another one is captured: then the launch itself says so.
    if (driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return destroy_what_graphs_let_go();
    cuuint64_t capture = 0;
    CUgraph graph = nullptr;
    check(driver.cuStreamGetCaptureInfo(stream, &status, &capture, &graph, nullptr, nullptr, nullptr), "cuStreamGetCaptureInfo");
    // A graph keeps a kernel once, however often it is launched. No two captures have one number.
    thread_local cuuint64_t last = 0;
    thread_local std::vector<const void*> kept;
    if (capture != last) kept.clear(), last = capture;
    if (std::find(kept.begin(), kept.end(), what.get()) != kept.end()) return;
    auto* own = new Kept(what);
    CUuserObject object = nullptr;
    const CUresult made = driver.cuUserObjectCreate(&object, own, on_graph_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (made != CUDA_SUCCESS) delete own;
    check(made, "cuUserObjectCreate");
    const CUresult given = driver.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (given != CUDA_SUCCESS) driver.cuUserObjectRelease(object, 1);
    check(given, "cuGraphRetainUserObject");
    kept.push_back(what.get());
}

void begin_capture(Stream stream) {
    check(driver_table().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "cuStreamBeginCapture");
}

Graph end_capture(Stream stream) {
    const DriverTable& driver = driver_table();
    CUgraph recorded = nullptr;
    check(driver.cuStreamEndCapture(stream, &recorded), "cuStreamEndCapture");
    Graph graph;
    CUresult counted = driver.cuGraphGetNodes(recorded, nullptr, &graph.nodes_);
    CUresult made = driver.cuGraphInstantiateWithFlags(&graph.graph_, recorded, 0);
    driver.cuGraphDestroy(recorded);
    check(counted, "cuGraphGetNodes");
    check(made, "cuGraphInstantiateWithFlags");
    return graph;
}

}  // namespace rooftile
