// Documents are held against docs/schema/ by tools/check-document, which has the library.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace rooftile {

class JsonSchema {
  public:
    /// The schema docs/schema/NAME.
    explicit JsonSchema(std::string name) : name_(std::move(name)) {}

    /// Every fault, one line each: "/plans/0/rank: 1.5 is not of type 'integer'". Empty where the document is right.
    template <class Json>
    std::string faults(const Json& document) const {
        const auto file = std::filesystem::temp_directory_path() / ("rooftile-document-" + std::to_string(getpid()));
        std::ofstream(file) << document;
        const std::string command = ROOFTILE_PYTHON " " ROOFTILE_SOURCE_DIR "/tools/check-document " + name_ + " 2>&1 <" +
                                    file.string();
        std::string out;
        std::FILE* pipe = popen(command.c_str(), "r");
        std::array<char, 4096> part;
        while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), n);
        const int status = pclose(pipe);
        std::filesystem::remove(file);
        EXPECT_EQ(status == 0, out.empty()) << command << ": " << status;
        return out;
    }

  private:
    std::string name_;
};

}  // namespace rooftile
