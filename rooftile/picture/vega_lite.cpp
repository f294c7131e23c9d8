// Pictures as data: the document, and Vega-Lite specifications with the same marks, texts and colours.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rooftile/picture/axis.hpp"
#include "rooftile/picture/picture.hpp"

namespace rooftile {
namespace {

constexpr const char* shape_names[] = {"box", "line", "point", "text"};
constexpr const char* scale_names[] = {"linear", "log", "names"};

Json axis_json(const PictureAxis& axis) {
    Json out = {{"title", axis.title}, {"scale", scale_names[int(axis.scale)]}};
    if (axis.scale == AxisScale::names) out["names"] = axis.names;
    else out["low"] = json_number(axis.low), out["high"] = json_number(axis.high);
    return out;
}

/// Six digits: more than anybody sees, and the same on every computer.
double drawn(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return std::strtod(text, nullptr);
}

Json points_json(const PictureMark& mark) {
    Json out = Json::array();
    for (const auto& [x, y] : mark.points) out.push_back({drawn(x), drawn(y)});
    return out;
}

std::string color_text(Ink role, const std::optional<Rgb>& color) { return hex(color ? *color : color_of(role, Theme::light)); }

Json channel(const PictureAxis& axis, const char* field, bool down) {
    const double high = axis.scale == AxisScale::names ? double(axis.names.size()) : axis.high,
                 low = axis.scale == AxisScale::names ? 0 : axis.low;
    Json out = {{"field", field}, {"type", "quantitative"}, {"title", axis.title}};
    out["scale"] = {
        {"type", axis.scale == AxisScale::log ? "log" : "linear"}, {"domain", {drawn(low), drawn(high)}}, {"nice", false}, {"zero", false}};
    if (down) out["scale"]["reverse"] = true;
    if (!axis.shown) return out["axis"] = nullptr, out;
    Json values = Json::array(), texts = Json::object();
    std::string expression = "''";
    for (const auto& [value, text] : ticks_of(axis)) {
        values.push_back(drawn(value));
        expression =
            "abs(datum.value-(" + Json(drawn(value)).dump() + "))<1e-9*max(1,abs(datum.value))?" + Json(text).dump() + ":" + expression;
    }
    out["axis"] = {{"values", values}, {"labelExpr", expression}, {"grid", axis.scale != AxisScale::names}};
    return out;
}

/// Texts by how they are aligned, which is a layer each.
struct Texts {
    Json centred = Json::array(), right_of = Json::array(), left_of = Json::array();

