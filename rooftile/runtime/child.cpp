#include "rooftile/runtime/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "rooftile/error.hpp"

extern char** environ;

namespace rooftile {
namespace {

struct Pipe {
    int ends[2];
    Pipe() {
        if (pipe2(ends, O_CLOEXEC) != 0)
            throw Error(ExitCode::internal, "no pipe: " + std::string(std::strerror(errno)));
    }
    ~Pipe() {
        for (int& end : ends) shut(end);
    }
    Pipe(const Pipe&) = delete;
    static void shut(int& end) {
        if (end >= 0) close(end);
        end = -1;
    }
};

/// Both at once: a child that fills one pipe waits until somebody reads it.
void drain(Pipe& out, Pipe& err, ChildOutcome& outcome, const std::function<void()>& meanwhile) {
    const int wait_ms = meanwhile ? 200 : -1;
    Pipe* const pipes[] = {&out, &err};
    std::string* const texts[] = {&outcome.out, &outcome.err};
    while (out.ends[0] >= 0 || err.ends[0] >= 0) {
        pollfd waiting[] = {{out.ends[0], POLLIN, 0},
                            {err.ends[0], POLLIN, 0}};  // poll() passes over what is shut
        if (poll(waiting, 2, wait_ms) < 0 && errno != EINTR) break;
        if (meanwhile) meanwhile();
        for (int i = 0; i < 2; ++i) {
            if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
            char buffer[1 << 14];
            const ssize_t got = read(waiting[i].fd, buffer, sizeof buffer);
            if (got > 0) texts[i]->append(buffer, std::size_t(got));
            else if (got == 0 || errno != EINTR) Pipe::shut(pipes[i]->ends[0]);
        }
    }
}

}  // namespace

ChildOutcome run_child(const std::vector<std::string>& command, const std::function<void()>& meanwhile) {
    Pipe out, err;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out.ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err.ends[1], STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int failed =
        posix_spawn(&child, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    Pipe::shut(out.ends[1]);
    Pipe::shut(err.ends[1]);
    if (failed != 0)
        throw Error(ExitCode::internal,
                    fmt::format("{} does not start: {}", command.front(), std::strerror(failed)));
    ChildOutcome outcome;
    drain(out, err, outcome, meanwhile);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
    else outcome.signal = WTERMSIG(status);
    return outcome;
}

}  // namespace rooftile
