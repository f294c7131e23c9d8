// Pictures hold the documents' numbers, and nothing in them is too faint, too small, outside or covered.
#include "rooftile/picture/picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "rooftile/picture/pictures.hpp"
#include "tests/from_environment.hpp"
#include "tests/golden.hpp"
#include "tests/picture/sample.hpp"
#include "tests/profile/made_profiles.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double enough = 4.5;  // contrast of text, WCAG 2 AA

bool carries_text(Ink role) { return role != Ink::grid && role != Ink::ground; }

TEST(Palette, TextIsReadInLightAndInDark) {
    for (const Theme theme : {Theme::light, Theme::dark}) {
        const Rgb ground = color_of(Ink::ground, theme);
        for (int i = 0; i < role_count; ++i) {
            if (!carries_text(Ink(i))) continue;
            EXPECT_GE(contrast(color_of(Ink(i), theme), ground), enough) << name_of(Ink(i));
            // Ink over a band, which is a fifth of its colour.
            const Rgb c = color_of(Ink(i), theme);
            const auto over = [&](int Rgb::*part) { return int(std::lround(0.18 * c.*part + 0.82 * ground.*part)); };
            EXPECT_GE(contrast(color_of(Ink::ink, theme), {over(&Rgb::red), over(&Rgb::green), over(&Rgb::blue)}), enough)
                << name_of(Ink(i));
        }
    }
    for (double share = -1; share <= 1; share += 1.0 / 64) {
        EXPECT_GE(contrast(balance_color(share), ink_on(balance_color(share))), enough) << share;
        EXPECT_GE(contrast(shade_color(std::fabs(share)), ink_on(shade_color(std::fabs(share)))), enough) << share;
    }
    EXPECT_NEAR(contrast({0, 0, 0}, {255, 255, 255}), 21, 1e-9);
}

struct Text {
    double x, y, width, height;
    std::string text;
};

/// Texts as an ordinary font has them, half an em a letter.
std::vector<Text> texts_of(const std::string& svg) {
    static const std::regex element(
        R"re(<text x="([-0-9.]+)" y="([-0-9.]+)"( text-anchor="(\w+)")?[^>]*?( font-size="([0-9.]+)")?[^>]*>([^<]*)</text>)re");
    std::vector<Text> out;
    for (std::sregex_iterator i(svg.begin(), svg.end(), element), end; i != end; ++i) {
        const std::smatch& m = *i;
        const double size = m[6].matched ? std::stod(m[6]) : picture_font, width = 0.5 * size * double(m[7].length());
        const double x = std::stod(m[1]);
        out.push_back({m[4] == "middle" ? x - width / 2
                       : m[4] == "end"  ? x - width
                                        : x,
                       std::stod(m[2]) - 0.75 * size, width, 0.9 * size, m[7]});
    }
    return out;
}

/// What is wrong with how it is drawn.
void expect_legible(const Picture& picture) {
    SCOPED_TRACE(picture.id + ": " + picture.title);
    const std::string svg = svg_text(picture);
    std::smatch box;
    ASSERT_TRUE(std::regex_search(svg, box, std::regex(R"re(viewBox="0 0 (\d+) (\d+)")re")));
    const double width = std::stod(box[1]), height = std::stod(box[2]);
    constexpr double screen = 400, least_pixels = 10;
    const std::vector<Text> texts = texts_of(svg);
    EXPECT_GE(texts.size(), 3u);
    static const std::regex size(R"re(font-size="([0-9.]+)")re");
    for (std::sregex_iterator i(svg.begin(), svg.end(), size), end; i != end; ++i)
        EXPECT_GE(std::stod((*i)[1]) * screen / width, least_pixels);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const Text& a = texts[i];
        EXPECT_TRUE(a.x >= 0 && a.y >= 0 && a.x + a.width <= width && a.y + a.height <= height) << a.text;
        for (std::size_t j = i + 1; j < texts.size(); ++j) {
            const Text& b = texts[j];
            const bool meet = a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
            EXPECT_FALSE(meet) << a.text << " and " << b.text;
        }
    }
    for (const char* what : {"nan", "inf,", "href"}) EXPECT_THAT(svg, Not(HasSubstr(what)));
    const Json vega = vega_lite(picture);
    EXPECT_EQ(vega.at("usermeta").at("rooftile").at("command"), picture.command);
    EXPECT_FALSE(vega.at("layer").empty());
}

std::string golden_of(const std::vector<Picture>& pictures) {
    std::string out;
    for (const Picture& picture : pictures) {
        Json data = picture_json(picture);
        const Json marks = data.at("marks");
        data.erase("marks");
        out += json_text(data, -1);
        for (const Json& mark : marks) out += "  " + json_text(mark, -1);
    }
    return out;
}

