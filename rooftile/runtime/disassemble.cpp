#include "rooftile/runtime/disassemble.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
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
    const ChildOutcome outcome = run_child({*program, is_nvdisasm ? "--print-code" : "--dump-sass", file.path()});
    if (outcome.code != 0)
        throw Error(ExitCode::compile_failed, fmt::format("{} fails on a {} B cubin", *program, cubin.size()),
                    outcome.out + outcome.err);
    return outcome.out;
}

}  // namespace rooftile
