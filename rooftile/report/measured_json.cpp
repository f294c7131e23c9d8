#include "rooftile/report/measured_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/report/counters.hpp"

namespace rooftile {

Json counters_json(const std::optional<CounterValues>& counters) {
    Json out = Json::object();
    if (!counters) return out;
    out["chip"] = counters->chip;
    out["launches"] = counters->launches;
    out["passes"] = counters->passes;
    for (const CounterField& field : counter_fields()) {
        std::optional<double> value = (*counters).*field.value;
        const std::string_view unit = field.unit;
        if (value && std::isfinite(*value) && unit.empty()) value = std::round(*value);
        out[field.key] = json_number(value, unit);
    }
    return out;
}

Json timings_json(const std::vector<Timing>& timings) {
    Json out = Json::array();
    for (const Timing& t : timings) out.push_back({{"part", t.part}, {"seconds", json_number(t.seconds)}});
    return out;
}

Json layers_json(const std::vector<SuiteLayer>& layers) {
    Json out = Json::array();
    for (const SuiteLayer& l : layers) out.push_back({{"model", l.model}, {"layer", l.layer}});
    return out;
}

Json confirmation_json(const std::optional<Confirmation>& confirmation) {
    if (!confirmation) return nullptr;
    return {{"samples", confirmation->ratio.samples},
            {"ratio", json_number(confirmation->ratio.median)},
            {"ratio_low", json_number(confirmation->ratio.low)},
            {"ratio_high", json_number(confirmation->ratio.high)},
            {"ratio_coverage", json_number(confirmation->ratio.coverage)},
            {"first_ratio", json_number(confirmation->first_ratio)}};
}

}  // namespace rooftile
