// Names of kernels from outside: documents, text, standard input, refusals.
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/folder.hpp"
#include "tests/json_schema.hpp"

namespace rooftile {
namespace {

/// Every name that tests know of, recorded, public and of libraries.
std::vector<std::string> all_names() {
    std::vector<std::string> out;
    for (const char* file : {"libraries.txt", "public.txt", "launches_h200.txt"}) {
        std::ifstream in(std::string(ROOFTILE_SOURCE_DIR "/tests/names/") + file);
        for (std::string line; std::getline(in, line);) {
            if (line.empty() || line[0] == '#') continue;
            if (file == std::string("launches_h200.txt")) line = line.substr(line.rfind(' ') + 1);
            if (file != std::string("public.txt") || line[0] == ' ') out.push_back(line);
        }
    }
    return out;
}

TEST(NameVerb, DocumentsFollowTheirSchema) {
    std::vector<std::string> arguments{"name", "--json", "nobody's kernel<", "bell \a of \xff"};
    for (const std::string& name : all_names()) arguments.push_back(name);
    const Outcome got = run(arguments);
    ASSERT_EQ(got.code, 0) << got.err;
    const auto document = nlohmann::json::parse(got.out);
    EXPECT_EQ(JsonSchema("names-1.json").faults(document), "");
    ASSERT_EQ(document.size(), arguments.size() - 2);
    EXPECT_GT(document.size(), 700u);
    EXPECT_EQ(document.at(0).at("family"), "unknown");
    EXPECT_TRUE(document.at(0).at("tile_m").is_null());
}

TEST(NameVerb, OneNameWithItsDoubtsSeveralAsATable) {
    const Outcome one = run({"name", "nvjet_sm90_tst_192x8_64x8_2x1_v_bz_splitK_TNT"});
    EXPECT_EQ(one.code, 0) << one.err;
    for (const char* part : {"cuBLAS bf16 192x8x64, 8 stages, cluster 2x1, split-K, TNT\n", "204800 B", "uncertain: "})
        EXPECT_NE(one.out.find(part), std::string::npos) << one.out;
    const Outcome several = run({"name", "triton_poi_fused_add_mul_0", "main"});
    EXPECT_EQ(several.code, 0) << several.err;
    for (const char* part : {"torch.compile elementwise: add mul", "unknown: no known grammar reads 1 of 2 names\n"})
        EXPECT_NE(several.out.find(part), std::string::npos) << several.out;
    const Outcome unknown = run({"name", "main"});
    EXPECT_EQ(unknown.code, 0);
    EXPECT_EQ(unknown.out, "unknown: no known grammar reads this name\n");
}

TEST(NameVerb, NamesFromStandardInput) {
    const Folder folder;
    const std::string file = (folder.path() / "names").string();
    std::ofstream(file)
        << "\n  nvjet_tst_64x8_64x16_4x1_v_bz_TNT  \r\n\nvoid cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(int)\n";
    const int input = open(file.c_str(), O_RDONLY);
    ASSERT_GE(input, 0);
    const int kept = dup(0);
    dup2(input, 0);
    const Outcome got = run({"name", "-", "--json"});
    const Outcome nothing = run({"name", "-"});  // all of it has been read
    dup2(kept, 0);
    close(kept);
    close(input);
    ASSERT_EQ(got.code, 0) << got.err;
    const auto document = nlohmann::json::parse(got.out);
    ASSERT_EQ(document.size(), 2u);
    EXPECT_EQ(document.at(0).at("name"), "nvjet_tst_64x8_64x16_4x1_v_bz_TNT");
    EXPECT_EQ(document.at(1).at("tile_m"), 256);
    EXPECT_EQ(nothing.code, 2);
    EXPECT_NE(nothing.err.find("standard input holds no names"), std::string::npos) << nothing.err;
}

TEST(NameVerb, RefusesInOneLine) {
    expect_refused({"name"}, {"name NAME...", "name -"});
    expect_refused({"name", ""}, {"needs a value"});
    expect_refused({"name", "--csv", "main"}, {"no flag --csv"});
}

}  // namespace
}  // namespace rooftile
