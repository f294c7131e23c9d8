// Pictures as SVG: a fixed width, margins by the texts that stand in them, a text only where it fits and covers no other.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <sstream>

#include "rooftile/picture/axis.hpp"
#include "rooftile/picture/markup.hpp"
#include "rooftile/picture/pictures.hpp"

namespace rooftile {
namespace {

constexpr double edge = 10, gap = 6, line_height = 15, title_font = 14, swatch = 12;
constexpr std::size_t titled = 8192;  // marks whose titles are written: they are a picture's bytes

struct Rect {
    double x, y, width, height;
    bool meets(const Rect& other) const {
        return x < other.x + other.width && other.x < x + width && y < other.y + other.height && other.y < y + height;
    }
};

/// In widths of DejaVu Sans, the widest of the usual fonts: what fits by it fits.
double text_width(std::string_view text, double font = picture_font, bool bold = false) {
    double em = 0;
    for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) continue;  // goes on a letter
        em += std::string_view(" iIjl.,:;'|!()").find(c) != std::string_view::npos ? 0.39
              : std::string_view("mwMW%@+=").find(c) != std::string_view::npos     ? 0.96
              : c >= 'A' && c <= 'Z'                                               ? 0.74
                                                                                   : 0.63;
    }
    return em * font * (bold ? 1.12 : 1);
}

/// Lines of at most so many units, broken at spaces.
std::vector<std::string> lines_of(const std::string& text, double width, double font = picture_font, bool bold = false) {
    std::vector<std::string> out;
    std::istringstream words(text);
    for (std::string word; words >> word;)
        if (!out.empty() && text_width(out.back() + " " + word, font, bold) <= width) out.back() += " " + word;
        else out.push_back(word);
    return out;
}

enum class Anchor { start, middle, end };

class SvgWriter {
  public:
    explicit SvgWriter(const Picture& picture) : p_(picture) {}

