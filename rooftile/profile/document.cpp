#include "rooftile/profile/document.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "rooftile/names/reading.hpp"
#include "rooftile/report/kernel_names.hpp"

namespace rooftile {
namespace {

constexpr double ns_a_us = 1e3;

Json us(double ns) { return json_number(ns / ns_a_us); }
Json us(const std::optional<double>& ns) { return ns ? us(*ns) : Json(nullptr); }

Json device_json(const ProfiledDevice& d, const std::string& machine) {
    return {{"process", d.process},
            {"index", d.device.index},
            {"name", d.device.name},
            {"machine", text_or_null(machine)},
            {"sms", d.device.sms},
            {"window_us", us(d.window)},
            {"busy_us", us(d.busy)},
            {"idle_us", us(d.idle.sum())},
            {"idle",
             {{"host_us", us(d.idle.host)},
              {"waited_us", us(d.idle.waited)},
              {"launch_us", us(d.idle.launch)},
              {"dependency_us", us(d.idle.dependency)},
              {"unknown_us", us(d.idle.unknown)}}},
            {"before_us", us(d.before)},
            {"after_us", us(d.after)},
            {"overlapped_us", us(d.overlapped)},
            {"empty_sms_us", us(d.empty_sms)}};
}

Json sizes_json(const ProductSizes& s) { return {{"batch", s.batch}, {"m", s.m}, {"n", s.n}, {"k", s.k}}; }
Json sizes_json(const HeadSizes& s) {
    Json out = {{"batch", s.batch}, {"heads", s.heads}, {"kv_heads", s.kv_heads}, {"queries", s.queries},
                {"keys", s.keys},   {"dim", s.dim},     {"dim_v", s.dim_v}};
    out["causal"] = s.causal ? Json(*s.causal) : Json(nullptr);
    return out;
}
Json sizes_json(const PassSizes& s) {
    return {{"extents", s.extents}, {"read_bytes", s.read_bytes()}, {"written_bytes", s.written_bytes()}};
}

Json group_json(const KernelGroup& k, const ExplainedKernel& e, const std::string& machine) {
    Json out = {{"grid", k.grid},
                {"block", k.block},
                {"cluster", k.cluster},
                {"registers", k.registers},
                {"static_shared_bytes", k.static_shared},
                {"dynamic_shared_bytes", k.dynamic_shared},
                {"local_bytes", k.local},
                {"ctas_per_sm", k.resident ? Json(k.resident) : Json(nullptr)},
                {"calls", k.calls},
                {"in_graphs", k.in_graphs},
                {"time_us", us(k.sum)},
                {"mean_us", us(k.mean())},
                {"least_us", us(k.least)},
                {"most_us", us(k.most)},
                {"sizes", nullptr},
                {"problem", text_or_null(e.problem)},
                {"operation", text_or_null(e.operation)},
                {"machine", text_or_null(machine)},
                {"predicted_us", us(e.predicted)},
                {"ours_us", us(e.ours)},
                {"possible_us", us(e.least)},
                {"plan", text_or_null(e.plan)},
                {"command", text_or_null(e.command)},
                {"why_not", text_or_null(e.why_not)},
                {"disagreements", e.disagreements}};
    if (e.least_bytes) out["least_bytes"] = json_number(*e.least_bytes, "B");
    if (k.counters) {
        const KernelCounters& c = *k.counters;
        const auto number = [](const std::optional<double>& value) { return value ? json_number(*value) : Json(nullptr); };
        out["counters"] = {{"launches", c.launches},
                           {"time_us", us(c.time)},
                           {"dram_read_bytes", number(c.dram_read)},
                           {"dram_written_bytes", number(c.dram_written)},
                           {"l2_bytes", number(c.l2)},
                           {"tensor_share", number(c.tensor_share)},
                           {"issue_share", number(c.issue_share)}};
    }
    if (k.sizes) out["sizes"] = std::visit([](const auto& sizes) { return sizes_json(sizes); }, *k.sizes);
    return out;
}

/// Of one name all groups, the longest first.
Json kernels_json(const Profile& profile, const ExplainedProfile& explained) {
    std::map<std::string, std::size_t> place;
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
        const auto [at, is_new] = place.try_emplace(profile.kernels[i].name, groups.size());
        if (is_new) groups.emplace_back();
        groups[at->second].push_back(i);
    }
    const double whole = profile.kernel_time();
    Json kernels = Json::array();
    std::vector<double> sums;
    for (const std::vector<std::size_t>& of_name : groups) {
        const std::size_t first = of_name.front();
        double sum = 0;
        std::size_t calls = 0, in_graphs = 0;
        Json launches = Json::array();
        for (const std::size_t i : of_name) {
            const KernelGroup& k = profile.kernels[i];
            sum += k.sum, calls += k.calls, in_graphs += k.in_graphs;
            launches.push_back(group_json(k, explained.kernels[i], explained.machines[k.device]));
        }
        kernels.push_back({{"name", names::unmangled(profile.kernels[first].name)},
                           {"short", short_name(explained.names[first])},
                           {"decoded", kernel_name_json(explained.names[first])},
                           {"calls", calls},
                           {"in_graphs", in_graphs},
                           {"time_us", us(sum)},
                           {"share", json_number(whole > 0 ? sum / whole : 0)},
                           {"mean_us", us(sum / double(calls))},
                           {"launches", std::move(launches)}});
    }
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const Json& a, const Json& b) { return a.at("time_us").get<double>() > b.at("time_us").get<double>(); });
    return kernels;
}

}  // namespace

