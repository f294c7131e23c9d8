// Numbers and units as people write them: "3.35 TB/s", "128 B/clk/SM", "50 MiB", "132 SMs".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rooftile/machine/machine.hpp"
#include "rooftile/units.hpp"

namespace rooftile {

/// A unit in base units. A counting word ("SMs", "warps") has no dimension and scale 1.
struct Unit {
    Dimension dimension{};
    Per per = Per::gpu;
    double scale = 1;  ///< base units in one of it: 1024 for "KiB"
    std::string word;  ///< the counting word, empty for a physical unit or none
    std::string text;  ///< as written; empty: a bare number
};

/// A number with its unit, as written.
struct NumberText {
    double value = 0;  ///< in base units
    Unit unit;
    std::string text;  ///< "3.35 TB/s": number, one blank, unit
};

/// Why a text is no unit or no number: a clause for a message, without the text's own place.
struct TextProblem {
    std::string message;
};

/// Reads "<prefix><unit>[/<prefix><unit>...]". Units: B FLOP clk s Hz J W op, below a slash also SM and
/// GPU; clk is also written cycle or cycles. Prefixes: k M G T P; p n u µ m for s, J and W; Ki Mi Gi Ti Pi
/// for B. Upper and lower case differ. Does not depend on the locale.
std::variant<Unit, TextProblem> parse_unit(std::string_view text);

/// Reads "<number> <unit>"; the unit may be absent. The number is decimal, finite and not negative.
std::variant<NumberText, TextProblem> parse_number(std::string_view text);

/// The number and the unit of a `NumberText::text` or `Fact::text`, either side of its blank.
struct NumberParts {
    std::string_view number, unit;
};
NumberParts parts_of(std::string_view text);

/// The units of a key's `units`, "B/s, B/clk or B/clk/SM", in their order.
std::vector<std::string_view> units_listed(std::string_view units);

/// The shortest decimal text that reads back as `value`; integers below 10^15 without exponent.
std::string shortest_text(double value);

/// Bytes of the UTF-8 character at the front of `text`, 0 where it is none.
std::size_t utf8_length(std::string_view text);

/// `text` for use inside a one-line message: control bytes and bytes that are no UTF-8 become '?', and
/// what is longer than `most` bytes is cut and ends in "...".
std::string printable(std::string_view text, std::size_t most = 80);

}  // namespace rooftile
