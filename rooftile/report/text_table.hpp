// One table as text for a terminal and as Markdown.
#pragma once

#include <string>
#include <vector>

#include "rooftile/report/terminal.hpp"

namespace rooftile {

struct TextTable {
    std::vector<Table::Column> columns;
    std::vector<std::vector<std::string>> rows;
};

std::string text_table(const TextTable& cells, const Terminal& terminal);
std::string markdown_table(const TextTable& cells);
/// A text between bars: no bar, no line break, no control character, nothing that Markdown would read.
std::string markdown_cell(const std::string& text);

}  // namespace rooftile
