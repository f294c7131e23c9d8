// A kernel's text as g++ takes it, behind text/cuda.hh: shared variables, inline PTX and what --watch asks for are rewritten, lines keep
// their numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rooftile {

/// An expression whose value one thread prints behind the statement that ends in `line`.
struct Watch {
    int line = 0;
    std::string expression;
};

/// Shared variables become thread-local ones, with a gap before each declaration, and `extern __shared__` a reference to
/// rooftile_dynamic_shared; inline PTX stops the thread that reaches it. Throws RequestError where no statement ends in a watch's line.
std::string host_text(std::string_view device_text, std::span<const Watch> watches = {});

/// Headers whose content text/cuda.hh has, by the names that files include. Of other device libraries, which a CPU's compiler may find too,
/// host_text() makes an error that begins with refused_header.
std::span<const std::string_view> cuda_headers();
inline constexpr std::string_view refused_header = "rooftile cannot step ";

}  // namespace rooftile
