#include "rooftile/ways/ways.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/names/kernel_name.hpp"
#include "rooftile/physics/explanation.hpp"
#include "rooftile/profile/document.hpp"

namespace rooftile {
namespace {

constexpr double ns_a_us = 1e3, us_a_second = 1e6;

std::optional<double> median_us(const std::vector<RangedWork>& all, double RangedWork::*figure) {
    if (all.empty()) return std::nullopt;
    std::vector<double> values;
    for (const RangedWork& each : all) values.push_back(each.*figure / ns_a_us);
    return median(values);
}

/// Short names of a call's kernels, each with how often it comes where that is more than once.
Json kernel_names(const RangedWork& call) {
    std::vector<std::string> names;
    std::map<std::string, int> counts;
    for (const DeviceWork* work : call.work) {
        const std::string name =
            work->kind == DeviceWork::Kind::kernel ? short_name(decode(work->name)) : "[" + std::string(work->name) + "]";
        if (counts[name]++ == 0) names.push_back(name);
    }
    Json out = Json::array();
    for (const std::string& name : names) out.push_back(counts[name] > 1 ? fmt::format("{} x {}", counts[name], name) : name);
    return out;
}

Json way_json(const Way& way, const Json& reported, const std::vector<RangedWork>& calls, const std::optional<double>& possible) {
    const auto time = median_us(calls, &RangedWork::window);
    Json out = {{"id", way.id},
                {"name", way.name},
                {"time_us", json_number(time)},
                {"kernel_us", json_number(median_us(calls, &RangedWork::kernels))},
                {"host_us", json_number(median_us(calls, &RangedWork::host))},
                {"roof_fraction", json_number(time && possible ? std::optional(*possible / *time) : std::nullopt)},
                {"launches", nullptr},
                {"calls", calls.size()},
                {"kernels", Json::array()},
                {"error", json_number(number_at(reported, "error"))},
                {"largest_difference", json_number(number_at(reported, "largest_difference"))},
                {"right", reported.value("right", Json(nullptr))},
                {"absent", text_or_null(text_at(reported, "absent"))},
                {"code_to_change", way.code_to_change},
                {"coalescing", way.coalescing},
                {"shared_memory", way.shared_memory},
                {"within_sm", way.within_sm},
                {"across_sms", way.across_sms}};
    if (calls.empty()) return out;
    std::vector<double> launches;
    for (const RangedWork& call : calls) launches.push_back(double(call.work.size()));
    out["launches"] = json_number(median(launches));
    out["kernels"] = kernel_names(calls.back());
    return out;
}

Json prediction_json(const std::string& machine, const WaysPrediction& p) {
    return {{"machine", text_or_null(machine)},
            {"possible_us", json_number(p.possible)},
            {"predicted_us", json_number(p.predicted)},
            {"plan", text_or_null(p.plan)},
            {"command", text_or_null(p.command)},
            {"why_not", text_or_null(p.why_not)}};
}

}  // namespace

const std::vector<Way>& ways() {
    static const std::vector<Way> all = {
        {"manual", "operators one by one", "medium", "library", "library", "library", "library"},
        {"operator", "framework's operator", "none", "library", "library", "library", "library"},
        {"compiled", "torch.compile", "small", "compiler", "compiler", "compiler", "compiler"},
        {"triton", "Triton", "medium", "compiler", "compiler", "compiler", "by hand"},
        {"cuda", "CUDA by hand", "large", "by hand", "by hand", "by hand", "by hand"},
        {"derived", "Rooftile", "small", "derived", "derived", "derived", "derived"},
    };
    return all;
}

std::vector<RangedWork> ranged_work(const std::vector<Recorded>& recordings, std::string_view name) {
    std::vector<RangedWork> out;
    for (const Recorded& r : recordings) {
        // A programmatic launch starts while its predecessor still runs, and waits for it: the time they share is counted once, as its
        // predecessor's.
        struct Asked {
            const DeviceWork* work = nullptr;
            std::uint64_t alone = 0;  ///< from then on nothing that started before it runs
        };
        std::multimap<std::uint32_t, Asked> work_of;
        std::map<std::uint32_t, std::uint64_t> ended;  // by device
        for (const DeviceWork& work : r.work) {
            std::uint64_t& end = ended[work.device];
            work_of.emplace(work.correlation, Asked{&work, std::max(work.start, end)});
            end = std::max(end, work.end);
        }
        std::vector<RangedWork> of_process;
        for (const NamedRange& range : r.ranges) {
            if (range.name != name) continue;
            RangedWork one;
            one.host = double(range.end - range.start);
            std::vector<Asked> asked;
            const auto first = std::ranges::lower_bound(r.calls, range.start, {}, &DriverCall::start);
            for (auto call = first; call != r.calls.end() && call->start <= range.end; ++call) {
                const auto [begin, end] = work_of.equal_range(call->correlation);
                for (auto work = begin; work != end; ++work) asked.push_back(work->second);
            }
            if (asked.empty()) continue;
            std::ranges::stable_sort(asked, {}, [](const Asked& each) { return each.work->start; });
            std::uint64_t last = 0;
            for (const Asked& each : asked) {
                one.work.push_back(each.work);
                last = std::max(last, each.work->end);
                if (each.work->kind == DeviceWork::Kind::kernel && each.work->end > each.alone)
                    one.kernels += double(each.work->end - each.alone);
            }
            one.window = last > asked.front().alone ? double(last - asked.front().alone) : 0;
            of_process.push_back(std::move(one));
        }
        for (std::size_t i = 0; i + 1 < of_process.size(); ++i)
            of_process[i].step = double(of_process[i + 1].work.front()->start
                                        - std::min(of_process[i + 1].work.front()->start, of_process[i].work.front()->start));
        std::ranges::move(of_process, std::back_inserter(out));
    }
    return out;
}

WaysPrediction ways_prediction(const WaysRequest& request, const std::shared_ptr<const Machine>& machine) {
    WaysPrediction out;
    double possible = 0, predicted = 0;
    bool roof_known = true, time_known = true;
    for (const WayPart& part : request.what->parts) {
        const Operation* operation = find_operation(part.operation);
        if (!operation) {
            out.why_not = fmt::format("this build has no operation {}", part.operation);
            return out;
        }
        Given given(Given::Named::by_key);
        std::string command = fmt::format("rooftile plan {}", part.operation);
        for (const auto& [key, text] : part.request) {
            const std::string value = with_sizes(text, request.sizes, request.type);
            given.add(key, value);
            const bool positional = std::ranges::any_of(
                operation->fields(), [&](const Field& field) { return field.key == key && field.kind == FieldKind::positional; });
            command += " " + (positional ? "" : flag_of(key) + " ") + shell_quoted(value);
        }
        if (out.command.empty()) out.command = fmt::format("{} --machine {} --explain", command, machine->id);
        PlanDefaults defaults;
        defaults.top = 1, defaults.one_of_many = true;
        const PlanSet plans = operation->derive(machine, operation->problem(given), operation->request(given, defaults));
        if (plans.plans.empty()) {
            out.why_not = plans.refusal ? plans.refusal->message : "nothing is planned for it";
            return out;
        }
        const Plan& plan = plans.plans.front();
        out.plan += (out.plan.empty() ? "" : "; ") + operation->label(plan);
        if (plan.time_us) predicted += *plan.time_us;
        else time_known = false, out.why_not = "the machine file lacks " + joined(plan.unknown);
        PlanDetail detail;
        detail.depth = Depth::brief;
        const Explanation explanation = explain(*machine, plan, detail);
        if (explanation.attainability.empty()) roof_known = false;
        else possible += double(explanation.attainability.front().time_ns) / ns_a_us;
    }
    if (roof_known) out.possible = possible;
    // A call's time begins with its first kernel: the gap before it is not its own.
    const auto gap = machine->find("launch.gap_stream");
    if (time_known) out.predicted = predicted - (gap ? gap->value * us_a_second : 0);
    return out;
}

Json ways_document(const DocumentContext& context, const WaysRequest& request, const Json& report, const std::vector<Recorded>& recordings,
                   const std::shared_ptr<const Machine>& machine, const std::vector<std::string>& elsewhere) {
    const WaysPrediction here = ways_prediction(request, machine);
    Json sizes = Json::object();
    for (const auto& [name, usual] : request.what->sizes) sizes[name] = request.sizes.at(name);
    Json out = {{"schema", "rooftile/ways/1"},
                {"context", context_json(context)},
                {"operator", request.what->name},
                {"meaning", request.what->meaning},
                {"shape", with_sizes(request.what->shape, request.sizes, request.type)},
                {"sizes", std::move(sizes)},
                {"type", request.type},
                {"gpu", report.value("gpu", Json(nullptr))},
                {"device", report.value("device", Json(nullptr))},
                {"versions",
                 {{"python", report.value("python", Json(nullptr))},
                  {"torch", report.value("torch", Json(nullptr))},
                  {"triton", report.value("triton", Json(nullptr))}}},
                {"operand_sets", report.value("operand_sets", Json(nullptr))},
                {"operand_bytes", report.value("operand_bytes", Json(nullptr))},
                {"prediction", prediction_json(machine->id, here)},
                {"ways", Json::array()},
                {"elsewhere", Json::array()}};
    const Json reported = report.value("ways", Json::object());
    for (const Way& way : ways())
        out["ways"].push_back(
            way_json(way, reported.value(way.id, Json::object()), ranged_work(recordings, std::string("way ") + way.id), here.possible));
    for (const std::string& id : elsewhere) {
        WaysPrediction p;
        try {
            p = ways_prediction(request, std::make_shared<Machine>(shipped_machine(id)));
        } catch (const RequestError& error) {
            p.why_not = error.what();
        }
        out["elsewhere"].push_back(prediction_json(id, p));
    }
    return out;
}

}  // namespace rooftile
