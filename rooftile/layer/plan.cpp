#include "rooftile/layer/plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "rooftile/core/in_parallel.hpp"
#include "rooftile/core/operation.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/keys.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/set.hpp"
#include "rooftile/machine/units_text.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/plan_command.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {
namespace {

constexpr double us_per_second = 1e6;
constexpr std::size_t most_values = 100;

std::optional<double> microseconds(const Machine& machine, const char* key) {
    const auto seconds = machine.number<Seconds>(key);
    return seconds ? std::optional(seconds->value * us_per_second) : std::nullopt;
}

std::optional<double> times(std::optional<double> value, double count) { return value ? std::optional(*value * count) : std::nullopt; }

/// The least that bytes and FLOP take at the rates of the machine's datasheet. Activations that L2 holds need not come from DRAM.
std::optional<double> least_us(const Machine& machine, const LayerPart& part, const std::string& type) {
    const auto clock = machine.number<Clock>("clock.boost");
    // The datasheet's: what somebody measured once is beaten by who streams better.
    const auto rate = bandwidth(machine, "dram.bandwidth", clock);
    if (!rate) return std::nullopt;
    const double activations = part.bytes(TensorKind::activations);
    const Fact* l2 = machine.find("l2.size");
    const bool held = l2 && activations <= l2->value;
    const double seconds = (part.bytes() - (held ? activations : 0)) / rate->value;
    if (part.flops == 0) return us_per_second * seconds;
    // Packed weights are multiplied in the type of the other operand, which comes first.
    const std::string types = part.request.has("types") ? part.request.text("types") : type, first = types.substr(0, types.find(',')),
                      input = first.starts_with("fp8") ? "fp8" : first;
    double peak = 0;
    for (const std::string_view family : instruction_families())
        if (const auto rate = peak_flops(machine, family, input, "fp32", machine.number<Clock>("clock.tensor")))
            peak = std::max(peak, rate->value);
    return us_per_second * (peak > 0 ? std::max(seconds, part.flops / peak) : seconds);
}

}  // namespace

std::string_view name_of(Provenance provenance) {
    constexpr std::string_view names[] = {"planned", "modelled", "refused"};
    return names[std::size_t(provenance)];
}

std::optional<double> LayerSums::time_us() const {
    if (!kernels_us || !gaps.graph_us) return std::nullopt;
    return *kernels_us + *gaps.graph_us;
}

LayerPlanner::LayerPlanner(std::shared_ptr<const Machine> machine, std::size_t cells)
    : machine_(std::move(machine)), follows_all_(cells <= most_followed_cells) {
    gap_.stream_us = microseconds(*machine_, "launch.gap_stream");
    gap_.graph_us = microseconds(*machine_, "launch.gap_graph");
    if (!gap_.stream_us) missing({"launch.gap_stream"});
    if (!gap_.graph_us) missing({"launch.gap_graph"});
    const auto saving = microseconds(*machine_, "launch.programmatic_saving");
    if (gap_.graph_us && saving) gap_.programmatic_us = std::max(0.0, *gap_.graph_us - *saving);
}

void LayerPlanner::missing(const std::vector<std::string>& keys) {
    for (const std::string& key : keys)
        if (std::ranges::find(unknown_, key) == unknown_.end()) unknown_.push_back(key);
}

KernelTime LayerPlanner::planned_by_operation(const LayerPart& part) const {
    const std::string& name = part.operation;
    const Given& request = part.request;
    KernelTime out;
    out.provenance = Provenance::refused;
    const Operation* operation = find_operation(name);
    if (!operation) {
        out.plan = "this build has no operation " + name;
        return out;
    }
    try {
        const Problem problem = operation->problem(request);
        out.problem = operation->short_name(problem);
        PlanDefaults defaults{.top = 1, .one_of_many = true};
        if (!follows_all_ && request.has("m"))
            defaults.closed_form = std::stoll(request.text("m")) * std::stoll(request.text("n")) > most_followed_elements;
        const PlanSet plans = operation->derive(machine_, problem, operation->request(request, defaults));
        if (plans.refusal) {
            out.plan = plans.refusal->message;
            return out;
        }
        const Plan& plan = plans.plans.front();
        out.unknown = plan.unknown;
        out.provenance = Provenance::planned;
        out.closed_form = defaults.closed_form;
        out.plan = operation->label(plan);
        out.bound = plan.bound ? std::string(name_of(*plan.bound)) : "";
        out.command = plan_command(name, {operation->fields()}, request);
        // Operations predict a launch in a stream: the gap before it is counted once, with the layer's.
        const double gap = gap_.stream_us.value_or(0);
        const auto without_gap = [&](double us) { return std::max(0.0, us - gap); };
        if (plan.time_us) out.time_us = without_gap(*plan.time_us);
        if (plan.interval)
            out.interval =
                PredictedInterval{without_gap(plan.interval->low_us), without_gap(plan.interval->high_us), plan.interval->machine};
    } catch (const RequestError& error) { out.plan = error.what(); }
    return out;
}

