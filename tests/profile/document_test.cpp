// The document follows its schema, and what people read of it is what it says.
#include "rooftile/profile/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/golden.hpp"
#include "tests/json_schema.hpp"
#include "tests/profile/made_profiles.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

/// What documents are made of here: nothing, one process, steps, several processes, products of a library.
std::vector<Json> made_documents() {
    RecordingWriter nothing, no_device, other = made_training();
    no_device.launched(1, 2, {.start = 100, .end = 200, .name = "\xff\xfe not UTF-8 \x1b[31m"});
    std::vector<Recorded> products;
    products.push_back(recorded_products());
    return {document_of({}),
            document_of(recorded(nothing)),
            document_of(recorded(no_device)),
            document_of(recorded(made_training())),
            document_of(recorded(made_training()), "step"),
            document_of(recorded(made_training(), other)),
            document_of(products)};
}

const std::vector<Json>& documents() {
    static const std::vector<Json> all = made_documents();
    return all;
}

TEST(ProfileDocument, FollowsItsSchema) {
    const JsonSchema schema("profile-1.json");
    for (const Json& document : documents())
        EXPECT_EQ(schema.faults(Json::parse(json_text(document))), "") << document.at("notices").dump();
}

TEST(ProfileDocument, NumbersAreTheRecordings) {
    const Json d = document_of(recorded(made_training()), "step");
    EXPECT_EQ(d.at("steps"), 2);
    EXPECT_EQ(d.at("devices")[0].at("machine"), "h200-sxm");
    EXPECT_EQ(d.at("host").at("launches"), 6);
    EXPECT_EQ(d.at("host").at("graph_launches"), 2);
    const Json& first = d.at("kernels")[0];
    EXPECT_EQ(first.at("short"), "torch.compile elementwise: add mul");
    EXPECT_EQ(first.at("calls"), 4);
    EXPECT_EQ(first.at("in_graphs"), 4);
    EXPECT_EQ(first.at("time_us"), 480);
    EXPECT_EQ(first.at("launches").size(), 2u);
    double share = 0;
    for (const Json& kernel : d.at("kernels")) share += kernel.at("share").get<double>();
    EXPECT_NEAR(share, 1, 1e-12);
}

void expect_no_line_wider_than(int columns, const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), columns) << line;
}

TEST(ProfileText, IsTheGoldenOne) {
    std::vector<Recorded> products;
    products.push_back(recorded_products());
    const Json training = document_of(recorded(made_training()), "step"),
               library = document_of(products, "", "python3 products.py --seed 3");
    for (const int width : {80, 160}) {
        const Terminal terminal{.width = width};
        expect_golden("profile_" + std::to_string(width) + ".txt", profile_text(training, 10, terminal));
        expect_golden("profile_products_" + std::to_string(width) + ".txt", profile_text(library, 12, terminal));
        expect_golden("profile_compared_" + std::to_string(width) + ".txt", profile_comparison_text(training, library, 10, terminal));
    }
}

TEST(ProfileText, NoLineIsWiderThanTheTerminal) {
    for (const int width : {80, 110})
        for (const bool utf8 : {false, true})
            for (const Json& document : documents()) {
                const Terminal terminal{.utf8 = utf8, .width = width};
                expect_no_line_wider_than(width, profile_text(document, 25, terminal));
                expect_no_line_wider_than(width, profile_comparison_text(document, documents()[3], 25, terminal));
            }
}

TEST(ProfileText, NamesDoNotSteerTheTerminal) {
    RecordingWriter w;
    const std::string evil = "\x1b[31m\r\n\ttext";
    w.device(0, evil);
    w.range(evil, 1, 50);
    w.launched(2, 3, {.start = 100, .end = 200, .name = evil});
    w.notice(evil);
    const Json d = document_of(recorded(w), "", evil);
    for (const std::string& text : {profile_text(d, 10, {}), profile_comparison_text(d, d, 10, {})}) {
        EXPECT_EQ(text.find('\x1b'), text.npos);
        EXPECT_EQ(text.find('\r'), text.npos);
        EXPECT_EQ(text.find('\t'), text.npos);
    }
}

// A step of each, though one run had two and the other four.
TEST(ProfileText, ComparesAStepWithAStep) {
    RecordingWriter w;
    for (const std::uint64_t at : {1000, 2000, 3000, 4000}) {
        w.range("step", at, at + 10);
        w.launched(at + 1, at + 2, {.start = at + 10, .end = at + 410, .name = "same"});
        if (at == 1000) w.launched(at + 1, at + 2, {.start = at + 500, .end = at + 900, .name = "came"});
    }
    RecordingWriter before;
    for (const std::uint64_t at : {1000, 2000}) {
        before.range("step", at, at + 10);
        before.launched(at + 1, at + 2, {.start = at + 10, .end = at + 210, .name = "same"});
        before.launched(at + 1, at + 2, {.start = at + 210, .end = at + 220, .name = "went"});
    }
    const std::string text =
        profile_comparison_text(document_of(recorded(before), "step"), document_of(recorded(w), "step"), 10, {.width = 100});
    EXPECT_THAT(text, HasSubstr("same          1        1   0.2000 us  0.4000 us  +100.0 %"));
    EXPECT_THAT(text, HasSubstr("new"));
    EXPECT_THAT(text, HasSubstr("gone"));
}

