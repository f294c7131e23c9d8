// What a program or a page names in brackets is there to be looked up.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace rooftile {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::set<int> numbers_of(const std::string& text, const std::regex& pattern) {
    std::set<int> found;
    for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) found.insert(std::stoi((*i)[1]));
    return found;
}

template <class Visit>
void each_text(Visit visit) {
    const fs::path root = ROOFTILE_SOURCE_DIR;
    visit(root / "README.md", content(root / "README.md"));
    for (const char* folder : {"rooftile", "cli", "docs", "machines", "kernels", "python/rooftile"})
        for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
            static const std::set<std::string> texts = {".cpp", ".hpp", ".def", ".md", ".toml", ".cuh", ".py"};
            if (entry.is_regular_file() && texts.count(entry.path().extension())) visit(entry.path(), content(entry.path()));
        }
}

TEST(References, EveryRuleThatIsNamedIsInTheCatalogue) {
    const std::set<int> rules = numbers_of(content(fs::path(ROOFTILE_SOURCE_DIR) / "docs/method.md"), std::regex(R"re(<a id="m(\d+)"></a>)re"));
    EXPECT_EQ(rules.size(), 57u);
    const std::regex bracket(R"(\[[^\]\n]*\bM\d+[^\]\n]*\])"), rule(R"(\bM(\d+)\b)");
    std::size_t named = 0;
    each_text([&](const fs::path& path, const std::string& text) {
        for (std::sregex_iterator i(text.begin(), text.end(), bracket), end; i != end; ++i)
            for (const int number : numbers_of(i->str(), rule)) {
                ++named;
                EXPECT_TRUE(rules.count(number)) << path << ": " << i->str();
            }
    });
    EXPECT_GT(named, 100u);
}

TEST(References, EveryFactThatIsNamedIsAmongTheFacts) {
    const std::string facts = "\n" + content(fs::path(ROOFTILE_SOURCE_DIR) / "docs/facts.md");
    const std::set<int> known = numbers_of(facts, std::regex(R"(\n(\d+)\. )"));
    std::size_t named = 0;
    each_text([&](const fs::path& path, const std::string& text) {
        for (const int number : numbers_of(text, std::regex(R"(docs/facts\.md,? (?:fact )?(\d+))"))) {
            ++named;
            EXPECT_TRUE(known.count(number)) << path << ": fact " << number;
        }
    });
    EXPECT_GT(named, 20u);
}

/// Commands and shown output, without what is said of them; the table of results.
std::vector<std::string> shown_lines(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream lines(text);
    bool results = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("<!-- ")) results = line.starts_with("<!-- results");
        if (!results && !line.starts_with("    ")) continue;
        if (!results)
            if (const std::size_t remark = line.find("  # "); remark != line.npos) line.resize(remark);
        line.erase(line.find_last_not_of(' ') + 1);
        out.push_back(line);
    }
    return out;
}

// A newcomer sees a command at once, and readers of either language the same commands and figures.
TEST(Readme, IsShortAndTheSameInBothLanguages) {
    const std::string english = content(fs::path(ROOFTILE_SOURCE_DIR) / "README.md"), chinese = content(fs::path(ROOFTILE_SOURCE_DIR) / "README.zh.md");
    EXPECT_LE(std::count(english.begin(), english.end(), '\n'), 170);
    const std::size_t command = english.find("\n    $ ");
    ASSERT_NE(command, english.npos);
    EXPECT_LE(std::count(english.begin(), english.begin() + std::ptrdiff_t(command), '\n'), 25);
    EXPECT_EQ(shown_lines(english), shown_lines(chinese));
}

}  // namespace
}  // namespace rooftile
