#include "rooftile/ways/mlp.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rooftile/core/arithmetic.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/measure/statistics.hpp"
#include "rooftile/profile/document.hpp"
#include "rooftile/profile/explained.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/ways/ways.hpp"

namespace rooftile {
namespace {

constexpr double ns_per_us = 1e3, us_per_second = 1e6, element_bytes = 2;
/// Issue slots of PyTorch's gelu for an element, from erff and the conversions around it: its text compiles to 30 instructions, near
/// half of them on a pipe of half the rate. Fitted to batch 256 to 4096 of one recorded sweep; docs/ways.md has its error on points that
/// the fit did not see.
constexpr double gelu_slots = 46;
/// The device waits for the host for more than this share of a step, and the host takes most of it to ask.
constexpr double idle_share = 0.2, asking_share = 0.7;
/// What is not predicted may take this share of the kernels' time, or there is no prediction.
constexpr double unpredicted_share = 0.1;
/// The time grows by so much more or less than the work: a jump.
constexpr double jump_ratio = 1.15;
/// Of the places of all waves, that have work.
constexpr double fill_change = 0.1;

double weights_bytes(const MlpPoint& p) { return double(p[1]) * double(p[3]) * double(p[3]) * element_bytes; }
double step_flop(const MlpPoint& p) { return 2.0 * double(p[1]) * double(p[2]) * double(p[3]) * double(p[3]); }

/// Kernels alike of one point, a step.
struct StepKernel {
    std::string name, role;
    double calls = 0, mean = 0;       ///< mean: ns
    std::optional<double> predicted{};  ///< ns a call
    double ctas = 0, pieces = 0;  ///< pieces: CTAs' worth of work, where a CTA takes several
    double waves = 0, fill = 0;    ///< of CTAs; the share of their places that has work; 0: unknown
};

/// What happened from a little before the first range of that name, whose work heats the GPU, to what came after the last. A run has
/// hundreds of thousands of launches, and each point looks only at its own. Texts are those of `recordings`.
std::vector<Recorded> part_of(const std::vector<Recorded>& recordings, std::string_view range) {
    constexpr std::uint64_t before_ns = 100'000'000;
    std::vector<Recorded> out;
    for (const Recorded& r : recordings) {
        const auto named = [&](const NamedRange& each) { return each.name == range; };
        const auto first = std::ranges::find_if(r.ranges, named);
        if (first == r.ranges.end()) continue;
        auto after = first;
        while (after != r.ranges.end() && (named(*after) || after->start < std::prev(after)->end)) ++after;
        const std::uint64_t from = first->start - std::min(first->start, before_ns), to = after == r.ranges.end() ? UINT64_MAX : after->start;
        Recorded part;
        part.process = r.process, part.begin = from, part.devices = r.devices;
        const auto copy = [&](const auto& all, auto& into, auto start) {
            into.assign(std::ranges::lower_bound(all, from, {}, start), std::ranges::upper_bound(all, to, {}, start));
        };
        copy(r.work, part.work, &DeviceWork::start);
        copy(r.calls, part.calls, &DriverCall::start);
        part.ranges.assign(first, after);
        out.push_back(std::move(part));
    }
    return out;
}

class PointReader {
  public:
    PointReader(const MlpPoint& point, const std::vector<Recorded>& recordings, const std::string& range,
                const std::shared_ptr<const Machine>& machine)
        : point_(point), runs_(ranged_work(recordings, range)) {
        if (runs_.empty()) return;
        const Profile profile = profile_of(recordings, range);
        const ExplainedProfile known = explained(profile, machine);
        const double steps = double(runs_.size()) * double(point[0]);
        for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
            const KernelGroup& group = profile.kernels[i];
            StepKernel kernel{.name = short_name(known.names[i]), .role = known.names[i].role};
            kernel.calls = double(group.calls) / steps, kernel.mean = group.mean();
            kernel.predicted = known.kernels[i].predicted;
            kernel.ctas = double(group.grid[0]) * group.grid[1] * group.grid[2];
            kernel.pieces = kernel.ctas;
            const auto* product = group.sizes ? std::get_if<ProductSizes>(&*group.sizes) : nullptr;
            if (product && product->tiles > 0)
                kernel.pieces =
                    std::max(kernel.ctas, double(product->tiles) * std::max(1, group.cluster[0] * group.cluster[1] * group.cluster[2]));
            const double room = double(profile.devices[group.device].device.sms) * group.resident;
            if (room > 0) kernel.waves = whole_up(kernel.pieces / room), kernel.fill = kernel.pieces / room / kernel.waves;
            kernels_.push_back(kernel);
        }
    }

