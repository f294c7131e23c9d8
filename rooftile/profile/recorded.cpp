#include "rooftile/profile/recorded.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "rooftile/error.hpp"
#include "rooftile/profile/recording.hpp"

namespace rooftile {
namespace {

/// CUpti_ActivityMemcpyKind.
constexpr std::string_view copy_kinds[] = {"memset", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};

class Reader {
  public:
    explicit Reader(Recorded& out) : out_(out) {}

    /// One whole record. False: it is not one.
    bool take(std::string_view bytes) {
        using namespace recording;
        Head head;
        std::memcpy(&head, bytes.data(), sizeof head);
        switch (head.kind) {
            case Kind::text:
                return as<Text>(bytes, [&](const Text& t, std::string_view rest) {
                    if (t.length > rest.size()) return false;
                    out_.texts.try_emplace(t.id, rest.substr(0, t.length));
                    return true;
                });
            case Kind::kernel:
                return as<Kernel>(bytes, [&](const Kernel& k, std::string_view) {
                    if (!possible(k.grid) || !possible(k.block)) return false;
                    if (!is_timed(k)) return true;
                    DeviceWork w = work(DeviceWork::Kind::kernel, k);
                    w.name = name(k.name);
                    std::copy_n(k.grid, 3, w.grid.begin()), std::copy_n(k.block, 3, w.block.begin()),
                        std::copy_n(k.cluster, 3, w.cluster.begin());
                    w.registers = k.registers, w.static_shared = k.static_shared, w.dynamic_shared = k.dynamic_shared, w.local = k.local;
                    node_of_.push_back(k.node);
                    out_.work.push_back(w);
                    return true;
                });
            case Kind::copy:
                return as<Copy>(bytes, [&](const Copy& c, std::string_view) {
                    if (!is_timed(c)) return true;
                    DeviceWork w = work(c.what ? DeviceWork::Kind::copy : DeviceWork::Kind::set, c);
                    w.name = c.what < std::size(copy_kinds) ? copy_kinds[c.what] : "copy";
                    w.bytes = c.bytes;
                    node_of_.push_back(0);
                    out_.work.push_back(w);
                    return true;
                });
            case Kind::call:
                return as<Call>(bytes, [&](const Call& c, std::string_view) {
                    if (is_timed(c)) out_.calls.push_back({c.start, c.end, name(c.name), c.thread, c.correlation, c.result, false});
                    return true;
                });
            case Kind::range:
                return as<Range>(bytes, [&](const Range& r, std::string_view) {
                    if (r.mark == Mark::start) open_[r.id].push_back({r.time, 0, name(r.name), r.thread});
                    else if (auto& open = open_[r.id]; r.mark == Mark::end && !open.empty()) {
                        open.back().end = std::max(r.time, open.back().start);
                        out_.ranges.push_back(open.back());
                        open.pop_back();
                    }
                    return true;
                });
            case Kind::launch:
                return as<Launch>(bytes, [&](const Launch& l, std::string_view) {
                    parameters_of_[l.correlation] = l.parameters;
                    return true;
                });
            case Kind::parameters:
                return as<Parameters>(bytes, [&](const Parameters& p, std::string_view rest) {
                    ParameterBytes kept;
                    const std::size_t layout = std::size_t{p.count} * sizeof(ParameterBytes::Place);
                    if (layout + p.bytes > rest.size()) return false;
                    kept.places.resize(p.count);
                    std::memcpy(kept.places.data(), rest.data(), layout);
                    kept.bytes = rest.substr(layout, p.bytes);
                    out_.parameters.emplace(p.id, std::move(kept));
                    return true;
                });
            case Kind::node:
                return as<Node>(bytes, [&](const Node& n, std::string_view) { return node_launch_[n.node] = n.correlation, true; });
            case Kind::clone:
                return as<Clone>(bytes, [&](const Clone& c, std::string_view) { return original_[c.node] = c.original, true; });
            case Kind::device:
                return as<Device>(bytes, [&](const Device& d, std::string_view) {
                    out_.devices.push_back({d.device, std::string(name(d.name)), int(d.sms), int(d.compute_major), int(d.compute_minor),
                                            int(d.shared_per_sm), int(d.registers_per_sm), int(d.threads_per_sm), int(d.ctas_per_sm),
                                            int(d.shared_reserved)});
                    return true;
                });
            case Kind::moment:
                return as<Moment>(bytes, [&](const Moment& m, std::string_view) {
                    if (m.what == What::begin) out_.begin = m.time, out_.process = m.count;
                    else if (m.what == What::end) out_.end = m.time;
                    else if (m.what == What::records_dropped) out_.dropped += m.count;
                    return true;
                });
            case Kind::notice:
                return as<Notice>(bytes, [&](const Notice& n, std::string_view rest) {
                    if (n.length > rest.size()) return false;
                    out_.notices.emplace_back(rest.substr(0, n.length));
                    return true;
                });
        }
        return true;  // of a later version
    }

