#include "rooftile/runtime/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace rooftile {
namespace {

namespace fs = std::filesystem;

/// Where libraries lie below a toolkit, below a folder of wheels, or beside each other.
constexpr std::string_view layouts[] = {
    "lib64",
    "lib",
    "targets/x86_64-linux/lib",
    "extras/CUPTI/lib64",
    "",
    "nvidia/cu13/lib",
    "nvidia/cuda_nvrtc/lib",
    "nvidia/cublas/lib",
    "nvidia/cuda_cupti/lib",
};

std::mutex roots_mutex;
std::vector<std::string> added_roots;

void add_root(std::vector<std::string>& folders, const fs::path& root) {
    std::error_code ignored;
    fs::path absolute = fs::absolute(root, ignored).lexically_normal();
    for (std::string_view layout : layouts) {
        fs::path folder = layout.empty() ? absolute : absolute / layout;
        if (!fs::is_directory(folder, ignored)) continue;
        std::string name = folder.string();
        if (std::find(folders.begin(), folders.end(), name) == folders.end()) folders.push_back(name);
    }
    // A root of which no part exists still belongs in the list of places tried.
    if (!fs::is_directory(absolute, ignored)) folders.push_back(absolute.string());
}

void add_variable(std::vector<std::string>& folders, const char* variable) {
    const char* value = std::getenv(variable);
    if (value && *value) add_root(folders, value);
}

/// `.cuda` beside the program or above it: build/rooftile and build/examples/01_plan find the checkout's.
/// Only where nobody else could have put it there: a program may lie below /tmp.
void add_wheels(std::vector<std::string>& folders) {
    std::error_code error;
    fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (int level = 0; !error && level < 3 && folder.has_relative_path();
         ++level, folder = folder.parent_path()) {
        const fs::path wheels = folder / ".cuda";
        struct stat status {};
        if (lstat(wheels.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
        if (status.st_uid == geteuid() || status.st_uid == 0) return add_root(folders, wheels);
    }
}

std::string path_of(void* handle, std::string_view fallback) {
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name) return map->l_name;
    return std::string(fallback);
}

}  // namespace

void* Library::symbol(const char* function) const { return handle ? dlsym(handle, function) : nullptr; }

std::string Library::not_found() const {
    return fmt::format(
        "{} was not found (tried {}); set ROOFTILE_CUDA_PATH to a CUDA 13 toolkit, or to the "
        "site-packages folder that holds its wheels",
        name, fmt::join(tried, ", "));
}

void add_library_root(std::string_view root) {
    const std::lock_guard lock(roots_mutex);
    added_roots.emplace_back(root);
}

std::vector<std::string> library_folders() {
    std::vector<std::string> folders;
    add_variable(folders, "ROOFTILE_CUDA_PATH");
    {
        const std::lock_guard lock(roots_mutex);
        for (const std::string& root : added_roots) add_root(folders, root);
    }
    add_wheels(folders);
    add_variable(folders, "CUDA_HOME");
    add_variable(folders, "CUDA_PATH");
    add_root(folders, "/usr/local/cuda");
    return folders;
}

Library open_library(std::string_view soname) {
    Library library;
    library.name = soname;
    std::error_code ignored;
    for (const std::string& folder : library_folders()) {
        std::string path = folder + "/" + library.name;
        if (!fs::exists(path, ignored)) {
            library.tried.push_back(folder);
            continue;
        }
        library.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library.handle) {
            library.path = path_of(library.handle, path);
            return library;
        }
        const char* why = dlerror();
        library.tried.push_back(fmt::format("{} ({})", folder, why ? why : "dlopen failed"));
    }
    library.handle = dlopen(library.name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle) library.path = path_of(library.handle, soname);
    else library.tried.push_back("the loader's path");
    return library;
}

}  // namespace rooftile
