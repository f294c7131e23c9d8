#include "rooftile/layer/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "rooftile/machine/set.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

Json interval_json(const std::optional<PredictedInterval>& interval) {
    if (!interval) return nullptr;
    return Json::array({json_number(interval->low_us), json_number(interval->high_us)});
}

Json bytes_json(double weights, double cache, double activations) {
    return {{"weights", json_number(weights, "B")}, {"cache", json_number(cache, "B")}, {"activations", json_number(activations, "B")}};
}

Json gaps_json(const LaunchGaps& gaps) {
    return {{"stream", json_number(gaps.stream_us)}, {"graph", json_number(gaps.graph_us)}, {"pdl", json_number(gaps.programmatic_us)}};
}

Json kernel_json(const LayerKernel& k) {
    return {
        {"name", k.part.name},
        {"op", text_or_null(k.part.operation)},
        {"problem", text_or_null(k.time.problem)},
        {"time_us", json_number(k.time.time_us)},
        {"graph_us", json_number(k.time.graph_us)},
        {"least_us", json_number(k.time.least_us)},
        {"bound", text_or_null(k.time.bound)},
        {"bytes", bytes_json(k.part.bytes(TensorKind::weights), k.part.bytes(TensorKind::cache), k.part.bytes(TensorKind::activations))},
        {"flop", json_number(k.part.flops, "FLOP")},
        {"provenance", name_of(k.time.provenance)},
        {"interval_us", interval_json(k.time.interval)},
        {"plan", k.time.plan},
        {"command", text_or_null(k.time.command)}};
}

/// What cells and ends have alike.
Json sums_json(const LayerSums& sums, const std::vector<LayerKernel>& kernels) {
    Json out = {{"time_us", json_number(sums.time_us())},
                {"kernels_us", json_number(sums.kernels_us)},
                {"interval_us", interval_json(sums.interval)},
                {"least_us", json_number(sums.least_us)},
                {"gaps_us", gaps_json(sums.gaps)},
                {"bytes", bytes_json(sums.weight_bytes, sums.cache_bytes, sums.activation_bytes)},
                {"kernels", Json::array()}};
    for (const LayerKernel& k : kernels) out["kernels"].push_back(kernel_json(k));
    return out;
}

Json model_json(const LayerModel& model, const LayerRequest& request) {
    const ModelConfig& m = model.config;
    const LayerKind& kind = m.layers.at(std::size_t(request.layer));
    Json out = {{"config", model.file},
                {"family", m.family},
                {"type", m.type},
                {"hidden", m.hidden},
                {"heads", m.heads},
                {"kv_heads", m.kv_heads},
                {"head_dim", m.head_dim},
                {"intermediate", m.intermediate},
                {"activation", m.activation},
                {"vocab", m.vocab},
                {"experts", nullptr},
                {"latent", nullptr},
                {"quantization", nullptr},
                {"layers", m.layers.size()},
                {"layer", request.layer},
                {"layers_alike", m.layers_alike(kind)},
                {"window", json_number(kind.window > 0 ? std::optional(double(kind.window)) : std::nullopt)},
                {"weight_bytes", json_number(layer_weight_bytes(m, kind), "B")},
                {"cache_bytes_per_token", json_number(cache_bytes_per_token(m), "B")}};
    if (kind.experts)
        out["experts"] = {{"count", m.experts->count},
                          {"per_token", m.experts->per_token},
                          {"intermediate", m.experts->intermediate},
                          {"shared_intermediate", m.experts->shared_intermediate}};
    if (m.latent)
        out["latent"] = {{"q_rank", m.latent->q_rank},
                         {"kv_rank", m.latent->kv_rank},
                         {"nope_dim", m.latent->nope_dim},
                         {"rope_dim", m.latent->rope_dim},
                         {"v_dim", m.latent->v_dim}};
    if (m.quantization)
        out["quantization"] = {{"method", m.quantization->method}, {"bits", m.quantization->bits}, {"group", m.quantization->group}};
    return out;
}

