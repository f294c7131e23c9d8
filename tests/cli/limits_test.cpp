// docs/limits.md says what is planned, built and measured where: each cell is held to what the program does.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.hpp"

namespace rooftile {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream text(line.substr(1));
    for (std::string cell; std::getline(text, cell, '|');) {
        const auto first = cell.find_first_not_of(' ');
        cells.push_back(first == cell.npos ? "" : cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
    }
    return cells;
}

/// What stands between backticks, as words; those of a shell's quotes together.
std::vector<std::string> request_in(const std::string& cell) {
    const auto begin = cell.find('`') + 1;
    std::vector<std::string> words(1);
    bool quoted = false;
    for (const char c : cell.substr(begin, cell.rfind('`') - begin)) {
        if (c == '"') quoted = !quoted;
        else if (c == ' ' && !quoted) words.emplace_back();
        else words.back() += c;
    }
    return words;
}

/// "–", "planned" or "built".
std::string state_of(std::vector<std::string> request, const std::string& machine) {
    request.insert(request.begin(), "plan");
    request.insert(request.end(), {"--machine", machine, "--top", "1", "--json"});
    const Outcome outcome = run(request);
    if (outcome.code == 10) return "–";
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto plans = nlohmann::json::parse(outcome.out).at("plans");
    return !plans.empty() && plans[0].at("buildable") ? "built" : "planned";
}

TEST(Limits, SayWhatTheProgramDoes) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/docs/limits.md");
    std::vector<std::string> machines;
    int cells = 0;
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("|") || line.starts_with("|---")) continue;
        const std::vector<std::string> row = cells_of(line);
        if (machines.empty()) {
            for (std::size_t i = 1; i < row.size(); ++i) machines.push_back(request_in(row[i]).front());
            continue;
        }
        ASSERT_EQ(row.size(), machines.size() + 1) << line;
        for (std::size_t i = 1; i < row.size(); ++i, ++cells) {
            const std::string state = state_of(request_in(row[0]), machines[i - 1]);
            EXPECT_EQ(row[i] == "measured" ? "built" : row[i], state) << row[0] << " on " << machines[i - 1];
            if (row[i] == "measured") {
                EXPECT_EQ(machines[i - 1], "h100-sxm");
            }  // the only kind that was at hand
        }
    }
    EXPECT_GE(cells, 60);
}

}  // namespace
}  // namespace rooftile
