// Text for a terminal: tones, a table that drops columns instead of wrapping, paragraphs wrapped at spaces.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

/// What a piece of text means; its colour follows. A meaning is never carried by colour alone.
enum class Tone { plain, strong, faint, good, bad };

/// What the reader's terminal can show.
struct Terminal {
    bool color = false;
    bool utf8 = true;
    int width = 0;  ///< columns; 0: no limit

    /// `text` in its tone, with control characters replaced by '?'. Uncoloured where colour is off.
    std::string paint(std::string_view text, Tone tone) const;
    /// The same of wrapped text, whose line breaks stay.
    std::string paint_lines(std::string_view text, Tone tone) const;
    /// Columns for running text, which is also broken where the terminal sets no limit.
    int prose() const { return width > 0 ? width : 100; }
    /// `text` where the terminal shows UTF-8, else `ascii`.
    std::string_view sign(std::string_view text, std::string_view ascii) const { return utf8 ? text : ascii; }
};

/// `text` without what could steer a terminal: control characters become '?'; and without what the
/// terminal cannot show: where it has no UTF-8, other characters become '?'.
std::string displayable(std::string_view text, bool utf8 = true);

/// Columns that `text` takes: code points, every sign used here being one column wide.
int columns_of(std::string_view text);

/// `text` in lines of at most `width` columns, broken at spaces (not before a '%'); before every line but the
/// first stand `indent` spaces, not counted. A word longer than the width stays whole. `width` 0: one line.
std::string wrapped(std::string_view text, int width, int indent);

/// A name, its value and a remark.
struct Entry {
    std::string name, value, remark;
};

/// One line an entry, in three columns `indent` spaces in; remarks are wrapped within theirs.
std::string entries_text(const std::vector<Entry>& entries, int indent, const Terminal& terminal);

/// A faint title and its text, wrapped under the text.
std::string entry(std::string_view title, std::string_view text, const Terminal& terminal);

/// "a, b, c".
std::string joined(const std::vector<std::string>& list);

/// Rows under titles.
class Table {
  public:
    enum class Align { left, right };
    struct Column {
        std::string title;
        Align align = Align::right;
        int drop = 0;  ///< 0: always shown; else the highest is the first to go where width is short
        bool figure = false;  ///< follows from the other columns: two rows that differ in it alone are told apart by nothing
    };
    struct Cell {
        std::string text;
        Tone tone = Tone::plain;
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// One cell a column.
    void row(std::vector<Cell> cells);
    /// Leaves only the first so many.
    void keep_rows(size_t count) { rows_.resize(std::min(count, rows_.size())); }
    /// One more at the right, with a text a row.
    void column(Column column, const std::vector<std::string>& texts);
    /// Lines, each ended by a newline, `indent` spaces before each. A column that may go and has one value in all rows is said
    /// once below; where width is short others go, but none without which two rows would be alike. Those are named.
    std::string text(const Terminal& terminal, int indent = 2) const;

  private:
    static constexpr int gap = 2;
    std::vector<int> widths() const;
    bool constant(size_t column) const;
    bool tells_rows_apart(size_t column, const std::vector<bool>& shown) const;
    void fit(std::vector<bool>& shown, const std::vector<int>& widths, int limit) const;
    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

}  // namespace rooftile
