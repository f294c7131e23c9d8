#include "rooftile/runtime/disassemble.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/runtime/child.hpp"

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

}  // namespace

std::optional<std::string> find_program(std::string_view name) {
    for (const std::string& folder : program_folders()) {
        std::string path = fmt::format("{}/{}", folder, name);
        std::error_code ignored;
        if (fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0) return path;
    }
    return std::nullopt;
}

std::optional<std::string> find_host_compiler() {
    if (const char* named = std::getenv("CXX"); named && *named && !std::strstr(named, "clang")) {
        if (std::strchr(named, '/')) return named;
        if (auto path = find_program(named)) return path;
    }
    if (auto path = find_program("g++")) return path;
    return find_program("c++");
}

std::optional<std::string> find_disassembler() {
    if (auto nvdisasm = find_program("nvdisasm")) return nvdisasm;
    return find_program("cuobjdump");
}

std::optional<Assembled> assemble(std::string_view ptx, const std::string& arch) {
    const std::optional<std::string> program = find_program("ptxas");
    if (!program) return std::nullopt;
    const TemporaryFile in(ptx), out("");
    const ChildOutcome outcome = run_child({*program, "-v", "--gpu-name", arch, in.path(), "-o", out.path()});
    if (outcome.code != 0) {
        // "ptxas /tmp/x, line 12; error   : Unknown symbol 'a'": what it says, not where its copy lies.
        std::string said = outcome.err.substr(0, outcome.err.find('\n'));
        if (const std::size_t at = said.find(in.path()); at != said.npos) said.erase(at, in.path().size() + 2);
        throw Error(ExitCode::compile_failed, fmt::format("ptxas refuses the text for {}: {}", arch, said), outcome.err);
    }
    std::ifstream file(out.path(), std::ios::binary);
    return Assembled{{std::istreambuf_iterator<char>(file), {}}, outcome.out + outcome.err};
}

std::optional<std::string> disassemble(std::string_view cubin) {
    std::optional<std::string> program = find_disassembler();
    if (!program) return std::nullopt;
    TemporaryFile file(cubin);
    const bool is_nvdisasm = fs::path(*program).filename() == "nvdisasm";
    const ChildOutcome outcome = run_child({*program, is_nvdisasm ? "--print-code" : "--dump-sass", file.path()});
    if (outcome.code != 0)
        throw Error(ExitCode::compile_failed, fmt::format("{} fails on a {} B cubin", *program, cubin.size()),
                    outcome.out + outcome.err);
    return outcome.out;
}

}  // namespace rooftile
