#include "rooftile/report/text_table.hpp"

#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

std::string markdown_line(const std::vector<std::string>& cells) {
    std::string line = "|";
    for (const std::string& cell : cells) line += " " + cell + " |";
    return line + "\n";
}

}  // namespace

std::string text_table(const TextTable& cells, const Terminal& terminal) {
    Table table(cells.columns);
    for (const auto& row : cells.rows) {
        std::vector<Table::Cell> line;
        for (const std::string& cell : row) line.push_back({displayable(cell, terminal.utf8)});
        table.row(std::move(line));
    }
    return table.text(terminal);
}

std::string markdown_cell(const std::string& text) {
    std::string out;
    for (const char c : displayable(text)) {
        if (c == '|' || c == '<' || c == '>' || c == '`' || c == '*' || c == '_' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string markdown_table(const TextTable& cells) {
    std::vector<std::string> titles, rule;
    for (const Table::Column& column : cells.columns) {
        titles.push_back(markdown_cell(column.title));
        rule.push_back(column.align == Table::Align::left ? "---" : "---:");
    }
    std::string out = markdown_line(titles) + markdown_line(rule);
    for (auto row : cells.rows) {
        for (std::string& cell : row) cell = markdown_cell(cell);
        out += markdown_line(row);
    }
    return out;
}

}  // namespace rooftile
