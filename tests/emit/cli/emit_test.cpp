// `emit` from outside: one file, the same text on stdout, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "rooftile/core/random.hpp"
#include "tests/cli/program.hpp"
#include "tests/core/example.hpp"
#include "tests/folder.hpp"
#include "tests/from_environment.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

class EmitVerb : public testing::Test {
  protected:
    static std::vector<std::string> command(const char* verb, const Operation& operation, std::vector<std::string> more) {
        std::vector<std::string> out = {verb, std::string(operation.name())};
        for (std::string& word : words_of(operation.example())) out.push_back(std::move(word));
        out.insert(out.end(), {"--machine", "h100-sxm"});
        out.insert(out.end(), more.begin(), more.end());
        return out;
    }
    const Folder own_folder_;
    const fs::path& folder_ = own_folder_.path();
};

TEST_F(EmitVerb, WritesOneFileOfTheTextThatBuildPrintsToo) {
    const Operation& operation = *operations()[test_seed() % operations().size()];
    SCOPED_TRACE(operation.name());
    const fs::path folder = folder_ / "new" / "folder";
    const Outcome made = run(command("emit", operation, {"-o", folder.string()}));
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.out, "");
    ASSERT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
    const fs::path file = fs::directory_iterator(folder)->path();
    EXPECT_EQ(file.extension(), ".cu");
    EXPECT_NE(made.err.find(file.string()), std::string::npos) << made.err;
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_NE(text.str().find("inline cudaError_t launch("), std::string::npos);
    EXPECT_EQ(run(command("emit", operation, {})).out, text.str());
    EXPECT_EQ(run(command("build", operation, {"--source"})).out, text.str());
}

// Sizes of any kind beside flags and other sizes in an argument are no pointer, whatever number they make together.
TEST_F(EmitVerb, TakesNoSizesForAPointer) {
    Random random(test_seed());
    for (int i = 0; i < 2; ++i) {
        const std::string rows = std::to_string(i == 0 ? 4096 : random.whole(1, 1 << 16)), heads = std::to_string(random.whole(1, 127));
        const Outcome made = run({"emit", "attention", "--batch", "2", "--heads", heads, "--kv-heads", "1", "--q", rows, "--dim", "64", "--mask", "window:1544", "--machine", "h100-sxm"});
        ASSERT_EQ(made.code, 0) << made.err;
        EXPECT_EQ(made.out.find("(char*)q"), made.out.npos) << rows << " rows, " << heads << " heads";
    }
}

TEST_F(EmitVerb, RefusesInOneLine) {
    const Operation& operation = *operations().front();
    const auto one_line = [&](std::vector<std::string> more, const char* says) {
        const Outcome refused = run(command("emit", operation, std::move(more)));
        EXPECT_EQ(refused.code, 2) << refused.err;
        EXPECT_EQ(refused.out, "");
        EXPECT_EQ(refused.error_lines(), 1) << refused.err;
        EXPECT_NE(refused.err.find(says), std::string::npos) << refused.err;
    };
    one_line({"--rank", "99"}, "--rank");
    std::ofstream(folder_ / "file") << "no folder";
    one_line({"-o", (folder_ / "file").string()}, "--out");
}

}  // namespace
}  // namespace rooftile
