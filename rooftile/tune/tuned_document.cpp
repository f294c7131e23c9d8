#include "rooftile/tune/tuned_document.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/report/number.hpp"

namespace rooftile {

Json choice_json(const TunedChoice& choice) {
    Json ratio = nullptr;
    if (const auto& r = choice.ratio)
        ratio = {{"median", r->median}, {"low", r->low}, {"high", r->high}, {"coverage", r->coverage}, {"samples", r->samples}};
    Json candidates = Json::array();
    for (const TunedCandidate& c : choice.candidates) candidates.push_back({{"rank", c.rank}, {"label", c.label}, {"time_us", c.time_us}});
    return {{"gpu", choice.place.gpu},
            {"power_limit_w", json_number(choice.place.power_limit_w)},
            {"driver", choice.place.driver},
            {"program", choice.place.program},
            {"date", choice.date},
            {"name", choice.name},
            {"problem", Json::parse(choice.problem)},
            {"rank", choice.rank},
            {"label", choice.label},
            {"config", Json::parse(choice.config)},
            {"first_config", Json::parse(choice.first)},
            {"time_us", choice.time_us},
            {"first_us", json_number(choice.first_us)},
            {"ratio", std::move(ratio)},
            {"candidates", std::move(candidates)}};
}

Json tuned_document(const DocumentContext& context, std::span<const TunedChoice> choices) {
    Json rows = Json::array();
    for (const TunedChoice& choice : choices) rows.push_back(choice_json(choice));
    return {{"schema", "rooftile/tuned/1"}, {"context", context_json(context)}, {"rows", std::move(rows)}};
}

std::string tuned_text(std::span<const TunedChoice> choices, const Terminal& terminal) {
    if (choices.empty()) return "no choices are kept\n";
    Table table({{"problem", Table::Align::left},
                 {"plan"},
                 {"configuration", Table::Align::left, 1},
                 {"time"},
                 {"plan 1", Table::Align::right, 2},
                 {"faster than plan 1", Table::Align::left},
                 {"timed", Table::Align::right, 3},
                 {"GPU", Table::Align::left, 5},
                 {"date", Table::Align::left, 4}});
    for (const TunedChoice& c : choices)
        table.row({{c.name},
                   {std::to_string(c.rank)},
                   {c.label},
                   {time_text(c.time_us)},
                   {c.first_us ? time_text(*c.first_us) : "failed"},
                   {c.ratio ? fmt::format("{:.3f} ({:.3f} to {:.3f})", c.ratio->median, c.ratio->low, c.ratio->high) : c.first_us ? "no plan is" : "-"},
                   {std::to_string(c.candidates.size())},
                   {c.place.gpu},
                   {c.date.substr(0, 10)}});
    return table.text(terminal);
}

}  // namespace rooftile
