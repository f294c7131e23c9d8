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

/// A size of a problem: a whole number from 1 on, since of 0 there is nothing to do. Throws RequestError.
std::int64_t size_number(std::string_view name, std::string_view text, std::int64_t most);

/// Sizes that are 0, of some joined by 'x', with `size` in their place: "16x64" of "0x64". What is no such text stays.
std::string with_size_for_zero(std::string_view text, std::int64_t size);

/// A letter, a digit or _.
bool is_word_sign(char c);
/// The next place of the whole word `word` in `text` from `at` on; npos: none.
std::size_t find_word(const std::string& text, const std::string& word, std::size_t at);

/// A seed: a whole number that JSON keeps. Throws RequestError.
std::uint64_t seed_number(std::string_view name, std::string_view text);

/// `parts` whole numbers joined by 'x': "128x256x64". `form` is what a message shows: "MxNxK".
std::vector<std::int64_t> whole_numbers(std::string_view name, std::string_view text, std::string_view form,
                                        std::int64_t least, std::int64_t most);

/// Parts of a text, empty ones too: one more than it has separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Values from 1 on, each once, in their order: "512", "1,2,8", "64..4096" by doubling, "128..1024..128" in steps. Throws RequestError.
std::vector<std::int64_t> value_list(std::string_view name, std::string_view text, std::int64_t most);

/// The index of `text` in `names`. Throws RequestError that lists them.
std::size_t one_of(std::string_view name, std::string_view text, std::span<const std::string_view> names);

/// Throws RequestError unless `text` is empty or `only`: a value the library does not support yet.
void only_value(std::string_view name, std::string_view text, std::string_view only);

}  // namespace rooftile
