// A public `.cu` file as the run-time compiler takes it: what is for the host is left out, lines keep their numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/embedded.hpp"

namespace rooftile {

struct DeviceText {
    std::string text;                    ///< lines have their numbers; LF, no byte order mark
    std::vector<std::string> left_out;   ///< in order: "main", "#include <vector>"
    std::vector<std::string> kernels;    ///< __global__ functions, in order, with their namespaces: "mine::scale"
    std::vector<std::string> templates;  ///< those of them that are templates
    std::vector<std::string> includes;   ///< that stay: "common.h"
};

/// Functions that are neither __global__ nor __device__ nor constexpr are left out, with their launches, and so are their declarations
/// and includes of host libraries (the standard library beyond host_headers(), torch, pybind11, cuBLAS and so on). Types and variables stay.
/// What annotates a function may be a macro that the file defines, or one whose name says DEVICE, GLOBAL or KERNEL.
DeviceText device_text(std::string_view file);
/// The same of a header that such a file includes.
DeviceText device_header(std::string_view file);

/// What kernels use of host headers, by the name that a file includes: "cstdint" has the types, "stdio.h" nothing, since printf is the
/// compiler's own.
std::span<const EmbeddedFile> host_headers();

}  // namespace rooftile
