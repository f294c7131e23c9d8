#include "rooftile/profile/profile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/terminal.hpp"
#include "rooftile/units.hpp"

namespace rooftile {
namespace {

constexpr int warp_threads = 32;
/// Over which a GPU's power is held to its limit. One H200 under products that take more ran at full clock for 50 ms, and at the clock that
/// the limit leaves from 90 ms on (docs/facts.md 364).
constexpr double power_window_ns = 80e6;
constexpr int register_step = 8;  // a thread's registers are given out by so many, on every GPU since Maxwell

bool asks_for_work(std::string_view call) { return call.starts_with("cuLaunch") || call.starts_with("cuGraphLaunch"); }
bool waits(std::string_view call) { return call.find("Synchronize") != call.npos || call.starts_with("cuMemcpyDtoH_"); }

struct Span {
    std::uint64_t start, end;
};

/// What a device did until any time.
class MatrixWork {
  public:
    void add(const DeviceWork& work) {
        if (work.kind != DeviceWork::Kind::kernel) return;
        const auto [known, is_new] = is_matrix_.try_emplace(work.name);
        if (is_new) known->second = is_matrix_work(decode(work.name));
        if (!known->second) return;
        starts_.push_back(work.start);
        sums_.push_back((sums_.empty() ? 0 : sums_.back()) + double(work.end - work.start));
    }
    /// The share of the window before `time`.
    double share(std::uint64_t time) const {
        const auto until = [&](double at) {
            const auto after = std::ranges::upper_bound(starts_, std::uint64_t(std::max(0.0, at)));
            return after == starts_.begin() ? 0.0 : sums_[std::size_t(after - starts_.begin()) - 1];
        };
        return std::min(1.0, (until(double(time)) - until(double(time) - power_window_ns)) / power_window_ns);
    }

  private:
    std::map<std::string_view, bool> is_matrix_;
    std::vector<std::uint64_t> starts_;
    std::vector<double> sums_;
};

/// Of spans by start: those that touch are one.
std::vector<Span> merged(std::vector<Span> spans) {
    std::ranges::sort(spans, {}, &Span::start);
    std::vector<Span> out;
    for (const Span& s : spans) {
        if (!out.empty() && s.start <= out.back().end) out.back().end = std::max(out.back().end, s.end);
        else out.push_back(s);
    }
    return out;
}

using KernelKey = std::tuple<std::string_view, std::array<std::int32_t, 3>, std::array<std::int32_t, 3>, std::uint32_t, const KernelSizes*>;

/// Where in a profile's lists the group of a key is, over all processes.
struct Places {
    std::map<KernelKey, std::size_t> kernels;
    std::set<KernelSizes> sizes;  // each once, which keys point to
    std::map<std::string, std::size_t> copies, calls, ranges;
    std::map<std::vector<std::string>, std::size_t> stacks;
};

class ProcessProfile {
  public:
    ProcessProfile(const Recorded& recorded, const std::string& range, Places& places, Profile& out)
        : r_(recorded), range_(range), places_(places), out_(out), whole_(range.empty()) {
        for (const DriverCall& call : r_.calls)
            if (asks_for_work(call.name) || call.name.starts_with("cuMemcpy") || call.name.starts_with("cuMemset"))
                call_of_.try_emplace(call.correlation, &call);
        for (const DriverCall& call : r_.calls)
            if (waits(call.name)) waits_[call.thread].push_back({call.start, call.end});
        for (auto& [thread, spans] : waits_) spans = merged(std::move(spans));  // one may be inside another
        std::vector<Span> chosen;
        for (const NamedRange& named : r_.ranges)
            if (!whole_ && named.name == range) chosen.push_back({named.start, named.end}), ++steps;
        chosen_ = merged(std::move(chosen));
    }

    std::size_t steps = 0;

