// The compiler of a toolkit, where there is one, and a folder for what it makes.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
#include "tests/folder.hpp"

namespace rooftile {

/// Empty: there is none.
inline std::string nvcc() {
    std::vector<std::string> folders;
    if (const char* path = std::getenv("PATH")) {
        std::istringstream all(path);
        for (std::string folder; std::getline(all, folder, ':');) folders.push_back(folder);
    }
    folders.emplace_back("/usr/local/cuda/bin");
    for (const std::string& folder : folders)
        if (access((folder + "/nvcc").c_str(), X_OK) == 0) return folder + "/nvcc";
    return {};
}

}  // namespace rooftile
