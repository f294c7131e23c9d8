// Pictures and pages of what a verb found: flags alike for all verbs whose documents can be drawn.
#pragma once

#include "cli/output.hpp"

namespace rooftile::cli {

/// Of a flag that names a file of its own beside the result's.
OutputFlags file_flags(const Given& given, const char* key);
/// --svg and --picture; where the verb is of one run, --html too.
std::vector<Field> picture_fields(bool of_one_run);
/// Whether a request asks for any of them.
bool wants_pictures(const Given& given);
/// Whether what it asks for has this picture in it.
bool wants_picture(const Given& given, std::string_view id);
/// Throws RequestError where a file could not be written, before anything is worked out.
void check_picture_files(const Given& given);
/// Writes the files that a request asks for. Throws RequestError where the document has no such picture.
void write_pictures(const Given& given, const Json& document, const std::string& command);

}  // namespace rooftile::cli
