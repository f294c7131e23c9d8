// Pieces of kernels' names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rooftile/core/read_value.hpp"
#include "rooftile/names/kernel_name.hpp"

namespace rooftile::names {

/// As a C++ compiler means it; as it is where it is not mangled.
std::string unmangled(std::string_view name);
/// The same without namespaces that have no name.
std::string demangled(std::string_view name);

/// "void a::f<1, b<2> >(int)" in its parts.
struct Signature {
    std::string_view path;                    ///< "a::f"
    std::string_view function;                ///< "f"
    std::vector<std::string_view> arguments;  ///< of its template: "1", "b<2>"
    std::string_view parameters;              ///< "(int)", or what is left of it
};
Signature signature_of(std::string_view text);

/// Template arguments of the first `name<` in `text`; none where there is none.
std::vector<std::string_view> arguments_of(std::string_view text, std::string_view name);

using rooftile::split;
bool contains(std::string_view text, std::string_view part);
/// Whether one of `tokens` is `token`.
bool has(std::span<const std::string_view> tokens, std::string_view token);
/// Whether it has so many letters, all of them of `letters`.
bool consists_of(std::string_view token, std::size_t count, std::string_view letters);
/// Letters, digits and '_' from `from` on.
std::string_view word_at(std::string_view text, std::size_t from);

/// "64", "64u", "(int)64", "cute::C<64>", "true": what a template argument or a token counts.
std::optional<long> number(std::string_view text);
/// Those of a template's arguments that are extents or counts: whole numbers above 0.
std::vector<int> positive(std::span<const std::string_view> arguments);
/// "128x64x32": as many numbers of up to five digits as there are; none where anything else is among them, or 0.
std::vector<int> extents(std::string_view text);
/// A count of threads of a CTA: `factor` times all of `counts`; nothing where that is more than hardware has.
std::optional<int> threads_of(int factor, std::span<const int> counts);
/// The number after `prefix`, of a token that is nothing else: ("align8", "align") is 8.
std::optional<int> number_after(std::string_view token, std::string_view prefix);

/// "bf16" of "__nv_bfloat16", "c10::BFloat16", "cutlass::bfloat16_t", "BF16"; empty for what is no type of an element.
std::string type_name(std::string_view text);

/// "m16n8k16" of the digits "16816" that names write; empty where they are none of the known.
std::string instruction_of(std::string_view digits);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// "all-reduce" of "AllReduce".
std::string words_of(std::string_view name);

}  // namespace rooftile::names
