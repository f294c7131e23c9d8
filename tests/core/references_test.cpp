// What a program or a page names in brackets is there to be looked up.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

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

}  // namespace
}  // namespace rooftile