Json room_json(const LayerRoom& room) {
    Json out = {{"bytes_per_token", json_number(room.bytes_per_token, "B")},
                {"room_bytes", json_number(room.room_bytes, "B")},
                {"tokens", json_number(room.tokens ? std::optional(double(*room.tokens)) : std::nullopt)},
                {"tensors", Json::array()}};
    for (const LayerRoom::Tensor& t : room.tensors)
        out["tensors"].push_back({{"name", t.name},
                                  {"written_by", t.written_by},
                                  {"last_read_by", t.last_read_by},
                                  {"bytes_per_token", json_number(t.bytes_per_token)}});
    return out;
}

std::string bytes_text(double bytes) { return bytes > 0 ? scaled_text(bytes, "B", 3) : "-"; }
std::string short_time(const std::optional<double>& us) { return us ? time_text(*us) : "?"; }
/// Of what is nothing beside a launch.
std::string least_time(const std::optional<double>& us) {
    constexpr double nothing_us = 0.05;
    return us && *us < nothing_us ? "-" : short_time(us);
}

/// "l2.size=25 MB, " of a cell on a machine that was changed.
std::string set_text(const Json& cell) {
    std::string out;
    for (const auto& [key, value] : cell.at("set").items()) out += fmt::format("{}={}, ", key, value.get<std::string>());
    return out;
}

std::string share_text(const Json& cell) {
    const double share = cell.at("prefill").get<double>();
    if (share == 0) return "decode: one new token a sequence";
    if (share == 1) return "prefill: all tokens of every sequence";
    return fmt::format("mixed: all tokens of {} of the sequences, rounded to whole ones, one of the others", percent_text(share));
}

std::string step_text(const Json& cell) {
    return fmt::format("{}batch {}, context {}; {}; rows of its products: {}", set_text(cell), cell.at("batch").dump(),
                       cell.at("context").dump(), share_text(cell), cell.at("tokens").dump());
}

std::string kernels_table(const Json& kernels, const std::optional<double>& total, const Terminal& terminal) {
    using Align = Table::Align;
    Table table({{"kernel", Align::left},
                 {"problem", Align::left, 3},
                 {"time"},
                 {"share", Align::right, 1, true},
                 {"least", Align::right, 0, true},
                 {"bound", Align::left},
                 {"weights", Align::right, 2},
                 {"cache", Align::right, 2},
                 {"activations", Align::right, 4},
                 {"90 % within", Align::right, 5, true},
                 {"from", Align::left},
                 {"plan", Align::left, 6}});
    for (const Json& k : kernels) {
        const auto time = number_at(k, "time_us"), least = number_at(k, "least_us");
        const Json &bytes = k.at("bytes"), &interval = k.at("interval_us");
        const bool refused = text_at(k, "provenance") == "refused";
        const std::string op = text_at(k, "op"), problem = text_at(k, "problem");
        table.row({{text_at(k, "name")},
                   {op.empty() ? problem : op + " " + problem},
                   {short_time(time)},
                   {time && total ? percent_text(*time / *total) : "-"},
                   {least_time(least)},
                   {text_at(k, "bound").empty() ? "-" : text_at(k, "bound")},
                   {bytes_text(bytes.at("weights").get<double>())},
                   {bytes_text(bytes.at("cache").get<double>())},
                   {bytes_text(bytes.at("activations").get<double>())},
                   {interval.is_null() ? "-" : fmt::format("{} to {}", time_text(interval.at(0)), time_text(interval.at(1)))},
                   {text_at(k, "provenance"), refused ? Tone::bad : Tone::plain},
                   {refused ? "below" : text_at(k, "plan")}});
    }
    std::string out = table.text(terminal);
    for (const Json& k : kernels)
        if (text_at(k, "provenance") == "refused")
            out += entry(text_at(k, "name"), displayable(text_at(k, "plan"), terminal.utf8), terminal);
    return out;
}

std::string gap_text(const Json& gaps, const char* key) { return short_time(number_at(gaps, key)); }

