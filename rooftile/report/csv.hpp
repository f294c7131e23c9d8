// The documents' rows as comma-separated values (RFC 4180), units in the header.
#pragma once

#include <string>
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "rooftile/core/operation.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

/// One cell: quoted where it holds a comma, a quote or a line break. Text that a spreadsheet would
/// take for a formula is kept from it by a leading apostrophe.
std::string csv_cell(std::string_view text);

/// Columns behind those that a plan's rows and a measurement's begin with.
template <std::size_t N, std::size_t M>
constexpr std::array<CsvColumn, N + M> joined(const CsvColumn (&first)[N], const CsvColumn (&rest)[M]) {
    std::array<CsvColumn, N + M> all{};
    std::copy_n(rest, M, std::copy_n(first, N, all.begin()));
    return all;
}

/// The header and one line a plan or measured row; lines end in CR LF. Unknown values are empty cells.
std::string csv_text(const Json& document);
/// The same of rows and columns that the caller chooses.
std::string csv_text(const std::vector<Json>& rows, std::span<const CsvColumn> columns);

}  // namespace rooftile