    Json json(const Json& reported) const {
        Json out = Json::object();
        for (std::size_t i = 0; i < mlp_parameters.size(); ++i) out[mlp_parameters[i]] = point_[i];
        for (const char* key :
             {"step_us", "wall_us", "kernel_us", "host_us", "predicted_us", "predicted_bound", "product_us", "pointwise_us", "gap_us",
              "asking_us", "tflops"})
            out[key] = nullptr;
        out["error"] = json_number(number_at(reported, "error"));
        out["right"] = reported.value("right", Json(nullptr));
        out["absent"] = text_or_null(text_at(reported, "absent"));
        out["flop"] = step_flop(point_);
        out["weights_bytes"] = weights_bytes(point_);
        out["runs"] = runs_.size();
        out["host_bound"] = nullptr;
        out["why_not"] = nullptr;
        out["kernels"] = Json::array();
        if (const auto wall = number_at(reported, "wall_us")) out["wall_us"] = json_number(*wall / double(point_[0]));
        if (runs_.empty()) return out;
        const auto a_step = [&](double RangedWork::*figure) {
            std::vector<double> all;
            for (const RangedWork& run : runs_) all.push_back(run.*figure / ns_per_us / double(point_[0]));
            return median(all);
        };
        const double step = a_step(&RangedWork::window), busy = a_step(&RangedWork::kernels), host = a_step(&RangedWork::host);
        out["step_us"] = json_number(step), out["kernel_us"] = json_number(busy), out["host_us"] = json_number(host);
        out["tflops"] = json_number(step_flop(point_) / step / 1e6);
        out["host_bound"] = step - busy > idle_share * step && host > asking_share * step;
        for (const StepKernel& k : kernels_)
            out["kernels"].push_back({{"name", k.name},
                                      {"role", k.role},
                                      {"calls", json_number(k.calls)},
                                      {"mean_us", json_number(k.mean / ns_per_us)},
                                      {"predicted_us", json_number(k.predicted ? std::optional(*k.predicted / ns_per_us) : std::nullopt)},
                                      {"ctas", json_number(k.ctas)},
                                      {"pieces", json_number(k.pieces)},
                                      {"waves", json_number(k.waves > 0 ? std::optional(k.waves) : std::nullopt)},
                                      {"wave_fill", json_number(k.waves > 0 ? std::optional(k.fill) : std::nullopt)}});
        return out;
    }

