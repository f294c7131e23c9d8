#include "rooftile/picture/pictures.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

std::string subject_of(const Json& document, const Json& row) {
    const Json& problem = row.contains("problem")        ? row.at("problem")
                          : document.contains("problem") ? document.at("problem")
                                                         : Json::object();
    std::string out = text_at(problem, "op");
    if (const Operation* operation = find_operation(out)) {
        try {
            out += " " + operation->short_name(operation->problem(operation->given_of_record(record_of(problem))));
        } catch (const RequestError&) {
            // A problem of another version: its name alone is said.
        }
    }
    const Json& machine = row.contains("machine") ? row.at("machine") : document.at("machine");
    return fmt::format("{} on {}", out, text_at(machine, "id"));
}

std::vector<Picture> pictures_of(const Json& document) {
    const std::string schema = text_at(document, "schema");
    struct Kind {
        std::string_view schema;
        std::vector<Picture> (*pictures)(const Json&);
    };
    static constexpr Kind kinds[] = {{"rooftile/plan/1", plan_pictures},
                                     {"rooftile/measurement/1", measurement_pictures},
                                     {"rooftile/sweep/1", sweep_pictures},
                                     {"rooftile/plans/1", planned_pictures},
                                     {"rooftile/validation/1", validation_pictures},
                                     {"rooftile/simulation/1", simulation_pictures},
                                     {"rooftile/profile/1", profile_pictures},
                                     {"rooftile/ways/1", ways_pictures},
                                     {"rooftile/mlp/1", mlp_pictures},
                                     {"rooftile/layer/1", layer_pictures},
                                     {"rooftile/units/1", unit_pictures},
                                     {"rooftile/probe/1", probe_pictures}};
    std::vector<Picture> out;
    for (const Kind& kind : kinds)
        if (kind.schema == schema) out = kind.pictures(document);
    if (schema.ends_with("_simulation/1")) out = layered_simulation_pictures(document);
    const std::string command = document.contains("context") ? text_at(document.at("context"), "command") : "";
    for (Picture& picture : out) picture.command = command;
    return out;
}

std::vector<Picture> pictures_of(const Json& document, std::string_view id, std::string_view asked) {
    std::vector<Picture> all = pictures_of(document);
    if (all.empty()) throw RequestError(fmt::format("{} has nothing that could be drawn", text_at(document, "schema")));
    if (id.empty()) return all;
    std::vector<std::string> names;
    for (Picture& picture : all) {
        if (picture.id == id) return {std::move(picture)};
        names.push_back(picture.id);
    }
    throw RequestError(fmt::format("{} {}: there are {}", asked, id, joined(names)));
}

Json pictures_document(const Json& document, const std::vector<Picture>& pictures) {
    Json out = {{"schema", "rooftile/pictures/1"}, {"context", document.value("context", Json::object())}, {"pictures", Json::array()}};
    for (const Picture& picture : pictures)
        out["pictures"].push_back({{"id", picture.id},
                                   {"title", picture.title},
                                   {"data", picture_json(picture)},
                                   {"vega_lite", vega_lite(picture)},
                                   {"svg", svg_text(picture)}});
    return out;
}

}  // namespace rooftile