std::string sums_text(const Json& cell, const Terminal& terminal) {
    const Json &gaps = cell.at("gaps_us"), &bytes = cell.at("bytes"), &interval = cell.at("interval_us");
    const auto kernels = number_at(cell, "kernels_us"), least = number_at(cell, "least_us"), time = number_at(cell, "time_us");
    const std::string ratio = kernels && least && *kernels > 0 ? fmt::format(", {} of it", percent_text(*least / *kernels)) : "";
    std::string out = entry(
        "kernels", fmt::format("{} of {}; least possible {}{}", short_time(kernels), cell.at("kernels").size(), short_time(least), ratio),
        terminal);
    if (!interval.is_null())
        out += entry("interval", fmt::format("{} to {}", time_text(interval.at(0)), time_text(interval.at(1))), terminal);
    out += entry("gaps",
                 fmt::format("{} in a stream, {} in a graph, {} with programmatic launches in a graph", gap_text(gaps, "stream"),
                             gap_text(gaps, "graph"), gap_text(gaps, "pdl")),
                 terminal);
    out += entry("in a graph", short_time(time), terminal);
    const double weights = bytes.at("weights").get<double>(), cache = bytes.at("cache").get<double>();
    out +=
        entry("bytes",
              fmt::format(
                  "{} of weights, {} of the cache, {} of activations{}", bytes_text(weights), bytes_text(cache),
                  bytes_text(bytes.at("activations").get<double>()),
                  weights + cache > 0 ? fmt::format("; the cache has {} of the first two", percent_text(cache / (weights + cache))) : ""),
              terminal);
    return out;
}

/// One figure of every cell: batches downwards, contexts to the right, in several tables where the width is short.
std::string grid_text(const std::string& title, const std::vector<const Json*>& cells, std::string (*figure)(const Json&),
                      const Terminal& terminal) {
    std::vector<std::int64_t> batches, contexts;
    const auto add = [](std::vector<std::int64_t>& values, std::int64_t value) {
        if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    };
    for (const Json* cell : cells) add(batches, cell->at("batch")), add(contexts, cell->at("context"));
    const std::size_t across = contexts.size();
    std::vector<std::string> figures;  // of each batch, every context's; cells are in that order
    for (const Json* cell : cells) figures.push_back(figure(*cell));
    std::vector<int> widths;
    for (std::size_t i = 0; i < across; ++i) {
        widths.push_back(int(std::to_string(contexts[i]).size()));
        for (std::size_t at = i; at < figures.size(); at += across)
            widths.back() = std::max(widths.back(), columns_of(figures[at]));
    }
    constexpr int gap = 2;
    int first = columns_of(title);
    for (const std::int64_t batch : batches) first = std::max(first, int(std::to_string(batch).size()));
    std::string out;
    for (std::size_t begin = 0; begin < across;) {
        std::size_t end = begin;
        for (int width = gap + first; end < across; ++end) {
            width += gap + widths[end];
            if (terminal.width > 0 && width > terminal.width && end > begin) break;
        }
        std::vector<Table::Column> columns = {{title}};
        for (std::size_t i = begin; i < end; ++i) columns.push_back({std::to_string(contexts[i])});
        Table table(columns);
        for (std::size_t b = 0; b < batches.size(); ++b) {
            std::vector<Table::Cell> row = {{std::to_string(batches[b])}};
            for (std::size_t i = begin; i < end; ++i) row.push_back({figures[b * across + i]});
            table.row(std::move(row));
        }
        out += table.text(terminal);
        begin = end;
    }
    return out + "\n";
}

std::string time_figure(const Json& cell) { return short_time(number_at(cell, "time_us")); }
std::string least_figure(const Json& cell) { return short_time(number_at(cell, "least_us")); }
std::string share_or_unknown(const std::optional<double>& share) { return share ? percent_text(*share) : "?"; }
std::string attention_figure(const Json& cell) { return share_or_unknown(number_at(cell, "attention_share")); }
std::string cache_figure(const Json& cell) { return share_or_unknown(number_at(cell, "cache_share")); }
std::string gap_figure(const Json& cell) { return share_or_unknown(gaps_share(cell)); }