TEST(Pictures, OfDocumentsHaveTheirNumbers) {
    expect_golden("pictures_plan.txt", golden_of(pictures_of(sample::pictured_plan())));
    expect_golden("pictures_sweep.txt", golden_of(pictures_of(sample::pictured_sweep())));
    expect_golden("pictures_profile.txt", golden_of(pictures_of(document_of(recorded(made_training()), "step"))));
}

Json products_document() {
    std::vector<Recorded> products;
    products.push_back(recorded_products());
    return document_of(products);
}

TEST(Pictures, OfProfilesAreLegible) {
    RecordingWriter other = made_training();
    for (const Json& document : {document_of({}), document_of(recorded(made_training())), document_of(recorded(made_training(), other), "step"), products_document()})
        for (const Picture& picture : pictures_of(document)) expect_legible(picture);
}

// Each bar is the time of a device by what it did: all parts together are the whole of it.
TEST(Pictures, ADevicesPartsAreItsTime) {
    const Json d = document_of(recorded(made_training()), "step");
    const std::vector<Picture> pictures = pictures_of(d);
    ASSERT_EQ(pictures.size(), 2u) << "no kernel here has a known problem";
    EXPECT_EQ(pictures[0].id, "device");
    EXPECT_EQ(pictures[0].marks.back().points[1].first, 100);
    EXPECT_EQ(pictures[1].id, "flame");
    double step = 0;
    for (const PictureMark& mark : pictures[1].marks)
        if (mark.label == "step") step = mark.points[1].first - mark.points[0].first;
    EXPECT_EQ(step, 100);
}

TEST(Pictures, KernelsBesideWhatTheyShouldTake) {
    const Json d = products_document();
    const std::vector<Picture> pictures = pictures_of(d);
    ASSERT_EQ(pictures.size(), 3u);
    const Picture& p = pictures[1];
    EXPECT_EQ(p.id, "kernels");
    EXPECT_EQ(p.y.names.size(), 10u);
    EXPECT_EQ(p.y.names.front(), "31 of 2048x1416x2048");
    EXPECT_NEAR(p.marks.front().points[1].first, 476.4, 0.1);
}

TEST(Pictures, OfSamplesAreLegible) {
    for (const Json& document : {sample::pictured_plan(), sample::pictured_sweep()})
        for (const Picture& picture : pictures_of(document)) expect_legible(picture);
}

// Drawn: any number of steps, tiles and stages, times over many decades, long names.
TEST(Pictures, OfAnyNumbersAreLegible) {
    std::mt19937_64 random(5);
    const auto number = [&](double low, double high) {
        return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random));
    };
    const auto whole = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
    for (std::size_t round = 0, rounds = test_count(10, 200); round < rounds; ++round) {
        Json d = sample::pictured_plan();
        Json& plan = d["plans"][0];
        d["machine"]["id"] = std::string(std::size_t(whole(1, 40)), 'w');
        std::int64_t now = std::llround(number(1, 1e9));
        plan["attainability"] = Json::array();
        const int steps = whole(1, 15);
        for (int i = 0; i < steps; ++i) {
            const std::int64_t cost = i == 0 ? now : whole(0, 2) * std::llround(number(1, 1e9));
            if (i > 0) now += cost;
            plan["attainability"].push_back({{"step", i % 2 ? "whole_tiles_of_something" : "dram"},
                                             {"time_ns", now},
                                             {"cost_ns", cost},
                                             {"inputs", Json::array()},
                                             {"note", nullptr}});
        }
        for (Json& level : plan["roofline"]["levels"])
            level["bytes"] = std::llround(number(1, 1e12)), level["bytes_per_s"] = number(1e9, 1e14);
        plan["pipeline"]["stages"] = whole(1, 12), plan["pipeline"]["steps"] = whole(1, 200),
        plan["pipeline"]["step_cycles"] = std::llround(number(10, 1e5));
        d["map"]["cells"] = Json::array();
        const int columns = whole(1, 9), rows = whole(1, 20);
        for (int y = 1; y <= rows; ++y)
            for (int x = 1; x <= columns; ++x) {
                const bool wall = whole(0, 2) == 0;
                d["map"]["cells"].push_back({{"tile_m", 64 * x},
                                             {"tile_n", 16 * y},
                                             {"time_us", wall ? Json(nullptr) : Json(number(1, 1e7))},
                                             {"label", "l"},
                                             {"wall", wall ? Json("instruction") : Json(nullptr)},
                                             {"why", "because"}});
            }
        for (const Picture& picture : pictures_of(d)) expect_legible(picture);
        Json s = sample::pictured_sweep();
        s["points"] = Json::array();
        const int points = whole(1, 60), constant = whole(0, 2);
        for (int i = 0; i < points; ++i) {
            const double us = number(1, 1e5);
            s["points"].push_back({{"name", "p"},
                                   {"m", constant == 1 ? 64 : whole(1, 16384)},
                                   {"n k", constant == 2 ? 64 : whole(1, 1 << 28)},
                                   {"time_us", us},
                                   {"baseline_us", us * number(0.3, 3)},
                                   {"predicted_us", us * number(0.5, 2)},
                                   {"ratio", number(0.3, 3)},
                                   {"label", "x"},
                                   {"invalid", nullptr}});
        }
        for (const Picture& picture : pictures_of(s)) expect_legible(picture);
    }
}