KernelTime LayerPlanner::moved(const LayerPart& part) const {
    KernelTime out;
    const double activations = part.bytes(TensorKind::activations), others = part.bytes() - activations;
    out.problem = scaled_text(part.bytes(), "B");
    const auto clock = machine_->number<Clock>("clock.boost");
    const Fact* l2 = machine_->find("l2.size");
    const bool held = l2 && activations <= l2->value && machine_->find("l2.bandwidth");
    const char* memory_key = machine_->find("dram.sustained_copy") ? "dram.sustained_copy" : "dram.bandwidth";
    const auto memory = bandwidth(*machine_, memory_key, clock), cached = held ? bandwidth(*machine_, "l2.bandwidth", clock) : memory;
    const auto load = latency_cycles(*machine_, "dram.latency", clock), store = latency_cycles(*machine_, "l2.latency", clock);
    if (!clock) out.unknown.emplace_back("clock.boost");
    if (!memory) out.unknown.emplace_back(memory_key);
    if (!cached && held) out.unknown.emplace_back("l2.bandwidth");
    if (!load) out.unknown.emplace_back("dram.latency");
    if (!store) out.unknown.emplace_back("l2.latency");
    if (!out.unknown.empty()) {
        out.plan = "unknown: " + joined(out.unknown);
        return out;
    }
    // Loads that wait for each other and a store, and between them its bytes: the kernels before left activations in L2 where they fit, the
    // others come from memory.
    const double latency = (part.memory_loads * load->value + (part.cached_loads + part.launches) * store->value) / clock->value;
    const double memory_time = others / memory->value + (held ? 0 : activations / memory->value),
                 l2_time = held ? activations / cached->value : 0;
    out.time_us = us_per_second * (latency + memory_time + l2_time);
    out.bound = latency >= std::max(memory_time, l2_time) ? "latency" : memory_time >= l2_time ? "dram" : "l2";
    const int loads = part.memory_loads + part.cached_loads;
    out.plan = fmt::format("{} and a store, its bytes{}", loads == 1 ? "a load" : fmt::format("{} loads, one after the other", loads),
                           held ? ", activations in L2" : ", all from memory");
    out.interval = predicted_interval(*machine_, "layer-small", *out.time_us);
    return out;
}

KernelTime LayerPlanner::exchanged(double bytes, int tp) const {
    KernelTime out;
    out.problem = fmt::format("{} of {} GPUs", scaled_text(bytes, "B"), tp);
    out.bound = "link";
    const auto rate = bandwidth(*machine_, "link.bandwidth");
    const auto step = machine_->number<Seconds>("link.step");
    if (!rate) out.unknown.emplace_back("link.bandwidth");
    if (!step) out.unknown.emplace_back("link.step");
    if (!rate || !step) {
        out.plan = "link.bandwidth or link.step is unknown";
        return out;
    }
    // Each GPU reads all of the others' parts at once; or sums its share first, and then reads the others' sums.
    const double others = tp - 1, once = step->value + others * bytes / rate->value,
                 twice = 2 * step->value + 2 * others / tp * bytes / rate->value;
    out.time_us = us_per_second * std::min(once, twice);
    out.least_us = us_per_second * 2 * others / tp * bytes / rate->value;
    out.plan = once <= twice ? "in one step" : "in two steps";
    return out;
}

KernelTime LayerPlanner::time_of(const LayerPart& part, int tp) const {
    if (part.exchanged_bytes > 0) return exchanged(part.exchanged_bytes, tp);
    if (part.operation.empty()) return moved(part);
    if (part.why_not.empty()) {
        KernelTime out = planned_by_operation(part);
        if (part.flops > 0) return out;
        // Rows that the kernel in front wrote: a plan by itself reads them from memory.
        const KernelTime in_layer = moved(part);
        if (out.time_us && in_layer.time_us && *in_layer.time_us < *out.time_us)
            out.time_us = in_layer.time_us, out.bound = in_layer.bound, out.provenance = Provenance::modelled, out.interval = in_layer.interval;
        return out;
    }
    KernelTime out;
    out.provenance = Provenance::refused;
    out.plan = part.why_not;
    return out;
}

