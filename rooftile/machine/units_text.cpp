#include "rooftile/machine/units_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace rooftile {
namespace {

enum Scales : unsigned { none = 0, big = 1, small = 2, binary = 4 };

struct BaseUnit {
    std::string_view name;
    Dimension dimension;
    unsigned scales;  // prefixes that make sense: a millibyte is a slip for a megabyte
};

constexpr Dimension byte{.byte = 1}, flop{.flop = 1}, cycle{.cycle = 1}, second{.second = 1};
constexpr Dimension joule{.joule = 1};

constexpr BaseUnit base_units[] = {
    {"B", byte, big | binary},   {"FLOP", flop, big},       {"clk", cycle, big},
    {"cycles", cycle, none},     {"cycle", cycle, none},    {"s", second, small},
    {"Hz", cycle - second, big}, {"J", joule, big | small}, {"W", joule - second, big | small},
    {"ops", Dimension{}, none},  {"op", Dimension{}, none}, {"1", Dimension{}, none},
};

struct Prefix {
    std::string_view name;
    double scale;
    Scales kind;
};

constexpr Prefix prefixes[] = {
    {"Ki", 0x1p10, binary}, {"Mi", 0x1p20, binary},  {"Gi", 0x1p30, binary},  {"Ti", 0x1p40, binary},
    {"Pi", 0x1p50, binary}, {"k", 1e3, big},         {"M", 1e6, big},         {"G", 1e9, big},
    {"T", 1e12, big},       {"P", 1e15, big},        {"p", 1e-12, small},     {"n", 1e-9, small},
    {"u", 1e-6, small},     {"\u00b5", 1e-6, small}, {"\u03bc", 1e-6, small}, {"m", 1e-3, small},
};

constexpr std::string_view counting_words[] = {"SMs",       "partitions", "warps",   "threads",
                                               "registers", "CTAs",       "barriers"};

std::string quote(std::string_view text) { return '"' + printable(text, 40) + '"'; }

std::string unknown_unit(std::string_view text) {
    if (text == "FLOPS" || text == "FLOPs" || text.ends_with("FLOPS"))
        return quote(text) + " is ambiguous; write FLOP/s, or FLOP/clk/SM";
    if (text == "SM" || text == "GPU") return quote(text) + " is accepted only after a slash";
    return "unknown unit " + quote(text);
}

// One factor: a base unit with at most one prefix.
std::variant<Unit, TextProblem> parse_factor(std::string_view text) {
    for (const auto& unit : base_units)
        if (text == unit.name) return Unit{unit.dimension, Per::gpu, 1, {}, {}};
    if (text == "KB") return TextProblem{"\"KB\" is ambiguous; write kB for 1000 B or KiB for 1024 B"};
    for (const auto& prefix : prefixes) {
        if (!text.starts_with(prefix.name)) continue;
        for (const auto& unit : base_units) {
            if (text.substr(prefix.name.size()) != unit.name) continue;
            if (unit.scales & prefix.kind) return Unit{unit.dimension, Per::gpu, prefix.scale, {}, {}};
            return TextProblem{"prefix " + quote(prefix.name) + " cannot be used with "
                               + std::string(unit.name)};
        }
    }
    return TextProblem{unknown_unit(text)};
}

// C0, DEL and C1: what a terminal would act on.
bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character[0]);
    return first < 0x20 || first == 0x7f
           || (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

// Length of the decimal number at the front of `text`, 0 where there is none: digits [. digits] [e digits],
// no leading zeros, so that what was written is also a TOML number.
std::size_t number_length(std::string_view text) {
    auto digits = [&](std::size_t i) {
        while (i < text.size() && is_digit(text[i])) ++i;
        return i;
    };
    std::size_t end = digits(0);
    if (end == 0 || (end > 1 && text[0] == '0')) return 0;
    if (end < text.size() && text[end] == '.') {
        const std::size_t fraction = digits(end + 1);
        if (fraction == end + 1) return 0;
        end = fraction;
    }
    if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
        std::size_t exponent = end + 1;
        if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
        if (digits(exponent) > exponent) end = digits(exponent);
    }
    return end;
}

}  // namespace

