#include "rooftile/report/terminal.hpp"

#include <sstream>

#include <gtest/gtest.h>

namespace rooftile {
namespace {

int widest(const std::string& text) {
    std::istringstream lines(text);
    int width = 0;
    for (std::string line; std::getline(lines, line);) width = std::max(width, columns_of(line));
    return width;
}

Table three_columns() {
    Table table(
        {{"name", Table::Align::left}, {"detail", Table::Align::left, 2}, {"value", Table::Align::right, 1}});
    table.row({{"one"}, {"a long detail that takes room"}, {"12"}});
    table.row({{"three"}, {""}, {"3456"}});
    return table;
}

TEST(Terminal, ControlCharactersNeverReachIt) {
    EXPECT_EQ(displayable("a\x1b[31mb\nc\x7f"), "a?[31mb?c?");
    EXPECT_EQ(displayable("\xc2\x9b"
                          "31m"),
              "?31m");  // U+009B starts a control sequence
    EXPECT_EQ(displayable("×"), "×");
    EXPECT_EQ(displayable("×", false), "?");
}

TEST(Terminal, ColourOnlyWhereAsked) {
    const Terminal plain{.color = false}, coloured{.color = true};
    EXPECT_EQ(plain.paint("PASS", Tone::good), "PASS");
    EXPECT_EQ(coloured.paint("PASS", Tone::good), "\x1b[32mPASS\x1b[0m");
    EXPECT_EQ(coloured.paint("x\x1b[0m", Tone::bad), "\x1b[31mx?[0m\x1b[0m");
}

TEST(Terminal, TextBreaksAtSpaces) {
    EXPECT_EQ(wrapped("one two three", 7, 2), "one two\n  three");
    EXPECT_EQ(wrapped("incomprehensibilities a", 5, 0), "incomprehensibilities\na");
    EXPECT_EQ(wrapped("one two", 0, 2), "one two");
    EXPECT_EQ(wrapped("by 5.0 % slower", 8, 0), "by 5.0 %\nslower");
    EXPECT_EQ(wrapped("all 5.0 %", 8, 0), "all\n5.0 %");
    EXPECT_EQ(wrapped("", 10, 2), "");
}

TEST(Terminal, TableAlignsAndLeavesNoBlanksAtTheEnd) {
    EXPECT_EQ(three_columns().text({}, 0),
              "name   detail                         value\n"
              "one    a long detail that takes room     12\n"
              "three                                  3456\n");
}

TEST(Terminal, TableDropsColumnsInsteadOfWrapping) {
    const std::string text = three_columns().text({.width = 30}, 0);
    EXPECT_EQ(text, "name   value\none       12\nthree   3456\n(no room for: detail)\n");
    EXPECT_LE(widest(text), 30);
    EXPECT_EQ(three_columns().text({.width = 10}, 0).rfind("name\n", 0), 0u);
}

TEST(Terminal, ColourDoesNotMoveColumns) {
    Table table({{"a", Table::Align::left}, {"b"}});
    table.row({{"x", Tone::good}, {"1"}});
    std::string text = table.text({.color = true}, 0);
    for (const char* escape : {"\x1b[2m", "\x1b[32m", "\x1b[0m"})
        for (std::size_t at; (at = text.find(escape)) != std::string::npos;)
            text.erase(at, std::string(escape).size());
    EXPECT_EQ(text, "a  b\nx  1\n");
}

TEST(Terminal, RemarksWrapInTheirOwnColumn) {
    EXPECT_EQ(entries_text({{"k", "1 B", "aaaa bbbb cccc dddd eeee ffff gggg"}, {"key", "22 B", ""}}, 2,
                           {.width = 40}),
              "  k    1 B   aaaa bbbb cccc dddd eeee\n"
              "             ffff gggg\n"
              "  key  22 B\n");
}

}  // namespace
}  // namespace rooftile