    void add() {
        if (!whole_ && chosen_.empty()) return;
        for_each_in_ranges([&](const std::vector<const NamedRange*>& open, const DeviceWork& work) {
            const auto shaped = std::find_if(open.rbegin(), open.rend(),
                                             [](const NamedRange* range) { return range->name.find("sizes = ") != range->name.npos; });
            if (shaped != open.rend()) operator_of_.emplace(&work, (*shaped)->name);
        });
        std::map<std::uint32_t, std::vector<const DeviceWork*>> by_device;
        for (const DeviceWork& work : r_.work)
            if (is_chosen(work)) by_device[work.device].push_back(&work);
        for (const auto& [device, work] : by_device) add_device(device, work);
        add_calls();
        add_ranges();
    }

  private:
    const DriverCall* call_of(const DeviceWork& work) const {
        const auto found = call_of_.find(work.correlation);
        return found == call_of_.end() ? nullptr : found->second;
    }
    bool in_chosen(std::uint64_t time) const {
        const auto after = std::ranges::upper_bound(chosen_, time, {}, &Span::start);
        return after != chosen_.begin() && time <= std::prev(after)->end;
    }
    bool is_chosen(const DeviceWork& work) const {
        if (whole_) return true;
        const DriverCall* call = call_of(work);
        return in_chosen(call ? call->start : work.start);
    }

    /// ns of [from, to] in which the thread waited for a device.
    double waited(std::uint32_t thread, std::uint64_t from, std::uint64_t to) const {
        const auto found = waits_.find(thread);
        double sum = 0;
        if (found == waits_.end() || from >= to) return sum;
        auto wait = std::ranges::upper_bound(found->second, from, {}, &Span::start);
        if (wait != found->second.begin()) --wait;
        for (; wait != found->second.end() && wait->start < to; ++wait)
            if (wait->end > from) sum += double(std::min(to, wait->end) - std::max(from, wait->start));
        return sum;
    }

    /// The time from `from`, when `before` ended (null: the window began), to the start of `next`.
    void attribute(const DeviceWork* before, const DeviceWork& next, std::uint64_t from, IdleTime& idle) const {
        const double gap = double(next.start - from);
        const DriverCall* call = call_of(next);
        if (before && next.graph && before->correlation == next.correlation) idle.launch += gap;
        else if (!call) idle.unknown += gap;
        else if (call->start >= from) {
            // The clocks of host and device agree to a microsecond: work may seem to begin before its call.
            const std::uint64_t called = std::min(next.start, call->start), asked = std::min(next.start, call->end);
            const double held_up = waited(call->thread, from, called);
            idle.waited += held_up;
            idle.host += double(asked - from) - held_up;
            idle.launch += double(next.start - asked);
        } else if (!before || before->stream == next.stream) idle.launch += gap;
        else idle.dependency += gap;
    }

