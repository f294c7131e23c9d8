// Where results go: stdout or a file, as text or as a document. Messages go to stderr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/field.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile::cli {

enum class Format { text, json, jsonl, csv };

/// The flags that every verb with a result takes.
struct OutputFlags {
    bool json = false, jsonl = false, csv = false;
    std::string file;  ///< empty: stdout
    std::string color = "auto";
    std::string flag = "--out";  ///< which named the file, for messages
};

/// Which of the flags a verb's results can follow.
enum class Documents { none, text_only, json_only, all };

std::vector<Field> output_fields(Documents documents);
OutputFlags output_flags(const Given& given);

/// Checks the flags before any work. Throws RequestError: two formats at once, an unknown colour.
Format checked_format(const OutputFlags& flags);

/// What the result's reader can show: --color, NO_COLOR, CLICOLOR_FORCE and TERM decide on colour;
/// LC_ALL, LC_CTYPE and LANG on UTF-8; COLUMNS or the terminal itself on the width.
Terminal terminal_for(const OutputFlags& flags);

/// Throws RequestError where write_result() could not write the file of the flags: whoever works for a minute
/// first wants to hear it before. Leaves nothing behind.
void check_writable(const OutputFlags& flags);

/// Writes a whole result. A file appears complete or not at all. A reader that went away (EPIPE) is no
/// fault; any other failure throws Error.
void write_result(std::string_view text, const OutputFlags& flags);

/// Puts text behind what the file of the flags holds already. Throws Error where it cannot.
void append_result(std::string_view text, const OutputFlags& flags);

/// The document in `format`, which is not text.
std::string document_text(const Json& document, Format format);

/// One line on stderr: "rooftile: TEXT". Control characters are replaced, line breaks kept to three lines.
void say(std::string_view text);

}  // namespace rooftile::cli
