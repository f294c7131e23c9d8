// `compare` from outside: either kind of file, and its exit codes.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"

namespace rooftile {
namespace {

using nlohmann::json;

/// The rows of a recorded draw, its times multiplied; as lines, or as one document.
void write_run(const std::filesystem::path& path, double factor, bool whole) {
    std::ifstream recorded(ROOFTILE_SOURCE_DIR "/bench/results/current/h100-sxm-gemm-group-9995615.jsonl");
    json document;
    std::ofstream out(path);
    for (std::string line; std::getline(recorded, line);) {
        json row = json::parse(line);
        for (const char* key : {"time_us", "time_us_low", "time_us_high"})
            if (row.contains(key) && row[key].is_number()) row[key] = row[key].get<double>() * factor;
        if (!whole) out << row << "\n";
        else if (document.is_null()) document = row;
        else document["rows"].push_back(row);
    }
    if (whole) out << document << "\n";
}

TEST(Compare, ReadsLinesAndDocumentsAndEndsWithEightWhereAskedTo) {
    const Folder folder;
    const std::string before = (folder.path() / "before.jsonl").string(),
                      slower = (folder.path() / "slower.json").string();
    write_run(before, 1, false);
    write_run(slower, 1.25, true);
    const Outcome found = run({"compare", before, slower});
    EXPECT_EQ(found.code, 0) << found.err;
    EXPECT_NE(found.out.find("0 faster, "), std::string::npos) << found.out;
    EXPECT_NE(found.out.find("geometric mean 0.800"), std::string::npos) << found.out;
    EXPECT_EQ(run({"compare", before, slower, "--require"}).code, 8);
    EXPECT_EQ(run({"compare", slower, before, "--require"}).code, 0);
    EXPECT_EQ(run({"compare", before, slower, "--require", "--within", "50"}).code, 0);
    expect_refused({"compare", before}, {"two runs"});
    expect_refused({"compare", before, (folder.path() / "none.jsonl").string()}, {"none.jsonl"});
    expect_refused({"compare", before, slower, "--within", "some"}, {"--within some"});
}

TEST(Derivations, AreInDocumentsOnlyWhereAllIsAskedFor) {
    const std::vector<std::string> request = {"plan",  "gemm", "2048x2048x2048", "--machine", "h100-sxm",
                                              "--top", "2",    "--json"};
    const auto plan_with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> words = request;
        words.insert(words.end(), more.begin(), more.end());
        return json::parse(run(words).out).at("plans").at(0);
    };
    EXPECT_FALSE(plan_with({}).contains("derivation"));
    const json brief = plan_with({"--explain"}), all = plan_with({"--explain=all"});
    EXPECT_FALSE(brief.contains("derivation"));
    EXPECT_TRUE(brief.contains("attainability"));
    EXPECT_GT(all.at("derivation").size(), 15u);
    const json interval = brief.at("prediction").at("interval_us");
    EXPECT_LT(interval.at(0), brief.at("prediction").at("time_us"));
    EXPECT_GT(interval.at(1), brief.at("prediction").at("time_us"));
}

}  // namespace
}  // namespace rooftile