    void add_device(std::uint32_t index, const std::vector<const DeviceWork*>& work) {
        ProfiledDevice d;
        d.process = r_.process;
        d.device.index = index;
        for (const RecordedGpu& device : r_.devices)
            if (device.index == index) d.device = device;
        std::vector<Span> windows;
        if (whole_) {
            std::uint64_t last = 0;
            for (const DeviceWork* w : work) last = std::max(last, w->end);
            windows = {{work.front()->start, last}};
            if (r_.begin && r_.begin < work.front()->start) d.before = double(work.front()->start - r_.begin);
            if (r_.end > last) d.after = double(r_.end - last);
        } else {
            windows = chosen_;
            for (const DeviceWork* w : work) {  // what a range asked for may end after it
                const auto after = std::ranges::upper_bound(chosen_, call_of(*w) ? call_of(*w)->start : w->start, {}, &Span::start);
                const auto window = windows.begin() + std::max<std::ptrdiff_t>(0, after - chosen_.begin() - 1);
                window->start = std::min(window->start, w->start);  // clocks of host and device differ a little
                window->end = std::max(window->end, w->end);
            }
            windows = merged(std::move(windows));
        }
        auto next = work.begin();
        for (const Span& window : windows) {
            d.window += double(window.end - window.start);
            std::uint64_t reached = window.start;
            const DeviceWork* before = nullptr;
            auto of_next_window = work.end();  // the first work that lasts beyond this one
            for (; next != work.end() && (*next)->start <= window.end; ++next) {
                const DeviceWork& w = **next;
                if (w.end > window.end && of_next_window == work.end()) of_next_window = next;
                const std::uint64_t start = std::max(w.start, window.start), end = std::min(w.end, window.end);
                if (end <= start) continue;
                if (start > reached) attribute(before, w, reached, d.idle);
                const std::uint64_t from = std::max(reached, start);
                if (end > from) d.busy += double(end - from);
                d.overlapped += double(std::min(end, from) - start);
                if (end > reached) reached = end, before = &w;
            }
            if (of_next_window != work.end()) next = of_next_window;
            if (reached < window.end) {
                const double rest = double(window.end - reached);
                double held_up = 0;
                for (const auto& [thread, spans] : waits_) held_up = std::max(held_up, waited(thread, reached, window.end));
                d.idle.waited += held_up, d.idle.host += rest - held_up;
            }
        }
        const std::size_t place = out_.devices.size();
        MatrixWork matrix_work;
        for (const DeviceWork& w : r_.work)
            if (w.device == index) matrix_work.add(w);
        for (const DeviceWork* w : work) add_work(*w, place, matrix_work, d);
        out_.devices.push_back(d);
    }

    void add_work(const DeviceWork& w, std::size_t device, const MatrixWork& matrix_work, ProfiledDevice& d) {
        const double ns = double(w.end - w.start);
        if (w.kind != DeviceWork::Kind::kernel) {
            CopyGroup& group = entry(places_.copies, out_.copies, std::string(w.name));
            group.kind = w.name, ++group.count, group.bytes += double(w.bytes), group.sum += ns;
            return;
        }
        const int resident = resident_ctas(d.device, w);
        const auto operator_range = operator_of_.find(&w);
        const std::string_view range = operator_range == operator_of_.end() ? std::string_view() : operator_range->second;
        const auto kept = [&](std::optional<KernelSizes> found) {
            return found ? &*places_.sizes.insert(std::move(*found)).first : nullptr;
        };
        const KernelSizes* sizes = nullptr;
        if (w.parameters) {
            const auto [known, is_new] = sizes_.try_emplace(std::tuple(w.name, w.parameters, w.grid, w.block));
            if (is_new) known->second = kept(sizes_of_launch(w.name, named(w.name), *w.parameters, {w.grid, w.block}));
            sizes = known->second;
        }
        if (!sizes && !range.empty()) sizes = kept(sizes_of_range(range, named(w.name)));
        KernelGroup& group = entry(places_.kernels, out_.kernels, std::tuple(w.name, w.grid, w.block, w.dynamic_shared, sizes));
        if (group.calls == 0) {
            group.name = w.name, group.grid = w.grid, group.block = w.block, group.cluster = w.cluster;
            group.registers = w.registers, group.static_shared = w.static_shared, group.dynamic_shared = w.dynamic_shared,
            group.local = w.local;
            if (sizes) group.sizes = *sizes;
            group.least = ns, group.device = device, group.resident = resident, group.matrix_share = 0;
        }
        group.matrix_share = (group.matrix_share * double(group.calls) + matrix_work.share(w.end)) / double(group.calls + 1);
        ++group.calls, group.in_graphs += w.graph != 0;
        group.sum += ns, group.least = std::min(group.least, ns), group.most = std::max(group.most, ns);
        const double ctas = double(w.grid[0]) * w.grid[1] * w.grid[2], sms = d.device.sms;
        if (sms > 0 && ctas < sms) d.empty_sms += ns * (1 - ctas / sms);
        else if (sms > 0 && resident > 0 && ctas > sms * resident)
            d.empty_sms += ns * (1 - ctas / (sms * resident) / whole_up(ctas / (sms * resident)));
    }

