// Operators that people write in several ways. Each is data in the folder of the operation that plans it, rooftile/*/ways/NAME.toml,
// beside the texts that call it; this station knows none by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rooftile {

/// What Rooftile plans of an operator: a request of an operation, with sizes in braces in its texts.
struct WayPart {
    std::string operation;
    std::vector<std::pair<std::string, std::string>> request;
};

struct WayOperator {
    std::string name, meaning;
    int order = 0;      ///< in lists
    std::string shape;  ///< "{rows}x{columns}"
    std::vector<std::pair<std::string, std::int64_t>> sizes;  ///< with what they are unless somebody says otherwise
    std::vector<WayPart> parts;
    std::string folder;  ///< of its texts, among embedded_exports()
};

using WaySizes = std::map<std::string, std::int64_t>;

/// All of them, in their order.
const std::vector<WayOperator>& way_operators();
/// Throws RequestError with the names there are.
const WayOperator& way_operator(const std::string& name);

/// `text` with each "{size}" replaced by its number, and "{type}" by the type.
std::string with_sizes(const std::string& text, const WaySizes& sizes, const std::string& type);

}  // namespace rooftile
