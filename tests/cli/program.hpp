// The program from outside: arguments and environment in; exit code, stdout and stderr out.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace rooftile {

struct Outcome {
    int code = -1;  ///< exit code; 1000 + the signal that ended it
    std::string out, err;

    long error_lines() const { return std::count(err.begin(), err.end(), '\n'); }
};

using Environment = std::map<std::string, std::string>;

/// The program under test: what ROOFTILE_PROGRAM names, else the one of this build.
inline std::string program() {
    const char* given = std::getenv("ROOFTILE_PROGRAM");
    return given ? given : ROOFTILE_PROGRAM;
}

/// An environment in which nothing of the caller's terminal or locale shows.
inline Environment plain_environment() {
    Environment env;
    for (const char* name : {"PATH", "HOME", "ROOFTILE_CUDA_PATH", "LD_LIBRARY_PATH"})
        if (const char* value = std::getenv(name)) env[name] = value;
    env["LC_ALL"] = "C.UTF-8";
    env["ROOFTILE_CONFIG"] = "";  // not what whoever runs the tests has set
    return env;
}

/// The same, on a computer whose driver cannot be found: an empty CUDA_VISIBLE_DEVICES hides every GPU.
inline Environment without_gpu() {
    Environment env = plain_environment();
    env["CUDA_VISIBLE_DEVICES"] = "";
    return env;
}

namespace detail {

inline std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> out;
    for (auto& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
}

/// Reads both pipes until both are closed.
inline void drain(int out, int err, Outcome& outcome) {
    pollfd fds[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    std::string* texts[] = {&outcome.out, &outcome.err};
    for (int open = 2; open > 0;) {
        poll(fds, 2, -1);
        for (int i = 0; i < 2; ++i) {
            if (fds[i].fd < 0 || fds[i].revents == 0) continue;
            char buffer[65536];
            const ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
            if (n > 0) {
                texts[i]->append(buffer, std::size_t(n));
            } else {
                close(fds[i].fd);
                fds[i].fd = -1;
                --open;
            }
        }
    }
}

}  // namespace detail

/// Runs the program to its end. `stdout_path` not empty: stdout goes there instead of into the outcome.
inline Outcome run(const std::vector<std::string>& arguments, const Environment& environment = without_gpu(),
                   const std::string& stdout_path = "") {
    std::vector<std::string> argv = {program()}, envp;
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    for (const auto& [name, value] : environment) envp.push_back(name + "=" + value);
    auto argv_pointers = detail::pointers(argv), envp_pointers = detail::pointers(envp);
    int out[2], err[2];
    EXPECT_EQ(pipe(out), 0);
    EXPECT_EQ(pipe(err), 0);
    const pid_t child = fork();
    if (child == 0) {
        const int target = stdout_path.empty() ? out[1] : open(stdout_path.c_str(), O_WRONLY);
        dup2(target, 1);
        dup2(err[1], 2);
        for (int fd : {out[0], out[1], err[0], err[1]}) close(fd);
        execve(argv_pointers[0], argv_pointers.data(), envp_pointers.data());
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    Outcome outcome;
    detail::drain(out[0], err[0], outcome);
    int status = 0;
    waitpid(child, &status, 0);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return outcome;
}

/// `words` and `more`.
inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// A wrong request: exit code 2, nothing on stdout, at most three lines on stderr that hold all of `words`.
inline void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& words) {
    const Outcome outcome = run(arguments);
    std::string command;
    for (const auto& argument : arguments) command += " " + argument.substr(0, 80);
    EXPECT_EQ(outcome.code, 2) << command << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_GE(outcome.error_lines(), 1) << command;
    EXPECT_LE(outcome.error_lines(), 3) << command << "\n" << outcome.err;
    EXPECT_LE(outcome.err.size(), 1000u) << command;
    for (const auto& word : words)
        EXPECT_NE(outcome.err.find(word), std::string::npos) << command << "\n" << outcome.err;
}

}  // namespace rooftile
