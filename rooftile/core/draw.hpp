// What a sweep asks of an operation: problems by its law, and what figures of many problems are ordered by.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/core/measured.hpp"

namespace rooftile {

struct DrawRequest {
    /// Of the operation's laws, by its name. Empty: the plain one. "any": extents, strides and layouts as they come, and base
    /// addresses a few elements off; in all others all is dense, from the address that an allocation has.
    std::string law;
};

/// Which of an operation's laws is asked for; the first is the plain one. Throws RequestError that names them all.
std::size_t law_index(const DrawRequest& request, std::span<const std::string_view> names);

/// What problems are drawn by.
struct DrawLaw {
    std::string_view name;     ///< "draw": with the seed the name of what is drawn by it
    std::string_view meaning;  ///< one line, for documents
    Mode mode = Mode::sustained;
};

/// Of one problem, what figures of many are ordered by.
struct ProblemTraits {
    struct Axis {
        std::string_view name;
        double value = 0;
    };
    std::string_view law{};  ///< by which such problems are drawn; empty: by none
    std::string_view band;  ///< "M >= 2048"; of each there are figures
    std::vector<std::pair<std::string_view, bool>>
        features;      ///< all that the operation knows, and whether it has them
    Axis x, y;         ///< of pictures
    double flops = 0;  ///< 0 where they are not counted
};

}  // namespace rooftile