    std::string text(bool inlined, double& height) {
        double y = edge + title_font;
        for (const std::string& line : lines_of(p_.title, picture_width - 2 * edge, title_font, true)) {
            put(edge, y, line, Anchor::start, "rt-fill-ink", title_font, true);
            y += line_height + 3;
        }
        y = keys(y);
        if (p_.y.shown && !p_.y.title.empty()) y += line_height + 3, put(edge, y, p_.y.title, Anchor::start, "rt-fill-faint");
        frame(y + gap + 4);
        axes();
        marks();
        double at = bottom_ + (p_.x.shown ? 3 * line_height + gap : line_height);
        for (const std::string& line : lines_of(p_.caption, picture_width - 2 * edge)) {
            put(edge, at + 4, line, Anchor::start, "rt-fill-faint");
            at += line_height;
        }
        height = std::ceil(at + gap);
        std::string out = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\" "
            "font-family=\"sans-serif\" font-size=\"{}\">\n",
            picture_width, height, escaped_markup(p_.title), picture_font);
        if (!inlined) out += fmt::format("<title>{}</title>\n<style>{}</style>\n", escaped_markup(p_.title), role_style());
        return out + "<rect width=\"100%\" height=\"100%\" class=\"rt-fill-ground\"/>\n" + under_ + over_ + "</svg>\n";
    }

  private:
    Rect box_of(double x, double y, std::string_view text, Anchor anchor, double font = picture_font, bool bold = false) const {
        const double width = text_width(text, font, bold);
        return {anchor == Anchor::start ? x : anchor == Anchor::end ? x - width : x - width / 2, y - 0.8 * font, width, font};
    }
    void put(double x, double y, std::string_view text, Anchor anchor, std::string_view style, double font = picture_font,
             bool bold = false) {
        placed_.push_back(box_of(x, y, text, anchor, font, bold));
        const char* anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
        const std::string paint = style.starts_with('#') ? fmt::format("fill=\"{}\"", style) : fmt::format("class=\"{}\"", style);
        over_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{} {}{}{} pointer-events=\"none\">{}</text>\n", x, y, anchors[int(anchor)],
                             paint, font == picture_font ? "" : fmt::format(" font-size=\"{}\"", font), bold ? " font-weight=\"bold\"" : "",
                             escaped_markup(text));
    }
    /// Where it is within the picture and covers no other.
    bool try_put(double x, double y, std::string_view text, Anchor anchor, std::string_view style, bool bold = false) {
        const Rect box = box_of(x, y, text, anchor, picture_font, bold);
        if (box.x < 2 || box.x + box.width > picture_width - 2) return false;
        if (std::any_of(placed_.begin(), placed_.end(), [&](const Rect& other) { return other.meets(box); })) return false;
        put(x, y, text, anchor, style, picture_font, bold);
        return true;
    }

    /// In rows; returns what comes below.
    double keys(double y) {
        double x = edge;
        for (const PictureKey& key : p_.keys) {
            const double width = swatch + 5 + text_width(key.text) + 14;
            if (x > edge && x + width > picture_width) x = edge, y += line_height + 2;
            if (key.line || key.dashed)
                over_ += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.1f}\" fill=\"none\" {} stroke-width=\"2.5\"{}/>\n", x, y - 4, swatch,
                                     stroke(key.role), key.dashed ? " stroke-dasharray=\"4 2\"" : "");
            else
                over_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" {}{}/>\n", x, y - 10, swatch,
                                     swatch, fill(key.role, key.color), key.soft ? " fill-opacity=\"0.3\"" : "");
            put(x + swatch + 5, y, key.text, Anchor::start, "rt-fill-ink");
            x += width;
        }
        return p_.keys.empty() ? y - line_height : y;
    }

    void frame(double top) {
        left_ = edge;
        const auto ticks = ticks_of(p_.y);
        if (p_.y.shown)
            for (const auto& [value, text] : ticks) left_ = std::max(left_, edge + text_width(text) + gap);
        left_ = std::min(left_, 0.42 * picture_width);
        right_ = picture_width - edge - 8;
        top_ = top, bottom_ = top + p_.height;
    }
    double at_x(double value) const { return left_ + place_on(p_.x, value) * (right_ - left_); }
    double at_y(double value) const {
        const double share = place_on(p_.y, value);
        return p_.y.scale == AxisScale::names ? top_ + share * (bottom_ - top_) : bottom_ - share * (bottom_ - top_);
    }

    void axes() {
        if (p_.y.shown)
            for (const auto& [value, text] : ticks_of(p_.y)) {
                const double y = at_y(value);
                if (p_.y.scale != AxisScale::names)
                    under_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" class=\"rt-line-grid\"/>\n", left_, y, right_);
                try_put(left_ - gap, y + 4, text, Anchor::end, "rt-fill-ink");
            }
        if (p_.x.shown) {
            for (const auto& [value, text] : ticks_of(p_.x)) {
                const double x = at_x(value);
                if (p_.x.scale != AxisScale::names)
                    under_ += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" class=\"rt-line-grid\"/>\n", x, top_, bottom_);
                try_put(x, bottom_ + line_height, text, Anchor::middle, "rt-fill-ink");
            }
            put((left_ + right_) / 2, bottom_ + 2 * line_height, p_.x.title, Anchor::middle, "rt-fill-faint");
        }
        under_ +=
            fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\" fill=\"none\" class=\"rt-line-faint\"/>\n", left_, top_, bottom_, right_);
    }

    static std::string stroke(Ink role) { return fmt::format("class=\"rt-line-{}\"", name_of(role)); }
    static std::string fill(Ink role, const std::optional<Rgb>& color) {
        return color ? fmt::format("fill=\"{}\"", hex(*color)) : fmt::format("class=\"rt-fill-{}\"", name_of(role));
    }
    std::string closed(const PictureMark& m, const char* element) const {
        if (m.title.empty() || p_.marks.size() > titled) return "/>\n";
        return fmt::format("><title>{}</title></{}>\n", escaped_markup(m.title), element);
    }
    static std::string ink_over(const PictureMark& m) {
        if (m.color) return hex(ink_on(*m.color));
        return m.soft ? "rt-fill-ink" : "rt-fill-ground";
    }

    void marks() {
        for (const PictureMark& m : p_.marks) draw(m);
        for (const PictureMark& m : p_.marks)
            if (!m.label.empty() && m.outlined) label(m);
        for (const PictureMark& m : p_.marks)
            if (!m.label.empty() && !m.outlined) label(m);
    }
    Rect extent(const PictureMark& m) const {
        const double x0 = at_x(m.points[0].first), x1 = at_x(m.points[1].first), y0 = at_y(m.points[0].second),
                     y1 = at_y(m.points[1].second);
        return {std::min(x0, x1), std::min(y0, y1), std::fabs(x1 - x0), std::fabs(y1 - y0)};
    }
    void draw(const PictureMark& m) {
        if (m.points.empty() || m.shape == MarkShape::text) return;
        if (m.shape == MarkShape::box) {
            const Rect r = extent(m);
            (m.outlined ? outlined_ : under_) +=
                fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}{}", r.x, r.y, r.width, r.height,
                            fill(m.role, m.color), m.soft ? " fill-opacity=\"0.18\"" : "")
                + closed(m, "rect");
            if (m.outlined)
                outlined_ += fmt::format(
                    "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"none\" stroke-width=\"2.5\" "
                    "class=\"rt-line-ink\"/>\n",
                    r.x, r.y, r.width, r.height);
            under_ += outlined_, outlined_.clear();
        } else if (m.shape == MarkShape::line) {
            std::string path;
            for (const auto& [x, y] : m.points) path += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
            path.pop_back();
            under_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke-width=\"2\" stroke-linejoin=\"round\"{} {}", path,
                                  m.dashed ? " stroke-dasharray=\"5 3\"" : "", stroke(m.role))
                      + closed(m, "polyline");
        } else {
            for (const auto& [x, y] : m.points)
                under_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}{}", at_x(x), at_y(y), m.outlined ? 5.5 : 3.5,
                                      fill(m.role, m.color), m.outlined ? " stroke-width=\"1.5\"" : "")
                          + closed(m, "circle");
        }
    }
    void label(const PictureMark& m) {
        if (m.shape == MarkShape::box) {
            const Rect r = extent(m);
            const double width = text_width(m.label, picture_font, m.outlined), middle = r.y + r.height / 2 + 4;
            if (r.width >= width + 2 && r.height >= picture_font)
                try_put(r.x + r.width / 2, middle, m.label, Anchor::middle, ink_over(m), m.outlined);
            else if (m.beside && !try_put(r.x + r.width + 4, middle, m.label, Anchor::start, "rt-fill-ink"))
                try_put(r.x - 4, middle, m.label, Anchor::end, "rt-fill-ink");
            return;
        }
        const auto& [x, y] = m.points.back();
        const std::string style =
            m.shape == MarkShape::text || m.shape == MarkShape::point ? "rt-fill-ink" : fmt::format("rt-fill-{}", name_of(m.role));
        // Around the last point, above first.
        const double px = at_x(x), py = at_y(y);
        if (try_put(px, py - 8, m.label, Anchor::middle, style) || try_put(px, py - 8, m.label, Anchor::end, style)
            || try_put(px + 8, py + 4, m.label, Anchor::start, style) || try_put(px - 8, py + 4, m.label, Anchor::end, style)
            || try_put(px, py + 17, m.label, Anchor::middle, style))
            return;
        try_put(px, py + 17, m.label, Anchor::end, style);
    }

    const Picture& p_;
    double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
    std::vector<Rect> placed_;
    std::string under_, over_, outlined_;
};

}  // namespace

std::string svg_text(const Picture& picture, bool inlined) {
    double height = 0;
    return SvgWriter(picture).text(inlined, height);
}

std::string svg_text(const std::vector<Picture>& pictures) {
    if (pictures.size() == 1) return svg_text(pictures.front());
    std::string inside;
    double y = 0;
    for (const Picture& picture : pictures) {
        double height = 0;
        std::string one = SvgWriter(picture).text(true, height);
        one.insert(one.find(' '), fmt::format(" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\"", y, picture_width, height));
        inside += one, y += height;
    }
    return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\">\n<style>{}</style>\n{}</svg>\n",
                       picture_width, y, role_style(), inside);
}

}  // namespace rooftile
