// Recordings made in memory, as the collector writes them: what a test does not say has a usual value.
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/profile/recorded.hpp"
#include "rooftile/profile/recording.hpp"

namespace rooftile {

class RecordingWriter {
  public:
    RecordingWriter() : bytes_(recording::magic, sizeof recording::magic) {}

    /// A kernel that a call asked for, or a graph.
    struct KernelRun {
        std::uint64_t start, end;
        std::uint32_t correlation = 0;
        std::string name = "kernel";
        std::uint32_t device = 0, stream = 7, graph = 0;
        std::uint64_t node = 0;
        std::array<std::int32_t, 3> grid{132, 1, 1}, block{128, 1, 1}, cluster{0, 0, 0};
        std::uint32_t registers = 32, static_shared = 0, dynamic_shared = 0, local = 0;
    };

    std::uint32_t text(std::string_view text) {
        put(recording::Kind::text, recording::Text{{}, ++texts_, std::uint32_t(text.size())}, text);
        return texts_;
    }
    void kernel(const KernelRun& k) {
        put(recording::Kind::kernel, recording::Kernel{{},
                                                       k.start,
                                                       k.end,
                                                       k.node,
                                                       text(k.name),
                                                       k.device,
                                                       1,
                                                       k.stream,
                                                       k.correlation,
                                                       k.graph,
                                                       {k.grid[0], k.grid[1], k.grid[2]},
                                                       {k.block[0], k.block[1], k.block[2]},
                                                       {k.cluster[0], k.cluster[1], k.cluster[2]},
                                                       k.registers,
                                                       k.static_shared,
                                                       k.dynamic_shared,
                                                       k.local,
                                                       0,
                                                       0});
    }
    /// `what`: 1 HtoD, 2 DtoH, 0 a memset.
    void copy(std::uint64_t start, std::uint64_t end, std::uint64_t bytes, std::uint32_t what, std::uint32_t correlation = 0,
              std::uint32_t device = 0, std::uint32_t stream = 7) {
        put(recording::Kind::copy, recording::Copy{{}, start, end, bytes, 0, device, stream, correlation, 0, what, 0});
    }
    void call(std::string_view name, std::uint64_t start, std::uint64_t end, std::uint32_t correlation = 0, std::uint32_t thread = 1,
              std::uint32_t result = 0) {
        put(recording::Kind::call, recording::Call{{}, start, end, text(name), thread, correlation, result});
    }
    /// A launch, and the kernel that it asks for.
    void launched(std::uint64_t called, std::uint64_t returned, KernelRun kernel, std::uint32_t thread = 1) {
        kernel.correlation = ++correlations_ + 1000;
        call("cuLaunchKernel", called, returned, kernel.correlation, thread);
        this->kernel(kernel);
    }
    void range(std::string_view name, std::uint64_t start, std::uint64_t end, std::uint32_t thread = 1) {
        open_range(name, start, thread);
        put(recording::Kind::range, recording::Range{{}, end, 0, 0, thread, ranges_, recording::Mark::end, 0});
    }
    /// One that nobody closes.
    void open_range(std::string_view name, std::uint64_t start, std::uint32_t thread = 1) {
        put(recording::Kind::range, recording::Range{{}, start, text(name), 0, thread, ++ranges_, recording::Mark::start, 0});
    }
    using Places = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
    void parameters(std::uint32_t id, std::string_view bytes, const Places& places = {}) {
        std::string more(reinterpret_cast<const char*>(places.data()), places.size() * sizeof(Places::value_type));
        more += bytes;
        put(recording::Kind::parameters, recording::Parameters{{}, id, std::uint32_t(places.size()), std::uint32_t(bytes.size()), 0}, more);
    }
    void launched_with(std::uint32_t correlation, std::uint32_t parameters) {
        put(recording::Kind::launch, recording::Launch{{}, correlation, parameters});
    }
    void node(std::uint64_t node, std::uint32_t correlation) { put(recording::Kind::node, recording::Node{{}, node, correlation, 0}); }
    void clone(std::uint64_t node, std::uint64_t original) { put(recording::Kind::clone, recording::Clone{{}, node, original}); }
    void device(std::uint32_t index = 0, std::string_view name = "NVIDIA H200") {
        put(recording::Kind::device, recording::Device{{}, index, text(name), 132, 9, 0, 233472, 65536, 2048, 32, 1024});
    }
    void begin(std::uint64_t time, std::uint32_t process = 1) { moment(time, recording::What::begin, process); }
    void end(std::uint64_t time) { moment(time, recording::What::end, 0); }
    void dropped(std::uint32_t count) { moment(1, recording::What::records_dropped, count); }
    void notice(std::string_view line) { put(recording::Kind::notice, recording::Notice{{}, std::uint32_t(line.size()), 0}, line); }
    /// A whole record of that kind.
    void record(std::uint16_t kind, std::string_view body) {
        recording::Head head{recording::Kind(kind), 0, std::uint32_t(sizeof head + body.size())};
        bytes_.append(reinterpret_cast<const char*>(&head), sizeof head).append(body);
    }

    const std::string& bytes() const { return bytes_; }
    Recorded read() const { return read_recording(bytes_, "made.rec"); }

  private:
    void moment(std::uint64_t time, recording::What what, std::uint32_t count) {
        put(recording::Kind::moment, recording::Moment{{}, time, what, count});
    }
    template <class Record>
    void put(recording::Kind kind, Record record, std::string_view more = {}) {
        const std::size_t size = sizeof record + more.size(), whole = (size + 7) / 8 * 8;
        record.head = {kind, 0, std::uint32_t(whole)};
        bytes_.append(reinterpret_cast<const char*>(&record), sizeof record).append(more).append(whole - size, '\0');
    }

    std::string bytes_;
    std::uint32_t texts_ = 0, ranges_ = 0, correlations_ = 0;
};

}  // namespace rooftile
