// Files of results are from anybody: no value in one is the name of a file to be read.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/random.hpp"
#include "tests/cli/program.hpp"
#include "tests/watched_file.hpp"

namespace rooftile {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// The first lines of a recorded file.
std::vector<json> lines_of(const fs::path& path, int most) {
    std::vector<json> lines;
    std::ifstream file(path);
    for (std::string line; int(lines.size()) < most && std::getline(file, line);) lines.push_back(json::parse(line));
    return lines;
}

/// Where values are that are no objects or lists: "/1/problem/m".
void places_in(const json& value, const json::json_pointer& at, std::vector<json::json_pointer>& places) {
    if (!value.is_structured()) return places.push_back(at);
    if (value.is_array() && value.size() > 64) return;  // a space's configurations: all alike
    for (const auto& [key, inner] : value.items())
        places_in(inner, value.is_array() ? at / std::size_t(std::stoul(key)) : at / key, places);
}

/// Has each verb read the document with the file's name in one place after the other: of a problem and of a machine in all of them,
/// else in `drawn` of them.
void check(std::vector<json> lines, const std::vector<std::vector<std::string>>& verbs, std::size_t drawn) {
    ASSERT_GE(lines.size(), 2u);
    json document = lines;
    for (const char* key : {"groups", "lengths"})
        if (json& problem = document.at(1).at("problem"); !problem.contains(key)) problem[key] = "64";
    std::vector<json::json_pointer> all, places;
    places_in(document, json::json_pointer(), all);
    Random random(16);
    for (const auto& place : all)
        if (place.to_string().starts_with("/1/problem/") || place.to_string().find("/machine/") != std::string::npos
            || random.pick(all.size()) < drawn)
            places.push_back(place);
    WatchedFile watched;
    const fs::path file = fs::temp_directory_path() / ("rooftile-document-" + std::to_string(getpid()) + ".jsonl");
    for (const auto& place : places) {
        json changed = document;
        changed[place] = watched.path();
        if (place.to_string().starts_with("/1/problem/") && changed.at(1).at("problem").contains("alpha") && random.coin())
            changed.at(1).at("problem").erase("alpha");  // as runs of before there were epilogues: another reader
        for (const char* key : {"groups", "lengths"})
            if (place.to_string() != std::string("/1/problem/") + key && !lines.at(1).at("problem").contains(key))
                changed.at(1).at("problem").erase(key);
        std::ofstream text(file);
        for (const json& line : changed) text << line << "\n";
        text.close();
        for (std::vector<std::string> verb : verbs) {
            verb.push_back(file.string());
            const Outcome outcome = run(verb);
            EXPECT_LT(outcome.code, 128) << verb[0];
            EXPECT_FALSE(watched.opened()) << verb[0] << " " << verb[1] << " opens the file that " << place.to_string() << " names";
            EXPECT_EQ((outcome.out + outcome.err).find("secret"), std::string::npos) << outcome.err;
        }
    }
    fs::remove(file);
}

const fs::path results = fs::path(ROOFTILE_SOURCE_DIR) / "bench/results";

TEST(Documents, ReportsReadNoFileThatARowNames) {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(results / "current")) {
        if (entry.path().extension() != ".jsonl") continue;
        ++files;
        std::vector<std::vector<std::string>> verbs = {{"report", "sweep"}};
        if (entry.path().string().find("-gemm-group") != std::string::npos)
            verbs.insert(verbs.end(), {{"report", "suite"}, {"report", "traffic"}, {"report", "predictions"}});
        check(lines_of(entry.path(), 2), verbs, 4);
    }
    EXPECT_GE(files, 1);
}

TEST(Documents, ValidateReadsNoFileThatALedgerNames) {
    for (const char* name : {"2026-11-25-h200-fuse-ledger-6503641.jsonl", "2026-11-25-h200-gemm-ledger-13387185.jsonl"})
        check(lines_of(results / "history" / name, 2), {{"validate", "--ledger"}}, 2);
}

TEST(Documents, AFileThatAFlagNamesIsARegularOneOfLimitedSize) {
    const fs::path large = fs::temp_directory_path() / ("rooftile-large-" + std::to_string(getpid()));
    std::ofstream(large) << "1";
    fs::resize_file(large, std::uintmax_t(1) << 33);
    for (const std::string& file : {std::string("/dev/zero"), std::string("/tmp"), large.string()}) {
        if (find_operation("gemm")) expect_refused({"plan", "gemm", "--groups", file, "--n", "64", "--k", "64"}, {file});
        if (find_operation("attention")) expect_refused({"plan", "attention", "--lengths", file, "--heads", "1", "--dim", "64"}, {file});
    }
    fs::remove(large);
}

}  // namespace
}  // namespace rooftile