  private:
    const MlpPoint& point_;
    std::vector<RangedWork> runs_;
    std::vector<StepKernel> kernels_;
};

/// A launch, a trip to memory, then the longest of bytes at the rate of copies (in L2 where it holds them) and issue slots. Nothing where a
/// number is unknown.
std::optional<double> gelu_us(const Machine& machine, double elements) {
    const double bytes = 2 * elements * element_bytes;
    const Fact* l2 = machine.find("l2.size");
    const bool held = l2 && bytes <= l2->value && machine.find("l2.bandwidth");
    const auto clock = machine.number<Clock>("clock.boost");
    const auto launch = machine.number<Seconds>("launch.gap_graph");
    const auto sms = machine.count("sm.count"), partitions = machine.count("sm.partitions");
    if (!clock || !launch || !sms || !partitions) return std::nullopt;
    const char* memory = machine.find("dram.sustained_copy") ? "dram.sustained_copy" : "dram.bandwidth";
    const auto rate = bandwidth(machine, held ? "l2.bandwidth" : memory, *clock);
    const auto latency = latency_cycles(machine, held ? "l2.latency" : "dram.latency", *clock);
    if (!rate || !latency) return std::nullopt;
    constexpr double lanes = 32;
    const double slots = elements / lanes * gelu_slots / (*sms * *partitions * clock->value);
    return us_per_second * (launch->value + latency->value / clock->value + std::max(bytes / rate->value, slots));
}

/// Of a step: what the device takes, from the recorded kernels, and what the host takes to ask for them, whose pace is the median of the
/// curve's points; the longer one is the prediction.
void predict_points(Json& points, const Machine& machine) {
    const auto launches_of = [](const Json& point) {
        double launches = 0;
        for (const Json& k : point.at("kernels")) launches += k.at("calls").get<double>();
        return launches;
    };
    std::vector<double> paces;
    for (const Json& point : points)
        if (const auto host = number_at(point, "host_us"); host && launches_of(point) > 0) paces.push_back(*host / launches_of(point));
    const Fact* gap = machine.find("launch.gap_stream");
    for (Json& point : points) {
        if (!number_at(point, "step_us")) continue;
        double products = 0, pointwise = 0, known = 0, unknown = 0;
        std::vector<std::string> missing;
        for (Json& k : point.at("kernels")) {
            const bool is_gelu = text_at(k, "role") == "elementwise";
            if (is_gelu) k["predicted_us"] = json_number(gelu_us(machine, point.at("batch").get<double>() * point.at("dim").get<double>()));
            const auto predicted = number_at(k, "predicted_us");
            const double calls = k.at("calls").get<double>(), time = calls * k.at("mean_us").get<double>();
            (predicted ? known : unknown) += time;
            if (predicted) (is_gelu ? pointwise : products) += calls * *predicted;
            else missing.push_back(text_at(k, "name"));
        }
        const double gaps = gap ? launches_of(point) * gap->value * us_per_second : 0, asking = launches_of(point) * median(paces);
        point["product_us"] = json_number(products), point["pointwise_us"] = json_number(pointwise), point["gap_us"] = json_number(gaps);
        point["asking_us"] = json_number(asking);
        point["predicted_us"] = point["predicted_bound"] = point["why_not"] = nullptr;
        if (unknown > unpredicted_share * (known + unknown)) {
            point["why_not"] = "no prediction of " + joined(missing);
            continue;
        }
        const double device = products + pointwise + gaps;
        point["predicted_us"] = json_number(std::max(device, asking));
        point["predicted_bound"] = asking > device ? "host" : "device";
    }
}

/// The kernel that takes most of a step among those of matrix work; null: there is none.
const Json* main_product(const Json& point) {
    const Json* most = nullptr;
    double time = 0;
    for (const Json& k : point.at("kernels")) {
        const double own = k.at("calls").get<double>() * k.at("mean_us").get<double>();
        if (text_at(k, "role") != "elementwise" && own > time) most = &k, time = own;
    }
    return most;
}

/// Why the time of a step changes from one point to the next, beside its work.
std::vector<std::pair<std::string, std::string>> reasons_of(const Json& before, const Json& after, const std::optional<double>& l2_bytes) {
    std::vector<std::pair<std::string, std::string>> out;
    const Json *a = main_product(before), *b = main_product(after);
    if (a && b && text_at(*a, "name") != text_at(*b, "name")) {
        out.emplace_back("kernel", fmt::format("another kernel: {} -> {}", text_at(*a, "name"), text_at(*b, "name")));
    } else if (a && b) {
        const auto fill_a = number_at(*a, "wave_fill"), fill_b = number_at(*b, "wave_fill");
        if (fill_a && fill_b && std::abs(*fill_b - *fill_a) > fill_change)
            out.emplace_back("waves", fmt::format("waves of CTAs: {} -> {}, {} -> {} full", a->at("waves").dump(), b->at("waves").dump(),
                                                  percent_text(*fill_a), percent_text(*fill_b)));
    }
    if (before.at("kernels").size() != after.at("kernels").size() && out.empty())
        out.emplace_back("kernel",
                         fmt::format("kernels of a step: {} kinds -> {}", before.at("kernels").size(), after.at("kernels").size()));
    const Json &host_a = before.at("host_bound"), &host_b = after.at("host_bound");
    if (host_a.is_boolean() && host_b.is_boolean() && host_a != host_b)
        out.emplace_back("host", host_a.get<bool>() ? "no longer bound by the host, which asked too slowly before"
                                                    : "bound by the host, which asks too slowly");
    const double weights_a = before.at("weights_bytes").get<double>(), weights_b = after.at("weights_bytes").get<double>();
    if (l2_bytes && (weights_a > *l2_bytes) != (weights_b > *l2_bytes))
        out.emplace_back("L2", fmt::format("the weights ({}) {} L2 ({})", scaled_text(weights_b, "B"),
                                           weights_b > *l2_bytes ? "no longer stay in" : "now stay in", scaled_text(*l2_bytes, "B")));
    return out;
}

Json changes_of(const Json& points, const std::string& parameter, const std::optional<double>& l2_bytes) {
    Json out = Json::array();
    const Json* before = nullptr;
    for (const Json& after : points) {
        const auto time = number_at(after, "step_us");
        if (!time) continue;
        if (before) {
            const double growth = *time / before->at("step_us").get<double>(),
                         work = after.at("flop").get<double>() / before->at("flop").get<double>();
            const bool host_bound = before->at("host_bound").get<bool>() && after.at("host_bound").get<bool>();
            // Where the host is what takes the time, time does not follow work, and is expected not to.
            const bool jump = !host_bound && std::abs(std::log(growth / work)) > std::log(jump_ratio);
            const auto reasons = reasons_of(*before, after, l2_bytes);
            if (jump || !reasons.empty()) {
                Json change = {{"from", before->at(parameter)},
                               {"to", after.at(parameter)},
                               {"growth", json_number(growth)},
                               {"work_growth", json_number(work)},
                               {"jump", jump},
                               {"reasons", Json::array()}};
                for (const auto& [kind, text] : reasons) change["reasons"].push_back({{"kind", kind}, {"text", text}});
                out.push_back(std::move(change));
            }
        }
        before = &after;
    }
    return out;
}

}  // namespace