TEST(FoldedStacks, ALineAStackInNanoseconds) {
    const std::string text = folded_stacks(document_of(recorded(made_training())));
    EXPECT_THAT(text, HasSubstr("step;forward, of <layer>;PyTorch elementwise 400000\n"));
    EXPECT_THAT(text, HasSubstr("step;torch.compile elementwise: add mul 480000\n"));
    EXPECT_THAT(text, HasSubstr("step;memset 20000\n"));
    double sum = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) sum += std::stod(line.substr(line.rfind(' ')));
    EXPECT_EQ(sum, 2 * (200 + 50 + 180 + 200 + 40 + 100 + 10) * 1000.0);
}

TEST(Timeline, DurationsAreTheDevicesTime) {
    const std::vector<Recorded> all = recorded(made_training());
    const Json trace = timeline(all);
    double kernels = 0, copies = 0;
    std::size_t calls = 0, ranges = 0;
    for (const Json& event : trace.at("traceEvents")) {
        if (event.at("ph") == "M") continue;
        ASSERT_EQ(event.at("ph"), "X");
        EXPECT_GE(event.at("ts").get<double>(), 0);
        EXPECT_GE(event.at("dur").get<double>(), 0);
        if (event.at("cat") == "kernel") kernels += event.at("dur").get<double>();
        if (event.at("cat") == "copy") copies += event.at("dur").get<double>();
        calls += event.at("cat") == "call", ranges += event.at("cat") == "range";
    }
    const Json d = document_of(all);
    EXPECT_NEAR(kernels, d.at("kernel_time_us").get<double>(), 1e-9);
    EXPECT_NEAR(copies, 220, 1e-9);
    EXPECT_EQ(calls, all[0].calls.size());
    EXPECT_EQ(ranges, 4u);
    EXPECT_EQ(trace.at("traceEvents")[1].at("ts"), 90000 + 100) << "from the beginning of the recording";
    EXPECT_TRUE(timeline({}).at("traceEvents").empty());
}

Json with_idle(double host, double waited, double launches, double steps) {
    Json d = document_of(recorded(made_training()));
    d["steps"] = steps, d["host"]["launches"] = launches;
    for (Json& device : d["devices"])
        device["idle"] = {{"host_us", host}, {"waited_us", waited}, {"launch_us", 0}, {"dependency_us", 0}, {"unknown_us", 0}};
    return d;
}

TEST(Savings, OfTheHostPerStep) {
    const auto s = savings_of(with_idle(100, 30, 40, 10));
    ASSERT_EQ(s.size(), 2u);
    EXPECT_EQ(s[0].us, 10);
    EXPECT_THAT(s[0].what, HasSubstr("asks for 4 kernels a step one by one: capture the step in a CUDA graph"));
    EXPECT_EQ(s[1].us, 3);
    EXPECT_THAT(s[1].command, HasSubstr("--timeline"));
    EXPECT_THAT(savings_of(with_idle(100, 0, 40, 1)).at(0).what, Not(HasSubstr("a step")));
    EXPECT_TRUE(savings_of(with_idle(100, 0, 1, 1)).empty()) << "one launch is no host's fault";
}

// Ours is predicted to take less of four launches; three are said, the largest together first.
TEST(Savings, AreThreeAtMost) {
    Json d = with_idle(0, 0, 0, 2);
    Json launch = d.at("kernels")[0].at("launches")[0];
    launch["operation"] = "op", launch["problem"] = "p", launch["command"] = "rooftile plan op";
    d["kernels"] = {d.at("kernels")[0]};
    d["kernels"][0]["launches"] = Json::array();
    for (const double calls : {2, 4, 6, 8, 200}) {
        launch["calls"] = calls, launch["mean_us"] = 10, launch["ours_us"] = calls == 200 ? 11 : 9;
        d["kernels"][0]["launches"].push_back(launch);
    }
    const auto s = savings_of(d);
    ASSERT_EQ(s.size(), 3u);
    EXPECT_EQ(s[0].us, 4);
    EXPECT_EQ(s[2].us, 2);
    EXPECT_EQ(s[0].what, "op p: 4 calls a step of 10 us, ours is predicted to take 9 us");
    EXPECT_EQ(s[0].command, "rooftile plan op");
}

TEST(ShortName, OfWhatNoGrammarReads) {
    KernelName name;
    name.family = "unknown";
    for (const auto& [whole, wanted] :
         {std::pair{"void ns::kernel<int, 4>(float*)", "ns::kernel"}, {"kernel(int)", "kernel"}, {"plain", "plain"}, {"", ""}}) {
        name.name = whole;
        EXPECT_EQ(short_name(name), wanted);
    }
}

}  // namespace
}  // namespace rooftile