    void add_calls() {
        for (const DriverCall& call : r_.calls) {
            if (!whole_ && !in_chosen(call.start)) continue;
            CallGroup& group = entry(places_.calls, out_.calls, std::string(call.name));
            const double ns = double(call.end - call.start);
            group.name = call.name, ++group.count, group.failed += call.result != 0, group.sum += ns, group.most = std::max(group.most, ns);
            if (!asks_for_work(call.name) || call.captured) continue;
            ++(call.name.starts_with("cuGraph") ? out_.graph_launches : out_.launches);
            out_.launch_calls += ns;
        }
    }

    /// Which ranges each piece of work was asked for in: thread by thread, calls and ranges in the order of time.
    void add_ranges() {
        for (const NamedRange& range : r_.ranges) {
            if (!whole_ && !in_chosen(range.start)) continue;
            RangeGroup& group = entry(places_.ranges, out_.ranges, std::string(range.name));
            group.name = range.name, ++group.count, group.host += double(range.end - range.start);
        }
        for_each_in_ranges([&](const std::vector<const NamedRange*>& open, const DeviceWork& work) { add_stack(open, work); });
    }

    /// All chosen work with the ranges, outer first, that were open in the thread that asked for it. None where
    /// nobody was seen to ask.
    template <class Visit>
    void for_each_in_ranges(Visit visit) const {
        std::map<std::uint32_t, std::vector<std::pair<std::uint64_t, const DeviceWork*>>> asked;
        std::vector<const DeviceWork*> alone;
        for (const DeviceWork& work : r_.work) {
            if (!is_chosen(work)) continue;
            if (const DriverCall* call = call_of(work)) asked[call->thread].emplace_back(call->start, &work);
            else alone.push_back(&work);
        }
        std::vector<const NamedRange*> open;
        for (const DeviceWork* work : alone) visit(open, *work);
        for (auto& [thread, all] : asked) {
            std::ranges::stable_sort(all, {}, [](const auto& each) { return each.first; });
            std::vector<const NamedRange*> of_thread;
            for (const NamedRange& range : r_.ranges)
                if (range.thread == thread) of_thread.push_back(&range);
            open.clear();
            auto next = of_thread.begin();
            for (const auto& [time, work] : all) {
                for (; next != of_thread.end() && (*next)->start <= time; ++next) open.push_back(*next);
                std::erase_if(open, [&](const NamedRange* range) { return range->end < time; });
                visit(open, *work);
            }
        }
    }

    void add_stack(const std::vector<const NamedRange*>& open, const DeviceWork& work) {
        const double ns = double(work.end - work.start);
        std::vector<std::string> frames;
        std::set<std::string_view> seen;
        const bool collective = work.kind == DeviceWork::Kind::kernel && named(work.name).role == "collective";
        const auto add_frame = [&](std::string_view name) {
            frames.emplace_back(name);
            if (!seen.insert(name).second) return;  // a range in one of its own name counts once
            RangeGroup& group = entry(places_.ranges, out_.ranges, std::string(name));
            group.name = name, group.launches += work.kind == DeviceWork::Kind::kernel, group.device += ns;
            if (collective) group.collective += ns;
        };
        // What other threads ask for meanwhile, as a backward pass does, is the chosen range's too.
        if (!whole_ && std::ranges::none_of(open, [&](const NamedRange* range) { return range->name == range_; })) add_frame(range_);
        for (const NamedRange* range : open) add_frame(range->name);
        frames.emplace_back(work.name);
        ProfileStack& stack = entry(places_.stacks, out_.stacks, frames);
        if (stack.frames.empty()) stack.frames = frames;
        stack.sum += ns;
    }

    const KernelName& named(std::string_view name) {
        const auto [known, is_new] = names_.try_emplace(name);
        if (is_new) known->second = decode(name);
        return known->second;
    }

    template <class Key, class Group>
    static Group& entry(std::map<Key, std::size_t>& places, std::vector<Group>& groups, const Key& key) {
        const auto [place, is_new] = places.try_emplace(key, groups.size());
        if (is_new) groups.emplace_back();
        return groups[place->second];
    }

