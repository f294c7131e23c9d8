// The documents' rows as comma-separated values (RFC 4180), units in the header. Columns are what the rows hold: a value's
// title is its key, below the keys of the records that it stands in.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "rooftile/report/json.hpp"

namespace rooftile {

/// One cell: quoted where it holds a comma, a quote or a line break. Text that a spreadsheet would
/// take for a formula is kept from it by a leading apostrophe.
std::string csv_cell(std::string_view text);

/// The header and one line a plan or measured row; lines end in CR LF. Unknown values are empty cells. `config`, `problem`,
/// `prediction` and `resources` are left out of titles, but of a title that would stand twice; lists of records have no
/// column. Each line begins with the machine's id, the problem, and the document's own records under `beside`.
std::string csv_text(const Json& document, std::initializer_list<const char*> beside = {});

}  // namespace rooftile
