// Every command of a worked page runs as it stands there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

TEST(WorkedPages, EveryCommandRuns) {
    int commands = 0;
    for (const auto& page : std::filesystem::directory_iterator(std::filesystem::path(ROOFTILE_SOURCE_DIR) / "docs/worked")) {
        std::ifstream text(page.path());
        for (std::string line; std::getline(text, line);) {
            if (!line.starts_with("    rooftile ")) continue;
            std::istringstream words(line);
            std::vector<std::string> arguments;
            for (std::string word; words >> word;) arguments.push_back(word);
            arguments.erase(arguments.begin());
            const Outcome outcome = run(arguments);
            EXPECT_EQ(outcome.code, 0) << page.path() << ":" << line << '\n' << outcome.err;
            ++commands;
        }
    }
    EXPECT_GE(commands, 8);  // of four pages in two languages
}

}  // namespace
}  // namespace rooftile
