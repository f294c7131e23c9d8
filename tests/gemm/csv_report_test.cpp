#include "rooftile/gemm/operation.hpp"
#include "rooftile/report/csv.hpp"
#include "rooftile/report/measurement.hpp"

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/gemm/sample.hpp"

namespace rooftile {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find("\r\n", begin);
        EXPECT_NE(end, std::string::npos) << "a line does not end in CR LF";
        if (end == std::string::npos) break;
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 2;
    }
    return lines;
}

TEST(Csv, CellsAreQuotedWhereTheyMustBe) {
    EXPECT_EQ(csv_cell("plain"), "plain");
    EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
    EXPECT_EQ(csv_cell("say \"x\""), "\"say \"\"x\"\"\"");
    EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
    EXPECT_EQ(csv_cell(""), "");
}

TEST(Csv, NoCellIsAFormula) {
    EXPECT_EQ(csv_cell("=1+1"), "'=1+1");
    EXPECT_EQ(csv_cell("+1"), "'+1");
    EXPECT_EQ(csv_cell("-1"), "'-1");
    EXPECT_EQ(csv_cell("@x"), "'@x");
    EXPECT_EQ(csv_cell("\tx"), "'\tx");
    EXPECT_EQ(csv_cell("=cmd|'/c calc'!A1,2"), "\"'=cmd|'/c calc'!A1,2\"");
    DocumentContext context = sample::context();
    context.machine_id = "=HYPERLINK(1)";
    EXPECT_NE(csv_text(plan_document(context, gemm_plan_set(sample::plans()))).find("\r\n'=HYPERLINK(1),gemm,"),
              std::string::npos);
}

TEST(Csv, OneLineAPlanWithUnitsInTheHeader) {
    const auto lines = lines_of(csv_text(plan_document(sample::context(), gemm_plan_set(sample::plans()))));
    ASSERT_EQ(lines.size(), 3u);
    for (const char* title : {"time_us", "shared_bytes", "ctas_per_sm", "resources_ctas_per_sm", "types_a"})
        EXPECT_NE(("," + lines[0] + ",").find("," + std::string(title) + ","), std::string::npos) << title;
    const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
    EXPECT_EQ(commas(lines[0]), commas(lines[1]));
    EXPECT_EQ(lines[1].rfind("h100-sxm,gemm,4096,14336,4096,k,k,bf16,bf16,bf16,fp32,", 0), 0u) << lines[1];
}

TEST(Csv, MeasuredRowsAndUnknownsAsEmptyCells) {
    const auto lines = lines_of(
        csv_text(measurement_document(sample::gpu_context(), {sample::measurement(), sample::above_roof()})));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_NE(lines[1].find("sustained,650,645,655,0.984375,7,"), std::string::npos) << lines[1];
    EXPECT_NE(lines[2].find("sustained,,,,,7,,,tensor,"), std::string::npos) << lines[2];
}

TEST(Csv, ListsOfRecordsHaveNoColumn) {
    Json document = plan_document(sample::context(), gemm_plan_set(sample::plans()));
    document["plans"][0]["wins_if"] = Json::array();
    document["plans"][1]["wins_if"] = {{{"key", "sm.count"}}};
    const auto lines = lines_of(csv_text(document));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0].find("wins_if"), std::string::npos);
}

TEST(Csv, NothingFitsIsAHeaderAlone) {
    EXPECT_EQ(lines_of(csv_text(plan_document(sample::context(), gemm_plan_set(sample::infeasible())))).size(), 1u);
}

}  // namespace
}  // namespace rooftile
