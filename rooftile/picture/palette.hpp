// Colours of pictures and of the page, in light and in dark: every text has a contrast of 4.5 at least with what is under it.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace rooftile {

struct Rgb {
    int red = 0, green = 0, blue = 0;  ///< 0 .. 255
};
std::string hex(Rgb color);
/// As WCAG 2 defines it, 1 to 21.
double contrast(Rgb a, Rgb b);

/// What a mark is; its colour follows by the theme.
enum class Ink : unsigned char { ink, faint, grid, ground, blue, orange, green, purple, ochre, grey };
inline constexpr int role_count = 10;
/// The name of its class in SVG: "rt-blue".
std::string_view name_of(Ink role);

enum class Theme : unsigned char { light, dark };
Rgb color_of(Ink role, Theme theme);

/// From 0, the best, to 1: the same in both themes. `ink_on` is black or white, whichever is read better on it.
Rgb shade_color(double share);
/// Below 0 behind, above 0 ahead, -1 to 1.
Rgb balance_color(double share);
Rgb ink_on(Rgb color);

/// Style sheet of the roles' classes, `rt-fill-blue` and `rt-line-blue`, for light, dark and print.
std::string role_style();

}  // namespace rooftile
