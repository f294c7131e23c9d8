// The rows of a recorded run in bench/results/history, cut at their commas.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

/// `head`: how the line of column names begins. Lines that begin with # are comments.
inline std::vector<std::vector<std::string>> recorded_fields(const std::string& name, std::string_view head) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/bench/results/history/" + name);
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#' || line.starts_with(head)) continue;
        std::stringstream stream(line);
        auto& fields = rows.emplace_back();
        for (std::string text; std::getline(stream, text, ',');) fields.push_back(text);
    }
    return rows;
}

}  // namespace rooftile