std::vector<std::vector<LayerKernel>> LayerPlanner::kernels(std::vector<std::vector<LayerPart>> lists, const std::string& type, int tp) {
    // Equal texts are equal requests.
    const auto request_of = [tp](const LayerPart& part) {
        if (part.exchanged_bytes > 0) return fmt::format("exchange {} {}", part.exchanged_bytes, tp);
        return part.operation.empty() ? fmt::format("move {} {} {} {} {}", part.bytes(), part.bytes(TensorKind::activations), part.launches,
                                                      part.memory_loads, part.cached_loads)
                                      : part.operation + " " + part.request.text() + part.why_not;
    };
    std::vector<std::pair<const LayerPart*, KernelTime*>> wanted;
    for (const auto& list : lists)
        for (const LayerPart& part : list)
            if (const auto [place, is_new] = known_.try_emplace(request_of(part)); is_new) wanted.emplace_back(&part, &place->second);
    in_parallel(wanted.size(), 0, [&](std::size_t i) { *wanted[i].second = time_of(*wanted[i].first, tp); });
    for (const auto& [part, time] : wanted) missing(time->unknown), took_closed_form_ = took_closed_form_ || time->closed_form;
    std::vector<std::vector<LayerKernel>> out;
    for (auto& list : lists) {
        out.emplace_back();
        for (LayerPart& part : list) {
            KernelTime time = known_.at(request_of(part));
            if (part.exchanged_bytes == 0) time.least_us = least_us(*machine_, part, type);
            if (time.time_us && gap_.graph_us) time.graph_us = *time.time_us + part.launches * *gap_.graph_us;
            out.back().push_back({std::move(part), std::move(time)});
        }
    }
    return out;
}

LayerSums LayerPlanner::sums(const std::vector<LayerKernel>& kernels) const {
    LayerSums out;
    out.kernels_us = out.least_us = 0;
    PredictedInterval interval{0, 0, machine_->id};
    bool all = true;
    for (const LayerKernel& k : kernels) {
        out.weight_bytes += k.part.bytes(TensorKind::weights);
        out.cache_bytes += k.part.bytes(TensorKind::cache);
        out.activation_bytes += k.part.bytes(TensorKind::activations);
        if (k.time.time_us && k.part.operation == "attention") out.attention_us += *k.time.time_us;
        if (out.kernels_us) out.kernels_us = k.time.time_us ? std::optional(*out.kernels_us + *k.time.time_us) : std::nullopt;
        if (out.least_us) out.least_us = k.time.least_us ? std::optional(*out.least_us + *k.time.least_us) : std::nullopt;
        all = all && k.time.interval;
        if (all) interval.low_us += k.time.interval->low_us, interval.high_us += k.time.interval->high_us;
    }
    if (all) out.interval = interval;
    double launches = 0;
    for (const LayerKernel& k : kernels) launches += k.part.launches;
    out.gaps = {times(gap_.stream_us, launches), times(gap_.graph_us, launches), times(gap_.programmatic_us, launches)};
    return out;
}

LayerStep layer_step(std::int64_t batch, std::int64_t context, double prefill_share, int tp) {
    LayerStep out;
    out.prefill = std::llround(prefill_share * double(batch));
    out.decode = batch - out.prefill;
    out.context = context;
    out.tp = tp;
    return out;
}

namespace {

/// Whether the machine's products refuse pairs, so that the gate is a kernel of its own.
bool gates_apart(LayerPlanner& planner, const ModelConfig& model, const LayerKind& kind, int tp) {
    for (LayerPart& part : layer_parts(model, kind, {.decode = 1, .prefill = 0, .context = 1, .tp = tp})) {
        if (!part.request.has("pairs") || !part.why_not.empty()) continue;
        std::vector<std::vector<LayerPart>> lists(1);
        lists.front().push_back(std::move(part));
        return planner.kernels(std::move(lists), model.type, tp).front().front().time.provenance == Provenance::refused;
    }
    return false;
}

}  // namespace

std::vector<LayerCell> layer_cells(LayerPlanner& planner, const ModelConfig& model, const LayerRequest& request) {
    const LayerKind& kind = model.layers.at(std::size_t(request.layer));
    const bool apart = gates_apart(planner, model, kind, request.tp);
    std::vector<LayerCell> out;
    std::vector<std::vector<LayerPart>> parts;
    for (const double share : request.prefill_shares)
        for (const std::int64_t batch : request.batches)
            for (const std::int64_t context : request.contexts) {
                out.push_back({batch, share, layer_step(batch, context, share, request.tp), {}});
                out.back().step.gates_apart = apart;
                parts.push_back(layer_parts(model, kind, out.back().step));
            }
    auto kernels = planner.kernels(std::move(parts), model.type, request.tp);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].kernels = std::move(kernels[i]);
    return out;
}

std::vector<LayerKernel> layer_ends(LayerPlanner& planner, const ModelConfig& model, const LayerStep& step) {
    return std::move(planner.kernels({end_parts(model, step)}, model.type, step.tp).front());
}

