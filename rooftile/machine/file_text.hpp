// Whole files as text. TOML files are untrusted: what a parser should never see is refused before it runs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace rooftile {

/// Limits of a TOML file. toml++ recurses once a part of a dotted key and once a nested value: these keep
/// it far from the end of a 1 MiB stack.
struct FileLimits {
    std::size_t bytes, line_bytes;
    static constexpr int dots_a_line = 32;  ///< outside strings and comments
    static constexpr int depth = 8;         ///< of brackets and braces
};
inline constexpr FileLimits machine_limits{.bytes = 64 << 10, .line_bytes = 1 << 10};
/// Of a number's source in a machine file.
inline constexpr std::size_t max_source_bytes = 400;
/// Of drawn suites: 10,000 problems, and expressions of a screen.
inline constexpr FileLimits suite_limits{.bytes = 8 << 20, .line_bytes = 16 << 10};

/// A whole file's most bytes: the largest suite's run takes a fifth.
inline constexpr std::size_t max_whole_file = std::size_t{1} << 30;

/// All bytes of a regular file, up to max_whole_file. Throws RequestError with one line.
std::string read_whole_file(const std::filesystem::path& path);

/// The text of a regular file of at most `limits.bytes`. Throws RequestError with one line.
std::string read_small_file(const std::filesystem::path& path, const FileLimits& limits = machine_limits);

/// Throws RequestError, one line with file and line number, unless `text` is UTF-8 text within the limits,
/// without control characters and multi-line strings.
void check_text(std::string_view text, std::string_view file_name, const FileLimits& limits = machine_limits);

}  // namespace rooftile
