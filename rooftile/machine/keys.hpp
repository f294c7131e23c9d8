// What a machine may say: the one table of keys behind parsing, checking, listing, --set and the docs.
// `machine_keys()` itself is declared in machine.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "rooftile/machine/machine.hpp"
#include "rooftile/machine/units_text.hpp"

namespace rooftile {

/// What a dotted path is: a key, the beginning of keys, or neither, and then `problem` says so in a clause
/// that names the nearest key.
struct KeyMatch {
    const Key* key = nullptr;
    bool group = false;
    std::string problem;
};
KeyMatch match_key(std::string_view path);

/// A yes-or-no property of an architecture.
struct Feature {
    std::string_view name;
    std::string_view meaning;
};
std::span<const Feature> machine_features();
/// Null where `name` is no feature.
const Feature* find_feature(std::string_view name);

/// What the stars of a family key stand for.
std::span<const std::string_view> instruction_families();  ///< wgmma mma_sync tcgen05 fma generic
std::span<const std::string_view> input_types();           ///< fp64 fp32 tf32 bf16 fp16 fp8 int8 fp6 fp4
std::span<const std::string_view> accumulator_types();     ///< fp64 fp32 fp16 int32

/// `number` as a fact under `key`, or why it cannot be: a wrong or missing unit, out of range, a fraction
/// of a byte.
std::variant<Fact, TextProblem> make_fact(const Key& key, const NumberText& number, std::string source);

/// What `key` accepts, for messages: "B/s, B/clk or B/clk/SM; 1 kB/s to 10 PB/s".
std::string accepted(const Key& key);

/// The nearest of `names` to `name`, empty where none is close.
std::string nearest_name(std::string_view name, std::span<const std::string> names);

}  // namespace rooftile