std::variant<Unit, TextProblem> parse_unit(std::string_view text) {
    for (auto word : counting_words)
        if (text == word) return Unit{{}, Per::gpu, 1, std::string(word), std::string(text)};
    Unit unit;
    unit.text = text;
    bool numerator = true, whole = false;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find('/', begin), text.size());
        const std::string_view part = text.substr(begin, end - begin);
        begin = end + 1;
        if (!numerator && (part == "SM" || part == "GPU")) {
            if (std::exchange(whole, true)) return TextProblem{"SM or GPU twice in " + quote(text)};
            unit.per = part == "SM" ? Per::sm : Per::gpu;
            continue;
        }
        auto factor = parse_factor(part);
        if (auto* problem = std::get_if<TextProblem>(&factor)) {
            if (part != text) problem->message += " in " + quote(text);
            return *problem;
        }
        const Unit& f = std::get<Unit>(factor);
        unit.dimension = numerator ? f.dimension : unit.dimension - f.dimension;
        unit.scale = numerator ? f.scale : unit.scale / f.scale;
        numerator = false;
    }
    return unit;
}

std::variant<NumberText, TextProblem> parse_number(std::string_view text) {
    text = trim(text);
    if (text.empty()) return TextProblem{"empty"};
    if (text.front() == '-') return TextProblem{"negative"};
    const std::size_t length = number_length(text);
    if (length == 0) return TextProblem{"not a decimal number"};
    const std::string_view digits = text.substr(0, length), rest = trim(text.substr(length));
    NumberText number;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number.value);
    if (error != std::errc{} || end != digits.data() + digits.size())
        return TextProblem{"not a usable number"};
    number.text = digits;
    if (!rest.empty()) {
        auto unit = parse_unit(rest);
        if (auto* problem = std::get_if<TextProblem>(&unit)) return *problem;
        number.unit = std::get<Unit>(unit);
        number.value *= number.unit.scale;
        number.text += ' ';
        number.text += rest;
    }
    if (!std::isfinite(number.value)) return TextProblem{"not a finite number"};
    return number;
}

NumberParts parts_of(std::string_view text) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return {text, {}};
    return {text.substr(0, blank), text.substr(blank + 1)};
}

std::vector<std::string_view> units_listed(std::string_view units) {
    std::vector<std::string_view> list;
    while (!units.empty()) {
        const std::size_t comma = units.find(", "), word = units.find(" or ");
        const std::size_t end = std::min({comma, word, units.size()});
        list.push_back(units.substr(0, end));
        units.remove_prefix(end == units.size() ? end : end + (end == comma ? 2 : 4));
    }
    return list;
}

std::string shortest_text(double value) {
    std::array<char, 64> buffer;
    const bool integer = std::abs(value) < 1e15 && value == std::floor(value);
    const auto result =
        integer ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), static_cast<long long>(value))
                : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), result.ptr};
}

std::string printable(std::string_view text, std::size_t most) {
    std::string out;
    const bool cut = text.size() > most;
    if (cut) text = text.substr(0, most - 3);
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_length(text.substr(i));
        if (length == 0 || is_control(text.substr(i, length))) out += '?';
        else out += text.substr(i, length);
        i += std::max<std::size_t>(length, 1);
    }
    return cut ? out + "..." : out;
}

std::size_t utf8_length(std::string_view text) {
    if (text.empty()) return 0;
    auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte_at(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                               : first >= 0xe0 && first < 0xf0 ? 3
                               : first >= 0xf0 && first < 0xf5 ? 4
                                                               : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte_at(i) & 0xc0) != 0x80) return 0;
    // Overlong forms, surrogates, and what lies beyond U+10FFFF.
    const unsigned char next = byte_at(1);
    if ((first == 0xe0 && next < 0xa0) || (first == 0xed && next > 0x9f) || (first == 0xf0 && next < 0x90)
        || (first == 0xf4 && next > 0x8f))
        return 0;
    return length;
}

}  // namespace rooftile
