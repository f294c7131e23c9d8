// Strict readers of a value that somebody wrote: behind a flag, in a suite file, in a call from Python. Every refusal
// names the value's name, what was written and what is accepted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rooftile {

/// A decimal whole number in [least, most]; no sign, blank, fraction or exponent. Throws RequestError.
std::int64_t whole_number(std::string_view name, std::string_view text, std::int64_t least, std::int64_t most);

/// A seed: a whole number that JSON keeps. Throws RequestError.
std::uint64_t seed_number(std::string_view name, std::string_view text);

/// `parts` whole numbers joined by 'x': "128x256x64". `form` is what a message shows: "MxNxK".
std::vector<std::int64_t> whole_numbers(std::string_view name, std::string_view text, std::string_view form,
                                        std::int64_t least, std::int64_t most);

/// The index of `text` in `names`. Throws RequestError that lists them.
std::size_t one_of(std::string_view name, std::string_view text, std::span<const std::string_view> names);

/// Throws RequestError unless `text` is empty or `only`: a value the library does not support yet.
void only_value(std::string_view name, std::string_view text, std::string_view only);

}  // namespace rooftile
