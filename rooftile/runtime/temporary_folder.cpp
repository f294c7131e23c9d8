#include "rooftile/runtime/temporary_folder.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include <stdlib.h>

#include "rooftile/error.hpp"

namespace rooftile {

TemporaryFolder::TemporaryFolder(const std::string& begin) {
    std::error_code error;
    const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
    std::string name = ((error ? std::filesystem::path("/tmp") : temporary) / (begin + "-XXXXXX")).string();
    if (!mkdtemp(name.data())) throw Error(ExitCode::internal, fmt::format("{} cannot be made: {}", name, std::strerror(errno)));
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace rooftile
