// One HTML file of documents, to be sent: it asks for nothing from elsewhere and runs no script. Numbers stand in <data value="...">, as the
// document has them; reasons unfold by <details>.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rooftile/report/json.hpp"

namespace rooftile {

struct PageDocument {
    std::string name;  ///< of its file
    Json document;
};

/// Documents of any kind, in their order; plans and measured rows beside each other where there are several.
std::string page_html(const std::vector<PageDocument>& documents, const std::string& command);

}  // namespace rooftile
