// Public models' configurations, by name: tests/data/models/models.jsonl holds what their config.json says of their structure, and how many
// parameters they are said to have.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "rooftile/layer/model_config.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

struct PublicModel {
    std::string name, config;
    double billions;
};

inline std::vector<PublicModel> public_models() {
    std::vector<PublicModel> out;
    std::ifstream file(ROOFTILE_SOURCE_DIR "/tests/data/models/models.jsonl");
    for (std::string line; std::getline(file, line);) {
        const Json row = Json::parse(line);
        out.push_back({row.at("name"), row.at("config").dump(), row.at("billions")});
    }
    return out;
}

inline std::string public_config(const std::string& name) {
    for (const PublicModel& each : public_models())
        if (each.name == name) return each.config;
    throw std::runtime_error("no model " + name);
}

inline ModelConfig public_model(const std::string& name) { return model_config(public_config(name), name); }

}  // namespace rooftile
