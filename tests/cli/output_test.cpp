// --out on a disk that is full, and a run of plans that Ctrl-C ends.
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "rooftile/core/operation.hpp"
#include "tests/cli/program.hpp"
#include "tests/core/example.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

class OutFile : public testing::Test {
  protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override { fs::remove_all(folder_); }

    /// Verbs that write a result, with --out in all of them.
    std::vector<std::vector<std::string>> commands() const {
        std::vector<std::vector<std::string>> all = {{"machine", "list", "--json"}, {"machine", "show", "h100-sxm"}};
        for (const Operation* operation : operations()) {
            std::vector<std::string> plan = {"plan", std::string(operation->name())};
            for (const std::string& word : words_of(operation->example())) plan.push_back(word);
            plan.insert(plan.end(), {"--machine", "h100-sxm"});
            all.push_back(plan);
            for (const char* format : {"--json", "--csv", "--jsonl"}) all.push_back(plan), all.back().emplace_back(format);
            all.push_back({"sweep", std::string(operation->name()), "--draw", "3", "--plan-only", "--machine", "h100-sxm"});
        }
        return all;
    }
    std::vector<std::string> left() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
        return names;
    }
    std::string text() const {
        std::ifstream file(out_);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    const fs::path folder_ = fs::temp_directory_path() / ("rooftile-full-" + std::to_string(getpid())), out_ = folder_ / "out";
};

// A limit of a file's size stands for a disk with so much room: what was written of the file is at the end as little there.
TEST_F(OutFile, AFullDiskIsAFaultAndLeavesNothing) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (std::vector<std::string> command : commands()) {
        command.insert(command.end(), {"--out", out_.string()});
        const rlimit room{100, before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &room), 0);
        const Outcome outcome = run(command);
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
        const std::string name = command[0] + " " + command[1];
        EXPECT_EQ(outcome.code, 1) << name << ": " << outcome.err;
        EXPECT_NE(outcome.err.find("--out"), std::string::npos) << outcome.err;
        EXPECT_TRUE(left().empty()) << name << " leaves " << left().front();
        fs::remove(out_);
    }
}

TEST_F(OutFile, AFullDeviceIsAFault) {
    for (std::vector<std::string> command : commands()) {
        command.insert(command.end(), {"--out", "/dev/full"});
        const Outcome outcome = run(command);
        EXPECT_EQ(outcome.code, 1) << command[0] << " " << command[1] << ": " << outcome.err;
        EXPECT_NE(outcome.err.find("--out /dev/full: cannot write: No space left on device"), std::string::npos) << outcome.err;
    }
}

TEST_F(OutFile, APlaceThatCannotBeWrittenIsAWrongRequest) {
    expect_refused({"machine", "list", "--json", "--out", "/nowhere/out"}, {"--out /nowhere/out: cannot write"});
    expect_refused({"machine", "list", "--json", "--out", folder_.string()}, {"--out", "cannot write"});
    EXPECT_TRUE(left().empty());
}

// 2000 plans take a minute; the rows that are there when Ctrl-C comes stay, each whole.
TEST_F(OutFile, ASweepOfPlansKeepsItsRowsOnCtrlC) {
    for (const Operation* operation : operations()) {
        std::vector<std::string> words = {program(),     "sweep",     std::string(operation->name()), "--draw", "2000",
                                          "--plan-only", "--machine", "h100-sxm",                     "--out",  out_.string()};
        auto pointers = detail::pointers(words);
        const pid_t child = fork();
        if (child == 0) {
            close(2);
            execv(pointers[0], pointers.data());
            _exit(127);
        }
        for (int i = 0; i < 2400 && std::ranges::count(text(), '\n') < 4; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(25));
        kill(child, SIGINT);
        int status = 0;
        waitpid(child, &status, 0);
        ASSERT_TRUE(WIFEXITED(status));
        EXPECT_EQ(WEXITSTATUS(status), 130) << operation->name();
        std::ifstream file(out_);
        int rows = 0;
        for (std::string line; std::getline(file, line); ++rows) {
            const auto row = nlohmann::json::parse(line);
            EXPECT_EQ(row.contains(rows == 0 ? "schema" : "problem"), true) << line;
        }
        EXPECT_GE(rows, 4) << operation->name();
        EXPECT_EQ(left(), std::vector<std::string>{"out"});
        fs::remove(out_);
    }
}

}  // namespace
}  // namespace rooftile
