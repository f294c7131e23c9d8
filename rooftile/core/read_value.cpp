#include "rooftile/core/read_value.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

bool digits_only(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string joined(std::span<const std::string_view> names) {
    std::string out;
    for (auto name : names) out += (out.empty() ? "" : ", ") + std::string(name);
    return out;
}

/// "4k", "4Ki", "4_096": sizes are powers of two, so k and Ki are both 1024, M and Mi 1024 of them. A text that is none of these stays.
std::string spelled_out(std::string_view text) {
    std::string digits;
    for (const char c : text)
        if (c != '_') digits += c;
    std::int64_t factor = 1;
    if (digits.size() > 1 && digits.ends_with('i')) digits.pop_back();
    if (digits.size() > 1 && (digits.ends_with('k') || digits.ends_with('K'))) factor = 1 << 10;
    if (digits.size() > 1 && digits.ends_with('M')) factor = 1 << 20;
    if (factor > 1) digits.pop_back();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = digits_only(digits) && error == std::errc() && end == digits.data() + digits.size();
    if (!whole || value > std::numeric_limits<std::int64_t>::max() / factor || text.starts_with('_') || text.ends_with('_')
        || (factor == 1 && text.ends_with('i')))
        return std::string(text);
    return std::to_string(value * factor);
}

/// Other spellings of the names of types: those of PyTorch, NumPy and C.
std::string_view usual_name(std::string_view text) {
    if (text.starts_with("torch.")) text.remove_prefix(6);
    static constexpr std::pair<std::string_view, std::string_view> names[] = {
        {"bfloat16", "bf16"}, {"float16", "fp16"}, {"half", "fp16"}, {"float32", "fp32"}, {"float", "fp32"},
        {"float8_e4m3fn", "fp8_e4m3"}, {"e4m3", "fp8_e4m3"}, {"float8_e5m2", "fp8_e5m2"}, {"e5m2", "fp8_e5m2"}};
    for (const auto& [other, usual] : names)
        if (text == other) return usual;
    return text;
}

}  // namespace

std::int64_t whole_number(std::string_view name, std::string_view given, std::int64_t least,
                          std::int64_t most) {
    const std::string text = spelled_out(given);
    const bool negative = text.size() > 1 && text.front() == '-' && digits_only(std::string_view(text).substr(1));
    if (!negative && !digits_only(text))
        throw RequestError(fmt::format("{} {}: not a whole number; accepted is {} .. {}", name,
                                       text.empty() ? "''" : printable(text), least, most));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < least || value > most)
        throw RequestError(
            fmt::format("{} {}: out of range; accepted is {} .. {}", name, printable(text), least, most));
    return value;
}

std::int64_t size_number(std::string_view name, std::string_view text, std::int64_t most) {
    if (with_size_for_zero(text, 1) != text)
        throw RequestError(fmt::format("{} {}: nothing to do; accepted is 1 .. {}", name, printable(text), most));
    return whole_number(name, text, 1, most);
}

std::string with_size_for_zero(std::string_view text, std::int64_t size) {
    std::string out;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('x', begin), text.size());
        const std::string_view part = text.substr(begin, end - begin);
        if (begin > 0) out += 'x';
        if (!part.empty() && part.find_first_not_of('0') == part.npos) out += std::to_string(size);
        else out += part;
        begin = end + 1;
    }
    return out;
}

bool is_word_sign(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::size_t find_word(const std::string& text, const std::string& word, std::size_t at) {
    for (; (at = text.find(word, at)) != text.npos; at += word.size()) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_word_sign(text[at - 1])) && (end == text.size() || !is_word_sign(text[end])))
            break;
    }
    return at;
}

std::uint64_t seed_number(std::string_view name, std::string_view text) {
    constexpr std::int64_t largest = (std::int64_t{1} << 53) - 1;
    return std::uint64_t(whole_number(name, text, 0, largest));
}

std::vector<std::int64_t> whole_numbers(std::string_view name, std::string_view given, std::string_view form,
                                        std::int64_t least, std::int64_t most) {
    std::string text(given);
    std::replace(text.begin(), text.end(), 'X', 'x');
    std::replace(text.begin(), text.end(), ',', 'x');
    std::vector<std::int64_t> values;
    const auto wanted = 1 + std::count(form.begin(), form.end(), 'x');
    if (1 + std::count(text.begin(), text.end(), 'x') != wanted)
        throw RequestError(fmt::format("{} {}: accepted is {}, {} whole numbers joined by 'x'", name,
                                       printable(text), form, wanted));
    for (const std::string_view part : split(text, 'x'))
        values.push_back(whole_number(fmt::format("{} {}:", name, printable(text)), part, least, most));
    return values;
}

std::size_t one_of(std::string_view name, std::string_view text, std::span<const std::string_view> names) {
    auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) found = std::find(names.begin(), names.end(), usual_name(text));
    if (found == names.end())
        throw RequestError(
            fmt::format("{} {}: accepted is {}", name, text.empty() ? "''" : printable(text), joined(names)));
    return std::size_t(found - names.begin());
}

void only_value(std::string_view name, std::string_view text, std::string_view only) {
    if (!text.empty() && text != only)
        throw RequestError(
            fmt::format("{} {} is not supported yet; accepted is {}", name, printable(text), only));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> out;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t to = std::min(text.find(separator, from), text.size());
        out.push_back(text.substr(from, to - from));
        from = to + 1;
    }
    return out;
}

std::vector<std::int64_t> value_list(std::string_view name, std::string_view text, std::int64_t most) {
    constexpr std::size_t most_values = 200;
    std::vector<std::int64_t> out;
    const auto number = [&](std::string_view part) { return whole_number(name, part, 1, most); };
    for (const std::string_view part : split(text, ',')) {
        const std::size_t dots = part.find("..");
        if (dots == part.npos) {
            out.push_back(number(part));
            continue;
        }
        const std::size_t more = part.find("..", dots + 2);
        const std::int64_t first = number(part.substr(0, dots)),
                           last = number(part.substr(dots + 2, more == part.npos ? part.npos : more - dots - 2));
        if (last < first) throw RequestError(fmt::format("{} {}: the range ends before it begins", name, printable(text)));
        const std::int64_t step = more == part.npos ? 0 : number(part.substr(more + 2));
        if (step && (last - first) / step >= std::int64_t(most_values))
            throw RequestError(fmt::format("{} {}: more than {} values", name, printable(text), most_values));
        for (std::int64_t value = first; value < last; value = step ? value + step : 2 * value) out.push_back(value);
        out.push_back(last);
    }
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    if (out.size() > most_values) throw RequestError(fmt::format("{} {}: more than {} values", name, printable(text), most_values));
    return out;
}

}  // namespace rooftile