std::string short_name(const KernelName& name) {
    if (name.family != "unknown") return describe(name);
    // "void ns::kernel<int, 4>(args)" is "ns::kernel".
    std::string out = name.name;
    if (out.starts_with("void ")) out.erase(0, 5);
    return out.substr(0, out.find_first_of("<("));
}

Json profile_document(const DocumentContext& context, const Profile& profile, const ExplainedProfile& explained) {
    Json out = {
        {"schema", "rooftile/profile/1"},
        {"context", context_json(context)},
        {"profiled", profile.command},
        {"wall_us", profile.wall > 0 ? us(profile.wall) : Json(nullptr)},
        {"range", text_or_null(profile.range)},
        {"steps", profile.steps},
        {"devices", Json::array()},
        {"kernel_time_us", us(profile.kernel_time())},
        {"host",
         {{"launches", profile.launches}, {"graph_launches", profile.graph_launches}, {"launch_calls_us", us(profile.launch_calls)}}},
        {"kernels", kernels_json(profile, explained)},
        {"copies", Json::array()},
        {"calls", Json::array()},
        {"ranges", Json::array()},
        {"stacks", Json::array()},
        {"savings", Json::array()},
        {"notices", profile.notices}};
    for (std::size_t i = 0; i < profile.devices.size(); ++i)
        out["devices"].push_back(device_json(profile.devices[i], explained.machines[i]));
    for (const CopyGroup& c : profile.copies)
        out["copies"].push_back({{"kind", c.kind}, {"count", c.count}, {"bytes", json_number(c.bytes, "B")}, {"time_us", us(c.sum)}});
    for (const CallGroup& c : profile.calls)
        out["calls"].push_back(
            {{"name", c.name}, {"count", c.count}, {"failed", c.failed}, {"time_us", us(c.sum)}, {"most_us", us(c.most)}});
    for (const RangeGroup& r : profile.ranges)
        out["ranges"].push_back({{"name", r.name},
                                 {"count", r.count},
                                 {"kernels", r.launches},
                                 {"host_us", us(r.host)},
                                 {"device_us", us(r.device)},
                                 {"collective_us", us(r.collective)}});
    std::map<std::string, std::string> short_names;
    for (std::size_t i = 0; i < profile.kernels.size(); ++i)
        short_names.try_emplace(profile.kernels[i].name, short_name(explained.names[i]));
    for (const ProfileStack& s : profile.stacks) {
        Json frames = s.frames;
        if (const auto known = short_names.find(s.frames.back()); known != short_names.end()) frames.back() = known->second;
        out["stacks"].push_back({{"frames", std::move(frames)}, {"time_us", us(s.sum)}});
    }
    for (const Saving& saving : savings_of(out))
        out["savings"].push_back({{"saved_us", json_number(saving.us)}, {"what", saving.what}, {"command", saving.command}});
    return out;
}

