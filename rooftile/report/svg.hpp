// What pictures in SVG are put together from.
#pragma once

#include <string>
#include <string_view>

namespace rooftile::svg {

struct Color {
    double red = 0, green = 0, blue = 0;  ///< 0 .. 255
};
/// `share` of `b`, the rest of `a`.
Color mixed(Color a, Color b, double share);
std::string hex(Color color);

/// A picture's first lines: its size, a font, a white ground. "</svg>\n" ends it.
std::string begin(double width, double height);
/// `attributes`: more of the element. `text` is escaped.
std::string text(double x, double y, int size, std::string_view text, std::string_view attributes = "");
/// A box; `title`, where there is one, shows under the pointer.
std::string rect(double x, double y, double width, double height, Color fill, std::string_view title = "");

}  // namespace rooftile::svg