    void finish() {
        std::unordered_set<std::uint32_t> captured;
        for (const auto& [node, launch] : node_launch_) captured.insert(launch);
        for (DriverCall& call : out_.calls) call.captured = captured.contains(call.correlation);
        for (std::size_t i = 0; i < out_.work.size(); ++i) out_.work[i].parameters = parameters_of(out_.work[i], node_of_[i]);
        const auto by_start = [](const auto& a, const auto& b) { return a.start < b.start; };
        std::ranges::stable_sort(out_.work, by_start);
        std::ranges::stable_sort(out_.calls, by_start);
        std::uint64_t last = std::max(out_.begin, out_.end);
        for (const DeviceWork& w : out_.work) last = std::max(last, w.end);
        for (const DriverCall& c : out_.calls) last = std::max(last, c.end);
        for (auto& [id, open] : open_)
            for (NamedRange& range : open) range.end = std::max(last, range.start), out_.ranges.push_back(range);
        std::ranges::stable_sort(
            out_.ranges, [](const NamedRange& a, const NamedRange& b) { return a.start != b.start ? a.start < b.start : a.end > b.end; });
    }

  private:
    template <class Record, class Take>
    static bool as(std::string_view bytes, Take take) {
        Record record;
        if (bytes.size() < sizeof record) return false;
        std::memcpy(&record, bytes.data(), sizeof record);
        return take(record, bytes.substr(sizeof record));
    }
    /// CUPTI leaves both times 0 where it could not take them.
    template <class Record>
    bool is_timed(const Record& r) {
        const bool timed = r.start > 0 && r.end >= r.start;
        out_.untimed += !timed;
        return timed;
    }
    /// Extents of a grid or a CTA: what is made of them may count on their product.
    static bool possible(const std::int32_t (&extents)[3]) {
        constexpr double most = 1e15;
        return extents[0] >= 0 && extents[1] >= 0 && extents[2] >= 0 && double(extents[0]) * extents[1] * extents[2] < most;
    }
    template <class Record>
    static DeviceWork work(DeviceWork::Kind kind, const Record& r) {
        DeviceWork w;
        w.kind = kind, w.start = r.start, w.end = r.end, w.device = r.device, w.stream = r.stream, w.correlation = r.correlation,
        w.graph = r.graph;
        return w;
    }
    std::string_view name(std::uint32_t id) const {
        const auto found = out_.texts.find(id);
        return found == out_.texts.end() ? std::string_view() : found->second;
    }
    /// A kernel of a graph has those of the launch that was captured.
    const ParameterBytes* parameters_of(const DeviceWork& work, std::uint64_t node) const {
        std::uint32_t launch = work.correlation;
        if (node) {
            // A graph may be a copy of a copy; no chain is as long as there are copies.
            for (std::size_t step = 0; !node_launch_.contains(node) && step < original_.size(); ++step) {
                const auto found = original_.find(node);
                if (found == original_.end()) break;
                node = found->second;
            }
            const auto captured = node_launch_.find(node);
            if (captured == node_launch_.end()) return nullptr;
            launch = captured->second;
        }
        const auto id = parameters_of_.find(launch);
        if (id == parameters_of_.end()) return nullptr;
        const auto found = out_.parameters.find(id->second);
        return found == out_.parameters.end() ? nullptr : &found->second;
    }

    Recorded& out_;
    std::vector<std::uint64_t> node_of_;  // of out_.work, in the order read
    std::unordered_map<std::uint32_t, std::vector<NamedRange>> open_;
    std::unordered_map<std::uint32_t, std::uint32_t> parameters_of_;
    std::unordered_map<std::uint64_t, std::uint32_t> node_launch_;
    std::unordered_map<std::uint64_t, std::uint64_t> original_;
};

}  // namespace

bool is_recording(std::string_view bytes) { return bytes.starts_with(std::string_view(recording::magic, sizeof recording::magic)); }

Recorded read_recording(std::string_view bytes, const std::string& file) {
    if (!is_recording(bytes)) throw RequestError(fmt::format("{}: no recording of this version of the profiler", file));
    Recorded out;
    Reader reader(out);
    bytes.remove_prefix(sizeof recording::magic);
    while (!bytes.empty()) {
        recording::Head head{};
        if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
        if (head.size < sizeof head || head.size > bytes.size() || !reader.take(bytes.substr(0, head.size))) {
            out.cut = true;
            break;
        }
        bytes.remove_prefix(head.size);
    }
    reader.finish();
    return out;
}

}  // namespace rooftile
