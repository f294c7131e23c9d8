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
#include <map>

#include <fmt/core.h>

#include "rooftile/embedded.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/profile/recording.hpp"
#include "rooftile/runtime/library.hpp"
#include "rooftile/runtime/temporary_folder.hpp"

extern char** environ;

namespace rooftile {
namespace {

namespace fs = std::filesystem;

/// The recordings in a folder, with the time of each.
std::map<fs::path, fs::file_time_type> recordings_in(const fs::path& folder) {
    std::map<fs::path, fs::file_time_type> out;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".rec") out.emplace(entry.path(), entry.last_write_time());
    return out;
}

constexpr const char* injection_variables[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};

void write_file(const fs::path& path, std::string_view bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), std::streamsize(bytes.size()));
    if (!out.flush()) throw Error(ExitCode::internal, fmt::format("{} could not be written", path.string()));
}

/// What Python runs first.
std::string_view operators_text() {
    for (const EmbeddedFile& file : embedded_exports())
        if (file.path.ends_with("/sitecustomize.py")) return file.text;
    throw Error(ExitCode::internal, "sitecustomize.py is not in the program");
}

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

/// To its end; what its signal or exit code was.
ProfiledProgram run(std::vector<std::string> words, std::vector<std::string> environment) {
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
    return out;
}

}  // namespace

ProfiledProgram run_plainly(const std::vector<std::string>& command) { return run(command, environment_with({})); }

ProfiledProgram run_profiled(const ProfiledRequest& request) {
    for (const char* variable : injection_variables)
        if (const char* set = std::getenv(variable); set && *set)
            throw RequestError(fmt::format("{} is set to {}: another profiler is at work; unset it", variable, set));
    const Library cupti = open_library(cupti_soname);
    if (!cupti) throw Error(ExitCode::gpu_failed, cupti.not_found());
    const TemporaryFolder folder("rooftile-profile");
    const fs::path collector = folder.path() / "collector.so";
    write_file(collector, embedded_collector().front().text);
    fs::path recordings = folder.path();
    if (!request.keep.empty()) {
        std::error_code error;
        fs::create_directories(request.keep, error);
        if (!error) recordings = fs::absolute(request.keep, error);
        if (!error && access(recordings.c_str(), W_OK) != 0) error = {errno, std::generic_category()};
        if (error) throw RequestError(fmt::format("recordings cannot be kept in {}: {}", request.keep, error.message()));
    }
    const auto of_other_runs = recordings_in(recordings);
    std::vector<std::pair<std::string, std::string>> variables = {{injection_variables[0], collector.string()},
                                                                  {injection_variables[1], collector.string()},
                                                                  {recording::folder_variable, recordings.string()},
                                                                  {recording::cupti_variable, cupti.path}};
    if (request.operators) {
        write_file(folder.path() / "sitecustomize.py", operators_text());
        const char* before = std::getenv("PYTHONPATH");
        variables.emplace_back("PYTHONPATH", folder.path().string() + (before && *before ? ":" + std::string(before) : ""));
    }
    ProfiledProgram out = run(request.command, environment_with(variables));
    for (const auto& [file, time] : recordings_in(recordings)) {
        const auto other = of_other_runs.find(file);  // a process may have the number of one before
        if (other == of_other_runs.end() || other->second != time) out.recordings.push_back(read_recording(read_whole_file(file.string()), file.string()));
    }
    return out;
}

}  // namespace rooftile
