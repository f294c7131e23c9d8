// What a shell and a user's disk have of the program: completion, and the cache of kernels.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

/// What bash offers for the last of these words.
std::string completed(const std::vector<std::string>& words) {
    std::string line = "COMP_WORDS=(";
    for (const std::string& word : words) line += "'" + word + "' ";
    const Folder folder;
    const std::string script = (folder.path() / "completion").string();
    std::ofstream(script) << run({"completion", "bash"}).out << line << ")\nCOMP_CWORD=" << words.size() - 1 << "\n_rooftile\necho \"${COMPREPLY[@]}\"\n";
    std::string out;
    FILE* shell = popen(("bash '" + script + "'").c_str(), "r");
    char part[4096];
    while (shell && std::fgets(part, sizeof part, shell)) out += part;
    EXPECT_TRUE(shell && pclose(shell) == 0);
    return out;
}

/// The flags of a verb's help, a line each: what begins with dashes after two blanks.
std::vector<std::string> flags_in_help(const std::vector<std::string>& verb) {
    std::vector<std::string> words = verb, flags;
    words.push_back("-h");
    std::istringstream lines(run(words).out);
    for (std::string line; std::getline(lines, line);)
        if (const auto at = line.find("--"); line.starts_with("  ") && at != line.npos && at < 8)
            flags.push_back(line.substr(at, line.find_first_of(" ,[=", at) - at));
    return flags;
}

TEST(Man, HasEveryVerbAndFlagThatHelpHas) {
    const Outcome page = run({"man"});
    ASSERT_EQ(page.code, 0) << page.err;
    std::string plain = page.out;
    for (std::size_t at = 0; (at = plain.find("\\-", at)) != plain.npos;) plain.erase(at, 1);
    for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{{"plan", "gemm"}, {"sweep", "fuse"}, {"compare"}, {"machine", "show"}}) {
        const auto flags = flags_in_help(verb);
        EXPECT_GE(flags.size(), 2u);
        for (const std::string& flag : flags)
            if (flag != "--help" && flag != "--version") { EXPECT_NE(plain.find("\\fB" + flag + "\\fR"), plain.npos) << verb.front() << " " << flag; }
    }
    for (std::size_t at = 0; (at = plain.find("\n'", at)) != plain.npos; ++at) ADD_FAILURE() << plain.substr(at, 60);  // a roff command
}

TEST(Completion, OffersVerbsAndTheirFlags) {
    EXPECT_EQ(completed({"rooftile", "pl"}), "plan\n");
    EXPECT_EQ(completed({"rooftile", "plan", "ge"}), "gemm\n");
    EXPECT_EQ(completed({"rooftile", "plan", "gemm", "64x64x64", "--stag"}), "--stages\n");
    EXPECT_EQ(completed({"rooftile", "doctor", "--js"}), "--json\n");
    EXPECT_EQ(completed({"rooftile", "nothing", "of", "--th"}), "\n");
    for (const char* shell : {"zsh", "fish"}) EXPECT_NE(run({"completion", shell}).out.find("stages"), std::string::npos);
    EXPECT_EQ(run({"completion", "tcsh"}).code, 2);
}

TEST(Cache, TakesAwayKernelsAndNothingElse) {
    const Folder folder;
    const fs::path kept = folder.path() / "kept";
    fs::create_directory(kept);
    const auto write = [&](const std::string& name, int age_s) {
        std::ofstream(kept / name) << std::string(1000, 'x');
        fs::last_write_time(kept / name, fs::file_time_type::clock::now() - std::chrono::seconds(age_s));
    };
    write(std::string(32, 'a') + ".cubin", 30);
    write(std::string(32, 'b') + ".cubin", 10);
    write(std::string(32, 'c') + ".cubin", 20);
    write("notes.txt", 40);
    write("short.cubin", 40);
    Environment environment = without_gpu();
    environment["ROOFTILE_CACHE_DIR"] = kept.string();
    EXPECT_NE(run({"cache", "info"}, environment).out.find("kernels  3\n"), std::string::npos);
    EXPECT_EQ(run({"cache", "prune", "--most", "2000"}, environment).code, 0);
    EXPECT_FALSE(fs::exists(kept / (std::string(32, 'a') + ".cubin")));
    EXPECT_TRUE(fs::exists(kept / (std::string(32, 'c') + ".cubin")));
    EXPECT_EQ(run({"cache", "prune"}, environment).code, 2);
    EXPECT_EQ(run({"cache", "clear"}, environment).code, 0);
    EXPECT_FALSE(fs::exists(kept / (std::string(32, 'b') + ".cubin")));
    EXPECT_TRUE(fs::exists(kept / "notes.txt"));
    EXPECT_TRUE(fs::exists(kept / "short.cubin"));
    environment["ROOFTILE_CACHE"] = "off";
    EXPECT_EQ(run({"cache", "info"}, environment).code, 2);
}

// The user's file is taken where the command line is silent, and refused where it is wrong.
TEST(Settings, AreFlagsForEveryRun) {
    const Folder folder;
    const std::string file = (folder.path() / "rooftile.toml").string();
    Environment environment = without_gpu();
    environment["ROOFTILE_CONFIG"] = file;
    const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
    const std::vector<std::string> plan = {"plan", "gemm", "64x64x64", "--csv"};
    write("machine = \"h20\"\ntop = 1\n");
    EXPECT_EQ(run(plan, environment).out, run(with(plan, {"--machine", "h20", "--top", "1"})).out);
    EXPECT_EQ(run(with(plan, {"--machine", "h200-sxm"}), environment).out, run(with(plan, {"--machine", "h200-sxm", "--top", "1"})).out);
    EXPECT_EQ(run({"plan", "gemm", "64x64x64", "--numbers", "smem=64KiB"}, environment).code, 0);
    EXPECT_EQ(run({"doctor", "--json"}, environment).code, run({"doctor", "--json"}).code);
    for (const char* text : {"machin = \"h20\"\n", "machine = 1.5\n", "machine = \n", "machine = \"nowhere\"\n"}) {
        write(text);
        const Outcome outcome = run(plan, environment);
        EXPECT_EQ(outcome.code, 2) << text;
        EXPECT_EQ(outcome.error_lines(), 1) << outcome.err;
    }
    fs::remove(file);
    EXPECT_EQ(run(plan, environment).code, 2);  // it was asked for by name
    environment["ROOFTILE_CONFIG"] = "";
    EXPECT_EQ(run(plan, environment).code, 0);
}

}  // namespace
}  // namespace rooftile
