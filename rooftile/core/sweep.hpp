// Which problems a sweep goes over: drawn by an operation's law, drawn from ranges of its fields, or every combination of
// lists of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/core/draw.hpp"
#include "rooftile/core/field.hpp"
#include "rooftile/core/suite.hpp"

namespace rooftile {

struct SweepRequest {
    Given given = Given();  ///< of the problem's fields; a value may be a range A..B, or a list A,B,...
    std::vector<std::string>
        lets{};  ///< NAME=A..B, NAME=A,B,...: NAME stands for the value in the texts of other fields
    std::optional<int> draw{};  ///< so many; empty: all combinations
    std::uint64_t seed = 1;
    DrawRequest law{};
    std::optional<double> max_flops{}, max_bytes{};  ///< of a problem; bytes: all its tensors
};

/// The `draw` and `seed` of a request, where it gives them. Throws RequestError.
void read_draw(const Given& given, SweepRequest& request);

/// Problems that differ, within the limits, in the order in which they are drawn: fewer of the same seed are the first of
/// more. Problem i is named i. Throws RequestError: no law and no range, a range without a draw, a value that the operation
/// refuses, limits that leave too few.
Suite swept_suite(const Operation& operation, const SweepRequest& request);

}  // namespace rooftile
