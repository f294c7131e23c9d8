// Text in SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace rooftile {

/// Without what would end a text or an attribute; control characters become '?'.
inline std::string escaped_markup(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '&') out += "&amp;";
        else if (c == '"') out += "&quot;";
        else if (static_cast<unsigned char>(c) < ' ') out += '?';
        else out += c;
    }
    return out;
}

}  // namespace rooftile
