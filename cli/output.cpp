#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/interrupt.hpp"
#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/report/csv.hpp"

namespace rooftile::cli {
namespace {

std::string_view environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool wants_color(const OutputFlags& flags, bool terminal) {
    if (flags.color == "always") return true;
    if (flags.color == "never" || !environment("NO_COLOR").empty()) return false;
    const auto force = environment("CLICOLOR_FORCE");
    if (!force.empty() && force != "0") return true;
    return terminal && environment("TERM") != "dumb";
}

/// The first of these that is set decides, as for setlocale; the process itself stays in the C locale.
bool speaks_utf8() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        std::string value(environment(name));
        if (value.empty()) continue;
        std::transform(value.begin(), value.end(), value.begin(),
                       [](unsigned char c) { return std::tolower(c); });
        return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
    }
    return false;
}

int width_of(bool terminal) {
    const auto columns = environment("COLUMNS");
    int width = 0;
    const auto [end, error] = std::from_chars(columns.data(), columns.data() + columns.size(), width);
    if (error == std::errc() && end == columns.data() + columns.size() && width > 0) return width;
    winsize size{};
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) return size.ws_col;
    return 0;
}

void write_stdout(std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
        if (n >= 0) text.remove_prefix(std::size_t(n));
        else if (errno == EPIPE) return;
        else if (errno != EINTR)
            throw Error(ExitCode::internal,
                        fmt::format("cannot write the result to stdout: {}", std::strerror(errno)));
    }
}

/// A disk that is full is no mistake of the request's, a name that cannot be opened is.
[[noreturn]] void cannot_write(const OutputFlags& flags, std::string_view why, ExitCode code = ExitCode::bad_request) {
    throw Error(code, fmt::format("{} {}: cannot write: {}", flags.flag, flags.file, why));
}
ExitCode code_of_opening(int error) {
    return error == ENOSPC || error == EDQUOT ? ExitCode::internal : ExitCode::bad_request;
}

/// `path` is the file of the flags, or the one that will take its place.
void write_stream(const std::filesystem::path& path, std::string_view text, const OutputFlags& flags) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out) cannot_write(flags, std::strerror(errno), code_of_opening(errno));
    out.write(text.data(), std::streamsize(text.size()));
    out.flush();
    if (!out) cannot_write(flags, std::strerror(errno), ExitCode::internal);
}

/// A file beside that of the flags: written in full, then renamed. Nothing is left of it where that fails, or a signal ends the program. In a
/// folder that others write to nobody knows its name before, and it is no link of theirs.
class Aside {
  public:
    explicit Aside(const OutputFlags& flags) : flags_(flags), path_(name_beside(flags.file)), unfinished_(path_.c_str()) {
        const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file < 0) cannot_write(flags, std::strerror(errno), code_of_opening(errno));
        close(file);
    }
    ~Aside() {
        std::error_code error;
        std::filesystem::remove(path_, error);  // where it was renamed there is none
    }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

    const std::filesystem::path& path() const { return path_; }
    void take_place() {
        std::error_code error;
        std::filesystem::rename(path_, flags_.file, error);
        if (error) cannot_write(flags_, error.message());
    }

  private:
    static std::filesystem::path name_beside(std::filesystem::path path) {
        std::random_device random;
        return path += fmt::format(".{}-{:08x}{:08x}.tmp", getpid(), random(), random());
    }

    const OutputFlags& flags_;
    std::filesystem::path path_;
    UnfinishedFile unfinished_;
};

}  // namespace

std::vector<Field> output_fields(Documents documents) {
    const char* group = "Output";
    std::vector<Field> fields;
    if (documents == Documents::none) return fields;
    if (documents != Documents::text_only) {
        fields.push_back({"json", "", "One JSON document", group, FieldKind::on});
        fields.push_back(
            {"out", "FILE", "Write the result to FILE instead of stdout", group, FieldKind::value, 'o'});
    }
    if (documents == Documents::all) {
        fields.push_back({"jsonl", "", "A context line, then one row a line", group, FieldKind::on});
        fields.push_back({"csv", "", "Comma-separated values, units in the header", group, FieldKind::on});
    }
    fields.push_back({"color", "WHEN", "auto, always or never; auto honours NO_COLOR", group});
    return fields;
}

OutputFlags output_flags(const Given& given) {
    OutputFlags flags;
    flags.json = given.has("json");
    flags.jsonl = given.has("jsonl");
    flags.csv = given.has("csv");
    flags.file = given.text("out");
    if (given.has("color")) flags.color = given.text("color");
    return flags;
}

Format checked_format(const OutputFlags& flags) {
    static constexpr std::string_view when[] = {"auto", "always", "never"};
    one_of("--color", flags.color, when);
    if (flags.json + flags.jsonl + flags.csv > 1)
        throw RequestError("--json, --jsonl and --csv exclude each other; give one");
    return flags.json ? Format::json : flags.jsonl ? Format::jsonl : flags.csv ? Format::csv : Format::text;
}

Terminal terminal_for(const OutputFlags& flags) {
    const bool terminal = flags.file.empty() && isatty(STDOUT_FILENO);
    return {.color = wants_color(flags, terminal), .utf8 = speaks_utf8(), .width = width_of(terminal)};
}

void check_writable(const OutputFlags& flags) {
    namespace fs = std::filesystem;
    if (flags.file.empty()) return;
    std::error_code error;
    if (fs::is_directory(flags.file, error)) cannot_write(flags, "it is a folder");
    if (fs::exists(flags.file, error) && !fs::is_regular_file(flags.file, error)) return;
    Aside{flags};
}

void write_result(std::string_view text, const OutputFlags& flags) {
    if (flags.file.empty()) return write_stdout(text);
    namespace fs = std::filesystem;
    const fs::path path(flags.file);
    std::error_code error;
    // A device or a pipe cannot be replaced by a file of that name.
    if (fs::exists(path, error) && !fs::is_regular_file(path, error)) return write_stream(path, text, flags);
    Aside aside(flags);
    write_stream(aside.path(), text, flags);
    aside.take_place();
}

void append_result(std::string_view text, const OutputFlags& flags) {
    if (flags.file.empty()) return write_stdout(text);
    std::ofstream file(flags.file, std::ios::binary | std::ios::app);
    file.write(text.data(), std::streamsize(text.size()));
    file.flush();
    // The name is right, since write_result() took it.
    if (!file) cannot_write(flags, std::strerror(errno), ExitCode::internal);
}

std::string document_text(const Json& document, Format format) {
    if (format == Format::csv) return csv_text(document);
    if (format == Format::json) return json_text(document);
    std::string out = json_text(context_line(document), -1);
    for (const Json& row : row_lines(document)) out += json_text(row, -1);
    return out;
}

void say(std::string_view text) {
    std::string out = "rooftile: ";
    int lines = 1;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        if (begin > 0) out += lines++ < 3 ? "\n" : " ";
        out += displayable(text.substr(begin, end - begin));
        begin = end + 1;
    }
    out += '\n';
    // stderr is unbuffered and nothing can be done where it is closed.
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, out.data(), out.size());
}

}  // namespace rooftile::cli
