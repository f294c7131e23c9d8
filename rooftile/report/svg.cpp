#include "rooftile/report/svg.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace rooftile::svg {
namespace {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '&') out += "&amp;";
        else if (static_cast<unsigned char>(c) < ' ') out += '?';
        else out += c;
    }
    return out;
}

}  // namespace

Color mixed(Color a, Color b, double share) {
    const auto mix = [&](double Color::*part) { return a.*part + share * (b.*part - a.*part); };
    return {mix(&Color::red), mix(&Color::green), mix(&Color::blue)};
}

std::string hex(Color c) {
    const auto byte = [](double x) { return int(std::lround(std::clamp(x, 0.0, 255.0))); };
    return fmt::format("#{:02x}{:02x}{:02x}", byte(c.red), byte(c.green), byte(c.blue));
}

std::string begin(double width, double height) {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} "
        "{1:.0f}\" font-family=\"sans-serif\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"#fff\"/>\n",
        width, height);
}

std::string text(double x, double y, int size, std::string_view text, std::string_view attributes) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" {}>{}</text>\n", x, y, size,
                       attributes, escaped(text));
}

std::string rect(double x, double y, double width, double height, Color fill, std::string_view title) {
    const std::string box =
        fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"", x, y,
                    width, height, hex(fill));
    return title.empty() ? box + "/>\n" : fmt::format("{}><title>{}</title></rect>\n", box, escaped(title));
}

}  // namespace rooftile::svg
