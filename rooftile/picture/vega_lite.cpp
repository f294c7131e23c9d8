// Pictures as data: the document, and Vega-Lite specifications with the same marks, texts and colours.
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
    Json boxes = Json::array(), points = Json::array(), texts = Json::array(), layers = Json::array();
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
            // As in SVG: what does not fit is read under the pointer.
            if (!m.label.empty())
                texts.push_back(
                    {{"x", (m.points[0].first + m.points[1].first) / 2},
                     {"y", (m.points[0].second + m.points[1].second) / 2},
                     {"text", m.label},
                     {"color", hex(m.color ? ink_on(*m.color) : color_of(m.soft || m.beside ? Ink::ink : Ink::ground, Theme::light))}});
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
            texts.push_back({{"x", drawn(m.points.back().first)},
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
    if (!texts.empty())
        layers.push_back({{"data", {{"values", texts}}},
                          {"mark", {{"type", "text"}, {"fontSize", 10}, {"dy", boxes.empty() ? -10 : 0}}},
                          {"encoding", {{"x", x}, {"y", y}, {"text", {{"field", "text"}}}, {"color", plain_color}}}});
    std::string subtitle;
    for (const PictureKey& key : p.keys) subtitle += (subtitle.empty() ? "" : " · ") + key.text;
    return {{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
            {"title", {{"text", p.title}, {"subtitle", subtitle}}},
            {"description", p.caption},
            {"usermeta", {{"rooftile", {{"id", p.id}, {"command", p.command}}}}},
            {"width", 640},
            {"height", drawn(p.height * 1.3)},
            {"layer", layers}};
}

}  // namespace rooftile
