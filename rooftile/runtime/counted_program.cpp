#include "rooftile/runtime/counted_program.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/file_text.hpp"
#include "rooftile/runtime/profiled_program.hpp"
#include "rooftile/runtime/temporary_folder.hpp"

namespace rooftile {

namespace fs = std::filesystem;

std::string found_ncu() {
    const char* path = std::getenv("PATH");
    std::string folders = path ? path : "";
    for (std::size_t from = 0; from <= folders.size();) {
        const std::size_t to = std::min(folders.find(':', from), folders.size());
        const fs::path file = fs::path(folders.substr(from, to - from)) / "ncu";
        std::error_code error;
        if (fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0) return file.string();
        from = to + 1;
    }
    throw Error(ExitCode::counters_denied,
                "--counters runs the program once more under ncu, which is not in PATH; install Nsight Compute, or leave --counters out");
}

std::string run_counted(const std::string& ncu, const std::vector<std::string>& command, const std::vector<std::string>& metrics,
                        const std::string& kernel_filter) {
    const TemporaryFolder folder("rooftile-counters");
    const std::string table = (folder.path() / "counted.csv").string();
    // Clocks as they are, so that times compare; caches empty, as the predictions have them.
    std::vector<std::string> words = {ncu,
                                      "--target-processes",
                                      "all",
                                      "--replay-mode",
                                      "kernel",
                                      "--clock-control",
                                      "none",
                                      "--cache-control",
                                      "all",
                                      "--kernel-name-base",
                                      "mangled",
                                      "--print-kernel-base",
                                      "mangled",
                                      "--kernel-id",
                                      kernel_filter,
                                      "--metrics",
                                      fmt::format("{}", fmt::join(metrics, ",")),
                                      "--csv",
                                      "--page",
                                      "raw",
                                      "--print-units",
                                      "base",
                                      "--log-file",
                                      table};
    words.insert(words.end(), command.begin(), command.end());
    const ProfiledProgram program = run_plainly(words);
    std::error_code error;
    std::string text = fs::exists(table, error) ? read_whole_file(table) : "";
    if (text.empty())
        throw Error(ExitCode::gpu_failed, fmt::format("nothing was counted: ncu ended with exit code {} and wrote nothing", program.code));
    return text;
}

}  // namespace rooftile
