#include "rooftile/machine/keys.hpp"

#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace rooftile {
namespace {

TEST(Keys, TheTableIsSound) {
    std::set<std::string_view> names;
    for (const Key& key : machine_keys()) {
        EXPECT_TRUE(names.insert(key.name).second) << key.name << " twice";
        EXPECT_LT(key.least, key.most) << key.name;
        EXPECT_FALSE(key.meaning.empty()) << key.name;
        for (auto unit : units_listed(key.units))
            EXPECT_TRUE(std::holds_alternative<Unit>(parse_unit(unit))) << key.name << " " << unit;
    }
}

TEST(Keys, Match) {
    EXPECT_EQ(match_key("l2.size").key->name, "l2.size");
    EXPECT_EQ(match_key("rate.wgmma.bf16.fp32").key->name, "rate.*.*.*");
    EXPECT_EQ(match_key("rate.mufu").key->name, "rate.mufu");
    EXPECT_EQ(match_key("clock.sustained.bf16").key->name, "clock.sustained.*");
    for (const char* group : {"l2", "rate", "rate.wgmma", "rate.wgmma.bf16", "clock", "clock.sustained"}) {
        EXPECT_TRUE(match_key(group).group) << group;
        EXPECT_EQ(match_key(group).key, nullptr) << group;
    }
    for (const char* none : {"", ".", "l2.", ".l2", "l2.size.x", "rate.*.*.*", "rate.mufu.x", "L2.size"}) {
        EXPECT_EQ(match_key(none).key, nullptr) << none;
        EXPECT_FALSE(match_key(none).problem.empty()) << none;
    }
}

TEST(Keys, EveryTypeFamilyAndAccumulator) {
    for (auto family : instruction_families())
        for (auto input : input_types())
            for (auto accumulator : accumulator_types()) {
                const std::string tail =
                    "." + std::string(family) + "." + std::string(input) + "." + std::string(accumulator);
                EXPECT_NE(match_key("rate" + tail).key, nullptr) << tail;
                EXPECT_NE(match_key("peak" + tail).key, nullptr) << tail;
            }
}

TEST(Keys, Nearest) {
    const std::string names[] = {"h100-sxm", "h100-pcie", "h20"};
    EXPECT_EQ(nearest_name("h100sxm", names), "h100-sxm");
    EXPECT_EQ(nearest_name("H20", names), "h20");
    EXPECT_EQ(nearest_name("h100", names), "h100-sxm");  // begun, the shorter first; "h20" only looks alike
    EXPECT_EQ(nearest_name("", names), "");
    EXPECT_EQ(nearest_name("completely different", names), "");
}

TEST(Keys, DocumentedOneByOne) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/docs/machines.md");
    std::stringstream text;
    text << file.rdbuf();
    const std::size_t begin = text.str().find("## Keys");
    ASSERT_NE(begin, std::string::npos);
    const std::string page = text.str().substr(begin), before = text.str().substr(0, begin);
    for (const Key& key : machine_keys()) {
        const std::string row = "| `" + std::string(key.name) + "` | " + std::string(key.units) + " | "
                                + std::string(key.meaning) + " |\n";
        EXPECT_NE(page.find(row), page.npos) << "docs/machines.md lacks the row\n" << row;
        EXPECT_EQ(before.find(row), before.npos) << "stands in another table\n" << row;
    }
    for (const Feature& feature : machine_features()) {
        const std::string row =
            "| `" + std::string(feature.name) + "` | " + std::string(feature.meaning) + " |\n";
        EXPECT_NE(page.find(row), page.npos) << "docs/machines.md lacks the row\n" << row;
    }
}

}  // namespace
}  // namespace rooftile