LayerRoom layer_room(const Machine& machine, const ModelConfig& model, const LayerKind& kind, int tp) {
    // Of many tokens, so that what a token needs is told apart from what all share.
    constexpr std::int64_t tokens = 1 << 10;
    const std::vector<LayerPart> parts = layer_parts(model, kind, {.decode = tokens, .prefill = 0, .context = 1, .tp = tp});
    struct Life {
        std::string name;
        std::size_t first, last;
        double bytes;
    };
    std::vector<Life> lives;
    // A norm's result is its input times a number a row: it needs no place of its own, but its input does for longer.
    std::map<std::string, std::string> same;
    const auto touch = [&](const PartTensor& tensor, std::size_t place) {
        if (tensor.kind != TensorKind::activations) return;
        const auto alias = same.find(tensor.name);
        const std::string& name = alias == same.end() ? tensor.name : alias->second;
        const auto found = std::ranges::find(lives, name, &Life::name);
        if (found == lives.end()) lives.push_back({name, place, place, tensor.bytes});
        else found->last = place, found->bytes = std::max(found->bytes, tensor.bytes);
    };
    for (std::size_t i = 0; i < parts.size(); ++i) {
        for (const PartTensor& tensor : parts[i].reads) touch(tensor, i);
        const bool norm = parts[i].name.starts_with("norm_");
        if (norm) same[parts[i].writes.front().name] = parts[i].reads.front().name;
        for (const PartTensor& tensor : parts[i].writes) touch(tensor, i);
    }
    LayerRoom out;
    for (const Life& life : lives) out.tensors.push_back({life.name, parts[life.first].name, parts[life.last].name, life.bytes / tokens});
    for (std::size_t i = 0; i < parts.size(); ++i) {
        double live = 0;
        std::vector<double> freed;  // what ends here may be written over by a result of its size
        for (const Life& life : lives)
            if (life.first < i && life.last == i) freed.push_back(life.bytes);
        for (const Life& life : lives) {
            if (life.first > i || life.last < i) continue;
            const auto place = life.first == i && i > 0 ? std::ranges::find(freed, life.bytes) : freed.end();
            if (place != freed.end() && parts[i].flops > 0) freed.erase(place);
            else live += life.bytes;
        }
        out.bytes_per_token = std::max(out.bytes_per_token, live / tokens);
    }
    const auto sms = machine.count("sm.count");
    const Fact* shared = machine.find("shared.per_cta");
    if (sms && shared) {
        out.room_bytes = *sms * shared->value;
        out.tokens = std::int64_t(*out.room_bytes / out.bytes_per_token);
    }
    return out;
}

std::vector<std::string> swept_numbers(std::string_view name, std::string_view text) {
    const auto assignment = assignment_of(text);
    const auto wrong = [&](const std::string& why) {
        return RequestError(
            fmt::format("{} is \"{}\": {}; accepted: KEY=VALUE,VALUE or KEY=FIRST..LAST by doubling, as in l2.size=25MB..200MB", name,
                        printable(text, 80), why));
    };
    if (!assignment) throw wrong("there is no =");
    // A number and its unit, which the last of several may say for all.
    struct Value {
        double number;
        std::string unit;
    };
    const auto value_of = [&](std::string_view part) {
        while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
        std::size_t digits = part.find_first_not_of("0123456789.");
        const std::string_view unit = digits == part.npos ? "" : part.substr(digits);
        const auto read = parse_number(part.substr(0, digits));
        const auto* number = std::get_if<NumberText>(&read);
        if (!number || number->value <= 0) throw wrong(fmt::format("\"{}\" is no number above 0", printable(part, 40)));
        return Value{number->value, std::string(unit)};
    };
    const std::string_view list = assignment->text;
    std::vector<Value> values;
    for (const std::string_view part : split(list, ',')) {
        const std::size_t dots = part.find("..");
        if (dots == part.npos) {
            values.push_back(value_of(part));
            continue;
        }
        Value first = value_of(part.substr(0, dots));
        const Value last = value_of(part.substr(dots + 2));
        if (first.unit.empty()) first.unit = last.unit;
        if (first.unit != last.unit) throw wrong(fmt::format("a range from {} to {} has two units", first.unit, last.unit));
        if (first.number > last.number) throw wrong("the range ends before it begins");
        for (; first.number < last.number; first.number *= 2) {
            values.push_back(first);
            if (values.size() > most_values) throw wrong(fmt::format("it has more than {} values", most_values));
        }
        values.push_back(last);
    }
    if (values.size() > most_values) throw wrong(fmt::format("it has more than {} values", most_values));
    std::vector<std::string> out;
    for (const Value& value : values) {
        const std::string& unit = value.unit.empty() ? values.back().unit : value.unit;
        std::string set =
            fmt::format("{}={}{}{}", assignment->key, shortest_text(value.number), unit.empty() || unit.front() == ' ' ? "" : " ", unit);
        if (std::ranges::find(out, set) == out.end()) out.push_back(std::move(set));
    }
    return out;
}

}  // namespace rooftile
