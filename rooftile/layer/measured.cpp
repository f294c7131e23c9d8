#include "rooftile/layer/measured.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>

#include "rooftile/report/measured_json.hpp"
#include "rooftile/report/number.hpp"
#include "rooftile/report/prediction_error.hpp"

namespace rooftile {
namespace {

Json interval_json(const std::optional<MedianInterval>& time) {
    if (!time) return nullptr;
    return {{"median", json_number(time->median)},
            {"low", json_number(time->low)},
            {"high", json_number(time->high)},
            {"samples", time->samples}};
}

std::optional<double> median_of(const std::optional<MedianInterval>& time) { return time ? std::optional(time->median) : std::nullopt; }

std::string time(const std::optional<double>& us) { return us ? time_text(*us) : "-"; }

/// How far a prediction is from what was measured, with its sign.
std::string error_text(const std::optional<double>& predicted, const std::optional<double>& measured) {
    return predicted && measured ? fmt::format("{:+.1f} %", 100 * (*predicted / *measured - 1)) : "-";
}

/// Of one number of each kernel.
template <class Number>
std::optional<double> sum_of(const std::vector<LayerKernelTime>& kernels, const Number& number) {
    double sum = 0;
    for (const LayerKernelTime& kernel : kernels) {
        const std::optional<double> each = number(kernel);
        if (!each) return std::nullopt;
        sum += *each;
    }
    return sum;
}

/// Read and written; empty where nothing was counted.
std::optional<double> dram_bytes_of(const std::optional<CounterValues>& counters) {
    if (!counters || !counters->dram_read_bytes || !counters->dram_write_bytes) return std::nullopt;
    return *counters->dram_read_bytes + *counters->dram_write_bytes;
}

std::string bytes_text(const std::optional<double>& bytes) {
    return bytes ? scaled_text(*bytes, "B", 3) : "-";
}

std::optional<double> difference(const std::optional<double>& a, const std::optional<double>& b) {
    return a && b ? std::optional(*a - *b) : std::nullopt;
}

/// Over the kernels that have both times.
std::optional<PredictionError> error_of(const std::vector<LayerKernelTime>& kernels) {
    std::vector<double> errors;
    for (const LayerKernelTime& kernel : kernels)
        if (kernel.predicted_us && kernel.measured_us) errors.push_back(*kernel.predicted_us / kernel.measured_us->median - 1);
    return prediction_error(errors);
}

}  // namespace

bool MeasuredLayer::right() const {
    return !errors.empty() && std::ranges::all_of(errors, [](const LayerError& error) { return error.ok(); }) && same_bits.value_or(true);
}

std::optional<double> MeasuredLayer::sum_us() const {
    return sum_of(kernels, [](const LayerKernelTime& kernel) { return median_of(kernel.measured_us); });
}
std::optional<double> MeasuredLayer::predicted_us() const {
    return sum_of(kernels, [](const LayerKernelTime& kernel) { return kernel.predicted_us; });
}
std::optional<double> MeasuredLayer::least_us() const {
    return sum_of(kernels, [](const LayerKernelTime& kernel) { return kernel.least_us; });
}

std::optional<double> MeasuredLayer::dram_bytes() const {
    return sum_of(kernels, [](const LayerKernelTime& kernel) { return dram_bytes_of(kernel.counters); });
}

const LayerBaseline* MeasuredLayer::best_baseline() const {
    const LayerBaseline* best = nullptr;
    for (const LayerBaseline& each : baselines)
        if (each.time_us && (!best || *each.time_us < *best->time_us)) best = &each;
    return best;
}

Json measured_layer_document(const DocumentContext& context, const MeasuredLayer& layer,
                             LayerPlanner& planner) {
    LayerRequest request;
    request.layer = layer.layer;
    request.batches = {layer.step.sequences()}, request.contexts = {layer.step.context};
    request.prefill_shares = {layer.step.prefill > 0 ? 1.0 : 0.0};
    Json out = layer_document(context, layer.model, request, *planner.machine());
    add_layer_cells(out, planner, {}, layer.model, request);

    Json errors = Json::array(), baselines = Json::array();
    for (const LayerError& error : layer.errors)
        errors.push_back({{"tensor", error.tensor},
                          {"row", json_number(error.row)},
                          {"element", json_number(error.element)},
                          {"all", json_number(error.all)},
                          {"bound", json_number(error.bound)},
                          {"changed", error.changed},
                          {"ok", error.ok()}});
    for (const LayerBaseline& each : layer.baselines)
        baselines.push_back({{"name", each.name}, {"time_us", json_number(each.time_us)}, {"absent", text_or_null(each.absent)}});
    const std::optional<double> measured = median_of(layer.layer_us);
    const LayerBaseline* best = layer.best_baseline();
    Json prediction = nullptr;
    if (const auto error = error_of(layer.kernels)) prediction = {{"mean", json_number(error->mean)}, {"bias", json_number(error->bias)}};
    Json& cell = out.at("cells").at(0);
    Json& kernels = cell.at("kernels");
    assert(kernels.size() == layer.kernels.size());  // both are of layer_parts()
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        kernels[i]["ran"] = text_or_null(layer.kernels[i].plan);
        kernels[i]["measured_us"] = interval_json(layer.kernels[i].measured_us);
        kernels[i]["counters"] = counters_json(layer.kernels[i].counters);
    }
    cell["measured"] = {
        {"time_us", interval_json(layer.layer_us)},
        {"kernels_us", json_number(layer.sum_us())},
        {"gaps_us", json_number(difference(measured, layer.sum_us()))},
        {"counters", counters_json(layer.counters)},
        {"kernels_dram_bytes", json_number(layer.dram_bytes(), "B")},
        {"prediction_error", std::move(prediction)},
        {"sets", layer.sets},
        {"set_bytes", layer.set_bytes},
        {"verified", layer.right()},
        {"same_bits", layer.same_bits ? Json(*layer.same_bits) : Json(nullptr)},
        {"errors", std::move(errors)},
        {"baseline", text_or_null(layer.baseline_program)},
        {"baselines", std::move(baselines)},
        {"ratio", json_number(best && measured ? std::optional(*best->time_us / *measured) : std::nullopt)},
        {"notes", layer.notes}};
    return out;
}

