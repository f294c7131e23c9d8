#include "rooftile/runtime/temporary_folder.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include <stdlib.h>

#include "rooftile/error.hpp"

namespace rooftile {

TemporaryFolder::TemporaryFolder(const std::string& begin) {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / (begin + "-XXXXXX")).string();
    if (error || !mkdtemp(name.data()))
        throw Error(ExitCode::internal, fmt::format("no temporary folder {}: {}", name, std::strerror(errno)));
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace rooftile