std::vector<MlpCurve> mlp_curves(const std::array<std::vector<std::int64_t>, 4>& values) {
    std::size_t along = 0;
    for (std::size_t i = 1; i < values.size(); ++i)
        if (values[i].size() > values[along].size()) along = i;
    std::vector<MlpPoint> others = {{values[0][0], values[1][0], values[2][0], values[3][0]}};
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i == along) continue;
        std::vector<MlpPoint> more;
        for (const MlpPoint& point : others)
            for (const std::int64_t value : values[i]) {
                more.push_back(point);
                more.back()[i] = value;
            }
        others = std::move(more);
    }
    std::vector<MlpCurve> out;
    for (const MlpPoint& other : others) {
        out.push_back({along, {}});
        for (const std::int64_t value : values[along]) {
            out.back().points.push_back(other);
            out.back().points.back()[along] = value;
        }
    }
    return out;
}

Json mlp_document(const DocumentContext& context, const std::vector<MlpCurve>& curves, const std::string& type, const Json& report,
                  const std::vector<Recorded>& recordings, const std::shared_ptr<const Machine>& machine) {
    const auto l2 = number_at(report, "l2_bytes");
    Json out = {{"schema", "rooftile/mlp/1"},
                {"context", context_json(context)},
                {"predicted_for", machine->id},
                {"gpu", report.value("gpu", Json(nullptr))},
                {"device", report.value("device", Json(nullptr))},
                {"versions", {{"python", report.value("python", Json(nullptr))}, {"torch", report.value("torch", Json(nullptr))}}},
                {"type", type},
                {"l2_bytes", json_number(l2)},
                {"curves", Json::array()}};
    const Json reported = report.value("points", Json::array());
    std::size_t index = 0;
    for (const MlpCurve& curve : curves) {
        const std::string parameter = mlp_parameters[curve.parameter];
        Json fixed = Json::object(), points = Json::array();
        for (std::size_t i = 0; i < mlp_parameters.size(); ++i)
            if (i != curve.parameter) fixed[mlp_parameters[i]] = curve.points.front()[i];
        for (const MlpPoint& point : curve.points) {
            const Json own = index < reported.size() ? reported.at(index) : Json::object();
            const std::string range = fmt::format("run {}", index);
            points.push_back(PointReader(point, part_of(recordings, range), range, machine).json(own));
            ++index;
        }
        predict_points(points, *machine);
        Json changes = changes_of(points, parameter, l2);
        out["curves"].push_back(
            {{"parameter", parameter}, {"fixed", std::move(fixed)}, {"points", std::move(points)}, {"changes", std::move(changes)}});
    }
    return out;
}

