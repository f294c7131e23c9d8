#include "rooftile/report/terminal.hpp"

#include <algorithm>
#include <cassert>
#include <map>

#include <fmt/core.h>

namespace rooftile {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string_view escape_of(Tone tone) {
    switch (tone) {
        case Tone::plain:
            return "";
        case Tone::strong:
            return "\x1b[1m";
        case Tone::faint:
            return "\x1b[2m";
        case Tone::good:
            return "\x1b[32m";
        case Tone::bad:
            return "\x1b[31m";
    }
    return "";
}

}  // namespace

std::string displayable(std::string_view text, bool utf8) {
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        auto c = static_cast<unsigned char>(text[i]);
        if (c < 0x20 || c == 0x7f) {
            out += '?';
        } else if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
            out += '?';  // C1 controls, U+0080 to U+009F
            ++i;
        } else if (utf8 && text.substr(i).starts_with("+- ")) {
            out += "±";
            ++i;
        } else if (!utf8 && text.substr(i).starts_with("±")) {
            out += "+-";
            ++i;
        } else if (c < 0x80 || utf8) {
            out += char(c);
        } else if (!continues(char(c))) {
            out += '?';
        }
    }
    return out;
}

std::string Terminal::paint(std::string_view text, Tone tone) const {
    std::string clean = displayable(text, utf8);
    std::string_view escape = escape_of(tone);
    if (!color || escape.empty() || clean.empty()) return clean;
    return std::string(escape) + clean + "\x1b[0m";
}

std::string Terminal::paint_lines(std::string_view text, Tone tone) const {
    std::string out;
    for (;;) {
        const size_t end = text.find('\n');
        out += paint(text.substr(0, end), tone);
        if (end == std::string_view::npos) return out;
        out += '\n';
        text.remove_prefix(end + 1);
    }
}

