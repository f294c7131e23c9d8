// On a terminal what takes more than a second shows how far it is; nothing of that is left at the end.
#include <pty.h>

#include <fstream>

#include <gmock/gmock.h>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"

namespace rooftile {
namespace {

/// What the program writes to stderr where that is a terminal.
std::string shown_on_terminal(const std::vector<std::string>& arguments) {
    int terminal = -1, end = -1;
    EXPECT_EQ(openpty(&terminal, &end, nullptr, nullptr, nullptr), 0);
    std::vector<std::string> argv = {program()}, envp;
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    for (const auto& [name, value] : without_gpu()) envp.push_back(name + "=" + value);
    auto argv_pointers = detail::pointers(argv), envp_pointers = detail::pointers(envp);
    const pid_t child = fork();
    if (child == 0) {
        dup2(end, 2);
        dup2(open("/dev/null", O_WRONLY), 1);
        close(terminal);
        execve(argv_pointers[0], argv_pointers.data(), envp_pointers.data());
        _exit(127);
    }
    close(end);
    std::string shown;
    char buffer[4096];
    for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) shown.append(buffer, std::size_t(n));
    close(terminal);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << shown;
    return shown;
}

// A million blocks are minutes of work, so that the limit of three seconds is what is left.
TEST(Progress, OfStepCountsBlocksAndSaysWhatIsLeft) {
    const Folder folder;
    const std::string file = (folder.path() / "spin.cu").string();
    std::ofstream(file) << "__global__ void spin(float* y) { for (int i = 0; i < 10000; ++i) y[0] = 1; }\n";
    const std::string shown =
        shown_on_terminal({"step", file, "--tensor", "y:fp32[1]", "--grid", "1000000", "--block", "1", "--timeout", "3"});
    EXPECT_THAT(shown, testing::ContainsRegex("stepping block [1-9][0-9]* of 1000000, 1 s, at most 2 s left"));
    EXPECT_EQ(shown.back(), '\r') << "the line is taken away";
}

}  // namespace
}  // namespace rooftile
