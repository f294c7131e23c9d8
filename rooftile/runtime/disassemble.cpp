#include "rooftile/runtime/disassemble.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fmt/core.h>

#include "rooftile/error.hpp"

extern char** environ;

namespace rooftile {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> program_folders() {
    std::vector<std::string> folders;
    if (const char* path = std::getenv("PATH")) {
        std::string_view rest = path;
        while (!rest.empty()) {
            std::size_t end = std::min(rest.find(':'), rest.size());
            // An empty part means the current folder: not a place to take programs from.
            if (end > 0) folders.emplace_back(rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    for (const char* variable : {"ROOFTILE_CUDA_PATH", "CUDA_HOME", "CUDA_PATH"})
        if (const char* root = std::getenv(variable); root && *root)
            folders.push_back(std::string(root) + "/bin");
    folders.push_back("/usr/local/cuda/bin");
    return folders;
}

/// A file with these bytes, readable by this user alone, that goes when this does.
class TemporaryFile {
  public:
    explicit TemporaryFile(std::string_view bytes) {
        std::error_code error;
        fs::path folder = fs::temp_directory_path(error);
        path_ = (error ? fs::path("/tmp") : folder) / "rooftile-XXXXXX";
        int fd = mkstemp(path_.data());
        if (fd < 0) fail();
        bool written = write(fd, bytes.data(), bytes.size()) == ssize_t(bytes.size());
        close(fd);
        if (!written) {
            unlink(path_.c_str());
            fail();
        }
    }
    ~TemporaryFile() { unlink(path_.c_str()); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& path() const { return path_; }

  private:
    [[noreturn]] void fail() const {
        throw Error(ExitCode::internal, fmt::format("{} cannot be written: {}", path_, std::strerror(errno)));
    }
    std::string path_;
};

/// What the program puts on its standard output, and its exit status.
std::string output_of(const std::vector<std::string>& command, int& status) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw Error(ExitCode::internal, "no pipe: " + std::string(std::strerror(errno)));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t child = 0;
    int failed = posix_spawn(&child, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string output;
    if (failed == 0) {
        char buffer[1 << 14];
        ssize_t got;
        while ((got = read(ends[0], buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR))
            if (got > 0) output.append(buffer, std::size_t(got));
    }
    close(ends[0]);
    if (failed != 0)
        throw Error(ExitCode::internal,
                    fmt::format("{} does not start: {}", command.front(), std::strerror(failed)));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return output;
}

}  // namespace

std::optional<std::string> find_disassembler() {
    for (const char* name : {"nvdisasm", "cuobjdump"})
        for (const std::string& folder : program_folders()) {
            std::string path = folder + "/" + name;
            std::error_code ignored;
            if (fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0) return path;
        }
    return std::nullopt;
}

std::optional<std::string> disassemble(std::string_view cubin) {
    std::optional<std::string> program = find_disassembler();
    if (!program) return std::nullopt;
    TemporaryFile file(cubin);
    const bool is_nvdisasm = fs::path(*program).filename() == "nvdisasm";
    int status = 0;
    std::string text =
        output_of({*program, is_nvdisasm ? "--print-code" : "--dump-sass", file.path()}, status);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw Error(ExitCode::compile_failed, fmt::format("{} fails on a {} B cubin", *program, cubin.size()),
                    text);
    return text;
}

}  // namespace rooftile
