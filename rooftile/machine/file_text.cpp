#include "rooftile/machine/file_text.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/core.h>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

[[noreturn]] void refuse(std::string_view file, std::string_view problem) {
    throw RequestError(fmt::format("{}: {}", printable(file, 200), problem));
}

[[noreturn]] void refuse(std::string_view file, int line, std::string_view problem) {
    throw RequestError(fmt::format("{}:{}: {}", printable(file, 200), line, problem));
}

void check_size(std::size_t size, std::size_t most, std::string_view file) {
    if (size > most) refuse(file, fmt::format("{} bytes; at most {} are accepted", size, most));
}

void check_characters(std::string_view line, int number, std::size_t longest, std::string_view file) {
    if (line.size() > longest)
        refuse(file, number, fmt::format("a line of {} bytes; at most {} are accepted", line.size(), longest));
    for (std::size_t i = 0; i < line.size();) {
        const auto byte = static_cast<unsigned char>(line[i]);
        const std::size_t length = utf8_length(line.substr(i));
        const bool carriage_return = byte == '\r' && i + 1 == line.size();
        if (length == 0 || byte == 0x7f || (byte < 0x20 && byte != '\t' && !carriage_return))
            refuse(file, number,
                   fmt::format("byte 0x{:02x} at column {}: this is no UTF-8 text file", byte, i + 1));
        i += length;
    }
}

// Follows strings, comments and brackets just far enough to bound how deep the parser will recurse.
class DepthCheck {
  public:
    explicit DepthCheck(std::string_view file) : file_(file) {}

    void line(std::string_view text, int number) {
        int dots = 0;
        char quote = 0;  // the one that closes the string we are in
        for (std::size_t i = 0; i < text.size(); ++i) {
            const char c = text[i];
            if (quote) {
                if (c == '\\' && quote == '"') ++i;
                else if (c == quote) quote = 0;
            } else if (c == '#') {
                break;
            } else if (c == '"' || c == '\'') {
                if (text.substr(i, 3) == std::string(3, c))
                    refuse(file_, number, "multi-line strings are not accepted");
                quote = c;
            } else if (c == '[' || c == '{') {
                if (++depth_ > FileLimits::depth)
                    refuse(file_, number, fmt::format("more than {} nested brackets", FileLimits::depth));
            } else if (c == ']' || c == '}') {
                --depth_;
            } else if (c == '.' && ++dots > FileLimits::dots_a_line) {
                refuse(file_, number, fmt::format("a key of more than {} parts", FileLimits::dots_a_line));
            }
        }
    }

  private:
    std::string_view file_;
    int depth_ = 0;
};

std::ifstream opened(const std::filesystem::path& path, const std::string& name) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found) refuse(name, "no such file");
    if (error) refuse(name, error.message());
    if (status.type() == std::filesystem::file_type::directory)
        refuse(name, "this is a directory, not a file");
    if (status.type() != std::filesystem::file_type::regular) refuse(name, "not a regular file");
    std::ifstream stream(path, std::ios::binary);
    if (!stream) refuse(name, "cannot be opened; is it readable?");
    return stream;
}

}  // namespace

std::string read_whole_file(const std::filesystem::path& path) {
    const std::string name = path.string();
    std::ifstream stream = opened(path, name);
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error) check_size(size, max_whole_file, name);
    std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (stream.bad()) refuse(name, "cannot be read");
    return text;
}

std::string read_small_file(const std::filesystem::path& path, const FileLimits& limits) {
    const std::string name = path.string();
    std::ifstream stream = opened(path, name);
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error) check_size(size, limits.bytes, name);
    std::string text(limits.bytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (stream.bad()) refuse(name, "cannot be read");
    text.resize(static_cast<std::size_t>(stream.gcount()));
    check_size(text.size(), limits.bytes, name);
    return text;
}

void check_text(std::string_view text, std::string_view file_name, const FileLimits& limits) {
    check_size(text.size(), limits.bytes, file_name);
    DepthCheck depth(file_name);
    int number = 1;
    for (std::size_t begin = 0; begin < text.size(); ++number) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        check_characters(line, number, limits.line_bytes, file_name);
        depth.line(line, number);
        begin = end + 1;
    }
}

}  // namespace rooftile