std::string measured_layer_text(const DocumentContext& context, const MeasuredLayer& layer, const Terminal& terminal) {
    const LayerStep& step = layer.step;
    std::string out = layer_heading(
        step.prefill > 0 ? fmt::format("one {} layer, {} x {} tokens prefilled", layer.model.config.family,
                                       step.prefill, step.context)
                         : fmt::format("one {} layer, {} sequences decode a token each over {} keys",
                                       layer.model.config.family, step.decode, step.context),
        Tone::strong, terminal);
    out += layer_heading(fmt::format("on {}, {} layers in a graph, {} of weights and cache each",
                                     context.gpu ? context.gpu->gpu : context.machine_name, layer.sets,
                                     scaled_text(double(layer.set_bytes), "B")),
                         Tone::plain, terminal)
           + "\n";
    const auto left = Table::Align::left;
    Table table({{"kernel", left},
                 {"plan", left, 5, true},
                 {"predicted"},
                 {"measured"},
                 {"error"},
                 {"least", Table::Align::right, 3},
                 {"DRAM", Table::Align::right, 2},
                 {"share", Table::Align::right, 4, true}});
    const std::optional<double> sum = layer.sum_us(), whole = median_of(layer.layer_us);
    for (const LayerKernelTime& kernel : layer.kernels) {
        const std::optional<double> measured = median_of(kernel.measured_us);
        table.row({{kernel.name},
                   {displayable(kernel.plan, terminal.utf8)},
                   {time(kernel.predicted_us)},
                   {time(measured)},
                   {error_text(kernel.predicted_us, measured)},
                   {time(kernel.least_us)},
                   {bytes_text(dram_bytes_of(kernel.counters))},
                   {measured && sum ? percent_text(*measured / *sum) : "-"}});
    }
    table.row({{"sum"},
               {""},
               {time(layer.predicted_us())},
               {time(sum)},
               {error_text(layer.predicted_us(), sum)},
               {time(layer.least_us())},
               {bytes_text(layer.dram_bytes())},
               {""}});
    table.row({{"layer"},
               {""},
               {time(layer.predicted_us())},
               {time(whole)},
               {error_text(layer.predicted_us(), whole)},
               {time(layer.least_us())},
               {bytes_text(dram_bytes_of(layer.counters))},
               {""}});
    out += table.text(terminal);
    if (sum && whole)
        out += "  "
               + wrapped(fmt::format("sum: kernels by themselves; layer: in their order, {} {} that sum ({:.1f} %)",
                                     time_text(std::abs(*whole - *sum)), *whole >= *sum ? "more than" : "less than",
                                     100 * std::abs(*whole / *sum - 1)),
                         terminal.prose() - 2, 2)
               + "\n";
    if (const auto error = error_of(layer.kernels)) out += "  predictions of the kernels: " + prediction_error_text(*error) + "\n";
    if (layer.counters)
        out += "  "
               + wrapped(fmt::format(
                             "DRAM: bytes read and written by one launch, the mean of {} over all sets on {}",
                             layer.counters->launches, displayable(layer.counters->chip, terminal.utf8)),
                         terminal.prose() - 2, 2)
               + "\n";
    out += "\n";
    for (const LayerError& error : layer.errors) {
        std::string text = fmt::format("{:.2f} % of a row's root mean square at most, bound {:.2f} %; {:.2f} % of all", 100 * error.row,
                                       100 * error.bound, 100 * error.all);
        if (error.changed > 0) text += fmt::format("; {} elements of other keys were written", error.changed);
        out += entry(error.tensor, (error.ok() ? "right: " : "WRONG: ") + text, terminal);
    }
    if (layer.same_bits && !*layer.same_bits)
        out += entry("x_out", "WRONG: after timing its bits are others than when it was verified", terminal);
    if (!layer.baselines.empty()) {
        out += "\n";
        for (const LayerBaseline& each : layer.baselines)
            out +=
                entry(each.name, each.time_us ? time_text(*each.time_us) : "absent: " + displayable(each.absent, terminal.utf8), terminal);
        if (const LayerBaseline* best = layer.best_baseline(); best && whole)
            out += entry(layer.baseline_program, fmt::format("{:.3f} times as fast as its best, {}", *best->time_us / *whole, best->name),
                         terminal);
    }
    for (const std::string& note : layer.notes) out += "\nnote  " + wrapped(displayable(note, terminal.utf8), terminal.prose() - 6, 6);
    if (!layer.notes.empty()) out += "\n";
    return out;
}

}  // namespace rooftile
