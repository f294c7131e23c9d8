#include "rooftile/core/knob.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "rooftile/core/read_value.hpp"
#include "rooftile/error.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {
namespace {

constexpr std::string_view switches[] = {"off", "on"};
// Wider than any range: what is possible here but nowhere else is the planner's answer, not a typo.
constexpr std::int64_t widest = 65536;

}  // namespace

bool KnobType<bool>::read(std::string_view name, std::string_view text, const KnobRange&) { return one_of(name, text, switches) == 1; }

std::optional<bool> KnobType<bool>::of(const Value& value) {
    const auto* is = std::get_if<bool>(&value.content());
    return is ? std::optional(*is) : std::nullopt;
}

namespace knob {

std::int64_t number_of(std::string_view name, std::string_view text, const KnobRange& range) {
    return whole_number(name, text, 1, std::max(widest, range.most));
}

std::size_t index_of(std::string_view name, std::string_view text, std::span<const std::string_view> names) { return one_of(name, text, names); }

std::string part_of(const KnobWords& knob, const Given& given, std::size_t place) {
    if (knob.form.find('x') == knob.form.npos) return given.text(knob.field);
    return std::to_string(whole_numbers(given.name(knob.field), given.text(knob.field), knob.form, 1, widest)[place]);
}

void refuse(const KnobWords& knob, std::int64_t value) {
    throw RequestError(fmt::format("{} = {}: must be {} .. {}", knob.name, value, knob.range.least, knob.range.most));
}

void refuse(const KnobWords& knob, const Value& value) {
    const auto* number = std::get_if<std::int64_t>(&value.content());
    const auto* text = std::get_if<std::string>(&value.content());
    if (number) throw RequestError(fmt::format("config.{} is {}, accepted: {} .. {}", knob.name, *number, knob.range.least, knob.range.most));
    throw RequestError(fmt::format("config.{} is {}, which is no value of it here", knob.name, text ? "\"" + printable(*text, 20) + "\"" : "of another kind"));
}

}  // namespace knob

}  // namespace rooftile
