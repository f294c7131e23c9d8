// A picture as data: what is drawn, in units of its axes. Made from documents' numbers (picture/pictures.hpp), written as SVG or as a
// Vega-Lite specification; both show the same.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rooftile/picture/palette.hpp"
#include "rooftile/report/json.hpp"

namespace rooftile {

enum class AxisScale : unsigned char {
    linear,
    log,
    names  ///< the i-th name has the room from i to i + 1
};

struct PictureAxis {
    std::string title;  ///< with its unit
    AxisScale scale = AxisScale::linear;
    double low = 0, high = 1;
    std::vector<std::string> names{};
    std::vector<std::pair<double, std::string>> ticks{};  ///< empty: chosen by the scale
    bool shown = true;
};

enum class MarkShape : unsigned char {
    box,    ///< from one corner to the other
    line,   ///< through points
    point,  ///< one of `points` each
    text,   ///< the label alone, at the first point
};

struct PictureMark {
    MarkShape shape = MarkShape::box;
    Ink role = Ink::blue;
    std::optional<Rgb> color{};                       ///< in the place of the role's: of a scale
    std::vector<std::pair<double, double>> points{};  ///< of a box its two corners
    std::string label{};                              ///< on it or at its end, where there is room
    std::string title{};                              ///< under the pointer
    bool dashed = false, outlined = false;
    bool soft = false;    ///< a background that other marks and text lie on
    bool beside = false;  ///< a box's label may stand next to it
};

struct PictureKey {
    Ink role = Ink::blue;
    std::optional<Rgb> color{};
    std::string text;
    bool dashed = false, line = false, soft = false;
};

struct Picture {
    std::string id;  ///< "waterfall"
    std::string title;
    PictureAxis x, y;  ///< y upwards, or down the list of its names
    std::vector<PictureMark> marks{};
    std::vector<PictureKey> keys{};
    std::string caption{};  ///< how to read it
    std::string command{};  ///< that made its numbers
    double height = 240;  ///< of the plot, where its width is as the writer has it
};

/// In pictures' units: wide as a small screen, so that the smallest text has 10 px where a page is 400 px wide.
inline constexpr double picture_width = 480, picture_font = 12;

/// The document `rooftile/picture/1`, for tests and other programs.
Json picture_json(const Picture& picture);
/// By itself, with its colours; or `inlined` in a page that has role_style().
std::string svg_text(const Picture& picture, bool inlined = false);
/// Vega-Lite 5, in the light theme.
Json vega_lite(const Picture& picture);

}  // namespace rooftile