std::vector<Saving> savings_of(const Json& document) {
    std::vector<Saving> out;
    const double steps = document.at("steps").get<double>();
    const std::string_view a_step = steps > 1 ? " a step" : "";
    for (const Json& kernel : document.at("kernels"))
        for (const Json& launch : kernel.at("launches")) {
            const auto ours = number_at(launch, "ours_us");
            if (!ours) continue;
            const double mean = launch.at("mean_us").get<double>(), calls = launch.at("calls").get<double>() / steps;
            if (mean > *ours)
                out.push_back(
                    {(mean - *ours) * calls,
                     fmt::format("{} {}: {:.4g} {}{} of {:.4g} us, ours is predicted to take {:.4g} us", text_at(launch, "operation"),
                                 text_at(launch, "problem"), calls, calls == 1 ? "call" : "calls", a_step, mean, *ours),
                     text_at(launch, "command")});
        }
    double host = 0, launch = 0, waited = 0;
    for (const Json& device : document.at("devices")) {
        host += device.at("idle").at("host_us").get<double>() / steps;
        launch += device.at("idle").at("launch_us").get<double>() / steps;
        waited += device.at("idle").at("waited_us").get<double>() / steps;
    }
    const Json& calls = document.at("host");
    const double launches = calls.at("launches").get<double>() / steps;
    if (host > 0 && launches > 1)
        out.push_back({host,
                       fmt::format("the device waits for the host, which asks for {:.4g} kernels{} one by one: capture {} in a CUDA graph, "
                                   "or merge the operators",
                                   launches, a_step, steps > 1 ? "the step" : "them"),
                       "torch.compile(model, mode=\"reduce-overhead\"), or torch.cuda.graph"});
    if (waited > 0)
        out.push_back({waited,
                       "the host waits for the device before it asks for more (.item(), .cpu(), synchronize()): ask first, wait later",
                       "rooftile profile --timeline trace.json -- ..., then look before each gap"});
    std::ranges::stable_sort(out, [](const Saving& a, const Saving& b) { return a.us > b.us; });
    if (out.size() > 3) out.resize(3);
    return out;
}

std::string folded_stacks(const Json& document) {
    std::string out;
    for (const Json& stack : document.at("stacks")) {
        std::string line;
        for (const Json& frame : stack.at("frames")) {
            std::string text = frame.get<std::string>();
            std::ranges::replace(text, ';', ',');
            std::ranges::replace(text, '\n', ' ');
            line += (line.empty() ? "" : ";") + text;
        }
        out += fmt::format("{} {:.0f}\n", line, stack.at("time_us").get<double>() * ns_a_us);
    }
    return out;
}

Json timeline(const std::vector<Recorded>& recordings) {
    Json events = Json::array();
    std::uint64_t first = UINT64_MAX;
    for (const Recorded& r : recordings) {
        if (r.begin) first = std::min(first, r.begin);
        if (!r.work.empty()) first = std::min(first, r.work.front().start);
    }
    const auto add = [&](Json event, std::uint64_t start, std::uint64_t end) {
        event["ph"] = "X";
        event["ts"] = double(start - std::min(first, start)) / ns_a_us;
        event["dur"] = double(end - std::min(end, start)) / ns_a_us;
        events.push_back(std::move(event));
    };
    const auto name_lane = [&](const char* what, Json pid, Json tid, const std::string& name) {
        events.push_back({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
    };
    for (const Recorded& r : recordings) {
        std::set<std::pair<std::uint32_t, std::uint32_t>> streams;
        std::set<std::uint32_t> threads;
        std::map<std::string_view, std::string> names;
        for (const DeviceWork& w : r.work) {
            const std::string pid = fmt::format("{} GPU {}", r.process, w.device);
            if (streams.insert({w.device, w.stream}).second) name_lane("thread_name", pid, w.stream, fmt::format("stream {}", w.stream));
            if (w.kind == DeviceWork::Kind::kernel) {
                const auto [name, is_new] = names.try_emplace(w.name);
                if (is_new) name->second = short_name(decode(w.name));
                Json args = {{"kernel", std::string(w.name)},
                             {"grid", w.grid},
                             {"block", w.block},
                             {"registers", w.registers},
                             {"shared_bytes", w.static_shared + w.dynamic_shared}};
                if (w.graph) args["graph"] = w.graph;
                add({{"name", name->second}, {"cat", "kernel"}, {"pid", pid}, {"tid", w.stream}, {"args", std::move(args)}}, w.start,
                    w.end);
            } else
                add({{"name", std::string(w.name)}, {"cat", "copy"}, {"pid", pid}, {"tid", w.stream}, {"args", {{"bytes", w.bytes}}}},
                    w.start, w.end);
        }
        const std::string pid = fmt::format("{} host", r.process);
        for (const DriverCall& c : r.calls) {
            if (threads.insert(c.thread).second) name_lane("thread_name", pid, c.thread, fmt::format("thread {}", c.thread));
            add({{"name", std::string(c.name)}, {"cat", "call"}, {"pid", pid}, {"tid", c.thread}}, c.start, c.end);
        }
        for (const NamedRange& range : r.ranges)
            add({{"name", std::string(range.name)}, {"cat", "range"}, {"pid", pid}, {"tid", range.thread}}, range.start, range.end);
    }
    return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
}

}  // namespace rooftile
