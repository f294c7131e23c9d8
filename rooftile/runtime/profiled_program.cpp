#include "rooftile/runtime/profiled_program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/profile/recording.hpp"
#include "rooftile/runtime/library.hpp"

extern char** environ;

namespace rooftile {
namespace {

namespace fs = std::filesystem;

/// A new folder below the system's for temporary files, gone at the end.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::error_code error;
        std::string name = (fs::temp_directory_path(error) / "rooftile-profile-XXXXXX").string();
        if (error || !mkdtemp(name.data())) throw Error(ExitCode::internal, fmt::format("no temporary folder {}: {}", name, std::strerror(errno)));
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

constexpr const char* injection_variables[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};

/// This process's environment with those variables.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
    std::vector<std::string> out;
    for (char** each = environ; *each; ++each) {
        const std::string_view entry = *each;
        const bool replaced = std::ranges::any_of(variables, [&](const auto& v) { return entry.starts_with(v.first + "="); });
        if (!replaced) out.emplace_back(entry);
    }
    for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
    return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> out;
    for (std::string& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
}

/// While the program runs, a terminal's interrupt is for it; it comes to both.
class Ignored {
  public:
    Ignored() {
        struct sigaction ignore {};
        ignore.sa_handler = SIG_IGN;
        for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &ignore, &before_[i]);
    }
    ~Ignored() {
        for (std::size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before_[i], nullptr);
    }
    Ignored(const Ignored&) = delete;
    Ignored& operator=(const Ignored&) = delete;
    static constexpr int signals[] = {SIGINT, SIGQUIT};

  private:
    struct sigaction before_[std::size(signals)];
};

}  // namespace

ProfiledProgram run_profiled(const std::vector<std::string>& command, const std::string& keep) {
    for (const char* variable : injection_variables)
        if (const char* set = std::getenv(variable); set && *set)
            throw RequestError(fmt::format("{} is set to {}: another profiler is at work; unset it", variable, set));
    const Library cupti = open_library(cupti_soname);
    if (!cupti) throw Error(ExitCode::gpu_failed, cupti.not_found());
    TemporaryFolder folder;
    const fs::path collector = folder.path() / "collector.so";
    {
        const std::string_view bytes = embedded_collector().front().text;
        std::ofstream out(collector, std::ios::binary);
        out.write(bytes.data(), std::streamsize(bytes.size()));
        if (!out.flush()) throw Error(ExitCode::internal, fmt::format("{} could not be written", collector.string()));
    }
    fs::path recordings = folder.path();
    if (!keep.empty()) {
        std::error_code error;
        fs::create_directories(keep, error);
        recordings = fs::absolute(keep, error);
        if (error) throw RequestError(fmt::format("{}: {}", keep, error.message()));
    }
    std::vector<std::string> words = command,
                             environment = environment_with({{injection_variables[0], collector.string()},
                                                             {injection_variables[1], collector.string()},
                                                             {recording::folder_variable, recordings.string()},
                                                             {recording::cupti_variable, cupti.path}});
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults;  // the program has the usual answers to what this one ignores
    sigemptyset(&defaults);
    for (const int signal : Ignored::signals) sigaddset(&defaults, signal);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    ProfiledProgram out;
    const auto start = std::chrono::steady_clock::now();
    const Ignored ignored;
    pid_t process = 0;
    const int fault = posix_spawnp(&process, words.front().c_str(), nullptr, &attributes, pointers(words).data(), pointers(environment).data());
    posix_spawnattr_destroy(&attributes);
    if (fault != 0) throw RequestError(fmt::format("{} did not start: {}", words.front(), std::strerror(fault)));
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    out.wall_ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    out.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out.code = out.signal ? 128 + out.signal : WEXITSTATUS(status);
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(recordings))
        if (entry.path().extension() == ".rec") files.push_back(entry.path());
    std::ranges::sort(files);
    for (const fs::path& file : files) out.recordings.push_back(read_recording(read_whole_file(file.string()), file.string()));
    return out;
}

}  // namespace rooftile