void predict_mlp(Json& document, const Machine& machine) {
    for (Json& curve : document.at("curves")) predict_points(curve.at("points"), machine);
}

std::string mlp_text(const Json& d, const Terminal& terminal) {
    const std::string gpu = text_at(d, "gpu");
    std::string out = terminal.paint(fmt::format("An MLP of PyTorch {} in {}, forward, {}", text_at(d.at("versions"), "torch"),
                                                 text_at(d, "type"), gpu.empty() ? "on the CPU: no device times" : "on " + gpu),
                                     Tone::strong)
                      + "\n";
    for (const Json& curve : d.at("curves")) {
        const std::string parameter = text_at(curve, "parameter");
        std::vector<std::string> fixed;
        for (const auto& [name, value] : curve.at("fixed").items()) fixed.push_back(fmt::format("{} {}", name, value.dump()));
        out += "\n" + terminal.paint(fmt::format("{}, with {}", parameter, joined(fixed)), Tone::strong) + "\n";
        Table table({{parameter},
                     {"a step"},
                     {"in kernels"},
                     {"host", Table::Align::right, 1, true},
                     {"predicted"},
                     {"error", Table::Align::right, 2, true},
                     {"TFLOP/s", Table::Align::right, 3, true},
                     {"bound by", Table::Align::left, 4, true},
                     {"from fp64", Table::Align::right, 5, true}});
        std::map<std::string, std::vector<std::string>> notes;  // of which points
        std::vector<std::string> order;
        for (const Json& point : curve.at("points")) {
            const auto step = number_at(point, "step_us"), kernels = number_at(point, "kernel_us"), host = number_at(point, "host_us"),
                       predicted = number_at(point, "predicted_us"), rate = number_at(point, "tflops"),
                       difference = number_at(point, "error");
            const Json& host_bound = point.at("host_bound");
            const bool wrong = point.at("right").is_boolean() && !point.at("right").get<bool>();
            table.row({{point.at(parameter).dump()},
                       {step ? time_text(*step) : !text_at(point, "absent").empty() ? "absent" : wrong ? "wrong" : "-"},
                       {kernels ? time_text(*kernels) : "-"},
                       {host ? time_text(*host) : "-"},
                       {predicted ? time_text(*predicted) + (text_at(point, "predicted_bound") == "host" ? "*" : "") : "-"},
                       {predicted && step ? signed_percent(*predicted / *step - 1) : "-"},
                       {rate ? number_text(*rate) : "-"},
                       {host_bound.is_boolean() ? host_bound.get<bool>() ? "host" : "device" : "-"},
                       {difference ? number_text(*difference, 2) : "-"}});
            for (const char* key : {"absent", "why_not"})
                if (const std::string text = text_at(point, key); !text.empty()) {
                    if (!notes.contains(text)) order.push_back(text);
                    notes[text].push_back(point.at(parameter).dump());
                }
        }
        out += table.text(terminal);
        for (const Json& change : curve.at("changes")) {
            std::vector<std::string> reasons;
            for (const Json& reason : change.at("reasons")) reasons.push_back(text_at(reason, "text"));
            const double growth = change.at("growth").get<double>(), work = change.at("work_growth").get<double>();
            std::string text = fmt::format("{:.3g} times the time for {:.3g} times the work", growth, work);
            text += change.at("jump").get<bool>() ? "; " + (reasons.empty() ? "why is not known" : joined(reasons))
                    : reasons.empty()             ? ""
                                                  : ", no jump; " + joined(reasons);
            out += entry(fmt::format("{} -> {}", change.at("from").dump(), change.at("to").dump()), displayable(text, terminal.utf8),
                         terminal);
        }
        for (const std::string& note : order)
            out += entry("note", displayable(fmt::format("{} {}: {}", parameter, joined(notes[note]), note), terminal.utf8), terminal);
    }
    out += "\n  "
           + wrapped(
               "a step: from a run's first kernel to the end of its last, by the steps, the median of the runs, each of which finds the "
               "device idle. predicted: "
               "products by their kernels' own plans, gelu by its bytes and issue slots, gaps by the machine's; or, where that is longer, "
               "what the host takes to ask (*): the curve's median time of a launch.",
               terminal.prose() - 2, 2)
           + "\n";
    return out;
}

}  // namespace rooftile
