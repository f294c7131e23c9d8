// Whole files as text. Machine files are untrusted: what a TOML parser should never see is refused before it
// runs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace rooftile {

/// Limits of a machine file. toml++ recurses once a part of a dotted key and once a nested value: these keep
/// it far from the end of a 1 MiB stack.
struct FileLimits {
    static constexpr std::size_t bytes = 64 * 1024;
    static constexpr std::size_t line_bytes = 1024;
    static constexpr int dots_a_line = 32;  ///< outside strings and comments
    static constexpr int depth = 8;         ///< of brackets and braces
};

/// All bytes of a regular file, however many. Throws RequestError with one line.
std::string read_whole_file(const std::filesystem::path& path);

/// The text of a regular file within `FileLimits::bytes`. Throws RequestError with one line.
std::string read_small_file(const std::filesystem::path& path);

/// Throws RequestError, one line with file and line number, unless `text` is UTF-8 text within the limits,
/// without control characters and multi-line strings.
void check_text(std::string_view text, std::string_view file_name);

}  // namespace rooftile