    const Recorded& r_;
    const std::string& range_;
    Places& places_;
    Profile& out_;
    bool whole_;
    std::vector<Span> chosen_;
    std::unordered_map<std::uint32_t, const DriverCall*> call_of_;
    std::map<std::uint32_t, std::vector<Span>> waits_;  // by thread
    std::map<std::tuple<std::string_view, const ParameterBytes*, std::array<std::int32_t, 3>, std::array<std::int32_t, 3>>,
             const KernelSizes*>
        sizes_;
    std::map<std::string_view, KernelName> names_;
    std::unordered_map<const DeviceWork*, std::string_view> operator_of_;  // the innermost range with shapes in which it was asked for
};

}  // namespace

double Profile::kernel_time() const {
    double sum = 0;
    for (const KernelGroup& group : kernels) sum += group.sum;
    return sum;
}

int resident_ctas(const RecordedGpu& device, const DeviceWork& kernel) {
    const std::int64_t threads = std::int64_t{kernel.block[0]} * kernel.block[1] * kernel.block[2];
    if (threads <= 0 || threads > device.threads_per_sm) return 0;
    const std::int64_t warps = ceil_div(threads, warp_threads);
    std::int64_t ctas = device.threads_per_sm / (warps * warp_threads);
    if (device.ctas_per_sm > 0) ctas = std::min<std::int64_t>(ctas, device.ctas_per_sm);
    if (kernel.registers > 0 && device.registers_per_sm > 0)
        ctas = std::min(ctas, device.registers_per_sm / (ceil_div(kernel.registers, register_step) * register_step * warps * warp_threads));
    const std::int64_t shared = std::int64_t{kernel.static_shared} + kernel.dynamic_shared + device.shared_reserved;
    if (shared > 0 && device.shared_per_sm > 0) ctas = std::min(ctas, device.shared_per_sm / shared);
    return int(ctas);
}

Profile profile_of(const std::vector<Recorded>& recordings, const std::string& range) {
    Profile out;
    Places places;
    out.range = range;
    std::set<std::string> names;
    if (!range.empty()) out.steps = 0;
    for (const Recorded& recorded : recordings) {
        ProcessProfile process(recorded, range, places, out);
        out.steps = std::max(out.steps, process.steps);  // processes take a step together
        process.add();
        const std::string who = recordings.size() > 1 ? fmt::format("process {}: ", recorded.process) : "";
        for (const std::string& notice : recorded.notices) out.notices.push_back(who + notice);
        if (recorded.dropped) out.notices.push_back(fmt::format("{}{} records were lost: buffers were full", who, recorded.dropped));
        if (recorded.untimed) out.notices.push_back(fmt::format("{}{} records have no times and are left out", who, recorded.untimed));
        if (recorded.begin && (recorded.cut || !recorded.end))
            out.notices.push_back(who
                                  + "it ended without a last word (a crash, a kill, _exit): what it did at the very end may be missing");
        for (const NamedRange& each : recorded.ranges) names.emplace(each.name);
    }
    if (!range.empty() && out.steps == 0) {
        constexpr std::size_t most = 12;
        std::vector<std::string> some(names.begin(), names.end());
        if (some.size() > most) some.resize(most), some.push_back(fmt::format("{} more", names.size() - most));
        throw RequestError(fmt::format("no range is called {}; there are {}", range, some.empty() ? "none" : joined(some)));
    }
    const auto by_sum = [](const auto& a, const auto& b) { return a.sum > b.sum; };
    std::ranges::stable_sort(out.kernels, by_sum);
    std::ranges::stable_sort(out.copies, by_sum);
    std::ranges::stable_sort(out.calls, by_sum);
    std::ranges::stable_sort(out.stacks, by_sum);
    std::ranges::stable_sort(out.ranges, [](const RangeGroup& a, const RangeGroup& b) { return a.device > b.device; });
    return out;
}

}  // namespace rooftile