TEST(Pictures, TheWaterfallEndsAtTheDocumentsTimes) {
    Json d = sample::pictured_plan();
    const Picture plan = pictures_of(d).front();
    EXPECT_EQ(plan.id, "waterfall");
    EXPECT_EQ(plan.marks.back().points[1].first, 100);
    Json row = d["plans"][0];
    row["time_us"] = 93.5, row["problem"] = d["problem"];
    row["attainability"].push_back(
        {{"step", "measured"}, {"time_ns", 93500}, {"cost_ns", -6500}, {"inputs", Json::array()}, {"note", "unexplained"}});
    const Json run = {{"schema", "rooftile/measurement/1"}, {"context", d["context"]}, {"machine", d["machine"]}, {"rows", {row}}};
    const Picture measured = pictures_of(run).front();
    EXPECT_EQ(measured.y.names.back(), "measured");
    EXPECT_EQ(measured.marks.back().points[1].first, 93.5);
    expect_legible(measured);
}

// A step begins when its data are there, a slot is asked for when it is free, one step at a time.
TEST(Pictures, TheTraceKeepsTheRing) {
    const Json pipeline = sample::pictured_plan()["plans"][0]["pipeline"];
    const Json trace = pipeline_trace(pipeline);
    std::map<std::string, std::pair<double, double>> at;
    for (const Json& event : trace.at("traceEvents"))
        if (event.at("ph") == "X") {
            EXPECT_GT(event.at("dur").get<double>(), 0);
            const double begin = event.at("ts").get<double>() * 1000;  // at 1000 MHz a cycle is a ns
            if (event.at("tid") != 5) at[event.at("name")] = {begin, begin + event.at("dur").get<double>() * 1000};
        }
    for (int i = 0; i < 6; ++i) {
        const auto load = at.at("load " + std::to_string(i)), step = at.at("step " + std::to_string(i));
        EXPECT_GE(step.first, load.second - 1e-6);
        EXPECT_NEAR(step.second - step.first, 90, 1e-6);
        if (i > 0) { EXPECT_GE(step.first, at.at("step " + std::to_string(i - 1)).first + 100 - 1e-6); }
        if (i >= 4) { EXPECT_GE(load.first, at.at("step " + std::to_string(i - 4)).second - 1e-6); }
    }
    EXPECT_NEAR(at.at("epilogue").second - at.at("epilogue").first, 80, 1e-6);
}

TEST(Pictures, NothingToDrawIsNoPicture) {
    Json d = sample::pictured_plan();
    d.erase("map");
    for (const char* key : {"attainability", "roofline", "pipeline"}) d["plans"][0].erase(key);
    EXPECT_TRUE(pictures_of(d).empty());
    d["plans"] = Json::array();
    EXPECT_TRUE(pictures_of(d).empty());
    EXPECT_TRUE(pictures_of({{"schema", "rooftile/other/1"}}).empty());
}

TEST(ProbePictures, ABarARateBelowThePeak) {
    const auto point = [](const char* series, const char* label, double gbps) {
        return Json{{"series", series}, {"label", label}, {"gbps", gbps}, {"gbps_spread", 10}};
    };
    Json d = {{"schema", "rooftile/probe/1"},
              {"context", {{"gpu", "NVIDIA H200"}, {"command", "x"}}},
              {"values", {{{"name", "dram.peak"}, {"value", 4800}}}},
              {"points",
               {point("dram.mix", "1:0", 4600), point("dram.mix", "1:1", 4000), point("dram.blocks", "32 B every 65536 B", 2000)}}};
    const std::vector<Picture> pictures = pictures_of(d);
    ASSERT_EQ(pictures.size(), 2u);
    EXPECT_EQ(pictures[0].id, "dram_mix");
    EXPECT_EQ(pictures[0].y.names, (std::vector<std::string>{"1:0", "1:1"}));
    EXPECT_EQ(pictures[0].marks[1].points[1].first, 4000);
    EXPECT_EQ(pictures[0].marks.back().points[0].first, 4800);
    EXPECT_EQ(pictures[1].id, "dram_blocks");
    EXPECT_NE(svg_text(pictures[1]).find("32 B every 65536 B"), std::string::npos);
    // A probe of something else has nothing to draw.
    d["points"] = Json::array(), d["values"] = Json::array();
    EXPECT_TRUE(pictures_of(d).empty());
}

}  // namespace
}  // namespace rooftile
