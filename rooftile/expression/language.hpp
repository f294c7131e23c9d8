// The functions of the expression language: names, arguments and defaults, as one table.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "rooftile/expression/graph.hpp"

namespace rooftile {

/// A function a person can write. Its first arguments are tensors (or numbers), the rest attributes, which
/// are numbers and may be given by name.
struct LanguageFunction {
    std::string_view name;
    Op op;
    int least_tensors, most_tensors;
    std::string_view attributes[3];  ///< "eps"; "p", "seed", "offset"
    double defaults[3];              ///< NaN: must be given
    std::string_view arguments;      ///< for messages: "x, gamma, beta, eps=1e-5"
};

std::span<const LanguageFunction> functions();
const LanguageFunction* function_by_name(std::string_view name);
/// The name closest to `name`; empty where none is close.
std::string_view closest_function(std::string_view name);

}  // namespace rooftile