std::string grids_text(const Json& document, const Terminal& terminal) {
    std::string out;
    std::vector<std::vector<const Json*>> groups;  // of one machine and share of prefill
    for (const Json& cell : document.at("cells")) {
        const bool alike = !groups.empty() && groups.back().front()->at("set") == cell.at("set")
                           && groups.back().front()->at("prefill") == cell.at("prefill");
        if (!alike) groups.emplace_back();
        groups.back().push_back(&cell);
    }
    for (const auto& cells : groups) {
        out += "\n"
               + layer_heading(set_text(*cells.front()) + share_text(*cells.front()), Tone::strong, terminal)
               + "  batches downwards, contexts to the right\n";
        out += grid_text("time in a graph", cells, time_figure, terminal);
        out += grid_text("least possible", cells, least_figure, terminal);
        out += grid_text("attention of kernels", cells, attention_figure, terminal);
        out += grid_text("cache of bytes", cells, cache_figure, terminal);
        out += grid_text("gaps of time", cells, gap_figure, terminal);
    }
    const auto refused = [&]() -> const Json* {
        for (const Json& cell : document.at("cells"))
            for (const Json& k : cell.at("kernels"))
                if (text_at(k, "provenance") == "refused") return &k;
        return nullptr;
    }();
    if (refused) out += entry(text_at(*refused, "name") + " is refused", displayable(text_at(*refused, "plan"), terminal.utf8), terminal);
    return out;
}

/// One machine number over values: a row each.
std::string sweep_text(const Json& document, const Terminal& terminal) {
    Table table({{"set", Table::Align::left},
                 {"batch", Table::Align::right, 1},
                 {"context", Table::Align::right, 1},
                 {"prefill", Table::Align::right, 1},
                 {"time in a graph"},
                 {"least possible", Table::Align::right, 2},
                 {"attention of kernels", Table::Align::right, 3},
                 {"gaps of time", Table::Align::right, 4}});
    for (const Json& cell : document.at("cells")) {
        std::string set = set_text(cell);
        table.row({{set.substr(0, set.size() - std::min<std::size_t>(2, set.size()))},
                   {cell.at("batch").dump()},
                   {cell.at("context").dump()},
                   {percent_text(cell.at("prefill"))},
                   {time_figure(cell)},
                   {least_figure(cell)},
                   {attention_figure(cell)},
                   {gap_figure(cell)}});
    }
    return "\n" + table.text(terminal);
}

}  // namespace

std::string layer_heading(const std::string& text, Tone tone, const Terminal& terminal) {
    constexpr int indent = 2;
    const int width = terminal.width > 0 ? std::max(1, terminal.width - indent) : 0;
    return terminal.paint_lines(wrapped(displayable(text, terminal.utf8), width, indent), tone) + "\n";
}

std::optional<double> gaps_share(const Json& cell) {
    const auto gaps = number_at(cell.at("gaps_us"), "graph"), time = number_at(cell, "time_us");
    return gaps && time ? std::optional(*gaps / *time) : std::nullopt;
}

Json layer_document(const DocumentContext& context, const LayerModel& model, const LayerRequest& request, const Machine& machine) {
    return {{"schema", "rooftile/layer/1"},
            {"context", context_json(context)},
            {"machine", machine_json(context)},
            {"model", model_json(model, request)},
            {"tp", request.tp},
            {"closed_form_above_elements", nullptr},
            {"unknown", Json::array()},
            {"cells", Json::array()},
            {"ends", Json::array()},
            {"room", room_json(layer_room(machine, model.config,
                                          model.config.layers.at(std::size_t(request.layer)), request.tp))}};
}

