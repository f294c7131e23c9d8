// CUDA's shared libraries, opened at run time by name, so that one program starts everywhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

/// A shared library that stays open until the process ends, or the list of places where it is not.
struct Library {
    void* handle = nullptr;          ///< null: not found
    std::string name;                ///< soname asked for, "libnvrtc.so.13"
    std::string path;                ///< what was opened, as the loader knows it
    std::vector<std::string> tried;  ///< places tried before; with the loader's answer where a file was

    explicit operator bool() const { return handle != nullptr; }
    /// Null where the library lacks it or is not open.
    void* symbol(const char* function) const;
    /// "libnvrtc.so.13 was not found in: ...; set ROOFTILE_CUDA_PATH ..."
    std::string not_found() const;
};

/// Sonames of CUDA 13, the release this library is written for.
inline constexpr std::string_view driver_soname = "libcuda.so.1";
inline constexpr std::string_view nvml_soname = "libnvidia-ml.so.1";
inline constexpr std::string_view nvrtc_soname = "libnvrtc.so.13";
inline constexpr std::string_view cupti_soname = "libcupti.so.13";

/// A place to search, behind ROOFTILE_CUDA_PATH and before all others. Thread-safe.
void add_library_root(std::string_view root);

/// Folders searched before the loader's own path, in order: below ROOFTILE_CUDA_PATH, what add_library_root() gave, the wheel
/// folder `.cuda` beside the program or up to two folders above it, CUDA_HOME, CUDA_PATH, /usr/local/cuda.
std::vector<std::string> library_folders();

/// Opens `soname`, or says where it was looked for. Not cached: callers keep what they open.
Library open_library(std::string_view soname);

}  // namespace rooftile