int columns_of(std::string_view text) {
    return int(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string wrapped(std::string_view text, int width, int indent) {
    std::string out;
    int column = 0;
    bool first = true;
    size_t at = 0;
    while (at < text.size()) {
        size_t end = text.find(' ', at);
        while (end != std::string_view::npos && text.substr(end + 1).starts_with('%'))
            end = text.find(' ', end + 1);
        if (end == std::string_view::npos) end = text.size();
        std::string_view word = text.substr(at, end - at);
        at = end + 1;
        int size = columns_of(word);
        if (!first && width > 0 && column + 1 + size > width) {
            out += '\n';
            out.append(size_t(indent), ' ');
            column = 0;
        } else if (!first) {
            out += ' ';
            ++column;
        }
        out += word;
        column += size;
        first = false;
    }
    return out;
}

std::string entry(std::string_view title, std::string_view text, const Terminal& terminal) {
    const int indent = columns_of(title) + 2;
    return terminal.paint(title, Tone::faint) + "  "
           + wrapped(displayable(text, terminal.utf8), std::max(1, terminal.prose() - indent), indent) + "\n";
}

std::string joined(const std::vector<std::string>& list) {
    std::string out;
    for (const auto& s : list) out += (out.empty() ? "" : ", ") + s;
    return out;
}

std::string entries_text(const std::vector<Entry>& entries, int indent, const Terminal& terminal) {
    constexpr int gap = 2, narrowest_remark = 24;
    int name_width = 0, value_width = 0;
    for (const Entry& entry : entries) {
        name_width = std::max(name_width, columns_of(entry.name));
        value_width = std::max(value_width, columns_of(entry.value));
    }
    auto padded = [](std::string text, int width) {
        text.append(size_t(std::max(0, width - columns_of(text))), ' ');
        return text;
    };
    // Where the third column would be too narrow to read, remarks go below their entry.
    const bool below = terminal.prose() - (indent + name_width + gap + value_width + gap) < narrowest_remark;
    const int column = below ? indent + gap : indent + name_width + gap + value_width + gap;
    std::string out;
    for (const Entry& entry : entries) {
        const std::string value = displayable(entry.value, terminal.utf8);
        out += std::string(size_t(indent), ' ')
               + padded(displayable(entry.name, terminal.utf8), name_width + gap);
        if (!entry.remark.empty()) {
            out += below ? value + '\n' + std::string(size_t(column), ' ') : padded(value, value_width + gap);
            out += wrapped(displayable(entry.remark, terminal.utf8), terminal.prose() - column, column);
        } else {
            out += value;
        }
        out += '\n';
    }
    return out;
}

void Table::row(std::vector<Cell> cells) {
    assert(cells.size() == columns_.size());
    rows_.push_back(std::move(cells));
}

void Table::column(Column column, const std::vector<std::string>& texts) {
    assert(texts.size() == rows_.size());
    columns_.push_back(std::move(column));
    for (size_t i = 0; i < texts.size(); ++i) rows_[i].push_back({texts[i]});
}

std::vector<int> Table::widths() const {
    std::vector<int> widths;
    for (size_t i = 0; i < columns_.size(); ++i) {
        int width = columns_of(columns_[i].title);
        for (const auto& row : rows_) width = std::max(width, columns_of(row[i].text));
        widths.push_back(width);
    }
    return widths;
}

bool Table::constant(size_t column) const {
    if (rows_.empty() || columns_[column].drop == 0 || (rows_.size() == 1 && !rows_[0][column].text.empty())) return false;
    return std::ranges::all_of(rows_, [&](const auto& row) { return row[column].text == rows_[0][column].text; });
}

/// Whether two rows that the shown columns tell apart would be alike without `column`.
bool Table::tells_rows_apart(size_t column, const std::vector<bool>& shown) const {
    if (columns_[column].figure) return false;
    std::map<std::string, std::string> without;  // the rows' other columns, and what `column` has there
    for (const auto& row : rows_) {
        std::string key;
        for (size_t i = 0; i < columns_.size(); ++i)
            if (shown[i] && i != column && !columns_[i].figure) key += row[i].text + '\0';
        if (const auto [at, fresh] = without.emplace(key, row[column].text); !fresh && at->second != row[column].text) return true;
    }
    return false;
}

void Table::fit(std::vector<bool>& shown, const std::vector<int>& width, int limit) const {
    auto total = [&] {
        int sum = -gap;
        for (size_t i = 0; i < columns_.size(); ++i)
            if (shown[i]) sum += width[i] + gap;
        return sum;
    };
    while (limit > 0 && total() > limit) {
        int worst = -1;
        for (size_t i = 0; i < columns_.size(); ++i)
            if (shown[i] && columns_[i].drop > (worst < 0 ? 0 : columns_[size_t(worst)].drop) && !tells_rows_apart(i, shown)) worst = int(i);
        if (worst < 0) break;
        shown[size_t(worst)] = false;
    }
}

std::string Table::text(const Terminal& terminal, int indent) const {
    const std::vector<int> width = widths();
    std::vector<bool> shown(columns_.size(), true);
    std::string same;
    for (size_t i = 0; i < columns_.size(); ++i)
        if (constant(i)) {
            shown[i] = false;
            if (const std::string& text = rows_[0][i].text; !text.empty() && text != "-") same += fmt::format("{}{} {}", same.empty() ? "" : ", ", columns_[i].title, rows_[0][i].text);
        }
    const std::vector<bool> varying = shown;
    fit(shown, width, terminal.width > 0 ? terminal.width - indent : 0);

    auto line = [&](auto&& cell_at) {
        std::string out;
        int padding = indent;  // written only when text follows, so that no line ends in spaces
        for (size_t i = 0; i < columns_.size(); ++i) {
            if (!shown[i]) continue;
            const Cell cell = cell_at(i);
            const int space = width[i] - columns_of(cell.text);
            const bool right = columns_[i].align == Align::right;
            if (right) padding += space;
            if (!cell.text.empty()) {
                out.append(size_t(padding), ' ');
                out += terminal.paint(cell.text, cell.tone);
                padding = 0;
            }
            padding += gap + (right ? 0 : space);
        }
        return out + '\n';
    };
    std::string out = line([&](size_t i) { return Cell{columns_[i].title, Tone::faint}; });
    for (const auto& row : rows_) out += line([&](size_t i) { return row[i]; });

    std::string dropped;
    for (size_t i = 0; i < columns_.size(); ++i)
        if (varying[i] && !shown[i]) dropped += (dropped.empty() ? "" : ", ") + columns_[i].title;
    const auto below = [&](const std::string& words) {
        out += std::string(size_t(indent), ' ') + wrapped(displayable(words, terminal.utf8), std::max(0, terminal.width - indent), indent) + '\n';
    };
    if (!same.empty()) below("(all: " + same + ")");
    if (!dropped.empty()) below("(no room for: " + dropped + ")");
    return out;
}

}  // namespace rooftile
