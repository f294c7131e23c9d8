// Rules of a GEMM's search: what they leave out is counted, and nothing else changes.
#include "rooftile/gemm/rules.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "rooftile/gemm/search.hpp"
#include "rooftile/gemm/sm90_family.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

SearchResult searched(const char* id, const GemmProblem& problem, bool exhaustive,
                      std::optional<bool> swap_ab = {}, std::optional<int> grid_split_k = {}) {
    std::vector<std::string> unknown;
    const GemmHardware hw = gemm_hardware(machine_by_id(id), "wgmma", Type::bf16, unknown);
    GemmRequest request;
    request.simulate = false;
    request.exhaustive = exhaustive;
    request.swap_ab = swap_ab;
    request.grid_split_k = grid_split_k;
    return search(Sm90GemmFamily(hw, problem), hw, problem, request);
}

std::int64_t count(const SearchResult& result, const Rule& rule) {
    for (const auto& counted : result.rejected.by_rule)
        if (counted.rule == &rule) return counted.count;
    return 0;
}

// Of a tile and residency K in two parts or more are, of seven numbers of parts, four of warpgroups and three clusters,
// 84 candidates, each with 31 numbers of stages and 10 orders. They are left out where 4096 x 4096 has four waves of such
// tiles on 132 SMs, of one CTA each or of two, three or four.
TEST(GemmRules, PartsOfFewWavesAreCounted) {
    const GemmProblem problem = gemm_problem(4096, 4096, 4096);
    std::int64_t pairs = 0;
    for (int tile_m : searched_tile_ms)
        for (int tile_n : searched_tile_ns)
            for (int ctas : {1, 2, 3, 4}) {
                const auto tiles =
                    ceil_div(std::int64_t(4096), tile_m) * ceil_div(std::int64_t(4096), tile_n);
                pairs += tiles >= 4 * 132 * ctas;
            }
    const SearchResult result = searched("h200-sxm", problem, false, false);
    EXPECT_EQ(count(result, gemm_rules::parts_of_few_waves), pairs * 84 * 31 * 10);
}

// 257 rows in tiles of 8 x 1 ... 8 x 32. The least multiple of 8 that makes 33, 17, 11, 9, 7, 6, 5, 4, 3 or 2 rows of tiles is 8, 16, 24,
// 32, 40, 48, 56, 72, 88 or 136; of 16 it is besides 64, 80, 96, 144; of 24 120 and 168; of 32 160; of 56 112;
// of 64 128 and 192. The other 12 hold no more.
TEST(GemmRules, SwappedTilesThatHoldNoMoreAreCounted) {
    const SearchResult result = searched("h200-sxm", gemm_problem(257, 3840, 7424), false, {}, 1);
    const int kept[] = {136, 88, 72, 56, 48,  40,  32,  24,  16,  8,
                        144, 96, 80, 64, 120, 168, 160, 112, 192, 128};
    const std::int64_t left_out = 32 - std::int64_t(std::size(kept));
    // Of a tile and residency: four warpgroups cooperative with K in 1 to 8 parts of one piece, pingpong on two; three clusters.
    EXPECT_EQ(count(result, gemm_rules::tight_swapped_tiles), left_out * 4 * 4 * (4 * 8 + 1) * 3 * 31 * 10);
}

TEST(GemmRules, TheSpaceDoesNotDependOnThem) {
    for (const char* id : {"h200-sxm", "h20"})
        for (const auto& p : {gemm_problem(4096, 14336, 4096), gemm_problem(1, 4096, 4096),
                              gemm_problem(640, 3000, 64), gemm_problem(16384, 28672, 8192)}) {
            const SearchResult some = searched(id, p, false), all = searched(id, p, true);
            EXPECT_EQ(std::int64_t(some.best.size()) + some.rejected.count(),
                      std::int64_t(all.best.size()) + all.rejected.count());
            EXPECT_TRUE(all.rejected.by_rule.empty());
            EXPECT_LE(all.best[0].score, some.best[0].score);
        }
}

TEST(GemmRules, AreDocumented) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/docs/rules.md");
    std::stringstream text;
    text << file.rdbuf();
    for (const Rule* rule : gemm_rules::all) {
        const std::string row = "| `" + std::string(rule->name) + "` | " + std::string(rule->why) + " |\n";
        EXPECT_NE(text.str().find(row), std::string::npos) << "docs/rules.md lacks the row\n" << row;
    }
}

}  // namespace
}  // namespace rooftile