void add_layer_cells(Json& document, LayerPlanner& planner, const std::vector<std::string>& set,
                     const LayerModel& model, const LayerRequest& request) {
    Json changed = Json::object();
    for (const std::string& assignment : set) {
        const auto parts = assignment_of(assignment);
        changed[std::string(parts->key)] = std::string(parts->text);
    }
    std::set<std::tuple<std::int64_t, std::int64_t>> ended;  // ends follow from tokens and sequences alone
    for (const LayerCell& cell : layer_cells(planner, model.config, request)) {
        const LayerSums sums = planner.sums(cell.kernels);
        const Json place = {{"set", changed},
                            {"batch", cell.batch},
                            {"context", cell.step.context},
                            {"prefill", json_number(cell.prefill_share)},
                            {"tokens", cell.step.tokens()}};
        Json row = place;
        row.update(sums_json(sums, cell.kernels));
        const bool timed = sums.kernels_us && *sums.kernels_us > 0;
        row["attention_share"] = json_number(timed ? std::optional(sums.attention_us / *sums.kernels_us) : std::nullopt);
        row["cache_share"] = json_number(sums.cache_share());
        document["cells"].push_back(std::move(row));
        if (!ended.emplace(cell.step.tokens(), cell.step.sequences()).second) continue;
        const std::vector<LayerKernel> kernels = layer_ends(planner, model.config, cell.step);
        Json ends = place;
        ends.update(sums_json(planner.sums(kernels), kernels));
        document["ends"].push_back(std::move(ends));
    }
    if (planner.took_closed_form()) document["closed_form_above_elements"] = most_followed_elements;
    for (const std::string& key : planner.unknown())
        if (Json& all = document["unknown"]; std::ranges::find(all, Json(key)) == all.end()) all.push_back(key);
}

std::string layer_text(const Json& document, const Terminal& terminal) {
    const Json &m = document.at("model"), &cells = document.at("cells"), &room = document.at("room");
    std::string out =
        layer_heading(fmt::format("layer {} of {}: {}, {} of {} layers are alike", m.at("layer").dump(),
                                  text_at(m, "config"), text_at(m, "family"), m.at("layers_alike").dump(),
                                  m.at("layers").dump()),
                      Tone::strong, terminal);
    out +=
        layer_heading(fmt::format("{}, hidden {}, {} heads of {} over {} of keys, intermediate {}; {} of "
                                  "weights a layer, {} of cache a token",
                                  text_at(m, "type"), m.at("hidden").dump(), m.at("heads").dump(),
                                  m.at("head_dim").dump(), m.at("kv_heads").dump(),
                                  m.at("intermediate").dump(), bytes_text(m.at("weight_bytes").get<double>()),
                                  bytes_text(m.at("cache_bytes_per_token").get<double>())),
                      Tone::plain, terminal);
    const std::string gpus =
        document.at("tp") == 1 ? "on " : fmt::format("one of {} GPUs that share each layer, ", document.at("tp").dump());
    const Json& machine = document.at("machine");
    out += layer_heading(fmt::format("{}{}  {}", gpus, text_at(machine, "id"), text_at(machine, "name")),
                         Tone::faint, terminal);
    const bool swept = !cells.empty() && !cells.front().at("set").empty();
    if (cells.size() == 1) {
        const Json& cell = cells.front();
        out += "\n" + layer_heading(step_text(cell), Tone::strong, terminal);
        out += kernels_table(cell.at("kernels"), number_at(cell, "kernels_us"), terminal) + sums_text(cell, terminal);
        const Json& ends = document.at("ends").front();
        out += "\n" + terminal.paint("the model's ends, once a step", Tone::strong) + "\n"
               + kernels_table(ends.at("kernels"), number_at(ends, "kernels_us"), terminal);
    } else out += swept ? sweep_text(document, terminal) : grids_text(document, terminal);
    if (!swept) {
        const auto tokens = number_at(room, "tokens"), bytes = number_at(room, "room_bytes");
        out +=
            entry("on chip",
                  fmt::format("a token's intermediates take {} at most at once{}", bytes_text(room.at("bytes_per_token").get<double>()),
                              tokens && bytes ? fmt::format("; the SMs' {} of shared memory hold those of {} tokens", bytes_text(*bytes),
                                                            number_text(*tokens))
                                              : ""),
                  terminal);
    }
    if (const Json& elements = document.at("closed_form_above_elements"); !elements.is_null())
        out += entry("products",
                     fmt::format("of more than {} elements: DRAM bytes by a closed form, times within 5 % of a plan by itself",
                                 elements.dump()),
                     terminal);
    for (const Json& key : document.at("unknown")) out += entry("unknown", key.get<std::string>(), terminal);
    return out;
}

}  // namespace rooftile
