// Strict readers of what follows a flag. Every refusal names the flag, the value and what is accepted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile::cli {

/// A decimal whole number in [least, most]; no sign, blank, fraction or exponent. Throws RequestError.
std::int64_t whole_number(std::string_view flag, std::string_view text, std::int64_t least,
                          std::int64_t most);

/// `parts` whole numbers joined by 'x': "128x256x64". `form` is what a message shows: "MxNxK".
std::vector<std::int64_t> whole_numbers(std::string_view flag, std::string_view text, std::string_view form,
                                        std::int64_t least, std::int64_t most);

/// The index of `text` in `names`. Throws RequestError that lists them.
std::size_t one_of(std::string_view flag, std::string_view text, std::span<const std::string_view> names);

/// Throws RequestError unless `text` is empty or `only`: a value the library does not support yet.
void only_value(std::string_view flag, std::string_view text, std::string_view only);

/// A check for CLI11: what is wrong with an empty value, which a script's unset variable makes.
std::string refuse_empty(const std::string& text);

/// " (did you mean NAME?)", or empty where none of `names` is close.
std::string suggestion(std::string_view name, std::span<const std::string> names);

}  // namespace rooftile::cli
