// A page's numbers are the documents', and it needs nothing from elsewhere.
#include "rooftile/picture/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "rooftile/picture/pictures.hpp"
#include "tests/picture/sample.hpp"
#include "tests/profile/made_profiles.hpp"

namespace rooftile {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count_of(const std::string& text, std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
    return n;
}

/// How many numbers it shows; each is what stands at its place in its document.
std::size_t expect_numbers_of(const std::string& page, const std::vector<PageDocument>& documents) {
    static const std::regex element(R"re(<data value="([^"]*)" data-at="d(\d+)(/[^"]*)">)re");
    std::size_t n = 0;
    for (std::sregex_iterator i(page.begin(), page.end(), element), end; i != end; ++i, ++n) {
        const Json& document = documents.at(std::stoul((*i)[2]) - 1).document;
        const Json::json_pointer at((*i)[3].str());
        EXPECT_TRUE(document.contains(at)) << (*i)[3];
        if (document.contains(at)) { EXPECT_EQ(document.at(at).dump(), (*i)[1].str()) << (*i)[3]; }
    }
    return n;
}

TEST(Page, HasTheDocumentsNumbers) {
    Json other = sample::pictured_plan();
    other["plans"][0]["config"]["stages"] = 3;
    other["plans"][0]["prediction"]["time_us"] = 1.0 / 3;
    const std::vector<PageDocument> documents = {
        {"a.json", sample::pictured_plan()}, {"b.json", other}, {"c.json", sample::pictured_sweep()}};
    const std::string page = page_html(documents, "rooftile report page a.json b.json c.json -o p.html");
    EXPECT_GT(expect_numbers_of(page, documents), 50u);
    EXPECT_THAT(page, HasSubstr("Side by side"));
    EXPECT_THAT(page, HasSubstr("<tr class=\"differs\"><th scope=\"row\">stages"));
    EXPECT_THAT(page, Not(HasSubstr("<tr class=\"differs\"><th scope=\"row\">tile_m")));
    EXPECT_THAT(page, HasSubstr("a note with &lt;markup&gt; &amp; more"));
    EXPECT_THAT(page, HasSubstr("a &lt;datasheet&gt;"));
    EXPECT_LT(page.size(), 3u << 20);
    // Each picture has its command below it, and itself as data.
    std::size_t pictures = 0;
    for (const PageDocument& d : documents) pictures += pictures_of(d.document).size();
    EXPECT_EQ(count_of(page, "<figure>"), pictures);
    EXPECT_EQ(count_of(page, "<figcaption><code class=\"command\">rooftile "), pictures);
    EXPECT_EQ(count_of(page, "<script type=\"application/vnd.vegalite.v5+json\""), pictures);
    EXPECT_EQ(count_of(page, "<script"), pictures) << "it runs none";
    EXPECT_EQ(count_of(page, "<details"), count_of(page, "</details>"));
}

TEST(Page, HasAProfilesNumbers) {
    std::vector<Recorded> products;
    products.push_back(recorded_products());
    const std::vector<PageDocument> documents = {{"a.json", document_of(recorded(made_training()), "step")}, {"b.json", document_of(products)}};
    const std::string page = page_html(documents, "x");
    EXPECT_GT(expect_numbers_of(page, documents), 500u);
    for (const char* part : {"GPU 0: NVIDIA H200", "What would save most", "torch.compile elementwise: add mul", "forward; of &lt;layer&gt;", "cuMemAlloc_v2"})
        EXPECT_THAT(page, HasSubstr(part));
    EXPECT_THAT(page, Not(HasSubstr("<layer>")));
    EXPECT_EQ(count_of(page, "<details"), count_of(page, "</details>"));
}

// One of a run that did nothing, and of names that are markup.
TEST(Page, ShowsAProfileOfNothingAndOfAnything) {
    const std::string evil = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    RecordingWriter w;
    w.device(0, evil);
    w.range(evil, 1, 50);
    w.launched(2, 3, {.start = 100, .end = 200, .name = evil});
    w.call(evil, 5, 6);
    w.notice(evil);
    for (const Json& document : {document_of({}), document_of(recorded(w), "", evil)}) {
        const std::string page = page_html({{"p.json", document}}, "x");
        EXPECT_EQ(page.find("<img"), page.npos);
        EXPECT_EQ(count_of(page, "<script"), count_of(page, "<script type=\"application/vnd"));
    }
}

TEST(Page, AsksForNothing) {
    const std::string page = page_html({{"a.json", sample::pictured_plan()}}, "x");
    const std::string shown = std::regex_replace(page, std::regex(R"(<script type="application/vnd[^\n]*?</script>)"), "");
    for (const char* what : {" src=", "@import", "url(", "href=\"http", "href=\"//", "<link rel=\"stylesheet", "<iframe"})
        EXPECT_EQ(shown.find(what), shown.npos) << what;
}

// Whatever a document says is text, never markup.
TEST(Page, TextsAreNoMarkup) {
    Json d = sample::pictured_plan();
    const std::string evil = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    d["context"]["command"] = evil, d["machine"]["id"] = evil, d["notes"] = {evil};
    d["plans"][0]["config"]["order"] = evil, d["plans"][0]["derivation"][0]["formula"] = evil, d["map"]["cells"][2]["why"] = evil;
    const std::string page = page_html({{evil, d}}, evil);
    EXPECT_EQ(page.find("<img"), page.npos);
    EXPECT_EQ(count_of(page, "<script"), count_of(page, "<script type=\"application/vnd"));
    EXPECT_EQ(count_of(page, "</script>"), count_of(page, "<script"));
}

// What this page does not know is shown plainly.
TEST(Page, ShowsWhatItDoesNotKnow) {
    const std::vector<PageDocument> documents = {
        {"z.json", {{"schema", "rooftile/later/1"}, {"machine", {{"id", "m"}}}, {"figure_us", 12.5}}}};
    const std::string page = page_html(documents, "x");
    EXPECT_EQ(expect_numbers_of(page, documents), 1u);
    EXPECT_THAT(page, HasSubstr("12.50 us"));
}

}  // namespace
}  // namespace rooftile
