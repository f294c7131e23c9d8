#include "rooftile/picture/palette.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace rooftile {
namespace {

struct RoleColors {
    std::string_view name;
    Rgb light, dark;
};
// Hues that every kind of colour vision tells apart (Okabe and Ito), as dark on white, or as light on near-black, as text must be.
constexpr std::array<RoleColors, role_count> roles{{{"ink", {0x1b, 0x1b, 0x1f}, {0xec, 0xec, 0xf1}},
                                                    {"faint", {0x55, 0x55, 0x5e}, {0xb4, 0xb4, 0xbe}},
                                                    {"grid", {0xd9, 0xd9, 0xde}, {0x3c, 0x3c, 0x44}},
                                                    {"ground", {0xff, 0xff, 0xff}, {0x16, 0x16, 0x1a}},
                                                    {"blue", {0x0b, 0x5c, 0xad}, {0x7a, 0xb8, 0xf5}},
                                                    {"orange", {0xa8, 0x3e, 0x0a}, {0xff, 0xa0, 0x70}},
                                                    {"green", {0x00, 0x6e, 0x4e}, {0x55, 0xd0, 0xa0}},
                                                    {"purple", {0x86, 0x37, 0x76}, {0xe5, 0x9a, 0xd0}},
                                                    {"ochre", {0x75, 0x58, 0x00}, {0xe0, 0xc0, 0x50}},
                                                    {"grey", {0x5c, 0x5c, 0x66}, {0xa8, 0xa8, 0xb4}}}};

Rgb between(Rgb a, Rgb b, double share) {
    const auto mix = [&](int x, int y) { return int(std::lround(x + std::clamp(share, 0.0, 1.0) * (y - x))); };
    return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

double luminance(Rgb c) {
    const auto linear = [](int byte) {
        const double x = byte / 255.0;
        return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
}

}  // namespace

std::string hex(Rgb c) { return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue); }

double contrast(Rgb a, Rgb b) {
    const double x = luminance(a), y = luminance(b);
    return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

std::string_view name_of(Ink role) { return roles[std::size_t(role)].name; }

Rgb color_of(Ink role, Theme theme) {
    const RoleColors& colors = roles[std::size_t(role)];
    return theme == Theme::light ? colors.light : colors.dark;
}

Rgb shade_color(double share) {
    constexpr Rgb best{0x08, 0x45, 0x94}, middle{0x6b, 0xae, 0xd6}, worst{0xef, 0xf3, 0xff};
    return share < 0.5 ? between(best, middle, 2 * share) : between(middle, worst, 2 * share - 1);
}

Rgb balance_color(double share) {
    constexpr Rgb behind{0xb2, 0x18, 0x2b}, even{0xf7, 0xf7, 0xf7}, ahead{0x21, 0x66, 0xac};
    return share < 0 ? between(even, behind, -share) : between(even, ahead, share);
}

Rgb ink_on(Rgb color) {
    constexpr Rgb black{}, white{255, 255, 255};
    return contrast(color, black) > contrast(color, white) ? black : white;
}

std::string role_style() {
    const auto rules = [](Theme theme) {
        std::string out;
        for (int i = 0; i < role_count; ++i) {
            const std::string color = hex(color_of(Ink(i), theme));
            out += fmt::format(".rt-fill-{0}{{fill:{1}}}.rt-line-{0}{{stroke:{1}}}", name_of(Ink(i)), color);
        }
        return out;
    };
    return rules(Theme::light) + "@media screen and (prefers-color-scheme:dark){" + rules(Theme::dark) + "}";
}

}  // namespace rooftile