    /// In a box's middle, or beside it where it may be and the box is too short; what does not fit otherwise is read under the pointer.
    void add(const Picture& p, const PictureMark& m) {
        constexpr double letter = 0.011;  // of the plot's width
        const double from = place_on(p.x, m.points[0].first), to = place_on(p.x, m.points[1].first);
        const bool fits = std::fabs(to - from) > letter * double(m.label.size());
        const double y = (m.points[0].second + m.points[1].second) / 2;
        const Rgb inside = m.color ? ink_on(*m.color) : color_of(m.soft ? Ink::ink : Ink::ground, Theme::light);
        const auto row = [&](double x, Rgb color) {
            return Json{{"x", drawn(x)}, {"y", drawn(y)}, {"text", m.label}, {"color", hex(color)}};
        };
        if (fits || !m.beside) centred.push_back(row((m.points[0].first + m.points[1].first) / 2, inside));
        else if (std::max(from, to) + letter * double(m.label.size()) < 1)
            right_of.push_back(row(std::max(m.points[0].first, m.points[1].first), color_of(Ink::ink, Theme::light)));
        else left_of.push_back(row(std::min(m.points[0].first, m.points[1].first), color_of(Ink::ink, Theme::light)));
    }
};

}  // namespace

Json picture_json(const Picture& p) {
    Json out = {{"schema", "rooftile/picture/1"}, {"id", p.id}, {"title", p.title}, {"x", axis_json(p.x)}, {"y", axis_json(p.y)}};
    out["marks"] = Json::array();
    for (const PictureMark& m : p.marks) {
        Json mark = {{"shape", shape_names[int(m.shape)]}, {"role", name_of(m.role)}, {"points", points_json(m)}};
        if (m.color) mark["color"] = hex(*m.color);
        if (!m.label.empty()) mark["label"] = m.label;
        if (!m.title.empty()) mark["title"] = m.title;
        if (m.dashed) mark["dashed"] = true;
        if (m.outlined) mark["outlined"] = true;
        if (m.soft) mark["soft"] = true;
        out["marks"].push_back(std::move(mark));
    }
    out["keys"] = Json::array();
    for (const PictureKey& key : p.keys) out["keys"].push_back({{"text", key.text}, {"role", name_of(key.role)}});
    out["caption"] = p.caption;
    out["command"] = p.command;
    return out;
}

Json vega_lite(const Picture& p) {
    const bool down = p.y.scale == AxisScale::names;
    const Json x = channel(p.x, "x", false), y = channel(p.y, "y", down);
    Json boxes = Json::array(), points = Json::array(), layers = Json::array();
    Texts texts;
    const Json plain_color = {{"field", "color"}, {"type", "nominal"}, {"scale", nullptr}, {"legend", nullptr}};
    std::vector<Json> lines;
    for (const PictureMark& m : p.marks) {
        if (m.points.empty()) continue;
        const std::string color = color_text(m.role, m.color);
        if (m.shape == MarkShape::box) {
            Json row = {{"x", drawn(m.points[0].first)},
                        {"y", drawn(m.points[0].second)},
                        {"x2", drawn(m.points[1].first)},
                        {"y2", drawn(m.points[1].second)},
                        {"color", color},
                        {"opacity", m.soft ? 0.18 : 1.0},
                        {"stroke", m.outlined ? hex(color_of(Ink::ink, Theme::light)) : color},
                        {"title", m.title}};
            boxes.push_back(std::move(row));
            if (!m.label.empty()) texts.add(p, m);
        } else if (m.shape == MarkShape::point) {
            for (const auto& [px, py] : m.points)
                points.push_back({{"x", drawn(px)}, {"y", drawn(py)}, {"color", color}, {"title", m.title}});
        } else if (m.shape == MarkShape::line) {
            Json rows = Json::array();
            int order = 0;
            for (const auto& [px, py] : m.points)
                rows.push_back({{"x", drawn(px)}, {"y", drawn(py)}, {"order", order++}, {"title", m.title}});
            Json mark = {{"type", "line"}, {"color", color}, {"tooltip", {{"content", "data"}}}};
            if (m.dashed) mark["strokeDash"] = {5, 3};
            lines.push_back({{"data", {{"values", rows}}},
                             {"mark", mark},
                             {"encoding", {{"x", x}, {"y", y}, {"order", {{"field", "order"}}}, {"tooltip", {{"field", "title"}}}}}});
        }
        if (m.shape != MarkShape::box && !m.label.empty())
            texts.centred.push_back({{"x", drawn(m.points.back().first)},
                                     {"y", drawn(m.points.back().second)},
                                     {"text", m.label},
                                     {"color", hex(color_of(m.shape == MarkShape::line ? m.role : Ink::ink, Theme::light))}});
    }
    if (!boxes.empty())
        layers.push_back({{"data", {{"values", boxes}}},
                          {"mark", {{"type", "rect"}, {"strokeWidth", 1}}},
                          {"encoding",
                           {{"x", x},
                            {"y", y},
                            {"x2", {{"field", "x2"}}},
                            {"y2", {{"field", "y2"}}},
                            {"color", plain_color},
                            {"opacity", {{"field", "opacity"}, {"type", "quantitative"}, {"scale", nullptr}, {"legend", nullptr}}},
                            {"stroke", {{"field", "stroke"}, {"type", "nominal"}, {"scale", nullptr}, {"legend", nullptr}}},
                            {"tooltip", {{"field", "title"}}}}}});
    for (Json& line : lines) layers.push_back(std::move(line));
    if (!points.empty())
        layers.push_back({{"data", {{"values", points}}},
                          {"mark", {{"type", "circle"}, {"size", 60}, {"opacity", 1}}},
                          {"encoding", {{"x", x}, {"y", y}, {"color", plain_color}, {"tooltip", {{"field", "title"}}}}}});
    const auto add_texts = [&](const Json& rows, const char* align, int dx, int dy) {
        if (rows.empty()) return;
        layers.push_back({{"data", {{"values", rows}}},
                          {"mark", {{"type", "text"}, {"fontSize", 10}, {"align", align}, {"dx", dx}, {"dy", dy}}},
                          {"encoding", {{"x", x}, {"y", y}, {"text", {{"field", "text"}}}, {"color", plain_color}}}});
    };
    add_texts(texts.centred, "center", 0, boxes.empty() ? -10 : 0);
    add_texts(texts.right_of, "left", 4, 0);
    add_texts(texts.left_of, "right", -4, 0);
    // Nothing is drawn of these but their legend.
    Json names = Json::array(), colors = Json::array(), rows = Json::array();
    for (const PictureKey& key : p.keys) {
        names.push_back(key.text), colors.push_back(color_text(key.role, key.color));
        rows.push_back({{"key", key.text}});
    }
    if (!rows.empty())
        layers.push_back({{"data", {{"values", rows}}},
                          {"mark", {{"type", "point"}, {"opacity", 0}}},
                          {"encoding",
                           {{"fill",
                             {{"field", "key"},
                              {"type", "nominal"},
                              {"scale", {{"domain", names}, {"range", colors}}},
                              {"legend",
                               {{"title", nullptr},
                                {"orient", "top"},
                                {"symbolType", "square"},
                                {"symbolOpacity", 1},
                                {"labelLimit", 400},
                                {"columns", 3}}}}}}}});
    return {{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
            {"title", p.title},
            {"description", p.caption},
            {"usermeta", {{"rooftile", {{"id", p.id}, {"command", p.command}}}}},
            {"width", 640},
            {"height", drawn(p.height * 1.3)},
            {"layer", layers}};
}

}  // namespace rooftile
