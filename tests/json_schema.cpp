#include "tests/json_schema.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace rooftile {

std::string JsonSchema::faults(const nlohmann::json& document) const { return faults_of_text(document.dump()); }
std::string JsonSchema::faults(const nlohmann::ordered_json& document) const { return faults_of_text(document.dump()); }

std::string JsonSchema::faults_of_text(const std::string& document) const {
    const auto file = std::filesystem::temp_directory_path() / ("rooftile-document-" + std::to_string(getpid()));
    std::ofstream(file) << document;
    const std::string command =
        ROOFTILE_PYTHON " " ROOFTILE_SOURCE_DIR "/tools/check-document " + name_ + " 2>&1 <" + file.string();
    std::string out;
    std::FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> part;
    while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), n);
    const int status = pclose(pipe);
    std::filesystem::remove(file);
    EXPECT_EQ(status == 0, out.empty()) << command << ": " << status;
    return out;
}

}  // namespace rooftile
